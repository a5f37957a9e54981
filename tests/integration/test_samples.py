"""submit --samples: a network on many samples, with a list that the daemon keeps."""

import io
import json
import os
import unittest
import zipfile

import numpy as np

from test_network import Network

BIG = 64 * 1024  # of an NPU, a tensor


def fixed(shape, **more):
    return {"shape": shape, "dtype": "fx8", "frac_bits": 4, **more}


class Samples(Network):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(1)
        self.x = random.integers(-20, 20, (7, 1, 3, 4, 5)).astype(np.float32) / 16
        self.z = random.integers(-20, 20, (7, 1, 3, 4, 5)).astype(np.float32) / 16
        self.w = random.integers(-20, 20, (1, 3, 4, 5)).astype(np.int8)
        self.h = random.integers(-20, 20, (1, 3, 4, 5)).astype(np.int8)
        for name in "xzwh":
            self.save(f"{name}.npy", getattr(self, name))
        self.save("one.npy", self.x[0])

    def network(self, name="net.json", w=None, **tensors):
        """y = w + x, and h + x in h, which begins with its file for each sample."""
        shape = [1, 3, 4, 5]
        net = {
            "tensors": {
                "x": fixed(shape, file="one.npy", quantize=True),
                "w": w or fixed(shape, file="w.npy"),
                "h": fixed(shape, file="h.npy"),
                "y": fixed(shape),
                **tensors,
            },
            "operations": [
                {"run": "eltwise_add", "in1": "x", "in2": "w", "out": "y"},
                {"run": "eltwise_add", "in1": "x", "in2": "h", "out": "h"},
                {"read": "y", "file": "y.npy", "dequantize": True},
                {"read": "h", "file": "h_out.npy", "dequantize": True},
            ],
        }
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            json.dump(net, file)
        return net

    def calls(self):
        counts = {one["call"]: one["count"] for one in json.loads(self.ctl("--json", "stat"))["calls"]}
        return [counts.get(name, 0) for name in ("keep", "unkeep", "alloc")]

    def check(self, x=None):
        x = self.x if x is None else x
        np.testing.assert_array_equal(self.load("y.npy").reshape(x.shape), x + self.w / 16)
        np.testing.assert_array_equal(self.load("h_out.npy").reshape(x.shape), x + self.h / 16)

    def test_a_list_is_kept(self):
        self.network()
        said = json.loads(self.ctl("--json", "submit", "net.json", "--samples", "x.npy"))
        self.check()
        self.assertEqual(self.calls(), [1, 1, 4])
        self.assertEqual([one["quantized"] for one in said["operations"]].count(0), len(said["operations"]))
        self.assert_empty()

    def test_names_of_inputs(self):
        self.network(z=fixed([1, 3, 4, 5], file="one.npy", quantize=True))
        self.ctl("submit", "net.json", "--samples", "x=x.npy,nope=z.npy", code=1, says='--samples: the network has no input "nope"; it has: x')
        self.network()
        self.ctl("submit", "net.json", "--samples", "nope=x.npy", code=1, says='--samples: the network has no input "nope"; it has: x')
        os.rename(os.path.join(self.folder, "x.npy"), os.path.join(self.folder, "a=b.npy"))
        self.ctl("submit", "net.json", "--samples", "a=b.npy")
        self.check()

    def test_few_samples(self):
        self.network()
        for n in (1, 2):
            self.save("few.npy", self.x[:n])
            self.ctl("submit", "net.json", "--samples", "few.npy")
            self.check(self.x[:n])
        self.assertEqual(self.calls()[0], 0)
        self.assert_empty()

    def test_what_is_wrong_with_one_sample(self):
        """It is told of that one's operation; what the samples before it gave is in the files."""
        self.network()
        bad = self.x.copy()
        bad[4, 0, 0, 0, 0] = np.nan
        self.save("bad.npy", bad)
        self.ctl("submit", "net.json", "--samples", "bad.npy", code=1, says="NaN")
        self.assert_empty()

    def test_without_room_for_all(self):
        """Two large tensors, of which one goes before the other comes: constants alone stay, or nothing does."""
        shape, large = [1, 1, 1, BIG], {"b1": fixed([1, 1, 1, BIG]), "b2": fixed([1, 1, 1, BIG])}
        net = self.network(**large, c=fixed(shape, file="c.npy"))
        self.save("c.npy", np.full(shape, 3, np.int8))
        for out, value in (("b1", 5), ("b2", 7)):
            net["operations"] += [
                {"fill": out, "value": value},
                {"run": "eltwise_add", "in1": out, "in2": "c", "out": out},
                {"read": out, "file": f"{out}.npy"},
            ]
        with open(os.path.join(self.folder, "net.json"), "w", encoding="utf-8") as file:
            json.dump(net, file)
        for times in (2, 3, 4):
            self.ctl(f"--spawn=--npu-bytes {times * BIG + 8192}", "submit", "net.json", "--samples", "x.npy")
            self.check()
            for out, value in (("b1", 8), ("b2", 10)):
                got = self.load(f"{out}.npy")
                self.assertEqual((got.size, got.min(), got.max()), (len(self.x) * BIG, value, value), times)
        self.ctl(f"--spawn=--npu-bytes {BIG}", "submit", "net.json", "--samples", "x.npy", code=1, says="--npu-bytes")

    def test_several_inputs(self):
        self.network(w=fixed([1, 3, 4, 5], file="one.npy", quantize=True))
        self.ctl("submit", "net.json", "--samples", "w=z.npy,x=x.npy")
        np.testing.assert_array_equal(self.load("y.npy").reshape(self.x.shape), self.x + self.z)
        self.assertEqual(self.calls()[0], 1)
        np.savez(os.path.join(self.folder, "both.npz"), x=self.x.astype(np.float32), w=self.z.astype(np.float32))
        for words in ("both.npz", "w=both.npz,x=both.npz", "w=z.npy,x=both.npz"):
            os.remove(os.path.join(self.folder, "y.npy"))
            self.ctl("submit", "net.json", "--samples", words)
            np.testing.assert_array_equal(self.load("y.npy").reshape(self.x.shape), self.x + self.z)
        np.savez(os.path.join(self.folder, "one.npz"), x=self.x.astype(np.float32))
        self.ctl("submit", "net.json", "--samples", "one.npz", code=1, says='there is no array "w" in it; there are: x')
        # A header that says more than there is: the next array is no part of this one.
        with zipfile.ZipFile(os.path.join(self.folder, "cut.npz"), "w") as archive:
            for name, array in (("x", self.x.astype(np.float32)), ("w", self.z.astype(np.float32))):
                data = io.BytesIO()
                np.save(data, array)
                archive.writestr(f"{name}.npy", data.getvalue()[: -array[0].nbytes if name == "x" else None])
        self.ctl("submit", "net.json", "--samples", "cut.npz", code=1, says="the archive has another number of bytes")
        np.savez_compressed(os.path.join(self.folder, "packed.npz"), x=self.x, w=self.z)
        self.ctl("submit", "net.json", "--samples", "packed.npz", code=1, says="is packed; numpy.savez writes it as it is")
        self.save("six.npy", self.z[:6])
        for text, says in (
            ("x.npy", "give TENSOR=FILE"),
            ("x=x.npy", "also for w"),
            ("x=x.npy,w=six.npy", "samples, and another input has"),
            ("x=x.npy,w=" + 5000 * "w", "too long"),
            ("x=x.npy,w=none.npy", "No such file"),
        ):
            self.ctl("submit", "net.json", "--samples", text, code=1, says=says)
        self.assert_empty()

    def test_no_input(self):
        self.network(x=fixed([1, 3, 4, 5], file="w.npy"))
        self.ctl("submit", "net.json", "--samples", "x.npy", code=1, says="none is an input")


if __name__ == "__main__":
    unittest.main()
