"""The README's blocks of commands, as one script, and the outputs that it shows below them."""

import os
import re

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
MARK = "--- after block {}"


def blocks():
    """Of each ```sh block its lines, and the ```text block that follows it, or None."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as file:
        found = re.findall(r"^```(\w*)\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)
    pairs = []
    for kind, text in found:
        if kind == "sh":
            pairs.append([text, None])
        elif kind == "text" and pairs and pairs[-1][1] is None:
            pairs[-1][1] = text
        else:
            raise AssertionError(f"a block of kind {kind!r} that no test runs: {text}")
    return pairs


def script(pairs):
    """One shell for all of them. The first command that fails ends it."""
    return "set -e\n" + "".join(f"{text}echo '{MARK.format(i)}'\n" for i, (text, _) in enumerate(pairs))


def missing(pairs, printed):
    """The outputs that are shown and were not printed; … stands for anything within a line."""
    wrong, rest = [], printed
    for i, (text, shown) in enumerate(pairs):
        part, mark, rest = rest.partition(MARK.format(i) + "\n")
        pattern = r"\n".join(".*".join(map(re.escape, line.split("…"))) for line in (shown or "").splitlines())
        if not mark or not re.search(rf"(?m)^{pattern}$", part):
            wrong.append((text, shown, part))
    return wrong
