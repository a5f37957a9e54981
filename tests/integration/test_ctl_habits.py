"""npumemctl's habits: pipes, patterns, names of users, units, everything in one JSON, interrupts."""

import io
import json
import os
import pty
import pwd
import re
import select
import signal
import subprocess
import unittest

import npumem_pb2 as pb
import numpy as np

from support import NPUMEMCTL, SECONDS, Endless, TestCase, wait_for

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))


class Ctl(TestCase):
    options = ("--npus", "4", "--npu-bytes", "4096")

    def run_ctl(self, *words, feed=None):
        environment = dict(os.environ, NPUMEM_SOCKET=self.daemon.path)
        return subprocess.run([NPUMEMCTL, *words], capture_output=True, input=feed or b"", env=environment,
                              cwd=self.daemon.directory, timeout=SECONDS, check=False)

    def ctl(self, *words, code=0, says="", feed=None):
        result = self.run_ctl(*words, feed=feed)
        self.assertEqual(result.returncode, code, (words, result))
        self.assertIn(says, (result.stderr if code else result.stdout).decode(errors="replace"), words)
        return result.stdout

    def alloc(self, name, shape="1,2,2,2", *words):
        self.ctl("alloc", name, "--shape", shape, "--dtype", "fx8", "--frac-bits", "4", *words)

    def names(self, *words):
        return [tensor["name"] for tensor in json.loads(self.ctl("--json", "ls", *words))["tensors"]]


