"""An OpenSSH server of one's own on the loopback, with keys made for it."""

import os
import shutil
import socket
import subprocess
import tempfile
import time

from support import SECONDS

SSHD = shutil.which("sshd") or "/usr/sbin/sshd"
CTL = os.path.join(os.environ["NPUMEM_BUILD"], "client/ctl/npumemctl")


def why_not():
    """Why there can be none here, or nothing."""
    missing = [name for name in (SSHD, "ssh", "ssh-keygen", "setpriv") if not shutil.which(name)]
    return f"no {', '.join(missing)} here, so sessions over ssh were NOT checked: tests/packages.sh openssh-server openssh-client" if missing else ""  # fmt: skip


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def children(pid, name=None):
    words = ["pgrep", "-P", str(pid), *(["-x", name] if name else [])]
    found = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=False)
    return [int(word) for word in found.stdout.split()]


class Sshd:
    """Lets this user in as "npu", and nobody else. `lines`: more of its configuration. `path`: of what it runs."""

    def __init__(self, *lines, path=os.path.dirname(CTL)):
        self.lines = lines
        self.path = path
        self.process = None

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="npumem-sshd-")
        try:
            self.port = free_port()
            for key in ("host", "user", "stranger"):
                subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.file(key)], check=True)
            self.write_configuration()
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.process.wait(SECONDS)
        shutil.rmtree(self.directory)

    def file(self, name):
        return os.path.join(self.directory, name)

    def write_configuration(self):
        with open(self.file("sshd_config"), "w") as file:
            file.write(
                f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.file('host')}\nPidFile none\n"
                f"AuthorizedKeysFile {self.file('user.pub')}\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
                f"KbdInteractiveAuthentication no\nPermitRootLogin yes\nKexAlgorithms curve25519-sha256\nMaxStartups 100\nSetEnv HOME={self.directory} PATH={self.path}:/usr/bin:/bin\n"
            )
            file.writelines(f"{line}\n" for line in self.lines)
        with open(self.file("ssh_config"), "w") as file:
            for host, key in (("npu", "user"), ("stranger", "stranger"), ("asks", "asks")):
                file.write(
                    f"Host {host}\n  HostName 127.0.0.1\n  Port {self.port}\n  IdentityFile {self.file(key)}\n  IdentitiesOnly yes\n"
                    f"  StrictHostKeyChecking no\n  UserKnownHostsFile {self.file('known')}\n"
                    f"  BatchMode {'no' if host == 'asks' else 'yes'}\n"
                )

    def start(self):
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", exist_ok=True)
        with open(self.file("log"), "wb") as log:
            # It ends with this process, however that ends.
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", SSHD, "-D", "-e", "-f", self.file("sshd_config")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        end = time.monotonic() + SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    with open(self.file("log")) as log:
                        raise AssertionError(log.read()) from None
                time.sleep(0.02)

    def sessions(self):
        """The processes that serve one connection each."""
        return children(self.process.pid)

    @property
    def ssh(self):
        """For $NPUMEM_SSH."""
        return f"ssh -F {self.file('ssh_config')}"

    def environment(self, **more):
        return {**os.environ, "NPUMEM_SSH": self.ssh, **more}


class WithSshd:
    """Before a TestCase among the bases: one sshd for all tests of the class."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sshd = Sshd()
        cls.sshd.__enter__()
        cls.addClassCleanup(cls.sshd.__exit__)


class OverSsh(WithSshd):
    """Also what this process itself connects to goes by it."""

    def setUp(self):
        os.environ["NPUMEM_SSH"] = self.sshd.ssh
        self.addCleanup(os.environ.pop, "NPUMEM_SSH")
        super().setUp()
