"""The Python package's arrays: fixed point as npumemctl rounds it, shapes and types, arrays in shared memory."""

import os
import tempfile
import unittest
import warnings
from fractions import Fraction

import npumem
import numpy as np
from support import SECONDS, TestCase, wait_for

FX = {"fx8": np.int8, "fx16": np.int16}


class Case(TestCase):
    options = ("--npus", "16", "--npu-bytes", "1048576")

    def setUp(self):
        super().setUp()
        self.dev = self.stack.enter_context(npumem.connect(self.daemon.path, timeout=SECONDS))


class FixedPoint(Case):
    def reals(self, dtype, frac_bits):
        """Ties on both sides of zero, what is next to them, the ends, and any numbers."""
        info = np.iinfo(FX[dtype])
        ties = np.arange(-9, 9) + 0.5
        ends = np.array([info.min, info.max])
        near = np.concatenate([ties, *(ends + d for d in (-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1))])
        near = np.concatenate([near, np.nextafter(near, -np.inf), np.nextafter(near, np.inf)])
        rng = np.random.default_rng(7)
        rest = [rng.standard_normal(500) * info.max, rng.standard_normal(500), [np.inf, -np.inf, 1e300, -1e300, 5e-324, 0]]
        return np.ldexp(np.concatenate([near, *rest]), -frac_bits)

    def test_by_the_rule(self):
        n_compared = 0
        for rounding in ("convergent", "up", "nearest"):
            for dtype, container in FX.items():
                for frac_bits in (0, 3, 7, 15, 127):
                    reals = self.reals(dtype, frac_bits)
                    integers, n_saturated = npumem.quantize_counted(reals, dtype, frac_bits, rounding)
                    self.assertEqual((integers.dtype, integers.shape), (container, reals.shape))
                    expected, expected_saturated = self.by_rule(reals, dtype, frac_bits, rounding)
                    np.testing.assert_array_equal(integers, expected)
                    self.assertEqual(n_saturated, expected_saturated)
                    n_compared += integers.size
        self.assertGreater(n_compared, 30000)

    def test_the_devices_rounding(self):
        for rounding, expected in (("convergent", [2, -2]), ("up", [3, -2]), ("nearest", [3, -3])):
            with npumem.spawn("--rounding", rounding, timeout=SECONDS) as dev:
                self.assertEqual(dev.rounding, rounding)
                x = dev.alloc("x", np.array([2.5, -2.5]), dtype="fx8", frac_bits=0)
                self.assertEqual(list(x.read().flat), expected)
                x.write([2.5, -2.5], rounding="up")
                self.assertEqual(list(x.read().flat), [3, -2])

    @staticmethod
    def by_rule(reals, dtype, frac_bits, rounding):
        """One by one, in fractions."""
        info, out, n_saturated = np.iinfo(FX[dtype]), [], 0
        for real in reals:
            if np.isinf(real):
                value = int(info.max) + 1 if real > 0 else int(info.min) - 1
            else:
                scaled = Fraction(float(real)) * 2**frac_bits
                floor = scaled.numerator // scaled.denominator
                rest = scaled - floor
                up = rest > Fraction(1, 2) or (
                    rest == Fraction(1, 2)
                    and {"up": True, "nearest": scaled > 0, "convergent": floor % 2 == 1}[rounding]
                )
                value = floor + up
            n_saturated += not info.min <= value <= info.max
            out.append(min(max(value, info.min), info.max))
        return np.array(out), n_saturated

    def test_the_same_file_by_both(self):
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as directory:
            path, back = os.path.join(directory, "x.npy"), os.path.join(directory, "back.npy")
            for dtype in FX:
                for frac_bits in (0, 5, 15):
                    for kind in (np.float32, np.float64):
                        with np.errstate(over="ignore"):
                            reals = self.reals(dtype, frac_bits).astype(kind)
                        reals = reals.reshape(1, 1, 1, -1)
                        np.save(path, reals)
                        with self.dev.alloc("x", shape=reals.shape, dtype=dtype, frac_bits=frac_bits) as x:
                            self.ctl("write", "x", path, "--quantize")
                            by_ctl = x.read()
                            with self.assertWarnsRegex(npumem.DeviceWarning, "were saturated to"):
                                x.write(reals)
                            np.testing.assert_array_equal(x.read(), by_ctl)
                            self.ctl("read", "x", back, "--dequantize")
                            np.testing.assert_array_equal(x.read(real=True), np.load(back))
                            self.assertEqual(x.read(real=True).dtype, np.float32)

    def test_what_cannot_be_quantized(self):
        for array, kind in ((np.array([1.0, np.nan]), ValueError), (np.array([1j]), TypeError), (["a"], TypeError)):
            with self.assertRaises(kind):
                npumem.quantize(array, "fx8", 4)
        with self.assertRaisesRegex(ValueError, r"element \(1, 0\) is a NaN"):
            npumem.quantize([[1.0], [np.nan]], "fx8", 4)
        for dtype, rounding in (("int8", "up"), ("fx8", "down")):
            with self.assertRaises(ValueError):
                npumem.quantize([1.0], dtype, 4, rounding)
        with self.assertRaises(TypeError):
            npumem.dequantize(np.zeros(3, np.int32), 4)

    def test_a_float_to_fill_with(self):
        x = self.dev.alloc("x", shape=(1, 2, 1, 3), dtype="fx8", frac_bits=4)
        x.fill(1.53125)  # 24.5 sixteenths, to even
        self.assertEqual(set(x.read().flat), {24})
        x.fill(1.53125, rounding="up")
        self.assertEqual(set(x.read().flat), {25})
        with self.assertWarnsRegex(npumem.DeviceWarning, "1000.0 was saturated to fx8, frac_bits 4"):
            x.fill(1000.0)
        self.assertEqual(set(x.read().flat), {127})
        x.fill(7)
        self.assertEqual(set(x.read().flat), {7})
        f = self.dev.alloc(shape=(1, 1, 1, 2), dtype="fp32")
        f.fill(2)
        self.assertEqual(list(f.read().flat), [2.0, 2.0])