class Habits(Ctl):
    def test_pipes(self):
        array = np.arange(-4, 4, dtype="i1").reshape(1, 2, 2, 2)
        memory = io.BytesIO()
        np.save(memory, array)
        self.alloc("x")
        self.ctl("write", "x", "-", feed=memory.getvalue(), says="8 elements written")
        np.testing.assert_array_equal(np.load(io.BytesIO(self.ctl("read", "x", "-"))), array)
        np.testing.assert_array_equal(np.load(io.BytesIO(self.ctl("--quiet", "read", "x", "-"))), array)
        np.testing.assert_array_equal(np.load(io.BytesIO(self.ctl("read", "x", "-", "--dequantize"))), array / 16)
        self.ctl("load", "y", "-", feed=memory.getvalue())
        self.ctl("diff", "y", "-", feed=memory.getvalue())
        self.ctl("write", "x", "-", feed=b"", code=1, says="-: the file ends")
        self.ctl("--json", "read", "x", "-", code=2)

    def test_values(self):
        self.alloc("x")
        self.ctl("fill", "x", "-8")
        self.assertEqual(self.ctl("read", "x"), b"[0,0]\n-8 -8\n-8 -8\n[0,1]\n-8 -8\n-8 -8\n")
        self.assertEqual(self.ctl("read", "x", "--dequantize").split(b"\n")[1], b"-0.5 -0.5")
        self.assertEqual(json.loads(self.ctl("--json", "read", "x"))["values"], [[[[-8, -8], [-8, -8]]] * 2])
        self.ctl("alloc", "m", "--layout", "matrix", "--rows", "2", "--cols", "3", "--dtype", "fp32")
        self.ctl("fill", "m", "0.25")
        self.assertEqual(self.ctl("read", "m"), b"0.25 0.25 0.25\n0.25 0.25 0.25\n")

    def test_patterns(self):
        for name in ("conv1.w", "conv2.w", "fc"):
            self.alloc(name)
        self.ctl("view", "part = conv1.w[0:1,0:1]")
        self.assertEqual(self.names("conv*"), ["conv1.w", "conv2.w"])
        self.assertEqual(self.names("fc", "conv[2-9].?"), ["conv2.w", "fc"])
        self.assertEqual(len(self.names(f"{os.getuid()}:*")), 4)
        for words in (("ls", "nothing*"), ("free", "conv*", "nothing*"), ("free", "fc*", "nothing"), ("ls", "conv1.v")):
            self.ctl(*words, code=1, says="no")
        self.ctl("ls", "conv1.v", code=1, says='did you mean "conv1.w"?')
        for words in (("free",), ("free", "--all", "fc")):
            self.ctl(*words, code=2)
        self.assertEqual(len(self.names()), 4)
        self.ctl("free", "conv*", says="2 freed")
        self.assertEqual(self.names(), ["fc"])
        self.alloc("y")
        self.assertEqual(json.loads(self.ctl("free", "--all", "--json")), {"freed": 2})
        self.ctl("free", "--all", says="0 freed")

    def test_state(self):
        self.alloc("x")
        state = json.loads(self.ctl("state"))
        self.assertEqual(set(state), {"info", "stat", "tensors"})
        self.assertEqual(state["tensors"], json.loads(self.ctl("--json", "ls"))["tensors"])
        self.assertEqual(state["info"]["npu_bytes"], 4096)
        self.assertIn("device", state["stat"])

    def test_rename(self):
        self.alloc("x")
        self.alloc("y")
        self.ctl("rename", "x", "y", code=1, says="there is a tensor y already")
        self.ctl("rename", "x", "12", code=1, says="digits alone")
        self.ctl("rename", "z", "w", code=1, says="there is no tensor z")
        self.ctl("rename", "x", code=2, says="rename")
        self.ctl("rename", "x", "z")
        self.assertEqual(json.loads(self.ctl("--json", "rename", "z", "w")), {"name": "w"})
        self.assertEqual(self.names(), ["w", "y"])

    def test_users(self):
        other = next(user for user in pwd.getpwall() if user.pw_uid not in (0, os.getuid()))
        self.alloc("x")
        self.ctl("grant", "x", other.pw_name, "read")
        self.assertIn(f"uid {other.pw_uid} ({other.pw_name}) for reading", self.ctl("show", "x").decode())
        for user in ("no such user", "-1", "4294967296", ""):
            self.ctl("grant", "x", user, "read", code=2, says="neither a user's name")

    def test_units(self):
        for text, code in (("1K", 0), ("1024", 0), ("K", 2), ("1KiB", 0), ("1k", 2), ("1Ki", 2), ("99999999999G", 2), ("-1K", 2)):
            result = self.run_ctl("--json", "plan", "--npus", "4", f"--npu-bytes={text}", "--shape", "1,4,8,8", "--dtype", "fp32")
            self.assertEqual(result.returncode, code, text)
        self.assertEqual(len(self.ctl("dump", "0", "1K", "1K").splitlines()), 64)
        info = json.loads(self.ctl("--spawn=--npus 4 --npu-bytes 8K", "--json", "info"))
        self.assertEqual(info["npu_bytes"], 8192)
        for text in ("8X", "K", "99999999999G", "-8K"):
            self.ctl(f"--spawn=--npus 4 --npu-bytes {text}", "info", code=1, says="--npu-bytes")

    def test_layouts_in_a_table(self):
        lines = self.ctl("plan", "--layout", "all", "--npus", "4", "--npu-bytes", "4K", "--shape", "2,5,4,8", "--dtype",
                         "int8").decode().splitlines()
        self.assertEqual(lines[0].split()[:2], ["LAYOUT", "MODE"])
        plans = json.loads(self.ctl("--json", "plan", "--layout", "all", "--shape", "2,5,4,8", "--dtype", "int8"))["plans"]
        self.assertEqual(len(plans), len(lines) - 1)
        for plan in plans:
            words = ("--shape", "2,5,4,8", "--dtype", "int8", "--layout", plan.pop("layout"), "--mode", plan.pop("mode"))
            one = json.loads(self.ctl("--json", "plan", *words))
            self.assertEqual(one, plan)
        self.assertIn(["compact", "plain"], [line.split()[:2] for line in lines])
        self.ctl("plan", "--layout", "all", "--shape", "0,5,4,8", "--dtype", "int8", code=1, says="0")

    def test_conform_counts(self):
        vectors = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance", "vectors", "relu.json")
        result = json.loads(self.run_ctl("--spawn", "--json", "conform", vectors, "--layouts", "all").stdout)
        self.assertEqual(result["runs"], result["passed"] * result["placements"])
        self.assertGreater(result["placements"], 1)

    def test_help_and_version(self):
        self.assertEqual(self.ctl("help"), self.ctl("--help"))
        self.assertEqual(self.ctl("help", "plan"), self.ctl("plan", "--help"))
        self.assertEqual(self.ctl("help", "run", "conv2d"), self.ctl("kernels", "conv2d"))
        self.ctl("help", "nonsense", code=2, says="nonsense")
        groups = self.ctl("help").decode().split("\n\n")[1:-1]
        self.assertEqual([group.split(":")[0] for group in groups],
                         ["tensors", "computing", "layout", "the device", "recording and verification", "other", "options"])  # fmt: skip
        self.assertIn("\n  alloc     ", groups[0])
        with open(os.path.join(SOURCE, "client/ctl/commands.def"), encoding="utf-8") as file:
            commands = re.findall(r"^COMMAND\((\w+),", file.read(), re.MULTILINE)
        self.assertEqual(re.findall(r"(?m)^  ([a-z]+)  ", "\n".join(groups[:-1])), commands)
        self.assertIn(self.ctl("--version").strip(), self.ctl("version"))
        version = json.loads(self.ctl("--json", "version"))
        self.assertEqual(version["npumemctl"], version["npumemd"])
        result = self.run_ctl("--socket", "/nonexistent/socket", "--json", "version")
        self.assertEqual((result.returncode, json.loads(result.stdout)["npumemd"]), (0, None))

    def test_plan_without_a_daemon(self):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("NPUMEM_S")}
        plan = ["plan", "--shape", "1,4,1,4", "--dtype", "int8"]

        def ask(*words, **variables):
            return subprocess.run([NPUMEMCTL, *words], capture_output=True, text=True, check=False, timeout=SECONDS,
                                  env={**environment, **variables})  # fmt: skip

        nowhere = ask(*plan, NPUMEM_SOCKET="/nonexistent/socket")
        self.assertEqual(nowhere.returncode, 1)
        self.assertIn("; without a daemon: plan --chip NAME, or --npus X and --npu-bytes S\n", nowhere.stderr)
        for words in (["--chip", "sg2380"], ["--npus", "4", "--npu-bytes", "4K"]):
            self.assertEqual(ask(*plan, *words, NPUMEM_SOCKET="/nonexistent/socket").returncode, 0)
        # A daemon that is asked for by name is what is missing then.
        self.assertNotIn("without a daemon", ask("--socket", "/nonexistent/socket", *plan).stderr)

    def test_one_is_singular(self):
        self.alloc("one", "1,1,1,1")
        self.ctl("fill", "one", "3")
        self.ctl("read", "one", "one.npy", says="1 element read\n")
        self.ctl("write", "one", "one.npy", says="1 element written\n")
        self.ctl("diff", "one", "one.npy", says="its 1 element is the same\n")
        self.assertIn(b"1 element written, ", self.ctl("load", "two", "one.npy", "--dtype", "int8"))

    def test_quiet(self):
        self.alloc("x")
        self.assertEqual(self.ctl("--quiet", "ls"), b"")
        memory = io.BytesIO()
        np.save(memory, np.zeros((1, 2, 2, 2), "i1"))
        self.assertEqual(self.ctl("write", "x", "-", "--quiet", feed=memory.getvalue()), b"")
        self.assertEqual(len(json.loads(self.ctl("--quiet", "--json", "ls"))["tensors"]), 1)
        result = self.run_ctl("--quiet", "show", "nobody")
        self.assertEqual((result.returncode, result.stdout, result.stderr), (1, b"", b"npumemctl: there is no tensor nobody\n"))


