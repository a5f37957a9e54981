"""npumemctl top on a terminal of its own: what it shows, another size, and its end."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from support import SECONDS, TestCase, wait_for

CTL = os.path.join(os.environ["NPUMEM_BUILD"], "client", "ctl", "npumemctl")


class Top(TestCase):
    def setUp(self):
        super().setUp()
        self.ours, theirs = pty.openpty()
        self.size(24, 80)
        self.before = termios.tcgetattr(theirs)
        self.process = subprocess.Popen(
            [CTL, "--socket", self.daemon.path, "top", "--interval", "0.2"], stdin=theirs, stdout=theirs, stderr=theirs
        )
        self.theirs = theirs
        self.addCleanup(os.close, theirs)
        self.addCleanup(os.close, self.ours)
        self.addCleanup(self.process.kill)

    def size(self, rows, columns):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def frame(self):
        """The lines of one whole picture."""
        text, end = b"", time.monotonic() + SECONDS
        while text.count(b"\x1b[J") < 3:
            assert time.monotonic() < end, text
            if select.select([self.ours], [], [], 0.1)[0]:
                text += os.read(self.ours, 1 << 16)
        picture = text.split(b"\x1b[J")[-2].decode()
        return re.split("\r+\n", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", picture))

    def test_shows_resizes_and_quits(self):
        client = self.client()
        client.alloc("x", (1, 3, 512, 512))
        lines = self.frame()
        self.assertLessEqual(len(lines), 24)
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertTrue(any(line.startswith("NPU    0 555.") for line in lines), lines)
        self.assertTrue(any(f" {os.getpid()} " in line for line in lines), lines)
        self.size(8, 30)
        self.process.send_signal(signal.SIGWINCH)
        # What was drawn before may still be on its way.
        wait_for(lambda: len(lines := self.frame()) <= 8 and max(map(len, lines)) <= 30)
        os.write(self.ours, b"q")
        wait_for(lambda: self.process.poll() is not None)
        self.assertEqual(self.process.returncode, 0)
        self.assertEqual(termios.tcgetattr(self.theirs), self.before)

    def test_needs_a_terminal(self):
        done = subprocess.run([CTL, "--socket", self.daemon.path, "top"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs a terminal", done.stderr)


if __name__ == "__main__":
    unittest.main()
