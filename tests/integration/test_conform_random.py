"""npumem.conform: random cases of every kernel on a private daemon, beside the specification; and that a difference is
found, made small, and written as a golden vector."""

import contextlib
import dataclasses
import glob
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import npumem
from npumem import reference
from npumem.conform.__main__ import made, main
from npumem.conform.cases import Case
from npumem.conform.draw import Draw, shrunk
from npumem.conform.trial import Trial
from npumem.reference import dense
from npumem.reference.vectors import difference
from support import NPUMEMCTL, SECONDS



def sweep(*words):
    """The exit code of the program, and its text."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = main(["--random", "0", "--shrink", "6", *words])
    return code, out.getvalue()


class Random(unittest.TestCase):
    def test_every_kernel(self):
        """A few cases of each, by the plainest and by the widest instructions that there are."""
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as directory:
            for isa in ("scalar", ""):
                words = ["--isa", isa] if isa else []
                code, text = sweep(*words, "--each", "4", "--seed", "20", "--out", directory)
                self.assertEqual((code, os.listdir(directory)), (0, []), text)
                self.assertIn(f"{4 * len(npumem.kernels)} cases of {len(npumem.kernels)} kernels", text)

    def test_new_cases(self):
        """Others each time; the seed in the text makes them again."""
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as directory:
            code, text = sweep("--each", "2", "--out", directory)
            self.assertEqual(code, 0, text)

    def test_as_a_program(self):
        end = subprocess.run(
            [sys.executable, "-B", "-m", "npumem.conform", "--random", "0.2", "--kernel", "relu", "--isa", "scalar", "--seed", "4"],
            capture_output=True, text=True, check=False, timeout=SECONDS,
        )  # fmt: skip
        self.assertEqual((end.returncode, end.stderr), (0, ""), end.stdout)
        self.assertRegex(end.stdout, r"^\d+ cases of 1 kernels, seed 4: 0 differences\n$")

    def test_cells_wrap(self):
        """Each of a cell's two accumulators wraps; a common one before it is brought to the other format, at its end, at both."""
        sums = []

        def accumulated(total, bits, counts):
            sums.append((total, plain(total, bits, counts)))
            return sums[-1][1]

        plain, found = dense.accumulated, set()
        with mock.patch.object(dense, "accumulated", accumulated):
            for name in ("gru_cell", "lstm_cell", "basic_rnn_cell"):
                for number in range(160):
                    case = made(Draw(f"{number}/{name}"), name)
                    sums.clear()
                    if case.places:
                        reference.run(name, **case.given)
                    rules = "mli1_1" if "weights" in case.given else "mli2_0"
                    for first, second in zip(sums[::2], sums[1::2]):
                        wraps = [total != held for total, held in (first, second)]
                        found |= {(name, rules, *map(bool, both)) for both in zip(*(one.reshape(-1) for one in wraps))}
        alone, both = [(True, False), (False, True)], [(True, True)]
        for name, rules, places in (("gru_cell", "mli2_0", alone), ("lstm_cell", "mli2_0", alone),
                                    ("lstm_cell", "mli1_1", alone + both), ("basic_rnn_cell", "mli1_1", alone + both)):  # fmt: skip
            self.assertLessEqual({(name, rules, *place) for place in places}, found)

    def test_cases_are_many_kinds(self):
        """Most are meant to run, some to be refused; they wrap, saturate, lie in modes, views and in place."""
        cases = [made(Draw(f"{number}/{name}"), name) for name in npumem.kernels for number in range(30)]
        results = [reference.run(case.kernel, **case.given) for case in cases if case.places]
        self.assertGreater(len(results), 0.7 * len(cases))
        for name, least in (("saturated", 300), ("wrapped", 8), ("macs", 200), ("divided_by_zero", 2)):
            self.assertGreater(sum(getattr(result, name) > 0 for result in results), least, name)
        self.assertGreater(sum(bool(case.margins) for case in cases), 100)
        self.assertGreater(sum(bool(case.in_place) for case in cases), 30)
        self.assertGreater(sum(max(result.out.values.shape) > 64 for result in results), 100)

    def test_the_same_seed_makes_the_same_case(self):
        first, again = (made(Draw("5/conv2d/3"), "conv2d") for _ in range(2))
        self.assertEqual((first.places, first.given["stride"]), (again.places, again.given["stride"]))
        self.assertTrue((first.given["in_"].values == again.given["in_"].values).all())
        draw = Draw("5/conv2d/3")
        made(draw, "conv2d")
        same = made(Draw(0, draw.choices), "conv2d")
        self.assertTrue((first.given["in_"].values == same.given["in_"].values).all())


