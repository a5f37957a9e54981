"""Hosts that stand still, that want to be told something first, or that are not there: over a real sshd, on the
loopback."""

import contextlib
import os
import pty
import select
import signal
import socket
import subprocess
import unittest

import npumem
from sshd import CTL, OverSsh, Sshd, children, free_port, why_not
from state import StateTestCase
from support import SECONDS, TestCase, pb, wait_for
from test_remote_resume import Busy

PULSE = "-o ServerAliveInterval=1 -o ServerAliveCountMax=1"


@contextlib.contextmanager
def stopped(*pids):
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


class Case(OverSsh, Busy):
    pass


@unittest.skipIf(why_not(), why_not())
class StandsStill(Case, TestCase):
    options = ("--npus", "8", "--npu-bytes", "2097152")

    def test_calls_keep_their_time(self):
        with npumem.connect(f"ssh:npu:{self.daemon.path}", timeout=SECONDS) as dev:
            x = dev.alloc(shape=(1, 1, 1, 8), dtype="int8")
            with stopped(*self.sshd.sessions()):
                dev.timeout = 0.3
                with self.assertRaises(npumem.DeadlineExceeded):
                    x.fill(1)
            dev.timeout = SECONDS
            x.fill(2)
            self.assertEqual(set(x.read().flat), {2})

    def test_so_does_connecting(self):
        with stopped(self.sshd.process.pid), self.assertRaisesRegex(npumem.DeadlineExceeded, "cannot reach ssh:npu"):
            npumem.connect("ssh:npu:/s", connect_timeout=0.5)
        self.assertEqual(children(os.getpid(), "ssh"), [])

    def test_a_pulse_of_ssh_ends_it(self):
        process = self.busy(PULSE)
        with stopped(*self.sshd.sessions()):
            self.fails(process, "Timeout, server .* not responding")


@unittest.skipIf(why_not(), why_not())
class GoesOn(Case, StateTestCase):
    options = ("--npus", "8", "--npu-bytes", "2097152")

    def n_requests(self):
        with self.daemon.client() as client:
            return client.call(stat=pb.StatRequest(details=True)).stat.all.requests

    def test_while_the_host_has_the_old_way(self):
        """Which it does not know to be cut."""
        process = self.busy(PULSE)
        for _ in range(2):
            old = self.sshd.sessions()
            with stopped(*old):
                wait_for(lambda: len(self.sshd.sessions()) > len(old))  # pylint: disable=cell-var-from-loop
                wait_for(lambda: "the session goes on over another connection" in self.output())
                n = self.n_requests()
                wait_for(lambda: self.n_requests() > n + 1000)  # pylint: disable=cell-var-from-loop
            wait_for(lambda: not set(old) & set(self.sshd.sessions()))  # pylint: disable=cell-var-from-loop
        self.finishes(process)


