"""Sees check.py fail, on a small library: with a member in the middle, one at the end, a function more and one less,
a parameter of another type, a symbol version that is gone, getenv, and no debug information.

usage: test_check.py COMPILER
"""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = """
#include <stdint.h>
struct thing { int64_t a; int64_t b; };
struct hidden;
int64_t npumem_a(const struct thing *thing, struct hidden *hidden);
int64_t npumem_b(int64_t value);
"""
SOURCE = """
#define _GNU_SOURCE
#include <stdlib.h>
#include "thing.h"
struct hidden { int64_t a; };
int64_t npumem_a(const struct thing *thing, struct hidden *hidden) { return thing->a + hidden->a; }
int64_t npumem_b(int64_t value) { return secure_getenv("NPUMEMD") ? value : 0; }
int64_t inner(void) { return 0; }
"""
MAP = "NPUMEM_0 { global: npumem_*; local: *; };"


class Tree:
    def __init__(self, folder, compiler):
        self.folder, self.compiler = folder, compiler
        self.library = os.path.join(folder, "libthing.so")

    def build(self, header=HEADER, source=SOURCE, version=MAP, debug="-g"):
        for name, text in (("thing.h", header), ("thing.c", source), ("thing.map", version)):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        subprocess.run([self.compiler, debug, "-O2", "-fPIC", "-shared", "-o", self.library,
                        "-Wl,--version-script=thing.map", "thing.c"], cwd=self.folder, check=True)

    def check(self, what, *more):
        command = [sys.executable, "-B", os.path.join(HERE, "check.py"), "--library", self.library,
                   "--headers", self.folder, "--stored", self.folder, *more, what]
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return result.returncode, result.stdout


# What changes, and what each check must say; "" where it must pass.
CASES = [
    ("nothing", {}, "", ""),
    ("a member in the middle", {"header": HEADER.replace("int64_t b;", "int64_t x; int64_t b;")}, "",
     "thing: 24 bytes {0 int64_t a, 8 int64_t x, 16 int64_t b} is new"),
    ("a member at the end", {"header": HEADER.replace("int64_t b;", "int64_t b; int64_t x;")}, "",
     "thing: 24 bytes {0 int64_t a, 8 int64_t b, 16 int64_t x} is new"),
    ("what is private", {"source": SOURCE.replace("hidden { int64_t a; }", "hidden { int64_t x, a; }")}, "", ""),
    ("a function more", {"source": SOURCE + "int64_t npumem_c(void) { return 0; }\n",
                         "header": HEADER + "int64_t npumem_c(void);"},
     "npumem_c@@NPUMEM_0 is new", "npumem_c: int64_t() is new"),
    ("a function less", {"source": SOURCE.replace("int64_t npumem_b", "static __attribute__((used)) int64_t npumem_x"),
                         "header": HEADER.replace("int64_t npumem_b(int64_t value);", "")},
     "npumem_b@@NPUMEM_0 is gone", "npumem_b: int64_t(int64_t) is gone"),
    ("another parameter", {"source": SOURCE.replace("npumem_b(int64_t", "npumem_b(int32_t"),
                           "header": HEADER.replace("npumem_b(int64_t", "npumem_b(int32_t")},
     "", "npumem_b: int64_t(int32_t) is new"),
    ("another version", {"version": MAP.replace("_0", "_1")}, "npumem_a@@NPUMEM_0 is gone", ""),
    ("getenv", {"source": SOURCE.replace("secure_getenv", "getenv")}, "getenv is called", ""),
    ("no debug information", {"debug": "-g0"}, "", "no debug information"),
]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(folder, sys.argv[1])
        tree.build()
        for what in ("symbols", "types"):
            code, text = tree.check(what, "--update")
            assert code == 0, text
        for name, change, symbols, types in CASES:
            tree.build(**change)
            for what, expected in (("symbols", symbols), ("types", types)):
                code, text = tree.check(what)
                if bool(code) != bool(expected) or expected not in text:
                    print(f"{name}: {what} ended with {code}, {expected or 'nothing'!r} is expected:\n{text}")
                    failed += 1
    print(f"{2 * len(CASES) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
