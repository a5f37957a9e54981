"""A Slurm cluster of its own on the loopback: munged, slurmctld and some slurmd of this machine, with npu among their
resources and an installation of the build in their prolog and epilog. Needs root; all of it goes when the context ends.

The nodes share this machine's /run/npumem, so the devices of all are there side by side."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

BUILD = os.environ["NPUMEM_BUILD"]
SECONDS = 30
SKIPPED = 77

CONF = """
ClusterName=npumem
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={directory}/munge/socket
StateSaveLocation={directory}/state
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/%n.pid
SlurmdSpoolDir={directory}/spool.%n
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=npu
Prolog={scripts}/prolog
TaskProlog={scripts}/task-prolog
Epilog={scripts}/epilog
ReturnToService=2
KillWait=2
SlurmdTimeout=10
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
MpiDefault=none
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def cannot_run():
    """Why not, or None."""
    if os.geteuid():
        return "not root"
    for program in ("slurmctld", "slurmd", "srun", "munged"):
        if not shutil.which(program):
            return f"no {program} (tests/packages.sh slurm-wlm munge)"
    if os.path.isdir("/run/systemd/system"):
        return "systemd runs here, and the units of this build are not its own"
    return None


def free_ports(n):
    """n of them in a row."""
    for first in range(20000, 30000, n):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + n):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError("no free ports")


class Slurm:
    def __init__(self, nodes=4, chip="sg2260"):
        self.nodes = {f"n{i + 1}": None for i in range(nodes)}
        self.chip = chip

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            undo.push(self.stack)
            self.directory = tempfile.mkdtemp(prefix="npumem-farm-")
            self.stack.callback(shutil.rmtree, self.directory)
            os.chmod(self.directory, 0o755)
            self.install()
            self.munge()
            self.configure()
            self.start("slurmctld", "slurmctld", "-D", "-f", self.path("slurm.conf"))
            for node in self.nodes:
                self.start_node(node)
            self.wait(lambda: self.states() == {"idle"})
            undo.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def install(self):
        """To a prefix of its own, and an account for its daemons where this machine has none."""
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", self.path("npumem")], capture_output=True,
                              text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        if subprocess.run(["id", "npumem"], capture_output=True, check=False).returncode:
            subprocess.run(["useradd", "-r", "-M", "-s", "/usr/sbin/nologin", "npumem"], check=True)
            self.stack.callback(subprocess.run, ["userdel", "npumem"], check=False)
        if not os.path.isdir("/run/npumem"):
            self.stack.callback(shutil.rmtree, "/run/npumem", ignore_errors=True)
        self.npumemctl = self.path("npumem/bin/npumemctl")

    def munge(self):
        key = self.path("key")
        with open(key, "wb") as file:
            file.write(os.urandom(128))
        os.chmod(key, 0o400)
        os.mkdir(self.path("munge"), 0o755)
        self.start("munged", "munged", "-F", "--force", "--key-file", key, *(
            f"--{name}={self.path('munge', value)}"
            for name, value in (("socket", "socket"), ("pid-file", "pid"), ("log-file", "log"), ("seed-file", "seed"))
        ))  # fmt: skip
        self.wait(lambda: os.path.exists(self.path("munge/socket")))

    def configure(self):
        host, port = socket.gethostname(), free_ports(len(self.nodes) + 1)
        text = CONF.format(directory=self.directory, host=host, port=port,
                           scripts=self.path("npumem/libexec/npumem/slurm"))  # fmt: skip
        for i, node in enumerate(self.nodes):
            os.mkdir(self.path(f"spool.{node}"))
            text += (f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + i + 1} CPUs=4 "
                     f"Gres=npu:{self.chip}:1\n")  # fmt: skip
        os.mkdir(self.path("state"))
        for name, lines in (("slurm.conf", text), ("gres.conf", f"Name=npu Type={self.chip} Count=1\n")):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(lines)
        self.environment = {**os.environ, "SLURM_CONF": self.path("slurm.conf")}
        for name in [name for name in self.environment if name.startswith("NPUMEM")]:
            del self.environment[name]

    def start(self, name, *command):
        with open(self.path(f"{name}.out"), "ab") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                       env=getattr(self, "environment", None), start_new_session=True)  # fmt: skip
        self.stack.callback(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.terminate()
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def start_node(self, node):
        self.nodes[node] = self.start(node, "slurmd", "-D", "-N", node, "-f", self.path("slurm.conf"))

    def kill_node(self, node):
        self.nodes[node].send_signal(signal.SIGKILL)
        self.nodes[node].wait()

    def call(self, *command, check=True, user=None, seconds=SECONDS):
        """What it prints. Of another user: by name."""
        words = ["setpriv", f"--reuid={user}", "--clear-groups", *command] if user else command
        done = subprocess.run(words, capture_output=True, text=True, env=self.environment, stdin=subprocess.DEVNULL,
                              timeout=seconds, check=False, cwd="/tmp")  # fmt: skip
        if check and done.returncode:
            raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}\n{self.logs()}")
        return done.stdout if check else (done.returncode, done.stdout, done.stderr)

    def logs(self):
        return "".join(self.tail(name) for name in ("slurmctld.log", *(f"{node}.log" for node in self.nodes)))

    def tail(self, name):
        with contextlib.suppress(OSError), open(self.path(name), encoding="utf-8", errors="replace") as log:
            return f"== {name}\n" + "".join(log.readlines()[-8:])
        return ""

    def states(self):
        code, out, _ = self.call("sinfo", "-h", "-N", "-o", "%T", check=False)
        return set(out.split()) if code == 0 else set()

    def wait(self, condition, seconds=SECONDS):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s\n{self.logs()}")
            time.sleep(0.05)
