"""The static npumemctl with the daemon inside, in a root directory that has nothing but it."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from support import SECONDS

BUILD = os.environ["NPUMEM_BUILD"]
SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))


class Static(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="npumem-test-")
        cls.addClassCleanup(shutil.rmtree, cls.root)
        os.chmod(cls.root, 0o755)
        shutil.copy(os.path.join(BUILD, "client/static/npumemctl"), cls.root)
        os.symlink("npumemctl", os.path.join(cls.root, "npumemd"))
        for name in ("tmp", "dev", "etc", "vectors"):
            os.mkdir(os.path.join(cls.root, name))
        with open(os.path.join(cls.root, "etc/passwd"), "wb") as file:
            file.write(b"# not one\nsomebody:x:4711:4711::/:\nroot:x:0:0::/:\n")
        with open(os.path.join(cls.root, "dev/null"), "wb"):  # a file does
            pass
        for name in ("conv2d.json", "softmax.json", "luts.json"):
            shutil.copy(os.path.join(SOURCE, "tests/conformance/vectors", name), os.path.join(cls.root, "vectors"))

    def run_it(self, *words, program="npumemctl", code=0):
        """As root in that directory alone, without /proc; else beside the rest."""
        root = os.geteuid() == 0
        command = ["chroot", self.root, "/" + program] if root else [os.path.join(self.root, program)]
        done = subprocess.run(
            [shutil.which(command[0]) or command[0], *command[1:], *words], cwd=self.root, env={}, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=4 * SECONDS, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def vectors(self):
        return "/vectors" if os.geteuid() == 0 else os.path.join(self.root, "vectors")

    def test_it_needs_no_library(self):
        headers = subprocess.run(
            ["readelf", "-ld", os.path.join(self.root, "npumemctl")], capture_output=True, text=True, check=True
        ).stdout
        self.assertNotIn("INTERP", headers)
        self.assertNotIn("NEEDED", headers)

    def test_a_daemon_of_its_own(self):
        info = json.loads(self.run_it("--spawn=--npus 4 --npu-bytes 65536", "--json", "info"))
        self.assertEqual((info["npus"], info["npu_bytes"]), (4, 65536))
        self.assertIn("did not start", self.run_it("--spawn=--npus many", "info", code=1))

    def test_golden_vectors(self):
        told = self.run_it("--spawn", "conform", self.vectors())
        self.assertRegex(told, r"^1\d\d passed, 0 failed")

    def test_a_daemon_for_a_command(self):
        program = "/npumemctl" if os.geteuid() == 0 else os.path.join(self.root, "npumemctl")
        self.assertIn("4 NPUs of", self.run_it("--spawn=--npus 4", "exec", program, "info"))

    def test_users_are_those_of_etc_passwd(self):
        self.assertIn("no tensor x", self.run_it("--spawn", "grant", "x", "root", "read", code=1))
        if os.geteuid() == 0:
            self.assertIn("no tensor x", self.run_it("--spawn", "grant", "x", "somebody", "read", code=1))
        self.assertIn("neither a user's name", self.run_it("--spawn", "grant", "x", "no such user", "read", code=2))

    def test_the_daemon_by_its_name(self):
        self.assertIn("--npu-bytes", self.run_it("--help", program="npumemd"))
        self.assertIn("npumemctl [OPTIONS]", self.run_it("--help"))
        self.assertIn("no command", self.run_it(code=2))


if __name__ == "__main__":
    unittest.main()
