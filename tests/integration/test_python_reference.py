"""npumem.reference, the specification that runs: complete by the rows, right by the golden vectors, the published
networks, the vendor's placements and its own words, whose examples are run here and on the daemon."""

import ast
import contextlib
import doctest
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

import npumem
import numpy as np
from npumem import pb, reference
from npumem.conform.cases import CASES, Case
from npumem.conform.trial import Trial
from npumem.kernel import PARAMETERS
from npumem.reference import numeric
from npumem.reference.tables import TABLES
from support import NPUMEMCTL, SECONDS

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
VECTORS = os.path.join(SOURCE, "tests/conformance/vectors")
NETWORKS = os.path.join(SOURCE, "tests/examples/networks")
PARTS = ("Tensors", "Parameters", "Refused", "Counts", "Source", "Example")
LINES_MOST = 30  # of a kernel's code


def part_of(docstring, title):
    """The lines of a part, without their indentation."""
    found = re.search(rf"^{title}\n((?:    .*\n?|\n)+)", inspect.cleandoc(docstring) + "\n", re.MULTILINE)
    return textwrap.dedent(found[1]) if found else ""


def entries(text):
    """A part's names and their words; "in0, in1, …" is in0."""
    found = re.findall(r"^(\S[^\n]*(?:\n +[^\n]*)*)", text, re.MULTILINE)
    return {one.split("  ")[0].split(",")[0].split(" ")[0]: " ".join(one.split()) for one in found}


def code_lines(function):
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    return tree.end_lineno - tree.body[1].lineno + 1


class Complete(unittest.TestCase):
    """A row of kernels.def without a function, a part of its words or a random case fails by its name."""

    def each(self, check):
        self.assertGreaterEqual(len(npumem.kernels), 50)
        for name, row in npumem.kernels.items():
            with self.subTest(kernel=name):
                self.assertIn(name, reference.KERNELS, "has no function in npumem.reference")
                check(row, reference.KERNELS[name])

    def test_functions_and_random_cases(self):
        self.each(self.check_function)

    def check_function(self, row, function):
        self.assertIn(row.name, CASES, "has no random case in npumem.conform")
        self.assertLessEqual(code_lines(function), LINES_MOST)
        words = set(inspect.signature(function).parameters)
        roles = {role.strip(">?*").replace("in", "in_") if role.strip(">?*") == "in" else role.strip(">?*") for role in row.roles}
        self.assertEqual(words, roles | set(row.parameters) | {"rounding", "counts"})

    def test_words(self):
        self.each(self.check_words)

    def check_words(self, _, function):
        text = inspect.cleandoc(function.__doc__)
        formula = re.search(r"\n\n(?:    .*\n)+", text)
        self.assertTrue(text.split("\n")[0].endswith("."), "no summary")
        self.assertTrue(formula and " = " in formula[0], "no formula")
        for title in PARTS:
            self.assertTrue(part_of(function.__doc__, title), f"no part {title}")
        self.assertNotRegex(text, r"(?i)\bseed\b|\breference\b|by table")

    def test_tensors(self):
        self.each(self.check_tensors)

    def check_tensors(self, row, function):
        said = entries(part_of(function.__doc__, "Tensors"))
        for role in row.roles:
            name = role.strip(">?*") + ("0" if "*" in role else "")
            self.assertIn(name, said, f"role {name} has no words")
            # An LSTM has weights, or weights_in and weights_out.
            optional = role == "bias?" if row.name == "lstm_cell" else "?" in role
            self.assertEqual("may be left out" in said[name], optional, said[name])

    def test_parameters(self):
        self.each(self.check_parameters)

    def check_parameters(self, row, function):
        said = entries(part_of(function.__doc__, "Parameters"))
        self.assertEqual(set(said) - {"none"}, set(row.parameters))
        for name in row.parameters:
            default = inspect.signature(function).parameters[name].default
            needed = default is inspect.Parameter.empty or (row.name, name) == ("concat", "axis")
            self.assertRegex(said[name], "must be given" if needed else "if not given", name)
            if default not in (None, inspect.Parameter.empty) and not needed:
                value = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
                self.assertRegex(said[name], rf"\b{value} if not given|default if not given", name)
            for choice in PARAMETERS[name].choices:
                self.assertRegex(said[name], rf"\b{choice}\b", f"{name}={choice} has no words")

    def test_what_npumemctl_says(self):
        """npumemctl kernels has the choices, defaults and releases that the specification's words have."""
        said = json.loads(subprocess.run([NPUMEMCTL, "--json", "kernels"], check=True, capture_output=True, text=True).stdout)
        for kernel in said["kernels"]:
            function = reference.KERNELS[kernel["name"]]
            words = entries(part_of(function.__doc__, "Parameters"))
            for one in kernel["parameters"]:
                with self.subTest(kernel=kernel["name"], parameter=one["name"]):
                    self.check_said(one, words.get(one["name"]), "packed" in kernel["types"])
            source = part_of(function.__doc__, "Source")
            for release in re.findall(r"\d\.\d", kernel["source"]):
                self.assertIn(release, source, kernel["name"])
            self.assertRegex(kernel["source"], "embARC MLI|npumem|the vendor's model of BM1684")
            self.assertNotRegex(kernel["source"] + kernel["rounding"], r"seed|reference")

    def check_said(self, one, words, packed):
        if one["name"] == "rounding":
            self.assertEqual((one["choices"], one["default"]), (["up"], "up") if packed else (["convergent", "up", "nearest"], "the device's"))
            return
        if one["default"] is None:
            self.assertIn("must be given", words)
        else:
            default = re.escape(one["default"].removesuffix(", if N is 1"))
            self.assertRegex(words, rf"\b{default} if not given")
        taken = re.findall(r"\w+", words.split(";")[0])[1:]
        for choice in PARAMETERS[one["name"]].choices:
            self.assertEqual(choice in one["choices"], choice in taken, words)

    def test_counters(self):
        """The words name each counter that is not 0 in the example."""
        self.each(self.check_counters)

    def check_counters(self, _, function):
        counts, example = part_of(function.__doc__, "Counts"), part_of(function.__doc__, "Example")
        for name, n in re.findall(r"(saturated|wrapped|divided_by_zero|macs) (\d+)", example):
            if int(n):
                self.assertIn(name, entries(counts))


