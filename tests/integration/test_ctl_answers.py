"""What npumemctl answers, as text and as JSON, and what it refuses by itself: commands that look and place."""

import json
import os
import select
import signal
import subprocess
import unittest
import xml.etree.ElementTree

import numpy as np

import npumem_pb2 as pb

from support import NPUMEMD, SECONDS, dims, for_all_uids, run_as, wait_for
from test_ctl_habits import NPUMEMCTL, Ctl


class Answers(Ctl):
    def json(self, *words):
        return json.loads(self.ctl("--json", *words))

    def text(self, *words):
        return self.ctl(*words).decode()

    def refused(self, *cases):
        """Each says what is wrong and changes nothing."""
        before = self.ctl("--json", "ls")
        for words, code, says in cases:
            self.ctl(*words, code=code, says=says)
        self.assertEqual(self.ctl("--json", "ls"), before)


class Places(Answers):
    def test_dump(self):
        self.alloc("x", "1,4,2,2")
        self.ctl("fill", "x", "65")
        self.assertEqual(self.json("dump", "1", "0", "4"), {"npu": 1, "offset": 0, "bytes": 4, "hex": "41414141"})
        self.assertEqual(self.json("dump", "1", "4", "0"), {"npu": 1, "offset": 4, "bytes": 0, "hex": ""})
        self.assertRegex(self.text("dump", "1", "0", "18").splitlines()[0], "^00000000: 4141 4141 .*  AAAA")
        past = str(1 << 50)
        self.refused(
            (("dump", "x", "0", "1"), 2, "NPU"),
            (("dump", "0", "x", "1"), 2, "OFFSET"),
            (("dump", "0", "0", "x"), 2, "BYTES"),
            (("dump", "0", past, "1"), 1, "past the end of every NPU"),
            (("dump", "0", "0", past), 1, "past the end of every NPU"),
        )

    def test_alloc(self):
        placed = self.json("alloc", "x", "--shape", "1,4,2,2", "--dtype", "int8", "--start-npu", "2", "--dma-only", "--pinned")
        self.assertEqual((placed["name"], placed["npu"], placed["dma_only"], placed["pinned"]), ("x", 2, True, True))
        new = ("alloc", "y", "--shape", "1,4,2,2", "--dtype", "int8")
        self.refused(
            ((*new, "--reuse", "sometimes"), 2, 'there is no reuse policy "sometimes"'),
            (("alloc", "", *new[2:]), 2, "the name is empty"),
            ((*new, "--wait", "-1"), 2, '--wait "-1" is not a number of seconds'),
            ((*new, "--wait", "nan"), 2, "is not a number of seconds"),
            ((*new, "--wait", "1000001"), 2, "is not a number of seconds"),
        )

    def test_what_would_fit(self):
        self.ctl("alloc", "most", "--shape", "1,1,1,1500", "--dtype", "int8")
        self.refused((("alloc", "x", "--shape", "1,3,1,2000", "--dtype", "int8", "--start-npu", "3"), 1, "; --start-npu 0 would fit"))
        self.ctl("alloc", "more", "--shape", "1,1,1,2300", "--dtype", "int8")
        matrix = ("alloc", "x", "--layout", "matrix", "--rows", "1", "--cols", "512", "--dtype", "int8")
        self.refused(((*matrix, "--w", "512"), 1, "; --w 128 would fit"))
        self.ctl(*matrix, "--w", "128")

    def test_views(self):
        self.alloc("x", "1,4,2,2")
        view = self.json("view", "v", "=", "x[0,1:3]")
        self.assertEqual((view["name"], view["shape"]), ("v", [1, 2, 2, 2]))
        shaped = self.json("view", "flat = x", "--shape", "1,4,1,4")
        self.assertEqual((shaped["name"], shaped["shape"]), ("flat", [1, 4, 1, 4]))
        self.assertEqual(self.text("view", "w = x", "--shape", "1,4,4,1"), "w is a view of x with shape [1,4,4,1]\n")
        self.assertEqual(self.json("show", "v")["view_of"], "x")
        self.assertRegex(self.text("show", "v"), r"\n *view of +x\n")
        self.refused(
            (("view", "u = x[0,1:3]", "--shape", "1,4,1,4"), 2, "a view has one of ranges, --shape and --frac-bits"),
            (("view", "u = x", "--shape", "1,4"), 2, "--shape"),
            (("view", "u = x", "--shape", "1,4,1,5"), 1, ""),
            (("view", "u = nobody"), 1, "nobody"),
            (("view", "u x"), 2, ""),
        )
        client = self.client()
        unnamed = client.alloc("")
        client.call(view=pb.ViewRequest(tensor=pb.Ref(handle=unnamed.handle), name="v2", to=dims(1, 4, 1, 16), **{"from": dims(0, 0, 0, 0)}))
        self.assertRegex(self.text("show", "v2"), r"\n *view of +tensor #\d+\n")

    def test_show(self):
        self.alloc("x")
        self.ctl("grant", "x", "12345", "read")
        self.ctl("grant", "x", "12346", "write")
        self.assertEqual(self.json("show", "x")["grants"], [{"uid": 12345, "access": "read"}, {"uid": 12346, "access": "write"}])
        text = self.text("show", "x")
        self.assertIn("to uid 12345 for reading", text)
        self.assertIn("to uid 12346 for writing", text)

    def test_pictures_of_many_n(self):
        """Every n looks alike but the last of a storage mode; by feature, as many lines as can be looked at."""
        self.ctl("alloc", "x", "--shape", "6,5,4,5", "--dtype", "int8", "--mode", "4n")
        text = self.text("map", "x")
        self.assertRegex(text, r"; the same again every \d+ bytes, for 2 packed n\n")
        first, last = text.split("and the last n\n")
        self.assertNotIn("%", first.split("empty block\n")[1])
        self.assertIn("%", last)
        self.ctl("alloc", "many", "--shape", "200,1,1,1", "--dtype", "int8", "--layout", "compact")
        text = self.text("map", "many", "--by", "feature")
        self.assertTrue(text.endswith("and so on, to n 199\n"), text)
        self.assertLess(text.count("\n"), 150)

    def test_map(self):
        self.alloc("x", "1,4,2,2")
        self.alloc("y", "1,1,2,2")
        everything = self.json("map")
        self.assertEqual((everything["npus"], everything["npu_bytes"]), (4, 4096))
        self.assertEqual([one["name"] for one in everything["tensors"]], ["x", "y"])
        self.assertEqual([one["name"] for one in self.json("map", "y")["tensors"]], ["y"])
        self.assertRegex(self.text("map", "x"), r"^x: fx8 Q\.4 \[1,4,2,2\], aligned, plain, at offset 0\n")
        by_feature = self.text("map", "x", "--by", "feature")
        self.assertNotEqual(by_feature, self.text("map", "x"))
        self.assertEqual(by_feature.splitlines()[0], self.text("map", "x").splitlines()[0])
        pictures = {}
        for words in ((), ("--to-scale",), ("x",), ("x", "--by", "feature")):
            self.assertEqual(self.json("map", *words, "--svg", "x.svg"), {"svg": "x.svg"})
            root = xml.etree.ElementTree.parse(os.path.join(self.daemon.directory, "x.svg")).getroot()
            pictures[words] = xml.etree.ElementTree.tostring(root)
        self.assertEqual(len(set(pictures.values())), 4)
        self.refused(
            (("map", "nobody"), 1, "nobody"),
            (("map", "x", "--svg", "/nonexistent/x.svg"), 1, "/nonexistent/x.svg"),
            (("map", "x", "--to-scale"), 2, "--to-scale"),
        )

    @unittest.skipUnless(os.getuid() == 0, "needs other uids")
    def test_of_others(self):
        """A tensor of another uid is asked for by the uid and its name, and said to be hidden where it is."""
        with self.daemon.client(12345) as other:
            other.alloc("theirs", (1, 4, 2, 2))
            self.ctl("show", "12345:theirs", says="12345:theirs")


