"""lut through the socket: tables of every kind against NumPy, a table that is written anew, and what is refused."""

import unittest

import npumem
import numpy as np
from support import SECONDS


class Lut(unittest.TestCase):
    def setUp(self):
        self.dev = npumem.spawn("--npu-bytes", "1M", timeout=SECONDS)
        self.addCleanup(self.dev.close)

    def tensor(self, shape, dtype, frac_bits, values=None):
        made = self.dev.alloc(shape=shape, dtype=dtype, frac_bits=frac_bits)
        if values is not None:
            made.write(np.asarray(values, np.int8 if dtype == "fx8" else np.int16).reshape(shape))
        return made

    def test_a_function(self):
        """e^x of every fx16 number from -8 to 8: half a unit from a whole table, one unit from 2^9 + 1 entries."""
        reals = np.arange(-32768, 32768) / 2.0**12
        wanted = np.clip(np.exp(reals) * 2.0**3, -32768, 32767)
        x = self.tensor((1, 64, 32, 32), "fx16", 12, np.arange(-32768, 32768))
        y = self.tensor((1, 64, 32, 32), "fx16", 3)
        whole = self.tensor((1, 64, 32, 32), "fx16", 3, np.rint(wanted))
        done = self.dev.run("lut", in_=x, table=whole, out=y)
        self.assertLessEqual(np.abs(y.read().reshape(-1) - wanted).max(), 0.5)
        self.assertEqual((done.saturated, done.macs), (0, 0))
        few = np.rint(np.append(wanted[::128], 8 * np.exp(8.0)))
        self.dev.run("lut", in_=x, table=self.tensor((1, 1, 1, 513), "fx16", 3, few), out=y)
        self.assertLess(np.abs(y.read().reshape(-1) - wanted)[: 7 * 4096].max(), 1.0)

    def test_a_table_is_read_when_the_kernel_runs(self):
        x = self.tensor((1, 1, 1, 256), "fx8", 4, np.arange(-128, 128))
        table, y = self.tensor((1, 64, 2, 2), "fx8", 4, np.arange(127, -129, -1)), self.tensor((1, 1, 1, 256), "fx8", 4)
        for turn in (1, -1, 1):
            table.write(np.arange(-128, 128)[::turn].astype(np.int8).reshape(table.shape))
            self.dev.run("lut", in_=x, table=table, out=y)
            self.assertEqual(y.read().reshape(-1).tolist(), list(range(-128, 128))[::turn])
        self.dev.run("lut", in_=x, table=table, out=x)  # in place
        self.assertEqual(x.read().reshape(-1).tolist(), list(range(-128, 128)))

    def test_refusals(self):
        """Each in the kernel's words; nothing is written, and the next call is answered."""
        def put(shape, dtype="fx16", f=8):
            return self.tensor(shape, dtype, f, np.zeros(shape))

        x, y, table = put((1, 2, 3, 4)), put((1, 2, 3, 4)), put((1, 1, 1, 513))
        bytes_, int8 = put((1, 2, 3, 4), "fx8"), self.dev.alloc("i", np.zeros((1, 2, 3, 4), np.int8))
        good = {"in_": x, "table": table, "out": y}
        for changed, words in (
            ({"table": put((1, 1, 1, 512))}, "table has 512 elements, but in of fx16 needs 65536, or 2^k + 1"),
            ({"table": put((1, 1, 1, 2))}, "table has 2 elements"),
            ({"in_": bytes_}, "table has 513 elements, but in of fx8 needs 256"),
            ({"table": put((1, 1, 1, 513), f=9)}, "table has 9 frac_bits, but must have the 8 of out"),
            ({"table": put((1, 1, 1, 513), "fx8")}, "table is fx8, but must be fx16"),
            ({"in_": int8}, "in is int8, but must be fx8 or fx16"),
            ({"out": int8}, "out is int8, but must be fx8 or fx16"),
            ({"out": put((1, 2, 3, 5))}, "out has W 5, but in has 4"),
            ({"table": None}, "role table is missing"),
        ):
            given = {role: value for role, value in {**good, **changed}.items() if value is not None}
            with self.subTest(words), self.assertRaisesRegex(npumem.Refused, words.replace("^", r"\^").replace("+", r"\+")) as raised:  # fmt: skip
                self.dev.run("lut", **given)
            self.assertEqual(raised.exception.status, npumem.Status.INVALID)
        y.write(np.full(y.shape, 7, np.int16))
        self.dev.run("lut", **good)
        self.assertFalse(y.read().any())


if __name__ == "__main__":
    unittest.main()
