"""Compares what libnpumem exports with what is stored beside this file.

usage: check.py --library LIBRARY --headers DIRECTORY [--stored DIRECTORY] [--update] symbols|types

symbols: the names with their versions are those of symbols.txt, and the environment is read as a privileged program can
(secure_getenv).
types: functions with their parameters, structs with the offsets of their members, and enumerators are those of
types.txt, a line each. They come from the library's debug information by libabigail's abidw.

A change that is meant: run with --update, and say in the commit what becomes of programs that are linked already. New
functions, members at the end of a struct that the library allocates or that has a size are compatible; all else needs
a new symbol version and soname.
"""

import argparse
import functools
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

def checked(*command):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command)}: {result.stderr}")
    return result.stdout


def exported(library):
    lines = checked("nm", "-D", "--defined-only", "--with-symbol-versions", library).splitlines()
    return sorted(line.split()[-1] for line in lines if line.split()[-2] != "A")


def wanted(library):
    lines = checked("nm", "-D", "--undefined-only", library).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines}


def differences(options, name, lines):
    path = os.path.join(options.stored, name)
    if options.update:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    with open(path, encoding="utf-8") as file:
        stored = file.read().splitlines()
    return ([f"{line} is gone" for line in stored if line not in lines] +
            [f"{line} is new" for line in lines if line not in stored])


def check_symbols(options):
    problems = differences(options, "symbols.txt", exported(options.library))
    if "getenv" in wanted(options.library):
        problems.append("getenv is called, where secure_getenv is meant")
    return problems


class Types:
    """The declarations of a library's ABI, from the XML of abidw, each as a line of text."""

    def __init__(self, corpus):
        self.corpus = corpus
        self.by_id = {node.get("id"): node for node in corpus.iter() if node.get("id")}

    def name(self, type_id):
        node = self.by_id.get(type_id)
        if node is None or node.get("name") and node.get("is-anonymous") != "yes":
            return node.get("name") if node is not None else "void"
        of = functools.partial(self.name, node.get("type-id"))
        if node.tag == "pointer-type-def":
            return f"{of()}*"
        if node.tag == "qualified-type-def":
            return f"{of()} const" if node.get("const") else of()
        if node.tag == "array-type-def":
            return of() + "".join(f"[{subrange.get('length')}]" for subrange in node.iter("subrange"))
        if node.tag == "function-type":
            return self.signature(node)
        return self.members(node)

    def signature(self, node):
        parameters = ["..." if parameter.get("is-variadic") else self.name(parameter.get("type-id"))
                      for parameter in node.iter("parameter")]
        return f"{self.name(node.find('return').get('type-id'))}({', '.join(parameters)})"

    def members(self, node):
        """Bytes, then of each member: where it begins, its type and its name."""
        if node.tag == "enum-decl":
            return ", ".join(f"{value.get('name')} {value.get('value')}" for value in node.iter("enumerator"))
        members = [(int(member.get("layout-offset-in-bits") or 0) // 8, member.find("var-decl"))
                   for member in node.iter("data-member")]
        return f"{int(node.get('size-in-bits') or 0) // 8} bytes {{" + ", ".join(
            f"{at} {self.name(member.get('type-id'))} {member.get('name')}" for at, member in members) + "}"

    def lines(self):
        for node in self.corpus.iter():
            name = node.get("name")
            if node.tag == "function-decl":
                yield f"{name}: {self.signature(node)}"
            elif node.tag == "typedef-decl":
                yield f"typedef {name}: {self.name(node.get('type-id'))}"
            elif node.tag in ("class-decl", "union-decl", "enum-decl") and node.get("is-anonymous") != "yes":
                yield f"{node.tag.removesuffix('-decl')} {name}: {self.members(node)}"
        # The tables of kernels and of parameters are as long as their rows, which the header leaves open.
        for unit in self.corpus.iter("abi-instr"):
            for variable in unit.findall("var-decl"):
                yield f"{variable.get('name')}: {self.name(variable.get('type-id')).split('[')[0]}"


def declarations(options):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "library.abi")
        checked("abidw", "--exported-interfaces-only", "--drop-private-types", "--headers-dir", options.headers,
                "--no-show-locs", "--no-parameter-names", "--type-id-style", "hash", "--out-file", path, options.library)
        return sorted(set(Types(xml.etree.ElementTree.parse(path).getroot()).lines()))


def check_types(options):
    # Without debug information there would be no types.
    if ".debug_info" not in checked("readelf", "--section-headers", "--wide", options.library):
        return [f"{options.library} has no debug information to look at"]
    return differences(options, "types.txt", declarations(options))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--headers", required=True)
    parser.add_argument("--stored", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("what", choices=["symbols", "types"])
    options = parser.parse_args()
    problems = check_symbols(options) if options.what == "symbols" else check_types(options)
    for problem in problems:
        print(problem)
    if problems:
        print(f"If that is meant: {' '.join(sys.argv)} --update")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
