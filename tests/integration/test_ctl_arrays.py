"""npumemctl's arrays: whatever NumPy writes becomes a tensor, and is compared with one."""

import json
import os
import subprocess
import unittest

import numpy as np

from support import NPUMEMCTL, TestCase



class Arrays(TestCase):
    options = ("--npus", "4", "--npu-bytes", "4096")

    def run_ctl(self, *words):
        environment = dict(os.environ, NPUMEM_SOCKET=self.daemon.path)
        return subprocess.run([NPUMEMCTL, *words], capture_output=True, text=True, env=environment, cwd=self.daemon.directory,
                              timeout=60, check=False)

    def ctl(self, line, code=0, says=""):
        result = self.run_ctl(*line.split())
        self.assertEqual(result.returncode, code, (line, result.stdout, result.stderr))
        self.assertIn(says, result.stderr if code else result.stdout, line)
        return result.stdout

    def save(self, name, array):
        np.save(self.at(name), array)

    def at(self, name):
        return os.path.join(self.daemon.directory, name)

    def read(self, name):
        self.ctl(f"read {name} back.npy")
        return np.load(self.at("back.npy"))

    def load(self, line):
        return json.loads(self.ctl(f"--json load {line}"))


class Load(Arrays):
    def test_whatever_numpy_writes(self):
        array = np.arange(-60, 60).reshape(2, 3, 4, 5)
        for i, (dtype, order) in enumerate((d, o) for d in ("i1", "<i2", ">i2", ">i4", "<i8", ">i8") for o in "CF"):
            self.save("a.npy", np.array(array, dtype=dtype, order=order))
            self.load(f"t{i} a.npy --dtype int16")
            np.testing.assert_array_equal(self.read(f"t{i}"), array)
            self.ctl(f"diff t{i} a.npy", says="all 120 elements are the same")
            self.ctl(f"free t{i}")
        for i, dtype in enumerate(("<f2", ">f2", "<f4", ">f4", "<f8", ">f8")):
            self.save("a.npy", np.asfortranarray((array / 4).astype(dtype)))
            done = self.load(f"r{i} a.npy --dtype fx8 --frac-bits 2")
            np.testing.assert_array_equal(self.read(f"r{i}"), array)
            self.assertEqual((done["elements"], done["saturated"]), (120, 0))
            self.ctl(f"diff r{i} a.npy")
            self.ctl(f"free r{i}")

    def test_half_numbers(self):
        array = np.array([0, -0.0, 2**-24, -(2**-14), 65504, 1 / 3, np.inf, np.nan], dtype="f2")
        self.save("a.npy", array)
        self.load("h a.npy --dtype fp32")
        np.testing.assert_array_equal(self.read("h").reshape(-1), array.astype("f4"))

    def test_shapes(self):
        for array, words, shape in (
            (np.zeros(7, "i1"), "", (1, 7, 1, 1)),
            (np.zeros((3, 4), "i1"), "", (3, 4, 1, 1)),
            (np.zeros((3, 4, 5), "i1"), "", (1, 3, 4, 5)),
            (np.zeros((2, 3, 4, 5), "i1"), "--perm 1,0,2,3", (3, 2, 4, 5)),
            (np.zeros(12, "i1"), "--shape 2,3,1,2", (2, 3, 1, 2)),
            (np.zeros((3, 8), "i1"), "--layout matrix", (3, 8)),
            (np.zeros((8, 3), "i1"), "--layout matrix --perm 1,0", (3, 8)),
        ):
            self.save("a.npy", array)
            self.load(f"t a.npy {words}")
            self.assertEqual(self.read("t").shape, shape)
            self.ctl("free t")

    def test_write_ignores_extents_of_1(self):
        """As a network's files do: a bias of (8,) for [1,8,1,1]."""
        bias = np.arange(8, dtype="i1")
        self.ctl("alloc b --shape 1,8,1,1 --dtype int8")
        for array in (bias, bias.reshape(8, 1), bias.reshape(1, 1, 8, 1, 1)):
            self.save("v.npy", array)
            self.ctl("fill b 0")
            self.ctl("write b v.npy", says="8 elements written")
            np.testing.assert_array_equal(self.read("b"), bias.reshape(1, 8, 1, 1))
            self.ctl("diff b v.npy", says="all 8 elements are the same")
        for array in (bias.reshape(2, 4), bias[:7], bias.reshape(2, 1, 4)):
            self.save("v.npy", array)
            self.ctl("write b v.npy", 1, "(1, 8, 1, 1) is expected")
        np.testing.assert_array_equal(self.read("b"), bias.reshape(1, 8, 1, 1))

    def test_write_takes_what_load_takes(self):
        array = np.arange(-12, 12).reshape(1, 2, 3, 4)
        self.ctl("alloc q --shape 1,2,3,4 --dtype fx8 --frac-bits 2")
        self.ctl("alloc f --shape 1,2,3,4 --dtype fp32")
        np.savez(self.at("a.npz"), a=array, b=array)
        for dtype in ("i1", ">i2", "<i8"):
            self.save("a.npy", np.asfortranarray(array.astype(dtype)))
            self.ctl("fill q 99")
            self.ctl("write q a.npy", says="24 elements written\n")
            np.testing.assert_array_equal(self.read("q"), array)
        self.ctl("fill q 99")
        self.ctl("write q a.npz:a")
        np.testing.assert_array_equal(self.read("q"), array)
        for dtype in ("<f2", ">f4", "<f8"):
            self.save("r.npy", (array / 4).astype(dtype))
            self.ctl("fill q 99")
            self.ctl("write q r.npy --quantize", says="24 elements written, 0 saturated\n")
            np.testing.assert_array_equal(self.read("q"), array)
            self.ctl("write f r.npy")
            np.testing.assert_array_equal(self.read("f"), array / 4)
        self.save("t.npy", array.transpose(0, 1, 3, 2))
        self.ctl("write q t.npy --perm 0,1,3,2")
        np.testing.assert_array_equal(self.read("q"), array)
        self.save("big.npy", array * 16)
        for line, says in (
            ("write q r.npy", "r.npy: the array has real numbers: --quantize rounds them to fx8 with 2 fractional bits"),
            ("write q a.npy --quantize", "a.npy: the array has integers; --quantize is for real numbers"),
            ("write q big.npy", "the element at (0, 0, 0, 0) is -192, which is not within fx8's -128 to 127"),
            ("write f a.npy", "the array has integers; fp32 takes real numbers"),
            ("write q a.npz", "has 2 arrays"),
        ):
            self.ctl(line, 1, says)
        np.testing.assert_array_equal(self.read("q"), array)

    def test_weights_of_another_order(self):
        weights = np.random.default_rng(7).normal(size=(6, 2, 3, 3)).astype("f4")
        self.save("w.npy", weights)
        place = self.load("w w.npy --dtype fx16 --frac-bits auto --perm 1,0,2,3 --rounding up")
        scaled = np.floor(weights.transpose(1, 0, 2, 3).astype("f8") * 2.0 ** place["frac_bits"] + 0.5)
        np.testing.assert_array_equal(self.read("w"), scaled)
        self.assertGreater(np.abs(scaled).max(), 2**14)
        self.ctl("diff w w.npy --perm 1,0,2,3 --within 0.001", says="within")
        self.ctl("diff w w.npy --perm 1,0,2,3", 1, "SNR")

    def test_rounding(self):
        self.save("a.npy", np.array([0.5, 1.5, -0.5, -1.5], "f4"))
        for rounding, expected in (("convergent", [0, 2, 0, -2]), ("up", [1, 2, 0, -1]), ("nearest", [1, 2, -1, -2])):
            self.load(f"t a.npy --dtype fx8 --frac-bits 0 --rounding {rounding}")
            self.assertEqual(self.read("t").reshape(-1).tolist(), expected)
            self.save("b.npy", np.array([0.5, 1.5, -0.5, -1.5], "f4").reshape(1, 4, 1, 1))
            self.ctl(f"write t b.npy --quantize --rounding {rounding}")
            self.assertEqual(self.read("t").reshape(-1).tolist(), expected)
            self.ctl("free t")

    def test_archives(self):
        one, two = np.arange(6, dtype="i1"), np.arange(8, dtype="<f4") / 8
        for save in (np.savez, np.savez_compressed):
            save(self.at("a.npz"), one=one, two=two)
            self.load("x a.npz:one")
            self.load("y a.npz:two.npy --dtype fx8 --frac-bits auto")
            self.assertEqual(self.read("x").reshape(-1).tolist(), one.tolist())
            self.ctl("diff y a.npz:two")
            self.ctl("load z a.npz", 1, "has 2 arrays")
            self.ctl("load z a.npz:three", 1, "there are: one, two")
            save(self.at("b.npz"), alone=one)
            self.load("z b.npz")
            self.ctl("free x y z")

    def test_bad_input(self):
        for name, array in (("reals", np.ones((1, 2, 2, 2), "f4")), ("ints", np.full((1, 2, 2, 2), 300)), ("nan", np.array([1, np.nan])),
                            ("five", np.zeros((1, 1, 1, 1, 1))), ("empty", np.zeros((0, 3))), ("huge", np.array([1e9])),
                            ("complex", np.zeros(3, "c8")), ("text", np.array(["a"]))):
            self.save(f"{name}.npy", array)
        for line, code, says in (
            ("t reals.npy --dtype int8", 1, "takes integers"),
            ("t reals.npy --dtype fx8", 2, "--frac-bits is missing"),
            ("t reals.npy --dtype fx8 --frac-bits automatic", 2, "--frac-bits"),
            ("t ints.npy", 2, "--dtype is missing"),
            ("t ints.npy --dtype int8", 1, "the element at (0, 0, 0, 0) is 300"),
            ("t ints.npy --dtype fx16 --frac-bits auto", 2, "real numbers"),
            ("t ints.npy --dtype fp32", 1, "takes real numbers"),
            ("t nan.npy --dtype fx8 --frac-bits 2", 1, "the element at (1,) is nan"),
            ("t nan.npy --dtype fx8 --frac-bits auto", 1, "NaN"),
            ("t huge.npy --dtype fx8 --frac-bits auto", 1, "without clipping"),
            ("t five.npy --dtype fx8 --frac-bits 2", 1, "an array of 5 dimensions"),
            ("t empty.npy --dtype fx8 --frac-bits 2", 1, "empty"),
            ("t complex.npy --dtype fx8 --frac-bits 2", 1, "<c8"),
            ("t text.npy --dtype fx8 --frac-bits 2", 1, "<U1"),
            ("t none.npy --dtype fx8", 1, "none.npy"),
            ("t reals.npy --dtype fx8 --frac-bits 2 --shape 1,2,2,3", 1, "8 elements"),
            ("t reals.npy --dtype fx8 --frac-bits 2 --shape 9223372036854775807,2,2,2", 1, "too many"),
            ("t reals.npy --dtype fx8 --frac-bits 2 --layout matrix", 1, "two dimensions"),
            ("t reals.npy --dtype fx8 --frac-bits 2 --perm 0,1,2", 1, "--perm"),
            ("t reals.npy --dtype fx8 --frac-bits 2 --perm 0,1,2,2", 1, "--perm"),
            ("t reals.npy --dtype fx8 --frac-bits 2 --perm 0,1,2,99", 1, "--perm"),
            ("t reals.npy --dtype fx8 --frac-bits 2 --rounding down", 2, "rounding"),
            ("t reals.npy --dtype fx8 --frac-bits 2 --start-npu 4", 1, "start NPU 4"),
        ):
            self.ctl(f"load {line}", code, says)
        self.ctl("alloc t --shape 1,2,2,2 --dtype fx8 --frac-bits auto", 2, "auto is for load")
        self.assertEqual(json.loads(self.ctl("ls --json"))["tensors"], [])


