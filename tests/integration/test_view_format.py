"""Views with other frac_bits: the same elements, which stand for other numbers."""

import json
import os
import unittest

import npumem
import numpy as np
from npumem import reference
from state import StateTestCase
from support import TestCase, alloc, dims, fill, pb, read, ref, run

RELU = [pb.Param(key=pb.PARAM_RELU, values=[2])]


def view(base, **members):
    return {"view": pb.ViewRequest(tensor=ref(base), **members)}


class Wire(TestCase):
    options = ("--npus", "8")

    def setUp(self):
        super().setUp()
        self.one = self.client()
        self.x = self.one.alloc("x", (1, 8, 4, 4), pb.FX8, frac_bits=4)
        self.one.call(**fill(self.x, 24))

    def refused(self, status, words, **call):
        answer = self.one.ask(**call)
        self.assertEqual(answer.status, status, answer)
        self.assertIn(words, answer.message)
        self.assertEqual([name for name in self.one.names() if name], ["x"])

    def test_refusals(self):
        for frac_bits in (-1, 128, 2**62, -(2**63)):
            self.refused(pb.INVALID, f"frac_bits is {frac_bits}, but must be 0 to 127", **view("x", name="v", frac_bits=frac_bits))
        one = "a view is a slice"
        self.refused(pb.INVALID, one, **view("x", name="v"))
        self.refused(pb.INVALID, one, **view("x", name="v", frac_bits=1, shape=dims(1, 8, 2, 8)))
        self.refused(pb.INVALID, one, **view("x", name="v", frac_bits=1, to=dims(1, 8, 2, 4)))
        self.refused(pb.INVALID, one, view=pb.ViewRequest(tensor=ref("x"), frac_bits=1, **{"from": dims(0, 0, 0, 0)}))
        self.refused(pb.NOT_FOUND, "nobody", **view("nobody", frac_bits=1))
        self.one.alloc("", (1, 8, 4, 4), pb.INT8)
        for dtype, name in ((pb.INT8, "int8"), (pb.FP32, "fp32"), (pb.UINT16, "uint16")):
            tensor = self.one.alloc("", (1, 8, 4, 4), dtype)
            self.refused(pb.INVALID, f"{name} has no frac_bits", **view(tensor, name="v", frac_bits=1))

    def test_bytes_are_shared(self):
        v = self.one.call(**view("x", name="v", frac_bits=2)).tensor
        self.assertEqual((v.place.frac_bits, v.place.dtype), (2, pb.FX8))
        self.assertEqual(self.one.read(v.handle), bytes([24] * 128))
        self.one.call(**fill(v, 7))
        self.assertEqual(self.one.read(self.x.handle), bytes([7] * 128))
        self.assertEqual(self.one.call(**view(v, frac_bits=0)).tensor.place.frac_bits, 0)
        self.assertEqual(self.one.call(**view(v, to=dims(1, 4, 2, 2))).tensor.place.frac_bits, 2)
        self.assertEqual(self.one.call(**view(v, shape=dims(1, 8, 2, 8))).tensor.place.frac_bits, 2)

    def test_numbers_are_others(self):
        """relu gives 24 / 16 in 6 fractional bits: 96. Of the view, with 2 of them, 24 / 4: too much, and in place."""
        y = self.one.alloc("", (1, 8, 4, 4), pb.FX8, frac_bits=6)
        v = self.one.call(**view("x", frac_bits=2)).tensor
        for of, want, saturated in (("x", 96, 0), (v, 127, 128)):
            done = self.one.call(**run(pb.RELU, RELU, in_=of, out=y)).done
            self.assertEqual((self.one.read(y.handle), done.saturated), (bytes([want] * 128), saturated))
        self.one.call(**run(pb.RELU, RELU, in_=v, out=self.x))
        self.assertEqual(self.one.read(self.x.handle), bytes([96] * 128))

    def test_of_each_layout(self):
        for spec in ({"layout": pb.COMPACT}, {"mode": pb.MODE_4N}, {"layout": pb.STRIDED, "stride": dims(64, 32, 8, 1)}):
            base = self.one.call(**alloc("", (5, 16, 4, 4), pb.FX8, frac_bits=3, start_npu=3, **spec)).allocated.tensors[0]
            data = bytes(range(256)) * 5
            self.one.write(base.handle, data)
            v = self.one.call(**view(base, frac_bits=7)).tensor
            self.assertEqual(self.one.read(v.handle), data, spec)
            self.one.call(**run(pb.RELU, RELU, in_=base, out=v))
            want = [min(max(one if one < 128 else 0, 0) * 16, 127) for one in data]
            self.assertEqual(list(self.one.read(base.handle)), want, spec)

    def test_of_a_matrix(self):
        spec = pb.Spec(dtype=pb.FX16, frac_bits=3, layout=pb.MATRIX, rows=3, cols=21)
        base = self.one.call(alloc=pb.AllocRequest(tensors=[pb.Allocation(spec=spec)])).allocated.tensors[0]
        self.one.write(base.handle, bytes(range(126)))
        v = self.one.call(**view(base, frac_bits=5)).tensor
        self.assertEqual((v.place.rows, v.place.cols, v.place.frac_bits), (3, 21, 5))
        self.assertEqual(self.one.read(v.handle), bytes(range(126)))

    def test_it_moves_with_its_base(self):
        hole = self.one.alloc("", (1, 8, 64, 64))
        base = self.one.alloc("", (1, 8, 4, 4), pb.FX8, frac_bits=4)
        self.one.call(**fill(base, 5))
        v = self.one.call(**view(base, frac_bits=1)).tensor
        self.one.call(free=pb.FreeRequest(tensors=[ref(hole)]))
        self.one.call(compact=pb.CompactRequest())
        self.assertEqual(self.one.call(open=pb.OpenRequest(tensor=ref(v))).tensor.place.frac_bits, 1)
        self.assertEqual(self.one.read(v.handle), bytes([5] * 128))


