"""Networks from the command line: submit, check and plan, on the examples and on what is wrong with them."""

import filecmp
import fcntl
import json
import os
import pty
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unittest
import xml.etree.ElementTree

import numpy as np

import npumem_pb2 as pb
from support import NPUMEMCTL, SECONDS, Convolution, TestCase, fill, run, submit, wait_for

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "examples", "networks")
NAMES = ("digits_fx8", "digits_fx16", "picture", "motion")


class Network(TestCase):
    def setUp(self):
        super().setUp()
        self.folder = self.daemon.directory

    def ctl(self, *words, code=0, says="", text=None):
        result = subprocess.run([NPUMEMCTL, *words], capture_output=True, text=True, input=text, cwd=self.folder,
                                timeout=240, env=dict(os.environ, NPUMEM_SOCKET=self.daemon.path))
        self.assertEqual(result.returncode, code, (words, result.stdout, result.stderr))
        self.assertIn(says, result.stderr if code else result.stdout + result.stderr)
        if code == 1:
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
        return result.stdout

    def submit(self, *operations, code=0, says="", options=()):
        text = "\n".join(json.dumps(operation) for operation in operations)
        return self.ctl("submit", "-", *options, code=code, says=says, text=text)

    def save(self, name, array):
        np.save(os.path.join(self.folder, name), array)

    def load(self, name):
        return np.load(os.path.join(self.folder, name))

    def assert_names(self, names):
        """Tensors without names go a moment after npumemctl's end."""
        client = self.client()
        wait_for(lambda: client.names() == names)

    def assert_empty(self):
        self.assert_names([])
        self.assertEqual(self.assert_alive().data, 0)


