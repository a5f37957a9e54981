"""Compares what libnpumem exports with what is stored beside this file.

usage: check.py --library LIBRARY --headers DIRECTORY [--stored DIRECTORY] [--update] symbols|abi

symbols: the names with their versions are those of symbols.txt, and what the environment chooses is asked for in the
way that a privileged program can (secure_getenv).
abi: types, functions and their parameters are those of libnpumem.abi, by libabigail's abidiff. Its form is abidw's,
limited to what is exported and to the public headers, without places in the source, so that another folder or compiler
gives the same.

A change that is meant: run with --update, and say in the commit what becomes of programs that are linked already. New
functions, members at the end of what the library makes and of what has a size are compatible (abidiff knows nothing of
that, so judge yourself); all else needs a new symbol version and soname.
"""

import argparse
import os
import subprocess
import sys
import tempfile

# Of abidiff: 1 error, 2 usage, 4 changed, 8 changed incompatibly.
ABIDIFF_FAILED, ABIDIFF_INCOMPATIBLE = 3, 8

SUPPRESSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "suppressions.ini")


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def checked(*command):
    result = run(*command)
    if result.returncode:
        sys.exit(f"{' '.join(command)}: {result.stderr}")
    return result.stdout


def exported(library):
    lines = checked("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines()
    return sorted(line.split()[-1] for line in lines if line.split()[-2] != "A")


def wanted(library):
    lines = checked("nm", "-D", "--undefined-only", library).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def check_symbols(options):
    path = os.path.join(options.stored, "symbols.txt")
    names = exported(options.library)
    if options.update:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(names) + "\n")
    with open(path, encoding="utf-8") as file:
        stored = file.read().split()
    problems = [f"{name} is gone" for name in stored if name not in names]
    problems += [f"{name} is new" for name in names if name not in stored]
    if "getenv" in wanted(options.library):
        problems.append("getenv is called, where secure_getenv is meant")
    return problems


def write_abi(options, path):
    checked("abidw", "--exported-interfaces-only", "--drop-private-types", "--headers-dir", options.headers,
            "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--short-locs", "--no-parameter-names",
            "--no-write-default-sizes", "--no-elf-needed", "--no-architecture", "--type-id-style", "hash",
            "--out-file", path, options.library)


def check_abi(options):
    path = os.path.join(options.stored, "libnpumem.abi")
    if options.update:
        write_abi(options, path)
    # Without debug information nothing would differ.
    if ".debug_info" not in checked("readelf", "--section-headers", "--wide", options.library):
        return [f"{options.library} has no debug information to look at"]
    # Both sides as abidw writes them: against a library itself, abidiff filters changes of structs out.
    with tempfile.TemporaryDirectory() as folder:
        now = os.path.join(folder, "now.abi")
        write_abi(options, now)
        result = run("abidiff", "--suppressions", SUPPRESSIONS, path, now)
    if result.returncode & ABIDIFF_FAILED or result.stderr.strip():
        return [f"abidiff: {result.stderr}"]
    if not result.returncode:
        return []
    kind = "INCOMPATIBLE" if result.returncode & ABIDIFF_INCOMPATIBLE else "to be judged"
    return [f"a change ({kind}):\n{result.stdout}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--headers", required=True)
    parser.add_argument("--stored", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("what", choices=["symbols", "abi"])
    options = parser.parse_args()
    problems = check_symbols(options) if options.what == "symbols" else check_abi(options)
    for problem in problems:
        print(problem)
    if problems:
        print(f"If that is meant: {' '.join(sys.argv)} --update")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
