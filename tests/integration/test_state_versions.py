"""States that earlier versions of npumemd left (states/version_N_*.tar.xz, closed; 2 NPUs of 4,096 bytes) are gone on with."""

import glob
import os
import shutil
import subprocess
import unittest

from state import StateTestCase, grant, view
from support import fill, free, pb, read

STATES = sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "states", "*.tar.xz")))


class Versions(StateTestCase):
    options = ("--npus", "2", "--npu-bytes", "4096")

    def unpack(self, path):
        self.stop()
        shutil.rmtree(self.state)
        os.mkdir(self.state, 0o700)
        subprocess.check_call(["tar", "-C", self.state, "--no-same-owner", "-xJf", path])
        os.chmod(self.state, 0o700)

    def versions(self):
        for name in ("journal", "memory", "tensors", "sessions", "results"):
            with open(os.path.join(self.state, name), "rb") as file:
                yield int.from_bytes(file.read(12)[8:], "little")

    def check(self, client, c):
        tensors = {t.name: t for t in client.tensors()}
        self.assertEqual(sorted(tensors), ["b", "c", "empty", "v"])
        self.assertTrue(tensors["b"].sealed)
        for name, value in (("b", 2), ("c", c), ("v", c)):
            self.assertEqual(set(client.pipeline(read(name))[0].done.data), {value})
        self.refused(client.pipeline(read("empty"))[0], pb.FAILED_PRECONDITION, "never written")

    def test_all_of_them(self):
        self.assertGreaterEqual(len(STATES), 4)
        for path in STATES:
            for options in ((), ("--durable",)):
                with self.subTest(state=os.path.basename(path), options=options):
                    self.unpack(path)
                    before = set(self.versions())
                    self.start(*options)
                    self.check(self.client(), 3)
                    guest = self.client(1001)
                    guest.call(**fill("0:c", 5))
                    self.assertEqual({4}, set(self.versions()), before)
                    for terminate in (False, True, False):
                        self.restart(*options, terminate=terminate)
                        self.check(self.client(), 5)

    def test_the_tables_grow(self):
        """The largest cells, and more of them than a state begins with, beside those that an earlier version wrote."""
        for path in STATES:
            with self.subTest(state=os.path.basename(path)):
                self.unpack(path)
                self.start()
                client = self.client()
                before = {t.handle: t for t in client.tensors()}
                for i in range(50):
                    name = "c" if i < 16 else "v"
                    client.call(**view(f"{i:063}x"[1:], name, (0, 0, 0, 0), (1, 1, 1, 1)))
                for i in range(50):
                    for uid in range(16):
                        client.call(**grant(f"{i:063}x"[1:], (1 << 32) - 3 - uid, pb.ACCESS_READ + uid % 2))
                now = {t.handle: t for t in client.tensors()}
                self.assertEqual(len(now), len(before) + 50)
                for terminate in (False, True):
                    self.restart(terminate=terminate)
                    client = self.client()
                    self.assertEqual({t.handle: t for t in client.tensors()}, now)
                self.check_growth(client)

    def check_growth(self, client):
        for name in [t.name for t in client.tensors() if len(t.name) == 63]:
            client.call(**free(name))
        self.check(client, 3)

    def test_an_earlier_process_that_died_between(self):
        """Some files have the new version already; of one the checksum is still the old one."""
        self.unpack(STATES[0])
        with open(os.path.join(self.state, "tensors"), "r+b") as file:
            file.seek(8)
            file.write((4).to_bytes(4, "little"))
        self.start()
        self.check(self.client(), 3)


if __name__ == "__main__":
    unittest.main()