class Numbers(Answers):
    def test_formats(self):
        mul = self.json("numeric", "mul", "Q4.3", "Q5.7")
        self.assertEqual((mul["operation"], mul["x"], mul["y"], mul["n"]), ("mul", "Q4.3", "Q5.7", None))
        self.assertEqual((mul["format"], mul["frac_bits"], mul["every"]), ("Q9.10", 10, "Q10.10"))
        total = self.json("numeric", "sum", "Q3.4", "--n", "34")
        self.assertEqual((total["operation"], total["y"], total["n"], total["extra_bits"]), ("sum", None, 34, 6))
        self.assertEqual(total["format"], "Q9.4")
        add = self.json("numeric", "add", "Q4.3", "Q5.7")
        self.assertEqual((add["shift"], add["precision_lost"]), ({"x": 4, "y": 0}, False))
        self.assertRegex(self.text("numeric", "add", "Q4.3", "Q5.7"), r"(?s)Q4\.3 \+ Q5\.7 is .*shift Q4\.3 left by 4\n")
        self.assertRegex(self.text("numeric", "sub", "Q5.7", "Q4.3"), r"(?s)Q5\.7 - Q4\.3 is .*shift Q4\.3 left by 4\n")
        self.assertRegex(self.text("numeric", "div", "Q5.7", "Q4.3"), r"(?s)Q5\.7 / Q4\.3 is .*every quotient")

    def test_accumulators(self):
        self.assertRegex(self.text("numeric", "products", "fx8", "--n", "100"), r"(?s)total +-?\d+ to \d+\n.*can overflow +no\n")
        self.assertRegex(self.text("numeric", "products", "fx16", "--n", "1000000"), r"(?s)can overflow +yes\n")
        self.assertFalse(self.json("numeric", "products", "fx8", "--n", "100")["can_overflow"])

    def test_the_daemon_says_the_same(self):
        for words in (("mul", "Q4.3", "Q5.7"), ("sum", "Q3.4", "--n", "34"), ("products", "fx16"),
                      ("advise", "avepool", "--dtype", "fx8", "in=1,4,8,8:Q.4", "kernel=2,2", "stride=2,2")):
            self.assertEqual(self.json("numeric", *words, "--remote"), self.json("numeric", *words), words)
        self.refused(
            (("numeric", "mul", "Q4.3", "Q5.7", "--rounding", "up"), 2, "--rounding is not for mul"),
            (("numeric", "formats", "--dtype", "fx8"), 2, "formats takes a file or a tensor"),
            (("numeric", "formats", "none.npy", "--dtype", "fx8"), 1, "none.npy"),
            (("numeric", "mul", "Q4.3"), 2, ""),
        )
        self.ctl("--socket", "/nonexistent/socket", "numeric", "mul", "Q4.3", "Q5.7", "--remote", code=1, says="/nonexistent/socket")

    def test_where_the_result_goes(self):
        advise = ("advise", "fully_connected", "--dtype", "fx8", "in=1,4,1,1:Q.7", "weights=4,4:Q.7")
        for out, says in (("out=Q.0", "holds the extremes"), ("out=Q.7", "saturates at the extremes; Q.")):
            self.assertIn(says, " ".join(self.text("numeric", *advise, out).split()))
            self.assertEqual(self.json("numeric", *advise, out)["out"]["saturates"], "saturates" in says)
        many = ("advise", "fully_connected", "--dtype", "fx8", "in=1,140000,1,1:Q.0", "weights=140000,4,1,1:Q.0", "out=Q.0")
        self.assertIn("Q.0 saturates at the extremes, as would Q.0", " ".join(self.text("numeric", *many).split()))

    def test_arrays_as_json(self):
        self.alloc("x", "1,2,2,2")
        np.save(os.path.join(self.daemon.directory, "x.npy"), np.full((1, 2, 2, 2), 9.5, np.float32))
        wrote = self.json("write", "x", "x.npy", "--quantize")
        self.assertEqual((wrote["elements"], wrote["saturated"]), (8, 8))
        self.assertEqual(self.json("read", "x", "back.npy"), {"elements": 8, "warning": None})
        self.assertTrue((np.load(os.path.join(self.daemon.directory, "back.npy")) == 127).all())
        self.ctl("alloc", "i", "--shape", "1,2,2,2", "--dtype", "int8")
        self.refused(
            (("write", "i", "x.npy", "--quantize"), 1, "--quantize is for fx8 and fx16; i is int8"),
            (("write", "x", "x.npy", "--rounding", "up"), 2, "--rounding goes with --quantize"),
            (("read", "i", "back.npy", "--dequantize"), 1, "--dequantize is for fx8 and fx16; i is int8"),
            (("fill", "x", "much"), 2, '"much" is not a number'),
            (("fill", "x", "1.5"), 1, "fractional bits, and VALUE must be an integer of the container: 1.5 is "),
            (("fill", "i", "1.5"), 1, "i is int8, and VALUE must be an integer, not 1.5"),
            (("fill", "x", "nan"), 1, "VALUE must be an integer, not nan"),
            (("load", "", "x.npy", "--dtype", "fx8"), 2, "the name is empty"),
            (("rm", "x"), 2, 'there is no command "rm"; did you mean "free"?'),
            (("alloc", "y", "--shape", "1x2x2x2"), 2, '--shape "1x2x2x2" is not a list of integers with commas between them'),
            (("plan",), 2, "plan needs a tensor (--shape N,C,H,W --dtype T), addresses (--address A) or a network (NET.json)"),
            (("conform", "x", "--layouts", "line"), 2, 'no layout "line"; it is one of aligned, compact, matrix, strided'),
            (("load", "y", "x.npy", "--dtype", "fx8"), 2, "--frac-bits is missing"),
        )


