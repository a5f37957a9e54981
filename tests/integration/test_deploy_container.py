"""The Debian packages on a bare Debian, as apt brings them with what they need from the mirror: installed, started, used,
upgraded, removed, purged. Needs root, debootstrap and the mirror of this machine; says so where they are not (exit code 77)."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from test_deploy_install import SOURCE
from test_deploy_packages import NAMES, VERSION, make_packages, run_in_layer

NO_MIRROR = 76
SCRIPT = r"""
apt="apt-get -q -y --no-install-recommends -o Dpkg::Use-Pty=0 -o Acquire::Retries=3"
rm -f /etc/resolv.conf && cp /tmp/packages/resolv.conf /etc/resolv.conf
$apt -o APT::Update::Error-Mode=any update >/tmp/log 2>&1 || { tail -n 2 /tmp/log >&2; exit 76; }
cd /
! command -v python3 gcc pkg-config npumemctl
left() { find /etc /usr /var /run -xdev -path '*npumem*' -not -name '*.list' | sort; }
test -z "$(left)"

# Each by itself has all that it needs.
for package in npumemd npumemctl; do
	$apt install /tmp/packages/1/libnpumem0_*.deb /tmp/packages/1/${package}_*.deb
	case $package in
	npumemd) npumemd --version ;;
	npumemctl)
		npumemctl plan --chip bm1684 --shape 1,4,1,4 --dtype int8 >/dev/null
		echo "plan without a daemon"
		;;
	esac
	$apt purge --autoremove "$package" libnpumem0
	test -z "$(left)"
done

$apt install /tmp/packages/1/*.deb gcc libc6-dev pkg-config
test "$(dpkg-query -W -f '${Status}\n' @NAMES@ | sort -u)" = 'install ok installed'
dpkg --verify @NAMES@
npumemctl --spawn info | head -n 1
python3 -c 'import npumem; dev = npumem.spawn("--npus", "4"); print("python", dev.info.n_npus)'
printf '#include <npumem/client.h>\nint main(void) { struct npumem *n; return npumem_open("spawn:", 0, &n, 0); }' >/tmp/p.c
gcc /tmp/p.c -o /tmp/p $(pkg-config --cflags --libs npumem)
/tmp/p && echo "a program"

# By the options of its file, as its own user, on a socket that it is handed.
echo 'NPUMEMD_OPTIONS=--npus 8 --npu-bytes 4096' >>/etc/npumem/npumem.conf
python3 /tmp/packages/listen.py setpriv --reuid npumem --regid npumem --clear-groups \
	/usr/bin/npumemd --socket /run/npumem/npumem.sock $(sed -n 's/^NPUMEMD_OPTIONS=//p' /etc/npumem/npumem.conf) 2>/tmp/daemon.log &
daemon=$!
trap 'kill $daemon 2>/dev/null || true' EXIT
npumemctl --reconnect 30 alloc x --shape 1,8,1,4 --dtype int8
npumemctl fill x 7

$apt install /tmp/packages/2/*.deb
dpkg-query -W -f '${Package} ${Version}\n' @NAMES@
grep '^NPUMEMD_OPTIONS=--npus 8' /etc/npumem/npumem.conf
npumemctl read x /tmp/x.npy && python3 -c 'import numpy; print("kept", numpy.load("/tmp/x.npy").sum())'

npumemctl shutdown
wait $daemon || { cat /tmp/daemon.log; exit 1; }
rm /run/npumem/npumem.sock # systemd's RemoveOnStop
$apt remove @NAMES@
test ! -e /usr/bin/npumemd && test ! -e /usr/bin/npumemctl && test -f /etc/npumem/npumem.conf && echo removed
$apt purge --autoremove $(dpkg-query -W -f '${Package}\n' | grep npumem)
left
test -z "$(left)"
getent passwd npumem # stays, as Debian has it
echo purged
"""


class Container(unittest.TestCase):
    def test_a_bare_debian(self):
        made = subprocess.run([os.path.join(SOURCE, "tests/support/rootfs.sh")], capture_output=True, text=True, check=False,
                              timeout=500, stdin=subprocess.DEVNULL)
        if made.returncode == 77:
            self.skipTest(made.stderr.strip())
        self.assertEqual(made.returncode, 0, made.stderr)
        directory = tempfile.mkdtemp(prefix="npumem-test-")
        self.addCleanup(shutil.rmtree, directory)
        make_packages(directory)
        shutil.copy("/etc/resolv.conf", directory)
        code, out, complaint = run_in_layer(directory, SCRIPT.replace("@NAMES@", " ".join(NAMES)), made.stdout.strip(), 500)
        if code == NO_MIRROR:
            self.skipTest(f"the mirror is not reached: {complaint.strip()}")
        self.assertEqual(code, 0, out[-4000:] + complaint[-4000:])
        for said in (rf"npumemd {VERSION}", "plan without a daemon", "python 4", "a program", f"npumemd {VERSION}-2",
                     f"python3-npumem {VERSION}-2", "NPUMEMD_OPTIONS=--npus 8", "kept 224", "removed", "npumem:x:", "purged"):
            self.assertRegex(out, rf"(?m)^{re.escape(said)}")


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
