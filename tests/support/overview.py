"""The README's first picture: who shares a device, and what lies in it. Drawn by figures.py, in the look of npumemctl's own."""

STYLE = (
    "text{fill:#1f2328}.b{fill:#fff}.s{fill:#59636e}.m{text-anchor:middle}.t{font-weight:bold}"
    ".p{fill:#f6f8fa;stroke:#818b98}.l{stroke:#818b98;fill:none}.h{stroke:#9aa4af;stroke-width:.7}"
    ".e{fill:url(#empty);stroke:#6e7781;stroke-width:.6}.x,.y,.w{stroke:#6e7781;stroke-width:.6}"
    ".x{fill:#a9cdf2}.y{fill:#ffd9a0}.w{fill:#b9e4c0}\n"
    "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#0d1117}.s{fill:#9198a1}.p{fill:#161b22;stroke:#656c76}"
    ".l{stroke:#656c76}.h{stroke:#6a737d}.e,.x,.y,.w{stroke:#848d97}.x{fill:#1f4e80}.y{fill:#6b4a12}.w{fill:#1f5a2e}}\n"
)
CLIENTS = (("a compiler's tests", "C, libnpumem"), ("a notebook", "Python, npumem"), ("a script, a CI", "npumemctl"))
# Tensor, start NPU, channels; below each other, on 4 NPUs.
TENSORS = (("x", 0, 8), ("w", 1, 3), ("y", 2, 4))
LEFT, TOP, COLUMN, ROW, GAP = 440, 96, 84, 24, 12


def box(kind, x, y, width, height, round_by=0):
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{round_by}"/>'


def text(kind, x, y, words):
    return f'<text class="{kind}" x="{x}" y="{y}">{words}</text>'


def line(x, y, to_x, to_y):
    return f'<path class="l" d="M{x} {y}L{to_x} {to_y}"/>'


def channels(name, start, n, y):
    """Block rows of a tensor: channel c on NPU (start + c) mod 4, the other blocks of these rows empty."""
    for row in range(-(-(start + n) // 4)):
        for npu in range(4):
            c = row * 4 + npu - start
            x = LEFT + npu * COLUMN
            there = 0 <= c < n
            yield box(name if there else "e", x, y + row * ROW, COLUMN - GAP, ROW)
            if there:
                yield text("m", x + (COLUMN - GAP) / 2, y + row * ROW + 16, f"{name}, c {c}")


def draw(path):
    y = TOP
    parts = [box("b", 0, 0, 800, 296)]
    for i, (who, how) in enumerate(CLIENTS):
        at = 56 + i * 72
        parts += [box("p", 16, at, 190, 52, 6), text("m t", 111, at + 22, who), text("m s", 111, at + 40, how),
                  line(206, at + 26, 296, at + 26), line(296, at + 26, 296, 154)]
    parts += [line(296, 154, 404, 154), text("m s", 350, 146, "Unix socket"),
              box("p", 404, 16, 380, 264, 8), text("t", 424, 42, "npumemd: one device"),
              text("s", 424, 60, "places, checks, runs, counts; says why not")]
    parts += [text("m", LEFT + npu * COLUMN + (COLUMN - GAP) / 2, TOP - 10, f"NPU {npu}") for npu in range(4)]
    for name, start, n in TENSORS:
        drawn = list(channels(name, start, n, y))
        parts += drawn
        y += ROW * -(-(start + n) // 4) + 8
    parts += [box("e", LEFT, 260, 16, 12), text("s", LEFT + 22, 270, "empty: of a tensor's rows, without a channel of it")]
    with open(path, "w", encoding="utf-8") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" width="800" height="296" viewBox="0 0 800 296" '
                   f'font-family="sans-serif" font-size="12">\n<style>\n{STYLE}</style>\n'
                   '<defs><pattern id="empty" width="8" height="8" patternUnits="userSpaceOnUse">'
                   '<path class="h" d="M0 8L8 0"/></pattern></defs>\n' + "\n".join(parts) + "\n</svg>\n")
