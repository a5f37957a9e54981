"""A sweep of all vectors over the devices of a Slurm array: its reports add up to one run's, also where a slurmd, a device
or a whole host is killed in the middle of it."""

import json
import os
import subprocess
import sys
import unittest

import slurm as clusters

why = clusters.cannot_run()
if why:
    print(f"{why}: sweeps over the devices of a farm were NOT tested")
    sys.exit(clusters.SKIPPED)

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
VECTORS = os.path.join(SOURCE, "tests/conformance/vectors")
NETWORKS = [os.path.join(SOURCE, "tests/examples/networks", name) for name in ("picture.json", "digits_fx8.json")]
COUNTS = ("command", "passed", "failed", "skipped", "runs", "placements", "cases")
MANY = 120  # seconds until what takes a moment has happened, on a busy machine, too

# A run of a shard: again and again until somebody has written `enough`, then once more for its report, which no other run
# writes to. So whatever is done to it before is done in its middle.
TASK = """
set -e
shard=$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT
run=$SLURM_ARRAY_TASK_ID.${SLURM_RESTART_COUNT:-0}
until [ -e enough ]; do
	$CTL --quiet conform $VECTORS --shard $shard
	echo >> $run.rounds
done
$CTL --json conform $VECTORS --shard $shard > $run.json
$CTL check $NETWORKS --layouts all --shard $shard --junit $run.xml
"""
slurm = clusters.Slurm()


def setUpModule():
    unittest.enterModuleContext(slurm)


