"""Devices that stay for a user's next job: how many, how large, for how long. The prolog and the epilog themselves, in a mount
namespace of their own, with a Slurm that is two shell scripts; tests/farm has them with the real one."""

import os
import re
import subprocess
import sys
import tempfile
import unittest

from support import NPUMEMD, SECONDS

BUILD = os.environ["NPUMEM_BUILD"]
SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../systemd/slurm")
HOST = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
ALICE, BOB = 12001, 12002

# A host of its own, which reads commands: what each prints, then its status.
BOOT = """
mkdir -p /run/npumem /var/lib/npumem
for directory in /run/npumem /var/lib/npumem $(ls -d /run/systemd 2>/dev/null); do
    mount -t tmpfs -o mode=755 none $directory
done
while read -r line; do
    (eval "$line") </dev/null 2>&1
    printf '\\nstatus %s\\n' $?
done
"""


def cannot_run():
    if os.geteuid():
        return "not root"
    if subprocess.run([*HOST, "true"], capture_output=True, check=False).returncode:
        return "no namespaces"
    return None


why = cannot_run()
if why:
    print(f"{why}: the devices that Slurm's jobs keep were NOT tested")
    sys.exit(0)


class Kept(unittest.TestCase):
    def setUp(self):
        self.directory = self.enterContext(tempfile.TemporaryDirectory(prefix="npumem-test-"))
        os.chmod(self.directory, 0o755)
        for name in ("bin", "etc/npumem", "libexec/npumem/slurm"):
            os.makedirs(os.path.join(self.directory, name))
        os.symlink(NPUMEMD, os.path.join(self.directory, "bin/npumemd"))
        os.symlink(os.path.join(BUILD, "client/ctl/npumemctl"), os.path.join(self.directory, "bin/npumemctl"))
        self.install()
        self.made = [path for path in ("/run/npumem", "/var/lib/npumem") if not os.path.isdir(path)]
        self.addCleanup(lambda: [os.rmdir(path) for path in self.made])
        self.shell = subprocess.Popen([*HOST, "sh", "-c", BOOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.end)
        self.n_jobs = 0

    def end(self):
        self.shell.kill()
        self.shell.communicate(timeout=SECONDS)

    def install(self):
        for name in ("job", "prolog", "epilog"):
            with open(os.path.join(SOURCES, name + ".in"), encoding="utf-8") as file:
                text = file.read()
            for word, folder in (("BIN", "bin"), ("LIBEXEC", "libexec"), ("SYSCONF", "etc")):
                text = text.replace(f"@CMAKE_INSTALL_FULL_{word}DIR@", os.path.join(self.directory, folder))
            text = text.replace("account=npumem", "account=daemon")
            text = text.replace("PATH=/usr/sbin", f"PATH={self.directory}/bin:/usr/sbin")
            self.write(f"libexec/npumem/slurm/{name}", text)
        # What is asked of Slurm: all jobs and what they want, or the comment of one.
        self.write("bin/squeue", f'#!/bin/sh\ncase "$*" in *%k*) cat {self.directory}/comment ;; *) cat {self.directory}/jobs ;; esac\n')
        self.write("bin/sinfo", "#!/bin/sh\necho npu:sg2380:2\n")
        self.write("jobs", "")

    def write(self, name, text):
        with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
            file.write(text)
            os.chmod(file.fileno(), 0o755)

    def call(self, command):
        self.shell.stdin.write(command + "\n")
        self.shell.stdin.flush()
        text = ""
        while not (match := re.fullmatch(r"status (\d+)\n", line := self.shell.stdout.readline())):
            self.assertNotEqual(line, "", text)
            text += line
        self.assertEqual(match[1], "0", (command, text))
        return text.strip()

    def begin(self, comment, uid=ALICE, n=1):
        """A job's prolog; why it has no device, empty where it has one."""
        self.n_jobs += 1
        self.job = (self.n_jobs, uid)
        self.write("jobs", f"{self.n_jobs} gres:npu:{n}\n")
        self.write("comment", comment + "\n")
        self.script("prolog")
        _, _, why_not = (self.call(f"cat /run/npumem/job-{self.n_jobs}.told") + "\n\n").split("\n")[:3]
        return why_not

    def script(self, name):
        job, uid = self.job
        self.call(f"SLURM_JOB_ID={job} SLURM_JOB_UID={uid} sh {self.directory}/libexec/npumem/slurm/{name}")

    def run_job(self, *words, **more):
        why_not = self.begin(*words, **more)
        self.script("epilog")
        return why_not

    def kept(self):
        return sorted(self.call("ls /var/lib/npumem").split())

    def limit(self, **figures):
        self.write("etc/npumem/slurm", "".join(f"{name}={figure}\n" for name, figure in figures.items()))

    def test_a_user_keeps_so_many(self):
        """A new name for each job does not fill the disk."""
        self.limit(kept_devices=3)
        for i in range(3):
            self.assertEqual(self.run_job(f"npumem=n{i}"), "")
        self.assertEqual(
            self.run_job("npumem=n3"),
            "a user keeps at most 3 devices on a node; you keep n0 n1 n2. npumem=NAME:last removes one",
        )
        self.assertEqual(self.kept(), [f"job-{ALICE}-n{i}" for i in range(3)])
        # Those that are there are had again; two devices are two; another user has its own.
        self.assertEqual(self.run_job("npumem=n1"), "")
        self.assertIn("at most 3 devices", self.run_job("npumem=n1", n=2))
        self.assertEqual(self.run_job("npumem=n1", uid=BOB, n=2), "")
        self.assertEqual(self.run_job(""), "")  # no device that stays

    def test_the_last_job_of_one(self):
        self.limit(kept_devices=1)
        self.assertEqual(self.run_job("npumem=a"), "")
        self.assertIn("you keep a.", self.run_job("npumem=b:last"))
        self.assertEqual(self.begin("npumem=a:last"), "")
        self.assertEqual(self.kept(), [f"job-{ALICE}-a"])
        self.script("epilog")
        self.assertEqual(self.kept(), [])
        self.assertEqual(self.run_job("npumem=b"), "")
        # One whose device did not start has not had it.
        self.write("bin/npumemd.no", "#!/bin/sh\nexit 1\n")
        self.call(f"cd {self.directory}/bin; mv npumemd was; mv npumemd.no npumemd")
        self.assertIn("did not start", self.run_job("npumem=b:last"))
        self.assertEqual(self.kept(), [f"job-{ALICE}-b"])
        self.assertEqual(self.call("ls /run/npumem"), "job.lock")

    def test_a_user_keeps_so_many_bytes(self):
        self.assertEqual(self.run_job("npumem=a"), "")
        self.call(f"fallocate -l 9M /var/lib/npumem/job-{ALICE}-a/more")
        mib = int(self.call(f"du -sk /var/lib/npumem/job-{ALICE}-a").split()[0]) // 1024
        self.limit(kept_mib=mib)
        for name in ("a", "b"):
            self.assertEqual(
                self.run_job(f"npumem={name}"),
                f"a user keeps at most {mib} MiB on a node; you keep {mib} MiB. npumem=NAME:last removes a device",
            )
        self.assertEqual(self.run_job("npumem=b", uid=BOB), "")
        self.limit(kept_mib=mib + 1)
        self.assertEqual(self.run_job("npumem=b"), "")
        self.limit(kept_mib=mib)
        self.assertEqual(self.run_job("npumem=a:last"), "")
        self.assertEqual(self.kept(), [f"job-{ALICE}-b", f"job-{BOB}-b"])

    def test_none_is_kept_for_ever(self):
        self.limit(kept_days=2)
        for name in ("old", "new"):
            self.assertEqual(self.run_job(f"npumem={name}"), "")
        self.call("mkdir /var/lib/npumem/job-77 /var/lib/npumem/npumem")  # of a job before a boot; the service's own
        old = f"job-{ALICE}-old"
        self.call(f"cd /var/lib/npumem; touch -d '4 days ago' {old} job-77 npumem")
        self.assertEqual(self.run_job("npumem=old"), "")  # its days begin anew
        self.assertEqual(self.kept(), [f"job-{ALICE}-new", old, "npumem"])
        # One that a job has is not removed, however long that job takes.
        self.call(f"cd /var/lib/npumem; touch -d '4 days ago' job-{ALICE}-new {old}")
        self.assertEqual(self.begin("npumem=old"), "")
        long_job = self.job
        self.call(f"touch -d '4 days ago' /var/lib/npumem/{old}")
        self.job = (99, BOB)
        self.script("epilog")
        self.assertEqual(self.kept(), [old, "npumem"])
        self.job = long_job
        self.script("epilog")
        self.assertEqual(self.kept(), [old, "npumem"])

    def test_words(self):
        for word in ("a:last:last", ":last", "a:lost", "a/b:last", "-x:last", "x" * 33 + ":last"):
            why_not = self.run_job(f"npumem={word}")
            self.assertTrue(why_not, word)
        self.assertEqual(self.kept(), [])


if __name__ == "__main__":
    unittest.main()
