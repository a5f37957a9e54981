"""The Debian packages: what is in them, what lintian says, and a machine that installs, upgrades and purges them: this one,
with a layer over its root that goes in the end (an overlay in a mount namespace; needs root)."""

import glob
import os
import re
import shutil
import subprocess
import tempfile
import textwrap
import unittest

from support import SECONDS
from test_deploy_install import BUILD, SOURCE, run

with open(os.path.join(SOURCE, "CMakeLists.txt"), encoding="utf-8") as top:
    VERSION = re.search(r"^project\(npumem VERSION (\S+)", top.read(), re.MULTILINE)[1]
NAMES = ("libnpumem-dev", "libnpumem0", "npumemctl", "npumemd", "python3-npumem", "python3-npumem-onnx")

# What the machine is: $1 is a folder for its changes, $2 the packages, $3 a script, $4 the root below it.
LAYER = r"""
set -e
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=$4,upperdir=$1/upper,workdir=$1/work" "$1/root"
cd "$1/root"
for folder in proc dev; do mount --rbind "/$folder" "$folder"; done
mount -t tmpfs none run
mount -t tmpfs none tmp
mkdir tmp/packages
mount --bind "$2" tmp/packages
unset NPUMEMD NPUMEM_SOCKET PYTHONPATH PYTHONDONTWRITEBYTECODE
PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive exec chroot . bash -ec "$3"
"""

# As systemd hands its socket to a service.
LISTEN = """
import os, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.bind("/run/npumem/npumem.sock")
os.chmod("/run/npumem/npumem.sock", 0o666)
sock.listen()
if sock.fileno() == 3:
    os.set_inheritable(3, True)
else:
    os.dup2(sock.fileno(), 3)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1")
os.execvp(sys.argv[1], sys.argv[1:])
"""


def make_packages(directory):
    """Of two releases, in folders 1 and 2, beside listen.py."""
    for release in (1, 2):
        code, out, complaint = run(
            "cpack", "-G", "DEB", "-D", f"CPACK_DEBIAN_PACKAGE_RELEASE={release}", "-B",
            os.path.join(directory, str(release)), cwd=BUILD,
        )  # fmt: skip
        assert code == 0, out + complaint
    with open(os.path.join(directory, "listen.py"), "w", encoding="utf-8") as file:
        file.write(LISTEN)


def run_in_layer(directory, script, root="/", seconds=4 * SECONDS):
    """Exit code, stdout, stderr of a script under a layer over this root, which goes in the end."""
    layer = tempfile.mkdtemp(dir=directory)
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", LAYER, "-", layer, directory, textwrap.dedent(script), root],
        capture_output=True, text=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    os.rmdir(layer)
    return done.returncode, done.stdout, done.stderr