class Sweep(unittest.TestCase):
    def setUp(self):
        self.folder = slurm.path(self._testMethodName)
        os.mkdir(self.folder)
        self.addCleanup(slurm.empty)

    def submit(self, *options, task=TASK):
        words = {"CTL": slurm.npumemctl, "VECTORS": VECTORS, "NETWORKS": " ".join(NETWORKS)}
        with open(os.path.join(self.folder, "task"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + "".join(f"{name}='{value}'\n" for name, value in words.items()) + task)
        return slurm.call("sbatch", "--parsable", "--array=1-4", "--gres=npu:1", "-D", self.folder, "-o", "%a.out",
                          "--open-mode=append", *options, os.path.join(self.folder, "task"), seconds=MANY).strip()  # fmt: skip

    def rounds(self, run):
        return slurm.read(self.folder, f"{run}.rounds").count("\n")

    def wait(self, condition):
        slurm.wait(condition, MANY)

    def wait_for_rounds(self, tasks, more=1):
        """Each goes on: so many times as until now, and more."""
        least = {task: self.rounds(f"{task}.0") + more for task in tasks}
        self.wait(lambda: all(self.rounds(f"{task}.0") >= n for task, n in least.items()))

    def enough(self):
        with open(os.path.join(self.folder, "enough"), "w", encoding="utf-8"):
            pass

    def nodes(self):
        """Of each task, by its number."""
        return {int(task): node for task, node in slurm.jobs("%K %N", "-t", "R")}

    def restarts(self):
        """How often each task that has not ended began anew."""
        out = slurm.call("squeue", "-h", "-r", "-O", "ArrayTaskID:12 ,RestartCnt:12")
        return {int(task): int(n) for task, n in map(str.split, out.splitlines())}

    def ended(self, job):
        """The states in which tasks have ended, by number."""
        out = slurm.call("scontrol", "show", "-o", "job", job)
        words = [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in out.splitlines()]
        return {int(one["ArrayTaskId"]): one["JobState"] for one in words}

    def files(self, kind):
        return sorted(name for name in os.listdir(self.folder) if name.endswith("." + kind))

    def ctl(self, *words):
        done = subprocess.run([slurm.npumemctl, *words], cwd=self.folder, capture_output=True, text=True, timeout=MANY)
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr)
        return done.stdout

    def assert_same_as_one_run(self):
        one = json.loads(self.ctl("--spawn", "--json", "conform", VECTORS))
        merged = json.loads(self.ctl("--json", "merge", *self.files("json")))
        self.assertEqual([merged[name] for name in COUNTS if name in one], [one[name] for name in COUNTS if name in one])
        self.assertEqual((merged["passed"], merged["failed"], merged["missing"]), (1353, 0, []))
        self.assertEqual([item["item"] for item in merged["items"]], [item["item"] for item in one["items"]])
        checked = self.ctl("--spawn", "check", *NETWORKS, "--layouts", "all", "--junit", "one.xml.whole")
        self.ctl("merge", "--junit", "all.xml.whole", *self.files("xml"))
        suites = [slurm.read(self.folder, f"{name}.xml.whole").count("<testcase ") for name in ("one", "all")]
        self.assertEqual(suites[0], suites[1], checked)
        self.assertGreater(suites[0], 20)
        return {one["file"]: one["by"] for one in merged["replaced"]}

    def test_an_array_is_one_run(self):
        self.enough()
        self.submit("--wait")
        self.assertEqual(len(self.files("json")), 4)
        self.assertEqual(self.assert_same_as_one_run(), {})

    def test_a_slurmd_and_a_device_that_are_killed(self):
        job = self.submit("--requeue")
        self.wait_for_rounds(range(1, 5))
        nodes = self.nodes()
        first, second = slurm.nodes[nodes[1]], slurm.nodes[nodes[2]]
        second.kill(*second.pids("npumemd"))
        # That one has noticed, and is there again: its node is as good as before.
        self.wait(lambda: self.rounds("2.1"))
        # The task goes on without its slurmd, but Slurm cannot know.
        first.kill(*first.pids("slurmd"))
        self.wait(lambda: self.restarts().get(1) == 1)
        self.wait_for_rounds([1, 3, 4])
        self.assertEqual(self.files("json"), [])
        self.enough()
        self.wait(lambda: self.ended(job) == dict.fromkeys(range(1, 5), "COMPLETED"))
        # It may be late with its report, or early, and counts in no case.
        self.wait(lambda: "1.0.xml" in self.files("xml"))
        replaced = self.assert_same_as_one_run()
        self.assertIn(replaced, [{"1.0.json": "1.1.json"}, {"1.1.json": "1.0.json"}])
        slurm.power_off(nodes[1])
        slurm.start_node(nodes[1])
        slurm.wait(lambda: slurm.states() == {"idle"})

    def test_a_host_that_is_killed_is_its_jobs_loss_alone(self):
        job = self.submit("--no-requeue")
        self.wait_for_rounds(range(1, 5))
        nodes = self.nodes()
        slurm.power_off(nodes[3])
        # The others go on while Slurm still believes in it, and after that.
        self.wait_for_rounds([1, 2, 4], more=2)
        self.wait(lambda: self.ended(job)[3] == "NODE_FAIL")
        self.wait_for_rounds([1, 2, 4])
        self.enough()
        self.wait(lambda: self.ended(job) == {1: "COMPLETED", 2: "COMPLETED", 3: "NODE_FAIL", 4: "COMPLETED"})
        self.assertEqual(self.files("json"), ["1.0.json", "2.0.json", "4.0.json"])
        self.assertEqual([slurm.read(self.folder, f"{task}.out").count("FAIL") for task in (1, 2, 4)], [0, 0, 0])
        one = json.loads(self.ctl("--spawn", "--json", "conform", VECTORS, "--shard", "2/4"))
        two = json.loads(slurm.read(self.folder, "2.0.json"))
        self.assertEqual([two[name] for name in COUNTS], [one[name] for name in COUNTS])
        # It comes back, and what was lost is run once more, for itself.
        slurm.start_node(nodes[3])
        slurm.wait(lambda: slurm.states() == {"idle"})
        self.submit("--wait", "--array=3", "-w", nodes[3], task=TASK.replace("$SLURM_ARRAY_TASK_COUNT", "4"))
        self.assertEqual(self.assert_same_as_one_run(), {})


if __name__ == "__main__":
    unittest.main()
