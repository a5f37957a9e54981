"""The Python package against the daemon, and against peers that are none: what it asks, what it makes of the answers."""

import contextlib
import gc
import itertools
import os
import pickle
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import npumem
import numpy as np
from npumem import Status, pb
from support import SECONDS, Endless, TestCase, frame, is_alive, run_as, wait_for


class Case(TestCase):
    options = ("--npus", "16", "--npu-bytes", "1048576")

    def setUp(self):
        super().setUp()
        self.dev = self.connect()

    def connect(self, **options):
        return self.stack.enter_context(npumem.connect(self.daemon.path, **{"timeout": SECONDS, **options}))

    @contextlib.contextmanager
    def refused(self, status, *words):
        with self.assertRaises(npumem.Refused) as caught:
            yield caught
        self.assertEqual(caught.exception.status, status, caught.exception)
        self.assertNotIsInstance(caught.exception, (ValueError, TypeError))
        for word in words:
            self.assertIn(word, caught.exception.message)


class Calls(Case):
    def two(self, shape=(1, 8, 4, 4)):
        x = self.dev.alloc("x", np.full(shape, -3), dtype="fx8", frac_bits=4)
        return x, self.dev.alloc("y", shape=shape, dtype="fx8", frac_bits=4)

    def test_a_refusal(self):
        x, _ = self.two()
        with self.refused(Status.ALREADY_EXISTS, "x") as caught:
            self.dev.alloc("x", shape=(1, 1, 1, 1), dtype="int8")
        self.assertEqual(caught.exception.fields, {"tensor": "x", "tensor_index": 0})
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((again.status, str(again), again.fields), (6, str(caught.exception), caught.exception.fields))
        with self.refused(Status.FAILED_PRECONDITION, "never written"):
            self.dev.run("relu", in_="y", out=x, relu="gen")
        with self.refused(Status.RESOURCE_EXHAUSTED):
            self.dev.alloc_many({name: npumem.spec((1, 16, 1024, 1024), "int8") for name in "ab"})
        x.seal()
        self.assertTrue(x.message.sealed)
        with self.refused(Status.FAILED_PRECONDITION, "sealed"):
            x.fill(1)
        x.free()
        with self.refused(Status.NOT_FOUND):
            x.read()
        self.assertEqual([t.name for t in self.dev.tensors()], ["y"])

    def test_views(self):
        array = np.arange(2 * 8 * 4 * 5, dtype=np.int16).reshape(2, 8, 4, 5)
        x = self.dev.alloc("x", array)
        np.testing.assert_array_equal(x[1:, 2:6].read(), array[1:, 2:6])
        np.testing.assert_array_equal(x[:, :, 1:-1, -2:].read(), array[:, :, 1:-1, -2:])
        tail = x.view(np.s_[:, 4:], "tail")
        tail.fill(7)
        self.assertEqual(set(x.read()[:, 4:].flat), {7})
        np.testing.assert_array_equal(x.read()[:, :4], array[:, :4])
        self.assertEqual(x.reshape((2, 8, 2, 10)).shape, (2, 8, 2, 10))
        self.assertEqual((self.dev.open("tail").shape, tail.message.base_name), ((2, 4, 4, 5), "x"))
        with self.refused(Status.INVALID):
            x[:, 3:3]
        x.free()
        self.assertEqual(self.dev.tensors(), [])

    def test_a_batch(self):
        x, y = self.two()
        with self.dev.submit() as batch:
            batch.write(x, np.full(x.shape, 5))
            batch.run("eltwise_add", in1=x, in2="x", out=y)
            first = batch.read(y)
            with self.assertRaises(ValueError):
                first.value
            batch.fill("x", 100)
            batch.run("eltwise_add", in1=x, in2=x, out=y)
            second = batch.read(y, self.dev.empty(y.shape, "fx8"))
            third = batch.read(y, real=True)
            batch.copy(y, x)
            self.assertEqual(len(batch), 8)
        self.assertEqual([set(one.value.flat) for one in (first, second, third)], [{10}, {127}, {127 / 16}])
        self.assertEqual([done.saturated for done in batch.done], [0, 0, 0, 0, 128, 0, 0, 0])
        self.assertEqual(set(y.read().flat), {100})

    def test_a_batch_that_is_refused_on_its_way(self):
        x, y = self.two()
        with self.refused(Status.FAILED_PRECONDITION) as caught, self.dev.submit() as batch:
            batch.fill(x, 1)
            got = batch.read(x)
            batch.run("relu", in_=y, out=x, relu="gen")
            never = batch.read(y)
        self.assertEqual(len(caught.exception.done), 2)
        self.assertEqual(set(got.value.flat), {1})
        with self.assertRaises(ValueError):
            never.value
        with self.refused(Status.NOT_FOUND), self.dev.submit() as batch:
            batch.fill(x, 2)
            batch.fill("nobody", 2)
        with self.assertRaises(ZeroDivisionError), self.dev.submit() as batch:
            batch.fill(x, 2)
            raise ZeroDivisionError
        self.assertEqual(set(x.read().flat), {1})
        with self.assertRaises(ValueError):
            batch.result()

    def test_a_parallel_group(self):
        x, y = self.two()
        z = self.dev.alloc("z", np.full(x.shape, 9), dtype="fx8", frac_bits=4)
        w = self.dev.alloc("w", shape=x.shape, dtype="fx8", frac_bits=4)
        with self.dev.submit(wait=False) as batch:
            with batch.parallel():
                batch.run("relu", in_=x, out=y, relu="none")
                batch.copy(w, z)
            batch.fill(x, 1)
            with batch.parallel():
                batch.fill(z, 8)
                batch.run("relu", in_=x, out=y, relu="none")
                with self.assertRaises(ValueError), batch.parallel():
                    pass
        self.assertEqual(len(batch.result()), 5)
        self.assertEqual(len(batch.result()), 5)
        self.assertEqual([set(t.read().flat) for t in (x, y, z, w)], [{1}, {1}, {8}, {9}])
        with self.refused(Status.ABORTED, "operations 0", "and 1"), self.dev.submit() as batch:
            with batch.parallel():
                batch.run("relu", in_=x, out=y, relu="none")
                batch.fill(y, 8)

    def test_many_at_once(self):
        x, _ = self.two()
        sent = [x.fill_async(i % 100) for i in range(20000)]
        self.assertEqual(set(x.read().flat), {99})
        self.assertTrue(all(one.done() for one in sent))
        self.assertEqual(sent[-1].result(), sent[-1].result())
        # Answers of more than the socket holds, of which none is taken before all is asked.
        big = self.dev.alloc("big", np.ones((1, 16, 256, 512), np.int8))
        arrays = [big.read_async() for _ in range(12)] + [big.write_async(np.ones(big.shape, np.int8)) for _ in range(12)]
        self.assertEqual([one.result().sum() for one in arrays[:12]], [big.read().sum()] * 12)
        self.assertEqual([one.result().warning for one in arrays[12:]], [""] * 12)
        with self.refused(Status.NOT_FOUND):
            self.dev.copy_async("x", "nobody").result()

    def test_many_tensors(self):
        made = self.dev.alloc_many({f"t{i}": npumem.spec((1, 1, 1, 4), "int8") for i in range(256)})
        more = self.dev.alloc_many({f"u{i}": npumem.spec((1, 1, 1, 4), "int8") for i in range(100)})
        self.assertEqual({t.name for t in self.dev.tensors()}, {*made, *more})
        with self.refused(Status.ALREADY_EXISTS):
            self.dev.alloc_many({"new": npumem.spec((1, 1, 1, 4), "int8"), "t7": npumem.spec((1, 1, 1, 4), "int8")})
        self.dev.free(*made.values())
        self.dev.free(*more)
        self.assertEqual(self.dev.tensors(), [])

    def test_the_map(self):
        x, _ = self.two()
        z = self.dev.alloc("z", shape=(1, 16, 4, 4), dtype="int8", address=4096)
        x[:, :4]
        regions = self.dev.map()
        self.assertEqual([r.tensor and r.tensor.name for r in regions], ["x", "y", None, "z", None])
        self.assertEqual(sum(r.n_bytes for r in regions), 1048576)
        self.assertEqual((regions[3].offset, regions[3].n_bytes), (4096, z.place.bytes_per_npu))
        self.dev.free("x", "y", z)
        self.assertEqual([tuple(r) for r in self.dev.map()], [(0, 1048576, None)])

    def test_the_device(self):
        x, _ = self.two()
        stat = self.dev.stat(details=True)
        self.assertEqual(stat.total, stat.data + stat.dummy + stat.padding + stat.empty + stat.free)
        self.assertTrue(stat.HasField("activity"))
        self.assertEqual(list(self.dev.dump(x.place.npu, x.place.offset, 4)), [253] * 4)
        self.dev.free("x")
        self.assertEqual([move.name for move in self.dev.compact(dry_run=True).moves], ["y"])
        self.assertEqual(self.dev.compact().largest_free_after, self.dev.stat().largest_free)
        numeric = pb.NumericRequest(add=pb.NumericPair(x=pb.NumericFormat(integer_bits=4, frac_bits=3), y=pb.NumericFormat()))
        self.assertEqual(self.dev.ask("numeric", numeric).numeric.result.format.frac_bits, 3)

    def test_events(self):
        other = self.connect()
        self.dev.subscribe("allocated", "freed")
        with other.alloc("x", shape=(1, 1, 1, 4), dtype="int8"):
            pass
        kinds = [(event.kind, event.name) for event in itertools.islice(self.dev.events(SECONDS), 2)]
        self.assertEqual(kinds, [("allocated", "x"), ("freed", "x")])
        self.dev.subscribe()
        other.alloc("x", shape=(1, 1, 1, 4), dtype="int8")
        self.assertEqual(list(self.dev.events(0.05)), [])
        with self.refused(Status.INVALID):
            self.dev.subscribe("wonders")
        self.assertIn("x", self.dev.open("x").name)

    def test_rename(self):
        x = self.dev.alloc("x", np.full((1, 1, 1, 4), 3, np.int8))
        self.dev.alloc("y", np.full((1, 1, 1, 4), 3, np.int8))
        with self.refused(Status.ALREADY_EXISTS):
            x.rename("y")
        x.rename("z")
        self.assertEqual((x.name, self.dev.open("z").handle), ("z", x.handle))
        with self.refused(Status.NOT_FOUND):
            self.dev.open("x")

    @unittest.skipIf(os.geteuid(), "needs root")
    def test_grants(self):
        os.chmod(self.daemon.directory, 0o755)
        x = self.dev.alloc("x", np.full((1, 1, 1, 4), 3, np.int8))
        x.grant("nobody", "read")
        self.assertEqual([(g.uid, g.access) for g in x.message.grants], [(65534, pb.ACCESS_READ)])
        x.grant(12001, "write")

        def writes():
            with npumem.connect(self.daemon.path) as dev:
                return list(dev.open("0:x").read().flat), dev.open("0:x").fill(9).macs

        self.assertEqual(run_as(12001, writes), "([3, 3, 3, 3], 0)")
        x.grant(12001, "none")

        def looks():
            with npumem.connect(self.daemon.path) as dev, self.refused(Status.NOT_FOUND):
                dev.open("0:x")

        self.assertEqual(run_as(12001, looks), "None")
        with self.assertRaises(ValueError):
            x.grant(12001, "own")
        with self.assertRaises(KeyError):
            x.grant("no such user", "read")


