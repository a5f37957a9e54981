"""Fills a page's template with what the programs and headers say of themselves, so that nothing is written down twice.

usage: generate.py TEMPLATE OUTPUT [--npumemd PROGRAM] [--npumemctl PROGRAM] [--include DIRECTORY] [--python DIRECTORY]

A line @NPUMEMD@ becomes npumemd --help; @NPUMEMCTL@ the help of npumemctl and of each of its commands; @KERNELS@ what
npumemctl kernels says of each; @PARAMETERS@ the rows of params.def, @STATUSES@ those of status.def; @FUNCTIONS
npumem/X.h@ a header's sections; @PYTHON@ what the Python package exports, by its docstrings.
"""

import argparse
import ast
import os
import re
import subprocess
import sys
import textwrap


def escape(text):
    return re.sub(r"([\\*_])", r"\\\1", text)


def literal(text):
    return "```\n" + text.rstrip("\n") + "\n```\n"


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


def kernels(arguments):
    parts = []
    for name in said(arguments.npumemctl, "kernels", "--names").split():
        first, rest = said(arguments.npumemctl, "kernels", name).split("\n", 1)
        parts.append(f"## {escape(name)}\n\n{escape(first.split(':', 1)[1].strip())}\n\n" + literal(rest.strip("\n")))
    return "\n".join(parts)


def parameters(arguments):
    parts = []
    for row in rows(arguments, "params.def", "PARAM"):
        name, least, most, choices, fallback = row[1], row[3], row[4], row[5], row[6]
        count = least if least == most else f"{least} to {most}"
        kind = ", ".join(choices.split()) if choices else f"{count} integer{'' if most == '1' else 's'}"
        if choices and most != "1":
            kind = f"{count} of {kind}"
        end = f"default {fallback}" if fallback else "must be given"
        parts.append(f"*{escape(name)}*\n\t{escape(kind)}; {escape(end)}.\n")
    return "\n".join(parts)


def statuses(arguments):
    parts = []
    for row in rows(arguments, "status.def", "STATUS"):
        parts.append(f"*{escape(row[0])}* ({row[1]})\n\t{escape(row[2])}\n")
    return "\n".join(parts)


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
        elif block and not block.startswith("#") and "extern \"C\"" not in block and block.strip() not in ("}", "{"):
            parts.append(literal(block.replace("\t", "        ")))
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


def python(arguments):
    trees = []
    for name in sorted(os.listdir(arguments.python)):
        if name.endswith(".py"):
            with open(os.path.join(arguments.python, name), encoding="utf-8") as file:
                trees.append((name, ast.parse(file.read())))
    exported = next(ast.literal_eval(node.value) for name, tree in trees if name == "__init__.py" for node in tree.body
                    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    parts = []
    for _, tree in trees:
        for node in tree.body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in exported:
                parts += described(node, "npumem." if isinstance(node, ast.FunctionDef) else "")
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