class Plans(Answers):
    def test_what_makes_no_sense(self):
        shape = ("--shape", "1,4,2,2", "--dtype", "int8")
        self.refused(
            (("plan", "--chip", "bm1684", "--npus", "4", *shape), 2, "--chip and --npus or --npu-bytes exclude each other"),
            (("plan", "--chip", "bm0", *shape), 2, 'there is no chip "bm0"; there are: bm1684, bm1684x, bm1690, '),
            (("plan", "--npus", "4", "--npu-bytes", "4096", "--all", *shape, "--svg", "x.svg"), 2, ""),
            (("stat", "--json", "--prometheus"), 2, "--json and --prometheus exclude each other"),
            (("--spawn", "--socket", self.daemon.path, "info"), 2, ""),
            (("--spawn=" + "--npus 4 " * 100, "info"), 1, "options for a private daemon"),
            (("--reconnect", "-1", "info"), 2, "--reconnect"),
            (("--reconnect", "x", "info"), 2, "--reconnect"),
            (("exec", "--", "/nonexistent/program"), 127, "/nonexistent/program"),
            (("exec", "--", "/etc/passwd"), 126, "/etc/passwd"),
        )
        self.assertFalse(os.path.exists(os.path.join(self.daemon.directory, "x.svg")))


class Damage(Answers):
    options = ("--npus", "4", "--npu-bytes", "1024", "--allow-unchecked-reuse")

    def test_it_is_shown(self):
        """What a kernel wrote over another tensor, which had taken that room without a check."""
        five = ("--shape", "1,5,4,8", "--dtype", "fx8", "--frac-bits", "4")
        self.ctl("alloc", "x", *five)
        self.ctl("fill", "x", "3")
        self.ctl("alloc", "y", *five)
        self.ctl("alloc", "u", "--shape", "1,3,4,8", "--dtype", "int8", "--address", "1408", "--reuse", "unchecked")
        self.ctl("fill", "u", "7")
        self.assertNotIn("damaged", self.text("show", "u"))
        ran = self.json("run", "relu", "in=x", "out=y", "relu=gen")
        self.assertEqual([(one["name"], one["total_bytes"]) for one in ran["destroyed"]], [("u", 96)])
        self.assertEqual(self.json("show", "u")["damaged_bytes"], 96)
        self.assertRegex(self.text("show", "u"), r"\n +damaged +96 bytes\n")
        self.assertIn("damaged", self.json("read", "u", "u.npy")["warning"])


    def test_what_a_network_does_is_told(self):
        """Divisions by zero and other tensors' bytes: by operation, as text and as JSON."""
        five = ("--shape", "1,5,4,8", "--dtype", "fx8", "--frac-bits", "4")
        for name in ("x", "y"):
            self.ctl("alloc", name, *five)
        self.ctl("fill", "x", "0")
        self.ctl("alloc", "u", "--shape", "1,3,4,8", "--dtype", "int8", "--address", "1408", "--reuse", "unchecked")
        lines = "\n".join(map(json.dumps, ({"open": "x"}, {"open": "y"}, {"run": "eltwise_div", "in1": "x", "in2": "x", "out": "y"})))
        where = "operation 3 (line 3), run eltwise_div: "
        self.ctl("fill", "u", "7")
        text = self.ctl("submit", "-", feed=lines.encode()).decode()
        self.assertIn(f"{where}160 divisions by zero\n", text)
        self.assertIn(f"{where}96 bytes of other tensors destroyed\n", text)
        self.ctl("fill", "u", "7")
        operations = json.loads(self.ctl("--json", "submit", "-", feed=lines.encode()))["operations"]
        self.assertEqual([one["divided_by_zero"] for one in operations if one.get("divided_by_zero")], [160])