class Time(Case):
    options = ("--npu-bytes", "4194304", "--isa", "scalar")

    def test_a_call_that_takes_too_long(self):
        Endless(self.client())
        endless = {"in_": "in", "weights": "weights", "out": "out"}
        self.dev.timeout = 0.2
        begun = time.monotonic()
        with self.assertRaises(TimeoutError) as caught:
            self.dev.run("conv2d", **endless)
        self.assertIsInstance(caught.exception, npumem.DeadlineExceeded)
        self.assertLess(time.monotonic() - begun, SECONDS)
        self.dev.timeout = SECONDS
        self.dev.open("out").fill(1)  # which waits for the run: it was taken back
        pending = self.dev.run_async("conv2d", **endless)
        with self.assertRaises(npumem.DeadlineExceeded):
            pending.result(0.05)
        self.assertFalse(pending.done())
        pending.cancel()
        with self.refused(Status.CANCELLED):
            pending.result()
        pending.cancel()

    def test_waiting_for_room(self):
        all_of_it = self.dev.alloc("all", shape=(1, 64, 2048, 2048), dtype="int8")
        with self.refused(Status.DEADLINE_EXCEEDED) as caught:
            self.dev.alloc("x", shape=(1, 64, 64, 64), dtype="int8", wait=0.1)
        self.assertIsInstance(caught.exception, TimeoutError)
        other = self.connect()
        later = threading.Timer(0.1, lambda: other.free("all"))
        later.start()
        self.addCleanup(later.join)
        self.assertEqual(self.dev.alloc("x", shape=(1, 64, 64, 64), dtype="int8", wait=SECONDS).name, "x")
        with self.refused(Status.NOT_FOUND):
            all_of_it.show()

    def test_an_interrupt(self):
        """The call is taken back, and the connection is good."""
        Endless(self.client())
        main, looker = threading.main_thread().ident, self.client()

        def interrupt():
            wait_for(lambda: looker.call(stat=pb.StatRequest(details=True)).stat.running)
            signal.pthread_kill(main, signal.SIGINT)

        later = threading.Thread(target=interrupt)
        later.start()
        with self.assertRaises(KeyboardInterrupt):
            self.dev.run("conv2d", in_="in", weights="weights", out="out")
        later.join()
        self.dev.open("out").fill(1)

    def test_a_daemon_that_stands_still(self):
        x = self.dev.alloc("x", shape=(1, 64, 512, 512), dtype="int8")
        self.dev.timeout = 0.3
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            with self.assertRaises(npumem.DeadlineExceeded):
                self.dev.stat()
            with self.assertRaises(npumem.DeadlineExceeded):
                x.write(np.ones(x.shape, np.int8))
            begun = time.monotonic()
            with self.assertRaises(npumem.DeadlineExceeded):
                npumem.connect(self.daemon.path, connect_timeout=0.3)
            self.assertLess(time.monotonic() - begun, SECONDS)
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)
        self.dev.timeout = SECONDS
        x.write(np.full(x.shape, 3, np.int8))
        self.assertEqual(set(x.read().flat), {3})


