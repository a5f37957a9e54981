"""Runs golden vectors: python3 -m npumem.reference PATH…"""

from __future__ import annotations

import sys

from .vectors import cases, difference


def main(paths: list[str]) -> int:
    if not paths or paths[0].startswith("-"):
        print("usage: python3 -m npumem.reference PATH…\nPATH is a file of golden vectors, or a folder of them.")
        return 0 if paths and paths[0] == "--help" else 2
    passed = failed = 0
    for path, case in cases(paths):
        why = difference(case)
        if why:
            print(f"FAIL {path}: {case.get('name')}: {why}")
        passed, failed = passed + (not why), failed + bool(why)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
