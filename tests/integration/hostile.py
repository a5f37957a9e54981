"""Descriptors whose last close waits for whoever made them: of lingering sockets, and of a FUSE file."""

import array
import contextlib
import ctypes
import errno
import os
import shutil
import signal
import socket
import struct
import tempfile
import time

WEEK = 604800


def send_fds(sock, fds, data=b"\x7f", flags=0):
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))
    sock.sendmsg([data], [rights], flags)


class Lingerers:
    """TCP sockets with unsent data, that linger for a week when they are closed for the last time."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(4096)
        self.peers = []

    def make(self):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        sock.connect(self.listener.getsockname())
        self.peers.append(self.listener.accept()[0])
        sock.setblocking(False)
        idle = 0
        while idle < 3:
            try:
                sock.send(bytes(65536))
                idle = 0
            except BlockingIOError:
                idle += 1
                time.sleep(0.0005)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, WEEK))
        return sock

    def make_many(self, n):
        return [self.make() for _ in range(n)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for peer in self.peers:
            peer.close()
        self.listener.close()


@contextlib.contextmanager
def lingers_end():
    """A signal ends the sleep in a close of this process."""
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def give(sock, socks, **how):
    """Passes sockets; the daemon has the last references then, unless it was quicker."""
    with contextlib.suppress(ConnectionError):
        send_fds(sock, [one.fileno() for one in socks], **how)
    with lingers_end():
        for one in socks:
            one.close()


# ---- FUSE, by its protocol alone ----

INIT, OPEN, GETATTR, RELEASE, FLUSH, READ, INTERRUPT, LSEEK, FORGET = 26, 14, 3, 18, 25, 15, 36, 46, 2
CLONE_NEWNS, MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 0x20000, 2, 4, 0x4000, 1 << 18
libc = ctypes.CDLL(None, use_errno=True)


def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def serve(device):
    """Answers what opens a file, and never what closes it."""
    while True:
        try:
            request = os.read(device, 1 << 17)
        except OSError as problem:
            if problem.errno in (errno.EINTR, errno.ENOENT):
                continue
            return
        _, opcode, unique = struct.unpack_from("<IIQ", request)
        error, body = 0, b""
        if opcode == INIT:
            minor = min(31, struct.unpack_from("<II", request, 40)[1])
            body = struct.pack("<IIIIHHIIHHI28x", 7, minor, 0, 0, 0, 0, 65536, 0, 0, 0, 0)
        elif opcode == OPEN:
            body = struct.pack("<QII", 1, 0, 0)
        elif opcode == GETATTR:
            attributes = struct.pack("<QQQQQQIIIIIIIIII", 1, 4096, 8, *[0] * 6, 0o100644, 1, *[0] * 5)
            body = struct.pack("<QII", 0, 0, 0) + attributes
        elif opcode in (FLUSH, READ, RELEASE, LSEEK, INTERRUPT, FORGET):
            continue
        else:
            error = -errno.ENOSYS
        with contextlib.suppress(OSError):
            os.write(device, struct.pack("<IiQ", 16 + len(body), error, unique) + body)


class FuseFile:
    """A file whose close waits until the server ends. Needs root and /dev/fuse."""

    def __enter__(self):
        here, there = socket.socketpair()
        self.folder = tempfile.mkdtemp(prefix="npumem-fuse-")
        self.server = os.fork()
        if self.server == 0:
            try:
                here.close()
                self._run(there, os.path.join(self.folder, "file"))
            finally:
                os._exit(1)
        there.close()
        try:
            _, fds, _, _ = socket.recv_fds(here, 1, 1)
        finally:
            here.close()
        if not fds:
            os.waitpid(self.server, 0)
            shutil.rmtree(self.folder)
            raise OSError("no FUSE here")
        self.fd = fds[0]
        return self

    @staticmethod
    def _run(there, path):
        """This process serves, and a child opens the file for the test."""
        with open(path, "wb"):
            pass
        check(libc.unshare(CLONE_NEWNS))
        check(libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={device},rootmode=100644,user_id=0,group_id=0".encode()
        check(libc.mount(b"hostile", path.encode(), b"fuse", MS_NOSUID | MS_NODEV, options))
        opener = os.fork()
        if opener == 0:
            # The server alone keeps the device, so that its end is the end of all who wait.
            os.close(device)
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            socket.send_fds(there, [b"x"], [fd])
            os._exit(0)
        there.close()
        serve(device)

    def stop(self):
        if self.server:
            os.kill(self.server, 9)
            os.waitpid(self.server, 0)
            shutil.rmtree(self.folder)
        self.server = 0

    def __exit__(self, *_):
        self.stop()
        with contextlib.suppress(OSError):
            os.close(self.fd)