class Packages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="npumem-test-")
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        make_packages(cls.directory)

    def packages(self, release=1):
        return sorted(glob.glob(os.path.join(self.directory, str(release), "*.deb")))

    def field(self, package, name):
        path = next(one for one in self.packages() if os.path.basename(one).startswith(package + "_"))
        return run("dpkg-deb", "-f", path, name)[1].strip()

    def files(self, package):
        path = next(one for one in self.packages() if os.path.basename(one).startswith(package + "_"))
        lines = run("dpkg-deb", "-c", path)[1].splitlines()
        return {line.split()[5].removeprefix(".") for line in lines if not line.startswith("d")}

    def test_their_names_and_what_they_need(self):
        self.assertEqual(sorted(os.path.basename(path).split("_")[0] for path in self.packages()), sorted(NAMES))
        self.assertRegex(self.field("npumemctl", "Depends"), r"libnpumem0 \(= .*libjansson4")
        self.assertRegex(self.field("npumemd", "Depends"), r"libuv1")
        self.assertNotIn("libnpumem0", self.field("npumemd", "Depends"))
        self.assertIn(f"libnpumem0 (= {VERSION}-1)", self.field("libnpumem-dev", "Depends"))
        self.assertIn("python3-protobuf", self.field("python3-npumem", "Depends"))
        self.assertEqual(self.field("python3-npumem", "Architecture"), "all")
        self.assertNotIn("onnx", self.field("python3-npumem", "Depends"))
        self.assertIn("python3-onnx", self.field("python3-npumem-onnx", "Depends"))
        self.assertIn(f"python3-npumem (= {VERSION}-1)", self.field("python3-npumem-onnx", "Depends"))

    def test_they_have_all_that_is_installed(self):
        root = os.path.join(self.directory, "root")
        self.assertEqual(run("cmake", "--install", BUILD, env={**os.environ, "DESTDIR": root})[0], 0)
        installed = {
            os.path.join(directory, name).removeprefix(root) for directory, _, names in os.walk(root) for name in names
        }
        packed = [self.files(name) for name in NAMES]
        whole = set().union(*packed)
        self.assertEqual(sum(map(len, packed)), len(whole), "two packages have one file")
        self.assertEqual({name for name in installed - whole if "__pycache__" not in name}, set())
        self.assertEqual(
            {name for name in whole - installed if not re.search(r"/(copyright|changelog\.Debian\.gz)$", name)}, set()
        )

    def test_symbols(self):
        path = next(one for one in self.packages() if "libnpumem0" in one)
        control = os.path.join(self.directory, "control")
        self.assertEqual(run("dpkg-deb", "-e", path, control)[0], 0)
        with open(os.path.join(control, "symbols"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(lines[0], "libnpumem.so.0 libnpumem0 #MINVER#")
        self.assertIn(f" npumem_open@NPUMEM_0 {VERSION}", lines)
        exported = run("nm", "-D", "--defined-only", os.path.join(BUILD, "client/lib/libnpumem.so.0"))[1].split()
        self.assertEqual(
            {line.split()[0] for line in lines[1:]}, {name.replace("@@", "@") for name in exported if "@@" in name} | {"NPUMEM_0@NPUMEM_0"}
        )

    @unittest.skipUnless(shutil.which("lintian"), "lintian is not installed: tests/packages.sh lintian")
    def test_lintian(self):
        code, out, complaint = run("lintian", "--allow-root", "--fail-on", "error", *self.packages())
        self.assertEqual(code, 0, out + complaint)
        self.assertNotRegex(out, "(?m)^E:")

    def machine(self, script):
        code, out, complaint = run_in_layer(self.directory, script)
        self.assertEqual(code, 0, out[-4000:] + complaint[-4000:])
        return out

    def layer_or_skip(self):
        if os.geteuid():
            self.skipTest("needs root: the packages were NOT installed")
        code, _, complaint = run_in_layer(self.directory, "true")
        if code:
            self.skipTest(f"no layer over the root, so the packages were NOT installed: {complaint.strip()}")

    def test_a_machine(self):
        """Installed, used, upgraded under a daemon that runs, removed, purged."""
        self.layer_or_skip()
        out = self.machine(
            r"""
            test ! -e /usr/bin/npumemd
            before=$(find /etc /lib /run /usr /var -path '*npumem*' | sort)
            dpkg -i /tmp/packages/1/*.deb
            test "$(dpkg-query -W -f '${Status}\n' npumemd npumemctl libnpumem0 libnpumem-dev python3-npumem python3-npumem-onnx | sort -u)" \
                = 'install ok installed'
            getent passwd npumem
            test -d /run/npumem
            cd /
            npumemctl --spawn info >/tmp/info && head -n 1 /tmp/info
            python3 -c 'import npumem; dev = npumem.spawn("--npus", "4"); print("python", dev.info.n_npus)'
            npumem-import --help | grep MODEL.onnx
            printf '#include <npumem/client.h>\nint main(void) { struct npumem *n; return npumem_open("spawn:", 0, &n, 0); }' \
                >/tmp/program.c
            gcc /tmp/program.c -o /tmp/program $(pkg-config --cflags --libs npumem)
            /tmp/program && echo program

            # As its unit starts it: with the options of its file, its user, and a socket that it is handed.
            echo 'NPUMEMD_OPTIONS=--npus 8 --npu-bytes 4096' >>/etc/npumem/npumem.conf
            . <(sed -n 's/^NPUMEMD_OPTIONS=\(.*\)/NPUMEMD_OPTIONS="\1"/p' /etc/npumem/npumem.conf)
            python3 /tmp/packages/listen.py setpriv --reuid npumem --regid npumem --clear-groups \
                /usr/bin/npumemd --socket /run/npumem/npumem.sock $NPUMEMD_OPTIONS 2>/tmp/log &
            daemon=$!
            trap 'kill $daemon 2>/dev/null || true' EXIT
            npumemctl --reconnect 30 alloc x --shape 1,8,1,4 --dtype int8
            npumemctl fill x 7
            grep -q '^Uid:.*'"$(id -u npumem)" /proc/$daemon/status

            dpkg -i /tmp/packages/2/*.deb
            dpkg-query -W -f '${Package} ${Version}\n' npumemd libnpumem0
            grep '^NPUMEMD_OPTIONS=--npus 8' /etc/npumem/npumem.conf
            npumemctl info >/tmp/info && grep 'NPUs of' /tmp/info
            npumemctl read x /tmp/x.npy && python3 -c 'import numpy; print("kept", numpy.load("/tmp/x.npy").sum())'

            npumemctl shutdown
            wait $daemon || { cat /tmp/log; exit 1; }
            rm /run/npumem/npumem.sock  # systemd's RemoveOnStop
            dpkg -r npumemd npumemctl libnpumem0 libnpumem-dev python3-npumem python3-npumem-onnx
            test ! -e /usr/bin/npumemd && test ! -e /usr/bin/npumemctl && test ! -e /run/npumem
            test -f /etc/npumem/npumem.conf && echo removed
            dpkg -P npumemd npumemctl libnpumem0 libnpumem-dev python3-npumem python3-npumem-onnx
            rm -rf /tmp/program* /tmp/x.npy
            after=$(find /etc /lib /run /usr /var -path '*npumem*' | sort)
            test "$before" = "$after" || { diff <(echo "$before") <(echo "$after"); exit 1; }
            echo purged
            """
        )
        for said in (
            r"(?m)^npumem:x:\d+:", f"npumemd {VERSION}, process", "python 4", r"MODEL\.onnx", "(?m)^program$", f"npumemd {VERSION}-2", f"libnpumem0 {VERSION}-2",
            "NPUMEMD_OPTIONS=--npus 8", "8 NPUs of 4096 bytes", "kept 224", "(?m)^removed$", r"purged\s*$",
        ):  # fmt: skip
            self.assertRegex(out, said)


if __name__ == "__main__":
    unittest.main()