def on_terminal(columns, *words):
    """The lines that npumemctl, which must succeed, writes to a terminal of this width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen([NPUMEMCTL, *words], stdin=slave, stdout=slave, stderr=slave) as child:
        os.close(slave)
        written = b""
        try:
            while got := os.read(master, 4096):
                written += got
        except OSError:  # its other end is closed
            pass
        assert child.wait(SECONDS) == 0, written
    os.close(master)
    return written.decode().split("\r\n")


def tensor(name, shape, dtype="int8", **members):
    return {"alloc": name, "shape": list(shape), "dtype": dtype, **members}


class Examples(Network):
    def test_they_are_what_their_script_makes(self):
        with tempfile.TemporaryDirectory() as made:
            subprocess.run([sys.executable, "-B", os.path.join(EXAMPLES, "make.py"), made], check=True, timeout=SECONDS)
            for folder, _, files in os.walk(made):
                for file in files:
                    path = os.path.join(folder, file)
                    stored = os.path.join(EXAMPLES, os.path.relpath(path, made))
                    self.assertTrue(filecmp.cmp(path, stored, shallow=False), stored)

    def test_check_in_many_placements(self):
        for name in NAMES:
            path = os.path.join(EXAMPLES, name + ".json")
            self.ctl("check", path, says=" 0 failed")
            checked = json.loads(self.ctl("check", path, "--json", "--layouts", "all", "--start-npu", "0,5,63", "--mode",
                                          "plain,4n,2n"))
            self.assertEqual(checked["failed"], 0, name)
            self.assertEqual(checked["placements"], 36)
            with open(path, encoding="ascii") as file:
                expected = sum("expect" in one for one in json.load(file)["tensors"].values())
            self.assertEqual(checked["passed"], 36 * expected)
            # All in it was moved: a comparison with another's expectation cannot have passed.
            self.assertTrue(all(one["elements"] > 0 for one in checked["cases"]))
        self.assert_empty()

    def test_submit_reads_what_is_expected(self):
        for name, last in zip(NAMES, ("fc", "fc", "probabilities", "probabilities")):
            path = os.path.join(EXAMPLES, name + ".json")
            result = json.loads(self.ctl("submit", path, "--json"))
            runs = [one for one in result["operations"] if one["what"].startswith("run ")]
            self.assertTrue(all(one["ns"] > 0 for one in runs), runs)
            self.assertTrue(any(one["macs"] > 0 for one in runs), runs)
            is_, expected = self.load(f"{name}.{last}.npy"), np.load(os.path.join(EXAMPLES, name, f"{last}.npy"))
            self.assertTrue((is_ == expected).all())
        self.assert_empty()

    def test_plan(self):
        path = os.path.join(EXAMPLES, "picture.json")
        plan = json.loads(self.ctl("plan", path, "--chip", "bm1684x", "--json"))
        self.assertTrue(plan["fits"])
        self.assertEqual(plan["npu_bytes"], 262144)
        lives = {one["name"]: (one["from"], one["last_use"], one["until"]) for one in plan["tensors"]}
        self.assertEqual(lives["conv1"], (1, 2, 2))
        self.assertEqual(lives["probabilities"], (6, 7, 7))
        at_once = [one["bytes_per_npu"] for one in plan["tensors"] if one["from"] <= 5 <= one["until"]]
        self.assertEqual(plan["peak"], sum(at_once))
        self.assertEqual(plan["peak_operation"], 5)
        self.ctl("plan", path, "--npus", "64", "--npu-bytes", "16384", code=1, says="fc.weights")
        self.ctl("plan", path, "--npus", "4", "--npu-bytes", "65536", code=1, says="98304")
        self.ctl("plan", path, "--shape", "1,1,1,1", code=2, says="--shape is for one tensor, not for a network")

    def test_picture_of_a_plan(self):
        for name in ("picture", "motion"):
            self.ctl("plan", os.path.join(EXAMPLES, name + ".json"), "--chip", "bm1684", "--svg", "net.svg")
            plan = json.loads(self.ctl("plan", os.path.join(EXAMPLES, name + ".json"), "--chip", "bm1684", "--json"))
            svg = xml.etree.ElementTree.parse(os.path.join(self.folder, "net.svg")).getroot()
            space = "{http://www.w3.org/2000/svg}"
            boxes = {}
            for box in svg.iter(space + "rect"):
                title = box.findtext(space + "title", "")
                if " bytes per NPU at offset " in title:
                    boxes.setdefault(title.split(":")[0], []).append(box)
            self.assertEqual(set(boxes), {one["name"] for one in plan["tensors"]})
            # Heights and places to one scale, and the parts of a box are those of its bytes.
            scale = 420 / plan["reach"]
            for one in plan["tensors"]:
                parts = [box for box in boxes[one["name"]] if box.get("x") == boxes[one["name"]][0].get("x")]
                heights = [float(part.get("height")) for part in parts]
                self.assertAlmostEqual(sum(heights), one["bytes_per_npu"] * scale, delta=0.02)
                self.assertAlmostEqual(float(parts[0].get("y")), 104 + one["planned_offset"] * scale, delta=0.02)
                if one["bytes_per_npu"] * scale > 6:
                    self.assertRegex(parts[0].findtext(space + "title"), "; [0-9.]+ % data$")
            said = {text.text.split(":")[0] for text in svg.iter(space + "text")}
            self.assertLessEqual({one["name"] for one in plan["tensors"]}, said)
        # All names, and of long ones the end: it says what the tensor is.
        names = [f"block/layer_{i}/" + "BatchNormalization_" * 3 + end for i in range(70) for end in ("weights", "bias")]
        tensors = {name: {"shape": [1, 1, 1, 1], "dtype": "fx8", "frac_bits": 4} for name in names}
        with open(os.path.join(self.folder, "many.json"), "w", encoding="ascii") as file:
            json.dump({"tensors": tensors, "operations": [{"fill": name, "value": 0} for name in names]}, file)
        self.ctl("plan", "many.json", "--svg", "net.svg")
        svg = xml.etree.ElementTree.parse(os.path.join(self.folder, "net.svg")).getroot()
        said = [text.text.split(":")[0] for text in svg.iter(space + "text") if text.text.startswith("block/")]
        self.assertEqual(len(said), 140)
        self.assertEqual({text[-5:] for text in said}, {"ights", "_bias"})
        self.ctl("plan", os.path.join(EXAMPLES, "motion.json"), "--svg", "/nonexistent/x.svg", code=1, says="/nonexistent/x.svg")
        self.ctl(*"plan --npus 4 --npu-bytes 1024 --shape 2,3,4,5 --dtype fp32 --start-npu 2 --svg one.svg".split())
        xml.etree.ElementTree.parse(os.path.join(self.folder, "one.svg"))

    def test_plan_without_a_daemon(self):
        path = os.path.join(EXAMPLES, "motion.json")
        environment = dict(os.environ, NPUMEM_SOCKET="/nonexistent/npumem.sock")
        result = subprocess.run([NPUMEMCTL, "plan", path], capture_output=True, text=True, env=environment, timeout=SECONDS)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("on 64 NPUs of 524288 bytes", result.stdout)
        result = subprocess.run([NPUMEMCTL, "--socket", "/nonexistent/s", "plan", path], capture_output=True, text=True,
                                timeout=SECONDS)
        self.assertEqual(result.returncode, 1)


class Optimize(Network):
    """plan --optimize: the same integers from fewer bytes."""

    def plan(self, path, *words):
        return json.loads(self.ctl("plan", path, "--chip", "bm1684", "--json", *words))

    def test_examples(self):
        for name, most in (("picture", 2128), ("motion", 208)):
            for one in (name, name + ".json"):
                path = os.path.join(EXAMPLES, one)
                (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, os.path.join(self.folder, one))
            before = self.plan(name + ".json")
            after = self.plan(name + ".json", "--optimize", "better.json")
            self.assertEqual(after, self.plan("better.json"))
            self.assertTrue(after["fits"])
            self.assertLess(after["peak"], before["peak"])
            self.assertEqual((after["peak"], after["reach"]), (most, most))
            self.assertIn(" passed, 0 failed", self.ctl("--spawn", "check", "better.json"))
            # There is nothing left to be done.
            self.assertIn("; 0 tensors compact, 0 at addresses", self.ctl("plan", "better.json", "--optimize", "again.json", "--chip", "bm1684"))
            with open(os.path.join(self.folder, "better.json"), encoding="utf-8") as one, \
                    open(os.path.join(self.folder, "again.json"), encoding="utf-8") as other:
                self.assertEqual(json.load(one), json.load(other))

    def test_what_a_tensor_says_stays(self):
        spec = {"shape": [1, 8, 1, 8], "dtype": "fx8", "frac_bits": 4}
        network = {"tensors": {"a": {**spec, "layout": "aligned"}, "b": {**spec, "address": 4096}, "c": spec, "d": {**spec, "start_npu": 3}},
                   "operations": [{"fill": "a", "value": 3}, {"run": "relu", "in": "a", "out": "b"}, {"run": "relu", "in": "b", "out": "c"},
                                  {"run": "relu", "in": "c", "out": "d"}, {"read": "d", "file": "d.npy"}]}  # fmt: skip
        with open(os.path.join(self.folder, "n.json"), "w", encoding="utf-8") as file:
            json.dump(network, file)
        self.ctl("plan", "n.json", "--optimize", "m.json")
        with open(os.path.join(self.folder, "m.json"), encoding="utf-8") as file:
            tensors = json.load(file)["tensors"]
        self.assertEqual((tensors["a"]["layout"], tensors["b"]["address"], tensors["d"]["start_npu"]), ("aligned", 4096, 3))
        self.assertNotIn("layout", tensors["b"])

    def test_refusals(self):
        shutil.copy(os.path.join(EXAMPLES, "motion.json"), self.folder)
        self.ctl("plan", "motion.json", "--optimize", "/tmp/x.json", code=2, says="in the folder of the network")
        self.ctl("plan", "--shape", "1,1,1,1", "--dtype", "int8", "--optimize", "x.json", code=2, says="--optimize is for a network")
        self.ctl("plan", "motion.json", "--optimize", "x.json", "--max-batch", "x", code=2, says="--max-batch prints a number only")
        self.assertFalse(os.path.exists(os.path.join(self.folder, "x.json")))


class Check(Network):
    def setUp(self):
        super().setUp()
        for name in ("picture", "picture.json"):
            path = os.path.join(EXAMPLES, name)
            (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, os.path.join(self.folder, name))

    def spoil(self):
        conv2 = self.load("picture/conv2.npy")
        conv2[1, 3, 2, 1] += 5
        self.save("picture/conv2.npy", conv2)

    def test_what_differs(self):
        conv2 = self.load("picture/conv2.npy")
        is_ = conv2[1, 3, 2, 1]
        self.spoil()
        why = f"conv2[1,3,2,1] is {is_}, {is_ + 5} is expected (NPU 3, offset "
        out = self.ctl("check", "picture.json", "--start-npu", "0,7", "--layouts", "aligned,compact", "--svg", "pictures",
                       "--junit", "junit.xml", code=1, says="comparisons failed")
        self.assertIn(f"FAIL conv2 [aligned, start NPU 0, plain]: {why}", out)
        self.assertIn("1 of 2048 differ, by up to 5; SNR ", out)
        # Told once for the placements that it holds for.
        self.assertEqual(out.count("FAIL conv2"), 1, out)
        self.assertIn("\n     the same in all 4 placements\n", out)
        self.assertIn("ok   conv1, 4 placements\n", out)
        # The layer after it is judged by itself, on what was expected of this one.
        self.assertIn("ok   fc, 4 placements\n", out)
        picture = re.search(r"its placement: (\S+)", out)[1]
        svg = xml.etree.ElementTree.parse(os.path.join(self.folder, picture))
        frames = [rect for rect in svg.iter("{http://www.w3.org/2000/svg}rect") if rect.get("stroke-width") == "2"]
        self.assertEqual(len(frames), 1)
        self.assertIn("framed: the first element that differs", "".join(svg.getroot().itertext()))
        suites = xml.etree.ElementTree.parse(os.path.join(self.folder, "junit.xml")).getroot()
        self.assertEqual(len(suites), 4)
        failures = [case.get("name") for case in suites[0] if case.find("failure") is not None]
        self.assertIn("conv2", failures)
        self.assertIn(why, suites[0].find("testcase[@name='conv2']/failure").get("message"))

    def test_json(self):
        self.spoil()
        result = subprocess.run([NPUMEMCTL, "check", "picture.json", "--json"], capture_output=True, text=True, cwd=self.folder,
                                env=dict(os.environ, NPUMEM_SOCKET=self.daemon.path), timeout=SECONDS)
        self.assertEqual(result.returncode, 1)
        checked = json.loads(result.stdout)
        [bad] = [one for one in checked["cases"] if one["tensor"] == "conv2"]
        self.assertEqual((bad["outcome"], bad["placed"], bad["differ"]), ("failed", "[as written]", 1))
        self.assertEqual(bad["first"], 1 * 16 * 64 + 3 * 64 + 2 * 8 + 1)
        self.assertEqual(bad["expected"] - bad["is"], 5)
        self.assertGreater(bad["snr_db"], 40)
        self.assertEqual(checked["failed"], sum(one["outcome"] == "failed" for one in checked["cases"]))

    def test_near_enough(self):
        self.spoil()
        self.ctl("check", "picture.json", "--min-snr", "40", says="ok   conv2, SNR ")
        self.ctl("check", "picture.json", "--min-snr", "200", code=1, says="failed")
        self.ctl("check", "picture.json", "--min-snr", "x", code=2, says="is not a number")

    def edit(self, change):
        path = os.path.join(self.folder, "picture.json")
        with open(path, encoding="ascii") as file:
            network = json.load(file)
        change(network)
        with open(path, "w", encoding="ascii") as file:
            json.dump(network, file)

    def test_a_layer_that_is_refused(self):
        self.edit(lambda network: network["operations"][2].update(stride=[3, 3]))
        out = self.ctl("check", "picture.json", "--layouts", "aligned,compact", code=1, says="8 of 12 comparisons failed")
        self.assertIn("ok   conv1", out)
        self.assertRegex(out, r"FAIL conv2 \[aligned.*\]: operation 3 conv2, run conv2d: .*\n     the same in all 2 placements\n")
        self.assertRegex(out, r"FAIL fc \[aligned.*\]: not reached, as operation 3 failed")
        self.assert_empty()

    def test_nothing_to_check(self):
        self.edit(lambda network: [one.pop("expect", None) for one in network["tensors"].values()])
        self.ctl("check", "picture.json", code=1, says="nothing is expected in it")

    def test_nothing_is_kept(self):
        self.edit(lambda network: network["tensors"]["conv1"].update(keep=True))
        self.ctl("check", "picture.json")
        self.assert_empty()
        self.ctl("submit", "picture.json")
        self.assert_names(["conv1"])

    def test_floats_of_several_samples(self):
        """check --samples: S/N of each layer over all samples, the worst first; the folder stands for its network."""
        x = np.arange(48, dtype=np.float32).reshape(3, 1, 4, 2, 2) / 16 - 1
        y = np.maximum(x, 0)
        y[2, 0, 1, 0, 0] += 0.5  # of the third sample alone
        shape = {"shape": [1, 4, 2, 2], "dtype": "fx8", "frac_bits": 4, "quantize": True}
        network = {"tensors": {"x": shape | {"file": "one.npy", "expect": "x.npy"}, "y": shape | {"expect": "y.npy"},
                               "z": shape | {"expect": "z.npy"}},
                   "operations": [{"run": "relu", "in": "x", "out": "y", "relu": "gen", "name": "first"},
                                  {"run": "relu", "in": "y", "out": "z", "relu": "gen", "name": "second"}]}  # fmt: skip
        os.mkdir(os.path.join(self.folder, "net"))
        for name, array in (("one", x[0]), ("x", x), ("y", y), ("z", y * np.float32(1.01))):
            self.save(f"net/{name}.npy", array)
        self.save("x.npy", np.concatenate([x, x]))
        with open(os.path.join(self.folder, "net", "network.json"), "w", encoding="ascii") as file:
            json.dump(network, file)
        out = self.ctl("check", "net", "--min-snr", "20")
        self.assertRegex(out, r"^ +S/N dB +saturated +wrapped +layer\nok +exact +0 +0 +first x\nok +exact")
        out = self.ctl("check", "net/", "--samples", "x.npy", "--min-snr", "20")
        self.assertRegex(out, r"^3 samples\n")
        noise = (y - np.maximum(x, 0)) ** 2
        snr = 10 * np.log10((y.astype(np.float64) ** 2).sum() / noise.sum())
        self.assertRegex(out, rf"ok +{snr:.1f} +0 +0 +first y\n")
        self.assertIn("3 passed, 0 failed", out)
        # What differs too much is replaced by what is expected, in the sample in which it differs.
        out = self.ctl("check", "net", "--samples", "x.npy", "--min-snr", "30", code=1, says="1 of 3 comparisons failed")
        self.assertRegex(out, rf"layer\nFAIL +{snr:.1f} +0 +0 +first y\nok +[34][0-9]\.[0-9] +0 +0 +second z\n")
        self.ctl("check", "net", "--samples", "x.npy", code=1, says="--min-snr DB tells what is near enough")
        self.save("x.npy", x + 1)  # other samples than the floats are of
        self.assertIn("FAIL", self.ctl("check", "net", "--samples", "x.npy", "--min-snr", "20", code=1))
        self.save("x.npy", np.zeros((3, 5), np.float32))
        out = self.ctl("check", "net", "--samples", "x.npy", "--min-snr", "20", code=1, says="comparisons failed")
        self.assertIn("15 elements are no samples of 16", out)
        self.save("net/z.npy", np.zeros((3, 1, 4, 4), np.float32))
        self.ctl("check", "net", "--min-snr", "20", code=1, says="z.npy")
        self.ctl("check", "net", "net", "--samples", "x.npy", code=2, says="--samples is of one network")
        self.ctl("check", "none", code=1, says="none: No such file")
        self.assert_empty()

    def test_files_are_looked_at_first(self):
        self.save("picture/fc.npy", np.zeros((3, 3), np.int16))
        self.ctl("check", "picture.json", code=1, says='tensor "fc": picture/fc.npy: the array has shape (3, 3)')
        os.remove(os.path.join(self.folder, "picture/fc.npy"))
        self.ctl("check", "picture.json", code=1, says="No such file")
        self.ctl("submit", "--dry-run", "picture.json", code=1, says="No such file")

    def test_places_that_are_wrong(self):
        for words, code, says in (
            (("--start-npu", "64"), 1, "start NPU 64 is not below the 64 NPUs"),
            (("--layouts", "algined"), 2, "algined"),
            (("--junit", "/nonexistent/j.xml"), 1, "/nonexistent/j.xml"),
            (("--svg", "/nonexistent/svg"), 1, "/nonexistent/svg"),
        ):
            self.ctl("check", "picture.json", *words, code=code, says=says)


class Submit(Network):
    def test_operations_one_a_line(self):
        self.save("x.npy", np.arange(24, dtype=np.int8).reshape(1, 2, 3, 4))
        fx8 = {"dtype": "fx8", "frac_bits": 4}
        out = self.submit(
            tensor("x", (1, 2, 3, 4), **fx8), tensor("y", (1, 2, 3, 4), **fx8),
            {"write": "x", "file": "x.npy"},
            {"fill": "y", "value": 7},
            {"run": "eltwise_add", "in1": "x", "in2": "y", "out": "y", "name": "sum"},
            {"view": "v", "of": "y", "from": [0, 1, 0, 0], "to": [1, 2, 3, 4]},
            {"copy": "x", "from": "y"},
            {"read": "v", "file": "v.npy"},
            {"read": "x", "file": "real.npy", "dequantize": True},
            {"free": ["x", "y"]},
        )
        self.assertRegex(out, r"\n +5  run eltwise_add sum +\d+\.\d+ +0\n")
        self.assertEqual(self.load("v.npy").shape, (1, 1, 3, 4))
        self.assertTrue((self.load("v.npy").ravel() == np.arange(12, 24) + 7).all())
        self.assertTrue((self.load("real.npy").ravel() == (np.arange(24) + 7) / 16).all())
        self.assert_empty()

    def test_what_is_kept_and_opened(self):
        self.submit(tensor("w", (1, 4, 1, 1), keep=True, fill=3), tensor("gone", (1, 1, 1, 1)), {"seal": "w"})
        self.assert_names(["w"])
        self.submit({"open": "w"}, tensor("y", (1, 4, 1, 1)), {"copy": "y", "from": "w"}, {"read": "y", "file": "y.npy"})
        self.assertEqual(list(self.load("y.npy").ravel()), [3] * 4)
        self.submit({"open": "weights", "from": "w"}, {"fill": "weights", "value": 1}, code=1,
                    says="operation 2 (line 2), fill weights: ")
        self.submit({"open": "v"}, code=1, says="operation 1 (line 1), open v: ")
        self.submit(tensor("w", (1, 4, 1, 1), keep=True), code=1, says="operation 1 (line 1), alloc w: ")

    def test_quantized_as_asked(self):
        self.save("x.npy", np.array([0.03125, 0.09375, -0.03125, 100], np.float32))
        x = tensor("x", (1, 4, 1, 1), "fx8", frac_bits=4)
        for rounding, expected in (("convergent", [0, 2, 0, 127]), ("up", [1, 2, 0, 127]), ("nearest", [1, 2, -1, 127])):
            out = self.submit(x, {"write": "x", "file": "x.npy", "quantize": True, "rounding": rounding},
                              {"read": "x", "file": "y.npy"})
            self.assertEqual(list(self.load("y.npy").ravel()), expected)
            self.assertIn("operation 2 (line 2), write x: 1 number saturated in the quantization", out)
            network = {"rounding": rounding, "operations": [x, {"write": "x", "file": "x.npy", "quantize": True},
                                                            {"read": "x", "file": "z.npy"}]}  # fmt: skip
            self.ctl("submit", "-", text=json.dumps(network))
            self.assertEqual(list(self.load("z.npy").ravel()), expected)
        self.submit(x, {"write": "x", "file": "x.npy"}, code=1, says='"quantize": true takes them')

    def test_control_characters(self):
        more = [{"open": [f"a{one}b"]} for one in "\t\x7f\x80\x9b\u2028\u202e\u2066"]
        for bad in (tensor("x\ny", (1, 1, 1, 1)), {"run\x1b": "relu"}, *more):
            self.submit(bad, code=1, says="stdin: a string has a control character in it")

    def test_views_as_operands(self):
        """Sequences of several windows in one tensor, and their last states as rows of another, by slices of N."""
        with open(os.path.join(EXAMPLES, "motion.json"), encoding="ascii") as file:
            network = json.load(file)
        one, steps = network["tensors"], np.load(os.path.join(EXAMPLES, "motion", "steps.npy"))
        self.save("windows.npy", np.concatenate([steps * 0, steps]))
        weights = {name: {**one[name], "file": os.path.join(EXAMPLES, one[name]["file"])}
                   for name in one if name.startswith("lstm1.") and "file" in one[name]}
        states = {name: one[name] for name in ("lstm1.prev_out", "lstm1.cell_in")}
        tensors = {"x": {**one["steps"], "shape": [32, 16, 1, 1], "file": "windows.npy"}, **weights, **states,
                   "y": {**one["lstm1"], "shape": [32, 16, 1, 1]}, "c": one["lstm1.cell_out"]}
        for rest in (tensors["x"], tensors["y"], tensors["c"]):
            rest.pop("expect", None)
        operations = []
        for i in range(2):
            part = {"from": [16 * i, 0, 0, 0], "to": [16 * i + 16, 16, 1, 1]}
            run = next(dict(run) for run in network["operations"] if run.get("name") == "lstm1")
            run.update({"in": f"x{i}", "out": f"y{i}", "cell_out": "c"})
            operations += [{"view": f"x{i}", "of": "x", **part}, {"view": f"y{i}", "of": "y", **part}, run]
        operations.append({"read": "y1", "file": "y1.npy"})
        self.ctl("submit", "-", text=json.dumps({"rounding": "convergent", "tensors": tensors, "operations": operations}))
        self.assertTrue((self.load("y1.npy") == np.load(os.path.join(EXAMPLES, "motion", "lstm1.npy"))).all())
        self.assert_empty()

    def test_files_in_another_order(self):
        """The layers of an example as a framework has them: N,H,W,C, weights O,I,H,W and [M,K]."""
        with open(os.path.join(EXAMPLES, "picture.json"), encoding="ascii") as file:
            network = json.load(file)
        for name, one in network["tensors"].items():
            key = "file" if "file" in one else "expect"
            array = np.load(os.path.join(EXAMPLES, one[key]))
            one[key] = name + ".npy"
            if name.startswith("conv") and name.endswith("weights"):
                self.save(one[key], np.ascontiguousarray(array.transpose(1, 0, 2, 3)))
                one["perm"] = [1, 0, 2, 3]
            elif name == "fc.weights":
                self.save(one[key], np.ascontiguousarray(array.reshape(256, 10).T))
                one["perm"] = [1, 0]
            elif name.endswith("bias"):
                self.save(one[key], array.ravel())
            else:
                self.save(one[key], np.ascontiguousarray(array.transpose(0, 2, 3, 1)))
                one["perm"] = [0, 3, 1, 2]
        text = json.dumps(network)
        self.ctl("check", "-", text=text, says="6 passed, 0 failed")
        network["tensors"]["fc.weights"]["perm"] = [0, 1]
        self.ctl("check", "-", text=json.dumps(network), code=1, says="the array has shape (10, 256); (256, 10, 1, 1) is expected")

    def test_fp32(self):
        self.submit(tensor("x", (1, 2, 1, 1), "fp32", fill=1.5), {"read": "x", "file": "x.npy"})
        self.assertEqual(list(self.load("x.npy").ravel()), [1.5, 1.5])
        self.submit(tensor("x", (1, 2, 1, 1), "int8", fill=1.5), code=1, says="an integer of its container, not with 1.5")

    def test_parallel_groups(self):
        fx8 = {"dtype": "fx8", "frac_bits": 4}
        x, y, z = (tensor(name, (1, 8, 4, 4), **fx8) for name in "xyz")
        self.submit({**x, "fill": 16}, y, z, {"parallel": [{"run": "relu", "in": "x", "out": "y", "relu": 1},
                                                           {"fill": "z", "value": 3}, {"read": "x", "file": "x.npy"}]},
                    {"parallel": [{"read": "y", "file": "y.npy"}, {"read": "z", "file": "z.npy"}]})
        self.assertTrue((self.load("y.npy") == 16).all() and (self.load("z.npy") == 3).all())
        self.submit({**x, "fill": 16}, y, {"parallel": [{"run": "relu", "in": "x", "out": "y"}, {"fill": "y", "value": 3}]},
                    code=1, says="operation 3.1 (line 3), run relu: operations 3.1 (run relu")
        # Half a group does not run where the other half cannot be sent.
        self.submit({**x, "keep": True, "fill": 1}, y, {"parallel": [{"fill": "x", "value": 2}, {"write": "y", "file": "no.npy"}]},
                    code=1, says="operation 3.2 (line 3), write y: no.npy: No such file")
        self.submit({"open": "x"}, {"read": "x", "file": "x.npy"})
        self.assertTrue((self.load("x.npy") == 1).all())

    def test_those_before_an_error_have_run(self):
        x = tensor("x", (1, 4, 1, 1), keep=True, fill=1)
        self.submit(x, {"fill": "x", "value": 2}, {"read": "x", "file": "x.npy"}, {"write": "x", "file": "no.npy"}, code=1,
                    says="operation 4 (line 4), write x: no.npy: No such file")
        self.assertTrue((self.load("x.npy") == 2).all())
        self.submit({"open": "x"}, {"fill": "x", "value": 3}, {"fill": "x", "value": 1000}, {"fill": "x", "value": 4}, code=1,
                    says="operation 3 (line 3), fill x: fill value 1000")
        self.submit({"open": "x"}, {"read": "x", "file": "x.npy"})
        self.assertTrue((self.load("x.npy") == 3).all())

    def test_more_than_a_message_holds(self):
        fx8 = {"dtype": "fx8", "frac_bits": 4}
        many = [{"run": "eltwise_add", "in1": "x", "in2": "one", "out": "x", "rounding": "up"} for _ in range(1500)]
        for i in range(0, 3000, 2):  # groups among them, which must not be torn
            many.insert(i, {"parallel": [{"fill": "y", "value": 1}, {"run": "relu", "in": "x", "out": "z"}]})
        self.submit(tensor("x", (1, 1, 1, 1), "fx16", frac_bits=0, fill=0), tensor("one", (1, 1, 1, 1), "fx16", frac_bits=0, fill=1),
                    tensor("y", (1, 1, 1, 1), **fx8), tensor("z", (1, 1, 1, 1), "fx16", frac_bits=0), *many,
                    {"read": "x", "file": "x.npy"})
        self.assertEqual(self.load("x.npy").ravel()[0], 1500)

    def test_a_group_that_no_message_holds(self):
        group = [{"run": "concat", "in": ["x"] * 39, "out": "y", "axis": "n"}] * 120
        x = tensor("x", (1, 1, 1, 1), fill=1)
        self.submit(x, tensor("y", (39, 1, 1, 1)), {"parallel": group}, code=1,
                    says="operation 3.1 (line 3), run concat: the group has 120 operations with 4800 tensors, too many for one")
        self.submit({"parallel": [{"fill": "x", "value": 1}] * 257}, code=1, says="a group of 257; 256 operations fit one")

    def test_a_dry_run_changes_nothing(self):
        out = self.submit(tensor("x", (1, 4, 1, 1), keep=True, fill=1), {"read": "x", "file": "x.npy"}, options=("--dry-run",))
        self.assertIn("it fits", out)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "x.npy")))
        self.assert_empty()
        self.submit(tensor("x", (1, 64, 1024, 1024)), options=("--dry-run",), code=1, says="operation 1 (line 1), alloc x: ")

    def test_where_files_go(self):
        os.mkdir(os.path.join(self.folder, "in"))
        os.mkdir(os.path.join(self.folder, "out"))
        self.save("in/x.npy", np.array([5], np.int8))
        with open(os.path.join(self.folder, "in/net.json"), "w", encoding="ascii") as file:
            json.dump([tensor("x", (1, 1, 1, 1), file="x.npy"), {"read": "x", "file": "y.npy"}], file)
        self.ctl("submit", "in/net.json", "--out", "out")
        self.assertEqual(self.load("out/y.npy").ravel()[0], 5)
        self.ctl("submit", "in/net.json", "--out", "made")
        self.assertEqual(self.load("made/y.npy").ravel()[0], 5)
        self.ctl("submit", "in/net.json", "--out", "no/where", code=1, says="no/where: No such file")
        self.assert_empty()

    def refuse_before_anything_runs(self, path, says, *options):
        """A network whose last read goes to this path: no tensor is left, and the first file is not there either."""
        operations = [tensor("x", (1, 1, 1, 1), fill=1, keep=True), {"read": "x", "file": "first.npy"},
                      {"read": "x", "file": path}]  # fmt: skip
        for more in ((), ("--dry-run",)):
            self.submit(*operations, options=("--out", "out", *options, *more), code=1, says=says)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "out/first.npy")), path)
        self.assert_empty()

    def test_what_is_read_is_a_regular_file(self):
        """A FIFO nobody writes to would keep it waiting, and /dev/zero has no end."""
        os.mkfifo(os.path.join(self.folder, "pipe"))
        x = {"shape": [1, 1, 1, 1], "dtype": "fx8", "frac_bits": 4}
        for path in ("pipe", "/dev/zero", "."):
            says = f"{path}: it is not a regular file"
            self.submit(tensor("x", (1, 1, 1, 1)), {"write": "x", "file": path}, code=1, says=says)
            for tensors in ({"x": {**x, "file": path}}, {"x": {**x, "fill": 1, "expect": path}}):
                with open(os.path.join(self.folder, "net.json"), "w", encoding="ascii") as file:
                    json.dump({"tensors": tensors, "operations": [{"run": "relu", "in": "x", "out": "x"}]}, file)
                self.ctl("check", "net.json", code=1, says=says)

    def test_no_file_is_written_outside_of_out(self):
        outside = os.path.join(self.folder, "outside")
        for folder in ("out", "out/inner", "outside"):
            os.mkdir(os.path.join(self.folder, folder))
        os.symlink("../outside", os.path.join(self.folder, "out/link"))
        os.symlink("../outside/y.npy", os.path.join(self.folder, "out/dangling.npy"))
        os.symlink("../../outside", os.path.join(self.folder, "out/inner/link"))
        os.mkfifo(os.path.join(self.folder, "out/pipe"))
        for path in (os.path.join(outside, "y.npy"), "../outside/y.npy", "inner/../../outside/y.npy", "..", "inner/.."):
            self.refuse_before_anything_runs(path, "is not below the folder of --out")
        for path in ("link/y.npy", "inner/link/y.npy", "./link/deeper/y.npy"):
            self.refuse_before_anything_runs(path, "a folder on the way is a symbolic link")
        for path in ("dangling.npy", "inner", "pipe", "inner/link", "."):
            self.refuse_before_anything_runs(path, "it is there, and no regular file")
        self.assertEqual(os.listdir(outside), [])
        # check and plan refuse such a network as well.
        with open(os.path.join(self.folder, "net.json"), "w", encoding="ascii") as file:
            json.dump({"tensors": {"x": {"shape": [1, 1, 1, 1], "dtype": "int8", "fill": 1}},
                       "operations": [{"read": "x", "file": "../outside/y.npy"}]}, file)  # fmt: skip
        for command in ("check", "plan"):
            self.ctl(command, "net.json", code=1, says="is not below the folder of --out")

    def test_folders_are_made_before_anything_runs(self):
        x = tensor("x", (1, 1, 1, 1), fill=1)
        deep = {"read": "x", "file": "a/b/x.npy"}
        self.submit(x, deep, {"read": "x", "file": "a//c/./x.npy"}, options=("--out", "out"))
        self.assertEqual(self.load("out/a/b/x.npy").ravel()[0], 1)
        self.assertEqual(self.load("out/a/c/x.npy").ravel()[0], 1)
        self.submit(x, deep, options=("--out", "dry", "--dry-run"))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "dry")))
        # A file where a folder should be.
        self.refuse_before_anything_runs("a/b/x.npy/y.npy", "no folder")
        # What was there is replaced, not added to.
        self.submit(tensor("x", (1, 1, 1, 1), fill=2), deep, options=("--out", "out"))
        self.assertEqual(self.load("out/a/b/x.npy").ravel()[0], 2)

    def test_terminals(self):
        for columns in (40, 80):
            lines = on_terminal(columns, "--socket", self.daemon.path, "submit", os.path.join(EXAMPLES, "motion.json"),
                                "--out", self.folder)
            # A bar, which a run of more than 0.1 s has, is drawn over itself.
            pieces = [piece for line in lines for piece in line.split("\r")]
            self.assertLessEqual(max(map(len, pieces)), columns, lines)
            for name in ("motion", "picture"):
                lines = on_terminal(columns, "plan", os.path.join(EXAMPLES, name + ".json"), "--chip", "bm1684")
                table = lines[lines.index("") : lines.index("", lines.index("") + 1)]
                self.assertLessEqual(max(map(len, table)), columns, lines)


class Manual(Network):
    def test_the_example_of_the_help(self):
        lines = [line for line in self.ctl("submit", "--help").splitlines() if line.startswith("  {")]
        self.ctl("submit", "-", text="\n".join(lines[:4]))
        self.assertTrue((self.load("y.npy") == 20).all())

    def test_its_network(self):
        with open(os.path.join(EXAMPLES, "../../../client/man/npumemctl.1.scd"), encoding="utf-8") as file:
            block = next(one for one in file.read().split("```\n") if one.startswith('{"name": "tiny"'))
        network, commands = block.split("\n\n")
        with open(os.path.join(self.folder, "NET.json"), "w", encoding="utf-8") as file:
            file.write(network)
        self.save("x.npy", np.zeros((1, 3, 16, 16), np.int16))
        self.save("w.npy", np.ones((3, 8, 5, 5), np.int8))
        self.save("y.npy", np.zeros((1, 8, 16, 16), np.int16))
        os.mkdir(os.path.join(self.folder, "DIR"))
        commands = re.findall(r"^npumemctl (?:--spawn )?(.*?) *(?:#.*)?$", commands, re.MULTILINE)
        self.assertEqual([command.split()[0] for command in commands], ["plan", "submit", "check"])
        for command in commands:
            self.ctl(*command.split())
        self.assertEqual(self.load("DIR/result.npy").dtype, np.float32)


class Bar(Network):
    options = ("--npu-bytes", "4194304")

    def test_one_bar_over_all(self):
        Convolution(self.client(), 0.5)
        net = [{"open": "in"}, {"open": "weights"}, {"open": "out"}]
        net += [{"run": "conv2d", "in": "in", "weights": "weights", "out": "out"}, {"seal": "weights"}] * 3
        with open(os.path.join(self.folder, "net.json"), "w", encoding="ascii") as file:
            json.dump(net, file)
        lines = on_terminal(80, "--socket", self.daemon.path, "submit", os.path.join(self.folder, "net.json"))
        percents = [int(percent) for percent in re.findall(r"\[#* *\] +(\d+)%", lines[0])]
        self.assertGreater(len(percents), 3, lines)
        self.assertEqual(percents, sorted(percents))
        # Of several requests, each of which begins anew.
        self.assertLess(percents[0], 50)
        self.assertGreater(percents[-1], 60)


class Messages(TestCase):
    def test_how_many_operations_fit(self):
        client = self.client()
        x = client.alloc("x", (1, 4, 1, 1), dtype=pb.FX8, frac_bits=2)
        params = [pb.Param(key=pb.PARAM_ROUNDING, values=[1])]
        client.call(**fill("x", 1))
        operation = run(pb.CONCAT, params, **{f"in{i}": x for i in range(20)})
        refused = client.ask(**submit(*[operation] * 1000))
        self.assertEqual(refused.status, pb.RESOURCE_EXHAUSTED)
        [fits] = [field.number for field in refused.fields if field.key == "fits"]
        self.assertIn(f"more than 12288 fields, which the first {fits} of its list fit", refused.message)
        # Those are refused for what they are, not for their fields: concat has no out.
        self.assertEqual(client.ask(**submit(*[operation] * fits)).status, pb.INVALID)
        self.assertEqual(client.ask(**submit(*[operation] * (fits + 1))).status, pb.RESOURCE_EXHAUSTED)


class Large(Network):
    options = ("--npu-bytes", str(4 << 20))

    def test_arrays_of_any_size(self):
        shape = (1, 64, 1024, 1024)  # 64 MiB
        data = np.random.RandomState(1).randint(-128, 128, shape).astype(np.int8)
        self.save("x.npy", data)
        operations = [tensor("x", shape, file="x.npy"), {"read": "x", "file": "y.npy"}]
        # What npumemctl takes does not grow with the array; the sanitizers' own memory does not fit this.
        limited = None if os.environ.get("NPUMEM_SANITIZE") else (
            lambda: resource.setrlimit(resource.RLIMIT_DATA, (32 << 20, 32 << 20)))
        result = subprocess.run([NPUMEMCTL, "--socket", self.daemon.path, "submit", "-"], input=json.dumps(operations),
                                capture_output=True, text=True, cwd=self.folder, preexec_fn=limited, timeout=SECONDS)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(filecmp.cmp(*(os.path.join(self.folder, name) for name in ("x.npy", "y.npy")), shallow=False))

    def test_large_arrays_in_a_group_and_compared(self):
        shape = (1, 64, 256, 512)  # 8 MiB
        data = np.random.RandomState(1).randint(-128, 128, shape).astype(np.int8)
        self.save("x.npy", data)
        group = {"parallel": [{"write": "x", "file": "x.npy"}, {"write": "y", "file": "x.npy"}]}
        self.submit(tensor("x", shape), tensor("y", shape), group,
                    {"parallel": [{"read": "x", "file": "a.npy"}, {"read": "y", "file": "b.npy"}]})
        self.assertTrue((self.load("a.npy") == data).all() and (self.load("b.npy") == data).all())
        spoilt = data.copy()
        spoilt[0, 63, 255, 511] ^= 1
        self.save("spoilt.npy", spoilt)
        with open(os.path.join(self.folder, "net.json"), "w", encoding="ascii") as file:
            json.dump([tensor("x", shape, file="x.npy"), {"expect": "x", "file": "x.npy"}, {"expect": "x", "file": "spoilt.npy"},
                       {"expect": "x", "file": "spoilt.npy"}], file)
        out = self.ctl("check", "net.json", code=1, says="1 of 3 comparisons failed")
        self.assertIn("x[0,63,255,511] is ", out)


if __name__ == "__main__":
    unittest.main()
