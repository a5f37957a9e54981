"""Fills a page's template with what the programs and headers say of themselves, so that nothing is written down twice.

usage: generate.py TEMPLATE OUTPUT [--npumemd PROGRAM] [--npumemctl PROGRAM] [--include DIRECTORY] [--python DIRECTORY]

A line @NPUMEMD@ becomes npumemd --help; @NPUMEMCTL@ the help of npumemctl and of each of its commands; @KERNELS@ the
docstrings of the kernels in npumem.reference, in the order of kernels.def; @PARAMETERS@ the rows of params.def, with
the kernels' own defaults as npumemctl kernels says them, @STATUSES@ those of status.def; @FUNCTIONS npumem/X.h@ a header's sections; @PYTHON@ what the Python package exports, by its docstrings, @SPECIFICATION@ what
npumem.reference does.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import textwrap


def escape(text):
    return re.sub(r"([\\*_])", r"\\\1", text)


def literal(text):
    """scdoc takes a backslash as an escape here, too."""
    return "```\n" + text.rstrip("\n").replace("\\", "\\\\") + "\n```\n"


def said(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def npumemd(arguments):
    parts = []
    for line in said(arguments.npumemd, "--help").split("\n\n", 1)[1].rstrip("\n").split("\n"):
        option, value, text = re.fullmatch(r"  (--[a-z-]+) ?([A-Z:=]*) *(.*)", line).groups()
        parts.append(f"*{option}*" + (f" _{value}_" if value else "") + f"\n\t{escape(text or 'and ends')}\n")
    return "\n".join(parts)


def npumemctl(arguments):
    text = said(arguments.npumemctl, "--help")
    names = re.findall(r"^  ([a-z]+)  ", text.split("options:")[0], re.MULTILINE)
    parts = [literal(text)]
    for name in names:
        page = said(arguments.npumemctl, name, "--help")
        parts.append(f"## {name}\n\n" + literal(page))
    return "\n".join(parts)


def rows(arguments, name, macro):
    """The arguments of each row, strings that follow each other joined."""
    with open(os.path.join(arguments.include, "npumem", name), encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    for match in re.finditer(rf"^{macro}\((.*?)\)\n(?=\S|\Z|\n)", text, re.MULTILINE | re.DOTALL):
        yield [
            "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', part)) if '"' in part else part.strip()
            for part in re.findall(r'(?:"(?:[^"\\]|\\.)*"|[^,"])+', match[1])
        ]


def kernel_docstrings(arguments):
    """By name: what the functions of npumem.reference say of themselves."""
    trees = [tree for _, tree in modules(os.path.join(arguments.python, "reference"))]
    return {one.name: ast.get_docstring(one) for tree in trees for one in tree.body if isinstance(one, ast.FunctionDef)}


def sections(docstring):
    """A summary and text, then parts: a title, and indented below it its lines."""
    title, parts = "", {"": []}
    for line in docstring.split("\n"):
        if re.fullmatch("Tensors|Parameters|Refused|Counts|Source|Example", line):
            title = line
            parts[title] = []
        else:
            parts[title].append(line.removeprefix("    ") if title else line)
    return parts


def prose(lines):
    """Paragraphs, and what is indented as it is written."""
    parts = []
    for block in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        if block.startswith("    "):
            parts.append(literal(textwrap.dedent(block)))
        else:
            parts.append(escape(" ".join(block.split())) + "\n")
    return "\n".join(parts)


def entries(lines):
    """Lines that go on where they are indented."""
    found = []
    for line in lines:
        if line.startswith(" ") and found:
            found[-1] += " " + line.strip()
        elif line.strip():
            found.append(line)
    return found


def terms(lines):
    """A name, two spaces or more, and what it is."""
    parts = []
    for entry in entries(lines):
        name, _, text = entry.partition("  ")
        text = re.sub(r"^\[", r"\\[", escape(text.strip()))  # it would begin a table
        parts.append(f"*{escape(name)}*\n\t{text}\n" if text else escape(name) + "\n")
    return "\n".join(parts)


def kernels(arguments):
    docstrings = kernel_docstrings(arguments)
    parts = []
    for row in rows(arguments, "kernels.def", "KERNEL"):
        said_of = sections(docstrings[row[0]])
        parts.append(f"## {escape(row[0])}\n\n{prose(said_of[''])}")
        for title in ("Tensors", "Parameters", "Counts"):
            parts.append(f"*{title}*\n\n{terms(said_of[title])}")
        parts.append("*Refused*\n\n" + "".join(f"- {escape(one)}\n" for one in entries(said_of["Refused"])))
        parts.append(f"*Source*\n\n{prose(said_of['Source'])}")
        parts.append(f"*Example*\n\n{literal(chr(10).join(said_of['Example']))}")
    return "\n".join(parts)


def names(kernels_):
    """Kernels in words; those that begin with packed_ are one kind."""
    words = [name for name in kernels_ if not name.startswith("packed_")]
    words += ["packed operations"] if len(words) < len(kernels_) else []
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def defaults(kernels_, name):
    """The default that most kernels have, then the others with their kernels."""
    by_default = {}
    for kernel in kernels_:
        for one in kernel["parameters"]:
            if one["name"] == name:
                by_default.setdefault(one["default"], []).append(kernel["name"])
    parts, n_kernels = [], sum(map(len, by_default.values()))
    for default in sorted(by_default, key=lambda default: -len(by_default[default])):
        whose = f" ({names(by_default[default])})" if parts or len(by_default[default]) * 2 < n_kernels else ""
        parts.append((f"default {default}" if default else "must be given") + whose)
    return "; ".join(parts)


def parameters(arguments):
    parts, kernels_ = [], json.loads(said(arguments.npumemctl, "--json", "kernels"))["kernels"]
    for row in rows(arguments, "params.def", "PARAM"):
        name, least, most, choices = row[1], row[3], row[4], row[5]
        count = least if least == most else f"{least} to {most}"
        kind = ", ".join(choices.split()) if choices else f"{count} integer{'' if most == '1' else 's'}"
        if choices and most != "1":
            kind = f"{count} of {kind}"
        parts.append(f"*{escape(name)}*\n\t{escape(kind)}; {escape(defaults(kernels_, name))}.\n")
    return "\n".join(parts)


def statuses(arguments):
    parts = []
    for row in rows(arguments, "status.def", "STATUS"):
        parts.append(f"*{escape(row[0])}* ({row[1]})\n\t{escape(row[2])}\n")
    return "\n".join(parts)


def enumerators(arguments, block):
    """An enum whose enumerators are the rows of a .def file, with these spelled out."""

    def lines(match):
        macro, names, prefix, first, number, file = match.groups()
        names = names.split(", ")
        made = []
        for row in rows(arguments, file, macro):
            meaning = f" /* {row[names.index('meaning')]} */" if "meaning" in names else ""
            made.append(f"\t{prefix}{row[names.index(first)]} = {row[names.index(number)]},{meaning}")
        return "\n".join(made)

    return re.sub(r"(?m)^#define (\w+)\((.*)\) (\w+?)##(\w+) = (\w+),\n#include <npumem/(\w+\.def)>\n#undef \1$", lines, block)


def functions(arguments, header):
    with open(os.path.join(arguments.include, header), encoding="utf-8") as file:
        text = file.read()
    parts, section = [f"## {escape(header)}\n"], None
    body = text.split("#endif\n", 1)[-1] if "extern" in text else text
    for block in re.split(r"\n\s*\n", body):
        block = block.strip("\n")
        title = re.fullmatch(r"/\* ---- (.*?) ---- \*/", block.strip())
        if title:
            section = title[1]
            parts.append(f"*{escape(section)}*\n")
        elif block and not re.match("#(?!define)|[{}]$", block) and "extern \"C\"" not in block:
            parts.append(literal(enumerators(arguments, block).replace("\t", "        ")))
    return "\n".join(parts)


def signature(function):
    for list_of in (function.args.posonlyargs, function.args.args):
        list_of[:] = [one for one in list_of if one.arg != "self"]
    end = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    return f"({ast.unparse(function.args)}){end}"


def described(node, prefix):
    """A function or property, a class and what is public in it; nothing of what has no docstring."""
    text = ast.get_docstring(node)
    if not text:
        return
    is_property = any(ast.unparse(one) == "property" for one in node.decorator_list)
    end = "" if is_property or isinstance(node, ast.ClassDef) else escape(signature(node))
    yield f"*{escape(prefix + node.name)}*{end}\n"
    yield literal(textwrap.indent(text, "    "))
    for one in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(one, ast.FunctionDef) and not one.name.startswith("_"):
            yield from described(one, prefix + node.name + ".")


def modules(folder):
    """By file name: what they hold."""
    trees = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                trees.append((name, ast.parse(file.read())))
    return trees


def python(arguments, folder=".", package="npumem."):
    trees = modules(os.path.join(arguments.python, folder))
    exported = next(ast.literal_eval(node.value) for name, tree in trees if name == "__init__.py" for node in tree.body
                    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    parts = []
    for _, tree in trees:
        for node in tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in exported:
                is_below = folder != "." or isinstance(node, ast.FunctionDef)
                parts += described(node, package if is_below else "")
    return "\n".join(parts)


def specification(arguments):
    parts = [python(arguments, "reference", "npumem.reference.")]
    tree = dict(modules(os.path.join(arguments.python, "reference")))["numeric.py"]
    for node in tree.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            parts += described(node, "npumem.reference.numeric.")
    return "\n".join(parts)


def fill(line, arguments):
    word = line.strip()
    if word == "@NPUMEMD@":
        return npumemd(arguments)
    if word == "@NPUMEMCTL@":
        return npumemctl(arguments)
    if word == "@KERNELS@":
        return kernels(arguments)
    if word == "@PARAMETERS@":
        return parameters(arguments)
    if word == "@STATUSES@":
        return statuses(arguments)
    if word == "@PYTHON@":
        return python(arguments)
    if word == "@SPECIFICATION@":
        return specification(arguments)
    if word.startswith("@FUNCTIONS "):
        return functions(arguments, word[len("@FUNCTIONS ") : -1])
    return line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("template")
    parser.add_argument("output")
    for name in ("npumemd", "npumemctl", "include", "python"):
        parser.add_argument("--" + name)
    arguments = parser.parse_args()
    with open(arguments.template, encoding="utf-8") as file:
        lines = file.read().split("\n")
    with open(arguments.output, "w", encoding="utf-8") as file:
        file.write("\n".join(fill(line, arguments) for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
