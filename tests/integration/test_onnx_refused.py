"""npumem-import: what cannot be imported says so, says what to do, and leaves nothing behind."""

import json
import os
import subprocess
import sys
import unittest
from unittest import mock

# Before onnx: where it is missing, the test ends as skipped.
from onnx_models import NPUMEMCTL, Folder, model, picture, random

import npumem
import numpy as np
import npumem.onnx
import onnx
from onnx import TensorProto, helper, numpy_helper
from support import SECONDS, Daemon


class Refused(Folder):
    def setUp(self):
        super().setUp()
        self.given = ("--samples", self.samples(random(0, 4, 1, 2, 3)))

    def one_node(self, op, shape=(1, 2, 3), opset=13, **more):
        return model([(op, ["x"], ["y"], more)], {"x": list(shape)}, {"y": None}, opset=opset)

    def test_a_node_that_nothing_does(self):
        self.save(self.one_node("Hardmax"))
        self.assert_refused('node "Hardmax_0" (Hardmax): no kernel does Hardmax', "on the host", words=self.given)
        self.save(model([("Greater", ["x", "c"], ["y"], {})], {"x": [1, 2, 3]}, {"y": None}, {"c": random(1, 1, 2, 3)}))
        self.assert_refused("no kernel does Greater", "on the host", words=self.given)  # which has a rule for folding
        made = self.one_node("Relu")
        made.graph.node[0].domain = "com.example"
        made.opset_import.append(helper.make_opsetid("com.example", 1))
        self.save(made)
        self.assert_refused('of the domain "com.example"', "with the operators of ONNX", words=self.given)

    def test_a_form_of_a_node_that_no_kernel_has(self):
        self.save(self.one_node("LpNormalization", p=1))
        self.assert_refused("p is 1", words=self.given)
        self.save(self.one_node("Relu"))
        data = self.samples(random(0, 4, 1, 2, 3) * 1e6)
        self.assert_refused(
            "value x reaches", "more than fx8 holds", "--dtype mixed", words=("--samples", data, "--dtype", "fx8")
        )

    def test_shapes_that_do_not_fit(self):
        self.save(model([("Add", ["x", "c"], ["y"], {})], {"x": [1, 2, 3]}, {"y": None}, {"c": random(1, 1, 2, 4)}))
        self.assert_refused("(Add) cannot be computed of x [1, 2, 3], c [1, 2, 4]: ", words=self.given)

    def test_dynamic_shapes(self):
        self.save(model([("Relu", ["x"], ["y"], {})], {"x": ["batch", 2, "n"]}, {"y": None}))
        self.assert_refused("input x is [batch, 2, n]", "--shape x=1,2,3", words=self.given)  # as the samples are
        self.save(model([("Relu", ["x"], ["y"], {})], {"x": ["batch", 2, 3]}, {"y": None}))
        done = self.program("npumem.onnx", "m.onnx", *self.given, "--out", "batch")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("the model leaves the batch open: it is 1 (x); --shape gives another", done.stdout)
        done = self.program("npumem.onnx", "m.onnx", "--samples", self.samples(random(0, 4, 5, 2, 3), "five.npy"), "--out", "five")
        self.assertIn("it is 5 (x)", done.stdout)
        done = self.program("npumem.onnx", "m.onnx", *self.given, "--shape", "x=1,2,3")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("leaves", done.stdout)
        self.assertTrue(os.path.exists(self.at("m", "network.json")))
        for word, says in (
            ("x=1,2", "does not fit"),
            ("x=1,2,4", "does not fit"),
            ("x", "NAME=1,3,240,320"),
            ("x=0,2,3", "from 1 on"),
        ):
            self.assert_refused(says, words=(*self.given, "--shape", word))

    def test_an_input_without_a_shape(self):
        made = self.one_node("Relu")
        made.graph.input[0].type.tensor_type.ClearField("shape")
        self.save(made)
        self.assert_refused("input x has no shape", "--shape x=1,1,2,3", words=self.given)
        done = self.program("npumem.onnx", "m.onnx", *self.given, "--shape", "x=1,2,3", "--out", "out")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_file_that_is_cut(self):
        with open(self.save(picture()), "rb") as file:
            data = file.read()
        samples = ("--samples", self.samples(random(0, 2, 3, 16, 16)))
        for n in (0, 1, 5, len(data) // 3, len(data) // 2, len(data) - 200, len(data) - 1):
            with open(self.at("m.onnx"), "wb") as file:
                file.write(data[:n])
            self.assert_refused(
                "not an ONNX model, or it was cut off", f"({n} bytes)", "fetch or export it again", words=samples
            )
        self.assert_refused("No such file", words=samples, path="none.onnx")

    def test_a_constant_that_is_damaged(self):
        made = picture()
        made.graph.initializer[0].dims[0] = 9
        self.save(made)
        samples = ("--samples", self.samples(random(0, 2, 3, 16, 16)))
        self.assert_refused('the constant "w1" does not hold what it says', words=samples)

    def test_windows_that_take_all_memory(self):
        for more, says in (
            ({"pads": [1 << 30] * 4}, "no device has room"),
            ({"pads": [-1, 0, 0, 0]}, "below what they can be"),
        ):
            self.save(self.one_node("MaxPool", (1, 2, 3, 3), kernel_shape=[2, 2], **more))
            self.assert_refused(says, words=("--samples", self.samples(random(0, 1, 2, 3, 3))))

    def test_opsets(self):
        for opset, attributes in ((6, {}), (7, {}), (onnx.defs.onnx_opset_version(), {})):
            self.save(self.one_node("Relu", opset=opset, **attributes))
            done = self.program("npumem.onnx", "m.onnx", *self.given, "--out", f"of{opset}")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"opset {max(opset, 7)}", done.stdout)
        self.save(self.one_node("Relu", opset=99))
        self.assert_refused("opset 99", "up to 22; export the model", words=self.given)
        made = model([("Resize", ["x", "", "k"], ["y"], {"antialias": 1})], {"x": [1, 2, 3]}, {"y": None}, {"k": np.float32([1, 1, 0.5])}, opset=19)
        made.ir_version = 9
        self.save(made)
        self.assert_refused("(Resize): its antialias is not 0", "export the model with opset", words=self.given)
        self.save(self.one_node("Relu", opset=19, some=1))
        self.assert_refused("some", "it has opset 19: export it with opset", words=self.given)
        self.save(self.one_node("BitwiseNot", opset=19))
        self.assert_refused("BitwiseNot", "it has opset 19: export it with opset", words=self.given)

    def test_what_the_checker_of_an_older_onnx_does_not_see(self):
        def refused(op, says, *inputs, outputs=("y",), **more):
            names = ["" if array is None else f"i{n}" for n, array in enumerate(inputs)]
            held = {name: array for name, array in zip(names, inputs) if name}
            made = model([(op, ["x", *names], list(outputs), more)], {"x": [1, 2, 3]}, dict.fromkeys(outputs), held, opset=18)
            made.ir_version = 9
            self.save(made)
            self.assert_refused(f"({op}) cannot be computed", says, words=self.given)

        for axes in ([3], [-4], [1, 1], [1, -2]):
            array, says = np.array(axes), f"{axes} are no axes of 3 dimensions"
            refused("ReduceMean", says, array)
            refused("Pad", says, np.ones(2 * len(axes), np.int64), None, array)
            refused("Resize", says, None, np.ones(len(axes), np.float32), axes=axes)
        refused("Pad", "1 pads for 2 axes", np.array([1]), None, np.array([1, 2]))
        refused("Split", "num_outputs is 3, and it has 2 outputs", outputs="yz", axis=2, num_outputs=3)

    def test_data_in_other_files(self):
        """Nothing but the file that was named is read."""
        made = model([("Add", ["x", "c"], ["y"], {})], {"x": [1, 2, 3]}, {"y": None}, {"c": random(1, 1, 2, 3)})
        tensor = made.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="../../../../etc/passwd")
        self.save(made)
        self.assert_refused("1 constants are in other files (c)", "save the model as one file", words=self.given)

    def test_data_of_a_node_in_another_file(self):
        with open(self.at("mine.bin"), "wb") as file:
            file.write(bytes(24))
        value = numpy_helper.from_array(random(1, 1, 2, 3), "v")
        value.ClearField("raw_data")
        value.data_location = TensorProto.EXTERNAL
        value.external_data.add(key="location", value="mine.bin")
        nodes = [("Constant", [], ["c"], {"value": value}), ("Add", ["x", "c"], ["y"], {})]
        self.save(model(nodes, {"x": [1, 2, 3]}, {"y": None}))
        self.assert_refused("1 constants are in other files (v)", "save the model as one file", words=self.given)
        inside = helper.make_graph([helper.make_node("Constant", [], ["t"], value=value)], "b", [], [helper.make_tensor_value_info("t", 1, None)])
        nodes = [("If", ["c"], ["d"], {"then_branch": inside, "else_branch": inside}), ("Add", ["x", "d"], ["y"], {})]
        self.save(model(nodes, {"x": [1, 2, 3]}, {"y": None}, {"c": np.array(True)}))
        self.assert_refused("2 constants are in other files (v)", words=self.given)

    def test_a_constant_that_takes_all_memory(self):
        shape = {"s": np.array([1 << 40], np.int64)}
        self.save(
            model(
                [("ConstantOfShape", ["s"], ["big"], {}), ("Add", ["x", "big"], ["y"], {})],
                {"x": [1]},
                {"y": None},
                shape,
            )
        )
        self.assert_refused(
            "1099511627776 elements", "no device has room", words=("--samples", self.samples(random(0, 4, 1)))
        )
        # Each is small enough by itself.
        each = {"s": np.array([1 << 27], np.int64), "few": np.array([1 << 20], np.int64), "c": np.ones(1, np.float32)}
        nodes = [("Expand", ["c", "s"], [f"c{i}"], {}) for i in range(2)] + [("ConstantOfShape", ["few"], ["more"], {})]
        self.save(model([*nodes, ("Relu", ["x"], ["y"], {})], {"x": [1, 1]}, {"y": None}, each))
        self.assert_refused(
            '"ConstantOfShape_2"', "269484032 elements", "3 in the file", words=("--samples", self.samples(random(0, 4, 1)))
        )

    def test_a_condition_that_is_computed(self):
        inside = helper.make_graph([helper.make_node("Relu", ["x"], ["t"])], "b", [], [helper.make_tensor_value_info("t", 1, None)])
        nodes = [("ReduceMax", ["x"], ["m"], {"keepdims": 0}), ("Cast", ["m"], ["c"], {"to": TensorProto.BOOL}),
                 ("If", ["c"], ["y"], {"then_branch": inside, "else_branch": inside})]  # fmt: skip
        self.save(model(nodes, {"x": [1, 2, 3]}, {"y": None}))
        self.assert_refused('"If_2" (If): its condition depends on the inputs', "one of the branches", words=self.given)
        for n in (0, 2):
            self.save(model(nodes[-1:], {"x": [1, 2, 3]}, {"y": None}, {"c": np.zeros(n, bool)}))
            self.assert_refused(f"its condition has {n} elements", words=self.given)

    def test_samples(self):
        self.save(self.one_node("Relu"))
        self.assert_refused(
            "[4, 1, 2, 4]", "the input is [1, 2, 3]", words=("--samples", self.samples(random(0, 4, 1, 2, 4)))
        )
        self.assert_refused(
            "infinity or a NaN", words=("--samples", self.samples(np.full((1, 2, 3), np.nan, np.float32)))
        )
        self.assert_refused("there is no sample", words=("--samples", self.samples(np.zeros((0, 1, 2, 3), np.float32))))
        self.assert_refused("No such file", words=("--samples", "none.npy"))
        np.save(self.at("o.npy"), np.array([{}], object), allow_pickle=True)
        self.assert_refused("not an .npy or .npz with numbers", words=("--samples", "o.npy"))
        self.assert_refused("there is no input z; the model has x", words=("--samples", f"z={self.given[1]}"))

    def test_an_input_that_is_no_float(self):
        made = self.one_node("Relu")
        made.graph.input.append(helper.make_tensor_value_info("n", TensorProto.INT64, [1]))
        self.save(made)
        self.assert_refused("the model has the inputs x, n", "is given by --constant NAME=FILE.npy", words=self.given)
        made.graph.input[1].type.tensor_type.elem_type = TensorProto.STRING
        self.save(made)
        self.assert_refused("input n is string", "--constant n=FILE.npy", words=self.given)
        made = model([("Gather", ["table", "x"], ["y"], {})], {"x": [1, 3]}, {"y": None}, {"table": random(1, 50, 4)})
        made.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
        self.save(made)
        ids = ("--samples", self.samples(np.array([[1, 2, 49]])))
        self.assert_refused("its indices are computed", "--host; or cut the model behind it", words=ids)
        made.graph.node[0].op_type, made.graph.node[0].input[0] = "Div", "three"
        made.graph.initializer.append(numpy_helper.from_array(np.array([3]), "three"))
        self.save(made)
        self.assert_refused("it divides integers", words=ids)

    def test_a_folder_that_is_there(self):
        self.save(self.one_node("Relu"))
        os.mkdir(self.at("out"))
        with open(self.at("out", "mine"), "w", encoding="ascii") as file:
            file.write("kept")
        self.assert_refused("out is there and not empty", words=self.given)
        self.assertEqual(os.listdir(self.at("out")), ["mine"])
        imported = npumem.onnx.load(self.at("m.onnx"), random(0, 4, 1, 2, 3))
        with self.assertRaisesRegex(npumem.onnx.ImportRefused, "out is there and not empty; remove it"):
            imported.write(self.at("out"))
        with mock.patch.object(np, "save", side_effect=OSError(28, "No space left on device")):
            with self.assertRaisesRegex(npumem.onnx.ImportRefused, "new: No space left on device"):
                imported.write(self.at("new"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["m.onnx", "out", "x.npy"])
        done = self.program("npumem.onnx", "m.onnx", *self.given, "--out", "/proc/none/out")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)

    def test_tensors_that_do_not_fit(self):
        """The import says which device has room; a smaller one refuses, and neither tensors nor files stay."""
        made = model([("Conv", ["x", "w"], ["y"], {})], {"x": [1, 3, 300, 400]}, {"y": None}, {"w": random(1, 64, 3, 1, 1)})
        self.save(made)
        x = self.samples(random(0, 1, 3, 300, 400))
        done = self.program("npumem.onnx", "m.onnx", "--samples", x, "--out", "net")
        self.assertIn("npumemctl --spawn='--npu-bytes 2097152' check net --min-snr", done.stdout)
        ctl = [NPUMEMCTL, "--spawn=--npu-bytes 256K", "submit", self.at("net/network.json"), "--out", self.at("one")]
        before = sorted(os.listdir(self.folder))
        done = subprocess.run(ctl, capture_output=True, text=True, check=False, timeout=SECONDS)
        self.assertEqual(done.returncode, 1)
        self.assertIn('tensor "y": no room for 240000 bytes', done.stderr)
        self.assertIn("npumemctl plan tells what the network needs, npumemd --npu-bytes gives more", done.stderr)
        ctl[1:3] = ["--spawn", "submit"]  # a private daemon takes what the network needs
        done = subprocess.run(ctl, capture_output=True, text=True, check=False, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        ctl[1] = "--spawn=--npu-bytes 64K"
        plan = [NPUMEMCTL, "plan", self.at("net/network.json"), "--npu-bytes", "64K"]
        for words in (ctl, plan):
            done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=SECONDS)
            self.assertIn("an NPU has 65536; a device with --npu-bytes 524288 has room for the network", done.stderr)
        before = sorted(os.listdir(self.folder))
        plan = [NPUMEMCTL, "plan", self.at("net/network.json"), "--npu-bytes", "256K"]
        done = subprocess.run(plan, capture_output=True, text=True, check=False, timeout=SECONDS)
        self.assertIn("a device with --npu-bytes 524288 has it", done.stderr)
        daemon = self.enterContext(Daemon("--npu-bytes", "256K"))
        words = ("net/network.json", "--samples", "x.npy", "--out", "two", "--socket", daemon.path)
        done = self.program("npumem.onnx.run", *words)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("a daemon with larger --npu-bytes has room", done.stderr)
        with npumem.connect(daemon.path) as device:
            self.assertEqual(device.tensors(), [])
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        words = ("net/network.json", "--samples", "x.npy", "--out", "all")  # a daemon with room; a reply of 15 MB
        self.assertEqual(self.program("npumem.onnx.run", *words).returncode, 0)
        self.assertEqual(np.load(self.at("all/y.npy")).shape, (1, 64, 300, 400))

    def test_names_stay_in_the_folder(self):
        names = {"/etc/x": [1, 2, 3]}
        self.save(model([("Relu", ["/etc/x"], ["../../y"], {})], names, {"../../y": None}))
        done = self.program("npumem.onnx", "m.onnx", *self.given, "--out", "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.at("out", "report.json"), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual(report["outputs"]["../../y"]["file"], "_.._y.npy")
        done = self.program("npumem.onnx.run", "out/network.json", "--samples", "x.npy", "--out", "results")
        self.assertEqual((done.returncode, os.listdir(self.at("results"))), (0, ["_.._y.npy"]), done.stderr)

    def test_a_report_whose_outputs_are_elsewhere(self):
        self.save(self.one_node("Relu"))
        self.assertEqual(self.program("npumem.onnx", "m.onnx", *self.given, "--out", "out").returncode, 0)
        with open(self.at("out", "report.json"), encoding="utf-8") as file:
            report = json.load(file)
        with open(self.at("out", "network.json"), encoding="utf-8") as file:
            network = json.load(file)
        self.assertEqual(network["operations"][-1]["read"], "y")
        for name in (self.at("stolen.npy"), "../stolen.npy", "a/stolen.npy", "stolen", ""):
            report["outputs"]["y"]["file"] = network["operations"][-1]["file"] = name
            for whole, path in ((report, "report.json"), (network, "network.json")):
                with open(self.at("out", path), "w", encoding="utf-8") as file:
                    json.dump(whole, file)
            done = self.program("npumem.onnx.run", "out/network.json", "--samples", "x.npy", "--out", "results")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertIn("is not NAME.npy", done.stderr)
            self.assertFalse(os.path.exists(self.at("stolen.npy")) or os.path.exists(self.at("results")))

    def test_a_scale_that_is_none(self):
        for scale in (0.0, -1.0, float("nan")):
            k, z = np.array(scale, np.float32), np.zeros((), np.int8)
            nodes = [("QuantizeLinear", ["x", "k", "z"], ["a"], {}), ("DequantizeLinear", ["a", "k", "z"], ["y"], {})]
            self.save(model(nodes, {"x": [1, 2, 3]}, {"y": None}, {"k": k, "z": z}))
            self.assert_refused("no kernel does QuantizeLinear", words=self.given)

    def test_names_with_escape_sequences(self):
        """They reach no terminal, and no network file, as they are."""
        name, value = "\x1b[31mred\n", "v\x1b[2J\u202e"
        for op, code in (("Relu", 0), ("Hardmax", 1)):
            made = model([(op, [value], ["y"], {})], {value: [1, 2, 3]}, {"y": None})
            made.graph.node[0].name = name
            self.save(made)
            done = self.program("npumem.onnx", "m.onnx", *self.given, "--out", f"out{code}")
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(done.stderr.count("\n"), code, done.stderr)
            self.assertRegex(done.stdout + done.stderr, r"^[\n -~]*$")
        with open(self.at("out0", "report.txt"), encoding="utf-8") as file:
            self.assertRegex(file.read(), r"^[\n -~]*$")
        command = [NPUMEMCTL, "--spawn", "submit", "out0/network.json", "--out", "one"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_without_onnx(self):
        """The rest of npumem does not need it; this part says what to install."""
        text = "import sys, npumem; assert 'onnx' not in sys.modules; sys.modules['onnx'] = None; import npumem.onnx"
        done = subprocess.run(
            [sys.executable, "-B", "-c", text], capture_output=True, text=True, check=False, timeout=SECONDS
        )
        self.assertIn("ImportError: npumem.onnx needs the package onnx: apt-get install python3-onnx", done.stderr)


if __name__ == "__main__":
    unittest.main()