class Shapes(Case):
    def test_every_type_both_ways(self):
        rng = np.random.default_rng(1)
        for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32"):
            info = np.iinfo(dtype)
            array = rng.integers(info.min, info.max, (2, 5, 3, 4), dtype, endpoint=True)
            with self.dev.alloc("x", array) as x:
                self.assertEqual((x.dtype, x.shape, x.frac_bits), (dtype, (2, 5, 3, 4), None))
                np.testing.assert_array_equal(x.read(), array)
                self.assertEqual(x.read().dtype, array.dtype)
                x.write(array.astype(np.int64)[::-1])
                np.testing.assert_array_equal(x.read(), array[::-1])
                x.write(array.astype(array.dtype.newbyteorder(">")))
                np.testing.assert_array_equal(x.read(), array)
                x.write(np.asfortranarray(array))
                np.testing.assert_array_equal(x.read(), array)
        reals = rng.standard_normal((1, 3, 1, 7))
        x = self.dev.alloc("x", reals.astype(np.float32))
        np.testing.assert_array_equal(x.read(real=True), reals.astype(np.float32))
        x.write(reals)
        np.testing.assert_array_equal(x.read(), reals.astype(np.float32))

    def test_fewer_dimensions(self):
        for shape, expected in (((5,), (1, 5, 1, 1)), ((3, 5), (3, 5, 1, 1)), ((3, 5, 2), (1, 3, 5, 2))):
            array = np.arange(np.prod(shape), dtype=np.int8).reshape(shape)
            with self.dev.alloc("x", array) as x:
                self.assertEqual(x.shape, expected)
                x.write(array)
                np.testing.assert_array_equal(x.read(), array.reshape(expected))

    def test_matrices(self):
        array = np.arange(35, dtype=np.int16).reshape(5, 7)
        x = self.dev.alloc("x", array, layout="matrix")
        self.assertEqual(x.shape, (5, 7))
        np.testing.assert_array_equal(x.read(), array)
        for shared in (self.dev.empty((5, 7), "int16"), self.dev.empty((5, 14), "int16")[:, ::2]):
            shared[...] = array * 2
            x.write(shared)
            np.testing.assert_array_equal(x.read(), array * 2)
            x.write(array)
            self.assertIs(x.read(shared), shared)
            np.testing.assert_array_equal(shared, array)

    def test_layouts_and_modes(self):
        array = np.arange(4 * 3 * 2 * 8, dtype=np.int8).reshape(4, 3, 2, 8)
        for extra in (
            {"layout": "compact"},
            {"mode": "4n"},
            {"start_npu": 13},
            {"layout": "strided", "stride": (200, 90, 40, 2)},
        ):
            with self.dev.alloc("x", array, **extra) as x:
                np.testing.assert_array_equal(x.read(), array)
        plan = self.dev.plan(npumem.spec((4, 3, 2, 8), "int8", mode="4n"))
        self.assertEqual(plan.place.bytes_per_npu, self.dev.alloc(shape=(4, 3, 2, 8), dtype="int8", mode="4n").place.bytes_per_npu)

    def test_what_is_no_refusal(self):
        """Wrong calls are Python's errors, and nothing is sent, or allocated."""
        x = self.dev.alloc("x", shape=(1, 2, 3, 4), dtype="int8")
        before = self.dev.stat().tensors
        for problem, call in (
            (ValueError, lambda: x.write(np.zeros((1, 2, 4, 3), np.int8))),
            (ValueError, lambda: x.write(np.full((1, 2, 3, 4), 128))),
            (TypeError, lambda: x.write(np.zeros((1, 2, 3, 4)))),
            (ValueError, lambda: x.read(np.zeros((1, 2, 3, 4), np.int16))),
            (ValueError, lambda: x.read(np.zeros((1, 2, 3), np.int8))),
            (ValueError, lambda: self.dev.alloc("y", np.zeros((1, 1, 1, 1, 1), np.int8))),
            (ValueError, lambda: self.dev.alloc("y", np.zeros((1, 2), np.float64))),
            (ValueError, lambda: self.dev.alloc("y", np.full((1, 2), np.nan), dtype="fx8", frac_bits=4)),
            (ValueError, lambda: self.dev.alloc("y", shape=(1, 2, 3, 4), dtype="int9")),
            (ValueError, lambda: self.dev.alloc("y", shape=(1, 2, 3, 4), dtype="int8", layout="dense")),
            (TypeError, lambda: self.dev.alloc("y")),
            (ValueError, lambda: self.dev.empty((1, 0), "int8")),
            (ValueError, lambda: self.dev.run("rel", in_=x, out=x)),
            (TypeError, lambda: self.dev.run("relu", inn=x, out=x)),
            (TypeError, lambda: self.dev.run("relu", in_=1.5, out=x)),
            (ValueError, lambda: self.dev.run("relu", in_=x, out=x, relu="general")),
            (ValueError, lambda: self.dev.run("maxpool", in_=x, out=x, kernel=2)),
            (TypeError, lambda: self.dev.run("maxpool", in_=x, out=x, kernel=(2, 2.5))),
            (ValueError, lambda: x[:, ::2]),
            (TypeError, lambda: x[0]),
        ):
            with self.assertRaises(problem) as caught:
                call()
            self.assertNotIsInstance(caught.exception, npumem.Refused)
        self.assertEqual(self.dev.stat().tensors, before)

    def test_an_array_is_no_tensor(self):
        with self.assertRaisesRegex(TypeError, r"^an array \(float64, 2x3\) is not a tensor, name or handle$"):
            self.dev.run("relu", in_=np.zeros((2, 3)), out="y")

    def test_an_array_that_is_refused_leaves_no_tensor(self):
        with self.assertRaises(npumem.Refused) as caught:
            self.dev.alloc("y", np.zeros((1, 1, 1, 1)), dtype="fx8")
        self.assertEqual(caught.exception.status, npumem.Status.INVALID)
        self.assertIn("frac_bits", caught.exception.message)
        self.assertEqual(self.dev.tensors(), [])