class Networks(Answers):
    """Plans of networks that do not fit, or do only in another order."""

    def plan(self, widths, *operations, code=0, says=""):
        with open(os.path.join(self.daemon.directory, "net.json"), "w", encoding="ascii") as file:
            tensors = {name: {"shape": [1, 4, 1, w], "dtype": "int8"} for name, w in widths.items()}
            json.dump({"tensors": tensors, "operations": list(operations)}, file)
        words = ("plan", "net.json", "--npus", "4", "--npu-bytes", "1024")
        return self.ctl(*words, code=code, says=says).decode(), json.loads(self.ctl("--json", *words, code=code).decode())

    def test_what_finds_no_room(self):
        fills = {name: {"fill": name, "value": 1} for name in "abc"}
        text, plan = self.plan({"a": 640, "b": 640}, *(fills[name] for name in "aba"), code=1, says="it does not fit: 1280 bytes")
        self.assertRegex(text, r"\nb .*no room")
        self.assertEqual((plan["fits"], plan["peak"]), (False, 1280))
        # a's room and what is behind b are enough together, and neither is alone.
        text, plan = self.plan({"a": 384, "b": 256, "c": 512}, *(fills[name] for name in "abacb"), code=1,
                               says='"c" finds no room at operation 4, though no more than 768 of 1024 bytes')
        self.assertRegex(text, r"\nc .*no room")
        self.assertEqual((plan["fits"], plan["peak"]), (False, 768))
        text, plan = self.plan({"a": 384, "b": 256, "c": 512}, *(fills[name] for name in "abcb"))
        self.assertIn("it fits: placed from low offsets on, up to 768", text)
        self.assertEqual((plan["fits"], plan["reach"]), (True, 768))


