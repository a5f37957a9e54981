"""The Python package and a daemon that keeps its state: snapshots, and several programs at work while it is killed."""

import os
import random
import shutil
import subprocess
import threading
import time
import unittest

import npumem
import numpy as np
from state import StateTestCase
from support import SECONDS, Daemon

SEED = int(os.environ.get("NPUMEM_SEED", random.randrange(1 << 30)))
KILLS = int(os.environ.get("NPUMEM_PYTHON_KILLS", "8"))


class Case(StateTestCase):
    options = ("--npus", "8", "--npu-bytes", "2097152")

    def connect(self, **options):
        dev = npumem.connect(self.daemon.path, timeout=SECONDS, **options)
        self.addCleanup(dev.close)
        return dev

    def partials(self):
        return [name for name in os.listdir(self.directory) if "partial" in name]


class Snapshot(Case):
    def setUp(self):
        super().setUp()
        self.dev = self.connect()
        self.array = np.arange(8 * 4096).reshape((1, 8, 8, 512)) % 100
        self.dev.alloc("kept", self.array, dtype="int16")
        self.path = os.path.join(self.directory, "copy")

    def test_a_daemon_starts_from_it(self):
        n_bytes = self.dev.snapshot(self.path + "/")
        self.assertGreater(n_bytes, self.array.size * 2)
        self.assertEqual(sorted(os.listdir(self.path)), ["journal", "manifest", "memory", "results", "sessions", "tensors"])
        self.assertEqual(self.partials(), [])
        self.dev.open("kept").fill(1)
        directory = self.path + "-daemon"
        os.mkdir(directory)
        with Daemon("--state-dir", self.path, *self.options, directory=directory) as daemon:
            with npumem.connect(daemon.path, timeout=SECONDS) as there:
                np.testing.assert_array_equal(there.open("kept").read(), self.array)

    def test_it_takes_the_place_of_nothing(self):
        os.mkdir(self.path)
        with open(os.path.join(self.path, "mine"), "w", encoding="ascii"):
            pass
        with self.assertRaises(FileExistsError):
            self.dev.snapshot(self.path)
        with self.assertRaises(FileExistsError):
            self.dev.snapshot(os.path.join(self.path, "mine"))
        self.assertEqual(os.listdir(self.path), ["mine"])
        with self.assertRaises(FileNotFoundError):
            self.dev.snapshot(os.path.join(self.directory, "no", "such"))
        os.remove(os.path.join(self.path, "mine"))
        self.dev.snapshot(self.path)

    def test_one_that_fails_ends_and_leaves_nothing(self):
        os.mkdir(self.path)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", self.path], check=True)
        try:
            with self.assertRaises(OSError):
                self.dev.snapshot(os.path.join(self.path, "copy"))
            self.assertEqual(os.listdir(self.path), [])
        finally:
            subprocess.run(["umount", self.path], check=True)
        # Nor does the daemon hold it for a connection that goes on.
        self.dev.snapshot(self.path)

    def test_a_refusal(self):
        with npumem.spawn("--npus", "4", "--npu-bytes", "65536") as dev:
            with self.assertRaises(npumem.Refused) as caught:
                dev.snapshot(self.path)
        self.assertEqual(caught.exception.status, npumem.Status.FAILED_PRECONDITION)
        self.assertEqual((os.path.exists(self.path), self.partials()), (False, []))


if os.geteuid():
    Snapshot.test_one_that_fails_ends_and_leaves_nothing = unittest.skip("root alone mounts")(
        Snapshot.test_one_that_fails_ends_and_leaves_nothing)


class Program(threading.Thread):
    """Writes a tensor of its own and one with a name, in turn, and believes nothing that it does not read."""

    def __init__(self, case, index):
        super().__init__()
        self.dev, self.index = case.connect(), index
        self.own = self.dev.alloc(shape=(1, 8, 4, 256), dtype="int16")
        self.named = self.dev.alloc(f"named{index}", shape=self.own.shape, dtype="int16")
        self.over = threading.Event()
        self.rounds = 0
        self.problem = None

    def run(self):
        try:
            while not self.over.is_set() or not self.rounds:
                self.round((self.rounds * 7 + self.index) % 30000)
                self.rounds += 1
        except BaseException as problem:  # pylint: disable=broad-except
            self.problem = problem

    def round(self, value):
        array = np.full(self.own.shape, value, np.int16)
        self.own.write(array)
        self.dev.copy(self.named, self.own)
        fills = [self.own.fill_async(value + i) for i in range(8)]
        np.testing.assert_array_equal(self.named.read(), array)
        for one in fills:
            one.result()
        self.assert_all(self.own.read(), value + 7)
        temporary = self.dev.alloc(shape=(1, 1, 1, 9), dtype="int8")
        temporary.free()

    @staticmethod
    def assert_all(array, value):
        assert set(array.flat) == {value}, (set(array.flat), value)


class Kills(Case):
    def test_several_programs_while_it_is_killed(self):
        rng = random.Random(SEED)
        programs = [Program(self, i) for i in range(4)]
        for program in programs:
            program.start()
        try:
            for n in range(KILLS):
                time.sleep(rng.uniform(0.01, 0.2))
                path = os.path.join(self.directory, f"copy{n}")
                if n % 4 == 1:
                    self.connect().snapshot(path)
                    shutil.rmtree(path)
                self.restart()
        finally:
            for program in programs:
                program.over.set()
            for program in programs:
                program.join(SECONDS)
        self.assertEqual([program.problem for program in programs], [None] * 4, f"seed {SEED}")
        self.assertFalse(any(program.is_alive() for program in programs))
        self.assertEqual(len(self.connect().tensors()), 8)
        print(f"{KILLS} kills, {sum(program.rounds for program in programs)} rounds of 4 programs, seed {SEED}")


if __name__ == "__main__":
    unittest.main()
