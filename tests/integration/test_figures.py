"""The figures of the documents: drawn by tests/support/figures.py as they lie in client/man/figures, and each one, read back, says what
the layout chapter says. What is expected is reckoned here from the chapter's sentences, not by npumem."""
import collections
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import termios
import unittest
import xml.etree.ElementTree

from contrast import worst

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "tests/support/figures.py")
FIGURES = os.path.join(ROOT, "client/man/figures")
X = 4
ELEMENT = re.compile(r"(?:row (\d+), column (\d+): )?(data|dummy) \((\d+),(\d+),(\d+),(\d+)\); NPU (\d+), offset (\d+), address \d+$")
OTHER = re.compile(r"(padding|empty|none of the tensor on this NPU); NPU (\d+), offset (\d+), address \d+$")


def tooltips(name):
    root = xml.etree.ElementTree.parse(os.path.join(FIGURES, name + ".svg")).getroot()
    return [title.text for title in root.iter("{http://www.w3.org/2000/svg}title")]


def texts(name):
    root = xml.etree.ElementTree.parse(os.path.join(FIGURES, name + ".svg")).getroot()
    return [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]


def cells(name):
    """(elements {(n,c,h,w): (npu, offset)}, dummies the same, counts {(kind, npu): n}, {(row, column): (n,c,h,w)})"""
    found = {"data": {}, "dummy": {}}
    counts, matrix = collections.Counter(), {}
    for text in tooltips(name):
        element, other = ELEMENT.match(text), OTHER.match(text)
        if element:
            row, column, kind, *rest = element.groups()
            n, c, h, w, npu, offset = map(int, rest)
            assert (n, c, h, w) not in found[kind], (name, text)
            found[kind][n, c, h, w] = npu, offset
            counts[kind, npu] += 1
            if row:
                matrix[int(row), int(column)] = n, c, h, w
        elif other:
            counts[other[1], int(other[2])] += 1
    return found["data"], found["dummy"], counts, matrix