class Lines(Ctl):
    """npumemctl without a command."""

    def lines(self, text, *words, code=0):
        result = self.run_ctl(*words, feed=text.encode())
        self.assertEqual(result.returncode, code, result)
        return result.stdout.decode("latin1"), result.stderr.decode()

    def test_a_batch(self):
        out, complaint = self.lines("""# a comment
            alloc x --shape 1,2,2,2 --dtype int8

            fill x 3
            view 'part = x[0:1, 0:1]'
            read part  # its values""")
        self.assertIn("[0,0]\n3 3\n3 3\n", out)
        self.assertEqual(complaint, "")
        self.assertEqual(self.names(), ["part", "x"])
        out, complaint = self.lines("ls\nshow nobody\nfree x\n", code=1)
        self.assertEqual(complaint, "npumemctl: there is no tensor nobody\nnpumemctl: stopped at line 2\n")
        self.assertEqual(self.names(), ["part", "x"])
        self.assertEqual(self.lines("ls\nread x -\nls", "--quiet")[0][-8:], "\3" * 8)
        # Several in a line: it ends with the first that fails, too.
        self.assertIn("[0,0]\n4 4\n4 4\n", self.lines("fill x 4; read part")[0])
        out, complaint = self.lines("fill x 5\nread part; show nobody; free x\n", code=1)
        self.assertIn("[0,0]\n5 5\n5 5\n", out)
        self.assertEqual(complaint, "npumemctl: there is no tensor nobody\nnpumemctl: stopped at line 2\n")
        self.assertEqual(self.names(), ["part", "x"])

    def test_a_batch_on_a_private_daemon(self):
        out, _ = self.lines("alloc x --shape 1,2,2,2 --dtype int8\nfill x 7\nread x --json\nexit\nls\n", "--spawn")
        self.assertEqual(json.loads(out[out.index("{"):])["values"], [[[[7, 7], [7, 7]]] * 2])
        self.assertEqual(self.names(), [])

    def test_json_lines(self):
        out, _ = self.lines("version\nshow nobody\n", "--json", code=1)
        decoder = json.JSONDecoder()
        version, end = decoder.raw_decode(out)
        self.assertIn("npumemctl", version)
        self.assertEqual(json.loads(out[end:])["error"]["status"], "NOT_FOUND")

    def test_bad_lines(self):
        for line, says in (
            ("nonsense", "nonsense"),
            ("ls 'x", "a quote does not end"),
            ("--socket /x ls", "--socket stands before the lines"),
            ("ls --spawn", "--spawn stands before the lines"),
            ("write x -", "stdin is what the commands come from"),
            ("--json", "no command"),
            ("x " * 600, "more than"),
        ):
            self.assertIn(says, self.lines(line + "\nfree --all\n", code=2)[1])
        for nothing in ("", "# nothing\n\n"):
            self.assertIn("no command", self.lines(nothing, code=2)[1])

    def typed(self, *steps):
        """What a terminal shows of (keys, what then has to be shown)."""
        master, slave = pty.openpty()
        environment = dict(os.environ, NPUMEM_SOCKET=self.daemon.path, HOME=self.daemon.directory, TERM="xterm")
        shown = b""
        with subprocess.Popen([NPUMEMCTL], stdin=slave, stdout=slave, stderr=slave, env=environment) as child:
            os.close(slave)
            for keys, expected in steps:
                os.write(master, keys)
                start = len(shown)
                while expected not in shown[start:]:
                    self.assertTrue(select.select([master], [], [], SECONDS)[0], (keys, shown))
                    shown += os.read(master, 4096)
            os.write(master, b"exit\n")
            self.assertEqual(child.wait(SECONDS), 0)
        os.close(master)
        return shown.decode(errors="replace")

    def test_typed(self):
        self.typed((b"alloc x --shape 1,2,2,2 --dtype int8\n", b"x at address"), (b"show nobody\n", b"no tensor nobody"),
                   (b"fill x 5\n", b"npumem>"), (b"read x\n", b"5 5"))
        self.assertEqual(self.names(), ["x"])


