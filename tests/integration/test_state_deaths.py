"""A request that ends the daemon: a client that sends it again to each new daemon is answered ABORTED after the second
death, and everything else goes on. npumemd_dying ends itself in a fill with 113."""

import os
import signal
import subprocess
import threading
import time
import unittest

import npumem
from state import StateTestCase, token_of
from support import SECONDS, HungUp, alloc, copy, fill, pb, read, run, submit

DYING = 113
LARGE = (1, 64, 64, 64)  # a fill of it runs on a thread


class DeathsTestCase(StateTestCase):
    options = ("--npus", "8", "--npu-bytes", "131072")
    program = (os.environ["NPUMEMD_DYING"],)

    def await_death(self):
        self.assertEqual(self.daemon.process.wait(SECONDS), -signal.SIGABRT, self.output())
        self.daemon.process.returncode = 0  # as this is the end that the test wants
        self.stop()

    def ask_to_death(self, client, call):
        """Sends a call again with its id; the daemon dies of it, and another one starts."""
        client.post(dict(call, id=self.number, again=True))
        with self.assertRaises((HungUp, ConnectionResetError)):
            client.receive()
        self.await_death()
        self.start()
        return self.resume(self.token)

    def begin(self, shape):
        client = self.client()
        self.token = token_of(client)
        client.alloc("a", shape)
        client.alloc("b", shape)
        client.call(**fill("a", 1))
        client.call(**fill("b", 2))
        self.number = client.id + 1
        return client

    def check_aborted(self, answer):
        self.refused(answer, pb.ABORTED, "died 2 times", "not run again")
        self.assertEqual({f.key: f.number for f in answer.fields}["deaths"], 2)


class Deaths(DeathsTestCase):
    def run_to_the_end(self, call, shape):
        client = self.begin(shape)
        for _ in range(2):
            client = self.ask_to_death(client, call)
        log = self.output()
        self.assertRegex(log, rf"ran when the daemon died: \w+ {self.number} of session \d+ of uid 0, death 2")
        for _ in range(3):
            (answer,) = client.pipeline(dict(call, id=self.number, again=True))
            self.check_aborted(answer)
        return client

    def check_others(self, client):
        self.assertEqual(client.pipeline(read("b", 0, 4))[0].done.data, b"\2" * 4)
        self.refused(client.pipeline(read("a", 0, 4))[0], pb.DATA_LOST)
        client.call(**fill("a", 3))
        self.assertEqual(client.pipeline(read("a", 0, 4))[0].done.data, b"\3" * 4)
        # The client has its answer: the id is forgotten, and a new request may end the daemon as well.
        client.call(info=pb.InfoRequest(), answered_below=client.id)

    def test_on_the_loop(self):
        self.check_others(self.run_to_the_end(fill("a", DYING), (1, 8, 1, 16)))

    def test_on_a_thread(self):
        self.check_others(self.run_to_the_end(fill("a", DYING), LARGE))

    def test_in_a_list(self):
        for shape in ((1, 8, 1, 16), LARGE):
            call = submit(fill("b", 2), fill("a", DYING), fill("b", 4))
            self.check_others(self.run_to_the_end(call, shape))
            self.stop()
            self.state += "."
            self.start()

    def test_the_count_outlives_daemons_that_do_not_run_it(self):
        client = self.begin((1, 8, 1, 16))
        client = self.ask_to_death(client, fill("a", DYING))
        for terminate in (False, True):
            self.restart(terminate=terminate)
            client = self.resume(self.token)
            self.assertEqual(client.pipeline(read("b", 0, 4))[0].status, pb.OK)
        client = self.ask_to_death(client, fill("a", DYING))
        (answer,) = client.pipeline(dict(fill("a", DYING), id=self.number, again=True))
        self.check_aborted(answer)

    def test_requests_that_wait_are_not_counted(self):
        client = self.begin(LARGE)
        waiting = self.number + 1
        for _ in range(2):
            client.post(
                dict(fill("a", DYING), id=self.number, again=True), dict(copy("b", "a"), id=waiting, again=True)
            )
            with self.assertRaises((HungUp, ConnectionResetError)):
                client.receive()
            self.await_death()
            self.start()
            client = self.resume(self.token)
        first, second = client.pipeline(
            dict(fill("a", DYING), id=self.number, again=True), dict(copy("b", "a"), id=waiting, again=True)
        )
        self.check_aborted(first)
        self.refused(second, pb.DATA_LOST)

    def test_beside_a_crowd(self):
        """Of 60 users each one's kernel has begun and gave way: these do not take the notes of those that run."""
        self.stop()
        self.state += "."
        self.options = ("--npus", "64", "--npu-bytes", str(4 << 20))
        self.start()
        client = self.begin(LARGE)
        for death in range(2):
            crowd = [self.client(20000 + i) for i in range(60)]
            for one in crowd:
                if not death:
                    for name, shape in (("in", (1, 64, 128, 128)), ("w", (64, 16, 15, 15)), ("out", (1, 16, 114, 114))):
                        one.call(**alloc(name, shape, pb.FX8, frac_bits=4, start_npu=0))
                    one.call(**fill("in", 1))
                    one.call(**fill("w", 1))
                one.post(*[run(pb.CONV2D, in_="in", weights="w", out="out")] * 20)
            time.sleep(0.5)
            client = self.ask_to_death(client, fill("a", DYING))
            for one in crowd:
                one.close()
        self.check_aborted(client.pipeline(dict(fill("a", DYING), id=self.number, again=True))[0])

    def test_after_a_loss_of_power_nothing_is_counted(self):
        self.stop()
        boots = ["%032x" % i for i in range(1, 5)]
        self.start("--durable", "--boot-id", boots[0])
        client = self.begin((1, 8, 1, 16))
        for boot in boots[1:]:
            client.post(dict(fill("a", DYING), id=self.number, again=True))
            with self.assertRaises((HungUp, ConnectionResetError)):
                client.receive()
            self.await_death()
            self.start("--durable", "--boot-id", boot)
            client = self.resume(self.token)
        self.assertNotIn("ran when the daemon died", self.output())


class Library(DeathsTestCase):
    def start_whenever_it_dies(self):
        """Not by self.start(), which takes a daemon that dies at once for one that does not start."""
        self.await_death()
        while not self.is_over.is_set():
            self.n_deaths += 1
            with subprocess.Popen(
                [*self.program, "--socket", self.daemon.path, "--state-dir", self.state, *self.options],
                stderr=subprocess.DEVNULL,
            ) as process:
                while process.poll() is None and not self.is_over.is_set():
                    time.sleep(0.01)
                process.terminate()

    def test_it_goes_on_by_itself(self):
        self.n_deaths, self.is_over = 0, threading.Event()
        dev = npumem.connect(self.daemon.path, timeout=SECONDS)
        self.addCleanup(dev.close)
        tensors = [dev.alloc(name, shape=LARGE, dtype="int8") for name in ("x", "y")]
        for tensor in tensors:
            tensor.fill(7)
        starter = threading.Thread(target=self.start_whenever_it_dies)
        starter.start()
        try:
            with self.assertRaises(npumem.Refused) as caught:
                tensors[0].fill(DYING)
            values = set(tensors[1].read().flat)
        finally:
            self.is_over.set()
            starter.join()
        self.assertEqual(values, {7})
        self.assertIn("died 2 times", str(caught.exception))
        self.assertEqual(self.n_deaths, 2)


if __name__ == "__main__":
    unittest.main()
