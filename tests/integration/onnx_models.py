"""Small ONNX models, and a folder in which the importer's commands run. Ends the test as skipped where there is no
python3-onnx."""

import contextlib
import io
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

import numpy as np

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    from npumem.onnx import __main__ as importer
    from npumem.onnx import run
except ImportError as problem:
    print(f"skipped: {problem}; tests/packages.sh python3-onnx libonnx-testdata")
    sys.exit(77)

NPUMEMCTL = os.path.join(os.environ["NPUMEM_BUILD"], "client", "ctl", "npumemctl")


def model(nodes, inputs, outputs, constants=(), opset=13, **more):
    """A model of nodes (operator, inputs, outputs, attributes) and shapes by name."""
    made = [helper.make_node(op, ins, outs, name=f"{op}_{i}", **rest) for i, (op, ins, outs, rest) in enumerate(nodes)]
    graph = helper.make_graph(
        made, "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in dict(constants).items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=7, **more)


def random(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def picture(opset=13):
    """Convolutions with what folds into them, a pool, a product, softmax."""
    constants = {
        "w1": random(1, 8, 3, 3, 3) / 5, "scale": random(2, 8) / 4 + 1, "shift": random(3, 8) / 4, "mean": random(4, 8) / 4,
        "var": np.abs(random(5, 8)) + 0.5, "w2": random(6, 8, 1, 3, 3) / 3, "b2": random(7, 8) / 4,
        "w3": random(8, 12, 8, 1, 1) / 3, "k": np.float32(np.array(0.5)), "w4": random(9, 12 * 4 * 4, 10) / 12,
        "b4": random(10, 10) / 4,
    }  # fmt: skip
    nodes = [
        ("Pad", ["x"], ["p"], {"pads": [0, 0, 1, 1, 0, 0, 1, 1]}) if opset < 11 else ("Pad", ["x", "pads"], ["p"], {}),
        ("Conv", ["p", "w1"], ["c1"], {}),
        ("BatchNormalization", ["c1", "scale", "shift", "mean", "var"], ["n1"], {}),
        ("Relu", ["n1"], ["r1"], {}),
        ("Conv", ["r1", "w2", "b2"], ["c2"], {"group": 8, "pads": [1, 1, 1, 1], "strides": [2, 2]}),
        ("Relu", ["c2"], ["r2"], {}),
        ("Conv", ["r2", "w3"], ["c3"], {}),
        ("Mul", ["c3", "k"], ["m3"], {}),
        ("Sigmoid", ["m3"], ["s3"], {}),
        ("Mul", ["m3", "s3"], ["h3"], {}),
        ("MaxPool", ["h3"], ["q3"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("Flatten", ["q3"], ["f"], {}),
        ("Gemm", ["f", "w4", "b4"], ["g"], {}),
        ("Softmax", ["g"], ["y"], {"axis": 1}),
    ]
    if opset >= 11:
        constants["pads"] = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)
    return model(nodes, {"x": [1, 3, 16, 16]}, {"g": [1, 10], "y": [1, 10]}, constants, opset)


class Folder(unittest.TestCase):
    """A folder for each test."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="npumem-test-"))

    def at(self, *path):
        return os.path.join(self.folder, *path)

    def save(self, made, name="m.onnx"):
        onnx.save_model(made, self.at(name))
        return self.at(name)

    def samples(self, array, name="x.npy"):
        np.save(self.at(name), array)
        return self.at(name)

    def program(self, name, *words):
        """The command, in this process: importing onnx takes longer than all the rest."""
        out, err, main = io.StringIO(), io.StringIO(), run.main if name.endswith("run") else importer.main
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.chdir(self.folder):
            with mock.patch.object(sys, "argv", [name, *words]):
                code = main()
        return types.SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())

    def assert_refused(self, *says, words=(), path="m.onnx"):
        """One line that says each of these, and nothing new in the folder."""
        before = sorted(os.listdir(self.folder))
        done = self.program("npumem.onnx", path, "--out", "out", *words)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        for one in says:
            self.assertIn(one, done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), before)
        return done.stderr
