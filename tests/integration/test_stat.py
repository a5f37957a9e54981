"""What the daemon counts, as a foreign client sees it and as npumemctl prints it."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import time
import unittest

from support import NPUMEMCTL, SECONDS, Client, TestCase, for_all_uids, fork, frame, pb, run_as, wait_for

ALICE, BOB = 12001, 12002
STALL_NS = 40_000_000

HELP = re.compile(r"# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (\S.*)")
TYPE = re.compile(r"# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"')
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([^}]*)\})? ([0-9.e+-]+|\+Inf|NaN)")


def parse(text):
    """The exposition format, strictly: {metric: (type, {(suffix, labels): value})}. Fails on anything odd."""
    assert text.endswith("\n")
    metrics, name, kind = {}, None, None
    lines = text.split("\n")[:-1]
    for i, line in enumerate(lines):
        if line.startswith("# HELP"):
            name = HELP.fullmatch(line)[1]
            assert name not in metrics, f"{name} twice"
            kind = TYPE.fullmatch(lines[i + 1])
            assert kind and kind[1] == name, line
            metrics[name] = (kind[2], {})
        elif not line.startswith("# TYPE"):
            match = SAMPLE.fullmatch(line)
            assert match, line
            labels = match[2] or ""
            found = LABEL.findall(labels)
            assert ",".join(f'{k}="{v}"' for k, v in found) == labels, line
            assert match[1].startswith(name), f"{line} not with its HELP"
            suffix = match[1][len(name):]
            assert suffix in (("_bucket", "_sum", "_count") if metrics[name][0] == "histogram" else ("",)), line
            key = (suffix, tuple(sorted(found)))
            assert key not in metrics[name][1], f"{line} twice"
            metrics[name][1][key] = float(match[3])
    return metrics


class Stat(TestCase):
    def details(self, client):
        return client.call(stat=pb.StatRequest(details=True)).stat

    def work(self, client):
        x = client.alloc("x", dtype=pb.FX8, frac_bits=4)
        y = client.alloc("", dtype=pb.FX8, frac_bits=4)
        client.write(x.handle, bytes([127]) * 128)
        run = pb.RunRequest(kernel=pb.ELTWISE_ADD)
        for role, tensor in (("in1", x), ("in2", x), ("out", y)):
            run.operands.add(role=role, tensor=pb.Ref(handle=tensor.handle))
        done = client.call(run=run).done
        self.assertEqual(client.ask(read=pb.ReadRequest(tensor=pb.Ref(handle=77))).status, pb.NOT_FOUND)
        return done

    def test_counts(self):
        client = self.client()
        done = self.work(client)
        stat = self.details(client)
        calls = {c.call: c for c in stat.calls}
        self.assertEqual(calls["alloc"].statuses[0], 2)
        self.assertEqual(calls["read"].statuses[pb.NOT_FOUND], 1)
        self.assertEqual(sum(calls["alloc"].buckets), 2)
        self.assertGreater(calls["run"].total_ns, 0)
        self.assertEqual(stat.activity.dma_bytes, 128)
        self.assertEqual(stat.activity.kernels, 1)
        self.assertEqual(stat.activity.saturated, done.saturated)
        self.assertGreater(done.saturated, 0)
        mine = [c for c in stat.clients if c.session == client.call(info=pb.InfoRequest()).info.session]
        self.assertEqual(len(mine), 1)
        self.assertEqual((mine[0].requests, mine[0].errors, mine[0].pid), (5, 1, os.getpid()))
        self.assertEqual(mine[0].tensors, 1)
        (uid,) = stat.uids
        self.assertEqual((uid.uid, uid.tensors, uid.sessions), (os.getuid(), 2, 1))
        self.assertEqual(stat.all.requests, 5)
        self.assertEqual(list(stat.npu_data[:9]), [32] * 8 + [0])
        again = self.details(client)
        self.assertGreater(again.now_ns, stat.now_ns)
        self.assertEqual(len(self.client().call(stat=pb.StatRequest()).stat.clients), 0)

    def test_a_malformed_message_counts(self):
        client = self.client()
        client.sock.sendall(b"\x02\xff\xff")
        client.receive()
        calls = {c.call: c for c in self.details(client).calls}
        self.assertEqual(calls["none"].statuses[pb.INVALID], 1)

    @unittest.skipUnless(os.getuid() == 0, "needs other uids")
    def test_activity_is_ones_own(self):
        """What another uid did, on what data, with which results, is in no answer; root sees all."""
        first = self.client()
        self.work(first)
        before = first.call(stat=pb.StatRequest(details=True)).stat
        self.assertGreater(before.activity.saturated, 0)

        def bob():
            with Client(self.daemon.path) as client:
                empty = client.call(stat=pb.StatRequest(details=True)).stat
                assert not any(v for _, v in empty.activity.ListFields()), empty.activity
                assert not empty.calls, empty.calls
                assert not any(empty.npu_data), empty.npu_data
                assert not empty.loop.turns and not empty.loop.buckets, empty.loop
                assert not empty.running, empty.running
                assert (empty.all.requests, empty.all.tensors, empty.all.device_bytes, empty.all.bytes_in) == (0, 0, 0, 0)
                # How full the device is may be known: an allocation has to fit.
                assert (empty.tensors, empty.data) == (before.tensors, before.data), empty
                assert (empty.sessions, empty.all.sessions) == (1, 1), empty
                client.alloc("mine", (1, 2, 1, 16))
                client.write(client.names() and client.tensors()[0].handle, bytes(32))
                stat = client.call(stat=pb.StatRequest(details=True)).stat
                assert stat.activity.dma_bytes == 32 and not stat.activity.kernels, stat.activity
                assert {c.call for c in stat.calls} == {"alloc", "write", "stat", "list"}, stat.calls
                assert list(stat.npu_data[:3]) == [16, 16, 0] and len(stat.npu_data) == 64, stat.npu_data
                assert {u.uid for u in stat.uids} == {BOB} == {c.uid for c in stat.clients}, stat
                assert stat.all.tensors == 1 and stat.all.requests == stat.uids[0].requests, stat.all
                client.call(free=pb.FreeRequest(tensors=[pb.Ref(name="mine")]))
                assert not any(client.call(stat=pb.StatRequest(details=True)).stat.npu_data)
            return "well"

        self.assertEqual(run_as(BOB, bob), "well")
        after = self.details(first)
        self.assertEqual({u.uid for u in after.uids}, {os.getuid(), BOB})
        self.assertEqual(after.activity.dma_bytes, before.activity.dma_bytes + 32)
        self.assertGreater(after.loop.turns, 0)
        self.assertEqual(after.all.sessions, 2)

    @unittest.skipUnless(os.getuid() == 0, "needs other uids")
    def test_what_npumemctl_says_of_it(self):
        self.work(self.client())
        directory = for_all_uids(NPUMEMCTL, os.path.join(os.environ["NPUMEM_BUILD"], "client", "lib", "libnpumem.so.0"))

        def bob(*words):
            done = subprocess.run(
                [os.path.join(directory, "npumemctl"), "--socket", self.daemon.path, *words], user=BOB, group=BOB,
                extra_groups=[], capture_output=True, text=True, timeout=SECONDS, cwd="/", check=False,
                env=dict(os.environ, LD_LIBRARY_PATH=directory),
            )  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        stat = json.loads(bob("--json", "stat"))
        self.assertNotIn("loop", stat)
        self.assertEqual([call["call"] for call in stat["calls"]], ["resume"])  # the library's own
        self.assertEqual((sum(stat["npu_data"]), stat["activity"]["kernels"], stat["activity"]["saturated"]), (0, 0, 0))
        self.assertEqual({row["uid"] for row in stat["uids"]}, {BOB})
        self.assertIn("saturated", bob("stat"))
        self.assertNotIn("longest turn", bob("stat"))
        metrics = parse(bob("stat", "--prometheus"))
        self.assertFalse([name for name in metrics if name.startswith("npumem_loop")], metrics)
        self.assertEqual(metrics["npumem_saturated_total"][1]["", ()], 0)
        self.assertRegex(bob("top", "--batch", "-n", "1"), r"(?m)^NPU +0 \.{64}$")

    def test_prometheus(self):
        client = self.client()
        self.work(client)
        metrics = parse(self.ctl("stat", "--prometheus"))
        kind, calls = metrics["npumem_requests_total"]
        self.assertEqual(kind, "counter")
        self.assertEqual(calls["", (("call", "alloc"), ("status", "OK"))], 2)
        self.assertEqual(calls["", (("call", "read"), ("status", "NOT_FOUND"))], 1)
        kind, times = metrics["npumem_request_seconds"]
        self.assertEqual(kind, "histogram")
        for call in {dict(labels)["call"] for _, labels in times}:
            rows = [
                (float(dict(labels)["le"]), value)
                for (suffix, labels), value in times.items()
                if suffix == "_bucket" and dict(labels)["call"] == call
            ]
            self.assertEqual(rows, sorted(rows))
            self.assertEqual([v for _, v in rows], sorted(v for _, v in rows))
            self.assertEqual(len(rows), 26)
            self.assertEqual(rows[-1], (float("inf"), times["_count", (("call", call),)]))
            self.assertGreaterEqual(times["_sum", (("call", call),)], 0)
        kinds = metrics["npumem_device_bytes"][1]
        self.assertEqual(sum(kinds.values()), metrics["npumem_device_total_bytes"][1]["", ()])

    def test_the_turns_of_the_loop(self):
        client = self.client()
        self.work(client)
        before = self.details(client).loop
        loop = self.details(client).loop
        self.assertGreater(loop.turns, before.turns)
        self.assertGreater(loop.total_ns, before.total_ns)
        for one in (before, loop):
            self.assertEqual(sum(one.buckets), one.turns)
            self.assertTrue(one.longest_ns <= one.total_ns and one.longest_cpu_ns > 0, one)
        stalled = self.stall_in_a_turn(client)
        self.assertLess(stalled.longest_cpu_ns, stalled.longest_ns)
        # It only ever grows, but for this. A busy machine may let the next turn wait as long.
        wait_for(lambda: self.reset(client).longest_ns < stalled.longest_ns)
        metrics = parse(self.ctl("stat", "--prometheus", "--reset"))
        kind, turns = metrics["npumem_loop_turn_seconds"]
        self.assertEqual(kind, "histogram")
        self.assertEqual(turns["_bucket", (("le", "+Inf"),)], turns["_count", ()])
        self.assertGreater(metrics["npumem_loop_longest_cpu_seconds"][1]["", ()], 0)
        self.assertGreaterEqual(metrics["npumem_loop_longest_wait_seconds"][1]["", ()], 0)
        self.assertGreaterEqual(json.loads(self.ctl("--json", "stat"))["loop"]["longest_wait_seconds"], 0)
        self.assertRegex(self.ctl("stat"), r"longest turn .* ms of processor time, [0-9.]+ ms asleep")

    def reset(self, client):
        """The loop's figures after the longest ones were forgotten."""
        self.assertEqual(client.call(stat=pb.StatRequest(reset=True)).status, pb.OK)
        return self.details(client).loop

    def stall_in_a_turn(self, client):
        """Lets the daemon stand still in the middle of a turn; the loop's figures after that. A daemon that is
        flooded is in one nearly always, and which instruction the signal finds it at, only the kernel knows."""
        busy = fork(os.getuid(), self.flood)
        try:
            wait_for(lambda: self.stalled_ns(client) > STALL_NS)
        finally:
            os.kill(busy, signal.SIGKILL)
            os.waitpid(busy, 0)
        return self.details(client).loop

    def stalled_ns(self, client):
        os.kill(self.daemon.process.pid, signal.SIGSTOP)
        time.sleep(STALL_NS * 1.25e-9)
        os.kill(self.daemon.process.pid, signal.SIGCONT)
        return self.details(client).loop.longest_ns

    def flood(self):
        """Asks without end, and reads what is answered."""
        requests = frame(pb.Request(id=1, info=pb.InfoRequest())) * 500
        sent = 0
        with self.daemon.client() as client:
            client.sock.setblocking(False)
            while True:
                readable, writable, _ = select.select([client.sock], [client.sock], [])
                with contextlib.suppress(BlockingIOError):
                    if readable and not client.sock.recv(1 << 20):
                        return
                    if writable:
                        sent = (sent + client.sock.send(requests[sent:])) % len(requests)

    def test_the_parser_refuses(self):
        good = "# HELP a b\n# TYPE a counter\na{x=\"1\"} 2\n"
        parse(good)
        for bad in (good + "a{x=\"1\"} 2\n", good + good, good + "b 1\n", good + "a{x=\"\n\"} 1\n", good[:-1],
                    good.replace("# TYPE a counter\n", "")):
            with self.assertRaises((AssertionError, TypeError)):
                parse(bad)

    def test_json_and_text(self):
        client = self.client()
        self.work(client)
        stat = json.loads(self.ctl("--json", "stat"))
        device = stat["device"]
        self.assertEqual(device["total"], sum(device[k] for k in ("data", "dummy", "padding", "empty", "free")))
        self.assertEqual(stat["activity"]["kernels"], 1)
        self.assertEqual([c["count"] for c in stat["calls"] if c["call"] == "alloc"], [2])
        self.assertEqual(len(stat["clients"]), 2)
        text = self.ctl("stat")
        self.assertEqual(sum(stat["loop"]["turn_buckets"]), stat["loop"]["turns"])
        self.assertGreater(stat["loop"]["longest_seconds"], 0)
        for word in ("fragmentation", "longest turn", "moved by DMA", "MEDIAN", "REFUSED", "alloc"):
            self.assertIn(word, text)


if __name__ == "__main__":
    unittest.main()
