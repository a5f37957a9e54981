"""A Slurm cluster of its own on the loopback: munged, slurmctld and some slurmd of this machine, with npu among their
resources and an installation of the build in their prolog and epilog. Needs root; all of it goes when the context ends.

A node is a host as far as it goes: it has a name, processes, /run/npumem and /var/lib/npumem of its own (namespaces), and
is killed as a whole; the network, the users and all other files it shares with this machine."""

import contextlib
import glob
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

BUILD = os.environ["NPUMEM_BUILD"]
SECONDS = 60
WAIT_SECONDS = 180  # Slurm alone takes half a minute to call a node dead, more on a busy machine
SKIPPED = 77

HOST = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--uts")
# What a node is to have for itself, with no systemd, whose units would be this machine's.
BOOT = """
for directory in /run/npumem /var/lib/npumem $(ls -d /run/systemd); do mount -t tmpfs -o mode=755 none $directory; done
hostname $1
shift
echo $$ >&3
exec 3>&-
"$@" &
sleep infinity &
wait
"""

CONF = """
ClusterName=npumem
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={directory}/munge/socket,cred_expire=5
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
{more}
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
    if subprocess.run([*HOST, "true"], capture_output=True, check=False).returncode:
        return "no namespaces"
    return None


def free_ports(n):
    """n of them in a row."""
    for first in range(20000, 30000, n):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + n):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    raise AssertionError("no free ports")


class Node:
    def __init__(self, unshare, first):
        self.unshare = unshare
        self.first = first  # of its processes, as seen from here

    def path(self, path):
        """The same file, from here."""
        return f"/proc/{self.first}/root{path}"

    def inside(self, *command):
        return ("nsenter", "-t", self.first, "--mount", "--pid", "--uts", *command)

    def pids(self, name):
        """Of its processes of that name, as it counts."""
        found = subprocess.run(self.inside("pgrep", "-x", name), capture_output=True, text=True, check=False)
        return found.stdout.split()

    def kill(self, *pids):
        subprocess.run(self.inside("kill", "-KILL", *pids), check=True)


class Slurm:
    def __init__(self, nodes=4, chip="sg2260", devices=1, more=""):
        self.nodes = {f"n{i + 1}": None for i in range(nodes)}
        self.chip = chip
        self.devices = devices
        self.more = more

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        with contextlib.ExitStack() as undo:
            undo.push(self.stack)
            self.directory = tempfile.mkdtemp(prefix="npumem-farm-")
            self.stack.callback(shutil.rmtree, self.directory)
            os.chmod(self.directory, 0o755)
            # In which a node finds the others, as its own has only its processes.
            os.mkdir(self.path("proc"))
            subprocess.run(["mount", "--bind", "/proc", self.path("proc")], check=True)
            self.stack.callback(subprocess.run, ["umount", "-l", self.path("proc")], check=True)
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

    def read(self, *names):
        """A file's text, which is empty where there is none."""
        with contextlib.suppress(FileNotFoundError), open(self.path(*names), encoding="utf-8") as file:
            return file.read()
        return ""

    def install(self):
        """To a prefix of its own, and an account for its daemons where this machine has none."""
        done = subprocess.run(["cmake", "--install", BUILD, "--prefix", self.path("npumem")], capture_output=True,
                              text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        if subprocess.run(["id", "npumem"], capture_output=True, check=False).returncode:
            subprocess.run(["useradd", "-r", "-M", "-s", "/usr/sbin/nologin", "npumem"], check=True)
            self.stack.callback(subprocess.run, ["userdel", "npumem"], check=False)
        for directory in ("/run/npumem", "/var/lib/npumem"):  # for a node to put its own over
            if not os.path.isdir(directory):
                os.mkdir(directory, 0o755)
                self.stack.callback(os.rmdir, directory)
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
        text = CONF.format(directory=self.directory, host=host, port=port, more=self.more,
                           scripts=self.path("npumem/libexec/npumem/slurm"))  # fmt: skip
        for i, node in enumerate(self.nodes):
            os.mkdir(self.path(f"spool.{node}"))
            text += (f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port + i + 1} CPUs=4 "
                     f"Gres=npu:{self.chip}:{self.devices}\n")  # fmt: skip
        os.mkdir(self.path("state"))
        for name, lines in (("slurm.conf", text), ("gres.conf", f"Name=npu Type={self.chip} Count={self.devices}\n")):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(lines)
        self.environment = {**os.environ, "SLURM_CONF": self.path("slurm.conf")}
        for name in [name for name in self.environment if name.startswith("NPUMEM")]:
            del self.environment[name]

    def start(self, name, *command, end=None, **options):
        with open(self.path(f"{name}.out"), "ab") as out:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                       env=getattr(self, "environment", None), start_new_session=True, **options)  # fmt: skip
        self.stack.callback(end or self.end, process)
        return process

    @staticmethod
    def end(process):
        process.terminate()
        try:
            process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    # ---- nodes ----

    def start_node(self, name):
        """As after a boot."""
        ours, theirs = os.pipe()
        slurmd = ("slurmd", "-D", "-N", name, "-f", self.path("slurm.conf"))
        unshare = self.start(name, *HOST, "sh", "-c", f"exec 3>&{theirs}; " + BOOT, "sh", name, *slurmd, end=self.end_node,
                             pass_fds=[theirs])  # fmt: skip
        os.close(theirs)
        with os.fdopen(ours) as booted:
            booted.readline()
        with open(f"/proc/{unshare.pid}/task/{unshare.pid}/children", encoding="utf-8") as children:
            self.nodes[name] = Node(unshare, children.read().split()[0])

    def power_off(self, name):
        """All of its processes at once."""
        self.end_node(self.nodes[name].unshare)

    @staticmethod
    def end_node(unshare):
        # It heeds no signal that asks it to end.
        unshare.kill()
        unshare.wait()

    def devices_left(self):
        return [path for node in self.nodes.values() for path in glob.glob(node.path("/run/npumem/*job-*"))]

    def call(self, *command, check=True, user=None, seconds=SECONDS):
        """What it prints. Of another user: by name."""
        words = ["setpriv", f"--reuid={user}", "--clear-groups", *command] if user else command
        try:
            done = subprocess.run(words, capture_output=True, text=True, env=self.environment, stdin=subprocess.DEVNULL,
                                  timeout=seconds, check=False, cwd="/tmp")  # fmt: skip
        except subprocess.TimeoutExpired as late:
            jobs = self.call("squeue", "-o", "%A %T %r %N %b %M") if command[0] != "squeue" else ""
            raise AssertionError(f"{late}\n{late.stdout}{late.stderr}\n{jobs}{self.logs()}") from None
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

    def jobs(self, form, *options):
        """The fields of all jobs that have not ended."""
        return [line.split() for line in self.call("squeue", "-h", "-r", "-o", form, *options).splitlines()]

    def cancel(self):
        """Those that there are."""
        jobs = [job for job, in self.jobs("%A")]
        if jobs:
            self.call("scancel", *jobs, check=False)
        return jobs

    def empty(self):
        """Until no job is there, and no device, and Slurm has all of them back."""
        self.wait(lambda: not self.cancel())
        self.wait(lambda: not self.devices_left())
        self.wait(lambda: set(self.call("sinfo", "-N", "-h", "-O", "GresUsed:40").split()) == {f"npu:{self.chip}:0"})

    def wait(self, condition, seconds=WAIT_SECONDS):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s\n{self.logs()}")
            time.sleep(0.05)
