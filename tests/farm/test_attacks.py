"""What users and accidents may do to a farm: words that pass for others, prologs that fail, hosts that come back with what
was left, jobs that are cut off, processes that outlive theirs."""

import glob
import os
import shutil
import subprocess
import sys
import unittest

import slurm as clusters

why = clusters.cannot_run()
if why:
    print(f"{why}: attacks on a farm were NOT tested")
    sys.exit(clusters.SKIPPED)

TASKS = int(os.environ.get("NPUMEM_FARM_TASKS", "60"))
MANY = 60 + 2 * TASKS
slurm = clusters.Slurm(nodes=2, devices=2)


def setUpModule():
    unittest.enterModuleContext(slurm)


class Attacks(unittest.TestCase):
    def setUp(self):
        self.addCleanup(self.assert_as_before)

    def assert_as_before(self):
        slurm.empty()
        slurm.wait(lambda: slurm.states() == {"idle"})

    def run_job(self, script, *options, **others):
        return slurm.call("srun", *options, "sh", "-c", script, **others)

    def start(self, script, *options, user=None):
        """A job of its own number, once its script runs."""
        out = slurm.path(f"out.{self._testMethodName}.{len(glob.glob(slurm.path('out.*')))}")
        with open(out, "w", encoding="utf-8"):
            os.chmod(out, 0o666)
        job = slurm.call("sbatch", "--parsable", "-o", out, "--open-mode=append", *options, "--wrap",
                         f"echo begun; {script}; exec sleep 600", user=user).strip()  # fmt: skip
        slurm.wait(lambda: "begun" in slurm.read(os.path.basename(out)))
        return job, os.path.basename(out)

    # ---- words ----

    def test_words_that_pass_for_others(self):
        lie = "x TresPerNode=gres:npu:2 Comment=npumem=hey\n1 gres:npu:2 npumem=hey"
        listing = "ls /run/npumem; echo $NPUMEM_SOCKET"
        for option in ("--comment", "--job-name", "--wckey", "-D/tmp", "--export=ALL,A"):
            words = (f"{option}={lie}",) if not option.startswith("-D") else (option, f"--comment={lie}")
            self.assertEqual(self.run_job(listing, *words).split(), ["job.lock"])
        out = self.run_job(listing, "--gres=npu:1", f"--comment={lie}", f"--job-name={lie}")
        self.assertEqual(sorted(set(word.split(".")[-1] for word in out.split() if word.startswith("job-"))),
                         ["d", "sock", "told", "user"])
        self.assertNotIn("hey", out)

    def test_words_that_a_shell_would_take_apart(self):
        for word in ("$(touch /run/npumem/pwned)", "`touch /run/npumem/pwned`", "; touch /run/npumem/pwned", "%n%s", "*", "'\"", "\\"):
            code, out, _ = self.run_job("echo here", "--gres=npu:1", f"--comment=npumem={word}", f"--job-name={word}", check=False)
            self.assertEqual((code, out.count("here")), (1, 0), out)
            self.assertIn("is no name for a device", out)
        for node in slurm.nodes.values():
            self.assertFalse(os.path.exists(node.path("/run/npumem/pwned")))

    # ---- several devices, several users ----

    def test_two_devices_of_one_job(self):
        script = f"""
            for socket in $NPUMEM_SOCKETS; do
                {slurm.npumemctl} --socket $socket alloc x --shape 1,8,1,16 --dtype int8
                {slurm.npumemctl} --socket $socket --json info
            done
            echo $NPUMEM_SOCKET $NPUMEM_SOCKETS; stat -L -c %U:%a $NPUMEM_SOCKETS"""
        out = self.run_job(script, "--gres=npu:2", user="nobody")
        first, one, other = out.splitlines()[-3].split()
        self.assertEqual((first, other), (one, one.replace(".sock", ".1.sock")))
        self.assertEqual(out.splitlines()[-2:], ["nobody:600"] * 2)

    def test_two_jobs_of_one_node_and_another_users_device(self):
        job, _ = self.start(":", "--gres=npu:1", "-w", "n1", user="nobody")
        script = f"""
            {slurm.npumemctl} --json info | grep uid; ls /run/npumem
            {slurm.npumemctl} --socket /run/npumem/job-{job}.sock info 2>&1
            flock -n /run/npumem/job.lock true; cat /run/npumem/job-{job}.d/npumem.sock.lock; ls /run/npumem/job-{job}.d; echo > /run/npumem/job-{job}.told"""
        code, out, errors = self.run_job(script, "--gres=npu:1", "-w", "n1", user="daemon", check=False)
        self.assertNotEqual(code, 0)
        self.assertIn('"uid": 1', out)
        self.assertIn(f"job-{job}.sock", out)
        self.assertIn("Permission denied", out)
        self.assertEqual(errors.count("ermission denied"), 4, errors)

    # ---- jobs that end otherwise than they might ----

    def test_cancelled_in_its_prolog(self):
        node = slurm.nodes["n1"]
        holding = subprocess.Popen(node.inside("flock", "/run/npumem/job.lock", "sh", "-c", "echo held; cat"), stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)  # fmt: skip
        try:
            self.assertEqual(holding.stdout.readline(), "held\n")
            job = slurm.call("sbatch", "--parsable", "--gres=npu:1", "-w", "n1", "-o", "/dev/null", "--wrap", "sleep 600").strip()
            slurm.wait(lambda: node.pids("prolog"))
            slurm.call("scancel", job)
        finally:
            holding.communicate()
        slurm.wait(lambda: not slurm.jobs("%A"))
        slurm.wait(lambda: not slurm.devices_left())
        self.assertEqual(node.pids("npumemd"), [])

    def test_processes_that_outlive_their_job(self):
        node = slurm.nodes["n1"]
        script = f"setsid -f {slurm.npumemctl} events >/dev/null 2>&1 </dev/null; until pgrep -x npumemctl; do sleep 0.1; done"
        self.run_job(script, "--gres=npu:1", "-w", "n1", user="nobody")
        slurm.wait(lambda: not node.pids("npumemctl"))

    # ---- nodes ----

    def test_what_was_left_on_a_node(self):
        """Of jobs that ended while nobody saw it: files, and a daemon that still runs."""
        node = slurm.nodes["n1"]
        daemon = slurm.path("npumem/bin/npumemd")
        script = f"""
            set -e
            for name in 99999 0-chain 99999.1; do
                install -d -m 0711 -o npumem /run/npumem/job-$name.d
                setpriv --reuid=npumem --clear-groups {daemon} --background --socket /run/npumem/job-$name.d/npumem.sock >/dev/null
                ln -s job-$name.d/npumem.sock /run/npumem/job-$name.sock
                echo 99999 > /run/npumem/job-$name.user
            done
            touch /run/npumem/job-88888.user
            ln -s job-0-chain.sock /run/npumem/job-99999.1.sock.not
            printf '1\\n1\\nno\\n' > /run/npumem/job-99999.told"""
        done = subprocess.run(node.inside("sh", "-c", script), capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(node.pids("npumemd")), 3)
        out = self.run_job(f"{slurm.npumemctl} --json ls; ls /run/npumem", "--gres=npu:1", "--comment=npumem=chain", "-w", "n1")
        self.assertIn('"tensors": []', out)
        self.assertNotIn("99999.", out.replace("job-99999.1.sock.not", ""))
        self.assertNotIn("88888", out)
        os.unlink(node.path("/run/npumem/job-99999.1.sock.not"))
        slurm.wait(lambda: not slurm.devices_left())
        self.assertEqual(node.pids("npumemd"), [])

    def test_a_slurm_that_does_not_answer(self):
        """A job that needs no device is not concerned; one that does finds none, and no other."""
        node = slurm.nodes["n1"]
        subprocess.run(node.inside("mount", "--bind", "/bin/false", shutil.which("squeue")), check=True)
        try:
            self.assertEqual(self.run_job("echo here", "-w", "n1"), "here\n")
            relu = os.path.join(os.path.dirname(__file__), "../conformance/vectors/relu.json")
            code, _, errors = slurm.call("srun", "--gres=npu:1", "-w", "n1", slurm.npumemctl, "conform", relu, check=False)
            self.assertEqual(code, 3)
            self.assertIn("cannot reach a daemon at /run/npumem/job-", errors)
        finally:
            subprocess.run(node.inside("umount", shutil.which("squeue")), check=True)

    # ---- many ----

    def array(self, *options, wrap):
        return slurm.call("sbatch", "--parsable", f"--array=1-{TASKS}", "--gres=npu:1", "-o", slurm.path("many.%a"), "--open-mode=truncate",
                          *options, "--wrap", wrap).strip()  # fmt: skip

    def assert_none_is_drained(self):
        states = slurm.states()
        self.assertFalse([state for state in states if "drain" in state or "down" in state], states)

    def test_many_with_a_name_that_is_none(self):
        self.array("--comment=npumem=a/b", wrap="echo here")
        slurm.wait(lambda: self.assert_none_is_drained() or not slurm.jobs("%A"), MANY)
        for i in range(1, TASKS + 1):
            self.assertRegex(slurm.read(f"many.{i}"), "^npumem: no device: .* is no name")

    def test_many_on_hosts_that_cannot_give_devices(self):
        daemon = slurm.path("npumem/bin/npumemd")
        os.rename(daemon, daemon + ".good")
        with open(daemon, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho 'a library is missing' >&2\nexit 127\n")
        os.chmod(daemon, 0o755)
        try:
            self.array(wrap=f"{slurm.npumemctl} --json ls")
            slurm.wait(lambda: self.assert_none_is_drained() or self.n_restarted() >= TASKS // 2, MANY)
            self.assertRegex(slurm.read("many.1"), "^npumem: no device: on n. it did not start: a library is missing")
        finally:
            os.rename(daemon + ".good", daemon)
        # They are run again, and have theirs.
        slurm.wait(lambda: self.assert_none_is_drained() or not slurm.jobs("%A"), 2 * MANY)
        for i in range(1, TASKS + 1):
            text = slurm.read(f"many.{i}")
            self.assertRegex(text, r'^\{\s*"tensors": \[\][^}]*\}\n$')

    @staticmethod
    def n_restarted():
        out = slurm.call("squeue", "-h", "-r", "-O", "RestartCnt:12")
        return sum(int(n) > 0 for n in out.split())


if __name__ == "__main__":
    unittest.main()