class Interrupt(TestCase):
    options = ("--npu-bytes", "4194304")

    def running(self):
        with self.client() as other:
            return other.call(stat=pb.StatRequest(details=True)).stat.running

    def test_a_cancelled_run_says_so(self):
        Endless(self.client())
        command = [NPUMEMCTL, "--socket", self.daemon.path, "run", "conv2d", "in=in", "weights=weights", "out=out"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            wait_for(lambda: any(running.call == "run" for running in self.running()))
            child.send_signal(signal.SIGINT)
            out, complaint = child.communicate(timeout=SECONDS)
        self.assertEqual((child.returncode, out), (-signal.SIGINT, ""))
        self.assertIn("npumemctl: cancelled", complaint)
        wait_for(lambda: not self.running())

    def test_an_allocation_that_waits_says_so(self):
        self.client().alloc("most", (1, 64, 1, 4194304))
        command = [NPUMEMCTL, "--socket", self.daemon.path, "alloc", "x", "--shape", "1,64,1,4096", "--dtype", "int8", "--wait", "600"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            wait_for(lambda: any(running.call == "alloc" for running in self.running()))
            child.send_signal(signal.SIGINT)
            out, complaint = child.communicate(timeout=SECONDS)
        self.assertEqual((child.returncode, out), (-signal.SIGINT, ""))
        self.assertEqual(complaint, "\nnpumemctl: interrupted while it waited for room\n")


class Moves(Ctl):
    def test_copy(self):
        for name in ("a", "b"):
            self.alloc(name)
        self.alloc("other", "1,2,2,3")
        self.ctl("fill", "a", "5")
        self.assertEqual(self.ctl("copy", "b", "a"), b"")
        self.assertEqual(self.ctl("read", "b"), self.ctl("read", "a"))
        self.ctl("fill", "a", "6")
        self.assertEqual(json.loads(self.ctl("--json", "copy", "b", "a")), {"warning": None})
        before = self.ctl("read", "b")
        for words, says in ((("b", "none"), "none"), (("none", "a"), "none"), (("b", "other"), "the destination is 1,2,2,2, the source 1,2,2,3")):
            self.ctl("copy", *words, code=1, says=says)
        self.ctl("copy", "b", code=2)
        self.assertEqual(self.ctl("read", "b"), before)

    def test_compact(self):
        for name in ("a", "gap", "b"):
            self.alloc(name)
        self.ctl("fill", "b", "7")
        self.ctl("free", "gap")
        def place():
            return json.loads(self.ctl("--json", "ls"))["tensors"]

        before = place()
        self.assertRegex(self.ctl("compact", "--dry-run").decode(),
                         r"^b: address \d+ -> \d+, \d+ bytes per NPU\n1 tensor would move\n$")
        (move,) = json.loads(self.ctl("--json", "compact", "--dry-run"))["moves"]
        self.assertEqual(place(), before)
        self.ctl("compact", says="1 tensor moved")
        self.assertEqual((move["name"], move["to_address"] < move["from_address"]), ("b", True))
        self.assertNotEqual(place(), before)
        self.assertEqual(self.ctl("read", "b").count(b"7"), 8)
        self.ctl("compact", says="0 tensors moved")
        self.assertEqual(json.loads(self.ctl("--json", "compact")), {"moves": [], "cut": False})


if __name__ == "__main__":
    unittest.main()
