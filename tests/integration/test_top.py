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

from support import NPUMEMCTL, SECONDS, Client, Daemon, Endless, TestCase, alloc, pb, run_as, silenced, wait_for



def ctl(path, *words):
    return subprocess.run([NPUMEMCTL, "--socket", path, *words], capture_output=True, text=True, timeout=SECONDS, check=True).stdout


class Top(TestCase):
    def setUp(self):
        super().setUp()
        self.ours, theirs = pty.openpty()
        self.size(24, 80)
        self.before = termios.tcgetattr(theirs)
        self.process = subprocess.Popen(
            [NPUMEMCTL, "--socket", self.daemon.path, "top", "--interval", "0.2"], stdin=theirs, stdout=theirs, stderr=theirs
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

    def until(self, text):
        """What is written up to this."""
        got, end = b"", time.monotonic() + SECONDS
        while text not in got:
            assert time.monotonic() < end, got
            if select.select([self.ours], [], [], 0.1)[0]:
                got += os.read(self.ours, 1 << 16)
        return got

    def another(self, daemon):
        """Another one on the terminal, once it has drawn."""
        self.process.kill()
        self.process.wait(SECONDS)
        termios.tcsetattr(self.theirs, termios.TCSANOW, self.before)
        while select.select([self.ours], [], [], 0)[0]:
            os.read(self.ours, 1 << 16)
        self.process = subprocess.Popen(
            [NPUMEMCTL, "--socket", daemon.path, "top", "--interval", "0.2"], stdin=self.theirs, stdout=self.theirs, stderr=self.theirs
        )
        self.addCleanup(self.process.kill)
        self.until(b"\x1b[J")
        return self.process

    def test_a_daemon_that_is_silent(self):
        """It says so, and both keys end it at once."""
        self.frame()
        with silenced(self.daemon.process):
            self.until(b"(q quits) no answer of the daemon for 1 s")
            os.write(self.ours, b"q")
            self.assertEqual(self.process.wait(SECONDS), 0)
        self.assertEqual(termios.tcgetattr(self.theirs), self.before)
        for words in (("top", "--batch"), ("--json", "top")):
            with subprocess.Popen([NPUMEMCTL, "--socket", self.daemon.path, *words, "--interval", "0.1"], stdout=subprocess.PIPE) as batch:
                batch.stdout.readline()
                with silenced(self.daemon.process):
                    time.sleep(0.3)  # it asks again
                    batch.send_signal(signal.SIGINT)
                    self.assertEqual(batch.wait(SECONDS), 0)

    def test_a_daemon_that_is_gone(self):
        """With a state the client waits for another; meanwhile it can be ended."""
        with Daemon("--state-dir", os.path.join(self.daemon.directory, "state")) as daemon:
            top = self.another(daemon)
            daemon.end(signal.SIGKILL)
            self.until(b"no answer of the daemon for 1 s")
            os.write(self.ours, b"q")
            self.assertEqual(top.wait(SECONDS), 0)

    def test_it_is_stopped_and_goes_on(self):
        """A shell gets the terminal as it was, and may leave it otherwise."""
        self.frame()
        self.process.send_signal(signal.SIGTSTP)
        self.until(b"\x1b[?25h\x1b[?1049l")
        self.assertTrue(os.WIFSTOPPED(os.waitpid(self.process.pid, os.WUNTRACED)[1]))
        self.assertEqual(termios.tcgetattr(self.theirs), self.before)
        self.process.send_signal(signal.SIGCONT)
        self.assertIn(b"\x1b[?1049h\x1b[?25l", self.until(b"\x1b[J"))
        os.write(self.ours, b"q")
        self.assertEqual(self.process.wait(SECONDS), 0)
        self.assertEqual(termios.tcgetattr(self.theirs), self.before)

    def test_other_signals_end_it(self):
        for number in (signal.SIGQUIT, signal.SIGHUP):
            top = self.another(self.daemon)
            top.send_signal(number)
            self.assertEqual(top.wait(SECONDS), 0)
            self.until(b"\x1b[?25h\x1b[?1049l")
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
            result = subprocess.run([NPUMEMCTL, "--socket", self.daemon.path, "top", *words], capture_output=True, text=True,
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
        self.assertTrue(lines[0].startswith("(q quits) "), lines)
        self.size(8, 30)
        self.process.send_signal(signal.SIGWINCH)
        # What was drawn before may still be on its way.
        wait_for(lambda: len(lines := self.frame()) <= 8 and max(map(len, lines)) <= 30)
        self.assertIn("NPU    0 to 63 need more lines", self.frame())
        os.write(self.ours, b"q")
        wait_for(lambda: self.process.poll() is not None)
        self.assertEqual(self.process.returncode, 0)
        self.assertEqual(termios.tcgetattr(self.theirs), self.before)

    def test_needs_a_terminal(self):
        done = subprocess.run([NPUMEMCTL, "--socket", self.daemon.path, "top"], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs a terminal", done.stderr)


if __name__ == "__main__":
    unittest.main()
