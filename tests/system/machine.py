"""A machine of its own for the units: a minimal Debian in a folder (tests/support/rootfs.sh), with a layer over it that
takes an installation of the build and goes in the end, booted by systemd-nspawn. Needs root.

Its network is none, and its uids are this machine's: its sockets can be reached from here by their path below
/proc/PID/root, and the daemon sees who it is."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = os.environ["NPUMEM_BUILD"]
SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
SKIPPED = 77
SECONDS = 60


def run(*command, check=True, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * 3, check=False, **options)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def cannot_run():
    """Why not, or None."""
    if os.geteuid():
        return "not root"
    for program in ("systemd-nspawn", "debootstrap", "nsenter"):
        if not shutil.which(program):
            return f"no {program} (tests/packages.sh debootstrap systemd-container)"
    return None


PACKAGES = ["systemd", "systemd-sysv", "dbus", "procps", "libuv1", "libprotobuf-c1", "libjansson4", "libedit2", "zlib1g"]


def tree(name, packages):
    """The folder of a minimal system with these packages, which nothing here writes to."""
    made = subprocess.run(
        [os.path.join(SOURCE, "tests/support/rootfs.sh"), name, *packages],
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    if made.returncode:
        print(f"{made.stderr.strip()}: the units were NOT tested under systemd")
        sys.exit(made.returncode)
    return made.stdout.strip()


class Machine:
    """Booted while the context lasts."""

    def __init__(self, name="system", packages=(), prefix="/usr"):
        self.tree = tree(name, [*PACKAGES, *packages])
        self.prefix = prefix

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            undo.push(self.stack)
            self.directory = tempfile.mkdtemp(prefix="npumem-machine-")
            self.stack.callback(shutil.rmtree, self.directory)
            run("mount", "-t", "tmpfs", "-o", "mode=755", "none", self.directory)
            self.stack.callback(run, "umount", "-l", self.directory)
            self.root = self.path("root")
            for name in ("upper", "work", "root"):
                os.mkdir(self.path(name))
            layers = f"lowerdir={self.tree},upperdir={self.path('upper')},workdir={self.path('work')}"
            run("mount", "-t", "overlay", "overlay", "-o", layers, self.root)
            self.stack.callback(run, "umount", "-l", self.root)
            self.install()
            self.boot()
            undo.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def install(self):
        run("cmake", "--install", BUILD, "--prefix", self.prefix, env=dict(os.environ, DESTDIR=self.root))
        run("systemd-sysusers", f"--root={self.root}")
        run("systemctl", f"--root={self.root}", "enable", "npumemd.socket")

    def boot(self):
        # Without a log of its own the console would be a pipe that nobody reads.
        with open(self.path("console"), "w", encoding="utf-8") as console:
            self.nspawn = subprocess.Popen(
                ["systemd-nspawn", "-q", "-D", self.root, "--boot", "--register=no", "--keep-unit", "--console=pipe",
                 "--private-network", "--link-journal=no", f"--machine=npumem{os.getpid()}"],
                stdin=subprocess.DEVNULL, stdout=console, stderr=console, start_new_session=True,
            )  # fmt: skip
        self.stack.callback(self.power_off)
        self.wait(lambda: self.leader() and self.call("systemctl", "is-system-running", check=False) == "running",
                  self.console)

    def console(self):
        with open(self.path("console"), encoding="utf-8") as console:
            failed = self.call("systemctl", "--failed", check=False) if self.leader() else ""
            return console.read()[-2000:] + failed

    def leader(self):
        """The machine's first process, as seen from here; None before there is one."""
        with open(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children", encoding="utf-8") as children:
            return next(iter(children.read().split()), None)

    def power_off(self):
        # SIGTERM would have it shut down in its own time.
        for pid in (self.leader(), self.nspawn.pid):
            with contextlib.suppress(ProcessLookupError, TypeError):
                os.kill(int(pid), signal.SIGKILL)
        self.nspawn.wait()

    def call(self, *command, check=True, **options):
        return run("nsenter", "-t", self.leader(), "-a", *command, check=check, **options)

    def wait(self, condition, why=lambda: "", seconds=SECONDS):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {why()}")
            time.sleep(0.02)

    def write(self, path, text):
        path = self.root + path
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def configure(self, unit, *lines):
        """Other settings of [Service] for a unit."""
        self.write(f"/etc/systemd/system/{unit}.service.d/test.conf", "\n".join(["[Service]", *lines, ""]))
        self.call("systemctl", "daemon-reload")

    def reset(self):
        """As after the boot."""
        self.call("systemctl", "stop", "npumemd", *(f"npumemd@{name}.{kind}" for name in "ab" for kind in ("socket", "service")),
                  check=False)
        self.call("sh", "-c", "rm -rf /etc/systemd/system/npumemd*.d /etc/npumem/[ab].conf; systemctl daemon-reload; "
                  "systemctl reset-failed", check=False)
        self.call("systemctl", "restart", "npumemd.socket")

    def property(self, unit, name):
        return self.call("systemctl", "show", "-P", name, unit)

    def main_pid(self, unit="npumemd"):
        """As the machine counts."""
        return self.property(unit, "MainPID")

    def socket(self, device="npumem"):
        """A path that reaches it from here, short enough for an address."""
        return f"/proc/{self.leader()}/root/run/npumem/{device}.sock"