class Clients(TestCase):
    def test_python(self):
        device = npumem.connect(self.daemon.path)
        self.addCleanup(device.close)
        values = np.arange(-64, 64).reshape(1, 8, 4, 4) / 16
        x = device.alloc("x", values, dtype="fx8", frac_bits=4)
        v = x.with_frac_bits(6, "v")
        self.assertTrue(np.array_equal(v.read(real=True), values / 4))
        y = device.alloc(shape=x.shape, dtype="fx16", frac_bits=9)
        device.run("convert_tensor", in_=v, out=y)
        self.assertTrue(np.array_equal(y.read(real=True), values / 4))

    def test_command_line(self):
        self.ctl("alloc", "x", "--shape", "1,8,4,4", "--dtype", "fx8", "--frac-bits", "4")
        self.assertIn("v is a view of x", self.ctl("view", "v=x", "--frac-bits", "2"))
        self.assertEqual(json.loads(self.ctl("--json", "show", "v"))["frac_bits"], 2)
        self.ctl("view", "w=x[0:1]", "--frac-bits", "2", code=2, says="one of ranges")
        self.ctl("view", "w=x", "--frac-bits", "200", code=1, says="must be 0 to 127")
        self.ctl("view", "w=x", "--frac-bits", "two", code=2, says="--frac-bits")

    NETWORK = [
        {"alloc": "x", "shape": [1, 4, 2, 2], "dtype": "fx8", "frac_bits": 4, "file": "x.npy"},
        {"view": "v", "of": "x", "frac_bits": 6},
        {"view": "s", "of": "v", "from": [0, 1, 0, 0], "to": [1, 3, 2, 2]},
        {"alloc": "y", "shape": [1, 2, 2, 2], "dtype": "fx8", "frac_bits": 4},
        {"run": "relu", "in": "s", "out": "y"},
        {"read": "y", "file": "y.npy"},
    ]

    def test_networks(self):
        """npumemctl, its plan and costs, and the specification's own reading of the file."""
        x = np.arange(-8, 8, dtype=np.int8).reshape(1, 4, 2, 2) * 8
        np.save(os.path.join(self.daemon.directory, "x.npy"), x)
        text = json.dumps(self.NETWORK)
        plan = json.loads(self.ctl("--json", "plan", "-", text=text))
        self.assertTrue(plan["fits"] and plan["sums_complete"])
        self.assertEqual([one["costs"]["local_read_bytes"] for one in plan["operations"] if one["what"].startswith("run")], [8])
        self.ctl("submit", "-", text=text)
        want = np.rint(x[:, 1:3] / 4).astype(np.int8)
        self.assertTrue(np.array_equal(np.load(os.path.join(self.daemon.directory, "y.npy")), want))
        path = os.path.join(self.daemon.directory, "net.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"operations": self.NETWORK}, file)
        for says, wrong in (("a view takes", {"frac_bits": 6, "shape": [1, 4, 1, 4]}), ("128", {"frac_bits": 128})):
            self.ctl("submit", "-", code=1, says=says, text=json.dumps([self.NETWORK[0], {"view": "v", "of": "x"} | wrong]))
        told = reference.network(path)
        self.assertEqual(told.tensors["v"].frac_bits, 6)
        self.assertTrue(np.array_equal(told.tensors["y"].values, want))
        batch = json.loads(self.ctl("--json", "plan", path, "--max-batch", "x"))
        self.assertGreater(batch["max_batch"], 1)


class State(StateTestCase):
    def test_it_comes_back(self):
        one = self.client()
        one.alloc("x", (1, 8, 4, 4), pb.FX8, frac_bits=4)
        one.alloc("i", (1, 8, 4, 4), pb.INT8)
        one.call(**fill("x", 9))
        one.call(**view("x", name="v", frac_bits=11))
        one.call(**view("v", name="s", to=dims(1, 4, 2, 2)))
        one.call(**view("v", name="r", shape=dims(1, 8, 2, 8)))
        one.call(**view("i", name="j", to=dims(1, 4, 2, 2)))
        for terminate in (False, True):
            self.restart(terminate=terminate)
            one = self.client()
            self.assertEqual(one.names(), ["i", "j", "r", "s", "v", "x"])
            for name, frac_bits in (("x", 4), ("v", 11), ("s", 11), ("r", 11)):
                self.assertEqual(one.call(open=pb.OpenRequest(tensor=ref(name))).tensor.place.frac_bits, frac_bits, name)
            self.assertEqual(one.call(**read("v")).done.data, bytes([9] * 128))
            self.assertEqual(one.call(**read("s")).done.data, bytes([9] * 16))


if __name__ == "__main__":
    unittest.main()