class Examples(unittest.TestCase):
    def test_of_the_specification(self):
        names = {"run": reference.run, "np": np, **{name: getattr(reference, name) for name in ("fx8", "fx16", "tensor", "Format")}}
        n = 0
        for name, function in reference.KERNELS.items():
            test = doctest.DocTestParser().get_doctest(inspect.cleandoc(function.__doc__), dict(names), name, name, 0)
            out = io.StringIO()
            result = doctest.DocTestRunner(verbose=False).run(test, out=out.write)
            self.assertEqual(result.failed, 0, out.getvalue())
            n += any("run(" in example.source for example in test.examples)
        self.assertEqual(n, len(npumem.kernels))

    def test_on_the_daemon(self):
        n = 0
        with Trial() as trial:

            def run(kernel, /, **given):
                nonlocal n
                result = reference.run(kernel, **given)
                n += 1
                self.assertEqual(trial.difference(Case(kernel, given), result), "", kernel)
                return result

            names = {"run": run, "np": np, **{name: getattr(reference, name) for name in ("fx8", "fx16", "tensor", "Format")}}
            for name, function in reference.KERNELS.items():
                test = doctest.DocTestParser().get_doctest(inspect.cleandoc(function.__doc__), dict(names), name, name, 0)
                for example in test.examples:
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compile(example.source, name, "single"), test.globs)
        self.assertGreaterEqual(n, len(npumem.kernels))

    def test_of_the_page_of_python(self):
        with open(os.path.join(SOURCE, "client/man/npumem-python.3.scd"), encoding="utf-8") as file:
            code = next(block for block in file.read().split("```\n") if "from npumem import reference" in block)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "npumem-python.3", "exec"), {})
        self.assertEqual(out.getvalue().splitlines(), re.findall(r"print\(.*\) +# (.*)", code))

    def test_of_the_manual(self):
        """The page of kernels has the same words."""
        page = os.path.join(os.environ["NPUMEM_BUILD"], "client/man/npumem-kernels.7.scd")
        if not os.path.exists(page):
            self.skipTest("there is no manual: scdoc is not there")
        with open(page, encoding="utf-8") as file:
            text = file.read().replace("\\", "")
        for name, function in reference.KERNELS.items():
            section = text.split(f"\n## {name}\n")[1].split("\n## ")[0]
            self.assertIn(part_of(function.__doc__, "Example").strip(), section)
            for title in PARTS:
                self.assertIn(f"*{title}*", section)


