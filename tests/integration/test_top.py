"""npumemctl top on a terminal of its own: what it shows, another size, and its end."""

import fcntl
import functools
import json
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

from support import SECONDS, Client, Daemon, Endless, TestCase, alloc, pb, run_as, wait_for

CTL = os.path.join(os.environ["NPUMEM_BUILD"], "client", "ctl", "npumemctl")


def ctl(path, *words):
    return subprocess.run([CTL, "--socket", path, *words], capture_output=True, text=True, timeout=SECONDS, check=True).stdout


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

    def test_what_runs_is_told_to_whom_it_concerns(self):
        os.chmod(self.daemon.directory, 0o755)
        daemon = self.enterContext(Daemon("--npu-bytes", str(4 << 20)))
        os.chmod(daemon.directory, 0o755)
        client = daemon.client()
        self.addCleanup(client.close)
        client.send(**Endless(client).call())
        self.ctl = functools.partial(ctl, daemon.path)
        wait_for(lambda: self.running() and self.running()[0]["done"])
        (row,) = self.running()
        self.assertEqual((row["call"], row["uid"], row["waits"]), ("run", os.getuid(), False))
        self.assertEqual(row["what"], "conv2d in=in weights=weights out=out")
        self.assertLess(row["done"], row["total"])
        text = self.ctl("top", "--batch", "-n", "2", "--interval", "0.1")
        self.assertEqual(text.count("RUNNING"), 2)
        self.assertNotIn("\x1b", text)
        self.assertRegex(text, r" +\d+ % +\d+\.\d\d run conv2d in=")
        if os.getuid() == 0:
            def look():
                with Client(daemon.path) as other:
                    return len(other.call(stat=pb.StatRequest(details=True)).stat.running)

            self.assertEqual(run_as(1000, look), "0")

    def test_a_signal_ends_it(self):
        """The terminal is as it was before."""
        self.frame()
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(SECONDS), 0)
        self.assertEqual(termios.tcgetattr(self.theirs), self.before)

    def running(self):
        return json.loads(self.ctl("--json", "top", "-n", "1"))["running"]

    def test_what_waits_for_room_is_told(self):
        client = self.client()
        client.alloc("all", (1, 64, 512, 1024))
        client.send(**alloc("more", (1, 64, 1, 16), wait_ms=60000))
        self.ctl = functools.partial(ctl, self.daemon.path)
        wait_for(lambda: [row["waits"] for row in self.running()] == [True])
        self.assertIn("room?", self.ctl("top", "--batch", "-n", "1"))

    def test_bad_options(self):
        for words, text in ((("-n", "0"), '-n "0" is not a number of updates'), (("-n", "x"), '-n "x" is not a number of updates'),
                            (("--interval", "0"), "is not a number of seconds")):
            result = subprocess.run([CTL, "--socket", self.daemon.path, "top", *words], capture_output=True, text=True,
                                    timeout=SECONDS, check=False)
            self.assertEqual((result.returncode, text in result.stderr), (2, True), result)

    def test_shows_resizes_and_quits(self):
        client = self.client()
        client.alloc("x", (1, 3, 512, 512))
        lines = self.frame()
        self.assertLessEqual(len(lines), 24)
        self.assertLessEqual(max(map(len, lines)), 80)
        self.assertTrue(any(line.startswith("NPU    0 555.") for line in lines), lines)
        self.assertIn("a column is an NPU: . no data, 0 to 9 tenths of its bytes are data, # all data", lines)
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