@unittest.skipIf(why_not(), why_not())
class Asks(Case, StateTestCase):
    """A key with a passphrase, and nobody but the user who has that."""

    SECRET = "secret words"

    def setUp(self):
        super().setUp()
        key = self.sshd.file("asks")
        subprocess.run(["cp", self.sshd.file("user"), key], check=True)
        subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", self.SECRET, "-f", key], stdout=subprocess.DEVNULL, check=True)
        self.addCleanup(os.remove, key)
        self.ssh = f"{self.sshd.ssh} -o IdentityAgent=none -o NumberOfPasswordPrompts=1"

    def ctl(self, *words):
        return [CTL, "--socket", f"ssh:asks:{self.daemon.path}", *words], self.sshd.environment(
            NPUMEM_SSH=self.ssh, SSH_ASKPASS_REQUIRE="never"
        )

    def on_a_terminal(self, *words):
        """A command with a terminal of its own: its pid, and the terminal's other end."""
        command, env = self.ctl(*words)
        pid, terminal = pty.fork()
        if not pid:
            os.execve(command[0], command, env)
        self.addCleanup(os.close, terminal)
        return pid, terminal

    def read_until(self, terminal, words):
        said = b""
        while words not in said:
            self.assertTrue(select.select([terminal], [], [], SECONDS)[0], said)
            try:
                said += os.read(terminal, 4096)
            except OSError:
                self.fail(f"it ended: {said}")
        return said

    def test_at_the_terminal(self):
        pid, terminal = self.on_a_terminal("info")
        self.read_until(terminal, b"passphrase")
        os.write(terminal, self.SECRET.encode() + b"\n")
        self.assertNotIn(b"secret", self.read_until(terminal, b"over ssh"))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)

    def test_nobody_is_there(self):
        command, env = self.ctl("info")
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, start_new_session=True, timeout=SECONDS,
            check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 1)
        self.assertIn("Permission denied (publickey)", done.stderr)

    def test_not_in_the_middle_of_something(self):
        self.restart("--resume-seconds", "3")
        pid, terminal = self.on_a_terminal("events")
        self.read_until(terminal, b"passphrase")
        os.write(terminal, self.SECRET.encode() + b"\n")
        with self.daemon.client() as client:

            def is_told():
                """Once it has subscribed."""
                client.alloc()
                return select.select([terminal], [], [], 0.1)[0] and b"allocated" in os.read(terminal, 4096)

            wait_for(is_told)
            (ssh,) = children(pid, "ssh")
            os.kill(ssh, signal.SIGKILL)
            said = self.read_until(terminal, b"Permission denied (publickey)")
        self.assertNotIn(b"passphrase", said)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 1)


@unittest.skipIf(why_not(), why_not())
class Hosts(Case, TestCase):
    def refused(self, words, host="npu", ssh=""):
        """By npumemctl and by Python, with the same words."""
        os.environ["NPUMEM_SSH"] = f"{ssh or self.sshd.ssh}"
        address = f"ssh:{host}:{self.daemon.path}"
        done = subprocess.run(
            [CTL, "--socket", address, "info"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
            check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 1, done)
        self.assertRegex(done.stderr, words)
        with self.assertRaisesRegex(npumem.Unavailable, words):
            npumem.connect(address)

    def test_one_that_is_not_there(self):
        self.refused("Could not resolve hostname nosuch.invalid", "nosuch.invalid")
        self.refused("Connection refused", ssh=f"{self.sshd.ssh} -p {free_port()}")

    def test_one_that_is_another(self):
        known = self.sshd.file("known-others")
        with open(self.sshd.file("stranger.pub")) as key, open(known, "w") as file:
            file.write(f"[127.0.0.1]:{self.sshd.port} {key.read()}")
        self.refused(
            "Host key verification failed", ssh=f"{self.sshd.ssh} -o StrictHostKeyChecking=yes -o UserKnownHostsFile={known}"
        )

    def test_one_that_hangs_up(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            process = os.fork()
            if not process:
                for _ in range(2):
                    sock = server.accept()[0]
                    sock.recv(1)
                    sock.close()
                os._exit(0)
            self.addCleanup(os.waitpid, process, 0)
            self.refused("Connection (closed|reset) by", ssh=f"{self.sshd.ssh} -p {server.getsockname()[1]}")

    def test_a_banner_is_not_a_reason(self):
        banner = self.sshd.file("banner")
        with open(banner, "w") as file:
            file.write("Members of the farm only!\n")
        with Sshd(f"Banner {banner}") as sshd:
            os.environ["NPUMEM_SSH"] = sshd.ssh
            dev = npumem.connect(f"ssh:npu:{self.daemon.path}")
            (ssh,) = children(os.getpid(), "ssh")
            os.kill(ssh, signal.SIGKILL)
            with self.assertRaisesRegex(npumem.Unavailable, "the connection to npu ended"):
                dev.stat()

    def test_a_profile_that_speaks(self):
        with Sshd("ForceCommand /bin/sh -c 'echo Welcome to the farm; eval \"$SSH_ORIGINAL_COMMAND\"'") as sshd:
            self.refused('wrote "Welcome to the farm" before .* must not write to stdout', ssh=sshd.ssh)


if __name__ == "__main__":
    unittest.main()
