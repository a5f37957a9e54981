"""The README's commands as pasted, in their order, in one shell, on a bare Debian that has only what they install. Needs root,
debootstrap and Debian's mirror."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "../integration"), os.path.join(HERE, "../support")]
import readme  # noqa: E402
from test_deploy_packages import run_in_layer  # noqa: E402

SECONDS = 2400  # on a machine with other work; two quiet cores take five minutes
# Of the demo. Three minutes on two quiet cores are 360 s; a machine with other work needs more for the same.
MOST_MB, MOST_PROCESSOR_SECONDS = 100, 480
BEFORE = r"""
rm -f /etc/resolv.conf && cp /tmp/packages/resolv.conf /etc/resolv.conf
apt-get -q -o APT::Update::Error-Mode=any update >/tmp/log 2>&1 || { tail -n 2 /tmp/log >&2; exit 76; }
! command -v gcc cmake python3 npumemctl
export HOME=/root
cp -r /tmp/packages/npumem /root/npumem
cd /root/npumem
exec 2>&1
"""


class Readme(unittest.TestCase):
    def test_a_bare_debian(self):
        made = subprocess.run([os.path.join(HERE, "../support/rootfs.sh")], capture_output=True, text=True, check=False,
                              timeout=500, stdin=subprocess.DEVNULL)  # fmt: skip
        if made.returncode == 77:
            self.skipTest(made.stderr.strip())
        self.assertEqual(made.returncode, 0, made.stderr)
        directory = tempfile.mkdtemp(prefix="npumem-test-")
        self.addCleanup(shutil.rmtree, directory)
        shutil.copytree(readme.SOURCE, os.path.join(directory, "npumem"), symlinks=True, ignore=shutil.ignore_patterns(".git", "build*"))
        shutil.copy("/etc/resolv.conf", directory)
        pairs = readme.blocks()
        self.assertEqual(pairs[0][0].splitlines()[0], "tests/demo.sh")
        # What the demo takes: `times` counts the processor time of all children.
        pairs[0][0] = pairs[0][0].replace("tests/demo.sh\n", "tests/demo.sh\necho \"demo: $SECONDS seconds\"; times\n")
        code, out, complaint = run_in_layer(directory, BEFORE + readme.script(pairs), made.stdout.strip(), SECONDS)
        if code == 76:
            self.skipTest(f"the mirror is not reached: {complaint.strip()}")
        self.assertEqual(code, 0, out[-6000:] + complaint[-2000:])
        self.assertEqual(readme.missing(pairs, out), [])
        count, megabytes = re.search(r"(\d+) newly installed.*\nNeed to get ([\d.]+) MB", out).groups()
        wall, *times = re.search(r"demo: (\d+) seconds\n.*\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s", out).groups()
        processor = 60 * int(times[0]) + float(times[1]) + 60 * int(times[2]) + float(times[3])
        print(f"demo: {count} packages, {megabytes} MB to fetch; {wall} s, {processor:.0f} s of processor time")
        self.assertLess(float(megabytes), MOST_MB)
        self.assertLess(processor, MOST_PROCESSOR_SECONDS)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
