"""The README's commands, in their order, in one shell, with the programs of this build. Those that install packages, build
or install npumem are left out here: tests/system/test_readme.py has them, on a bare Debian."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from support import SECONDS

BUILD = os.environ["NPUMEM_BUILD"]
sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
import readme  # noqa: E402

ELSEWHERE = re.compile(r"^(tests/demo\.sh|tests/packages\.sh|cmake )")
HAS_ONNX = not subprocess.run(["/usr/bin/python3", "-c", "import onnx"], capture_output=True, check=False).returncode


class Readme(unittest.TestCase):
    def test_its_commands(self):
        pairs = []
        for text, shown in readme.blocks():
            lines = text.splitlines(keepends=True)
            kept = [line for line in lines if not ELSEWHERE.match(line)]
            if "npumem-import" in text and not HAS_ONNX:
                print("no python3-onnx here, so the README's lines for ONNX were NOT run: tests/packages.sh python3-onnx")
                kept = []
            pairs.append(["".join(kept), shown if len(kept) == len(lines) else None])
        self.assertGreater(sum(text.count("npumemctl") for text, _ in pairs), 15)
        self.assertGreater(len([shown for _, shown in pairs if shown]), 1)
        directory = tempfile.mkdtemp(prefix="npumem-test-")
        self.addCleanup(shutil.rmtree, directory)
        os.symlink(os.path.join(readme.SOURCE, "tests"), os.path.join(directory, "tests"))
        os.mkdir(os.path.join(directory, "build"))
        shutil.copy(os.path.join(BUILD, "env"), os.path.join(directory, "build"))
        done = subprocess.run(
            ["bash", "-c", readme.script(pairs)], cwd=directory, env={"PATH": "/usr/bin:/bin", "TMPDIR": directory, "HOME": directory},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=3 * SECONDS, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(readme.missing(pairs, done.stdout), [])
        self.assertTrue({"y.npy", "device.svg"} <= set(os.listdir(directory)))
        left = [name for _, _, names in os.walk(directory) for name in names if name.endswith(".sock")]
        self.assertEqual(left, [], "a daemon still runs")

    def test_sockets_lie_where_nobody_else_writes(self):
        for text, _ in readme.blocks():
            self.assertNotRegex(text, "/tmp|/var/tmp|/dev/shm")
            self.assertEqual(len(re.findall("NPUMEM_SOCKET=", text)), len(re.findall(r"NPUMEM_SOCKET=\$\(mktemp -d\)/", text)))

    def test_an_output_that_differs_is_noticed(self):
        pairs = [["echo one\n", "o…e\n"], ["echo two\n", "three\n"], ["echo\n", None]]
        done = subprocess.run(["bash", "-c", readme.script(pairs)], capture_output=True, text=True, check=True)
        self.assertEqual([wrong[0] for wrong in readme.missing(pairs, done.stdout)], ["echo two\n"])
        self.assertEqual(len(readme.missing(pairs, "one\n")), 3)


if __name__ == "__main__":
    unittest.main()
