"""Runs on one's own tensors as golden vectors: what was recorded passes, anywhere; an integer altered does not."""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from support import NPUMEMCTL, SECONDS, TestCase, dims, pb

CODES = {pb.FX8: "b", pb.FX16: "h", pb.INT8: "b", pb.UINT8: "B", pb.FP32: "f"}


def run(*words):
    ran = subprocess.run([NPUMEMCTL, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
    return ran.returncode, ran.stdout, ran.stderr


class Record(TestCase):
    def setUp(self):
        super().setUp()
        self.random = random.Random(1)
        self.folder = tempfile.mkdtemp(prefix="npumem-record-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.npumem = self.client()

    def tensor(self, name, shape, dtype=pb.FX16, frac_bits=8, values=None, **members):
        """A named tensor; with random data, or values, or none where values is False."""
        if dtype not in (pb.FX8, pb.FX16):
            frac_bits = None
        if "rows" in members:
            spec = pb.Spec(dtype=dtype, frac_bits=frac_bits, layout=pb.MATRIX, **members)
            request = pb.AllocRequest(tensors=[pb.Allocation(name=name, spec=spec)])
            self.npumem.call(alloc=request)
            n = members["rows"] * members["cols"]
        else:
            self.npumem.alloc(name, shape, dtype, frac_bits, **members)
            n = shape[0] * shape[1] * shape[2] * shape[3]
        if values is False:
            return []
        low = 0 if dtype == pb.UINT8 else -100
        values = values or [self.random.randint(low, 100) for _ in range(n)]
        data = struct.pack(f"<{n}{CODES[dtype]}", *values)
        self.npumem.call(write=pb.WriteRequest(tensor=pb.Ref(name=name), data=data))
        return values

    def record(self, *words):
        return run("--socket", self.daemon.path, "conform", "--record", self.folder, *words)

    def recorded(self, *words):
        """Records; the one case of the answer."""
        code, out, complaint = run("--json", "--socket", self.daemon.path, "conform", "--record", self.folder, *words)
        self.assertEqual((code, complaint), (0, ""))
        answer = json.loads(out)
        self.assertEqual(sorted(answer), ["case", "file"])
        self.assertEqual(answer["file"], f"{self.folder}/{words[0]}.json")
        with open(answer["file"]) as file:
            family = json.load(file)
        self.assertEqual((family["family"], family["format"]), (words[0], 1))
        self.assertEqual(family["source"], "recorded by npumemctl")
        self.assertEqual(family["case_count"], len(family["cases"]))
        self.assertEqual(sorted(os.listdir(self.folder)), [f"{words[0]}.json"])
        case = family["cases"][-1]
        self.assertEqual((case["name"], case["tags"]), (answer["case"], ["recorded"]))
        return case

    def read(self, name):
        n = CODES[self.npumem.call(open=pb.OpenRequest(tensor=pb.Ref(name=name))).tensor.place.dtype]
        data = self.npumem.call(read=pb.ReadRequest(tensor=pb.Ref(name=name))).done.data
        return list(struct.unpack(f"<{len(data) // struct.calcsize(n)}{n}", data))

    def assert_passes(self, n=1):
        """In every layout, at other start NPUs, packed, and by the specification; and not with an integer altered."""
        ran = subprocess.run([sys.executable, "-B", "-m", "npumem.reference", self.folder], capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual((ran.returncode, ran.stdout), (0, f"{n} passed, 0 failed\n"), ran.stderr)
        options = ("--layouts", "all", "--start-npu", "0,5,63", "--mode", "plain,4n,2n")
        for extra in ((), options):
            code, out, complaint = run("--spawn", "conform", self.folder, *extra)
            self.assertEqual((code, out.splitlines()[-1]), (0, f"{n} passed, 0 failed"), complaint)
        (name,) = os.listdir(self.folder)
        with open(os.path.join(self.folder, name)) as file:
            family = json.load(file)
        with tempfile.TemporaryDirectory() as other:
            out = family["cases"][-1]["tensors"]["out"]["data"]
            out[len(out) // 2] += -1 if out[len(out) // 2] else 1
            with open(os.path.join(other, name), "w") as file:
                json.dump(family, file)
            code, out, _ = run("--spawn", "conform", other)
            self.assertEqual((code, out.splitlines()[-1]), (1, f"{n - 1} passed, 1 failed"))

    def test_conv2d(self):
        x = self.tensor("x", (2, 3, 5, 6), frac_bits=6)
        w = self.tensor("w", (3, 4, 3, 2), pb.FX8, 5)
        b = self.tensor("b", (1, 4, 1, 1), pb.FX8, 6)
        self.tensor("y", (2, 4, 5, 3), frac_bits=7, values=False)
        words = ("conv2d", "in=x", "weights=w", "bias=b", "out=y", "stride=1,2", "padding=1,1,0,0", "relu=6")
        case = self.recorded(*words, "rounding=up")
        self.assertEqual(case["name"], "conv2d/fx16_fx8_fx8/recorded1@up")
        self.assertEqual((case["kernel"], case["dtype"], case["rounding"]), ("conv2d", "fx16_fx8_fx8", "up"))
        padding = {"top": 1, "bottom": 1, "left": 0, "right": 0}
        self.assertEqual(case["params"], {"stride": [1, 2], "padding": padding, "relu": "6"})
        oihw = [w[((i * 4 + o) * 3 + h) * 2 + v] for o in range(4) for i in range(3) for h in range(3) for v in range(2)]
        expected = {
            "in": ("input", "fx16", ["N", "C", "H", "W"], [2, 3, 5, 6], 6, x),
            "weights": ("weights", "fx8", ["O", "I", "H", "W"], [4, 3, 3, 2], 5, oihw),
            "bias": ("bias", "fx8", ["O"], [4], 6, b),
            "out": ("output", "fx16", ["N", "C", "H", "W"], [2, 4, 5, 3], 7, self.read("y")),
        }
        for role, values in expected.items():
            keys = ("role", "dtype", "dims", "shape", "frac_bits", "data")
            self.assertEqual(case["tensors"][role], dict(zip(keys, values)), role)
        self.assert_passes()
        # The device's rounding where none is given; the earlier case stays.
        case = self.recorded(*words)
        self.assertEqual(case["name"], "conv2d/fx16_fx8_fx8/recorded2@convergent")
        self.assert_passes(2)

    def test_fully_connected_with_matrices(self):
        self.tensor("x", (1, 12, 1, 1))
        m = self.tensor("m", None, rows=12, cols=40, w=8)
        self.tensor("y", None, rows=1, cols=40, values=False)
        case = self.recorded("fully_connected", "in=x", "weights=m", "out=y")
        weights = case["tensors"]["weights"]
        self.assertEqual((weights["dims"], weights["shape"]), (["M", "N"], [40, 12]))
        self.assertEqual(weights["data"], [m[k * 40 + o] for o in range(40) for k in range(12)])
        self.assertEqual((case["tensors"]["in"]["dims"], case["tensors"]["out"]["dims"]), (["N"], ["M"]))
        self.assert_passes()

    def test_relu_on_a_view_in_place(self):
        x = self.tensor("x", (1, 4, 3, 4), pb.FX8)
        ends = {"from": dims(0, 1, 0, 1), "to": dims(1, 4, 2, 3)}
        self.npumem.call(view=pb.ViewRequest(name="part", tensor=pb.Ref(name="x"), **ends))
        before = [x[(c * 3 + h) * 4 + w] for c in range(1, 4) for h in range(2) for w in range(1, 3)]
        case = self.recorded("relu", "in=part", "out=part", "relu=gen")
        self.assertEqual(case["tensors"]["in"]["shape"], [1, 3, 2, 2])
        self.assertEqual(case["tensors"]["in"]["data"], before)
        self.assertEqual(case["tensors"]["out"]["data"], [max(0, value) for value in before])
        self.assert_passes()

    def test_packed_add(self):
        a = self.tensor("a", (5, 3, 2, 2), pb.INT8, mode=pb.MODE_4N)
        b = self.tensor("b", (5, 3, 2, 2), pb.INT8, mode=pb.MODE_4N)
        self.tensor("y", (5, 3, 2, 2), pb.INT8, values=False, mode=pb.MODE_4N)
        case = self.recorded("packed_add", "in1=a", "in2=b", "out=y", "rshift=1")
        self.assertEqual(case["name"], "packed_add/int8/recorded1@up")
        self.assertEqual(case["params"], {"rshift": 1})
        for tensor in case["tensors"].values():
            self.assertEqual(tensor["mode"], "4n")
            self.assertNotIn("frac_bits", tensor)
        self.assertEqual(case["tensors"]["out"]["data"], [(i + k + 1) >> 1 for i, k in zip(a, b)])
        self.assert_passes()

    def test_others(self):
        self.tensor("x", (1, 3, 2, 4))
        self.tensor("p", (1, 4, 3, 2), values=False)
        self.tensor("k", (1, 3, 1, 2), pb.INT32, values=False)
        case = self.recorded("permute", "in=x", "out=p", "perm=2,0,1")
        self.assertEqual((case["params"], case["tensors"]["out"]["dims"]), ({"perm_dim": [2, 0, 1]}, ["e0", "e1", "e2"]))
        self.assert_passes()
        os.remove(os.path.join(self.folder, "permute.json"))
        case = self.recorded("argmax", "in=x", "out=k", "axis=c", "topk=2")
        self.assertEqual((case["params"], case["tensors"]["out"]["dims"]), ({"axis": "C", "topk": 2}, ["C", "K"]))
        self.assert_passes()

    def test_refusals(self):
        self.tensor("x", (1, 4, 1, 4), pb.FX8, values=[1] * 16)
        self.tensor("y", (1, 4, 1, 4), pb.FX8, values=[2] * 16)
        self.tensor("f", (1, 4, 1, 4), pb.FP32, values=[1.0] * 16)
        self.tensor("e", (1, 4, 1, 4), pb.FX8, values=False)
        path = os.path.join(self.folder, "relu.json")
        relu = ("relu", "in=x", "out=y")

        def refused(words, why, code=1):
            got, out, complaint = self.record(*words)
            self.assertEqual((got, out, complaint.count("\n")), (code, "", 1), complaint)
            self.assertIn(why, complaint)
            self.assertEqual(self.read("y"), [2] * 16)

        for words, why in (
            (("nothing", "in=x"), 'no kernel "nothing"'),
            (("relu", "in=x", "where=y"), 'no "where"'),
            (("relu", "in"), "neither role=NAME"),
            (relu + ("relu=7",), "relu"),
            (relu + ("--layouts", "all"), "--layouts has no meaning with --record"),
        ):
            refused(words, why, 2)
        refused(("relu", "in=x", "out=nowhere"), "nowhere")
        refused(("relu", "in=x"), "out")
        refused(("relu", "in=e", "out=y"), "e")  # never written
        refused(("convert_tensor", "in=f", "out=y"), "in is fp32, and golden vectors hold integers only")
        self.assertEqual(os.listdir(self.folder), [])
        for text, why in (
            ("", "line 1"),
            ("[]", 'its family is not "relu"'),
            ('{"family": "tanh", "format": 1, "cases": []}', 'its family is not "relu"'),
            ('{"family": "relu", "format": 2, "cases": []}', "its format is not 1"),
            ('{"family": "relu", "format": 1, "source": "a library", "cases": []}', "its source is not"),
            ('{"family": "relu", "format": 1, "source": "recorded by npumemctl"}', "no list of cases"),
        ):
            with open(path, "w") as file:
                file.write(text)
            refused(relu, why)
            with open(path) as file:
                self.assertEqual(file.read(), text)
            self.assertEqual(os.listdir(self.folder), ["relu.json"])
        os.remove(path)
        os.mkfifo(path)
        refused(relu, "not a regular file")
        os.remove(path)
        os.symlink("/dev/null", path)
        refused(relu, "symbolic link")
        os.remove(path)
        self.folder, folder = os.path.join(self.folder, "missing", "too"), self.folder
        refused(relu, "No such file or directory")
        self.folder = folder
        code, _, complaint = run("conform", "--record", folder)
        self.assertEqual(code, 2, complaint)

    def test_two_at_once(self):
        self.tensor("x", (1, 4, 1, 4), pb.FX8)
        self.tensor("y", (1, 4, 1, 4), pb.FX8, values=False)
        words = (NPUMEMCTL, "--socket", self.daemon.path, "conform", "--record", self.folder, "relu", "in=x", "out=y")
        children = [subprocess.Popen(words, stdout=subprocess.DEVNULL) for _ in range(4)]
        self.assertEqual([child.wait(SECONDS) for child in children], [0] * 4)
        with open(os.path.join(self.folder, "relu.json")) as file:
            names = [case["name"] for case in json.load(file)["cases"]]
        self.assertEqual(names, [f"relu/fx8/recorded{i}@convergent" for i in range(1, 5)])
        self.assert_passes(4)


if __name__ == "__main__":
    unittest.main()
