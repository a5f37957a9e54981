"""python3 -m npumem.conform --random SECONDS [--kernel K] [--isa I] [--seed N] [--out DIR]"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from typing import Optional

from ..reference.kernels import KERNELS, Result
from ..reference.vectors import family, written
from .cases import Case, drawn, spoilt
from .draw import Draw, shrunk
from .trial import Trial, expectation, place_outputs, simpler_data

SPOILT_ONE_IN = 6


def made(d: Draw, kernel: str) -> Case:
    case = drawn(d, kernel)
    result = expectation(case)
    if not isinstance(result, Result):
        raise AssertionError(f"{kernel}: a case that is meant to run is refused by the specification: {result}")
    if d.flag(SPOILT_ONE_IN):
        given = dict(case.given)
        for role, x in result.outputs.items():
            given[role] = dataclasses.replace(case.given[role], shape=x.shape)
        return spoilt(d, dataclasses.replace(case, given=given))
    place_outputs(d, case, result)
    return case


def check(trial: Trial, case: Case) -> str:
    return trial.difference(case, expectation(case))


def write_vector(directory: str, kernel: str, case: Case, why: str) -> str:
    """The case as a golden vector with the specification's outputs; without outputs if the specification refuses it."""
    path = os.path.join(directory, f"conform-{kernel}-{int(time.time())}.json")
    result = expectation(case)
    if not isinstance(result, Result):
        result = Result({})
    one = written(f"{kernel}/random", kernel, case.given, result)
    one |= {"found": why, "counts": dataclasses.asdict(result.counts), "n_npus": case.n_npus, "in_place": case.in_place}
    one |= {"places": case.places, "margins": case.margins, "in_list": case.in_list, "in_group": case.in_group}
    one |= {"reshaped": sorted(case.reshaped)}
    os.makedirs(directory, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(family(kernel, [one], "npumem.conform"), file, indent=1)
        file.write("\n")
    return path


def smaller(trial: Trial, kernel: str, choices: list[int], seconds: float) -> Case:
    def fails(candidate: list[int]) -> bool:
        try:
            return bool(check(trial, made(Draw(0, candidate), kernel)))
        except AssertionError:
            return False

    least = made(Draw(0, shrunk(choices, fails, seconds)), kernel)
    return simpler_data(least, lambda candidate: bool(check(trial, candidate)), seconds)


def sweep(arguments: argparse.Namespace, trial: Trial) -> int:
    names = [arguments.kernel] if arguments.kernel else list(KERNELS)
    counts, failed = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    end, number = time.monotonic() + arguments.random, 0
    while time.monotonic() < end or (arguments.each and min(counts.values()) < arguments.each):
        kernel = names[number % len(names)]
        number += 1
        if failed[kernel]:
            if all(failed.values()):
                break
            continue
        draw = Draw(f"{arguments.seed}/{kernel}/{counts[kernel]}")
        case = made(draw, kernel)
        why = check(trial, case)
        counts[kernel] += 1
        if why:
            failed[kernel] = 1
            print(f"FAIL {kernel}, seed {arguments.seed}, case {counts[kernel] - 1}: {why}", flush=True)
            case = smaller(trial, kernel, draw.choices, arguments.shrink / 2)
            why = check(trial, case) or why
            print(f"  smallest: {why}\n  {write_vector(arguments.out, kernel, case, why)}", flush=True)
    made_of = f"{sum(counts.values())} cases of {len(names)} kernels, seed {arguments.seed}"
    print(f"{made_of}: {sum(failed.values())} differences")
    return 1 if any(failed.values()) else 0


def main(words: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m npumem.conform", description="Random cases on a private daemon, beside npumem.reference."
    )
    parser.add_argument("--random", type=float, required=True, metavar="SECONDS", help="for how long cases are made")
    parser.add_argument("--each", type=int, default=0, metavar="N", help="at least N cases of each kernel")
    parser.add_argument("--kernel", choices=list(KERNELS), metavar="K", help="this kernel alone")
    parser.add_argument("--isa", default="", help="scalar, avx2, avx512vnni, amx_int8, neon or neon_dot; else the best there is")
    parser.add_argument("--seed", type=int, default=None, help="the same seed makes the same cases")
    parser.add_argument("--shrink", type=float, default=30.0, metavar="SECONDS", help="to make a failing case small (30)")
    parser.add_argument("--out", default=".", metavar="DIR", help="where a failing case is written as a golden vector")
    arguments = parser.parse_args(words)
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(2**31)
    with Trial(arguments.isa) as trial:
        return sweep(arguments, trial)


if __name__ == "__main__":
    sys.exit(main())
