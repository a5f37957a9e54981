"""What npumemctl report makes of a record, without a browser: the data in the page, and what is refused."""

import json
import os
import re
import signal
import subprocess
import unittest

from support import SECONDS, TestCase, dims, fill, frame, long_alloc, pb, read, run, submit, wait_for
from support import NPUMEMCTL
from test_record import read_record, write_record
from trace_format import faults

HOSTILE = "</script><b>x"


def data_of(path):
    """The record in a page, which must be the only thing in its element."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    assert page.count("<script") == 2 and page.count("</script>") == 2, "the record broke out of its element"
    return json.loads(re.search(r'id="record">(.*?)</script>', page, re.S).group(1))


class Report(TestCase):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.daemon.directory, "record")
        self.page = os.path.join(self.daemon.directory, "page.html")

    def start(self, *command):
        log = os.path.join(self.daemon.directory, "record.log")
        with open(log, "wb") as out:
            process = subprocess.Popen([NPUMEMCTL, "--socket", self.daemon.path, *command], stderr=out, stdout=out)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def text():
            with open(log, encoding="utf-8") as file:
                return file.read()

        wait_for(lambda: "recording" in text() or process.poll() is not None)
        return process, text

    def stop(self, process, text):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SECONDS), 0, text())

    def work(self):
        with self.daemon.client() as client:
            x = client.alloc("x", (1, 8, 1, 16), dtype=pb.FX8, frac_bits=4)
            y = client.alloc("", (1, 8, 1, 16), dtype=pb.FX8, frac_bits=4)
            client.write(x.handle, bytes([100] * 128))
            client.call(**submit(run(pb.ELTWISE_ADD, in1=x, in2=x, out=y), read(y)))
            self.assertEqual(client.ask(free=pb.FreeRequest(tensors=[pb.Ref(name=HOSTILE)])).status, pb.NOT_FOUND)
            client.call(view=pb.ViewRequest(name="v", tensor=pb.Ref(name="x"), **{"from": dims(0, 0, 0, 0)}, to=dims(1, 8, 1, 8)))
            client.call(read=pb.ReadRequest(tensor=pb.Ref(name="v")))
            return x, y

    def record(self):
        process, text = self.start("record", self.file)
        handles = self.work()
        wait_for(lambda: not self.is_there())
        self.stop(process, text)
        return handles

    def is_there(self):
        with self.daemon.client() as client:
            return client.stat().tensors > 1

    def report(self, *words, code=0):
        """Of trace where that is the first word."""
        command = words if words[0] == "trace" else ["report", *words]
        done = subprocess.run([NPUMEMCTL, "--json", *command], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def check(self, data, x, y):
        hexadecimal = [f"{one.handle:016x}" for one in (x, y)]
        operations = data["operations"]
        self.assertEqual([(one["name"], one["queue"], one["index"]) for one in operations],
                         [("write", "dma", -1), ("eltwise_add", "kernel", 0), ("read", "dma", 1), ("read", "dma", -1)])
        write, add, get, view = operations
        self.assertEqual(write["tensors"], [["tensor", hexadecimal[0], True, "x"]])
        self.assertEqual(sorted(add["tensors"]), [["in1", hexadecimal[0], False, "x"], ["in2", hexadecimal[0], False, "x"],
                                                  ["out", hexadecimal[1], True, ""]])
        self.assertEqual(add["saturated"], 128)
        self.assertEqual((get["waited_for"], get["why"]), (1, "tensor"))
        self.assertNotIn(view["tensors"][0][1], hexadecimal)
        for one in operations:
            self.assertLessEqual(one["came"], one["start"])
            self.assertLessEqual(one["start"], one["end"])
        refused = [entry for entry in data["entries"] if entry.get("status")]
        self.assertEqual([entry["status"] for entry in refused], ["NOT_FOUND"])
        self.assertIn("tensor", refused[0]["answer"]["message"])
        times = [entry["answered_ns"] for entry in data["entries"]]
        self.assertEqual(times, sorted(times))
        self.assertIn(HOSTILE, json.dumps(data))
        # Data do not come along, only how many there were.
        writes = [entry["request"]["write"] for entry in data["entries"] if "write" in entry.get("request", {})]
        self.assertEqual(writes[0]["data"], 128)

    def test_a_record(self):
        x, y = self.record()
        told = json.loads(self.report(self.file, self.page).stdout)
        data = data_of(self.page)
        self.assertEqual(told, {"file": self.page, "entries": len(data["entries"]), "operations": 4})
        self.check(data, x, y)
        self.assertTrue(any(entry["ended"] for entry in data["entries"]))

    def test_live(self):
        process, text = self.start("report", "--live", self.page)
        x, y = self.work()
        self.stop(process, text)
        self.check(data_of(self.page), x, y)

    def test_answers_without_the_data_of_reads(self):
        self.record()
        for entry in read_record(self.file)[1:-1]:
            answer = pb.Response.FromString(entry.answer)
            for done in [answer.done, *answer.submitted.done]:
                self.assertEqual(done.data, b"")
            if entry.answer:
                self.assertEqual((answer.id > 0, answer.status), (True, entry.status))

    def test_a_record_that_tells_no_times(self):
        self.record()
        entries = read_record(self.file)
        for entry in entries:
            entry.ClearField("answer")
            entry.came_ns = entry.answered_ns = 0
        write_record(self.file, entries)
        self.report(self.file, self.page)
        self.assertEqual([one["name"] for one in data_of(self.page)["operations"]], ["write", "read"])

    def test_any_request_is_told(self):
        """What a client may send, and no page or trace may fall over."""
        process, text = self.start("record", self.file)
        with self.daemon.client() as client:
            for request in (pb.Request(id=2**64 - 1, read=pb.ReadRequest(tensor=pb.Ref(handle=2**64 - 1), segment_offset=2**64 - 1)),
                            pb.Request(id=7), pb.Request(id=8, fill=pb.FillRequest(real=float("nan"))),
                            pb.Request(id=9, run=pb.RunRequest(kernel=9999, operands=[pb.Operand()] * 40)),
                            pb.Request(id=10, submit=pb.SubmitRequest(operations=[pb.Operation()])),
                            pb.Request(id=11, free=pb.FreeRequest(tensors=[pb.Ref(name="\u2028\x01\"\\é" * 9)]))):
                client.sock.sendall(frame(request))
                self.assertNotEqual(client.receive().status, pb.OK)
        self.stop(process, text)
        self.report(self.file, self.page)
        data = data_of(self.page)
        self.assertEqual(len([entry for entry in data["entries"] if entry.get("status")]), 6)
        self.assertEqual(data["operations"], [])
        self.assertEqual(len([event for event in self.trace() if event["ph"] == "i"]), 6)

    def test_what_is_no_answer_is_left_out(self):
        self.record()
        entries = read_record(self.file)
        for entry in entries[1:-1]:
            entry.answer = b"\xff\xff\xff" * 20
        write_record(self.file, entries)
        self.report(self.file, self.page)
        self.assertFalse(any("answer" in entry for entry in data_of(self.page)["entries"]))

    def test_labels(self):
        process, text = self.start("record", self.file)
        with self.daemon.client() as client:
            spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 8, 1, 16))
            x = client.call(alloc=pb.AllocRequest(tensors=[pb.Allocation(spec=spec, label="images")])).allocated.tensors[0]
            fill = pb.FillRequest(tensor=pb.Ref(handle=x.handle), integer=1)
            client.call(submit=pb.SubmitRequest(operations=[pb.Operation(fill=fill, label="conv1")]))
        wait_for(lambda: not self.is_there())
        self.stop(process, text)
        self.report(self.file, self.page)
        [operation] = data_of(self.page)["operations"]
        self.assertEqual((operation["label"], operation["tensors"][0][3]), ("conv1", "images"))
        [event] = [event for event in self.trace() if event["ph"] == "X"]
        self.assertEqual((event["name"], event["args"]["tensor"]), ("conv1", "images"))

    def test_refusals(self):
        with open(self.file, "wb") as file:
            file.write(b"garbage" * 9)
        self.assertIn("not a recording", self.report(self.file, self.page, code=1).stderr)
        self.assertFalse(os.path.exists(self.page))
        self.report(self.file, code=2)
        self.report("--live", self.file, self.page, code=2)
        os.remove(self.file)
        self.record()
        self.assertIn("cannot write", self.report(self.file, self.daemon.directory, code=1).stderr)
        self.assertIn("cannot write", self.report(self.file, "/dev/full", code=1).stderr)

    def trace(self):
        self.assertEqual(self.report("trace", self.file, "-").stdout[:1], "{")
        trace = os.path.join(self.daemon.directory, "trace.json")
        self.report("trace", self.file, trace)
        with open(trace, encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(faults(text), [])
        return json.loads(text)["traceEvents"]

    def test_a_trace(self):
        self.record()
        events = self.trace()
        of = {kind: [event for event in events if event["ph"] == kind] for kind in "XMbesfiC"}
        self.assertEqual(sum(map(len, of.values())), len(events))
        self.assertEqual([(event["name"], event["cat"]) for event in of["X"]],
                         [("write", "dma"), ("eltwise_add", "kernel"), ("read", "dma"), ("read", "dma")])
        self.assertEqual(of["X"][1]["args"]["in1"], "x")
        self.assertEqual([event["args"].get("bytes") for event in of["X"]], [128, None, 128, 64])
        # x stays; y goes with its session.
        one = {"data": 128, "dummy": 0, "padding": 896, "empty": 7168}
        two = {kind: 2 * bytes_ for kind, bytes_ in one.items()}
        self.assertEqual([event["args"] for event in of["C"]], [one, two, one])
        self.assertEqual({event["pid"] for event in of["C"]}, {0})
        self.assertEqual(of["X"][1]["args"]["saturated"], 128)
        self.assertEqual([(event["name"], "tensor" in event["args"]["message"]) for event in of["i"]], [("NOT_FOUND", True)])
        # What the read of the list waited for: an arrow from the kernel's slice to its own.
        starts, ends = ({event["id"]: event for event in of[kind]} for kind in "sf")
        self.assertEqual(starts.keys(), ends.keys())
        add, get = of["X"][1], of["X"][2]
        self.assertIn(((add["tid"], add["ts"]), (get["tid"], get["ts"])),
                      [((starts[one]["tid"], starts[one]["ts"]), (ends[one]["tid"], ends[one]["ts"])) for one in starts])
        self.assertIn("read waits for eltwise_add", [event["name"] for event in of["b"]])
        self.assertEqual(sorted(event["id"] for event in of["b"]), sorted(event["id"] for event in of["e"]))
        names = {event["args"]["name"] for event in of["M"]}
        self.assertLessEqual({"DMA", "kernels"}, names)
        self.assertTrue(any(f"uid {os.getuid()}, pid {os.getpid()}" in name for name in names))
        self.assertTrue(all(event.get("ts", 0) >= 0 and event.get("dur", 0) >= 0 for event in events))

    def retime(self, times):
        """A record of as many reads of x, with these times: came, start, end."""
        self.record()
        entries = read_record(self.file)
        at, one = next((at, entry) for at, entry in enumerate(entries) if pb.Request.FromString(entry.request).HasField("read"))
        copies = []
        for number, (came, start, end) in enumerate(times, 1):
            answer = pb.Response.FromString(one.answer)
            answer.done.start_ns, answer.done.end_ns = start, end
            copy = pb.RecordEntry.FromString(one.SerializeToString())
            copy.answer, copy.number = answer.SerializeToString(), one.number + number - 1
            copy.came_ns, copy.answered_ns = came, max(came, end)
            copies.append(copy)
        for entry in entries[:at]:
            entry.came_ns = entry.answered_ns = 0
        entries[-1].end.entries = copies[-1].number
        write_record(self.file, [*entries[:at], *copies, entries[-1]])

    def test_times_that_doubles_cannot_hold(self):
        """One after the other, each a few nanoseconds long, at times that 1/1000 makes too small."""
        base = 10**12
        self.retime([(base + 1, base + n, base + n + 7) for n in range(1, 4000, 7)])
        self.assertEqual(len([event for event in self.trace() if event["ph"] == "X" and event["ts"] < 10]), len(range(1, 4000, 7)))

    def test_more_at_once_than_tracks(self):
        base = 10**12
        self.retime([(base, base + n, base + 100_000 + n) for n in range(1, 41)])
        events = self.trace()
        self.assertEqual(len([event for event in events if event["ph"] == "X"]), 32)
        self.assertEqual(len([event for event in events if (event["ph"], event.get("cat")) == ("e", "dma")]), 8)

    def test_times_that_lie(self):
        base = 10**12
        self.retime([(base, base + 9, base + 5), (base, 5, 7), (base, 2**63, 2**63 + 5), (base, base + 1, 2**64 - 1)])
        self.trace()

    def test_a_trace_that_is_wrong_is_found(self):
        name = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "p"}},
                {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "t"}}]
        one = {"ph": "X", "cat": "c", "name": "n", "pid": 1, "tid": 2, "ts": 1.0, "dur": 2.0}
        start = {"ph": "s", "cat": "c", "name": "n", "pid": 1, "tid": 2, "ts": 1.0, "id": 7}
        begin = {"ph": "b", "cat": "c", "name": "n", "pid": 1, "ts": 1.0, "id": 7}
        good = [one, one | {"dur": 1.0}, one | {"ts": 3.0}, start, start | {"ph": "f", "bp": "e", "ts": 3.5}, begin, begin | {"ph": "e"}]

        def told(*events, names=name):
            return faults(json.dumps({"displayTimeUnit": "ns", "traceEvents": [*names, *events]}))

        self.assertEqual(told(*good), [])
        for events in ([one | {"ph": "Q"}], [one | {"dur": -1}], [one | {"ts": -1}], [one | {"ts": "1"}], [one | {"pid": -1}],
                       [one | {"tid": True}], [one | {"name": ""}], [one | {"args": 3}], [one | {"tid": 3}], [one | {"pid": 2}],
                       [one, one | {"ts": 2.0}], [one, one | {"ts": 2.999}], [start, one], [one, start, start | {"ph": "f", "ts": 2.0}],
                       [one, start, start | {"ph": "f", "bp": "e", "ts": 0.5}], [one, start, start | {"ph": "f", "bp": "e", "ts": 9}],
                       [begin], [begin | {"ph": "e"}, begin], [begin | {"id": "x"}], [{"ph": "i", "cat": "c", "name": "n", "pid": 1, "ts": 1}]):
            self.assertTrue(told(*events), events)
        self.assertTrue(told(one, names=[*name, name[0]]))
        self.assertTrue(told(one, names=name[:1]))
        self.assertEqual(faults('{"traceEvents": []}'), ["no trace"])
        self.assertRaises(ValueError, faults, '{"displayTimeUnit": "ns", "traceEvents": [NaN]}')

    def test_slices_of_a_track_do_not_overlap(self):
        process, text = self.start("record", self.file)
        clients = [self.daemon.client() for _ in range(3)]
        for k, client in enumerate(clients):
            client.call(**long_alloc(f"x{k}", 20000))
            client.call(**long_alloc(f"y{k}", 20000))
        sent = [client.post(*(fill(f"{name}{k}", n) for n in range(8) for name in "xy")) for k, client in enumerate(clients)]
        for client, ids in zip(clients, sent):
            client.answers(ids)
            client.close()
        self.stop(process, text)
        tracks = {}
        for event in self.trace():
            if event["ph"] == "X":
                tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
        self.assertEqual(sum(map(len, tracks.values())), 48)
        self.assertEqual(len({process for process, _ in tracks}), 3)
        for slices in tracks.values():
            slices.sort()
            for (_, end), (start, _) in zip(slices, slices[1:]):
                self.assertLessEqual(end, start + 0.001)


if __name__ == "__main__":
    unittest.main()