class Shared(Case):
    def bytes_in(self):
        return self.dev.stat(details=True).all.bytes_in

    def test_no_byte_crosses_the_socket(self):
        array = self.dev.empty((1, 16, 128, 128), "int8")
        array[...] = np.random.default_rng(3).integers(-128, 128, array.shape)
        x = self.dev.alloc("x", shape=array.shape, dtype="int8")
        before = self.bytes_in()
        x.write(array)
        self.assertLess(self.bytes_in() - before, 1000)
        np.testing.assert_array_equal(x.read(), array)
        other = self.dev.empty(array.shape, "int8")
        self.assertIs(x.read(other), other)
        np.testing.assert_array_equal(other, array)
        before = self.bytes_in()
        x.write(np.array(array))
        self.assertGreater(self.bytes_in() - before, array.size)

    def test_slices(self):
        whole = self.dev.empty((2, 16, 12, 20), "int16")
        whole[...] = np.random.default_rng(4).integers(-(2**15), 2**15, whole.shape)
        x = self.dev.alloc("x", shape=(1, 5, 6, 7), dtype="int16")
        slices = (
            np.s_[1:, 3:8, :6, 2:9],
            np.s_[:1, 1:15:3, ::2, 1:14:2],
            np.s_[:1, 5:10, 6:0:-1, :7],  # DMA does not go backwards
        )
        for n, key in enumerate(slices):
            before = self.bytes_in()
            x.write(whole[key])
            self.assertEqual(self.bytes_in() - before < 300, n < 2, key)
            np.testing.assert_array_equal(x.read(), whole[key])
            back = self.dev.empty(whole.shape, "int16")
            x.read(back[key])
            expected = np.zeros_like(whole)
            expected[key] = whole[key]
            np.testing.assert_array_equal(back, expected)
        x.write(np.broadcast_to(whole[:1, :1, :1, :1], x.shape))
        self.assertEqual(set(x.read().flat), {whole[0, 0, 0, 0]})
        transposed = self.dev.empty((7, 6, 5, 1), "int16")
        transposed[...] = np.arange(210).reshape(7, 6, 5, 1)
        x.write(transposed.T)
        np.testing.assert_array_equal(x.read(), transposed.T)

    def test_at_the_ends_of_a_segment(self):
        """What reaches past one is not taken for being in it."""
        whole = self.dev.empty((1, 1, 1, 4096), "int8")
        whole[...] = 5
        x = self.dev.alloc("x", shape=(1, 1, 1, 96), dtype="int8")
        for part in (whole[..., :96], whole[..., 4000:]):
            self.assertIsNotNone(self.dev.memory.find(part))
            x.write(part)
        past = np.lib.stride_tricks.as_strided(whole[..., 4000:], (1, 1, 1, 97), whole.strides)
        self.assertIsNone(self.dev.memory.find(past))

    def test_memory_goes_with_its_arrays(self):
        def mapped():
            with open(f"/proc/{self.daemon.process.pid}/maps", encoding="ascii") as maps:
                return sum("memfd:npumem" in line for line in maps)

        before, fds = mapped(), len(os.listdir("/proc/self/fd"))
        arrays = [self.dev.empty((1, 1, 1, 4096), "fp32") for _ in range(5)]
        self.dev.stat()
        self.assertEqual(mapped(), before + 5)
        part = arrays[0][..., 8:16]
        del arrays
        self.dev.stat()
        wait_for(lambda: mapped() == before + 1)
        part[...] = 3  # still there
        del part
        self.dev.stat()
        wait_for(lambda: mapped() == before)
        self.assertEqual(len(os.listdir("/proc/self/fd")), fds)

    def test_more_than_one_may_share(self):
        with npumem.spawn("--limit", "segment_bytes=8192") as dev:
            kept = dev.empty((1, 1, 1, 4096), "int8")
            with self.assertRaises(npumem.Refused) as caught:
                dev.empty((1, 1, 1, 65536), "int8")
            self.assertEqual(caught.exception.status, npumem.Status.RESOURCE_EXHAUSTED)
            self.assertEqual(kept.size, 4096)


