"""The first farm of npumem-farm(7), as it stands there: on a Debian of its own that systemd has booted, with Debian's Slurm."""

import json
import os
import re
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../system"))
import machine as machines  # noqa: E402

why = machines.cannot_run() or (None if shutil.which("ip") else "no ip (tests/packages.sh iproute2)")
if why:
    print(f"{why}: the first farm of npumem-farm(7) was NOT tested")
    sys.exit(machines.SKIPPED)

SOURCES = "/root/npumem"
ADDRESS = "192.0.2.1"
machine = machines.Machine("farm", ["slurm-wlm", "sudo"])


def setUpModule():
    unittest.enterModuleContext(machine)


def shell(*lines):
    """What they print, from the sources' folder, as one who has logged in."""
    return machine.call("bash", "-lc", "\n".join([f"set -e -o pipefail; cd {SOURCES}", *lines]))


def commands():
    with open(os.path.join(machines.SOURCE, "client/man/npumem-farm.7.scd"), encoding="utf-8") as file:
        block = file.read().split("# SETTING IT UP\n")[1].split("```\n")[1]
    return [line.strip() for line in re.sub(r"\\\n", " ", block).splitlines()]


class First(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        shutil.copytree(os.path.join(machines.SOURCE, "tests/conformance/vectors"), f"{machine.root}{SOURCES}/tests/conformance/vectors")
        # Slurm wants an address that is not the loopback's, and a name for it.
        for words in ("link add net0 type bridge", f"addr add {ADDRESS}/24 dev net0", "link set net0 up"):
            machines.run("nsenter", "-t", machine.leader(), "-n", "ip", *words.split())
        shell(f"printf '127.0.0.1 localhost\\n{ADDRESS} %s\\n' $(hostname) > /etc/hosts")
        cls.commands = commands()
        cls.said = [shell(command) for command in cls.commands[:3]]
        machine.wait(lambda: "idle" in machine.call("sinfo", "-h", "-o", "%T", check=False),
                     lambda: machine.call("sh", "-c", "sinfo; tail -n 20 /var/log/slurm/*.log; systemctl --failed", check=False))

    def left(self):
        return machine.call("sh", "-c", "ls /run/npumem | grep job- ; systemctl list-units --no-legend 'npumemd-job@*'", check=False)

    def test_five_commands(self):
        self.assertEqual(len(self.commands), 5, self.commands)
        self.assertIn("submitted", shell(self.commands[3]).lower())
        out = shell(self.commands[4])
        self.assertIn("1353 passed, 0 failed", out)
        machine.wait(lambda: not self.left(), self.left)

    def test_a_device_is_a_unit(self):
        out = shell("srun --gres=npu:1 sh -c 'npumemctl --json info; systemctl is-active npumemd-job@$SLURM_JOB_ID.service'")
        self.assertTrue(out.endswith("active"), out)
        self.assertEqual(json.loads(out[: out.rindex("}") + 1])["socket"][:16], "/run/npumem/job-")
        machine.wait(lambda: not self.left(), self.left)

    def test_it_is_its_users_alone(self):
        out = shell("srun --gres=npu:1 sh -c 'stat -L -c %U:%a $NPUMEM_SOCKET; setpriv --reuid=nobody --clear-groups npumemctl info 2>&1 || true'")
        self.assertIn("root:600", out)
        self.assertIn("Permission denied", out)

    def test_a_device_that_is_killed_comes_back(self):
        """systemd has its tensors, and the job a pause."""
        out = shell("srun --gres=npu:1 sh -c 'npumemctl alloc x --shape 1,8,1,16 --dtype int8; npumemctl fill x 7;"
                    "systemctl kill -s KILL npumemd-job@$SLURM_JOB_ID.service; npumemctl --reconnect 30 read x'")
        self.assertIn("7 7 7", out)

    def test_devices_come_back_to_slurm(self):
        """Whatever a job ends with: of some statuses it may be made to keep them."""
        for status in range(1, 6):
            shell(f"srun --gres=npu:1 sh -c 'exit {status}' || true")
        machine.wait(lambda: machine.call("sinfo", "-N", "-h", "-O", "GresUsed:40").split() == ["npu:sg2260:0"])

    def test_one_that_stays(self):
        shell("srun --gres=npu:1 --comment=npumem=chain sh -c 'npumemctl alloc x --shape 1,8,1,16 --dtype int8; npumemctl fill x 7'")
        machine.wait(lambda: not self.left(), self.left)
        self.assertIn("7 7 7", shell("srun --gres=npu:1 --comment=npumem=chain npumemctl read x"))

    def test_what_configure_refuses(self):
        program = "/usr/libexec/npumem/slurm/configure"
        for words in ("", "0", "x", "4x", "sg2260:", "'a b:1'", "-1", "$(printf 'a\\nProlog=/x:1')"):
            self.assertEqual(shell(f"{program} {words} > /tmp/out 2>&1 || echo $?"), "2", words)
        self.assertIn("NodeName=n[1-2] CPUs=64 Gres=npu:64", shell(f"{program} 64 'n[1-2]'"))


if __name__ == "__main__":
    unittest.main()
