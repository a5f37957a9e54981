"""Element-wise kernels of two through the socket: a scalar, numbers of channels, planes beside a whole tensor, from
every layout; and what is refused."""

import itertools
import unittest

import npumem
import numpy as np
from support import SECONDS

WHOLE = (2, 3, 4, 20)
FORMS = ((1, 1, 1, 1), (1, 3, 1, 1), (2, 1, 1, 1), (2, 3, 1, 1), (1, 1, 4, 20), (1, 3, 4, 20), (2, 1, 4, 20))


class Spread(unittest.TestCase):
    def setUp(self):
        self.dev = npumem.spawn("--npu-bytes", "64K", "--npus", "4", timeout=SECONDS)
        self.addCleanup(self.dev.close)

    def tensor(self, shape, seed, **more):
        made = self.dev.alloc(shape=shape, dtype="fx16", frac_bits=0, **more)
        made.write(np.random.default_rng(seed).integers(-999, 999, shape).astype(np.int16))
        return made

    def test_forms(self):
        """The smaller one first or second, in another layout than the larger."""
        out = self.dev.alloc(shape=WHOLE, dtype="fx16", frac_bits=0)
        for seed, (form, (a, b), start) in enumerate(
            itertools.product(FORMS, (("aligned", "compact"), ("compact", "aligned")), (0, 3))
        ):
            x, y = self.tensor(WHOLE, seed, layout=a), self.tensor(form, 99 + seed, layout=b, start_npu=start)
            for kernel, by in (("eltwise_sub", np.subtract), ("eltwise_max", np.maximum)):
                for in1, in2 in ((x, y), (y, x)):
                    self.dev.run(kernel, in1=in1, in2=in2, out=out)
                    want = by(in1.read(), in2.read())
                    self.assertTrue(np.array_equal(out.read(), np.broadcast_to(want, WHOLE)), (kernel, form, a, b))
            self.dev.run("eltwise_add", in1=x, in2=y, out=x)  # in place
            self.dev.free(x, y)

    def test_rows_of_channels(self):
        """Features of one element: a number for each row, or for each column."""
        x, out = self.tensor((5, 70, 1, 1), 1), self.dev.alloc(shape=(5, 70, 1, 1), dtype="fx16", frac_bits=0)
        for form in ((1, 70, 1, 1), (5, 1, 1, 1)):
            y = self.tensor(form, 2)
            self.dev.run("eltwise_sub", in1=x, in2=y, out=out)
            self.assertTrue(np.array_equal(out.read(), x.read() - y.read()))

    def test_refusals(self):
        x, out = self.tensor(WHOLE, 1), self.dev.alloc(shape=WHOLE, dtype="fx16", frac_bits=0)
        out.fill(7)
        for form, words in (
            ((1, 1, 4, 1), "in2 has W 1, but in1 has 20"),
            ((1, 1, 1, 20), "in2 has H 1, but in1 has 4"),
            ((1, 2, 1, 1), "in2 has C 2, but in1 has 3"),
            ((3, 1, 1, 1), "in2 has N 3, but in1 has 2"),
            ((1, 1, 20, 4), "in2 has H 20, but in1 has 4"),
            ((1, 4, 4, 20), "in2 has C 4, but in1 has 3"),
        ):
            with self.assertRaisesRegex(npumem.Refused, words) as raised:
                self.dev.run("eltwise_add", in1=x, in2=self.tensor(form, 2), out=out)
        with self.assertRaisesRegex(npumem.Refused, "out has N 2, but in1 has 1") as raised:
            self.dev.run("eltwise_add", in1=self.tensor((1, 3, 1, 1), 3), in2=self.tensor((1, 1, 1, 1), 4), out=out)
        self.assertEqual(raised.exception.status, npumem.Status.INVALID)
        self.assertTrue((out.read() == 7).all())


if __name__ == "__main__":
    unittest.main()