class Large(Case):
    def test_more_than_a_frame(self):
        array = np.arange(5 << 20, dtype=np.int32)[: 16 * 512 * 600].reshape(1, 16, 512, 600)
        with npumem.spawn("--npus", "16", "--npu-bytes", "4194304", timeout=SECONDS) as dev:
            x = dev.alloc("x", array)
            np.testing.assert_array_equal(x.read(), array)
            with self.assertRaisesRegex(ValueError, "16777216 go into one"), dev.submit() as batch:
                batch.write(x, array)
            fortran = np.zeros_like(array, order="F")
            x.read(fortran)
            np.testing.assert_array_equal(fortran, array)


class Warnings(Case):
    def test_damage_is_told_at_the_callers_line(self):
        with npumem.spawn("--npus", "4", "--npu-bytes", "1024", "--allow-unchecked-reuse", timeout=SECONDS) as dev:
            shape = (1, 5, 4, 8)
            x = dev.alloc("x", np.full(shape, 3), dtype="fx8", frac_bits=4)
            y = dev.alloc("y", shape=shape, dtype="fx8", frac_bits=4)
            u = dev.alloc("u", shape=(1, 3, 4, 8), dtype="int8", address=1408, reuse="unchecked")
            u.fill(7)
            with self.assertWarnsRegex(npumem.DeviceWarning, "destroyed"):
                done = dev.run("relu", in_=x, out=y, relu="gen")
            self.assertEqual([(one.name, one.total_bytes, one.npu) for one in done.destroyed], [("u", 96, 1)])
            self.assertEqual(u.state, "damaged")
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                u.read()
            self.assertEqual([one.filename for one in caught], [__file__])
            self.assertIn("damaged", str(caught[0].message))


if __name__ == "__main__":
    unittest.main()
