"""The ways to have a daemon: in the background, ended by a request, and one for a command alone."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from support import NPUMEMCTL, NPUMEMD, SECONDS, Client, Daemon, HungUp, is_alive, pb, run_as, wait_for



def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False, **more)


class Temporary(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="npumem-test-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = os.path.join(self.directory, "npumem.sock")


class Background(Temporary):
    def start(self, *options, stderr=subprocess.DEVNULL):
        result = subprocess.run([NPUMEMD, "--background", "--socket", self.path, *options], stdout=subprocess.PIPE,
                                stderr=stderr, text=True, timeout=SECONDS, check=False)
        self.assertEqual(result.returncode, 0)
        match = re.fullmatch(rf"npumemd: 64 NPUs x 524288 bytes on {self.path}, process (\d+); "
                             rf"npumemctl --socket {self.path} shutdown ends it\n", result.stdout)
        self.assertTrue(match, result.stdout)
        return int(match[1])

    def test_it_listens_when_the_command_returns_and_shutdown_ends_it(self):
        for _ in range(20):
            pid = self.start()
            try:
                self.assertEqual(run(NPUMEMCTL, "--socket", self.path, "info").returncode, 0)
                ended = run(NPUMEMCTL, "--socket", self.path, "shutdown")
                self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "", ""))
                self.assertEqual(os.listdir(self.directory), [])
            finally:
                if is_alive(pid):
                    os.kill(pid, signal.SIGKILL)

    def test_the_log_goes_to_a_file_and_nobody_waits_for_its_end(self):
        log = os.path.join(self.directory, "log")
        with open(log, "w", encoding="utf-8") as file:
            pid = self.start(stderr=file)
        self.addCleanup(lambda: is_alive(pid) and os.kill(pid, signal.SIGKILL))
        self.assertEqual(sorted(os.path.basename(os.readlink(f"/proc/{pid}/fd/{fd}")) for fd in (0, 1, 2)),
                         ["log", "null", "null"])
        answer = json.loads(run(NPUMEMCTL, "--json", "--socket", self.path, "shutdown").stdout)
        self.assertEqual(answer, {"shut_down": True})
        wait_for(lambda: not is_alive(pid))
        with open(log, encoding="utf-8") as file:
            text = file.read()
        self.assertRegex(text, r"\Anpumemd: 64 NPUs .*\nnpumemd: session \d+ \(uid \d+, pid \d+\): "
                               r"shuts the daemon down\nnpumemd: stopped\n\Z")
        pid = self.start(stderr=subprocess.PIPE)  # returns although the pipe's other end lives on
        self.assertEqual(os.path.basename(os.readlink(f"/proc/{pid}/fd/2")), "null")
        run(NPUMEMCTL, "--socket", self.path, "shutdown")

    def test_what_keeps_it_from_starting_is_said(self):
        with Daemon(directory=self.directory):
            second = run(NPUMEMD, "--background", "--socket", self.path)
        self.assertEqual((second.returncode, second.stdout), (1, ""))
        self.assertEqual(second.stderr, f"npumemd: another daemon is on {self.path}\n")
        bad = run(NPUMEMD, "--background", "--fd", "3")
        self.assertEqual((bad.returncode, bad.stderr), (2, "npumemd: --fd goes without --background (see npumemd --help)\n"))


class Documents(Temporary):
    """What a newcomer pastes, as it stands there but for the sockets' folder."""

    ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))

    def paste(self, block):
        """In a shell that goes on after what fails, as a terminal does. What it says, both streams in one."""
        programs = ":".join(map(os.path.dirname, (NPUMEMCTL, NPUMEMD)))
        done = subprocess.run(["bash", "-c", block], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=SECONDS, check=False, cwd=self.directory,
                              env=dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", TMPDIR=self.directory))
        left = {name for _, _, files in os.walk(self.directory) for name in files if name.endswith(".sock")}
        self.assertEqual(left, set(), "it still runs")
        # Where others may write anybody could listen, or have left a file.
        self.assertNotRegex(block, "/tmp|/var/tmp|/dev/shm")
        self.assertEqual(len(re.findall(r"mktemp -d", block)), 1)
        return done.stdout

    def read(self, path):
        with open(os.path.join(self.ROOT, path), encoding="utf-8") as file:
            return file.read()

    def test_the_safety_rule(self):
        said = self.paste(self.read("client/man/npumem.7.scd").split("# THE SAFETY RULE")[1].split("```\n")[1])
        for words in ("a kernel may write t, whose footprint overlaps the new tensor's on NPU 1, bytes 128 to 159; seal the other tensor",
                      r"lent +128", "destroyed 96 bytes of u, first at NPU 1", "warning: u is damaged", "dbdb dbdb",
                      r"state +ok"):
            self.assertRegex(said, words)
        refusals = [line for line in said.splitlines() if line.startswith("npumemctl: ")]
        self.assertEqual(len(refusals), 2, said)  # the refusal, and the warning


class Shutdown(Temporary):
    @unittest.skipIf(os.getuid(), "needs root")
    def test_who_may(self):
        os.chmod(self.directory, 0o755)

        def ask():
            with Client(self.path) as client:
                return client.ask(shutdown=pb.ShutdownRequest()).message

        with Daemon(directory=self.directory) as daemon:
            self.assertEqual(run_as(1000, ask), "only root and uid 0, as whom the daemon runs, may shut it down")
            with daemon.client() as client:
                client.stat()
                client.call(shutdown=pb.ShutdownRequest())
                with self.assertRaises(HungUp):
                    client.receive()
            self.assertEqual(daemon.process.wait(SECONDS), 0)

    def test_what_was_asked_before_is_answered(self):
        with Daemon(directory=self.directory) as daemon, daemon.client() as other, daemon.client() as client:
            tensor = other.alloc("x", (1, 64, 1, 100000))
            other.write(tensor.handle, b"\1" * 6400000)
            other.send(read=pb.ReadRequest(tensor=pb.Ref(name="x")))
            client.post({"shutdown": pb.ShutdownRequest()}, {"stat": pb.StatRequest()})
            self.assertEqual(client.receive().WhichOneof("result"), "shutting_down")
            self.assertEqual(len(other.receive().done.data), 6400000)
            self.assertEqual(daemon.process.wait(SECONDS), 0)

    def test_many_ask_at_once(self):
        with Daemon(directory=self.directory) as daemon:
            clients = [daemon.client() for _ in range(50)]
            for client in clients:
                try:
                    client.post(*[{"shutdown": pb.ShutdownRequest()}] * 20)
                except (BrokenPipeError, ConnectionResetError):
                    pass  # it has gone already
            self.assertEqual(daemon.process.wait(SECONDS), 0)
            for client in clients:
                client.close()


class Exec(Temporary):
    def exec(self, *words, spawn="--spawn"):
        return run(NPUMEMCTL, spawn, "exec", *words)

    def test_a_script_has_a_device_of_its_own(self):
        script = f'{NPUMEMCTL} alloc x --shape 1,4,1,16 --dtype int8 && {NPUMEMCTL} ls && stat -c "%a %n" "${{NPUMEM_SOCKET%/*}}"'
        result = self.exec("sh", "-c", script, spawn="--spawn=--npus 4 --npu-bytes 1024")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn("[1,4,1,16]", result.stdout)
        mode, directory = result.stdout.splitlines()[-1].split()
        self.assertEqual(mode, "700")
        self.assertFalse(os.path.exists(directory))

    def test_no_directory_of_the_environment_is_taken(self):
        """After su, root has the variables of the user before, who could put a daemon of its own in the place of ours."""
        names = ("XDG_RUNTIME_DIR", "TMPDIR")
        environment = dict(os.environ, **dict.fromkeys(names, self.directory))
        result = run(NPUMEMCTL, "exec", "sh", "-c", "echo $NPUMEM_SOCKET", env=environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertTrue(result.stdout.startswith("/tmp/npumem-"), result.stdout)

    def test_exit_codes(self):
        for words, code, text in (
            (("sh", "-c", "exit 3"), 3, ""),
            (("sh", "-c", "kill -9 $$"), 128 + signal.SIGKILL, ""),
            (("--", "nonesuch", "--help"), 127, "npumemctl: cannot run nonesuch: No such file or directory\n"),
            ((self.directory,), 126, f"npumemctl: cannot run {self.directory}: Permission denied\n"),
        ):
            result = self.exec(*words)
            self.assertEqual((result.returncode, result.stdout, result.stderr), (code, "", text))
        bad = self.exec("true", spawn="--spawn=--npus 0")
        self.assertEqual((bad.returncode, bad.stderr),
                         (1, "npumemctl: the private daemon did not start: npumemd: 0 NPUs is not in 1..1024 (see npumemd --help)\n"))
        both = run(NPUMEMCTL, "--socket", "x", "exec", "true")
        self.assertEqual(both.returncode, 2)

    def test_a_signal_goes_to_the_command_and_leaves_nothing(self):
        script = "trap 'echo told; exit 5' TERM; echo $NPUMEM_SOCKET; while :; do sleep 0.01; done"
        process = subprocess.Popen([NPUMEMCTL, "exec", "sh", "-c", script], stdout=subprocess.PIPE, text=True)
        with process:
            directory = os.path.dirname(process.stdout.readline().strip())
            self.assertTrue(os.path.isdir(directory))
            process.terminate()
            self.assertEqual(process.stdout.read(), "told\n")
            self.assertEqual(process.wait(SECONDS), 5)
        self.assertFalse(os.path.exists(directory))

    def test_the_daemon_goes_with_a_killed_npumemctl(self):
        process = subprocess.Popen([NPUMEMCTL, "exec", "sh", "-c", "echo $NPUMEM_SOCKET; exec sleep 600"],
                                   stdout=subprocess.PIPE, text=True)
        with process:
            path = process.stdout.readline().strip()
            with Client(path) as client:
                pid = client.call(info=pb.InfoRequest()).info.pid
            with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
                children = [int(child) for child in file.read().split()]
            process.kill()
            process.wait(SECONDS)
            wait_for(lambda: not is_alive(pid))
            for child in set(children) - {pid}:
                os.kill(child, signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