class Integers(unittest.TestCase):
    """The integers of the vendor's library and model."""

    def run_module(self, *paths):
        return subprocess.run(
            [sys.executable, "-B", "-m", "npumem.reference", *paths],
            capture_output=True, text=True, check=False, timeout=4 * SECONDS,
        )  # fmt: skip

    def test_golden_vectors(self):
        end = self.run_module(VECTORS)
        self.assertRegex(end.stdout, r"(?m)^1[34]\d\d passed, 0 failed$")
        self.assertEqual((end.returncode, end.stderr), (0, ""))

    def test_a_wrong_vector(self):
        with open(os.path.join(VECTORS, "relu.json"), encoding="utf-8") as file:
            whole = json.load(file)
        whole["cases"][3]["tensors"]["out"]["data"][5] ^= 1
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as directory:
            path = os.path.join(directory, "relu.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(whole, file)
            end = self.run_module(path)
        self.assertEqual(end.returncode, 1)
        self.assertRegex(end.stdout, rf"(?s)^FAIL .*{re.escape(whole['cases'][3]['name'])}: out\[.*29 passed, 1 failed\n$")

    def test_tables_are_the_published_ones(self):
        with open(os.path.join(VECTORS, "luts.json"), encoding="utf-8") as file:
            published = json.load(file)["tables"]
        self.assertEqual(len(TABLES), len(published))
        for (function, lut), table in TABLES.items():
            name = f"{function}_{lut}".replace("exp_", "expneg_")
            self.assertEqual(list(table.entries), published[name]["data"], name)

    def test_networks(self):
        n = 0
        for name in sorted(os.listdir(NETWORKS)):
            if name.endswith(".json"):
                network = reference.network(os.path.join(NETWORKS, name))
                self.assertEqual(network.differences, [], name)
                n += len(network.results)
        self.assertGreater(n, 15)

    def test_a_network_with_views_and_groups(self):
        """Operations that the example networks do not have, beside the daemon."""
        document = {
            "tensors": {
                "x": {"shape": [2, 3, 4, 4], "dtype": "fx8", "frac_bits": 4, "file": "x.npy", "quantize": True, "keep": True},
                "y": {"shape": [2, 3, 4, 4], "dtype": "fx8", "frac_bits": 4, "fill": 3, "keep": True},
                "z": {"shape": [2, 3, 2, 4], "dtype": "fx8", "frac_bits": 4, "keep": True},
                "j": {"shape": [2, 6, 4, 4], "dtype": "fx8", "frac_bits": 4, "keep": True},
            },
            "operations": [
                {"view": "top", "of": "y", "from": [0, 0, 1, 0], "to": [2, 3, 3, 4]},
                {"view": "flat", "of": "x", "shape": [2, 3, 1, 16]},
                {"run": "relu", "in": "flat", "out": "flat", "relu": "1", "rounding": "up"},
                {"parallel": [{"fill": "z", "value": 20}, {"run": "eltwise_add", "in1": "x", "in2": "y", "out": "y"}]},
                {"copy": "z", "from": "top"},
                {"run": "concat", "in": ["x", "y"], "out": "j", "axis": "c"},
                {"read": "j", "file": "j.npy"},
                {"read": "z", "file": "z.npy"},
            ],
        }
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as directory:
            np.save(os.path.join(directory, "x.npy"), np.linspace(-9, 9, 96, dtype=np.float32).reshape(2, 3, 4, 4))
            path = os.path.join(directory, "net.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(document, file)
            network = reference.network(path)
            program = os.path.join(os.environ["NPUMEM_BUILD"], "client/ctl/npumemctl")
            end = subprocess.run([program, "--spawn", "submit", path, "--out", directory], capture_output=True, text=True,
                                 check=False, timeout=SECONDS, cwd=directory)  # fmt: skip
            self.assertEqual(end.returncode, 0, end.stdout + end.stderr)
            for name, values in network.reads.items():
                np.testing.assert_array_equal(np.load(os.path.join(directory, name)), values, name)


class Runs(unittest.TestCase):
    """run as Device.run, and refusals."""

    def test_tensors_of_a_device(self):
        with npumem.spawn("--npus", "4", "--npu-bytes", "65536", timeout=SECONDS) as dev:
            x = dev.alloc("x", np.linspace(-3, 3, 2 * 5 * 4 * 4).reshape(2, 5, 4, 4), dtype="fx8", frac_bits=5, mode="4n")
            w = dev.alloc("w", np.ones((5, 3, 3, 3), np.int8), dtype="fx8", frac_bits=3, start_npu=2)
            y = dev.alloc("y", shape=(2, 3, 4, 4), dtype="fx8", frac_bits=4)
            given = {"in_": x, "weights": w, "out": y, "padding": (1, 1, 1, 1), "relu": "6"}
            want, done = reference.run("conv2d", **given), dev.run("conv2d", **given)
            np.testing.assert_array_equal(y.read(), want.out.values)
            self.assertEqual((done.saturated, done.wrapped, done.macs), (want.saturated, want.wrapped, want.macs))
            self.assertGreater(want.saturated, 0)

    def test_what_is_wrong(self):
        x, out = reference.fx8([1, 2], 4), reference.Format("fx8", 4)
        with self.assertRaises(reference.Refused):
            reference.run("relu", in_=x, out=reference.Format("fx16", 4))
        with self.assertRaisesRegex(reference.Refused, "act"):
            reference.run("basic_rnn_cell", in_=x, prev_out=x, weights=x, out=out)
        with self.assertRaisesRegex(TypeError, "relux"):
            reference.run("relu", in_=x, out=out, relux="gen")
        with self.assertRaisesRegex(reference.Refused, "none, gen, 1, 6"):
            reference.run("relu", in_=x, out=out, relu="2")
        with self.assertRaisesRegex(ValueError, "convolve"):
            reference.run("convolve", in_=x)
        with self.assertRaises(reference.Refused):
            reference.fx8([128], 0)

    def test_sums_that_64_bits_do_not_hold(self):
        """A bias that is shifted by 254 bits, beside the daemon."""
        given = {
            "in_": reference.fx8([[1, -1]], 127), "weights": reference.fx8([[1], [1]], 127), "bias": reference.fx8([1], 0),
            "out": reference.Format("fx8", 0),
        }  # fmt: skip
        want = reference.run("fully_connected", **given)
        self.assertEqual((want.out.values.item(), want.wrapped), (0, 1))
        with Trial() as trial:
            self.assertEqual(trial.difference(Case("fully_connected", given), want), "")


class Places(unittest.TestCase):
    def test_the_vendor_s_strides(self):
        with open(os.path.join(VECTORS, "vendor/layout.json"), encoding="utf-8") as file:
            cases = json.load(file)["cases"]
        types = {8: "int8", 16: "int16", 32: "fp32"}
        n = 0
        for case in cases:
            shape, stride = (tuple(case[key][d] for d in "nchw") for key in ("shape", "stride"))
            if min(shape) < 1:
                continue
            with contextlib.suppress(reference.Refused, MemoryError):  # one that no device holds
                if np.prod(shape) > 200000:
                    continue
                place = reference.place(shape, types[case.get("dtype_bits", 32)], layout=case["layout"], start_npu=case["start_npu"])
                self.assertEqual((tuple(place.stride), place.channels_per_npu), (stride, case["channels_per_npu"]), case)
                n += 1
        self.assertGreater(n, 100)

    def test_beside_the_daemon(self):
        """Strides, sizes and kinds of bytes, and the bytes themselves after a write."""
        layouts = {
            "aligned": {"layout": "aligned"}, "compact": {"layout": "compact"}, "4n": {"layout": "aligned", "mode": "4n"},
            "2n": {"layout": "compact", "mode": "2n"}, "2ic": {"layout": "compact", "mode": "2ic"},
            "strided": {"layout": "strided", "stride": (500, 120, 24, 2)}, "matrix": {"layout": "matrix", "w": 7},
            "matrix of its own width": {"layout": "matrix"},
        }  # fmt: skip
        dtypes = {"2n": "int16", "2ic": "fp32"}
        with npumem.spawn("--npus", "4", "--npu-bytes", "65536", timeout=SECONDS) as dev:
            for name, given in layouts.items():
                for start_npu in (0, 3):
                    shape = (3, 40) if "matrix" in name else (3, 6, 4, 5)
                    dtype = dtypes.get(name, "int8")
                    place = reference.place(shape, dtype, n_npus=4, npu_bytes=65536, start_npu=start_npu, **given)
                    values = (np.arange(np.prod(shape)) % 100 + 1).reshape(shape)
                    tensor = dev.alloc(array=values.astype(npumem.formats.CONTAINERS[dtype]), dtype=dtype, start_npu=start_npu, **given)
                    theirs = tensor.place
                    blocks = {kind: getattr(theirs.blocks, kind) for kind in ("data", "dummy", "padding", "empty")}
                    self.assertEqual(place.blocks, blocks, name)
                    self.assertEqual(place.bytes_per_npu, theirs.bytes_per_npu, name)
                    self.assertEqual(theirs.offset % place.align_bytes, 0)
                    self.check_bytes(dev, tensor, place, values, name)
                    tensor.free()

    def check_bytes(self, dev, tensor, place, values, name):
        kinds, container = place.kinds, npumem.formats.CONTAINERS[tensor.dtype]
        dumps = [dev.ask("dump", pb.DumpRequest(npu=npu, offset=tensor.place.offset, bytes=place.bytes_per_npu)).dump.data
                 for npu in range(4)]  # fmt: skip
        flat = values.reshape(values.shape[0], -1)
        for n, c, h, w in np.argwhere(place.byte >= 0):
            at, npu = int(place.byte[n, c, h, w]), int(place.npu[n, c, h, w])
            want = flat[n, (c * place.shape.h + h) * place.shape.w + w]
            self.assertEqual(np.frombuffer(dumps[npu], container, 1, at)[0], want, (name, n, c, h, w))
            self.assertTrue((kinds[npu, at : at + container.itemsize] == 0).all())

    def test_what_is_refused(self):
        for given in (
            {"shape": (1, 1, 2, 2), "layout": "strided", "stride": (1, 1, 1, 1)},
            {"shape": (1, 1, 2, 2), "mode": "2n"},
            {"shape": (1, 1, 2, 2), "start_npu": 64},
            {"shape": (1, 1, 1000, 1000)},
        ):
            with self.assertRaises(reference.Refused, msg=given):
                reference.place(given.pop("shape"), "int8", **given)


class Formats(unittest.TestCase):
    """The numbers of the arithmetic chapter, with its bounds mended."""

    def test_operations(self):
        q = numeric.parse
        self.assertEqual(numeric.mul(q("Q4.3"), q("Q5.7")), q("Q9.10"))
        self.assertEqual(numeric.div(q("Q16.16"), q("Q7.10")), q("Q9.6"))
        self.assertEqual(numeric.div(q("Q7.8"), q("Q3.12")), q("Q4.-4"))
        self.assertEqual(numeric.total(q("Q3.4"), 34), q("Q9.4"))
        self.assertEqual(numeric.extra_bits(1601), 11)
        self.assertEqual(str(numeric.of("fx16", 10)), "Q5.10")

    def test_bounds(self):
        for data, weights, safe in (("fx8", "fx8", 131071), ("fx16", "fx16", 511), ("fx16", "fx8", 131071), ("fx8", None, 2**24)):
            self.assertEqual(numeric.bound(data, weights, safe).safe, safe)
            self.assertFalse(numeric.bound(data, weights, safe).can_overflow)
            self.assertTrue(numeric.bound(data, weights, safe + 1).can_overflow)

    def test_beside_npumemctl(self):
        program = os.path.join(os.environ["NPUMEM_BUILD"], "client/ctl/npumemctl")
        end = subprocess.run([program, "--json", "numeric", "add", "Q4.3", "Q2.7"], capture_output=True, text=True, check=True)
        self.assertIn(f'"{numeric.add(numeric.parse("Q4.3"), numeric.parse("Q2.7"))}"', end.stdout)


if __name__ == "__main__":
    unittest.main()
