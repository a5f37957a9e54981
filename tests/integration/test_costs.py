"""What plan and submit --dry-run say that operations cost: beside what the daemon counts and the specification says, and
cycles by rates."""

import json
import os
import subprocess
import unittest
import xml.etree.ElementTree

import npumem
import numpy as np
from npumem.conform.__main__ import expectation
from npumem.conform.cases import drawn
from npumem.conform.draw import Draw
from npumem.reference.kernels import Result
from support import NPUMEMCTL, TestCase

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "networks")
RATES = "macs_per_cycle=16,dma_bytes_per_cycle=64,overhead=10"
FORMULA = (
    "cycles of a run = 10 + ceil(MACs / (16 * NPUs)), of DMA = 10 + ceil(bytes / 64); the sum: one after the other"
)


class Costs(TestCase):

    def plan(self, operations, *options, **expected):
        return json.loads(self.ctl("plan", "-", "--json", *options, text=json.dumps(operations), **expected))

    def costs(self, operations, *options, **expected):
        """Those of the last operation."""
        return self.plan(operations, *options, **expected)["operations"][-1]["costs"]

    def test_as_the_daemon_counts(self):
        """MACs of each operation, and all bytes of DMA."""
        for name in ("digits_fx8", "digits_fx16", "picture", "motion"):
            path = os.path.join(EXAMPLES, name + ".json")
            before = json.loads(self.ctl("stat", "--json"))["activity"]
            ran = json.loads(self.ctl("submit", path, "--json"))["operations"]
            after = json.loads(self.ctl("stat", "--json"))["activity"]
            dry = json.loads(self.ctl("submit", path, "--dry-run", "--json"))
            self.assertEqual([(one["operation"], one["what"], one["name"], one["costs"]["macs"]) for one in dry["operations"]],
                             [(one["operation"], one["what"], one["name"], one["macs"]) for one in ran])  # fmt: skip
            self.assertEqual(dry["sums"]["dma_bytes"], after["dma_bytes"] - before["dma_bytes"])
            self.assertEqual(dry["sums"]["macs"], after["macs"] - before["macs"])
            self.assertTrue(dry["sums_complete"])
            self.assertGreater(dry["sums"]["macs"], 0)
            self.assertNotIn("cost", dry)
            self.assertNotIn("cycles", dry["sums"])

    def test_macs_of_every_kernel(self):
        """As the specification has them, and bytes of the operands."""
        some = set()
        for row in npumem.kernels:
            cases, operations = [], []
            for number in range(12):
                case = drawn(Draw(f"{number}/{row}/costs"), str(row))
                result = expectation(case)
                self.assertIsInstance(result, Result)
                tensors = dict(case.tensors()) | result.outputs
                for role, x in tensors.items():
                    shape = [1] * (4 - len(x.shape)) + list(x.shape) if len(x.shape) < 4 else list(x.shape)
                    format_ = {"dtype": x.dtype} | ({"frac_bits": x.f} if x.dtype in ("fx8", "fx16") else {})
                    operations.append({"alloc": f"{role}_{number}", "shape": shape, **format_})
                words = {key.rstrip("_"): value for key, value in case.given.items()}
                params = {key: list(value) if isinstance(value, tuple) else value for key, value in words.items()
                          if key not in tensors and not (isinstance(value, list) and f"{key}0" in tensors)}  # fmt: skip
                operations.append({"run": str(row), **{role: f"{role}_{number}" for role in tensors}, **params})
                cases.append((tensors, params, result))
            plan = self.plan(operations, "--npus", "64", "--npu-bytes", "128MiB")["operations"]
            costs = [one["costs"] for one in plan if one["what"] == f"run {row}"]
            for (tensors, params, result), cost in zip(cases, costs, strict=True):
                sizes = {role: int(np.prod(x.shape)) * npumem_bytes(x.dtype) for role, x in tensors.items()}
                said = (str(row), params, {role: x.shape for role, x in tensors.items()})
                self.assertEqual(cost["macs"], result.counts.macs, said)
                self.assertEqual(cost["local_written_bytes"], sum(sizes[role] for role in result.outputs), said)
                self.assertEqual(cost["local_read_bytes"], sum(sizes[role] for role in sizes if role not in result.outputs), said)
                some |= {str(row)} if cost["macs"] else set()
        self.assertEqual(len(some), 14, some)

    def test_npus_and_lanes(self):
        """On 4 NPUs; an EU has 128 bytes."""
        device = ("--npus", "4", "--npu-bytes", "65536")

        def of(shape, *views, dtype="fx16", name="t", **more):
            form = {"dtype": dtype, "frac_bits": 0, **more}
            operations = [{"alloc": "t", "shape": shape, **form}, *views, {"run": "relu", "in": name, "out": name}]
            cost = self.costs(operations, *device)
            return cost["npus"], cost["lanes"]

        self.assertEqual(of([1, 3, 1, 5]), (3, 15))
        self.assertEqual(of([1, 9, 1, 5]), (4, 20))  # each channel begins at lane 0
        self.assertEqual(of([1, 9, 1, 5], layout="compact"), (4, 15 + 10 + 10 + 10))  # one behind the other
        self.assertEqual(of([2, 4, 9, 9]), (4, 256))
        self.assertEqual(of([2, 4, 9, 9], dtype="fx8"), (4, 4 * 81))
        slice_ = {"view": "v", "of": "t", "from": [0, 1, 0, 0], "to": [1, 3, 1, 2]}
        self.assertEqual(of([1, 4, 2, 8], slice_, name="v"), (2, 4))
        shaped = {"view": "v", "of": "t", "shape": [1, 4, 4, 4]}
        self.assertEqual(of([1, 4, 2, 8], shaped, name="v"), (4, 64))
        row = {"view": "r", "of": "v", "from": [0, 0, 3, 0], "to": [1, 1, 4, 3]}
        self.assertEqual(of([1, 4, 2, 8], shaped, row, name="r"), (1, 3))

    def test_dma(self):
        """Bytes of what is moved, and of local memory on the side where it lies; no lanes."""
        one = {"shape": [2, 3, 4, 5], "dtype": "fx16", "frac_bits": 0}
        sizes = {"dma_bytes": 240, "npus": 3, "macs": 0, "lanes": 0}
        tensors = [{"alloc": "a", **one}, {"alloc": "b", **one}]
        for operation, read, written in (
            ({"fill": "a", "value": 1}, 0, 240),
            ({"copy": "a", "from": "b"}, 240, 240),
            ({"read": "a", "file": "x.npy"}, 240, 0),
            ({"write": "a", "file": "x.npy"}, 0, 240),
        ):
            moved = {"local_read_bytes": read, "local_written_bytes": written}
            self.assertEqual(self.costs([*tensors, operation]), sizes | moved)
            self.assertEqual(self.costs([*tensors, {"parallel": [operation]}]), sizes | moved)

    def test_what_only_the_device_knows(self):
        """No cost is made up; the sums say that they are not all."""
        operations = [{"open": "w"}, {"alloc": "a", "shape": [1, 1, 1, 8], "dtype": "int8"}, {"fill": "a", "value": 1},
                      {"copy": "a", "from": "w"}]  # fmt: skip
        plan = self.plan(operations, "--cost", RATES)
        self.assertEqual(plan["operations"][1]["costs"], None)
        self.assertEqual((plan["sums"]["dma_bytes"], plan["sums"]["cycles"], plan["sums_complete"]), (8, 11, False))
        text = self.ctl("plan", "-", text=json.dumps(operations), says='"all" is without it')
        self.assertRegex(text, r"copy a +\? +\? +\? +\? +\? +\?\n")

    def test_wrong_networks(self):
        """The daemon refuses them; here they have no cost, and nothing breaks."""
        one = {"shape": [1, 2, 4, 4], "dtype": "fx16", "frac_bits": 0}
        tensors = [{"alloc": name, **one} for name in ("a", "w", "b")]
        conv = {"run": "conv2d", "in": "a", "weights": "w", "out": "b"}
        for wrong in ({"stride": [0, 1]}, {"stride": [-1, 1]}, {"dilation": [1, 0]}, {"padding": [-1, 0, 0, 0]},
                      {"stride": [2**62, 1]}, {"padding": [0, 0, 2**63 - 1, 0]}):  # fmt: skip
            self.assertIsNone(self.costs([*tensors, conv | wrong], code=1, says="operation 4, run conv2d: "), wrong)
        for view in ({"from": [0, 0, 0, 0], "to": [1, 3, 4, 4]}, {"from": [0, 1, 0, 0], "to": [1, 1, 4, 4]},
                     {"shape": [1, 2, 4, 5]}, {"shape": [1, 4, 2, 4]}, {"shape": [1, 2, 2**62, 2**62]},
                     {"from": [0, 0, 0, 0], "to": [1, 2, 2**62, 4]}):  # fmt: skip
            operations = [*tensors, {"view": "v", "of": "a", **view}, {"fill": "v", "value": 1}]
            self.assertIsNone(self.costs(operations, code=1, says="operation 4, view v: "), view)

    def test_more_than_64_bits(self):
        tensors = [{"alloc": "a", "shape": [2**26, 1, 1, 1], "dtype": "fx8", "frac_bits": 0, "layout": "compact"},
                   {"alloc": "w", "shape": [1, 2**20, 2**19, 1], "dtype": "fx8", "frac_bits": 0, "layout": "compact"},
                   {"alloc": "b", "shape": [1, 1, 1, 1], "dtype": "fx8", "frac_bits": 0}]  # fmt: skip
        self.ctl("plan", "-", "--npus", "1024", "--npu-bytes", "1GiB", code=1, says="run fully_connected: its cost is more than",
                 text=json.dumps([*tensors, {"run": "fully_connected", "in": "a", "weights": "w", "out": "b"}]))  # fmt: skip

    def test_cycles(self):
        """By the formula beside them; a real chip's are not known."""
        path = os.path.join(EXAMPLES, "motion.json")
        plan = json.loads(self.ctl("plan", path, "--cost", RATES, "--json"))
        self.assertEqual(plan["cost"], {"macs_per_cycle": 16, "dma_bytes_per_cycle": 64, "overhead": 10, "formula": FORMULA})
        total = 0
        for one in plan["operations"]:
            cost = one["costs"]
            rate = 16 * cost["npus"] if one["what"].startswith("run ") else 64
            work = cost["macs"] if one["what"].startswith("run ") else cost["dma_bytes"]
            self.assertEqual(cost["cycles"], 10 + -(-work // rate), one)
            total += cost["cycles"]
        self.assertEqual(plan["sums"]["cycles"], total)
        self.assertIn(f"as declared: {FORMULA}\n", self.ctl("plan", path, "--cost", RATES))
        self.assertIn(FORMULA, self.ctl("submit", path, "--dry-run", "--cost", RATES))
        self.assertNotIn("cycles", self.ctl("plan", path))
        self.assertIn("host ms", self.ctl("submit", path))
        with open(os.path.join(self.daemon.directory, "chip"), "w", encoding="ascii") as file:
            file.write("# mine\nmacs_per_cycle=16\n\ndma_bytes_per_cycle=64, overhead=10 # guessed\n")
        self.assertEqual(json.loads(self.ctl("plan", path, "--cost", "chip", "--json")), plan)

    def test_refused_rates(self):
        path = os.path.join(EXAMPLES, "motion.json")
        most, past = str(2**63 - 1), str(2**63)
        for rates, why in (
            ("macs_per_cycle=0,dma_bytes_per_cycle=1", 'macs_per_cycle is "0", but must be an integer from 1'),
            ("macs_per_cycle=1,dma_bytes_per_cycle=0", 'dma_bytes_per_cycle is "0", but must be'),
            ("macs_per_cycle=-4,dma_bytes_per_cycle=1", 'macs_per_cycle is "-4", but must be'),
            ("macs_per_cycle=1,dma_bytes_per_cycle=1,overhead=-1", 'overhead is "-1", but must be an integer from 0'),
            (f"macs_per_cycle={past},dma_bytes_per_cycle=1", f'macs_per_cycle is "{past}", but must be'),
            ("macs_per_cycle=1.5,dma_bytes_per_cycle=1", 'macs_per_cycle is "1.5", but must be'),
            ("macs_per_cycle=,dma_bytes_per_cycle=1", 'macs_per_cycle is "", but must be'),
            ("macs_per_cycle=1,macs_per_cycle=1", "macs_per_cycle is given twice"),
            ("macs_per_cycle=1", "dma_bytes_per_cycle is missing"),
            ("dma_bytes_per_cycle=1", "macs_per_cycle is missing"),
            ("macs=1", 'there is no key "macs"'),
            ("macs_per_cycle=1,fast", '"fast" is not key=value'),
            ("macs_per_cycle=1," + "x" * 5000, "too long"),
            ("nowhere", "--cost nowhere: No such file or directory"),
            ("/dev/zero", "--cost /dev/zero: is longer than"),
            ("/", "--cost /: cannot be read"),
            ("", "--cost"),
        ):
            for words in (["plan", path], ["submit", path, "--dry-run"]):
                self.ctl(*words, "--cost", rates, code=2, says=why)
        self.ctl("plan", path, "--cost", f"macs_per_cycle=1,dma_bytes_per_cycle=1,overhead={most}", code=1,
                 says=f"is more than {most}")  # fmt: skip
        half = 2**62
        self.ctl("plan", path, "--cost", f"macs_per_cycle=1,dma_bytes_per_cycle=1,overhead={half}", code=1,
                 says=f"the sum of all costs is more than {most}")  # fmt: skip
        self.ctl("plan", path, "--cost", f"macs_per_cycle={most},dma_bytes_per_cycle={most}")
        self.ctl("submit", path, "--cost", RATES, code=2, says="--cost is for --dry-run")
        self.ctl("plan", "--shape", "1,1,1,1", "--dtype", "int8", "--cost", RATES, code=2, says="--cost is for a network")

    @staticmethod
    def network(n, *more):
        """A chain of all that follows N, one tensor of it in a packed mode."""

        def form(shape, **other):
            return {"shape": shape, "dtype": "fx8", "frac_bits": 4, **other}

        tensors = {
            "x": form([n, 3, 8, 8], fill=1), "w": form([3, 8, 3, 3], fill=1), "y": form([n, 8, 8, 8], layout="compact"),
            "one": form([1, 8, 8, 8], fill=1), "z": form([n, 8, 8, 8], mode="4n"), "f": form([512, 10, 1, 1], fill=1, layout="compact"),
            "v": form([n, 10, 1, 1]), "p": form([n, 10, 1, 1]) | {"frac_bits": 7},
        }  # fmt: skip
        return {"tensors": tensors, "operations": [
            {"run": "conv2d", "in": "x", "weights": "w", "out": "y", "padding": [1, 1, 1, 1]},
            {"run": "eltwise_add", "in1": "y", "in2": "one", "out": "z"},
            {"run": "fully_connected", "in": "z", "weights": "f", "out": "v"},
            {"run": "softmax", "in": "v", "out": "p", "axis": "c"}, *more]}  # fmt: skip

    def test_capacity_in_the_picture(self):
        """A line, where the network comes near it; what is small keeps its scale."""
        for width, shown in ((384, True), (896, True), (128, False)):
            one = {"shape": [1, 4, 1, width], "dtype": "int8", "fill": 1}
            operations = {"tensors": {"t": one}, "operations": [{"seal": "t"}]}
            self.ctl("plan", "-", "--npus", "4", "--npu-bytes", "512" if width == 384 else "1024", "--svg", "net.svg",
                     text=json.dumps(operations))  # fmt: skip
            svg = xml.etree.ElementTree.parse(os.path.join(self.daemon.directory, "net.svg")).getroot()
            space = "{http://www.w3.org/2000/svg}"
            y = {box.findtext(space + "title", "").split(":")[0]: box for box in svg.iter(space + "rect")}
            self.assertEqual(any(title.startswith("capacity") for title in y), shown, list(y))
            ends = 420 if not shown else 420 * width / (512 if width == 384 else 1024)
            self.assertAlmostEqual(float(y["t"].get("height")), ends, delta=0.02)
            if shown:
                line = y["capacity 512 B" if width == 384 else "capacity 1 KiB"]
                self.assertAlmostEqual(float(line.get("y")), 104 + 420 - 1, delta=0.02)

    def test_largest_batch(self):
        """Beside plan of each batch, whose N may begin anywhere; and the daemon runs it."""
        for size in (12288, 16384, 20480):
            device = ("--npus", "4", "--npu-bytes", str(size))
            said = self.plan(self.network(1), *device, "--max-batch", "x")["max_batch"]
            tried = range(1, 80) if size == 12288 else range(max(1, said - 2), said + 9)
            fitting = [n for n in tried if self.fits(self.network(n), device)]
            self.assertTrue(1 < max(fitting) < 79, fitting)
            for n in (1, 3):
                answer = self.plan(self.network(n), *device, "--max-batch", "x")
                self.assertEqual(answer["max_batch"], max(fitting), size)
                self.assertEqual(answer["peak"], self.plan(self.network(max(fitting)), *device)["peak"])
        full = {"tensors": {"t": {"shape": [1, 4, 1, 128], "dtype": "int8", "fill": 1}}, "operations": [{"seal": "t"}]}
        answer = self.plan(full, "--npus", "4", "--npu-bytes", "1024", "--max-batch", "t")
        self.assertEqual((answer["max_batch"], answer["peak"], answer["next_peak"]), (8, 1024, None))
        self.ctl("plan", "-", *device, "--max-batch", "x", says=f"largest batch: {max(fitting)} (N of x), peak ",
                 text=json.dumps(self.network(1)))  # fmt: skip
        options = (f"--spawn=--npus=4 --npu-bytes={size}", "submit", "-")
        self.ctl(*options, text=json.dumps(self.network(max(fitting))))
        self.ctl(*options, text=json.dumps(self.network(max(fitting) + 1)), code=1, says="npumemctl plan tells")

    def test_largest_batch_of_a_factor_for_all_samples(self):
        mac = {"run": "mac", "in1": "y", "in2": "one", "acc": "z", "out": "z"}
        device = ("--npus", "4", "--npu-bytes", "16384")
        most = self.plan(self.network(1, mac), *device, "--max-batch", "x")["max_batch"]
        self.assertGreater(most, 1)
        self.assertTrue(self.fits(self.network(most, mac), device))
        self.assertFalse(self.fits(self.network(most + 1, mac), device))

    def fits(self, network, device):
        result = subprocess.run([NPUMEMCTL, "plan", "-", *device], input=json.dumps(network), capture_output=True, text=True,
                                timeout=240, check=False)  # fmt: skip
        return result.returncode == 0

    def test_no_batch(self):
        t = {"tensors": {"t": {"shape": [2, 1, 1, 1], "dtype": "fx8", "frac_bits": 0}}}
        for network, input_, why in (
            (self.network(1), "q", 'no tensor "q"'),
            (self.network(1), "w", "run conv2d: --max-batch: an input beside it is not one for all samples"),
            (self.network(1, {"run": "matmul", "left": "v", "right": "p", "out": "v"}), "x",
             "run matmul: --max-batch: weights that are computed from the input"),
            (self.network(1, {"run": "reduce_sum", "in": "p", "out": "v"}), "x", "run reduce_sum: --max-batch: N is not a batch here"),
            (self.network(1, {"run": "concat", "in": ["y", "y"], "out": "z", "axis": "n"}), "x", "run concat: --max-batch: N is"),
            (self.network(1, {"run": "softmax", "in": "v", "out": "p"}), "x", "run softmax: --max-batch: N is not a batch"),
            (self.network(1, {"run": "concat", "in": ["y", "one"], "out": "z", "axis": "c"}), "x",
             "run concat: --max-batch: an input beside it is not one for all samples"),
            (self.network(4, {"view": "s", "of": "x", "from": [0, 0, 0, 0], "to": [2, 3, 8, 8]}), "x", "a view of some samples"),
            (self.network(1, {"run": "mac", "in1": "y", "in2": "one", "acc": "one", "out": "z"}), "x",
             "run mac: --max-batch: an input beside it is not one for all samples"),
            ({**t, "operations": [{"open": "w"}, {"copy": "w", "from": "t"}]}, "t", 'the N of "w" does not go by that of "t"'),
            ({"tensors": t["tensors"] | {"u": t["tensors"]["t"] | {"shape": [3, 1, 1, 1]}},
              "operations": [{"copy": "u", "from": "t"}]}, "t", 'the N of "u" does not go by that of "t"'),
        ):  # fmt: skip
            self.ctl("plan", "-", "--max-batch", input_, code=1, says=why, text=json.dumps(network))
        full = ("--npus", "4", "--npu-bytes", "2048")
        self.ctl("plan", "-", *full, "--max-batch", "x", code=1, says='no batch of "x" fits', text=json.dumps(self.network(1)))
        self.ctl("plan", "-", "--max-batch", "x", "--cost", RATES, code=2, says="--max-batch prints a number only", text="[]")
        self.ctl("plan", "--shape", "1,1,1,1", "--dtype", "int8", "--max-batch", "x", code=2, says="--max-batch is for a network")


def npumem_bytes(dtype):
    return {"8": 1, "6": 2, "2": 4}[dtype[-1]]


if __name__ == "__main__":
    unittest.main()
