"""All devices of a farm in one picture: npumemctl --all-devices --devices slurm:, from a node, with another way into the
others in place of ssh."""

import glob
import json
import os
import subprocess
import sys
import unittest

import slurm as clusters

why = clusters.cannot_run()
if why:
    print(f"{why}: pictures of a farm were NOT tested")
    sys.exit(clusters.SKIPPED)

slurm = clusters.Slurm(devices=2)
# As ssh: options, --, a host, a command. Its processes stay those of the node that asks.
SSH = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
ns={directory}/proc/$(cat {directory}/$2.first)/ns
PATH={bin}:$PATH LD_LIBRARY_PATH={lib} exec nsenter --mount=$ns/mnt --uts=$ns/uts sh -c "$3"
"""


def setUpModule():
    unittest.enterModuleContext(slurm)
    with open(slurm.path("ssh"), "w", encoding="utf-8") as file:
        library = glob.glob(slurm.path("npumem/lib/**/libnpumem.so.0"), recursive=True)[0]
        file.write(SSH.format(bin=slurm.path("npumem/bin"), lib=os.path.dirname(library), directory=slurm.directory))
    os.chmod(slurm.path("ssh"), 0o755)
    for name, node in slurm.nodes.items():
        with open(slurm.path(f"{name}.first"), "w", encoding="utf-8") as file:
            file.write(node.first)


class Picture(unittest.TestCase):
    def setUp(self):
        self.addCleanup(slurm.empty)

    def ask(self, *words, node="n1", user=None, code=0, environment=(), early=()):
        asked = ["env", *(f"{name}={value}" for name, value in environment), slurm.npumemctl, "--all-devices", "--devices", "slurm:", *words]
        if user:
            asked = ["setpriv", f"--reuid={user}", "--clear-groups", *asked]
        done = subprocess.run(slurm.nodes[node].inside(*asked), capture_output=True, text=True, timeout=60, check=False,
                              env={**slurm.environment, "NPUMEM_SSH": slurm.path("ssh")})  # fmt: skip
        self.assertIn(done.returncode, [code, *early], done.stdout + done.stderr)
        return done.stdout if not code else done.stderr

    def start(self, name, *options, user=None):
        """A job that has a tensor of that name on each of its devices."""
        alloc = f"for s in ${{NPUMEM_SOCKETS:-$NPUMEM_SOCKET}}; do {slurm.npumemctl} --socket $s alloc {name} --shape 1,8,1,16 --dtype int8; done"
        return slurm.call("sbatch", "--parsable", *options, "-o", "/dev/null", "--wrap", f"{alloc}; exec sleep 600", user=user).strip()

    def rows(self, text):
        """What stands beside each device."""
        words = [line.split() for line in text.splitlines()]
        return {one[0]: one[1] for one in words if one and "/" in one[0] and not one[0].endswith(":")}

    def start_all(self):
        one = self.start("a", "-w", "n1", "--gres=npu:1")
        two = self.start("b", "-w", "n2", "--gres=npu:sg2260:2", "--comment=npumem=chain", "--job-name=1 n9 0 n9 gres:npu:9")
        array = self.start("c", "-w", "n3", "--gres=npu:1", "--array=5-6")
        theirs = self.start("d", "-w", "n4", "--gres=npu:1", user="nobody")
        self.start("e", "-w", "n4")
        self.expected = {f"n1/{one}": "a", f"n2/{two}": "b", f"n2/{two}.1": "b", f"n3/{array}_5": "c", f"n3/{array}_6": "c", f"n4/{theirs}": "d"}
        slurm.wait(lambda: self.rows(self.ask("ls", early=[1])) == self.expected)

    def test_all_of_them(self):
        self.start_all()
        found = {one["name"]: one["address"] for one in json.loads(self.ask("--json", "ls"))["devices"]}
        self.assertEqual(set(found), set(self.expected))
        for name, address in found.items():
            self.assertRegex(address, r"^/run/npumem/job-\d+\.sock$" if name.startswith("n1/") else r"^ssh:n\d:/run/npumem/job-\d+(\.1)?\.sock$")
        self.assertEqual(set(self.rows(self.ask("stat"))), set(self.expected))
        self.assertEqual(set(self.rows(self.ask("top", "--batch", "-n", "1"))), set(self.expected))
        self.assertEqual(set(self.rows(self.ask("stat", node="n2"))), set(self.expected))
        metrics = self.ask("stat", "--prometheus")
        for name in self.expected:
            self.assertIn(f'npumem_up{{device="{name}"}} 1\n', metrics)
            self.assertIn(f'npumem_tensors{{device="{name}"}} 1\n', metrics)
        # The list is a user's own, who could not look at another's.
        self.assertEqual(set(self.rows(self.ask("ls", node="n4", user="nobody"))), {name for name, what in self.expected.items() if what == "d"})

    def test_one_that_does_not_answer(self):
        self.start_all()
        node = slurm.nodes["n3"]
        node.kill(node.pids("npumemd")[0])
        text = self.ask("stat")
        lost = [line for line in text.splitlines() if line.startswith("n3/") and ": " in line]
        self.assertEqual(len(lost), 1, text)
        self.assertEqual(len(self.rows(text)), 5)
        metrics = self.ask("stat", "--prometheus")
        self.assertEqual(metrics.count("npumem_up{"), 6)
        self.assertEqual([line for line in metrics.splitlines() if line.startswith("npumem_up") and line.endswith(" 0")],
                         [f'npumem_up{{device="{lost[0].split(":")[0]}"}} 0'])

    def test_a_host_that_is_gone(self):
        self.start_all()
        slurm.power_off("n2")
        try:
            text = self.ask("stat")
            self.assertEqual(len([line for line in text.splitlines() if line.startswith("n2/") and ": " in line]), 2, text)
            self.assertEqual(len(self.rows(text)), 4)
        finally:
            slurm.wait(lambda: not any(job for job in slurm.jobs("%A %N") if "n2" in job))
            slurm.start_node("n2")
            with open(slurm.path("n2.first"), "w", encoding="utf-8") as file:
                file.write(slurm.nodes["n2"].first)
            slurm.wait(lambda: not any("down" in state for state in slurm.states()))

    def test_none(self):
        self.assertEqual(self.rows(self.ask("ls")), {})
        self.assertEqual(json.loads(self.ask("--json", "stat")), {"devices": []})
        self.assertEqual([line for line in self.ask("stat", "--prometheus").splitlines() if not line.startswith("#")], [])

    def test_a_slurm_that_does_not_answer(self):
        says = self.ask("ls", code=1, environment={"SLURM_CONF": "/nonexistent"}.items())
        self.assertRegex(says, "squeue, which knows the devices of slurm:, failed: .+")
        says = self.ask("ls", code=1, environment={"PATH": "/nonexistent"}.items())
        self.assertIn("failed: ", says)


if __name__ == "__main__":
    unittest.main()
