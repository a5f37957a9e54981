"""Recording a daemon and replaying the record on others."""

import json
import os
import signal
import subprocess
import unittest

from support import NPUMEMD, Client, TestCase, pb, run_as, wait_for

CTL = os.path.join(os.environ["NPUMEM_BUILD"], "client", "ctl", "npumemctl")
ALICE, BOB = 12001, 12002


class Record(TestCase):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.daemon.directory, "record")

    def start(self):
        log = os.path.join(self.daemon.directory, "record.log")
        with open(log, "wb") as out:
            process = subprocess.Popen([CTL, "--socket", self.daemon.path, "record", self.file], stderr=out, stdout=out)
        self.addCleanup(process.kill)

        def text():
            with open(log) as file:
                return file.read()

        wait_for(lambda: "recording" in text() or process.poll() is not None)
        return process, text

    def stop(self, process):
        process.send_signal(signal.SIGINT)
        return process.wait(20)

    def replay(self, *options, file=None):
        done = subprocess.run([CTL, "--json", "replay", file or self.file, *options], capture_output=True, text=True,
                              timeout=40, env={**os.environ, "NPUMEMD": NPUMEMD})
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    def work(self, client, name="x"):
        x = client.alloc(name, dtype=pb.FX8, frac_bits=4)
        y = client.alloc("", dtype=pb.FX8, frac_bits=4)
        client.write(x.handle, bytes(range(128)))
        run = pb.RunRequest(kernel=pb.ELTWISE_ADD)
        for role, tensor in (("in1", x), ("in2", x), ("out", y)):
            run.operands.add(role=role, tensor=pb.Ref(handle=tensor.handle))
        submit = pb.SubmitRequest(operations=[pb.Operation(run=run), pb.Operation(read=pb.ReadRequest(tensor=pb.Ref(handle=y.handle)))])
        client.call(submit=submit)
        client.read(y.handle, 3, 5)
        assert client.ask(read=pb.ReadRequest(tensor=pb.Ref(handle=77))).status == pb.NOT_FOUND
        client.call(free=pb.FreeRequest(tensors=[pb.Ref(handle=y.handle)]))

    def record(self):
        process, text = self.start()
        first = self.daemon.client()
        self.work(first)
        second = self.daemon.client()
        self.work(second, "y")
        first.close()
        # Pages are where they are on each device.
        second.call(list=pb.ListRequest(limit=1))
        second.call(list=pb.ListRequest(after=1))
        self.assertEqual(self.stop(process), 0, text())
        second.close()

    def test_the_same_again_on_any_geometry(self):
        self.record()
        for options in ((), ("--npus", "8", "--npu-bytes", "8192"), ("--chip", "sg2380")):
            code, result, error = self.replay(*options)
            self.assertEqual((code, result["differences"], result["requests"]), (0, 0, 16), error)

    def test_a_difference_is_named(self):
        self.record()
        code, result, error = self.replay("--npus", "1", "--npu-bytes", "128")
        self.assertEqual(code, 1)
        self.assertGreater(result["differences"], 0)
        self.assertIn("request 1: answered INVALID, and OK in the record", error)
        with open(self.file, "rb") as file:
            record = file.read()
        # Another value is written: what is read differs, and the data in the end.
        self.assertEqual(record.count(bytes(range(128))), 2)
        with open(self.file, "wb") as file:
            file.write(record.replace(bytes(range(128)), bytes([9] + list(range(1, 128))), 1))
        code, result, error = self.replay()
        self.assertEqual(code, 1)
        self.assertEqual(result["differences"], 2, error)
        self.assertIn("request 4: the data or the counts", error)

    def test_bad_files(self):
        self.record()
        with open(self.file, "rb") as file:
            record = file.read()
        for bad, why in (
            (record[:-3], "cut off"), (record[:100], "cut off"), (b"", "no record"), (b"garbage" * 9, "no record"),
            (record.replace(b"record 1", b"record 2", 1), "version"), (record + b"x", "behind its end"),
            (record[:16] + b"\xff" * 64, "garbage"), (record[:16] + b"\x03\xff\xff\xff", "garbage"),
        ):
            with open(self.file, "wb") as file:
                file.write(bad)
            code, _, error = self.replay()
            self.assertEqual(code, 1)
            self.assertIn(why, error)
        self.assertEqual(self.replay(file="/nowhere")[0], 1)

    def test_who_may_and_when(self):
        client = self.client()
        start = pb.RecordRequest(action=pb.RECORD_START)
        self.assertEqual(client.ask(record=pb.RecordRequest(action=99)).status, pb.INVALID)
        x = client.alloc("x")
        self.assertEqual(client.ask(record=start).status, pb.FAILED_PRECONDITION)
        client.call(free=pb.FreeRequest(tensors=[pb.Ref(handle=x.handle)]))
        with self.daemon.client() as other:
            other.call(record=start)
            self.assertEqual(client.ask(record=start).status, pb.FAILED_PRECONDITION)
            self.assertEqual(client.ask(record=pb.RecordRequest(action=pb.RECORD_TAKE)).status, pb.FAILED_PRECONDITION)
        wait_for(lambda: client.ask(record=start).status == pb.OK)
        if os.getuid() == 0:
            def bob():
                with Client(self.daemon.path) as mine:
                    return [mine.ask(record=pb.RecordRequest(action=a)).status for a in (1, 2, 4)]
            self.assertEqual(run_as(BOB, bob), "[7, 9, 7]")

    def test_a_slow_recorder_loses(self):
        client, other = self.client(), self.client()
        client.call(record=pb.RecordRequest(action=pb.RECORD_START))
        x = other.alloc("x", (1, 64, 256, 256), dtype=pb.INT8)
        data = bytes(4 << 20)
        for _ in range(17):
            other.write(x.handle, data)
        recorded = client.call(record=pb.RecordRequest(action=pb.RECORD_TAKE)).recorded
        self.assertTrue(recorded.lost)
        self.assertIn("too slow", recorded.reason)

    @unittest.skipUnless(os.getuid() == 0, "needs other uids")
    def test_several_uids(self):
        process, text = self.start()

        def alice():
            with Client(self.daemon.path) as client:
                self.work(client)
                client.call(grant=pb.GrantRequest(tensor=pb.Ref(name="x"), uid=BOB, access=pb.ACCESS_READ))
            return "well"

        def bob():
            with Client(self.daemon.path) as client:
                self.work(client)
                client.call(read=pb.ReadRequest(tensor=pb.Ref(name=f"{ALICE}:x")))
                fill = pb.FillRequest(tensor=pb.Ref(name=f"{ALICE}:x"), integer=1)
                assert client.ask(fill=fill).status == pb.PERMISSION_DENIED
            return "well"

        self.assertEqual(run_as(ALICE, alice), "well")
        self.assertEqual(run_as(BOB, bob), "well")
        self.assertEqual(self.stop(process), 0, text())
        code, result, error = self.replay("--npus", "16")
        self.assertEqual((code, result["differences"]), (0, 0), error)


if __name__ == "__main__":
    unittest.main()
