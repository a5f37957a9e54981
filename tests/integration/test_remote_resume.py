"""Sessions from another host whose way there is cut, at each of its parts: over a real sshd, on the loopback."""

import contextlib
import itertools
import os
import random
import signal
import subprocess
import time
import unittest

import npumem
import test_resume
from sshd import OverSsh, WithSshd, children, why_not
from state import StateTestCase
from support import SECONDS, TestCase, pb, wait_for

CLIENT = os.path.join(os.environ["NPUMEM_BUILD"], "tests/integration/integration_resume_client")
ROUNDS = int(os.environ.get("NPUMEM_RESUME_ROUNDS", 3))  # each part of the way once
SEED = int(os.environ.get("NPUMEM_RESUME_SEED", random.randrange(1 << 30)))


class Busy(WithSshd):
    """A client with 32 requests under way over ssh, for a test case with a daemon."""

    seeds = itertools.count(SEED % 1000)  # named tensors outlive their clients

    def busy(self, ssh=""):
        process = subprocess.Popen(
            [CLIENT, f"ssh:npu:{self.daemon.path}", str(next(self.seeds))],
            env=self.sshd.environment(NPUMEM_SSH=f"{self.sshd.ssh} {ssh}".strip()),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.addCleanup(process.__exit__, None, None, None)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def finishes(self, process):
        """Every answer was as from a daemon that nothing happens to."""
        out, _ = process.communicate("", timeout=2 * SECONDS)
        self.assertEqual(process.returncode, 0, f"seed {SEED}: {out}")
        self.assertRegex(out, r"^\d+ answers, \d+ waited, \d+ aborted, \d+ events\n$")

    def fails(self, process, words):
        """With UNAVAILABLE, and soon."""
        out, _ = process.communicate(timeout=SECONDS)
        self.assertEqual(process.returncode, 1, out)
        self.assertRegex(out, words)

    def way(self, process):
        """What there is of it now, from here to there: ssh, sshd's part of it, dial."""
        ssh = children(process.pid, "ssh")
        served = self.sshd.sessions()
        dial = [pid for parent in served for pid in children(parent, "npumemctl")]
        return ssh, served, dial

    def cut(self, process, part):
        """Kills one part of it; False where that is not there at this moment."""
        if process.poll() is not None:
            self.fail(f"seed {SEED}: the client has ended: {process.stdout.read()}")
        found = self.way(process)[part]
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(found)


@unittest.skipIf(why_not(), why_not())
class Resumes(Busy, StateTestCase):
    """The daemon has a state directory."""

    options = ("--npus", "8", "--npu-bytes", "2097152")

    def setUp(self):
        super().setUp()
        self.rng = random.Random(SEED)

    def test_the_daemon_is_killed(self):
        process = self.busy()
        for _ in range(ROUNDS):
            time.sleep(self.rng.uniform(0.01, 1))
            self.restart(terminate=self.rng.random() < 0.3)
        self.finishes(process)

    def test_the_way_is_cut(self):
        process = self.busy()
        n_cuts = 0
        while n_cuts < ROUNDS:
            time.sleep(self.rng.uniform(0.01, 0.6))
            n_cuts += self.cut(process, n_cuts % 3)
        self.finishes(process)
        with self.daemon.client() as client:
            wait_for(lambda: client.stat().sessions == 1)

    def test_all_at_once(self):
        process = self.busy()
        for _ in range(ROUNDS):
            time.sleep(self.rng.uniform(0.01, 0.6))
            self.cut(process, self.rng.randrange(3))
            self.restart()
        self.finishes(process)

    def test_a_daemon_that_stays_away(self):
        self.options = (*self.options, "--resume-seconds", "5")
        self.restart()
        process = self.busy()
        self.restart()
        with self.daemon.client() as client:
            details = {"stat": pb.StatRequest(details=True)}
            wait_for(lambda: client.call(**details).stat.activity.dma_bytes)  # the client has found this one
        self.kill()
        self.fails(process, "the connection to the daemon ended, and no daemon at npu continues the session")


@unittest.skipIf(why_not(), why_not())
class Ends(Busy, TestCase):
    """The daemon keeps nothing."""

    options = ("--npus", "8", "--npu-bytes", "2097152")

    def test_the_daemon_is_killed(self):
        process = self.busy()
        self.daemon.process.kill()
        self.fails(process, "npumemctl: the daemon closed the connection")

    def test_the_way_is_cut(self):
        ended = "the connection to npu ended"
        words = (ended, "closed by remote host|Broken pipe|[Cc]onnection reset", ended)
        for part in range(3):
            process = self.busy()
            wait_for(lambda: self.cut(process, part))  # pylint: disable=cell-var-from-loop
            self.fails(process, words[part])
        with self.daemon.client() as client:
            wait_for(lambda: client.stat().sessions == 1)


@unittest.skipIf(why_not(), why_not())
class Python(OverSsh, test_resume.Python):
    """What the package's own tests of this ask, with another address."""

    def connect(self, **options):
        dev = npumem.connect(f"ssh:npu:{self.daemon.path}", timeout=SECONDS, **options)
        self.addCleanup(dev.close)
        return dev

    def test_ssh_is_killed(self):
        dev = self.connect()
        x = dev.alloc(shape=(1, 1, 1, 8), dtype="int8")
        for i in range(4):
            x.fill(i)
            (ssh,) = children(os.getpid(), "ssh")
            os.kill(ssh, (signal.SIGKILL, signal.SIGTERM)[i % 2])
            self.assertEqual(set(x.read().flat), {i})
        dev.close()
        self.assertEqual(set(children(os.getpid())), {self.sshd.process.pid, self.daemon.process.pid})
        with self.daemon.client() as client:
            wait_for(lambda: client.stat().sessions == 1)

    def test_who_does_not_want_it(self):
        dev = self.connect(resume=0)
        (ssh,) = children(os.getpid(), "ssh")
        os.kill(ssh, signal.SIGKILL)
        with self.assertRaisesRegex(npumem.Unavailable, "the connection to npu ended"):
            dev.stat()
        dev = self.connect(resume=0)
        self.kill()
        with self.assertRaisesRegex(npumem.Unavailable, "npumemctl: the daemon closed the connection"):
            dev.stat()

    def test_patience(self):
        dev = self.connect(resume=2)  # long enough for one more connection of ssh
        dev.stat()
        self.kill()
        with self.assertRaisesRegex(npumem.Unavailable, "no daemon at npu continues the session: .*cannot reach a daemon"):
            dev.stat()


if __name__ == "__main__":
    unittest.main()
