"""What plan and submit --dry-run say that operations cost: beside what the daemon counts and the specification says, and
cycles by rates."""

import json
import os
import subprocess
import unittest

import npumem
import numpy as np
from npumem.conform.__main__ import expectation
from npumem.conform.cases import drawn
from npumem.conform.draw import Draw
from npumem.reference.kernels import Result
from support import TestCase

NPUMEMCTL = os.path.join(os.environ["NPUMEM_BUILD"], "client", "ctl", "npumemctl")
EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "networks")
RATES = "macs_per_cycle=16,dma_bytes_per_cycle=64,overhead=10"
FORMULA = (
    "cycles of a run = 10 + ceil(MACs / (16 * NPUs)), of DMA = 10 + ceil(bytes / 64); the sum: one after the other"
)


class Costs(TestCase):
    def ctl(self, *words, code=0, says="", text=None):
        result = subprocess.run([NPUMEMCTL, *words], capture_output=True, text=True, input=text, cwd=self.daemon.directory,
                                timeout=240, env=dict(os.environ, NPUMEM_SOCKET=self.daemon.path))  # fmt: skip
        self.assertEqual(result.returncode, code, (words, result.stdout, result.stderr))
        self.assertIn(says, result.stderr if code else result.stdout)
        return result.stdout

    def plan(self, operations, *options, **expected):
        return json.loads(self.ctl("plan", "-", "--json", *options, text=json.dumps(operations), **expected))

    def costs(self, operations, *options):
        """Those of the last operation."""
        return self.plan(operations, *options)["operations"][-1]["costs"]

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
            for number in range(12):
                case = drawn(Draw(f"{number}/{row}/costs"), str(row))
                result = expectation(case)
                self.assertIsInstance(result, Result)
                sizes, operations = {}, []
                tensors = dict(case.tensors()) | result.outputs
                for role, x in tensors.items():
                    shape = [1] * (4 - len(x.shape)) + list(x.shape) if len(x.shape) < 4 else list(x.shape)
                    format_ = {"dtype": x.dtype} | ({"frac_bits": x.f} if x.dtype in ("fx8", "fx16") else {})
                    operations.append({"alloc": role, "shape": shape, **format_})
                    sizes[role] = int(np.prod(shape)) * npumem_bytes(x.dtype)
                words = {key.rstrip("_"): value for key, value in case.given.items()}
                params = {key: list(value) if isinstance(value, tuple) else value for key, value in words.items()
                          if key not in tensors and not (isinstance(value, list) and f"{key}0" in tensors)}  # fmt: skip
                operations.append({"run": str(row), **{role: role for role in tensors}, **params})
                cost = self.costs(operations, "--npus", "64", "--npu-bytes", "128MiB")
                said = (str(row), number, params, {role: x.shape for role, x in tensors.items()})
                self.assertEqual(cost["macs"], result.counts.macs, said)
                self.assertEqual(cost["local_written_bytes"], sum(sizes[role] for role in result.outputs), said)
                self.assertEqual(cost["local_read_bytes"], sum(sizes[role] for role in sizes if role not in result.outputs), said)
                some |= {str(row)} if cost["macs"] else set()
        self.assertEqual(len(some), 14, some)


def npumem_bytes(dtype):
    return {"8": 1, "6": 2, "2": 4}[dtype[-1]]


if __name__ == "__main__":
    unittest.main()
