"""What ssh costs: bench_remote [ROUNDS]. A daemon and an OpenSSH server of its own, on the loopback."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from sshd import Sshd, why_not  # noqa: E402
from support import Daemon  # noqa: E402


def main():
    if why_not():
        sys.exit(why_not())
    with Sshd() as sshd, Daemon("--npu-bytes", str(1 << 20)) as daemon:
        command = [os.environ["BENCH"], daemon.path, f"ssh:npu:{daemon.path}", "npu", *sys.argv[1:]]
        subprocess.run(command, env=sshd.environment(), check=True)


main()