class Ends(Case):
    def test_a_daemon_that_goes(self):
        x = self.dev.alloc("x", shape=(1, 1, 1, 4), dtype="int8")
        array = self.dev.empty((1, 1, 1, 4), "int8")
        pending = x.read_async()
        self.daemon.end(signal.SIGKILL)
        wait_for(pending.done)
        for call in (self.dev.stat, lambda: x.read(array), lambda: self.dev.empty((1, 1), "int8")):
            with self.assertRaises(ConnectionError) as caught:
                call()
            self.assertIsInstance(caught.exception, npumem.Unavailable)
            self.assertEqual(caught.exception.status, Status.UNAVAILABLE)
        array[...] = 3
        self.dev.close()
        self.dev.close()
        with self.assertRaises(npumem.Unavailable):
            npumem.connect(self.daemon.path)
        with self.assertRaisesRegex(npumem.Unavailable, "No such file"):
            npumem.connect("unix:/nonexistent/npumem.sock")
        with self.assertRaisesRegex(npumem.Unavailable, "too long"):
            npumem.connect("/" + "x" * 200)

    def test_closing_answers_what_is_asked(self):
        pending = self.dev.copy_async("x", "y")
        self.dev.close()
        with self.assertRaises(npumem.Refused):
            pending.result()
        with self.assertRaisesRegex(npumem.Unavailable, "closed"):
            self.dev.stat()

    def test_a_daemon_that_is_told_to_go(self):
        self.dev.shutdown()
        self.assertEqual(self.daemon.process.wait(SECONDS), 0)
        with self.assertRaises(npumem.Unavailable):
            self.dev.stat()

    def test_the_usual_places(self):
        for name, value in (("NPUMEM_SOCKET", self.daemon.path), ("XDG_RUNTIME_DIR", self.daemon.directory)):
            kept = {key: os.environ.pop(key, None) for key in ("NPUMEM_SOCKET", "XDG_RUNTIME_DIR")}
            try:
                os.environ[name] = value
                with npumem.connect() as dev:
                    self.assertEqual(dev.info.pid, self.daemon.process.pid)
            finally:
                os.environ.pop(name)
                os.environ.update({key: value for key, value in kept.items() if value is not None})


