"""Clients of a daemon that is killed, or ended, and started again: they see a pause."""

import contextlib
import os
import random
import select
import signal
import socket
import subprocess
import threading
import time
import unittest

import npumem
import numpy as np
from state import StateTestCase
from support import NPUMEMCTL, SECONDS, Client, HungUp, as_uid, frame, free, pb, wait_for

BUILD = os.environ["NPUMEM_BUILD"]
CLIENT = os.path.join(BUILD, "tests", "integration", "integration_resume_client")
ROUNDS = int(os.environ.get("NPUMEM_RESUME_ROUNDS", 8))
SEED = int(os.environ.get("NPUMEM_RESUME_SEED", random.randrange(1 << 30)))


class Case(StateTestCase):
    options = ("--npus", "8", "--npu-bytes", "2097152")

    def setUp(self):
        super().setUp()
        self.rng = random.Random(SEED)

    def come_and_go(self, seconds=0.15):
        """Some rounds of it, at random moments."""
        for _ in range(ROUNDS):
            time.sleep(self.rng.uniform(0.002, seconds))
            self.restart(terminate=self.rng.random() < 0.3)

    def connect(self, **options):
        dev = npumem.connect(self.daemon.path, timeout=SECONDS, **options)
        self.addCleanup(dev.close)
        return dev