class Diff(Arrays):
    def test_what_differs(self):
        expected = np.arange(12, dtype="f4").reshape(1, 3, 2, 2)
        self.save("a.npy", expected)
        self.ctl("load t a.npy --dtype fx16 --frac-bits 4")
        self.assertEqual(json.loads(self.ctl("diff t a.npy --json"))["equal"], True)
        expected[0, 1, 0, 1] += 0.5
        expected[0, 2, 1, 1] -= 2
        self.save("a.npy", expected)
        self.ctl("diff t a.npy", 1, "[0,1,0,1] is 5, 5.5 is expected (NPU 1, offset 2); 2 of 12 differ, by up to 2")
        self.ctl("diff t a.npy --within 1.9", 1, "2 of 12 differ")
        self.ctl("diff t a.npy --within 2")
        result = json.loads(self.ctl("diff t a.npy --json", 1))
        self.assertEqual((result["equal"], result["differ"], result["largest_error"]), (False, 2, 2))
        self.assertEqual(result["first"], {"index": [0, 1, 0, 1], "is": 5.0, "expected": 5.5})
        is_, flat = np.arange(12.0), expected.reshape(-1).astype("f8")
        self.assertAlmostEqual(result["cosine"], is_ @ flat / np.linalg.norm(is_) / np.linalg.norm(flat))
        self.assertAlmostEqual(result["snr_db"], 10 * np.log10(flat @ flat / ((is_ - flat) @ (is_ - flat))))

    def test_integers_and_shapes(self):
        self.save("a.npy", np.arange(6, dtype="i4"))
        self.ctl("load t a.npy --dtype fx8 --frac-bits 3")
        self.ctl("diff t a.npy")
        self.save("b.npy", np.arange(6).reshape(2, 3))
        self.ctl("diff t b.npy", 1, "shape (2, 3)")
        self.ctl("diff t none.npy", 1, "none.npy")
        self.ctl("diff u a.npy", 1, "u")
        self.ctl("diff t a.npy --within -1", 2, "--within")


