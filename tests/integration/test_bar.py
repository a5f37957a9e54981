"""The progress bar of npumemctl: on a terminal only, in its width, wiped when it is over."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

from support import NPUMEMCTL, SECONDS, Convolution, TestCase



class Bar(TestCase):
    options = ("--npu-bytes", "4194304")

    def setUp(self):
        super().setUp()
        Convolution(self.client(), 1)

    def command(self):
        return [NPUMEMCTL, "--socket", self.daemon.path, "run", "conv2d", "in=in", "weights=weights", "out=out"]

    def on_terminal(self, columns):
        """What the command writes to a terminal of this width."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with subprocess.Popen(self.command(), stdin=slave, stdout=slave, stderr=slave) as child:
            os.close(slave)
            written = b""
            try:
                while got := os.read(master, 4096):
                    written += got
            except OSError:  # its other end is closed
                pass
            self.assertEqual(child.wait(SECONDS), 0)
        os.close(master)
        return written.decode()

    def test_in_the_width_of_the_terminal(self):
        for columns in (80, 30):
            written = self.on_terminal(columns)
            bars = re.findall(r"\[(#* *)\] +(\d+)%", written)
            self.assertGreater(len(bars), 0, written)
            percents = [int(percent) for _, percent in bars]
            self.assertEqual(percents, sorted(percents))
            self.assertEqual({len(bar) for bar, _ in bars}, {min(40, columns - 8)})
            *pieces, wiped, result = written.removesuffix("\r\n").split("\r")
            # Nothing is left of it, and it never reaches the last column.
            self.assertEqual(wiped.strip(" "), "")
            self.assertTrue(result.startswith("saturated "), repr(written))
            self.assertTrue(all(len(piece) < columns for piece in (*pieces, wiped)), repr(written))

    def test_where_there_is_no_room_or_no_terminal(self):
        self.assertRegex(self.on_terminal(5), r"\Asaturated [^\r\n]*\r\n\Z")
        result = subprocess.run(self.command(), capture_output=True, check=True)
        self.assertRegex(result.stdout, rb"\Asaturated [^\r\n]*\n\Z")
        self.assertEqual(result.stderr, b"")


if __name__ == "__main__":
    unittest.main()