class Files(Answers):
    """What a file is not, what it is, and that no output replaces an input."""

    def path(self, name):
        return os.path.join(self.daemon.directory, name)

    def save(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)

    def setUp(self):
        super().setUp()
        np.save(self.path("a.npy"), np.zeros((1, 2, 2, 2), np.int8))
        self.save("p.png", b"\x89PNG\r\n\x1a\n")
        self.save("m.onnx", b"\x08\x07\x12")
        self.save("text", b"# a heading\n")
        self.save("empty", b"")
        self.save("net.json", json.dumps([{"alloc": "x", "shape": [1, 2, 2, 2], "dtype": "int8"}]).encode())
        os.mkdir(self.path("folder"))

    def test_of_another_kind(self):
        is_array = "it is a NumPy array, which npumemctl load, write, diff and numeric take"
        for words, says in (
            (("plan", "a.npy"), f"a.npy is not a network: {is_array}"),
            (("submit", "a.npy"), f"a.npy is not a network: {is_array}"),
            (("check", "m.onnx"), "m.onnx is not a network: it is an ONNX model, which npumem-import takes"),
            (("plan", "text"), "text is not a network: it is a file of another kind"),
            (("plan", "empty"), "empty is not a network: it is an empty file"),
            (("load", "x", "net.json"), "net.json is not a NumPy array: it is JSON, which npumemctl plan, submit and check take"),
            (("load", "x", "p.png"), "p.png is not a NumPy array: it is a PNG picture"),
            (("load", "x", "folder"), "folder is not a NumPy array: it is a directory"),
            (("load", "x", "empty"), "empty is not a NumPy array: it is an empty file"),
            (("merge", "a.npy"), f"a.npy is not a report: {is_array}"),
            (("merge", "folder"), "folder is not a report: it is a directory"),
            (("state", "a.npy"), f"a.npy is not a state directory: {is_array}"),
            (("state", "p.png"), "p.png is not a state directory: it is a PNG picture"),
            (("replay", "a.npy"), f"a.npy is not a recording: {is_array}"),
            (("report", "folder", "out.html"), "folder is not a recording: it is a directory"),
            (("plan", "folder"), "folder/network.json: No such file"),
            (("plan", "none"), "none: No such file"),
        ):
            self.refused((words, 1, f"npumemctl: {says}"))
            self.assertEqual(json.loads(self.run_ctl("--json", *words).stdout)["error"]["status"] == "INVALID", words[0] != "state", words)

    def test_no_output_replaces_an_input(self):
        os.link(self.path("a.npy"), self.path("hard"))
        os.symlink("a.npy", self.path("soft"))
        os.rename(self.path("net.json"), self.path("folder/network.json"))
        os.link(self.path("folder/network.json"), self.path("net.json"))
        before = {name: os.stat(self.path(name)).st_mtime_ns for name in ("a.npy", "net.json")}
        for words, says in (
            (("report", "a.npy", "a.npy"), "the output a.npy is the same file as a.npy, which this command reads"),
            (("report", "a.npy", "hard"), "the output hard is the same file as a.npy, which this command reads"),
            (("trace", "a.npy", "soft"), "the output soft is the same file as"),
            (("plan", "net.json", "--svg", "net.json"), "the output net.json is the same file as"),
            (("plan", "net.json", "--optimize", "./net.json"), "the output ./net.json is the same file as"),
            (("plan", "folder", "--optimize", "folder/network.json"), "the output folder/network.json is the same file as"),
            (("check", "folder", "--junit", "net.json"), "the output net.json is the same file as"),
            (("check", "net.json", "--costs", "a.npy", "--junit=soft"), "the output soft is the same file as"),
            (("merge", "a.npy", "--junit", "hard"), "the output hard is the same file as"),
        ):
            self.refused((words, 2, f"npumemctl: {says}"))
        self.assertEqual({name: os.stat(self.path(name)).st_mtime_ns for name in before}, before)
        self.ctl("plan", "net.json", "--svg", "new.svg", "--npus", "4")
        self.ctl("plan", "net.json", "--svg", "new.svg", "--npus", "4")

    def test_a_tensor_without_values(self):
        """The run refuses it; before, it is a warning, as a daemon may allow it."""
        x, y = ({"alloc": name, "shape": [1, 2, 2, 2], "dtype": "fx8", "frac_bits": 4} for name in "xy")
        relu = {"run": "relu", "in": "x", "out": "y", "relu": "gen"}
        warning = "npumemctl: warning: operation 3, run relu reads tensor \"x\", which nothing writes before\n"
        for operations, says in (
            ([x, y, relu], warning),
            ([x, y, {"fill": "x", "value": 1}, relu, {"read": "y", "file": "y.npy"}], ""),
            ([x, y, {"copy": "y", "from": "x"}], warning.replace("run relu", "copy y")),
            ([x, {"view": "v", "of": "x", "from": [0, 0, 0, 0], "to": [1, 1, 2, 2]}, {"read": "v", "file": "v.npy"}],
             warning.replace("run relu", "read v").replace('"x"', '"v"')),
            ([x, {"view": "v", "of": "x", "from": [0, 0, 0, 0], "to": [1, 1, 2, 2]}, {"fill": "v", "value": 1}, y, relu], ""),
        ):
            for words in (("plan", "-"), ("submit", "-", "--dry-run")):
                result = self.run_ctl(*words, feed=json.dumps(operations).encode())
                self.assertEqual((result.returncode, result.stderr.decode()), (0, says), operations)


