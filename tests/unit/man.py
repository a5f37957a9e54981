"""What the manual pages must have: every option, command, kernel, parameter and function; and that man takes them.

usage: man.py PAGES INCLUDE COMMANDS_DEF OPTIONS_C SYMBOLS PYTHON_INIT
"""

import json
import os
import re
import subprocess
import sys


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def rendered(pages, page):
    """As a reader sees it, wide enough that no word is divided."""
    result = subprocess.run(["man", "--warnings", "--no-hyphenation", "-l", os.path.join(pages, page + ".gz")], check=False,
                            capture_output=True, text=True, env=dict(os.environ, MANWIDTH="1000", LC_ALL="C.UTF-8"))
    assert result.returncode == 0 and not result.stderr, (page, result.stderr)
    return re.sub(".\b", "", result.stdout)


def missing(text, words):
    return [word for word in words if not re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text)]


def tests_not_there(text, tests):
    """Of those that the page of threats names."""
    named = re.findall(r"(?<![\w/.-])(?:unit|integration|system|farm|random|bench|checks|fuzz|fault|model|mutants)/[\w/.]*", text)
    return [path for path in named if not os.path.exists(os.path.join(tests, path))] if len(named) > 20 else ["tests"]


def importer_words(package):
    """The options of npumem-import, and the operators that it has a row for."""
    folder = os.path.join(package, "onnx", "rows")
    text = "".join(read(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".py"))
    operators = [name for given in re.findall(r"^@row\(([^)]*)\)", text, re.MULTILINE) for name in re.findall(r'"(\w+)"', given)]
    inner = {"Quantized", "Function"}  # made by folding, of chains
    return re.findall(r'"(--[a-z-]+)"', read(package, "onnx", "__main__.py")) + sorted({*operators} - inner)


def questions_without_answers(readers, templates):
    """Of tests/readers: what is not twenty questions with an answer and a section of its page; a page that has none."""
    wrong = []
    for page in sorted(name.removesuffix(".scd") for name in os.listdir(templates) if name.endswith(".scd")):
        sections = re.findall(r"^#+ (.+)$", read(templates, page + ".scd"), re.MULTILINE)
        path = os.path.join(readers, page + ".json")
        rows = json.loads(read(path)) if os.path.exists(path) else []
        if len(rows) != 20 or any(not row["question"] or not row["answer"] or row["section"] not in sections for row in rows):
            wrong.append(page)
    return wrong


def enumerators(include, macro):
    file = "status.def" if macro == "status" else f"{macro}s.def"
    return re.findall(rf"^{macro.upper()}\((\w+)", read(include, "npumem", file), re.MULTILINE)


def main():
    pages, include, commands, options, symbols, python = sys.argv[1:]
    rows = lambda name, macro: re.findall(rf'^{macro}\((\w+)', read(include, "npumem", name), re.MULTILINE)
    limits = re.findall(r"^LIMIT\(\w+, (\w+)", read(os.path.dirname(options), "../../service/limits.def"), re.MULTILINE)
    wanted = {
        "npumem-threats.7": limits,
        "npumemd.8": limits + ["--" + name for name in re.findall(r'^\t\{(?:\.name = )?"([a-z-]+)"', read(options), re.MULTILINE)],
        "npumemctl.1": re.findall(r"^COMMAND\((\w+)", read(commands), re.MULTILINE),
        "npumem-import.1": importer_words(os.path.dirname(python)),
        "npumem-kernels.7": rows("kernels.def", "KERNEL")
        + re.findall(r'^PARAM\(\w+, "(\w+)"', read(include, "npumem", "params.def"), re.MULTILINE),
        "libnpumem.3": re.findall(r"^(npumem_\w+)@", read(symbols), re.MULTILINE)
        + [f"NPUMEM_{name}" for macro in ("status", "dtype", "layout") for name in enumerators(include, macro)]
        + [f"NPUMEM_MODE_{name}" for name in enumerators(include, "mode")]
        + ['fprintf(stderr, "%s\\n", error.message)'],
        "npumem-python.3": re.findall(r'^    "([A-Za-z]\w+)",$', read(python), re.MULTILINE),
        "npumem.7": ["aligned", "compact", "matrix", "strided", "4n", "2n", "2ic", "footprint", "embARC MLI", "vendor"],
        "npumem-wire.7": re.findall(r"^STATUS\(([A-Z_]+)", read(include, "npumem", "status.def"), re.MULTILINE),
    }
    code = 0
    lost = tests_not_there(rendered(pages, "npumem-threats.7"), os.path.join(os.path.dirname(os.path.realpath(__file__)), ".."))
    if lost:
        print(f"npumem-threats.7: not there: {lost}")
        code = 1
    lost = questions_without_answers(os.path.join(os.path.dirname(os.path.realpath(__file__)), "../readers"),
                                     os.path.join(os.path.dirname(commands), "../man"))  # fmt: skip
    if lost:
        print(f"tests/readers: not twenty questions with answers and sections: {lost}")
        code = 1
    for page, words in wanted.items():
        text = rendered(pages, page)
        lost = missing(text, words)
        if len(words) < 5 or lost:
            print(f"{page}: of {len(words)} words not there: {lost}")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
