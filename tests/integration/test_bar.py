"""The progress bar of npumemctl: on a terminal only, in its width, wiped when it is over."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unittest

from support import TestCase, dims, pb

NPUMEMCTL = os.path.join(os.environ["NPUMEM_BUILD"], "client/ctl/npumemctl")


class Bar(TestCase):
    options = ("--npu-bytes", "4194304")

    def setUp(self):
        super().setUp()
        spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 64, 64, 16384), layout=pb.STRIDED, stride=dims(1, 3145728, 49152, 3))
        request = pb.AllocRequest(tensors=[pb.Allocation(name="x", spec=spec)])
        self.client().call(alloc=request)

    def command(self):
        return [NPUMEMCTL, "--socket", self.daemon.path, "fill", "x", "1"]

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
            self.assertEqual(child.wait(10), 0)
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
            # Nothing is left of it, and it never reaches the last column.
            self.assertTrue(written.endswith("\r"), repr(written))
            self.assertTrue(all(len(piece) < columns for piece in re.split("[\r\n]", written)), repr(written))

    def test_where_there_is_no_room_or_no_terminal(self):
        self.assertEqual(self.on_terminal(5), "")
        result = subprocess.run(self.command(), capture_output=True, check=True)
        self.assertEqual((result.stdout, result.stderr), (b"", b""))


if __name__ == "__main__":
    unittest.main()
