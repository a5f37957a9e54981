"""Kernels with windows through the socket: their parameters' limits, and that a refused call writes nothing."""

import unittest

import npumem
import numpy as np
from support import SECONDS


class Windows(unittest.TestCase):
    def setUp(self):
        self.dev = npumem.spawn("--npu-bytes", "64K", "--npus", "4", timeout=SECONDS)
        self.addCleanup(self.dev.close)

    def tensor(self, *shape, fill=1):
        made = self.dev.alloc(shape=shape, dtype="fx8", frac_bits=0)
        made.fill(fill)
        return made

    def assert_refused(self, words, kernel, out, given):
        with self.assertRaisesRegex(npumem.Refused, words) as raised:
            self.dev.run(kernel, out=out, **given)
        self.assertEqual(raised.exception.status, npumem.Status.INVALID)
        self.assertTrue((out.read() == 7).all())

    def test_pools(self):
        x, out = self.tensor(1, 2, 5, 6, fill=8), self.tensor(1, 2, 5, 6, fill=7)
        given = {"in_": x, "kernel": (3, 3), "padding": (2, 2, 2, 2), "dilation": (2, 2)}
        for kernel in ("maxpool", "avepool"):
            for words, changed in (
                ("dilation h is 0", {"dilation": (0, 1)}),
                ("dilation w is 7, but must be 1 to 6", {"dilation": (2, 7), "padding": (2, 2, 9, 9)}),
                ("padding top is 5, but must be 0 to 4", {"padding": (5, 2, 2, 2)}),
                ("out has H 5, but in and the window give 3", {"padding": (1, 1, 2, 2)}),
            ):
                self.assert_refused(words, kernel, out, given | changed)
        for side, counted in (("top", (3, 0, 0, 0)), ("bottom", (0, -1, 0, 0)), ("right", (0, 0, 0, 3))):
            words = f"count_padding {side} is .*, but must be 0 to 2"
            self.assert_refused(words, "avepool", out, given | {"count_padding": counted})
        self.dev.run("avepool", out=out, **given, count_padding=(2, 2, 2, 2), exact=1)
        points = np.array([2, 2, 3, 2, 2])[:, None] * np.array([2, 2, 3, 3, 2, 2]) * 8 / 9
        self.assertTrue((out.read() == np.rint(points)).all())

    def test_transposed(self):
        x, w, out = self.tensor(1, 4, 2, 2, fill=2), self.tensor(2, 4, 2, 2), self.tensor(1, 4, 5, 4, fill=7)
        given = {"in_": x, "weights": w, "stride": (2, 2), "groups": 2, "output_padding": (1, 0)}
        for words, changed in (
            ("groups is 0, but must be 1 to", {"groups": 0}),
            ("4 input and 4 output channels do not divide into 3 groups", {"groups": 3}),
            ("weights has N 2, but the channels of in are 4", {"groups": 1}),
            ("output_padding h is -1, but must be 0 to 2147483647", {"output_padding": (-1, 0)}),
            ("output_padding w is 2147483648, but must be", {"output_padding": (0, 2**31)}),
            ("out has H 5, but in, weights and the window give 4", {"output_padding": (0, 0)}),
            ("padding bottom is 2, but must be 0 to 1", {"padding": (0, 2, 0, 0)}),
        ):
            self.assert_refused(words, "transpose_conv2d", out, given | changed)
        self.dev.run("transpose_conv2d", out=out, **given)
        self.assertTrue((out.read()[:, :, :4] == 4).all() and (out.read()[:, :, 4] == 0).all())

    def test_widening(self):
        """fx8 data may have an fx16 result, and no other result of another type."""
        x, w = self.tensor(1, 2, 3, 3, fill=127), self.tensor(2, 4, 3, 3, fill=2)
        given = {"in_": x, "weights": w}
        self.assert_refused("out is int16, but must be fx8 or fx16$", "conv2d", self.out("int16"), given)
        out = self.out("fx16")
        self.dev.run("conv2d", out=out, **given)
        self.assertTrue((out.read() == 127 * 2 * 18).all())
        wide = {"in_": self.out("fx16"), "weights": self.tensor(4, 4, 1, 1)}
        self.assert_refused("out is fx8, but must be fx16 as in is", "conv2d", self.tensor(1, 4, 1, 1, fill=7), wide)
        with self.assertRaisesRegex(npumem.Refused, "out is fx16, but must be fx8 as in is"):
            self.dev.run("fully_connected", in_=x, weights=self.tensor(18, 4, 1, 1), out=out)

    def out(self, dtype):
        made = self.dev.alloc(shape=(1, 4, 1, 1), dtype=dtype, **({"frac_bits": 0} if dtype == "fx16" else {}))
        made.fill(7)
        return made


if __name__ == "__main__":
    unittest.main()
