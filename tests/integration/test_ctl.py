"""npumemctl as its users run it: the seed's figures by plan, the safety rule by example, conform, bad input."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from support import NPUMEMCTL, TestCase

VECTORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance", "vectors")


def run(*words, socket=None, cwd=None):
    environment = dict(os.environ, NPUMEM_SOCKET=socket or "/nonexistent/npumem.sock")
    return subprocess.run([NPUMEMCTL, *words], capture_output=True, text=True, env=environment, cwd=cwd, timeout=120)


class Plan(unittest.TestCase):
    """Every figure of the layout chapter that has numbers: 4 NPUs of 1024 bytes unless it says otherwise."""

    def plan(self, *words, npus=4, npu_bytes=1024):
        result = run("plan", "--json", "--npus", str(npus), "--npu-bytes", str(npu_bytes), *words)
        self.assertEqual((result.returncode, result.stderr), (0, ""), words)
        return json.loads(result.stdout)

    def check(self, words, stride, channels_per_npu, **more):
        plan = self.plan(*words.split())
        self.assertEqual([plan["stride"][d] for d in "nchw"], stride, words)
        self.assertEqual(plan["channels_per_npu"], channels_per_npu, words)
        for key, value in more.items():
            self.assertEqual(plan[key], value, (words, key))
        self.assertEqual(sum(plan["blocks"].values()), 4 * plan["bytes_per_npu"])

    def test_addresses(self):
        for address, npu, offset in ((340, 0, 340), (1472, 1, 448), (2300, 2, 252), (3088, 3, 16)):
            plan = self.plan("--address", str(address))
            self.assertEqual((plan["npu"], plan["offset"]), (npu, offset))

    def test_scatter(self):
        for c, start, rows, empty in ((63, 0, 1, 1), (63, 1, 1, 1), (66, 0, 2, 62), (66, 63, 3, 126)):
            plan = self.plan("--shape", f"1,{c},1,1", "--dtype", "int8", "--start-npu", str(start), "--layout", "compact",
                             npus=64, npu_bytes=524288)
            self.assertEqual((plan["channels_per_npu"], plan["blocks"]["empty"]), (rows, empty))

    def test_strides(self):
        self.check("--shape 2,5,3,4 --dtype fp32 --layout strided --stride 120,56,16,2", [120, 56, 16, 2], 2)
        self.check("--shape 2,3,1,10 --dtype fp32 --layout strided --stride 120,1,1,2 --start-npu 1", [120, 1, 1, 2], 1)
        for stride in ("120,0,0,2", "120,1,7777,2"):  # "H stride and C stride both make no sense"
            plan = self.plan(*f"--shape 2,3,1,10 --dtype fp32 --layout strided --start-npu 1 --stride {stride}".split())
            self.assertEqual(plan["bytes_per_npu"], (1 + 120 + 9 * 2) * 4)
            self.assertEqual(plan["blocks"], {"data": 240, "dummy": 0, "empty": 80, "padding": 4 * 556 - 320})
        self.assertEqual(self.plan(*"--shape 1,4,1,1 --dtype fp32 --layout strided".split())["bytes_per_npu"], 4)

    def test_aligned_and_compact(self):
        self.check("--shape 2,3,4,5 --dtype fp32", [32, 32, 5, 1], 1, align_bytes=128, bytes_per_npu=256)
        self.check("--shape 2,3,4,5 --dtype fp32 --start-npu 2", [64, 32, 5, 1], 2, bytes_per_npu=512)
        self.check("--shape 2,3,4,5 --dtype fp32 --layout compact", [20, 20, 5, 1], 1, align_bytes=4, bytes_per_npu=160)
        self.check("--shape 2,3,4,5 --dtype fp32 --layout compact --start-npu 2", [40, 20, 5, 1], 2, bytes_per_npu=320)

    def test_matrix(self):
        for w, channels, rows, words in ((40, 1, 1, 64), (20, 2, 1, 32), (10, 4, 1, 32), (8, 5, 2, 64), (15, 3, 1, 32), (6, 7, 2, 64)):
            plan = self.plan("--layout", "matrix", "--rows", "2", "--cols", "40", "--dtype", "fp32", "--w", str(w))
            self.assertEqual((plan["w"], plan["channels_per_npu"], plan["stride"]["n"]), (w, rows, words), w)
        plan = self.plan("--layout", "matrix", "--rows", "2", "--cols", "40", "--dtype", "fp32")
        self.assertEqual((plan["w"], plan["bytes_per_npu"]), (10, 256))

    def test_modes(self):
        self.check("--shape 6,5,4,5 --dtype int8 --mode 4n", [64, 32, 5, 1], 2)
        self.check("--shape 3,5,4,5 --dtype int16 --mode 2n", [64, 32, 5, 1], 2)
        self.assertEqual(self.plan(*"--shape 6,5,4,5 --dtype int8 --mode 4n".split())["blocks"]["dummy"], 200)
        self.assertEqual(self.plan(*"--shape 3,5,4,5 --dtype int16 --mode 2n".split())["blocks"]["dummy"], 200)

    def test_any_array(self):
        for npus in (1, 2, 3, 64, 1000, 1024):
            for start in {0, npus // 2, npus - 1}:
                plan = self.plan("--shape", "2,70,3,3", "--dtype", "int8", "--start-npu", str(start), npus=npus, npu_bytes=524288)
                self.assertEqual(plan["channels_per_npu"], -(-(start + 70) // npus))
                self.assertEqual(sum(plan["blocks"].values()), npus * plan["bytes_per_npu"])

    def test_field_names(self):
        plan = self.plan("--shape", "1,2,3,4", "--dtype", "fx8", "--frac-bits", "3")
        for key in ("address", "npu", "offset", "start_npu", "w", "channels_per_npu", "stride", "bytes_per_npu", "align_bytes", "blocks"):
            self.assertIn(key, plan)
        self.assertEqual(set(plan["blocks"]), {"data", "dummy", "padding", "empty"})


class Device(TestCase):
    options = ("--npus", "4", "--npu-bytes", "1024", "--allow-unchecked-reuse")

    def ctl(self, line, code=0, says=""):
        result = run(*line.split(), socket=self.daemon.path, cwd=self.daemon.directory)
        self.assertEqual(result.returncode, code, (line, result.stdout, result.stderr))
        self.assertIn(says, result.stderr if code else result.stdout + result.stderr, line)
        if code:
            self.assertEqual(result.stderr.count("\n"), 1 if code == 1 else result.stderr.count("\n"), result.stderr)
        return result.stdout

    def test_the_safety_rule(self):
        self.ctl("alloc t --shape 1,5,4,8 --dtype int8")
        self.ctl("alloc rest --shape 1,4,16,48 --dtype int8")
        self.ctl("alloc u --shape 1,3,4,8 --dtype int8 --start-npu 1", 1, "no room")
        why = "a kernel may write t, whose footprint overlaps the new tensor's on NPU 1, bytes 128 to 159"
        self.ctl("alloc u --shape 1,3,4,8 --dtype int8 --start-npu 1 --reuse if-safe --dma-only", 1, why)
        self.ctl("fill t 1")
        self.ctl("seal t")
        self.ctl("alloc u --shape 1,3,4,8 --dtype int8 --start-npu 1 --reuse if_safe", 1, "allocate the new one dma_only")
        self.ctl("alloc u --shape 1,3,4,8 --dtype int8 --start-npu 1 --reuse if-safe --dma-only", says="in empty blocks of others")
        device = json.loads(self.ctl("stat --json"))["device"]
        self.assertEqual((device["lent"], device["free"], device["total"]), (128, 0, 4096))
        self.ctl("free t u rest")
        self.ctl("alloc x --shape 1,5,4,8 --dtype fx8 --frac-bits 4")
        self.ctl("fill x 3")
        self.ctl("alloc y --shape 1,5,4,8 --dtype fx8 --frac-bits 4")
        self.ctl("alloc u --shape 1,3,4,8 --dtype int8 --address 1408 --reuse unchecked")
        self.ctl("fill u 7")
        self.ctl("run relu in=x out=y relu=gen", says="destroyed 96 bytes of u, first at NPU 1, offsets 384 to 415")
        self.ctl("read u u.npy", says="u is damaged")
        self.assertIn("dbdb dbdb", self.ctl("dump 1 384 16"))
        self.ctl("alloc v --shape 1,3,4,8 --dtype fx8 --frac-bits 0")
        self.ctl("run convert_tensor in=u out=v", 1, "u (role in) is damaged")
        self.ctl("fill u 7")
        self.ctl("run convert_tensor in=u out=v")

    def test_ls_and_run_fields(self):
        self.ctl("alloc x --shape 1,5,4,8 --dtype fx8 --frac-bits 4")
        self.ctl("fill x 100")
        self.ctl("alloc y --shape 1,5,4,8 --dtype fx8 --frac-bits 4")
        tensor = json.loads(self.ctl("ls --json"))["tensors"][0]
        for key in "name uid shape dtype frac_bits layout mode address bytes sealed dma_only state".split():
            self.assertIn(key, tensor)
        done = json.loads(self.ctl("run eltwise_add in1=x in2=x out=y --json"))
        self.assertGreater(done["ns"], 0)
        self.assertRegex(self.ctl("run eltwise_add in1=x in2=x out=y --time"), r", nothing destroyed, \d+\.\d{3} ms\n\Z")
        self.assertEqual((done["saturated"], done["wrapped"], done["destroyed"]), (160, 0, []))

    def test_bad_input(self):
        self.ctl("alloc x --shape 1,2,2,2 --dtype fx8 --frac-bits 4")
        before = self.ctl("ls --json")
        for line, code, words in (
            ("alloc y --shape 0,1,1,1 --dtype int8", 1, "0"),
            ("alloc y --shape 1,-1,1,1 --dtype int8", 2, "-1"),
            ("alloc y --shape 9223372036854775807,2,2,2 --dtype int8", 1, "9223372036854775807"),
            ("alloc y --shape 1,2,2,2 --dtype int8 --start-npu 4", 1, "start NPU 4 is not below the 4 NPUs"),
            ("alloc y --shape 1,2,2,2 --dtype int8 --address 4096", 1, "4096"),
            ("alloc y --shape 1,2,2,2 --dtype int8 --address 64", 1, "multiple of 128"),
            ("alloc y --shape 1,1,2,2 --dtype int8 --layout strided --stride 1,1,1,1", 1, "the same place"),
            ("alloc y --shape 1,1,2,2 --dtype fx8", 2, "--frac-bits is missing: fx8 needs it, 0 to 127"),
            ("alloc y --shape 1,1,2,2 --dtype zzz", 2, 'element type "zzz"; it is one of int8, uint8, '),
            ("alloc y --shape 1,1,2,2 --dtype int8 --reuse zzz", 2, "it is one of never, if-safe, unchecked"),
            ("events --kind zzz", 2, 'there is no kind of events "zzz"'),
            ("events --kind alocated", 2, 'did you mean "allocated"?'),
            ("run conv2d padding=1", 2, "takes 4 integers (top,bottom,left,right), not 1 value (see npumemctl run conv2d --help)"),
            ("alloc y --shape 2,3,1,10 --dtype int8 --layout strided --stride 0,1,1,2", 1, "stride N is 0"),
            ("alloc y --shape 2,3,1,10 --dtype int8 --layout strided --stride 120,0,0,2 --start-npu 2", 1, "stride C is 0"),
            ("alloc y --shape 2,3,1,10 --dtype int8 --layout strided", 2, "--stride is missing"),
            ("plan --shape 2,3,1,10 --dtype int8 --layout strided", 2, "--stride is missing"),
            ("alloc y --rows 4 --dtype int8 --layout matrix", 2, "--cols is missing"),
            ("alloc y --cols 4 --dtype int8 --layout matrix", 2, "--rows is missing"),
            ("alloc y --dtype int8 --layout matrix", 2, "--rows is missing"),
            ("load y none.npy --rows 4 --layout matrix", 2, "--cols is missing"),
            ("alloc y --shape 1,2,2,2", 2, "--dtype is missing"),
            ("plan --shape 1,2,2,2", 2, "--dtype is missing"),
            ("plan --shape 1,2,2,2 --layout all", 2, "--dtype is missing"),
            ("alloc y --shape 1,2,2,2 --dtype fx8", 2, "--frac-bits is missing"),
            ("plan --shape 1,2,2,2 --dtype fx8 --npus 4", 2, "--frac-bits is missing"),
            ("alloc y --shape 1,2,2,2 --dtype int8 --frac-bits 3", 1, "frac_bits"),
            ("alloc y --shape 1,2,2,2 --dtype fx8 --frac-bits 128", 1, "128"),
            ("alloc x --shape 1,2,2,2 --dtype int8", 1, "already"),
            ("show nobody", 1, "nobody"),
            ("free x nobody", 1, "nobody"),
            ("run relu in=x", 1, "role out is missing"),
            ("run relu in=x out=x extra=x", 2, "extra"),
            ("run conv2d in=x weights=x out=x", 1, ""),
            ("run maxpool in=x out=x kernel=2,2 stride=0,1", 1, "stride"),
            ("fill x 1000", 1, "1000"),
            ("dump 4 0 1", 1, "NPU 4"),
            ("dump 0 1024 1", 1, "1024"),
            ("view v = x[0:2]", 1, "0:2"),
            ("nonsense", 2, "nonsense"),
            ("plan", 2, ""),
        ):
            self.ctl(line, code, words)
        self.assertEqual(self.ctl("ls --json"), before)


class Refusals(TestCase):
    """With --json a refusal is an object on stdout, too."""

    options = ("--npus", "4", "--npu-bytes", "1024")

    def refused(self, *words, code=1):
        result = run(*words, socket=self.daemon.path)
        self.assertEqual(result.returncode, code, result)
        error = json.loads(result.stdout)["error"]
        self.assertEqual(set(error), {"status", "message", "fields"})
        self.assertTrue(result.stderr.startswith(f"npumemctl: {error['message']}"), result.stderr)
        return error

    def test_of_the_daemon(self):
        error = self.refused("--json", "show", "nobody")
        self.assertEqual(error["status"], "NOT_FOUND")
        error = self.refused("alloc", "x", "--shape", "9,4,16,16", "--dtype", "int8", "--json")
        self.assertEqual(error["fields"], {"bytes_per_npu": 2304, "npu_bytes": 1024})
        run("alloc", "y", "--shape", "1,4,16,16", "--dtype", "int8", socket=self.daemon.path)
        error = self.refused("alloc", "x", "--shape", "4,4,16,16", "--dtype", "int8", "--json")
        self.assertEqual((error["status"], error["fields"]["largest_n"]), ("RESOURCE_EXHAUSTED", 3))
        self.assertIn("; N 3 would fit", error["message"])

    def test_of_npumemctl(self):
        for words in (("--json", "nonsense"), ("info", "--json", "--nonsense"), ("--nonsense", "--json"), ("info", "x", "--json"),
                      ("--json",), ("alloc", "x", "--shape", "1,2", "--dtype", "int8", "--json")):
            self.assertEqual(self.refused(*words, code=2)["status"], "INVALID", words)
        self.assertEqual(self.refused("--json", "plan", "--address", "4096")["status"], "INVALID")
        self.assertEqual(self.refused("--json", "--socket", "/nonexistent/socket", "info")["status"], "UNAVAILABLE")

    def test_a_result_stays_alone(self):
        path = os.path.join(self.daemon.directory, "bad.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write('{"format": 1, "family": "relu", "cases": [{"name": "none"}]}')
        result = run("--json", "conform", path, socket=self.daemon.path)
        self.assertEqual((result.returncode, json.loads(result.stdout)["failed"]), (1, 1))


class Kernels(TestCase):
    """What can be run is found without a manual, and slips are told from what there is."""

    options = ("--npus", "4", "--npu-bytes", "1024")

    def test_kernels(self):
        names = run("kernels", "--names").stdout.split()
        kernels = json.loads(run("kernels", "--json").stdout)["kernels"]
        self.assertEqual([kernel["name"] for kernel in kernels], names)
        self.assertEqual(len(run("kernels").stdout.splitlines()), len(names))
        conv2d = json.loads(run("--json", "kernels", "conv2d").stdout)
        self.assertIn({"role": "bias", "output": False, "optional": True, "numbered": False, "shape": "[1,O,1,1]"}, conv2d["roles"])
        self.assertIn({"name": "relu", "least": 1, "most": 1, "choices": ["none", "gen", "1", "6"], "default": "none"},
                      conv2d["parameters"])
        for name in names:
            told = run("kernels", name)
            self.assertEqual((told.returncode, told.stderr), (0, ""))
            self.assertEqual(run("run", name, "--help").stdout, told.stdout)
            for label in ("tensors", "parameters", "rounding", "source", "types"):
                self.assertIn(label, told.stdout)

    def test_did_you_mean(self):
        for shape in ("alloc x --shape 1,2,2,2 --dtype fx8 --frac-bits 4",):
            self.assertEqual(run(*shape.split(), socket=self.daemon.path).returncode, 0)
        for line, meant in (
            ("kernles", "kernels"),
            ("kernels con2d", "conv2d"),
            ("run rlu in=x out=x", "relu"),
            ("run rlu --help", "relu"),
            ("run relu im=x out=x", "in"),
            ("run relu in=x out=x roundin=up", "rounding"),
            ("alloc y --shape 1,2,2,2 --dtype fx6", "fx8"),
            ("alloc y --shape 1,2,2,2 --dtype int8 --layout alined", "aligned"),
            ("alloc y --shap 1,2,2,2 --dtype int8", "--shape"),
            ("show xx", "x"),
            ("numeric advise cnv2d --dtype fx8", "conv2d"),
        ):
            result = run(*line.split(), socket=self.daemon.path)
            self.assertIn(f'did you mean "{meant}"?', result.stderr, line)
            self.assertNotEqual(result.returncode, 0)
        self.assertNotIn("did you mean", run("show", "something", socket=self.daemon.path).stderr)


class Conform(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="npumem-test-")
        self.addCleanup(shutil.rmtree, self.directory)

    def conform(self, *words, spawn="--spawn"):
        result = run(spawn, "conform", *words)
        return result.returncode, result.stdout.strip().split("\n"), result.stderr

    def test_all_families_in_many_placements(self):
        code, lines, stderr = self.conform(VECTORS)
        self.assertEqual((code, stderr), (0, ""), lines[-20:])
        passed, failed = lines[-1].split(", ")
        self.assertEqual(failed, "0 failed", lines[-20:])
        n = int(passed.split()[0])
        cases = 0
        for name in os.listdir(VECTORS):
            if name.endswith(".json"):
                with open(os.path.join(VECTORS, name), encoding="utf-8") as file:
                    cases += len(json.load(file).get("cases", []))
        self.assertEqual(n, cases)
        code, lines, stderr = self.conform(VECTORS, "--layouts", "all", "--start-npu", "0,5,63", "--mode", "plain,4n,2n")
        self.assertEqual((code, stderr), (0, ""), lines[-20:])
        self.assertEqual(lines[-1], f"{cases} passed, 0 failed")
        # Cases that say none give the same in each.
        for rounding in ("up", "nearest"):
            self.assertEqual(self.conform(VECTORS, spawn=f"--spawn=--rounding {rounding}")[1][-1], f"{cases} passed, 0 failed")

    def test_one_altered_integer_fails(self):
        with open(os.path.join(VECTORS, "relu.json"), encoding="utf-8") as file:
            vectors = json.load(file)
        case = vectors["cases"][3]
        case["tensors"]["out"]["data"][7] += 1
        path = os.path.join(self.directory, "relu.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(vectors, file)
        code, lines, _ = self.conform(path)
        self.assertEqual(code, 1)
        self.assertEqual(lines[-1], f"{len(vectors['cases']) - 1} passed, 1 failed")
        told = "\n".join(lines)
        self.assertIn(case["name"], told)
        self.assertIn(str(case["tensors"]["out"]["data"][7]), told)

    def test_a_kernel_of_another_version(self):
        with open(os.path.join(VECTORS, "relu.json"), encoding="utf-8") as file:
            vectors = json.load(file)
        vectors["cases"][0]["kernel"] = "relu_of_tomorrow"
        path = os.path.join(self.directory, "relu.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(vectors, file)
        n = len(vectors["cases"]) - 1
        code, lines, _ = self.conform(path)
        self.assertEqual((code, lines[-1]), (1, f"{n} passed, 1 failed"))
        self.assertIn('there is no kernel "relu_of_tomorrow"', "\n".join(lines))
        code, lines, _ = self.conform(path, "--only-known")
        self.assertEqual((code, lines[-1]), (0, f"{n} passed, 0 failed, 1 skipped"))

    def test_nothing_to_run(self):
        code, _, stderr = self.conform(os.path.join(self.directory, "nothing.json"))
        self.assertEqual((code, stderr.count("\n")), (1, 1))


if __name__ == "__main__":
    unittest.main()
