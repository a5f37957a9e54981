"""The Python package and snapshots of a daemon that keeps its state."""

import os
import subprocess
import unittest

import npumem
import numpy as np
from state import StateTestCase
from support import SECONDS, Daemon


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


if __name__ == "__main__":
    unittest.main()