class Spawn(unittest.TestCase):
    def test_a_private_daemon(self):
        fds = len(os.listdir("/proc/self/fd"))
        with npumem.spawn("--npus", "4", "--npu-bytes", "4096") as dev:
            self.assertEqual((dev.info.n_npus, dev.info.npu_bytes), (4, 4096))
            with open(f"/proc/{dev.info.pid}/cmdline", "rb") as line:
                program = line.read().split(b"\0")[0].decode()
            if not {"NPUMEM_CONFINED", "NPUMEM_VALGRIND"} & set(os.environ):  # NPUMEMD starts another then
                self.assertEqual(program, os.environ["NPUMEMD"])
            pid = dev.info.pid
        with self.assertRaises(ProcessLookupError):
            os.kill(pid, 0)
        with npumem.connect("spawn:--npus 8 --npu-bytes 4096") as dev:
            self.assertEqual(dev.info.n_npus, 8)
        gc.collect()
        self.assertEqual(len(os.listdir("/proc/self/fd")), fds)

    def test_one_that_does_not_start(self):
        for arguments, words in (
            ({"program": "/nonexistent/npumemd"}, "/nonexistent/npumemd: No such file"),
            ({"program": "/bin/false"}, "did not start"),
        ):
            with self.assertRaisesRegex(npumem.Unavailable, words):
                npumem.spawn(**arguments)
        with self.assertRaisesRegex(npumem.Unavailable, "did not start: .*--npus"):
            npumem.spawn("--npus", "many")
        with self.assertRaises(npumem.DeadlineExceeded):
            npumem.connect("spawn:", connect_timeout=1e-9)

    def test_the_build_folders_own(self):
        """Where nothing is installed and nobody says where it is."""
        build, program = os.environ["NPUMEM_BUILD"], "import npumem; print(npumem.spawn().info.n_npus)"
        for command in (
            ["/usr/bin/python3", "-B", "-c", program],
            [os.path.join(build, "client/ctl/npumemctl"), "--spawn", "info"],
        ):
            environment = {"PYTHONPATH": os.path.join(build, "python")}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("64", done.stdout)

    def test_it_ends_with_its_program(self):
        with tempfile.TemporaryFile() as out:
            program = "import npumem, os; dev = npumem.spawn(); print(dev.info.pid, flush=True); os._exit(0)"
            subprocess.run(["/usr/bin/python3", "-B", "-c", program], stdout=out, check=True, timeout=SECONDS)
            out.seek(0)
            pid = int(out.read())
        wait_for(lambda: not is_alive(pid))


