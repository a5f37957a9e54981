"""The Python package's kernels: as kernels.def and the protocol have them, golden vectors by name, the package's types,
and the example of the manual page."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import npumem
import numpy as np
from npumem import pb
from npumem.kernel import PARAMETERS, run_request
from support import SECONDS

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
VECTORS = os.path.join(SOURCE, "tests/conformance/vectors")


class Rows(unittest.TestCase):
    def test_as_the_protocol_has_them(self):
        self.assertEqual(
            {name.upper(): row.number for name, row in npumem.kernels.items()},
            {name: number for name, number in pb.Kernel.items() if number},
        )
        self.assertEqual(
            {"PARAM_" + name.upper(): row.number for name, row in PARAMETERS.items()},
            {name: number for name, number in pb.ParamKey.items() if number},
        )

    def test_every_kernel_by_name(self):
        """The daemon knows each, with all of its roles and parameters."""
        with npumem.spawn("--npus", "4", "--npu-bytes", "65536", timeout=SECONDS) as dev:
            x = dev.alloc("x", np.ones((1, 4, 2, 2), np.int8))
            for name, row in npumem.kernels.items():
                given = {}
                for role in row.roles:
                    given[role.strip(">?*") + "_"] = [x, x] if role.endswith("*") else x
                for key in row.parameters:
                    parameter = PARAMETERS[key]
                    given[key] = parameter.choices[0] if parameter.choices else [1] * parameter.least
                request = run_request(name, given)
                self.assertEqual(request.kernel, row.number)
                self.assertEqual(len(request.params), len(row.parameters))
                try:
                    dev.run(name, **given)
                except npumem.Refused as problem:  # of tensors like these, in the kernel's own words
                    self.assertEqual(problem.status, npumem.Status.INVALID, problem)
                    self.assertTrue(problem.message.startswith(name + ": "), problem)
                    self.assertNotRegex(problem.message, "no role|no tensor|no parameter|unknown|does not take")

    def test_what_is_told_of_one(self):
        told = str(npumem.kernels["conv2d"])
        self.assertIn("in [N,I,H,W]", told)
        self.assertIn("none|gen|1|6", told)

    def test_lists_and_choices(self):
        request = run_request("concat", {"in_": ["a", "b", 7], "in3": "d", "out": "e", "axis": "c", "rounding": "up"})
        self.assertEqual(
            [(o.role, o.tensor.name or o.tensor.handle) for o in request.operands],
            [("in0", "a"), ("in1", "b"), ("in2", 7), ("in3", "d"), ("out", "e")],
        )
        self.assertEqual([(p.key, list(p.values)) for p in request.params], [(pb.PARAM_AXIS, [3]), (pb.PARAM_ROUNDING, [2])])
        self.assertEqual(list(run_request("relu", {"relu": 6}).params[0].values), [4])
        self.assertEqual(list(run_request("reduce_sum", {"axes": ("h", "w")}).params[0].values), [3, 4])
        self.assertEqual(list(run_request("pad2d", {"padding": np.array([1, 2, 3, 4])}).params[0].values), [1, 2, 3, 4])


class Golden(unittest.TestCase):
    """Vectors whose tensors need no other order than N,C,H,W; npumemctl conform runs all of them."""

    @staticmethod
    def array(tensor):
        container = {"fx8": np.int8, "fx16": np.int16}.get(tensor["dtype"])
        values = np.array(tensor["data"], container).reshape(tensor["shape"])
        dims = "".join(tensor["dims"])
        if dims == "OIHW":
            values = values.transpose(1, 0, 2, 3)
        return values.reshape(npumem.formats.shape4(values.shape)) if values.ndim else values.reshape(1, 1, 1, 1)

    def cases(self, kernel):
        with open(os.path.join(VECTORS, kernel + ".json"), encoding="utf-8") as file:
            return json.load(file)["cases"]

    def run_case(self, dev, case):
        out, given = case["tensors"]["out"], {}
        for role, tensor in case["tensors"].items():
            array = self.array(tensor)
            if role == "out":
                given["out"] = dev.alloc(shape=array.shape, dtype=tensor["dtype"], frac_bits=tensor["frac_bits"])
            else:
                given[role + "_"] = dev.alloc(array=array, dtype=tensor["dtype"], frac_bits=tensor["frac_bits"])
        parameters = npumem.kernels[case["kernel"]].parameters
        for name, value in case["params"].items():
            if name == "padding":
                value = [value[side] for side in ("top", "bottom", "left", "right")]
            if name in parameters:
                given[name] = value
        if case["rounding"] != "any":
            given["rounding"] = case["rounding"]
        dev.run(case["kernel"], **given)
        np.testing.assert_array_equal(given["out"].read().reshape(-1), out["data"], case["name"])
        dev.free(*[tensor for role, tensor in given.items() if isinstance(tensor, npumem.Tensor)])

    def test_vectors(self):
        with npumem.spawn(timeout=SECONDS) as dev:
            for kernel, least in (("conv2d", 100), ("maxpool", 5), ("eltwise_mul", 5), ("depthwise_conv2d", 5)):
                n = 0
                for case in self.cases(kernel):
                    if "lut" in str(case["tags"]):
                        continue
                    self.run_case(dev, case)
                    n += 1
                self.assertGreaterEqual(n, least, kernel)
            self.assertEqual(dev.tensors(), [])


class Package(unittest.TestCase):
    @unittest.skipUnless(shutil.which("mypy"), "mypy is not installed: tests/packages.sh mypy")
    def test_types(self):
        """All of it, and a program that uses it rightly; one that does not is told so. What mypy finds out of Python and
        NumPy stays in the build folder."""
        build = os.environ["NPUMEM_BUILD"]
        right = (
            "import npumem\nwith npumem.spawn() as dev:\n    print(dev.alloc('x', [1]).read().shape, dev.stat().free)\n"
            "    print(npumem.kernels['conv2d'].summary)\n"
        )
        wrong = "    dev.alloc(5)\n    dev.open('x').frac_bits + 'a'\n    dev.stat().fee\n"
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as directory:
            for name, text in (("right", right), ("wrong", right + wrong)):
                with open(os.path.join(directory, name + ".py"), "w", encoding="utf-8") as file:
                    file.write(text)
            command = [
                "mypy", "--python-executable", sys.executable, "--cache-dir", os.path.join(build, "tests/mypy"),
                "--config-file", os.path.join(SOURCE, "client/python/mypy.ini"), "-p", "npumem", "-m", "right", "-m", "wrong",
            ]  # fmt: skip
            environment = dict(os.environ, MYPYPATH=f"{build}/python:{directory}")
            end = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=8 * SECONDS)
        errors = [line for line in end.stdout.splitlines() if " error: " in line]
        self.assertEqual((len(errors), end.returncode), (3, 1), end)
        self.assertTrue(all("wrong.py:" in error for error in errors), errors)

    def test_everything_is_described(self):
        for name in npumem.__all__:
            thing = getattr(npumem, name)
            if callable(thing):
                self.assertTrue(thing.__doc__, name)
                self.assertNotRegex(thing.__doc__, rf"^{thing.__name__}\(", name)
        for kind in (npumem.Device, npumem.Tensor, npumem.Batch, npumem.Kept, npumem.Pending):
            for name, thing in vars(kind).items():
                is_plain = name.endswith("_async") or name in ("dtype", "handle", "ask_tensor", "settle", "ref")
                if not name.startswith("_") and callable(thing) and not is_plain:
                    self.assertTrue(thing.__doc__ or name in ("check_out", "finished"), f"{kind.__name__}.{name}")

    def run_code(self, code, directory):
        end = subprocess.run(
            [sys.executable, "-B", "-W", "error", "-c", code],
            capture_output=True, text=True, check=False, timeout=SECONDS, cwd=directory,
        )  # fmt: skip
        self.assertEqual((end.returncode, end.stderr), (0, ""), code)
        return end.stdout.splitlines()

    def test_the_example_of_the_manual_page(self):
        with open(os.path.join(SOURCE, "client/man/npumem-python.3.scd"), encoding="utf-8") as file:
            code = file.read().split("```\n")[1]
        self.assertIn("npumem.spawn(", code)
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as directory:
            lines = self.run_code(code, directory)
        said = re.findall(r"print\(.*\) +# (.*)", code)
        self.assertEqual(lines, said)
        self.assertGreater(len(said), 3)


if __name__ == "__main__":
    unittest.main()