class Programs(Answers):
    """Commands that follow, record, or start something."""

    def start(self, *words):
        process = subprocess.Popen([NPUMEMCTL, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True, cwd=self.daemon.directory, env=dict(os.environ, NPUMEM_SOCKET=self.daemon.path))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_call(self):
        methods = self.json("call", "--list")["methods"]
        self.assertTrue({"alloc", "fill", "stat"} <= set(methods))
        self.assertEqual(self.text("call", "--list").split(), methods)
        asked = [json.loads(self.ctl("call", "info", *words, feed=b"{}")) for words in ((), ("{}",), ("-",))]
        self.assertEqual([one["info"]["n_npus"] for one in asked], [4] * 3)
        self.refused(
            (("call",), 2, "call needs a method; --list prints all"),
            (("call", "inof"), 2, "inof"),
            (("call", "info", "-"), 1, "nothing comes from stdin"),
            (("call", "info", "{"), 1, ""),
        )

    def test_nothing_there(self):
        self.assertEqual(self.text("ls"), "no tensors\n")
        self.assertIn("no daemon answers", self.text("--socket", "/nonexistent/socket", "version"))
        self.assertNotIn("no daemon answers", self.text("version"))

    def test_grant(self):
        self.alloc("x")
        self.assertEqual(self.json("grant", "x", "12345", "read"), {"uid": 12345, "access": "read"})
        self.refused(
            (("grant", "x", "12345", "much"), 2, "access much is not one of none, read, write"),
            (("grant", "x", "4294967296", "read"), 2, "neither a user's name nor a uid"),
            (("grant", "none", "12345", "read"), 1, "none"),
        )
        self.assertEqual([one["access"] for one in self.json("show", "x")["grants"]], ["read"])

    def test_events(self):
        process = self.start("events", "--kind", "allocated", "--kind", "freed")
        told = b""

        def is_told():
            """It follows some time after its start: a tensor comes and goes until it says so."""
            nonlocal told
            self.alloc("x")
            self.ctl("free", "x")
            if select.select([process.stdout], [], [], 0.05)[0]:
                told += os.read(process.stdout.fileno(), 65536)
            return b" allocated " in told

        wait_for(is_told)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SECONDS), 0)
        self.assertRegex(told.decode() + process.stdout.read(), r"allocated +uid \d+ (\(\w+\) )?pid \d+ x \d+ bytes\n")

    def test_exec_passes_signals_on(self):
        script = "trap 'echo told; exit 7' TERM; echo begun; while :; do sleep 0.05; done"
        process = self.start("--spawn=--npus 4", "exec", "sh", "-c", script)
        self.assertEqual(process.stdout.readline(), "begun\n")
        process.send_signal(signal.SIGTERM)
        self.assertEqual((process.wait(SECONDS), process.stdout.read()), (7, "told\n"))
        process = self.start("exec", "sh", "-c", "kill -9 $$")
        self.assertEqual(process.wait(SECONDS), 128 + 9)
        self.ctl("--socket", self.daemon.path, "exec", "true", code=2, says="exec has a daemon of its own")

    def record(self, name):
        process = self.start("--json", "record", name)
        self.assertIn("recording", process.stdout.readline())
        self.alloc("x", "1,4,16,16")
        self.ctl("free", "x")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SECONDS), 0)
        self.assertGreater(json.loads(process.stdout.read())["entries"], 0)

    def test_records(self):
        """Two records one after the other, and what differs in the second is told by its name."""
        for name in ("one", "two"):
            self.record(name)
        replayed = self.json("replay", "one", "two")
        self.assertEqual((replayed["differences"], [case["record"] for case in replayed["cases"]]), (0, ["one", "two"]))
        self.assertRegex(self.text("replay", "one", "two"), rf"(?m)^{replayed['requests']} requests, 0 skipped, 0 differences$")
        self.ctl("replay", "one", "two", "--npus", "4", "--npu-bytes", "128", code=1, says="one: request ")
        self.refused(
            (("replay", "none"), 1, "none: No such file"),
            (("replay", "one", "--snapshot", "."), 1, "the recording does not begin with a snapshot"),
            (("record", "/nonexistent/record"), 1, "cannot write /nonexistent/record"),
            (("record", __file__), 1, f"cannot write {__file__}: File exists"),
        )
        self.ctl("--socket", "/nonexistent/socket", "replay", "one", code=3, says="/nonexistent/socket")

    @unittest.skipUnless(os.getuid() == 0, "needs other uids")
    def test_only_root_plays_several_uids(self):
        os.chmod(self.daemon.directory, 0o755)
        process = self.start("record", "both")
        self.assertIn("recording", process.stdout.readline())
        for uid in (12345, 12346):
            with self.daemon.client(uid) as client:
                client.alloc("x")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SECONDS), 0)
        os.chmod(os.path.join(self.daemon.directory, "both"), 0o644)
        self.assertEqual(self.json("replay", "both")["differences"], 0)
        client = os.path.join(os.environ["NPUMEM_BUILD"], "client")
        program = os.path.join(for_all_uids(NPUMEMCTL, os.path.join(client, "lib", "libnpumem.so.0")), "npumemctl")

        def play():
            done = subprocess.run([program, "replay", os.path.join(self.daemon.directory, "both")], capture_output=True,
                                  text=True, check=False,
                                  env=dict(os.environ, NPUMEMD=NPUMEMD, LD_LIBRARY_PATH=os.path.dirname(program)))
            return done.returncode, done.stderr

        told = run_as(12347, play)
        self.assertRegex(told, "^\\(1, .*the recording has requests of uids 12345 and 12346, and only root can play both")


if __name__ == "__main__":
    unittest.main()
