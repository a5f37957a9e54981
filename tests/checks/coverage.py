"""What gcov's counts of a build folder say, for each folder of the sources: lines and branches reached, in percent."""

import collections
import json
import os
import subprocess
import sys

DEPTH = {"daemon": 2, "client": 2, "proto": 1, "include": 2}


def folder_of(path):
    parts = path.split("/")[:-1]
    return "/".join(parts[: DEPTH[parts[0]]]) if parts and parts[0] in DEPTH else None


def reports(build):
    """Of each object that ran, its functions, lines and branches."""
    counts = [os.path.join(at, name) for at, _, names in os.walk(build) for name in names if name.endswith(".gcda")]
    for path in counts:
        done = subprocess.run(["gcov", "--json-format", "--branch-probabilities", "--stdout", path],
                              capture_output=True, text=True, check=False)  # fmt: skip
        for line in done.stdout.splitlines():
            yield json.loads(line)


def main():
    build, here = os.path.realpath(sys.argv[1]), os.getcwd()
    lines, branches = collections.Counter(), collections.Counter()
    for report in reports(build):
        for file in report["files"]:
            path = os.path.relpath(os.path.join(report["current_working_directory"], file["file"]), here)
            if path.startswith("..") or not folder_of(path):
                continue
            for line in file["lines"]:
                at = (path, line["line_number"])
                lines[at] += line["count"]
                for i, branch in enumerate(line["branches"]):
                    branches[at, i] += branch["count"]
    folders = sorted({folder_of(path) for path, _ in lines})
    print(f"{'folder':24} {'lines':>8} {'reached':>8} {'branches':>9} {'reached':>8}")
    for folder in folders:
        here_lines = [count > 0 for (path, _), count in lines.items() if folder_of(path) == folder]
        here_branches = [count > 0 for ((path, _), _), count in branches.items() if folder_of(path) == folder]
        shares = [100 * sum(some) / len(some) if some else 100 for some in (here_lines, here_branches)]
        print(f"{folder:24} {len(here_lines):8} {shares[0]:7.1f}% {len(here_branches):9} {shares[1]:7.1f}%")
    for folder, share in sorted(((path, at) for (path, at), count in lines.items() if not count)):
        if "--missed" in sys.argv:
            print(f"{folder}:{share}")


if __name__ == "__main__":
    main()