def lies(shape, start, strides, word=4, lanes=1):
    """Where the chapter puts the elements: channel c on NPU (Q + c) mod X, in block row floor((Q + c) / X)."""
    where = {}
    for n in range(-(-shape[0] // lanes) * lanes):
        for c in range(shape[1]):
            for h in range(shape[2]):
                for w in range(shape[3]):
                    at = n // lanes * strides[0] + (start + c) // X * strides[1] + h * strides[2] + w * strides[3]
                    where[n, c, h, w] = (start + c) % X, at * word + n % lanes * (word // lanes)
    return where


class Figures(unittest.TestCase):
    def test_drawn_by_the_script(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-B", SCRIPT, os.environ["NPUMEM_BUILD"], folder], check=True)
            drawn = sorted(os.listdir(folder))
            self.assertEqual(drawn, sorted(name for name in os.listdir(FIGURES) if name.endswith(".svg")))
            for name in drawn:
                with open(os.path.join(folder, name), encoding="utf-8") as new, \
                        open(os.path.join(FIGURES, name), encoding="utf-8") as old:
                    self.assertTrue(new.read() == old.read(), f"{name}: run tests/support/figures.py again")

    def test_address(self):
        """A = 340, B = 1472, C = 2300 and D = 3088, with X = 4 and S = 1024."""
        found = [text for text in tooltips("address") if re.match("[A-D]: ", text)]
        self.assertEqual(len(found), 4)
        for text, (name, address) in zip(found, {"A": 340, "B": 1472, "C": 2300, "D": 3088}.items()):
            q, r = address // 1024, address % 1024
            self.assertEqual(text, f"{name}: address {address} = {q} * 1024 + {r}; NPU {q}, offset {r}")
        # Each block has a size of 4 bytes.
        self.assertEqual(len([text for text in tooltips("address") if text.startswith("NPU ")]), 4 * 1024 // 4)

    def test_scatter(self):
        # start NPU, C, channels per NPU, and the empty blocks of each block row, as the text counts them
        for i, (start, c_all, rows, empty) in enumerate((
                (0, X - 1, 1, [1]), (1, X - 1, 1, [1]), (0, X + 2, 2, [0, X - 2]), (X - 1, X + 2, 3, [X - 1, 0, X - 1]))):
            name = f"scatter_{i}"
            features = [tuple(map(int, found)) for text in tooltips(name)
                        for found in re.findall(r"^feature \((\d+),(\d+)\); NPU (\d+), block row (\d+)", text)]
            self.assertEqual(sorted(features), sorted((n, c, (start + c) % X, (start + c) // X)
                                                      for n in range(2) for c in range(c_all)))
            found = collections.Counter(int(row) for text in tooltips(name)
                                        for row in re.findall(r"^empty; NPU \d+, block row (\d+)$", text))
            self.assertEqual([found[row] for row in range(rows)], [2 * n for n in empty], name)
            self.assertIn(f"; {rows} block row", "".join(texts(name)))

    def exact(self, name, shape, start, strides, **more):
        data, dummy, counts, _ = cells(name)
        self.assertEqual(data | dummy, lies(shape, start, strides, **more), name)
        self.assertEqual(set(data), {index for index in data | dummy if index[0] < shape[0]})
        self.assertEqual({text for text in texts(name) if re.fullmatch(r"\d+,\d+,\d+,\d+", text)},
                         {",".join(map(str, index)) for index in data})
        return data, dummy, counts

    def test_strides(self):
        self.exact("stride_local_0", (2, 5, 3, 4), 0, (120, 56, 16, 2))
        _, _, counts = self.exact("stride_local_1", (2, 3, 1, 10), 1, (120, 0, 0, 2))
        # NPU 0 holds none of it, so that nothing there is called padding.
        self.assertEqual(counts["data", 0], 0)
        self.assertEqual(counts["padding", 0], 0)
        self.assertEqual(counts["empty", 0], 2 * 10)

    def test_aligned(self):
        data, _, counts = self.exact("align_fp32_start_0_2_3_4_5", (2, 3, 4, 5), 0, (32, 0, 5, 1))
        self.assertEqual(len(data), 2 * 3 * 20)
        # "32 - 4 * 5 = 12 empty blocks are appended to each feature"
        self.assertEqual([counts["padding", npu] for npu in range(X)], [24, 24, 24, 0])
        self.assertEqual([counts["empty", npu] for npu in range(X)], [0, 0, 0, 64])
        _, _, counts = self.exact("align_fp32_start_2_2_3_4_5", (2, 3, 4, 5), 2, (64, 32, 5, 1))
        self.assertEqual([counts["padding", npu] for npu in range(X)], [24, 0, 24, 24])
        self.assertEqual([counts["empty", npu] for npu in range(X)], [64, 128, 64, 64])
        self.assertIn("strides n 64, c 32, h 5, w 1; 512 B per NPU", "".join(texts("align_fp32_start_2_2_3_4_5")))

    def test_compact(self):
        _, _, counts = self.exact("compact_fp32_start_0_2_3_4_5", (2, 3, 4, 5), 0, (20, 0, 5, 1))
        self.assertEqual(sum(counts["padding", npu] for npu in range(X)), 0)
        _, _, counts = self.exact("compact_fp32_start_2_2_3_4_5", (2, 3, 4, 5), 2, (40, 20, 5, 1))
        self.assertEqual(sum(counts["padding", npu] for npu in range(X)), 0)

    def test_matrix(self):
        # W: the blocks that one row takes on each NPU, and the elements of a row on NPU 0 to 3
        for w, (row, each) in {40: (64, [40, 0, 0, 0]), 20: (32, [20, 20, 0, 0]), 10: (32, [10, 10, 10, 10]),
                               8: (64, [16, 8, 8, 8]), 15: (32, [15, 15, 10, 0]), 6: (64, [12, 12, 10, 6])}.items():
            name = f"matrix_w_{w}"
            data, dummy, counts, matrix = cells(name)
            channels = -(-40 // w)
            # One block row is as long as the row of the matrix where there is one; else "C stride" of 32 blocks.
            stride = -(-w // 32) * 32
            n_stride = stride * (-(-channels // X))
            self.assertEqual(n_stride, row)
            self.assertEqual(data, {index: at for index, at in lies((2, channels, 1, w), 0, (n_stride, stride, 0, 1)).items()
                                    if index[1] * w + index[3] < 40}, name)
            self.assertEqual(matrix, {(n, c * w + i): (n, c, 0, i) for n, c, _, i in data})
            self.assertEqual({text for text in texts(name) if re.fullmatch(r"\d+,\d+", text)},
                             {f"{n},{m}" for n in range(2) for m in range(40)})
            self.assertEqual([counts["data", npu] for npu in range(X)], [2 * n for n in each], name)
            self.assertFalse(dummy)

    def test_modes(self):
        data, dummy, _ = self.exact("aligned_4N", (6, 5, 4, 5), 0, (64, 32, 5, 1), lanes=4)
        self.assertEqual((len(data), len(dummy)), (6 * 100, 2 * 100))
        # "the int8x4 element at (1, 0, 0, 0) contains (4, 0, 0, 0) and (5, 0, 0, 0) and two dummy ones"
        self.assertEqual([data[4, 0, 0, 0], data[5, 0, 0, 0], dummy[6, 0, 0, 0], dummy[7, 0, 0, 0]],
                         [(0, 256 + i) for i in range(4)])
        data, dummy, _ = self.exact("aligned_2N", (3, 5, 4, 5), 0, (64, 32, 5, 1), lanes=2)
        self.assertEqual((len(data), len(dummy)), (3 * 100, 100))
        self.assertEqual([data[2, 0, 0, 0], dummy[3, 0, 0, 0]], [(0, 256), (0, 258)])

    def test_rule(self):
        """What happened on the device is what is seen."""
        boxes = tooltips("rule")
        self.assertIn("lost: data in another's empty block, NPU 2, offsets 128 to 255", boxes)
        self.assertIn("b: data in another's empty block, NPU 3, offsets 640 to 767", boxes)
        self.assertIn("in: empty, NPU 3, offsets 384 to 511", boxes)
        self.assertIn("new: padding, NPU 0, offsets 996 to 1023", boxes)
        for mark in ("damaged", "sealed", "never written"):
            self.assertEqual(boxes.count(mark), 2, mark)  # one tensor, and the legend
            self.assertIn(mark, texts("rule"))


class Contrast(unittest.TestCase):
    """Each text can be read on what lies below it, in both schemes: 4.5 is what WCAG 2 asks of small text."""

    def assert_readable(self, path):
        for scheme in ("light", "dark"):
            least, text = worst(path, scheme)
            self.assertGreaterEqual(least, 4.5, f"{os.path.basename(path)}, {scheme}: {text}")

    def test_figures(self):
        for name in os.listdir(FIGURES):
            if name.endswith(".svg"):
                self.assert_readable(os.path.join(FIGURES, name))

    def test_pictures_of_every_kind(self):
        build = os.environ["NPUMEM_BUILD"]
        npumemctl = os.path.join(build, "client/ctl/npumemctl")
        network = os.path.join(ROOT, "tests/examples/networks/picture.json")
        fill = "".join(f'"$NPUMEMCTL" alloc tensor{i} --shape 1,{i + 1},1,{8 * i + 8} --dtype int8 --start-npu {i * 7 % 64}; '
                       for i in range(40))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.svg")
            for words in (
                ["plan", "--chip", "bm1684", "--address", ",".join(str(4099 * i) for i in range(64)), "--svg", path],
                ["plan", "--npus", "4", "--npu-bytes", "1024", "--address", ",".join(str(61 * i) for i in range(64)), "--svg", path],
                ["plan", "--chip", "bm1684", network, "--svg", path],
                ["plan", "--chip", "bm1684", "--shape", "3,70,20,30", "--dtype", "int8", "--mode", "4n", "--svg", path],
                ["--spawn", "exec", "sh", "-ec", f'{fill} "$NPUMEMCTL" map --svg {path}'],
                ["--spawn=--npus 1024 --npu-bytes 65536", "exec", "sh", "-ec", f'{fill} "$NPUMEMCTL" map --svg {path}'],
                ["--spawn", "exec", "sh", "-ec", f'{fill} "$NPUMEMCTL" map --to-scale --svg {path}'],
                ["--spawn", "exec", "sh", "-ec", f'{fill} "$NPUMEMCTL" map tensor9 --svg {path}'],
            ):
                subprocess.run([npumemctl, *words], check=True, stdout=subprocess.DEVNULL,
                               env=dict(os.environ, NPUMEMCTL=npumemctl, NPUMEMD=os.path.join(build, "daemon/npumemd")))
                with self.subTest(words[:4]):
                    self.assert_readable(path)

    def test_what_cannot_be_read_is_found(self):
        picture = ('<svg xmlns="http://www.w3.org/2000/svg" font-size="10"><style>text{fill:#000}.w{fill:#fff}.d{fill:#%s}'
                   '@media(prefers-color-scheme:dark){.w{fill:#000}text{fill:#fff}.t{fill:#777}}</style>'
                   '<rect class="w" width="99" height="99"/><rect class="d" x="20" width="50" height="20"/>'
                   '<text x="%d" y="12" class="%s">words</text></svg>')
        with tempfile.NamedTemporaryFile("w", suffix=".svg") as file:
            for values, light, dark in ((("888", 70, ""), 21, 21), (("888", 60, ""), 5.9, 3.5), (("888", 25, ""), 5.9, 3.5),
                                        (("fff", 25, "t"), 21, 4.5), (("111", 25, ""), 1.1, 18.9)):
                file.seek(0)
                file.truncate()
                file.write(picture % values)
                file.flush()
                self.assertAlmostEqual(worst(file.name, "light")[0], light, 1)
                self.assertAlmostEqual(worst(file.name, "dark")[0], dark, 1)


class Terminal(unittest.TestCase):
    """map on a terminal: as wide as that is, in colours unless NO_COLOR or TERM says otherwise."""

    def map(self, columns, **environment):
        build = os.environ["NPUMEM_BUILD"]
        script = '"$NPUMEMCTL" alloc x --shape 1,70,1,100 --dtype int8 >/dev/null; "$NPUMEMCTL" map; "$NPUMEMCTL" map x'
        npumemctl = os.path.join(build, "client/ctl/npumemctl")
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (50, columns))
        variables = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "TERM")}
        variables |= {"NPUMEMCTL": npumemctl, "NPUMEMD": os.path.join(build, "daemon/npumemd"), "TERM": "xterm"} | environment
        with subprocess.Popen([npumemctl, "--spawn", "exec", "sh", "-c", script], stdout=theirs, env=variables) as process:
            os.close(theirs)
            text = b""
            try:
                while part := os.read(ours, 4096):
                    text += part
            except OSError:  # the other end is closed
                pass
            self.assertEqual(process.wait(), 0)
        os.close(ours)
        return text.decode()

    def test_width(self):
        for columns in (40, 80, 200):
            text = re.sub("\x1b\\[[0-9]*m", "", self.map(columns))
            widest = max(len(line) for line in text.splitlines())
            self.assertLessEqual(widest, columns)
            self.assertIn("A  x: int8 [1,70,1,100]", text)

    def test_colours(self):
        self.assertIn("\x1b[", self.map(80))
        self.assertIn("\x1b[", self.map(80, NO_COLOR=""))
        self.assertNotIn("\x1b", self.map(80, NO_COLOR="1"))
        self.assertNotIn("\x1b", self.map(80, TERM="dumb"))


class Refusals(unittest.TestCase):
    def ctl(self, words):
        npumemctl = os.path.join(os.environ["NPUMEM_BUILD"], "client/ctl/npumemctl")
        environment = dict(os.environ, NPUMEMD=os.path.join(os.environ["NPUMEM_BUILD"], "daemon/npumemd"))
        return subprocess.run([npumemctl, *words.split()], capture_output=True, text=True, env=environment, check=False)

    def test_what_makes_no_sense(self):
        plan = "plan --npus 4 --npu-bytes 1024"
        with tempfile.TemporaryDirectory() as folder:
            svg = os.path.join(folder, "x.svg")
            for words, code, says in (
                (f"{plan} --shape 1,1,1,1 --dtype int8 --by feature", 2, "--by feature is for the drawing"),
                (f"{plan} --shape 1,1,1,1 --dtype int8 --by byte --svg {svg}", 2, "--by feature is for the drawing"),
                (f"{plan} --address 1,2 --by feature --svg {svg}", 2, "--by feature is for the drawing"),
                (f"{plan} --address 1,4096 --svg {svg}", 1, "address 4096 is not below the 4096 bytes"),
                (f"{plan} --address 1,,2 --svg {svg}", 2, "--address"),
                (f"{plan} --address 1,-2 --svg {svg}", 2, "--address"),
                (f"{plan} --address {','.join('1' * 65)} --svg {svg}", 2, "--address"),
                (f"{plan} --address 1 --svg /nonexistent/x.svg", 1, "/nonexistent/x.svg"),
                (f"{plan} --address 1 --svg /dev/full", 1, "/dev/full"),
                (f"{plan} --shape 1,1,1,1 --dtype int8 --svg /dev/full", 1, "/dev/full"),
                ("--spawn map --by feature", 2, "--by feature is for one tensor"),
                ("--spawn map x --by npu", 2, "--by \"npu\""),
                ("--spawn map --to-scale", 2, "--to-scale is for an SVG of the device"),
                ("--spawn map --svg /dev/full", 1, "/dev/full"),
            ):
                result = self.ctl(words)
                self.assertEqual(result.returncode, code, (words, result))
                self.assertIn(says, result.stderr, words)
                self.assertEqual(len(result.stderr.splitlines()), 1, result)
            self.assertEqual(os.listdir(folder), [])

    def test_several_addresses(self):
        result = self.ctl("--json plan --npus 4 --npu-bytes 1024 --address 340,3088")
        self.assertEqual(json.loads(result.stdout), {"addresses": [{"address": 340, "npu": 0, "offset": 340, "start_npu": 0},
                                                                   {"address": 3088, "npu": 3, "offset": 16, "start_npu": 3}]})
        self.assertEqual(self.ctl("plan --npus 4 --npu-bytes 1024 --address 1472").stdout,
                         "address 1472 is offset 448 of NPU 1\n")


if __name__ == "__main__":
    unittest.main()