class Formats(Arrays):
    def setUp(self):
        super().setUp()
        generator = np.random.default_rng(5)
        self.x, self.w = generator.normal(size=(1, 8, 6, 6)).astype("f4"), generator.normal(size=(4, 8, 3, 3)).astype("f4")
        self.save("x.npy", self.x)
        self.save("w.npy", self.w)

    def numeric(self, line):
        return json.loads(self.ctl(f"--json numeric {line}"))

    def judged(self, array, bits, frac_bits):
        """Rounded half to even, as the command does where nothing else is said."""
        scaled = np.round(array.astype("f8") * 2.0**frac_bits)
        fixed = np.clip(scaled, -(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        error = np.abs(fixed / 2.0**frac_bits - array)
        return int((fixed != scaled).sum()), error.max(), 10 * np.log10((array.astype("f8") ** 2).sum() / (error**2).sum())

    def test_candidates(self):
        data = self.numeric("formats x.npy --dtype fx8")["data"][0]
        self.assertEqual((data["elements"], data["from"], len(data["candidates"])), (288, "x.npy", 7))
        for candidate in data["candidates"]:
            clipped, largest, snr = self.judged(self.x, 8, candidate["frac_bits"])
            self.assertEqual(candidate["clipped"], clipped)
            self.assertAlmostEqual(candidate["largest_error"], largest)
            self.assertAlmostEqual(candidate["snr_db"], snr)
            self.assertEqual(clipped > 0, candidate["frac_bits"] > data["frac_bits"])
        self.ctl("load x x.npy --dtype fx8 --frac-bits auto")
        self.assertEqual(json.loads(self.ctl("show x --json"))["frac_bits"], data["frac_bits"])
        own = self.numeric("formats x --dtype fx8")["data"][0]
        self.assertIsNone(next(c for c in own["candidates"] if c["frac_bits"] == data["frac_bits"])["snr_db"])

    def test_actual_weights(self):
        words = "advise conv2d --dtype fx8 in=x.npy weights=w.npy:Q.5:perm=1,0,2,3"
        advice = self.numeric(words)
        total = int(np.abs(np.clip(np.round(self.w.astype("f8") * 32), -128, 127)).sum(axis=(1, 2, 3)).max())
        self.assertIn(f"weights that add up to {total} cannot overflow", advice["sums"][0]["advice"])
        self.assertEqual([data["role"] for data in advice["data"]], ["in", "weights"])
        shapes = self.numeric(f"advise conv2d --dtype fx8 in=1,8,6,6:Q.{advice['data'][0]['frac_bits']} weights=8,4,3,3:Q.5:sum={total}")
        del advice["data"]
        self.assertEqual(advice, shapes)
        text = self.ctl("numeric " + words.replace("--dtype", "--rounding up --dtype"))
        self.assertIn("> Q.5", text)

    def test_sums_that_overflow(self):
        # 2^24 / 128 = 131072 products of the ends reach 2^31: so many inputs, all at the lower end.
        self.save("many.npy", np.full((140000, 1), -1.0, "f4"))
        advice = self.numeric("advise fully_connected --dtype fx8 in=1,140000,1,1:Q.7 weights=many.npy")
        by_format = {c["frac_bits"]: c["sums"] for c in advice["data"][0]["candidates"]}
        self.assertEqual((by_format[5], by_format[6], by_format[7]), ("cannot overflow", "cannot overflow", "can overflow"))
        self.assertTrue(advice["can_overflow"])

    def test_tensors(self):
        self.ctl("load w w.npy --dtype fx16 --frac-bits 9 --perm 1,0,2,3")
        data = self.numeric("advise conv2d --dtype fx16 in=x.npy weights=w")["data"]
        self.assertEqual((data[1]["from"], data[1]["frac_bits"]), ("w", 9))

    def test_bad_input(self):
        self.save("ints.npy", np.arange(8))
        self.save("nan.npy", np.array([np.nan]))
        with open(self.at("x.npy"), "rb") as whole, open(self.at("cut.npy"), "wb") as cut:
            cut.write(whole.read()[:-1])
        for line, code, says in (
            ("formats x.npy", 2, "--dtype"),
            ("formats x.npy --dtype int8", 2, "int8"),
            ("formats none.npy --dtype fx8", 1, "none.npy"),
            ("formats nan.npy --dtype fx8", 1, "NaN"),
            ("formats ints.npy --dtype fx8", 1, "integers"),
            ("formats cut.npy --dtype fx8", 1, "the file ends in its data"),
            ("formats x.npy:Q.128 --dtype fx8", 2, "Q.128"),
            ("formats x.npy w.npy --dtype fx8", 2, "formats takes"),
            ("formats x.npy --dtype fx8 --rounding down", 2, "rounding"),
            ("sum Q3.4 --n 3 --rounding up", 2, "--rounding"),
            ("formats nobody --dtype fx8", 1, "nobody"),
            ("advise conv2d --dtype fx8 in=x.npy weights=w.npy", 1, "weights"),
            ("advise conv2d --dtype fx8 in=x.npy weights=none.npy", 1, "none.npy"),
            ("advise relu --dtype fx8 in=x.npy", 1, "relu"),
        ):
            self.ctl(f"numeric {line}", code, says)
        self.ctl("numeric formats ints.npy:Q.2 --dtype fx8", says="exact")


if __name__ == "__main__":
    unittest.main()
