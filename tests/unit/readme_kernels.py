"""The README's table of kernels against the rows: every kernel has its line, with the row's own types and parameters.

`readme_kernels.py --print` prints the lines as the rows have them, for whoever adds a kernel."""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def rows():
    with open(os.path.join(ROOT, "include", "npumem", "kernels.def"), encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    for match in re.finditer(r"^KERNEL\((\w+), \w+, \d+,(.*?)\)\s*$", text, re.S | re.M):
        strings = re.findall(r'"((?:[^"\\]|\\.)*)"', match[2])
        roles, parameters, types = strings[:3]
        yield match[1], roles, parameters, types, "".join(strings[3:])


def line(name, roles, parameters, types, summary):
    cells = (f"`{name}`", f"`{roles}`", f"`{parameters}`" if parameters else "", types, summary)
    return "| " + " | ".join(cells) + " |"


def provenances():
    """Name to where it rounds and what it comes from, as npumemctl kernels tells them."""
    with open(os.path.join(ROOT, "client", "ctl", "core", "provenance.def"), encoding="utf-8") as file:
        return {name: [rounding, source] for name, rounding, source in re.findall(r'^PROVENANCE\((\w+), "(.*)", "(.*)"\)$', file.read(), re.M)}


def table():
    """Name to its line's first five cells, of the table that is headed `kernel`."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        lines = file.read().split("\n")
    found = {}
    for text in lines[lines.index(next(l for l in lines if l.startswith("| kernel |"))) + 2 :]:
        if not text.startswith("|"):
            break
        cells = [cell.strip() for cell in text.strip("|").split(" | ")]
        found[cells[0].strip("` ")] = cells
    return found


def main():
    if sys.argv[1:] == ["--print"]:
        for row in rows():
            print(line(*row))
        return 0
    found, failed, names, provenance = table(), 0, [], provenances()
    for row in rows():
        names.append(row[0])
        expected = [cell.strip() for cell in line(*row).strip("|").split(" | ")]
        cells = found.get(row[0])
        if cells is None:
            print(f"README.md has no line for kernel {row[0]}; it would begin: {line(*row)}")
            failed += 1
        elif [cell.replace("`", "") for cell in cells[5:]] != provenance.get(row[0]):
            print(f"README.md's rounding and source of {row[0]} are not those of client/ctl/core/provenance.def")
            failed += 1
        elif cells[:5] != expected or len(cells) != 7 or not all(cells[5:]):
            print(f"README.md's line of {row[0]} is not the row's, or has no rounding and source:\n{line(*row)}")
            failed += 1
    for name in found:
        if name not in names:
            print(f"README.md has a line for {name}, which is no kernel")
            failed += 1
    print(f"{len(names) - failed} passed, {failed} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
