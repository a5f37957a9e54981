"""Many devices in one picture: npumemctl --all-devices, also where some of them are gone, hang, or never were."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from support import NPUMEMCTL, SECONDS, Daemon, alloc
from test_stat import parse



class Devices(unittest.TestCase):
    """Three that answer, one that is not there, one that takes the connection and says nothing."""

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="npumem-test-"))
        self.daemons = [self.stack.enter_context(Daemon("--npus", str(4 << i))) for i in range(3)]
        self.clients = [self.stack.enter_context(daemon.client()) for daemon in self.daemons]
        self.clients[0].call(**alloc("weights"))
        self.clients[2].call(**alloc("weights"))
        self.clients[2].call(**alloc("image"))
        self.silent = self.stack.enter_context(socket.socket(socket.AF_UNIX))
        self.silent.bind(self.path("silent"))
        self.silent.listen()
        self.good = [(f"node{i}", daemon.path) for i, daemon in enumerate(self.daemons)]
        self.bad = [("gone", self.path("nothing")), ("silent", self.path("silent"))]

    def path(self, name):
        return os.path.join(self.folder, name)

    def list(self, devices, name="devices"):
        text = "# the farm\n\n" + "".join(f"{name}\t {address}  \n" for name, address in devices)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def ctl(self, *words, code=0, says="", environment=()):
        done = subprocess.run([NPUMEMCTL, *words], capture_output=True, text=True, timeout=SECONDS,
                              env=dict(os.environ, **dict(environment)))
        self.assertEqual(done.returncode, code, (words, done.stdout[-2000:], done.stderr))
        self.assertIn(says, done.stderr)
        return done.stdout

    def all(self, *words, **more):
        return self.ctl("--all-devices", "--devices", self.list(self.good + self.bad), *words, **more)

    def rows(self, text, device):
        return [line.split() for line in text.splitlines() if line.split()[:1] == [device]]

    def assert_bad(self, text):
        self.assertRegex(text, r"\ngone: cannot reach a daemon at .*nothing: No such file or directory\n")
        self.assertRegex(text, r"\nsilent: did not answer within 2 s")

    def test_ls(self):
        text = self.all("ls")
        self.assertEqual([row[1] for row in self.rows(text, "node0")], ["weights"])
        self.assertEqual(self.rows(text, "node1"), [])
        self.assertEqual(sorted(row[1] for row in self.rows(text, "node2")), ["image", "weights"])
        self.assertIn("int8", self.rows(text, "node0")[0])
        self.assert_bad(text)
        found = json.loads(self.all("--json", "ls"))["devices"]
        self.assertEqual([(one["name"], one["address"]) for one in found], self.good + self.bad)
        self.assertEqual([[t["name"] for t in one["tensors"]] for one in found[:3]], [["weights"], [], ["image", "weights"]])
        self.assertTrue(all("error" in one and "tensors" not in one for one in found[3:]))
        # A pattern that a device has nothing for.
        text = self.all("ls", "ima*")
        self.assertEqual([row[1] for row in self.rows(text, "node2")], ["image"])
        self.assertIn('node0: no tensor\'s name fits "ima*"', text)

    def test_stat(self):
        text = self.all("stat")
        self.assertEqual([self.rows(text, f"node{i}")[0][5] for i in range(3)], ["1", "0", "2"])
        self.assert_bad(text)
        found = json.loads(self.all("--json", "stat"))["devices"]
        self.assertEqual([len(one["stat"]["npu_data"]) for one in found[:3]], [4, 8, 16])
        self.assertEqual([one["stat"]["tensors"] for one in found[:3]], [1, 0, 2])

    def test_metrics(self):
        metrics = parse(self.all("stat", "--prometheus"))
        devices = [name for name, _ in self.good + self.bad]
        up = {dict(labels)["device"]: value for (_, labels), value in metrics["npumem_up"][1].items()}
        self.assertEqual(up, dict(zip(devices, (1, 1, 1, 0, 0))))
        self.assertGreater(len(metrics), 30)
        for name, (_, samples) in metrics.items():
            self.assertTrue(all(dict(labels)["device"] in devices for _, labels in samples), name)
        tensors = {dict(labels)["device"]: value for (_, labels), value in metrics["npumem_tensors"][1].items()}
        self.assertEqual(tensors, {"node0": 1, "node1": 0, "node2": 2})
        # What one says by itself, but for the label.
        alone = parse(self.ctl("--socket", self.daemons[2].path, "stat", "--prometheus"))
        self.assertEqual(set(metrics) - set(alone), {"npumem_up"})
        key = next(iter(alone["npumem_npu_data_bytes"][1]))
        both = [k for k in metrics["npumem_npu_data_bytes"][1] if ("device", "node2") in k[1]]
        self.assertEqual(len(both), len(alone["npumem_npu_data_bytes"][1]))
        self.assertIn((key[0], tuple(sorted((*key[1], ("device", "node2"))))), both)
        # A device whose name needs quoting, and a scrape of none that answers.
        odd = self.list([('a"b\\c', self.daemons[0].path), ("gone", self.path("nothing"))], "odd")
        text = self.ctl("--all-devices", "--devices", odd, "stat", "--prometheus")
        self.assertIn(r'npumem_tensors{device="a\"b\\c"} 1', text)
        none = self.list(self.bad[:1], "none")
        self.assertIn('npumem_up{device="gone"} 0', self.ctl("--all-devices", "--devices", none, "stat", "--prometheus"))
        for words in (("stat",), ("ls",), ("--json", "ls")):
            self.ctl("--all-devices", "--devices", none, *words, code=1, says="none of 1 devices")

    def test_top(self):
        text = self.all("top", "--batch", "-n", "1")
        self.assertIn("REQUESTS/s", text)
        self.assert_bad(text)
        listed = self.list(self.good, "good")
        words = ("--all-devices", "--devices", listed, "top", "--batch", "--interval", "0.1", "-n", "2")
        looks = self.ctl(*words).split("\n\n")
        self.assertEqual(len(self.rows(looks[0], "node1")), 1)
        self.assertGreater(float(self.rows(looks[1], "node1")[0][7]), 0)  # its own look is a request
        lines = self.ctl("--json", *words).splitlines()
        self.assertEqual([len(json.loads(line)["devices"]) for line in lines], [3, 3])

    def test_top_on_a_terminal(self):
        master, slave = os.openpty()
        words = (NPUMEMCTL, "--all-devices", "--devices", self.list(self.good), "top")
        process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        seen = b""
        while b"node2" not in seen:
            seen += os.read(master, 65536)
        os.write(master, b"q")
        with contextlib.suppress(OSError):
            while True:
                more = os.read(master, 65536)
                if not more:
                    break
                seen += more
        self.assertEqual(process.wait(SECONDS), 0)
        self.assertTrue(seen.rstrip().endswith(b"\x1b[?1049l"), seen[-100:])
        os.close(master)

    def test_at_once(self):
        """Many that hang take as long as one."""
        listed = self.list([(f"silent{i}", self.path("silent")) for i in range(20)] + self.good[:1])
        before = time.monotonic()
        text = self.ctl("--all-devices", "--devices", listed, "stat")
        self.assertLess(time.monotonic() - before, 20)
        self.assertEqual(text.count("did not answer within 2 s"), 20)
        self.assertEqual(len(self.rows(text, "node0")), 1)

    def test_more_than_descriptors(self):
        """A soft limit is no limit of devices."""
        listed = self.list([(f"gone{i}", self.path("nothing")) for i in range(100)] + self.good[2:])
        done = subprocess.run(["sh", "-c", f"ulimit -Sn 40; exec {NPUMEMCTL} --all-devices --devices {listed} stat"],
                              capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((done.stdout.count(": cannot reach a daemon"), done.stdout.count("cannot be asked")), (100, 0))
        self.assertEqual(len(self.rows(done.stdout, "node2")), 1)

    def test_a_daemon_that_is_stopped(self):
        os.kill(self.daemons[1].process.pid, signal.SIGSTOP)
        try:
            text = self.ctl("--all-devices", "--devices", self.list(self.good), "stat")
        finally:
            os.kill(self.daemons[1].process.pid, signal.SIGCONT)
        self.assertIn("node1: did not answer within 2 s", text)
        self.assertEqual((len(self.rows(text, "node0")), len(self.rows(text, "node2"))), (1, 1))

    def test_nothing_is_left(self):
        """Not where it is killed while it waits, either."""
        process = subprocess.Popen([NPUMEMCTL, "--all-devices", "--devices", self.list(self.bad), "stat"])
        peer, _ = self.silent.accept()
        peer.settimeout(SECONDS)
        process.kill()
        process.wait()
        while peer.recv(65536):
            pass
        peer.close()

    def test_lists(self):
        listed = self.list(self.good)
        text = self.ctl("--all-devices", "stat", environment={"NPUMEM_DEVICES": listed}.items())
        self.assertEqual(len(self.rows(text, "node2")), 1)
        for text, says in (
            ("", "names no device"), ("# none\n \n", "names no device"), ("a\n", 'devices:1: a: "" is not an address'),
            ("a b\na c\n", 'devices:2: there are two devices "a"'), ("a spawn:\n", "is not an address"),
            ("a " + "x" * 600, "is not an address"), ("a" * 64 + " x", "is not a name"), ("\x01 x", "is not a name"),
            ("ä x", "is not a name"), ("".join(f"d{i} x\n" for i in range(4097)), "devices:4097: more than 4096"),
        ):
            with open(self.path("devices"), "w", encoding="utf-8") as file:
                file.write(text)
            self.ctl("--all-devices", "--devices", self.path("devices"), "ls", code=1, says=says)
        self.ctl("--all-devices", "--devices", self.path("none"), "ls", code=1, says="No such file")
        self.ctl("--all-devices", "--devices", self.folder, "ls", code=1, says="Is a directory")

    def test_what_slurm_runs(self):
        """Devices by jobs, as a squeue of ours tells them: at a path of this node, whose own name is the short one."""
        program = self.path("squeue")
        path = {"PATH": f"{self.folder}:{os.environ['PATH']}", "SLURMD_NODENAME": "here"}
        job = 4000000001  # no job of this machine: nobody listens at its socket

        def squeue(text, code=0):
            with open(program, "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\nprintf '%s\\n' {text}\nexit {code}\n")
            os.chmod(program, 0o755)

        def asked(environment):
            done = subprocess.run([NPUMEMCTL, "--json", "--all-devices", "--devices", "slurm:", "ls"], capture_output=True, text=True,
                                  timeout=SECONDS, env=dict(os.environ, **environment))
            return done.returncode, done.stdout, done.stderr

        me = os.getuid()
        squeue(f"'{job} {job} {me} here gres:npu:2' '{job + 1} {job + 1} {me} here N/A'")
        code, out, error = asked(path)
        self.assertEqual((code, error), (1, "npumemctl: none of 2 devices has answered\n"))
        self.assertEqual([(one["name"], one["address"]) for one in json.loads(out)["devices"]], [
            (f"here/{job}", f"/run/npumem/job-{job}.sock"), (f"here/{job}.1", f"/run/npumem/job-{job}.1.sock")])
        # Without the name that slurmd told, it is the host's.
        squeue(f"'{job} {job} {me} {socket.gethostname().split('.')[0]} gres:npu'")
        self.assertIn("cannot reach a daemon at /run/npumem/job-", "".join(asked({**path, "SLURMD_NODENAME": "x" * 300})[1:]))
        for text, status, says in (
            ("'slurm_load_jobs error: no controller'", 1, "squeue, which knows the devices of slurm:, failed: slurm_load_jobs error"),
            (f"'{job} {job} {me} a[1 gres:npu'", 0, "squeue: a list of nodes has no ]"),
        ):
            squeue(text, status)
            code, out, error = asked(path)
            self.assertEqual(code, 1)
            self.assertIn(says, error)

    def test_what_makes_no_sense(self):
        listed = self.list(self.good)
        several = ("--all-devices", "--devices", listed)
        for words, says in (
            (("--all-devices", "ls"), "needs --devices FILE"), (("--devices", listed, "ls"), "without --all-devices"),
            ((*several, "free", "--all"), "free asks one device"), ((*several, "--spawn", "ls"), "no meaning with it"),
            ((*several, "--socket", "x", "ls"), "no meaning with it"), ((*several, "info"), "info asks one device"),
            (several, "needs a command"), ((*several, "stat", "--json", "--prometheus"), "exclude each other"),
            ((*several, "stat", "x"), 'stat takes no word "x" there'),
        ):
            self.ctl(*words, code=2, says=says, environment={"NPUMEM_DEVICES": ""}.items())
        self.assertEqual(self.clients[0].names(), ["weights"])


if __name__ == "__main__":
    unittest.main()