class Peer(unittest.TestCase):
    """Peers that are no daemon, or a bad one."""

    def peer(self, *answers, hangs_up=True):
        """Connects to one that reads the first request and answers with these bytes."""
        directory = tempfile.TemporaryDirectory(prefix="npumem-test-")
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, "socket")
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(listening.close)
        listening.bind(path)
        listening.listen()

        def serve():
            sock, _ = listening.accept()
            with sock:
                sock.recv(4096)
                for answer in answers:
                    sock.sendall(answer)
                    time.sleep(0.002)
                while not hangs_up and sock.recv(4096):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)
        return lambda: npumem.connect(path, timeout=SECONDS, connect_timeout=SECONDS)

    INFO = frame(pb.Response(id=1, info=pb.Info(version="x", n_npus=4, rounding=pb.UP)))

    def test_a_byte_at_a_time(self):
        connect = self.peer(*(self.INFO[i : i + 1] for i in range(len(self.INFO))))
        with connect() as dev:
            self.assertEqual((dev.info.version, dev.rounding), ("x", "up"))

    def test_answers_that_nobody_asked_for(self):
        event = frame(pb.Response(event=pb.Event(kind="freed", name="x")))
        with self.peer(frame(pb.Response(id=77)) + event + self.INFO, hangs_up=False)() as dev:
            self.assertEqual([one.name for one in dev.events(0.01)], ["x"])

    def test_events_without_end_are_not_kept(self):
        events = b"".join(frame(pb.Response(event=pb.Event(kind="freed", bytes=i))) for i in range(10000))
        with self.peer(self.INFO + events, hangs_up=False)() as dev:
            wait_for(lambda: (dev._wire.look() or len(dev._wire.events)) == 4096)
            wait_for(lambda: (dev._wire.look() or dev._wire.events[-1].bytes) == 9999)
            got = list(dev.events(0))
        self.assertEqual((len(got), got[0].lost, got[0].bytes, got[1].lost), (4096, 10000 - 4096, 10000 - 4096, 0))

    def test_bytes_that_are_no_answer(self):
        for answer, words in (
            (b"", "hung up"),
            (self.INFO[:-1], "hung up"),
            (b"\xff" * 10, "broke"),
            (b"\xff" * 9 + b"\x01", "broke"),
            (b"\x81\x80\x80\x08", "broke"),
            (b"\x05\xff\xff\xff\xff\xff", "broke"),
            (frame(pb.Response(status=pb.RESOURCE_EXHAUSTED, message="too many sessions")), "too many sessions"),
        ):
            with self.assertRaisesRegex(npumem.Unavailable, words):
                self.peer(answer)()

    def test_a_status_of_later_versions(self):
        with self.assertRaises(npumem.Refused) as caught:
            self.peer(frame(pb.Response(id=1, status=99, message="strange", fields=[pb.Field(key="n", number=3)])))()
        self.assertEqual((caught.exception.status, caught.exception.fields), (99, {"n": 3}))


if __name__ == "__main__":
    unittest.main()