class Differences(unittest.TestCase):
    """The specification is wrong on purpose, as if the daemon were wrong."""

    def found(self, kernel, wrong, *words):
        original = reference.KERNELS[kernel]

        def changed(**given):
            return wrong(original, given)

        with tempfile.TemporaryDirectory(prefix="npumem-test-") as directory:
            with mock.patch.dict(reference.KERNELS, {kernel: changed}):
                code, text = sweep("--each", "200", "--kernel", kernel, "--seed", "1", "--out", directory, *words)
            self.assertEqual(code, 1, text)
            self.assertIn("1 differences", text)
            (path,) = glob.glob(f"{directory}/*.json")
            with open(path, encoding="utf-8") as file:
                whole = json.load(file)
            (case,) = whole["cases"]
            end = subprocess.run([NPUMEMCTL, "--spawn", "conform", path], capture_output=True, text=True, check=False,
                                 timeout=SECONDS)  # fmt: skip
            return case, text, end

    def test_an_integer(self):
        def wrong(original, given):
            y = original(**given)
            y.values[(given["in_"].values < -6) & (y.values < -6)] += 1
            return y

        case, text, end = self.found("relu", wrong)
        self.assertIn("FAIL relu, seed 1, case ", text)
        said = re.fullmatch(r"out\[0, 0, 0, 0\] is (-\d+), (-\d+) is expected \(1 differ\)", case["found"])
        self.assertTrue(said, case["found"])
        self.assertEqual(case["tensors"]["in"]["data"], [int(said[1])], "one element is left")
        self.assertEqual(end.returncode, 1, "the daemon is right, and the vector is not")
        self.assertIn(f"is {said[1]}, {said[2]} is expected", end.stdout)
        self.assertIn(f"is {said[1]}, {said[2]} is expected", difference(case))

    def test_a_counter(self):
        def wrong(original, given):
            y = original(**given)
            given["counts"].macs += given["counts"].macs > 100
            return y

        case, _, end = self.found("matmul", wrong)
        self.assertRegex(case["found"], r"^macs is 1\d\d, 1\d\d is expected")
        self.assertLessEqual(case["counts"]["macs"], 130, "101 products or little more")
        self.assertEqual(end.returncode, 0, "the integers are the same")

    def test_a_refusal(self):
        x, form = reference.fx8([1, 2, 3], 2), reference.Format("fx8", 2, (1, 3, 1, 1))
        case = Case("permute", {"in_": x, "out": form, "perm": (0, 1, 2, 3)})
        result = reference.run("permute", **case.given)
        with Trial() as trial:
            self.assertEqual(trial.difference(case, result), "")
            self.assertEqual(
                trial.difference(case, reference.Refused("three channels")), "refused by the specification alone: three channels"
            )
            wrong = reference.Result({"out": dataclasses.replace(result.out, frac_bits=3)}, result.counts)
            said = trial.difference(dataclasses.replace(case, given=case.given | {"out": reference.Format("fx8", 3)}), wrong)
            self.assertIn("refused by the daemon alone: permute: out has 3 frac_bits", said)

    def test_a_daemon_that_ends(self):
        given = {"in_": reference.fx8([1], 2), "out": reference.Format("fx8", 2)}
        case, result = Case("relu", given), reference.run("relu", **given)
        with Trial() as trial:
            os.kill(trial.device(64).info.pid, signal.SIGKILL)
            self.assertIn("the daemon ended or hangs: ", trial.difference(case, result))
            self.assertEqual(trial.difference(case, result), "", "the next case has another one")


class Shrinking(unittest.TestCase):
    def test_the_least_choices_that_fail(self):
        def fails(choices):
            draw = Draw(0, choices)
            a, b, c = draw.integer(0, 1000), draw.integer(0, 1000), draw.pick("xyz")
            return a > 37 and b > 500 and c != "x"

        self.assertEqual(shrunk([999, 812, 2, 5, 6], fails, 5.0)[:3], [38, 501, 1])

    def test_any_list_makes_a_case(self):
        for name in npumem.kernels:
            made(Draw(0, []), name)
            made(Draw(0, [10**9] * 200), name)


if __name__ == "__main__":
    unittest.main()
