#!/usr/bin/python3
"""Runs the demo twice against a built tree and judges it: check.py BUILD.

The last lines and their limits; every score of every digit against train.py's integer simulation, to the bit; and
that the second run prints and computes the same as the first. It does not look at what map and ls print.
"""
import os
import re
import subprocess
import sys
import tempfile

import train

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "model")
LEAST_ACCURACY = 96.0
MOST_DIFFERENCE = 1.0
WORKERS = 2


def run(build):
    """The demo's output, and the lines of every worker's results but their first."""
    with tempfile.TemporaryDirectory() as results:
        done = subprocess.run([os.path.join(HERE, "run.sh"), build, results], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, text=True, timeout=500)
        print(done.stdout, flush=True)
        if done.returncode != 0:
            raise SystemExit(f"the demo ended with {done.returncode}")
        lines = []
        with open(os.path.join(results, "report.html"), encoding="utf-8") as file:
            assert "digits.fx8.conv1.weights" in file.read(), "the report does not tell what was there"
        for name in sorted(set(os.listdir(results)) - {"report.html"}):
            with open(os.path.join(results, name), encoding="ascii") as file:
                lines += file.read().splitlines()[1:]
    return done.stdout, lines


def expected(form, pixels, labels, formats):
    """Every line that the workers of a format must write, and their saturated outputs."""
    scores, saturated = train.forward_fixed(*formats[form], pixels, form)
    lines = [" ".join(map(str, [form, i, labels[i], row.argmax(), *row])) for i, row in enumerate(scores)]
    return lines, saturated


def check_output(output, formats):
    """The accuracies printed last, as {what: percent}."""
    last = [re.fullmatch(r"accuracy (float|fx8|fx16): (\d+\.\d\d?) %", line) for line in output.splitlines()[-3:]]
    assert all(last), "the last three lines are not the accuracies"
    assert [m[1] for m in last] == ["float", "fx8", "fx16"], "the accuracies are not in order"
    accuracies = {m[1]: float(m[2]) for m in last}
    for form in formats:
        assert accuracies[form] >= LEAST_ACCURACY, f"{form} is below {LEAST_ACCURACY} %"
        assert abs(accuracies[form] - accuracies["float"]) <= MOST_DIFFERENCE, f"{form} is not within 1 of float"
        counts = re.findall(rf"classify {form}, .*; (\d+) outputs saturated, (\d+) accumulators wrapped", output)
        assert len(counts) == WORKERS, f"not {WORKERS} processes classified in {form}"
        yield form, accuracies[form], sum(int(s) for s, _ in counts), sum(int(w) for _, w in counts)


def before_map(output):
    return output.split("\nnpumemctl map\n")[0].splitlines()


def main(build):
    pixels, labels, formats = train.load(MODEL)
    assert len(labels) >= 300, "fewer than 300 test digits"
    output, lines = run(build)
    for form, accuracy, saturated, wrapped in check_output(output, train.BITS):
        want, want_saturated = expected(form, pixels, labels, formats)
        got = [line for line in lines if line.startswith(form + " ")]
        got.sort(key=lambda line: int(line.split()[1]))
        assert got == want, f"{form}: the scores are not those of the integer simulation"
        assert (saturated, wrapped) == (want_saturated, 0), f"{form}: {saturated} saturated, {wrapped} wrapped"
        right = sum(line.split()[2] == line.split()[3] for line in want)
        assert accuracy == round(100 * right / len(labels), 2), f"{form}: {right} right, but {accuracy} %"
    assert len(before_map(output)) <= 40, "more than 40 lines before the map"
    again, lines_again = run(build)
    assert lines_again == lines, "the second run computed other bits"
    assert before_map(again) == before_map(output), "the second run printed something else"
    assert again.splitlines()[-3:] == output.splitlines()[-3:], "the second run ended otherwise"
    print("the scores are the simulation's, twice")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: check.py BUILD")
    main(sys.argv[1])
