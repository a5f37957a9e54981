"""Writes the rows of kernels.def, params.def and methods.def as Python tuples.

Usage: make_rows.py INCLUDE_NPUMEM METHODS.def OUT.py"""

import pathlib
import re
import sys

STRING = r'"((?:[^"\\]|\\.)*)"'


def rows(path, macro):
    """The arguments of each MACRO(…), strings without quotes and joined, the rest as words."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r'"\s+"', "", text)
    for body in re.findall(rf"^{macro}\(((?:{STRING}|[^\")])*)\)", text, re.MULTILINE):
        yield [string or word for string, word in re.findall(rf'{STRING}|([^\s",]+)', body[0])]


def main():
    include, requests, out = (pathlib.Path(argument) for argument in sys.argv[1:])
    kernels = [(row[0], int(row[2]), *row[3:7]) for row in rows(include / "kernels.def", "KERNEL")]
    params = [(row[1], int(row[2]), int(row[3]), int(row[4]), row[5]) for row in rows(include / "params.def", "PARAM")]
    methods = [(row[0], row[4]) for row in rows(requests, "METHOD")]
    text = '"""The rows of kernels.def, params.def and methods.def."""\n'
    for name, kinds, table in (
        ("KERNELS", "str, int, str, str, str, str", kernels),
        ("PARAMS", "str, int, int, int, str", params),
        ("METHODS", "str, str", methods),
    ):
        lines = "".join(f"    {row!r},\n" for row in table)
        text += f"\n{name}: tuple[tuple[{kinds}], ...] = (\n{lines})\n"
    out.write_text(text, encoding="utf-8")


main()
