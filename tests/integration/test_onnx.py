"""npumem-import: models become networks that run, and give what floats and the specification give."""

import json
import os
import subprocess
import sys
import unittest
from unittest import mock

# Before onnx: where it is missing, the test ends as skipped.
from onnx_models import NPUMEMCTL, Folder, model, picture, random

import numpy as np
import npumem
import npumem.onnx
from onnx import TensorProto, helper, numpy_helper
from npumem import reference
from npumem.onnx import floats, fold, formats, run
from npumem.onnx.formats import noise_db
from npumem.onnx.model import read
from support import SECONDS


class Networks(Folder):
    """Each is compared with the floats, and with the specification of the kernels."""

    LEAST = {"fx16": 55, "mixed": 25, "fx8": 20}

    def imported(self, made, x, dtype="fx16", **more):
        return npumem.onnx.load(self.save(made), x, dtype=dtype, **more)

    def outputs(self, imported, feeds):
        with npumem.spawn("--npu-bytes", "1M") as dev:
            whole = imported.network.document()
            with run.Session(dev, whole, imported.report, imported.network.arrays.__getitem__) as session:
                results = [session.run(one) for one in feeds]
                self.assertEqual(session.wrapped, 0)
            self.assertEqual(dev.tensors(), [])
        return results

    def floats(self, made, feeds):
        return [floats.run(read(self.save(made, "f.onnx")), one) for one in feeds]

    def test_a_network_in_each_type(self):
        made, x = picture(), random(0, 6, 3, 16, 16)
        feeds = [{"x": one[None]} for one in x]
        want = self.floats(made, feeds)
        for dtype, least in self.LEAST.items():
            got = self.outputs(self.imported(made, x, dtype), feeds)
            for name in ("g", "y"):
                db = noise_db(np.stack([one[name] for one in want]), np.stack([one[name] for one in got]))
                self.assertGreater(db, least, (dtype, name))

    def test_the_demo_keeps_its_accuracy(self):
        """The demo's digits, by way of ONNX, are classified as well as its floats do it, within 0.5 points."""
        demo = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../demo")
        command = [sys.executable, "-B", os.path.join(demo, "train.py"), "export", self.at("digits.onnx")]
        subprocess.run(command, check=True, timeout=SECONDS)
        labels = np.load(os.path.join(demo, "model/labels.npy"))
        digits = np.load(os.path.join(demo, "model/digits.npy")).astype(np.float32) / 16
        feeds = [{"digit": one[None]} for one in digits]
        graph = read(self.at("digits.onnx"))
        right = sum(floats.run(graph, one)["scores"].argmax() == label for one, label in zip(feeds, labels))
        self.assertEqual(right, 394)  # what train.py simulate says
        for dtype in ("fx16", "mixed", "fx8"):
            imported = npumem.onnx.load(self.at("digits.onnx"), digits[:16], dtype=dtype)
            scores = [one["scores"] for one in self.outputs(imported, feeds)]
            found = sum(one.argmax() == label for one, label in zip(scores, labels))
            self.assertLessEqual(abs(int(found) - int(right)), 0.005 * len(labels), dtype)

    def test_options_change_no_meaning(self):
        made, x = picture(), random(0, 6, 3, 16, 16)
        feeds = [{"x": one[None]} for one in x]
        want = np.stack([one["g"] for one in self.floats(made, feeds)])
        plain = None
        for more in (
            {},
            {"equalize": True},
            {"by_samples": True},
            {"correct": False},
            {"method": "max"},
            {"method": "percentile"},
        ):
            got = np.stack([one["g"] for one in self.outputs(self.imported(made, x, "fx8", **more), feeds)])
            db = noise_db(want, got)
            plain = db if plain is None else plain
            self.assertGreater(db, plain - 6, more)

    def test_old_and_new_opsets_are_the_same_network(self):
        x = random(0, 2, 3, 16, 16)
        old, new = (self.imported(picture(opset), x).network for opset in (9, 13))
        self.assertEqual([one.get("run") for one in old.operations], [one.get("run") for one in new.operations])

    def test_a_model_of_a_newer_exporter(self):
        """A file version that onnx does not know, with an opset that it knows; opsets up to 22, with what is new in them."""
        x, c = random(0, 4, 3, 8, 8), {"axes": np.array([2, 3], np.int64), "pads": np.array([1, 1], np.int64), "one": np.array([2], np.int64),
                                       "scales": np.float32([2, 1.5])}  # fmt: skip
        made = picture()
        made.ir_version = 11
        self.imported(made, random(0, 2, 3, 16, 16))
        nodes = [("Pad", ["x", "pads", "", "one"], ["p"], {}), ("Resize", ["p", "", "scales"], ["r"], {"mode": "linear", "axes": [2, 3], "antialias": 0}),
                 ("Gelu", ["r"], ["g"], {"approximate": "tanh"}), ("Split", ["g"], ["a", "b"], {"axis": 2, "num_outputs": 2}), ("Cast", ["a"], ["d"], {"to": 1, "saturate": 1}),
                 ("ReduceMean", ["d", "axes"], ["y"], {"keepdims": 0}), ("Pad", ["b", "pads", "", "one"], ["z"], {"mode": "wrap"})]  # fmt: skip
        made = model(nodes, {"x": [1, 3, 8, 8]}, {"y": None, "z": None}, c, opset=22)
        made.ir_version = 10
        feeds = [{"x": one[None]} for one in x]
        want, got = self.floats(made, feeds), self.outputs(self.imported(made, x), feeds)
        self.assertEqual(want[0]["z"].shape, (1, 3, 12, 12))
        for name in ("y", "z"):
            self.assertGreater(noise_db(np.stack([one[name] for one in want]), np.stack([one[name] for one in got])), 55, name)
        padded = np.pad(x[0], ((0, 0), (1, 1), (0, 0)))
        self.assertTrue(np.array_equal(want[0]["p"][0], padded))

    def test_the_branch_of_a_condition_that_is_known(self):
        """By a constant input, by a shape, and one in the other; both branches, and both Ifs, have the same names inside."""
        def branch(op, *more):
            nodes = [*more, helper.make_node(op, ["a", "k"], ["t"])]
            return helper.make_graph(nodes, op, [], [helper.make_tensor_value_info("t", 1, None)], [numpy_helper.from_array(np.float32([2, 3, 4]), "k")])

        inner = helper.make_node("If", ["rate"], ["u"], then_branch=branch("Mul"), else_branch=branch("Sub"))
        outer = helper.make_graph([inner], "inner", [], [helper.make_tensor_value_info("u", 1, None)])
        nodes = [("Relu", ["x"], ["a"], {}), ("Shape", ["x"], ["s"], {}), ("Gather", ["s", "zero"], ["n"], {}), ("Equal", ["n", "one"], ["same"], {}),
                 ("If", ["same"], ["b"], {"then_branch": outer, "else_branch": branch("Sub")}),
                 ("If", ["rate"], ["c"], {"then_branch": branch("Sub"), "else_branch": branch("Add")}), ("Add", ["b", "c"], ["y"], {})]  # fmt: skip
        made = model(nodes, {"x": [1, 3]}, {"y": None}, {"zero": np.array(0), "one": np.array(1)})
        made.graph.input.append(helper.make_tensor_value_info("rate", TensorProto.BOOL, [1]))
        x, k = random(0, 4, 3), np.float32([2, 3, 4])
        for rate in (True, False):
            got = self.outputs(self.imported(made, x, constants={"rate": np.array([rate])}), [{"x": one[None]} for one in x])
            for one, y in zip(x, got):
                a = np.maximum(one, 0)
                self.assertGreater(noise_db((a * k + a - k) if rate else (a - k + a + k), y["y"][0]), 50, rate)

    def test_operators_that_are_others(self):
        """Einsum is a MatMul, Trilu a product, Clip with a computed limit Max and Min."""
        nodes = [("Einsum", ["x", "w"], ["e"], {"equation": "bij, jk -> bik"}), ("Einsum", ["x", "x"], ["f"], {"equation": "bqd,bkd->bkq"}),
                 ("Trilu", ["f", "k"], ["t"], {"upper": 0}), ("ReduceMax", ["e"], ["m"], {"keepdims": 0}), ("Div", ["m", "two"], ["h"], {}), ("Clip", ["e", "", "h"], ["c"], {})]  # fmt: skip
        made = model(nodes, {"x": [1, 4, 5]}, {"e": None, "t": None, "c": None}, {"w": random(1, 5, 6), "k": np.array(1), "two": np.float32(2)}, opset=14)
        x = random(0, 4, 4, 5)
        for one, y in zip(x, self.outputs(self.imported(made, x), [{"x": one[None]} for one in x])):
            e = one @ random(1, 5, 6)
            for name, want in (("e", e), ("t", np.tril(one @ one.T, 1)), ("c", np.minimum(e, e.max() / 2))):
                self.assertGreater(noise_db(want, y[name][0]), 55, name)

    def test_what_is_folded(self):
        """Pad, Conv, BatchNormalization and Relu are one operation; Mul by a number is in the weights."""
        imported = self.imported(picture(), random(0, 2, 3, 16, 16))
        kernels = imported.report["operations"]
        self.assertEqual((kernels["conv2d"], kernels["depthwise_conv2d"], kernels["matmul"]), (2, 1, 1))
        self.assertFalse({"pad2d", "relu"} & set(kernels), kernels)
        self.assertEqual(kernels["lut"], 1)  # x * sigmoid(x)
        self.assertFalse({"sigmoid", "eltwise_mul"} & set(kernels), kernels)
        graph, feeds = read(self.save(picture())), {"x": random(0, 1, 3, 16, 16)}
        before = floats.run(graph, feeds)
        fold.fold(graph, feeds)
        fold.equalize(graph)
        after = floats.run(graph, feeds)
        self.assertLess(len(graph.nodes), 10)
        for name in ("g", "y"):
            self.assertGreater(noise_db(before[name], after[name]), 100)

    def test_channels_are_equal_behind_pools(self):
        """Weights whose channels differ by 64 become alike, also behind pools and a Flatten; the floats stay."""
        wide = np.exp2(np.arange(8) - 3).astype(np.float32)
        constants = {"w": random(1, 8, 3, 3, 3) * wide.reshape(-1, 1, 1, 1), "b": random(2, 8), "v": random(3, 4, 8, 3, 3) / 8,
                     "u": random(4, 4 * 9, 5), "t": random(5, 6, 4 * 9)}  # fmt: skip
        pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
        nodes = [("Conv", ["x", "w", "b"], ["a"], {}), ("Relu", ["a"], ["r"], {}), ("MaxPool", ["r"], ["p"], pool),
                 ("Conv", ["p", "v"], ["c"], {}), ("AveragePool", ["c"], ["q"], {"kernel_shape": [3, 3]}),
                 ("Flatten", ["q"], ["f"], {}), ("Gemm", ["f", "u"], ["y"], {}), ("Gemm", ["f", "t"], ["z"], {"transB": 1})]  # fmt: skip
        graph, feeds = read(self.save(model(nodes, {"x": [1, 3, 16, 16]}, {"y": None, "z": None}, constants))), {"x": random(0, 1, 3, 16, 16)}
        before = floats.run(graph, feeds)
        fold.fold(graph, feeds)
        fold.equalize(graph)
        most = [np.abs(w).reshape(len(w), -1).max(1) for w in (graph.constants[graph.nodes[0].inputs[1]], graph.constants["v"])]
        self.assertLess(most[0].max() / most[0].min(), 12)  # it was 64
        self.assertFalse(np.array_equal(graph.constants["t"], constants["t"]))
        after = floats.run(graph, feeds)
        for name in ("y", "z"):
            self.assertGreater(noise_db(before[name], after[name]), 110)

    def submit_samples(self, file, refusal=""):
        command = [NPUMEMCTL, "--spawn", "submit", "net/network.json", "--samples", file, "--out", "many"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=SECONDS)
        self.assertEqual(done.returncode, 1 if refusal else 0, done.stderr)
        self.assertIn(refusal, done.stderr)
        return done

    def test_functions_of_one_element(self):
        """Several nodes of one value are one table: of 2^9 + 1 entries where these do, else of all inputs."""
        gelu = [("Div", ["x", "r"], ["a"], {}), ("Erf", ["a"], ["b"], {}), ("Add", ["b", "1"], ["c"], {}),
                ("Mul", ["x", "c"], ["d"], {}), ("Mul", ["d", "h"], ["y"], {})]  # fmt: skip
        mish = [("Softplus", ["x"], ["a"], {}), ("Tanh", ["a"], ["b"], {}), ("Mul", ["x", "b"], ["y"], {})]
        swish = [("Add", ["x", "3"], ["a"], {}), ("Clip", ["a", "0", "6"], ["b"], {})]
        swishes = [swish + [("Mul", ["x", "b"], ["d"], {}), ("Div", ["d", "6"], ["y"], {})],
                   swish + [("Div", ["b", "6"], ["d"], {}), ("Mul", ["d", "x"], ["y"], {})]]  # fmt: skip
        numbers = {"3": np.float32(3), "0": np.float32(0), "6": np.float32(6), "r": np.float32(np.sqrt(2)), "1": np.float32(1), "h": np.float32(0.5), "k": np.float32(1e-3)}
        x = random(0, 8, 1, 4, 6, 5) * 2
        for nodes, samples, table in (
            *((one, x, [1, 1, 1, 513]) for one in swishes), (gelu, x, [1, 1, 1, 513]), (mish, x, [1, 1, 1, 513]), ([("Erf", ["x"], ["y"], {})], x, [1, 64, 32, 32]),
            ([("Log", ["x"], ["y"], {})], np.abs(x) + 0.5, [1, 64, 32, 32]),
            ([("Add", ["x", "k"], ["a"], {}), ("Sqrt", ["a"], ["y"], {})], np.abs(x), [1, 64, 32, 32]),
        ):  # fmt: skip
            used = {name for node in nodes for name in node[1]}
            made = model(nodes, {"x": [1, 4, 6, 5]}, {"y": [1, 4, 6, 5]}, {n: v for n, v in numbers.items() if n in used})
            want = np.stack([one["y"] for one in self.floats(made, [{"x": one} for one in samples])])
            for dtype, least in (("fx16", 55), ("fx8", 15)):
                imported = self.imported(made, samples, dtype)
                self.assertEqual(imported.report["operations"], {"lut": 1})
                tables = [one["shape"] for one in imported.network.document()["tensors"].values() if "file" in one]
                self.assertIn(table if dtype == "fx16" else [1, 1, 1, 256], tables)
                got = np.stack([one["y"] for one in self.outputs(imported, [{"x": one} for one in samples])])
                self.assertGreater(noise_db(want, got), least, (nodes, dtype))

    def test_numbers_of_channels_are_not_repeated(self):
        """A squeeze-and-excitation: one number a channel goes with its whole plane, without a copy of it."""
        nodes = [("GlobalAveragePool", ["x"], ["a"], {}), ("Conv", ["a", "w"], ["b"], {}),
                 ("Sigmoid", ["b"], ["c"], {}), ("Mul", ["x", "c"], ["d"], {}), ("Add", ["p", "d"], ["y"], {})]  # fmt: skip
        made = model(
            nodes, {"x": [1, 8, 5, 7]}, {"y": [1, 8, 5, 7]}, {"w": random(1, 8, 8, 1, 1), "p": random(2, 1, 1, 5, 7)}
        )
        x = random(0, 6, 1, 8, 5, 7)
        feeds = [{"x": one} for one in x]
        imported = self.imported(made, x)
        kernels = {"avepool": 1, "conv2d": 1, "sigmoid": 1, "eltwise_mul": 1, "eltwise_add": 1}
        self.assertEqual(imported.report["operations"], kernels)
        for want, got in zip(self.floats(made, feeds), self.outputs(imported, feeds)):
            self.assertGreater(noise_db(want["y"], got["y"]), 60)

    def test_a_pool_is_one_operation(self):
        """Also with dilation, counted padding and windows beyond it, and exact where the numbers are."""
        x = np.round(random(0, 4, 1, 3, 9, 11) * 8) / 8
        far = {"kernel_shape": [2, 2], "dilations": [3, 2], "pads": [2, 1, 1, 2]}  # AveragePool has some from opset 19 on
        counted = {"kernel_shape": [2, 2], "pads": [1, 1, 0, 1], "count_include_pad": 1}
        for op, more in (
            ("MaxPool", far), ("MaxPool", far | {"strides": [2, 3]}), ("MaxPool", {"kernel_shape": [9, 9]}),
            ("AveragePool", counted), ("AveragePool", counted | {"strides": [2, 2], "ceil_mode": 1}),
        ):  # fmt: skip
            made = model([(op, ["x"], ["y"], more)], {"x": [1, 3, 9, 11]}, {"y": None})
            feeds = [{"x": one} for one in x]
            imported = self.imported(made, x)
            self.assertEqual(imported.report["operations"], {"maxpool" if op == "MaxPool" else "avepool": 1})
            for want, got in zip(self.floats(made, feeds), self.outputs(imported, feeds)):
                np.testing.assert_array_equal(want["y"], got["y"], f"{op} {more}")

    def test_a_transposed_convolution_is_one_operation(self):
        """Also in groups, dilated, and with outputs beyond the last product; exact where the numbers are."""
        x, w = (np.round(random(seed, *shape) * 8) / 8 for seed, shape in ((0, (4, 1, 6, 5, 4)), (1, (6, 2, 3, 2))))
        bias = np.round(random(2, 6) * 8) / 8
        for more in (
            {"group": 3, "strides": [2, 2], "pads": [1, 0, 1, 1], "output_padding": [1, 1]},
            {"group": 3, "strides": [2, 3], "output_shape": [12, 13]}, {"group": 3, "dilations": [2, 3], "strides": [3, 2]},
        ):  # fmt: skip
            made = model([("ConvTranspose", ["x", "w", "b"], ["y"], more)], {"x": [1, 6, 5, 4]}, {"y": None}, {"w": w, "b": bias})
            feeds = [{"x": one} for one in x]
            imported = self.imported(made, x)
            self.assertEqual(imported.report["operations"], {"transpose_conv2d": 1})
            for want, got in zip(self.floats(made, feeds), self.outputs(imported, feeds)):
                np.testing.assert_array_equal(want["y"], got["y"], str(more))

    def test_a_convolution_widens(self):
        """From fx8 data to an fx16 result without a conversion in between; exact where the numbers are."""
        x, w = (np.round(random(seed, *shape) * 4) / 4 for seed, shape in ((0, (4, 1, 4, 6, 5)), (1, (4, 4, 3, 3))))
        for op, more in (("Conv", {}), ("Conv", {"group": 4}), ("ConvTranspose", {"strides": [2, 2]})):
            own = w[:, :1] if more.get("group") else w
            nodes = [("Relu", ["x"], ["r"], {}), (op, ["r", "w"], ["c"], more), ("Mul", ["c", "h"], ["y"], {})]
            made = model(nodes, {"x": [1, 4, 6, 5]}, {"c": None, "y": None}, {"w": own, "h": np.float32(0.5)})
            with mock.patch.object(formats, "behind", lambda graph: {"c", "y"}):
                imported = self.imported(made, x, "fx8")
            self.assertNotIn("convert_tensor", imported.report["operations"])
            feeds = [{"x": one} for one in x]
            for want, got in zip(self.floats(made, feeds), self.outputs(imported, feeds)):
                np.testing.assert_array_equal(want["c"], got["c"], f"{op} {more}")

    def test_a_chain_that_is_used_in_between(self):
        """The value in between has a table of its own; what has no function in it stays as it is."""
        nodes = [("Add", ["x", "1"], ["a"], {}), ("Exp", ["a"], ["b"], {}), ("Sqrt", ["b"], ["y"], {}),
                 ("MaxPool", ["b"], ["z"], {"kernel_shape": [2, 2]}), ("Mul", ["x", "3"], ["m"], {}),
                 ("Abs", ["m"], ["w"], {})]  # fmt: skip
        made = model(
            nodes,
            {"x": [1, 2, 4, 4]},
            {"y": [1, 2, 4, 4], "z": [1, 2, 3, 3], "w": [1, 2, 4, 4]},
            {"1": np.float32(1.0), "3": np.float32(3.0)},
        )
        x = random(3, 4, 1, 2, 4, 4)
        imported = self.imported(made, x)
        kernels = imported.report["operations"]
        self.assertEqual((kernels["lut"], kernels["maxpool"], kernels["eltwise_mul"]), (2, 1, 1))
        feeds = [{"x": one} for one in x]
        for want, got in zip(self.floats(made, feeds), self.outputs(imported, feeds)):
            for name in ("y", "z", "w"):
                self.assertGreater(noise_db(want[name], got[name]), 55, name)

    def test_masks_of_a_softmax(self):
        """What only makes elements 0 takes no bits from the others, however it is written."""
        x = random(0, 6, 1, 2, 4, 8) * 2
        for value in (-1e4, -1e9, np.finfo(np.float32).min, -np.inf):
            few = np.tril(np.ones((4, 8), np.float32))
            few[3] = value < -1e4  # -10000 in a whole line changes nothing in it
            added = np.where(few, 0, np.float32(value))
            makers = [
                [("Add", ["x", "added"], ["s"], {})],
                [("Where", ["few", "x", "value"], ["s"], {})],
                [("Max", ["added", "value"], ["a"], {}), ("Unsqueeze", ["a", "0"], ["b"], {}), ("Add", ["b", "x"], ["s"], {})],
            ]
            feeds = [{"x": one} for one in x]
            if np.isfinite(value):
                makers.append([("Sub", ["1", "m"], ["a"], {}), ("Mul", ["a", "value"], ["b"], {}), ("Add", ["x", "b"], ["s"], {})])
                feeds = [{"x": one, "m": few[None, None]} for one in x]
            if value == -1e4:
                makers.append([("Add", ["x", "m"], ["s"], {})])
            constants = {"added": added, "few": few > 0, "value": np.float32(value), "1": np.float32(1), "0": np.array([0])}
            for nodes in makers:
                used = {name for node in nodes for name in node[1]}
                inputs = {name: [1, 2, 4, 8] if name == "x" else [1, 1, 4, 8] for name in ("x", "m") if name in used}
                made = model(
                    [*nodes, ("Softmax", ["s"], ["y"], {"axis": 3})], inputs, {"y": None}, {n: v for n, v in constants.items() if n in used}
                )
                own = [{n: added[None, None] if n == "m" and len(nodes) == 1 else one[n] for n in inputs} for one in feeds]
                with np.errstate(all="ignore"):
                    want = np.stack([one["y"] for one in self.floats(made, own)])
                for dtype, least in (("fx16", 65), ("mixed", 65), ("fx8", 19)):
                    imported = self.imported(made, {n: np.stack([one[n] for one in own]) for n in inputs}, dtype)
                    got = np.stack([one["y"] for one in self.outputs(imported, own)])
                    self.assertGreater(noise_db(want, got), least, (value, nodes, dtype))

    def test_a_layer_normalization_of_nodes(self):
        """As exporters write it below opset 17: the operations of the operator, with squares beyond what fx16 holds."""
        x, numbers = random(0, 4, 1, 5, 32) * 1000, {"e": np.float32(1e-5), "2": np.float32(2), "w": random(1, 32), "b": random(2, 32)}
        mean = {"axes": [-1]}
        for square in (("Pow", ["d", "2"], ["s"], {}), ("Mul", ["d", "d"], ["s"], {})):
            nodes = [("ReduceMean", ["x"], ["m"], mean), ("Sub", ["x", "m"], ["d"], {}), square, ("ReduceMean", ["s"], ["v"], mean),
                     ("Add", ["v", "e"], ["a"], {}), ("Sqrt", ["a"], ["r"], {}), ("Div", ["d", "r"], ["n"], {}),
                     ("Mul", ["n", "w"], ["p"], {}), ("Add", ["p", "b"], ["y"], {})]  # fmt: skip
            for length in (9, 8, 7):  # also without bias or scale
                cut = nodes[:length]
                cut[-1] = (cut[-1][0], cut[-1][1], ["y"], {})
                used = {name for node in cut for name in node[1]}
                made = model(cut, {"x": [1, 5, 32]}, {"y": None}, {n: v for n, v in numbers.items() if n in used})
                imported = self.imported(made, x)
                feeds = [{"x": one} for one in x]
                want, got = (np.stack([one["y"] for one in each]) for each in (self.floats(made, feeds), self.outputs(imported, feeds)))
                self.assertGreater(noise_db(want, got), 60)
            one = model([("LayerNormalization", ["x", "w", "b"], ["y"], {"axis": -1})], {"x": [1, 5, 32]}, {"y": None}, {n: numbers[n] for n in "wb"}, 17)
            whole = self.imported(model(nodes, {"x": [1, 5, 32]}, {"y": None}, {n: v for n, v in numbers.items() if n in "ewb" or square[0] == "Pow"}), x)
            self.assertEqual(whole.report["operations"], self.imported(one, x).report["operations"])

    def test_powers_of_two(self):
        """A factor or divisor is a view of the same elements, exact to the bit; what is none is multiplied with."""
        nodes = [("Mul", ["x", "8"], ["a"], {}), ("Div", ["a", "32"], ["b"], {}), ("Mul", ["half", "b"], ["y"], {}),
                 ("Div", ["8", "x"], ["p"], {}), ("Mul", ["x", "minus"], ["q"], {})]  # fmt: skip
        shape = [1, 2, 4, 4]
        constants = {"8": 8.0, "32": 32.0, "half": 0.5, "minus": -2.0}
        made = model(nodes, {"x": shape}, dict.fromkeys("ypq", shape), {name: np.float32(v) for name, v in constants.items()})
        x = np.ldexp(np.round(random(3, 4, *shape) * 64) + 200, -6).astype(np.float32)
        imported = self.imported(made, x)
        kernels = imported.report["operations"]
        self.assertEqual((kernels["eltwise_div"], kernels["eltwise_mul"]), (1, 1))
        views = [one for one in imported.network.document()["operations"] if "frac_bits" in one]
        self.assertEqual(len(views), 3)
        feeds = [{"x": one} for one in x]
        for want, got in zip(self.floats(made, feeds), self.outputs(imported, feeds)):
            self.assertTrue(np.array_equal(want["y"], got["y"]))
            for name in ("p", "q"):
                self.assertGreater(noise_db(want[name], got[name]), 55, name)

    def test_the_commands(self):
        """The two commands, npumemctl submit, check, and the specification agree to the bit."""
        self.save(picture())
        self.samples(random(0, 5, 3, 16, 16))
        command = [
            sys.executable,
            "-B",
            "-m",
            "npumem.onnx",
            "m.onnx",
            "--samples",
            "x.npy",
            "--dtype",
            "mixed",
            "--out",
            "net",
        ]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("operations: ", done.stdout)
        done = self.program("npumem.onnx.run", "net/network.json", "--samples", "x.npy", "--out", "all")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        everything = np.load(self.at("all", "y.npy"))
        self.assertEqual(everything.shape, (5, 10))
        for words in (("submit", "net/network.json", "--out", "one"), ("check", "net/network.json", "--min-snr", "15"), ("check", "net", "--samples", "x.npy", "--min-snr", "15")):  # fmt: skip
            command = [NPUMEMCTL, "--spawn", *words]
            done = subprocess.run(
                command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=SECONDS
            )
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        np.testing.assert_array_equal(np.load(self.at("one", "y.npy")).reshape(-1), everything[0])
        said = reference.network(self.at("net", "network.json"))
        np.testing.assert_array_equal(said.reads["y.npy"].reshape(-1), np.rint(everything[0] * 2.0**15))
        # From a model's file to its outputs for all samples, in the model's shape: two commands.
        for shape in ((5, 3, 16, 16), (5, 1, 3, 16, 16)):
            np.save(self.at("x.npy"), np.load(self.at("x.npy")).reshape(shape))
            self.submit_samples("x.npy")
            for name in ("y.npy", "g.npy"):
                got, want = np.load(self.at("many", name)), np.load(self.at("all", name))
                np.testing.assert_array_equal(got, want)
        self.assertIn("saturated", self.submit_samples("x.npy").stdout)
        for array, words in (
            (np.zeros((5, 3, 16, 15), np.float32), "no samples of 768"),
            (np.zeros((0, 3, 16, 16), np.float32), "no samples of 768"),
            (np.zeros((5, 3, 16, 16), np.int8), "real numbers are expected"),
            (np.full((2, 3, 16, 16), np.nan, np.float32), "NaN"),
        ):
            np.save(self.at("bad.npy"), array)
            self.submit_samples("bad.npy", words)
        self.submit_samples("missing.npy", "No such file")
        with open(self.at("x.npy"), "rb") as whole, open(self.at("bad.npy"), "wb") as file:
            file.write(whole.read()[:-4])
        self.submit_samples("bad.npy", "ends in its data")
        with open(self.at("net", "report.txt"), encoding="utf-8") as file:
            self.assertIn("a head, or made of one", file.read())

    def test_an_import_says_how_good_its_outputs_are(self):
        nodes = [("Add", ["x", "c"], ["a"], {}), ("Sub", ["a", "c"], ["y"], {}), ("Relu", ["x"], ["z"], {})]
        self.save(model(nodes, {"x": [1, 4, 5]}, {"y": None, "z": None}, {"c": np.float32(100)}))
        words = ("npumem.onnx", "m.onnx", "--samples", self.samples(random(0, 3, 1, 4, 5) / 4), "--dtype", "fx8", "--out")
        done = self.program(*words, "good")
        self.assertIn("output y has ", done.stderr)
        self.assertNotIn("output z has ", done.stderr)
        with open(self.at("good", "report.json"), encoding="utf-8") as file:
            db = json.load(file)["output_db"]
        self.assertTrue(db["y"] < 20 < 30 < db["z"], db)
        self.assertIn(f"z.npy, S/N {db['z']:.1f} dB", done.stdout)
        with mock.patch.dict(os.environ, {"NPUMEMD": "/nowhere"}):  # the daemon is not installed
            done = self.program(*words, "unknown")
        self.assertIn("cannot start a private daemon", done.stderr)
        self.assertEqual((done.returncode, os.path.exists(self.at("unknown", "network.json"))), (0, True))

    def test_arrays_lie_as_npumemctl_reads_them(self):
        """Also where samples, and values of layers, are transposed views."""
        w = random(1, 4, 3) / 2
        nodes = [("Transpose", ["x"], ["t"], {"perm": [0, 2, 1]}), ("MatMul", ["t", "w"], ["y"], {})]
        self.save(model(nodes, {"x": [1, 4, 5]}, {"y": None}, {"w": w}))
        for name, array in (("c", random(0, 3, 1, 4, 5)), ("fortran", np.asfortranarray(random(0, 1, 4, 5)))):
            done = self.program("npumem.onnx", "m.onnx", "--samples", self.samples(array), "--out", name)
            self.assertEqual(done.returncode, 0, done.stderr)
            for words in (
                ("submit", f"{name}/network.json", "--out", "one"),
                ("check", f"{name}/network.json", "--min-snr", "60"),
            ):
                command = [NPUMEMCTL, "--spawn", *words]
                done = subprocess.run(
                    command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=SECONDS
                )
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_mixed_gives_what_is_made_of_large_values_fx16(self):
        """A value and most of it are too large for fx8, and their difference is not."""
        one = np.eye(4, dtype=np.float32)[:, :, None, None]
        made = model(
            [
                *(("Conv", ["x" if i == 0 else f"c{i}", f"w{i}"], [f"c{i + 1}"], {}) for i in range(4)),
                ("Conv", ["c4", "w4"], ["large"], {}),
                ("Mul", ["large", "most"], ["less"], {}),
                ("Sub", ["large", "less"], ["rest"], {}),
                ("Conv", ["rest", "w3"], ["y"], {}),
            ],
            {"x": [1, 4, 8, 8]},
            {"y": [1, 4, 8, 8]},
            {"w0": 60 * one, "w1": one, "w2": one, "w3": one, "w4": random(1, 4, 4, 1, 1), "most": np.float32([0.97])},
        )
        x = random(0, 3, 4, 8, 8)
        imported = self.imported(made, x, "mixed")
        reasons = {one["value"]: one["why"] for one in imported.report["layers"]}
        self.assertIn("large, from which it is made, reaches", reasons["rest"])
        feeds = [{"x": one[None]} for one in x]
        got, want = self.outputs(imported, feeds), self.floats(made, feeds)
        self.assertGreater(noise_db(np.stack([one["y"] for one in want]), np.stack([one["y"] for one in got])), 25)

    def test_mixed_gives_what_large_values_are_summed_to_fx16(self):
        """The data of a convolution keep their type, also where its result fits fx8."""
        w, wide = random(1, 4, 4, 1, 1) / 2, random(2, 4, 4, 1, 1) * 20
        nodes = [("Conv", [a, "w"], [b], {}) for a, b in ("xa", "ab", "bc", "cd")]
        nodes += [("Conv", ["d", "wide", "bias"], ["e"], {}), ("Conv", ["e", "few"], ["f"], {}), ("Conv", ["f", "w"], ["g"], {}),
                  ("Conv", ["g", "w"], ["y"], {})]  # fmt: skip
        few = {"w": w, "wide": wide, "bias": np.float32([130, 60, 70, 80]), "few": random(3, 4, 4, 1, 1) / 50}
        made, x = model(nodes, {"x": [1, 4, 6, 6]}, {"y": None}, few), random(0, 4, 1, 4, 6, 6)
        imported, feeds = self.imported(made, x, "mixed"), [{"x": one} for one in x]
        types = {one["value"]: one["dtype"] for one in imported.report["layers"]}
        self.assertEqual([types[name] for name in "efg"], ["fx16", "fx16", "fx8"])
        want, got = (np.stack([one["y"] for one in each]) for each in (self.floats(made, feeds), self.outputs(imported, feeds)))
        self.assertGreater(noise_db(want, got), 30)

    def test_mixed_gives_small_probabilities_fx16(self):
        """Softmax over many numbers leaves fx8 little of each; a head is fx16 also where its kernel keeps types."""
        nodes = [("Conv", [one, "k"], [two], {}) for one, two in zip(["x", "a", "b", "c"], ["a", "b", "c", "d"])]
        nodes += [
            ("Conv", ["d", "w"], ["e"], {}),
            ("Softmax", ["e"], ["y"], {"axis": 1}),
            ("Conv", ["e", "v"], ["z"], {}),
        ]
        constants = {"k": random(2, 8, 8, 1, 1) / 3, "w": random(1, 64, 8, 1, 1) / 3, "v": random(3, 2, 64, 1, 1) / 8}
        made = model(nodes, {"x": [1, 8, 4, 4]}, {"y": None, "z": None}, constants)
        x = random(0, 6, 8, 4, 4)
        feeds = [{"x": one[None]} for one in x]
        want = np.stack([one["y"] for one in self.floats(made, feeds)])
        imported = self.imported(made, x, "mixed")
        self.assertEqual([imported.lowering.held[name].dtype for name in "ey"], ["fx8", "fx16"])
        self.assertGreater(noise_db(want, np.stack([one["y"] for one in self.outputs(imported, feeds)])), 25)

    def test_a_large_model_is_calibrated_with_fewer_samples(self):
        x = random(0, 6, 3, 16, 16)
        imported = self.imported(picture(), x)
        self.assertEqual(imported.report["calibrated"], 6)
        graph, values = imported.graph, imported.samples.runs[0]
        each = sum(value.nbytes for name, value in values.items() if name not in graph.constants)
        for room, n in ((1, 1), (each * 5 // 2, 2)):
            with mock.patch.object(formats, "SAMPLES_BYTES", room):
                self.assertEqual(self.imported(picture(), x).report["calibrated"], n)

    def test_a_device_that_is_too_small(self):
        self.save(picture())
        self.samples(random(0, 2, 3, 16, 16))
        self.assertEqual(self.program("npumem.onnx", "m.onnx", "--samples", "x.npy", "--out", "net").returncode, 0)
        command = [NPUMEMCTL, "--spawn=--npu-bytes 1024", "submit", "net/network.json", "--out", "one"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=SECONDS)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("bytes on each NPU", done.stderr)
        with mock.patch.object(run, "per_npu", return_value=1024):
            done = self.program("npumem.onnx.run", "net/network.json", "--samples", "x.npy", "--out", "all")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("bytes on each NPU", done.stderr)

    def test_samples_that_submit_would_refuse(self):
        self.save(picture())
        for dtype in ("i1", "<f2", ">f4"):
            self.samples(np.ones((2, 3, 16, 16), dtype))
            done = self.program("npumem.onnx", "m.onnx", "--samples", "x.npy", "--out", "net")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertIn("npumemctl submit --samples reads float32, float64, uint8, bool, int32 and int64, and not", done.stderr)
            self.assertFalse(os.path.exists(self.at("net")))

    def test_pictures_of_bytes(self):
        """uint8 into a Cast: all 256 values are exact, whatever the samples reach; the same file goes to submit."""
        nodes = [("Cast", ["x"], ["f"], {"to": 1}), ("Div", ["f", "k"], ["m"], {}), ("Conv", ["m", "w"], ["c"], {}), ("Add", ["m", "z"], ["s"], {})]
        made = model(nodes, {"x": [1, 3, 8, 8]}, {"c": None, "s": None}, {"k": np.float32(255), "w": random(1, 4, 3, 3, 3), "z": np.float32(1)})
        made.graph.input[0].type.tensor_type.elem_type = TensorProto.UINT8
        self.save(made)
        dark, bright = (np.random.default_rng(0).integers(0, most, (2, 3, 8, 8)).astype(np.uint8) for most in (60, 64))
        dark[0, 0, 0, 0], bright[0, 0, 0, 0] = 64, 0
        for dtype in ("fx16", "mixed"):
            self.samples(dark)
            done = self.program("npumem.onnx", "m.onnx", "--samples", "x.npy", "--out", dtype, "--dtype", dtype)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.samples(bright)
            command = [NPUMEMCTL, "--spawn", "submit", dtype, "--samples", "x.npy", "--out", f"{dtype}.out"]
            done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=False, timeout=SECONDS)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("in the quantization", done.stdout)
            self.assertGreater(noise_db(bright / 255 + 1, np.load(self.at(f"{dtype}.out", "s.npy"))), 55)
            with open(self.at(dtype, "network.json"), encoding="utf-8") as file:
                self.assertIn('"frac_bits": 7', next(line for line in file if '"x"' in line))
        self.samples(np.float32(dark) + 0.5)
        done = self.program("npumem.onnx", "m.onnx", "--samples", "x.npy", "--out", "none")
        self.assertIn("samples of x have numbers that uint8 has not", done.stderr)

    def test_an_import_is_the_same_each_time(self):
        self.save(picture())
        self.samples(random(0, 3, 3, 16, 16))
        texts = []
        for name in ("a", "b"):
            self.assertEqual(self.program("npumem.onnx", "m.onnx", "--samples", "x.npy", "--out", name).returncode, 0)
            with open(self.at(name, "network.json"), "rb") as file:
                texts.append(file.read())
        self.assertEqual(*texts)

    def test_no_sum_wraps(self):
        """Whatever the input is: weights that are all large, and inputs at the ends of their format."""
        w = np.full((4, 64, 3, 3), 1.9, np.float32)
        wide = made = model(
            [("Conv", ["x", "w", "b"], ["y"], {})],
            {"x": [1, 64, 5, 5]},
            {"y": None},
            {"w": w, "b": np.full(4, 500, np.float32)},
        )
        for dtype in ("fx16", "mixed"):
            imported = self.imported(made, random(0, 2, 64, 5, 5) / 50, dtype, method="max")
            self.outputs(imported, [{"x": np.full((1, 64, 5, 5), value, np.float32)} for value in (-1e6, 1e6)])
        recurrent = {
            "w": np.full((1, 4, 40), 3, np.float32),
            "r": np.full((1, 4, 4), 3, np.float32),
            "b": np.full((1, 8), 50, np.float32),
        }
        made = model(
            [("RNN", ["x", "w", "r", "b"], ["y"], {"hidden_size": 4})], {"x": [3, 1, 40]}, {"y": None}, recurrent
        )
        x = random(0, 3, 1, 40) * 50
        self.outputs(self.imported(made, x), [{"x": np.full((3, 1, 40), value, np.float32)} for value in (-1e6, 1e6)])
        with self.assertRaisesRegex(npumem.onnx.ImportRefused, "more than fx8 holds.*--dtype"):
            self.imported(wide, random(0, 2, 64, 5, 5) / 50, "fx8")

    def test_quantized_models(self):
        """A pair of QuantizeLinear and DequantizeLinear with a power of two is the format of the value."""
        scale, zero = np.float32(np.array(2.0**-4)), np.array(0, np.int8)
        nodes = [
            ("QuantizeLinear", ["x", "s", "z"], ["q"], {}),
            ("DequantizeLinear", ["q", "s", "z"], ["d"], {}),
            ("Relu", ["d"], ["y"], {}),
        ]
        made = model(nodes, {"x": [1, 2, 8]}, {"y": None}, {"s": scale, "z": zero})
        x = random(0, 1, 2, 8)
        imported = self.imported(made, x)
        held = imported.lowering.held["d"]
        self.assertEqual((held.dtype, held.frac), ("fx8", 4))
        got = self.outputs(imported, [{"x": x}])[0]["y"]
        np.testing.assert_array_equal(got, np.maximum(np.clip(np.rint(x * 16), -128, 127) / 16, 0))

    def test_several_inputs_and_batches(self):
        made = model([("Add", ["a", "b"], ["y"], {})], {"a": [2, 3], "b": [2, 1]}, {"y": None})
        a, b = random(1, 5, 2, 3), random(2, 5, 2, 1)
        self.save(made)
        np.savez(self.at("s.npz"), a=a, b=b)
        for words in (
            ("--samples", "s.npz"),
            ("--samples", f"a={self.samples(a, 'a.npy')}", "--samples", f"b={self.samples(b, 'b.npy')}"),
        ):
            done = self.program("npumem.onnx", "m.onnx", *words, "--out", f"net{len(words)}")
            self.assertEqual(done.returncode, 0, done.stderr)
        done = self.program("npumem.onnx.run", "net2/network.json", "--samples", "s.npz", "--out", "results")
        self.assertEqual(done.returncode, 0, done.stderr)
        got = np.load(self.at("results", "y.npy"))
        self.assertEqual(got.shape, (5, 2, 3))
        self.assertGreater(noise_db(a + b, got), 60)

    def test_shapes_of_any_rank(self):
        """Reshapes and permutations are exact, also of more than four dimensions."""
        shape, perm = np.array([2, 3, 2, 2, 4], np.int64), [3, 0, 4, 1, 2]
        nodes = [
            ("Reshape", ["x", "s"], ["r"], {}),
            ("Transpose", ["r"], ["t"], {"perm": perm}),
            ("Flatten", ["t"], ["y"], {"axis": 2}),
        ]
        made = model(nodes, {"x": [2, 6, 2, 4]}, {"y": None}, {"s": shape})
        x = np.arange(96, dtype=np.float32).reshape(2, 6, 2, 4) / 64
        got = self.outputs(self.imported(made, x), [{"x": x}])[0]["y"]
        np.testing.assert_array_equal(got, x.reshape(shape).transpose(perm).reshape(4, -1))

    def test_recurrent_layers(self):
        t, b, k, m = 5, 2, 4, 3
        for kind, n in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
            for direction, d in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
                constants = {
                    "w": random(1, d, n * m, k) / 2,
                    "r": random(2, d, n * m, m) / 2,
                    "b": random(3, d, 2 * n * m) / 4,
                }
                outs = ["y", "h"] + ["c"] * (kind == "LSTM")
                nodes = [(kind, ["x", "w", "r", "b"], outs, {"hidden_size": m, "direction": direction})]
                made = model(nodes, {"x": [t, b, k]}, {name: None for name in outs}, constants)
                feeds = [{"x": random(4, t, b, k)}]
                got, want = self.outputs(self.imported(made, feeds[0]["x"]), feeds)[0], self.floats(made, feeds)[0]
                for name in outs:
                    self.assertGreater(noise_db(want[name], got[name]), 45, (kind, direction, name))

    def test_one_sequence_is_one_operation(self):
        """Behind a permute, which makes rows of the steps; the states are the output as they are."""
        t, k, m = 5, 4, 3
        constants = {"w": random(1, 1, 4 * m, k) / 2, "r": random(2, 1, 4 * m, m) / 2}
        made = model([("LSTM", ["x", "w", "r"], ["y"], {"hidden_size": m})], {"x": [t, 1, k]}, {"y": None}, constants)
        feeds = [{"x": random(4, t, 1, k)}]
        imported = self.imported(made, feeds[0]["x"])
        self.assertEqual(imported.report["operations"], {"permute": 1, "lstm_cell": 1})
        got, want = self.outputs(imported, feeds)[0], self.floats(made, feeds)[0]
        self.assertGreater(noise_db(want["y"], got["y"]), 45)

    def test_rows_become_channels_in_one_permute(self):
        """And channels rows, exactly."""
        x, part = (np.round(random(seed, *shape) * 8) / 8 for seed, shape in ((0, (6, 4)), (1, (6, 1, 4))))
        nodes = [
            ("Reshape", ["x", "deep"], ["r"], {}),
            ("Add", ["r", "part"], ["a"], {}),
            ("Reshape", ["a", "flat"], ["f"], {}),
            ("Add", ["f", "x"], ["y"], {}),
        ]
        deep, flat = np.array([6, 1, 4], np.int64), np.array([6, 4], np.int64)
        made = model(nodes, {"x": [6, 4]}, {"y": None}, {"deep": deep, "flat": flat, "part": part})
        imported = self.imported(made, x)
        self.assertEqual(imported.report["operations"], {"permute": 2, "eltwise_add": 2})
        np.testing.assert_array_equal(self.outputs(imported, [{"x": x}])[0]["y"], 2 * x + part.reshape(6, 4))


if __name__ == "__main__":
    unittest.main()