class Library(Case):
    def test_every_answer_is_as_from_a_daemon_that_lives(self):
        clients = [
            subprocess.Popen(
                [CLIENT, self.daemon.path, str(SEED % 1000 + i)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
            for i in range(2)
        ]
        for client in clients:
            self.addCleanup(client.__exit__, None, None, None)
            self.addCleanup(client.kill)
        for client in clients:
            self.assertEqual(client.stdout.readline(), "ready\n")
        self.come_and_go()
        for client in clients:
            out, _ = client.communicate("", timeout=2 * SECONDS)
            self.assertEqual(client.returncode, 0, f"seed {SEED}: {out}")
            self.assertRegex(out, r"^\d+ answers, \d+ waited, \d+ aborted, \d+ events\n$")

    def test_events_are_followed(self):
        events = subprocess.Popen(
            [NPUMEMCTL, "--socket", self.daemon.path, "events", "--kind", "allocated"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.addCleanup(events.stdout.close)
        self.addCleanup(events.wait)
        self.addCleanup(events.kill)

        def is_told(name):
            """Of one more; told only where it has subscribed by then."""
            with self.daemon.client() as client:
                client.alloc(name)
                client.call(**free(name))
            while select.select([events.stdout], [], [], 0.05)[0]:
                if name in os.read(events.stdout.fileno(), 1 << 16).decode():
                    return True
            return False

        for name in ("before", "after", "later"):
            wait_for(lambda: is_told(name))  # pylint: disable=cell-var-from-loop
            self.restart(terminate=name == "after")

    def test_a_private_daemon_ends_with_its_connection(self):
        with npumem.spawn("--npus", "2", "--npu-bytes", "65536") as dev:
            os.kill(dev.info.pid, signal.SIGKILL)
            with self.assertRaises(npumem.Unavailable):
                dev.stat()


class Python(Case):
    def test_every_answer_is_as_from_a_daemon_that_lives(self):
        dev = self.connect()
        x = dev.alloc(shape=(1, 8, 3, 50), dtype="int16")
        y = dev.alloc("y", shape=x.shape, dtype="int16")
        shared = dev.empty(x.shape, "int16")
        handles = {x.handle, y.handle}
        over = threading.Event()
        problems = []

        def others():
            try:
                self.come_and_go()
            except BaseException as problem:  # pylint: disable=broad-except
                problems.append(problem)
            over.set()

        thread = threading.Thread(target=others)
        thread.start()
        self.addCleanup(thread.join)
        n = 0
        while not over.is_set() or n < 50:
            n += 1
            array = np.full(x.shape, n % 30000, np.int16)
            shared[:] = array + 1
            with dev.submit() as batch:
                batch.write(x, array)
                batch.copy(y, x)
                got = batch.read(y)
            np.testing.assert_array_equal(got.value, array)
            y.write(shared)
            np.testing.assert_array_equal(y.read(), array + 1)
            fills = [dev.send("fill", pb.FillRequest(tensor=x.ref, integer=i), lambda answer: answer) for i in range(20)]
            self.assertEqual(set(x.read().flat), {19})
            self.assertTrue(all(fill.done() for fill in fills))
            z = dev.alloc(shape=(1, 1, 1, 7), dtype="int8")
            self.assertNotIn(z.handle, handles)
            handles.add(z.handle)
            z.free()
            with self.assertRaises(npumem.Refused):
                z.read()
        thread.join()
        self.assertEqual(problems, [], f"seed {SEED}")
        self.assertEqual([t.handle for t in dev.tensors()], [x.handle, y.handle])

    def test_events_go_on(self):
        dev = self.connect()
        dev.subscribe("allocated")
        for name in ("before", "after"):
            with self.daemon.client() as client:
                client.alloc(name)
            self.assertEqual(next(dev.events(SECONDS)).name, name)
            self.restart()
            dev.stat()

    def test_an_allocation_that_waits(self):
        dev = self.connect()
        first = dev.alloc("first", shape=(1, 1, 1, 1600000), dtype="int8", start_npu=0)
        waiting = self.connect()
        thread_result = []
        thread = threading.Thread(
            target=lambda: thread_result.append(
                waiting.alloc("second", shape=(1, 1, 1, 1600000), dtype="int8", start_npu=0, wait=SECONDS)
            )
        )
        thread.start()
        for terminate in (False, True):
            time.sleep(0.05)
            self.restart(terminate=terminate)
            self.assertEqual([t.name for t in dev.tensors()], ["first"])
        first.free()
        thread.join()
        self.assertEqual(thread_result[0].name, "second")


class Front(Client):
    """The daemon's side of a connection."""

    received = pb.Request


class Ends(Case):
    def refused(self, dev, words):
        with self.assertRaises(npumem.Unavailable) as caught:
            dev.stat()
        self.assertIn(words, caught.exception.message)
        with self.assertRaises(npumem.Unavailable):
            dev.stat()

    def test_a_daemon_that_does_not_have_the_session(self):
        dev = self.connect()
        dev.alloc(shape=(1, 1, 1, 1), dtype="int8")
        self.kill()
        os.rename(self.state, self.state + ".gone")
        self.start()
        self.refused(dev, "the daemon was restarted without this session")

    def test_a_session_is_not_taken_twice(self):
        dev = self.connect(resume=2.0)
        dev.stat()
        self.restart()
        with Client(self.daemon.path) as thief:
            thief.call(resume=pb.ResumeRequest(token=dev._wire._session.token))
            self.refused(dev, "has a connection that has not ended")
        # It has ended with the other's connection, as soon as the daemon has seen that.
        with Client(self.daemon.path) as other:
            token = dev._wire._session.token
            wait_for(lambda: other.ask(resume=pb.ResumeRequest(token=token)).status == pb.NOT_FOUND)
        self.restart()
        self.assertIn("0 sessions", self.output())

    def test_who_does_not_want_it(self):
        dev = self.connect(resume=0)
        self.restart()
        self.refused(dev, "hung up")

    def refuse_the_first_stat(self, listening):
        """In front of the daemon: the first answer to a stat is UNAVAILABLE, and the daemon stays."""
        with listening, self.daemon.client() as behind, Front(sock=listening.accept()[0]) as before:
            n = 0
            with contextlib.suppress(HungUp, ConnectionError):
                while True:
                    request = before.receive()
                    behind.sock.sendall(frame(request))
                    answer = behind.receive()
                    if request.HasField("stat") and not n:
                        n += 1
                        answer = pb.Response(id=request.id, status=pb.UNAVAILABLE, message="not now")
                    before.sock.sendall(frame(answer))

    def test_what_is_unavailable_from_a_daemon_that_stays(self):
        path = os.path.join(self.directory, "front.sock")
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(path)
        listening.listen()
        front = threading.Thread(target=self.refuse_the_first_stat, args=(listening,))
        front.start()
        self.addCleanup(front.join)
        dev = npumem.connect(path, timeout=SECONDS)
        self.addCleanup(dev.close)
        with self.assertRaises(npumem.Unavailable) as caught:
            dev.stat()
        self.assertEqual(caught.exception.message, "not now")
        self.assertEqual(dev.stat().tensors, 0)

    def test_patience(self):
        dev = self.connect(resume=0.2)
        dev.stat()
        self.kill()
        before = time.monotonic()
        self.refused(dev, "continues the session")
        self.assertLess(time.monotonic() - before, SECONDS / 2)

    def test_a_deadline(self):
        dev = self.connect()
        x = dev.alloc("x", shape=(1, 1, 1, 8), dtype="int8")
        self.kill()
        dev.timeout = 0.1
        with self.assertRaises(npumem.DeadlineExceeded):
            x.fill(1)
        self.start()
        dev.timeout = SECONDS
        x.fill(2)
        self.assertEqual(set(x.read().flat), {2})

    @unittest.skipIf(os.geteuid(), "root alone can be other uids")
    def test_who_else_listens_there_is_told_nothing(self):
        dev = self.connect(resume=2.0)
        dev.stat()
        self.kill()
        os.unlink(self.daemon.path)
        os.chmod(self.directory, 0o777)
        with as_uid(1001):
            listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            listening.bind(self.daemon.path)
            listening.listen()
        self.refused(dev, "who listens there is not uid")
        listening.settimeout(SECONDS)
        sock, _ = listening.accept()
        self.assertEqual(sock.recv(100), b"")
        sock.close()
        listening.close()


if __name__ == "__main__":
    unittest.main()
