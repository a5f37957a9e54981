"""Devices of jobs: each has its own, its user's alone, and nothing of it is left however the job ends."""

import json
import os
import sys
import unittest

import slurm as clusters

why = clusters.cannot_run()
if why:
    print(f"{why}: devices as a resource of Slurm were NOT tested")
    sys.exit(clusters.SKIPPED)

USER, ANOTHER = "nobody", "daemon"
slurm = clusters.Slurm(devices=2)


def setUpModule():
    unittest.enterModuleContext(slurm)


class Jobs(unittest.TestCase):
    def tearDown(self):
        slurm.empty()

    def run_job(self, script, *options, **others):
        return slurm.call("srun", "--gres=npu:1", *options, "sh", "-c", script, **others)

    def test_a_job_has_a_device(self):
        info = json.loads(self.run_job(f"{slurm.npumemctl} --json info"))
        self.assertEqual((info["chip"], info["npu_bytes"]), ("sg2260", 256 << 10))
        self.assertRegex(info["socket"], r"/run/npumem/")
        slurm.wait(lambda: not slurm.devices_left())

    def test_no_job_without_asking(self):
        self.assertEqual(slurm.call("srun", "sh", "-c", "echo $NPUMEM_SOCKET; ls /run/npumem | grep job-; true").strip(), "")

    def test_its_type_may_be_said_and_another_is_nowhere(self):
        out = slurm.call("srun", "--gres=npu:sg2260:1", slurm.npumemctl, "--json", "info")
        self.assertEqual(json.loads(out)["npu_bytes"], 256 << 10)
        code, _, complaint = slurm.call("srun", "--gres=npu:bm1684:1", "true", check=False)
        self.assertNotEqual(code, 0)
        self.assertIn("not available", complaint)

    def test_each_its_own(self):
        script = f"{slurm.npumemctl} alloc x --shape 1,8,1,16 --dtype int8 >&2; {slurm.npumemctl} ls --json"
        for _ in range(2):
            listed = json.loads(self.run_job(script))
            self.assertEqual([tensor["name"] for tensor in listed["tensors"]], ["x"])

    def test_another_user_cannot_use_it(self):
        script = f"""
            setpriv --reuid={USER} --clear-groups {slurm.npumemctl} info 2>&1
            stat -L -c '%U %a' $NPUMEM_SOCKET"""
        out = self.run_job(script)
        self.assertIn("Permission denied", out)
        self.assertIn("root 600", out)

    def test_it_is_its_users(self):
        out = self.run_job(f"{slurm.npumemctl} --json info; stat -L -c '%U %a' $NPUMEM_SOCKET", user=USER)
        self.assertIn(f"{USER} 600", out)

    def start_sleeping(self, *options):
        """A job that has come as far as its script: before, Slurm may lose the signal that cancels it."""
        begun = slurm.path("begun")
        script = f"echo $SLURM_JOB_ID > {begun}; exec sleep 600"
        job = slurm.call("sbatch", "--parsable", "--gres=npu:1", *options, "-o", "/dev/null", "--wrap", script).strip()
        slurm.wait(lambda: slurm.read("begun").strip() == job)
        return job

    def test_gone_after_scancel(self):
        job = self.start_sleeping()
        self.assertTrue(slurm.devices_left())
        slurm.call("scancel", job)
        slurm.wait(lambda: not slurm.devices_left())

    def test_a_daemon_that_dies_is_its_jobs_loss_alone(self):
        script = f"""
            pkill -KILL -f npumemd.*job-$SLURM_JOB_ID.d
            {slurm.npumemctl} info 2>&1 && exit 9
            exit 0"""
        self.assertRegex(self.run_job(script), "cannot reach|closed the connection")
        slurm.wait(lambda: not slurm.devices_left())
        self.test_a_job_has_a_device()

    def test_an_array(self):
        slurm.call("sbatch", "--wait", "--array=1-8", "--gres=npu:1", "-o", slurm.path("array.%a"), "--wrap",
                   f"{slurm.npumemctl} alloc x --shape 1,8,1,16 --dtype int8 && {slurm.npumemctl} --json ls")
        for i in range(1, 9):
            out = slurm.read(f"array.{i}")
            self.assertEqual([tensor["name"] for tensor in json.loads(out[out.index("{"):])["tensors"]], ["x"], out)

    def test_one_that_stays_for_the_next_job(self):
        comment = "--comment=npumem=chain-1"
        alloc = f"{slurm.npumemctl} alloc x --shape 1,8,1,16 --dtype int8; {slurm.npumemctl} fill x 7"
        self.run_job(alloc, comment, "-w", "n1")
        slurm.wait(lambda: not slurm.devices_left())
        self.assertIn("7 7 7", self.run_job(f"{slurm.npumemctl} read x", comment, "-w", "n1"))
        self.assertEqual(json.loads(self.run_job(f"{slurm.npumemctl} ls --json"))["tensors"], [])

    def test_one_that_another_job_has(self):
        comment = "--comment=npumem=busy"
        job = self.start_sleeping(comment)
        node = slurm.call("squeue", "-h", "-j", job, "-o", "%N").strip()
        code, out, _ = self.run_job("echo here", comment, "-w", node, "--oversubscribe", check=False)
        self.assertEqual((code, out), (1, f"npumem: no device: the device busy is job {job}'s\n"))

    def test_a_name_that_is_none_is_said_and_drains_no_node(self):
        for name in ("a/b", "../x", "-x", "x;y", "x" * 33):
            code, out, _ = self.run_job("echo here", f"--comment=npumem={name}", check=False)
            self.assertEqual(code, 1)
            self.assertRegex(out, "^npumem: no device: .*\n$")
        slurm.wait(lambda: slurm.states() == {"idle"})


if __name__ == "__main__":
    unittest.main()
