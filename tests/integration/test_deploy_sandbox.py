"""The daemon inside what its unit confines it to, as far as that can be had without systemd as the first process: the
unit's own system call filter, no capabilities, a user who owns nothing, no network, and a file system without a
device or a place to write. And why the unit has no PrivateUsers. Needs root, with CAP_SYS_ADMIN."""

import contextlib
import ctypes
import fcntl
import mmap
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import unittest

from support import NPUMEMD, SECONDS, Client, Daemon, HungUp, frame, needs_systemd, pb, run_as

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../support"))
from confine import EAFNOSUPPORT, EPERM, Filter, libc, settings  # noqa: E402

UID, ANOTHER_UID = 1234, 1235
OVERFLOW_UID = 65534
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWNET = 0x20000, 0x8000000, 0x10000000, 0x40000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18


def unshare(namespaces):
    assert libc.unshare(namespaces) == 0, os.strerror(ctypes.get_errno())


def mount(source, target, kind, flags, options=None):
    words = [word.encode() if word else None for word in (source, target, kind)]
    if libc.mount(*words, ctypes.c_ulong(flags), options and options.encode()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


def leave_nothing():
    """As ProtectSystem=strict, PrivateDevices, PrivateNetwork, PrivateIPC, ProtectProc and ProcSubset do."""
    unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC)
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    with open("/proc/self/mounts", encoding="utf-8") as mounts:
        points = [line.split()[1] for line in mounts]
    for point in points:
        with contextlib.suppress(OSError):  # one below another that hides it
            mount(None, point, None, MS_BIND | MS_REMOUNT | MS_RDONLY)
    mount("proc", "/proc", "proc", 0, "subset=pid,hidepid=invisible")
    mount("dev", "/dev", "tmpfs", 0, "mode=755")
    os.mknod("/dev/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    os.chmod("/dev/null", 0o666)
    mount(None, "/dev", None, MS_BIND | MS_REMOUNT | MS_RDONLY)


@needs_systemd
class Confined(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="npumem-test-")
        self.addCleanup(shutil.rmtree, self.directory)
        os.chmod(self.directory, 0o755)
        self.path = os.path.join(self.directory, "s")
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(self.listening.close)
        self.listening.bind(self.path)
        os.chmod(self.path, 0o666)
        self.listening.listen()

    def start(self, filters):
        confine = Filter(filters)
        read, write = os.pipe()
        self.log = os.fdopen(read, "rb")
        self.addCleanup(self.log.close)

        def set_up():
            os.dup2(self.listening.fileno(), 3)
            os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))
            # The leak check at the end traces its own process, which is refused in here.
            os.environ["ASAN_OPTIONS"] = "detect_leaks=0"
            leave_nothing()
            try:
                open(os.path.join(self.directory, "x"), "w").close()
                os._exit(99)
            except OSError:
                pass
            os.setgroups([])
            os.setgid(UID)
            os.setuid(UID)  # and with it go all capabilities
            confine.apply()

        process = subprocess.Popen([NPUMEMD, "--log", "debug"], stderr=write, pass_fds=[3], preexec_fn=set_up)
        os.close(write)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_it_works(self):
        process = self.start(settings("SystemCallFilter"))
        with Client(self.path) as client:
            tensor = client.alloc("x", (1, 64, 1, 100000))
            data = os.urandom(6400000)
            client.write(tensor.handle, data)
            self.assertEqual(client.read(tensor.handle), data)  # on a thread
            self.share_memory(client, tensor.handle, data)
            with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
                status = dict(line.rstrip("\n").split(":", 1) for line in status)
            self.assertEqual(status["Seccomp"].strip(), "2")
            self.assertEqual(status["NoNewPrivs"].strip(), "1")
            self.assertEqual(int(status["CapEff"], 16), 0)
            self.assertGreater(int(status["Threads"]), 1)
            many = [Client(self.path) for _ in range(50)]
            for one in many:
                one.stat()
                one.close()
            process.terminate()
            with self.assertRaises((HungUp, ConnectionResetError)):
                client.receive()
        self.assertEqual(process.wait(SECONDS), 0)
        log = self.log.read().decode()
        self.assertNotIn("not permitted", log)
        self.assertNotIn("cannot", log)
        self.assertEqual(os.listdir(self.directory), ["s"])

    def share_memory(self, client, handle, data):
        fd = os.memfd_create("test", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        self.addCleanup(os.close, fd)
        os.posix_fallocate(fd, 0, len(data))
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        client.id += 1
        socket.send_fds(client.sock, [frame(pb.Request(id=client.id, share=pb.ShareRequest()))], [fd])
        segment = client.receive().shared.segment
        client.call(read=pb.ReadRequest(tensor=pb.Ref(handle=handle), segment=segment))
        with mmap.mmap(fd, len(data)) as memory:
            self.assertEqual(memory[:], data)

    def test_the_filter_filters(self):
        process = self.start([*settings("SystemCallFilter"), "~@io-event"])
        self.assertNotEqual(process.wait(SECONDS), 0)
        self.assertEqual(settings("SystemCallErrorNumber"), ["EPERM"])
        for name in ("RestrictNamespaces", "MemoryDenyWriteExecute"):
            self.assertEqual(settings(name), ["yes"])
        self.assertEqual(settings("RestrictAddressFamilies"), ["AF_UNIX"])

        confine = Filter(settings("SystemCallFilter"))

        def refused():
            confine.apply()
            errors = []
            for attempt in (
                lambda: socket.socket(socket.AF_INET),
                lambda: os.chown(self.path, 0, 0),
                lambda: os.setuid(0),
                lambda: os.nice(1),
            ):
                try:
                    attempt()
                    errors.append(0)
                except OSError as error:
                    errors.append(error.errno)
            return errors

        self.assertEqual(run_as(UID, refused), str([EAFNOSUPPORT, EPERM, EPERM, EPERM]))


class Peers(unittest.TestCase):
    """What a user namespace makes of them."""

    @staticmethod
    def enter_user_namespace():
        """As PrivateUsers does: root and the daemon's own user are themselves, and nobody else is."""
        unshare(CLONE_NEWUSER)
        with open("/proc/self/uid_map", "w", encoding="ascii") as uids:
            uids.write("0 0 1")

    def what_another_sees(self, preexec=None):
        def keep_one():
            with Client(daemon.path) as client:
                client.alloc("secret")
                return client.call(info=pb.InfoRequest()).info.uid

        def look():
            with Client(daemon.path) as client:
                return client.call(info=pb.InfoRequest()).info.uid, client.names()

        with Daemon(preexec=preexec) as daemon:
            first = run_as(UID, keep_one)
            return first, run_as(ANOTHER_UID, look)

    def test_each_has_its_uid(self):
        first, second = self.what_another_sees()
        self.assertEqual(first, str(UID))
        self.assertNotIn("secret", second)
        self.assertIn(str(ANOTHER_UID), second)

    def test_in_a_user_namespace_they_would_be_one(self):
        def refused():
            with Client(daemon.path) as client:
                answer = client.receive()
                return answer.id, answer.status, str(OVERFLOW_UID) in answer.message

        with Daemon(preexec=self.enter_user_namespace) as daemon:
            for uid in (UID, ANOTHER_UID):
                self.assertEqual(run_as(uid, refused), str((0, pb.PERMISSION_DENIED, True)))
        self.assertEqual(settings("PrivateUsers"), [])


if __name__ == "__main__":
    unittest.main()
