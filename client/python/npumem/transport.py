"""The ways to a daemon: a socket's path, ssh to another host, or a child process."""

from __future__ import annotations

import errno
import os
import re
import shlex
import socket
import struct
import stat
import subprocess
import tempfile
from typing import IO, Optional

from .errors import Refused, Status

SSH_LOOK_BYTES = 4
LINKS_MAX = 40  # symbolic links in one path, as in the kernel
TEXT = frozenset(b"\n\r\t\033") | frozenset(range(0x20, 0x7F)) | frozenset(range(0x80, 0x100))
HOST = re.compile(r"([A-Za-z0-9._:+[\]][A-Za-z0-9._:+@[\]-]*@)?[A-Za-z0-9._:+[\]][A-Za-z0-9._:+[\]-]*")


class Transport:
    """A connected socket, without a way to connect again."""

    name = ""
    is_remote = False  # if so, memory is not shared, and the connection may be lost while both processes live

    def connect(self) -> socket.socket:
        """Begins another connection and does not wait. OSError."""
        raise OSError("there is no other")

    def knows(self, sock: socket.socket) -> None:
        """Notes the uid of the first connection's peer; later peers must have it."""

    def hang_up(self, waits: bool = False) -> None:
        """Ends the process behind a closed socket. `waits`: the process gets time to end by itself."""

    def greeted(self, first: bytes) -> bool:
        """Whether the first bytes of a connection are a daemon's. False: too few bytes. ValueError: they are not."""
        return True

    def explain(self, why: str) -> str:
        """The reason why the connection ended, for the message."""
        return why


class Path(Transport):
    def __init__(self, path: str) -> None:
        self.name = path
        self._owner = -1

    def knows(self, sock: socket.socket) -> None:
        self._owner = peer_uid(sock)

    def connect(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            sock.connect(self.name)
            if peer_uid(sock) not in (self._owner, 0):  # root may listen for another user
                raise OSError(f"who listens there is not uid {self._owner}")
        except OSError:
            sock.close()
            raise
        return sock


class Ssh(Transport):
    """Runs ssh for each connection; ssh ends with the connection."""

    is_remote = True

    def __init__(self, address: str) -> None:
        self._host, colon, path = address.removeprefix("ssh:").partition(":/")
        if not HOST.fullmatch(self._host):
            raise ValueError(f'"{address}" has no host that could be asked: it is ssh:[USER@]HOST[:/SOCKET]')
        self.name = self._host
        self._there = "exec " + shlex.join(["npumemctl", *(["--socket", "/" + path] if colon else []), "dial", "--close"])
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._log: Optional[IO[bytes]] = None  # stderr of ssh
        self._said = 0  # bytes of it from before the daemon's first message, which do not explain the connection's end
        self._again: list[str] = []

    def command(self) -> list[str]:
        """The command line of ssh, which ignores ^C."""
        ssh = (os.environ.get("NPUMEM_SSH") or "ssh").split()
        words = [*ssh, "-T", "-o", "ControlMaster=no", *self._again, "--", self._host, self._there]
        return ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", *words]

    def connect(self) -> socket.socket:
        self._log = tempfile.TemporaryFile()
        self._said = 0
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        with theirs:
            try:
                self._process = subprocess.Popen(
                    self.command(), stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=self._log
                )
            except OSError:
                ours.close()
                raise
        # From now on ssh asks for no password, and gives up a host that does not answer.
        self._again = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
        return ours

    def hang_up(self, waits: bool = False) -> None:
        if self._process is not None:
            if not waits:
                self._process.terminate()
            bury(self._process, 5.0 if waits else 0.1)
        if self._log is not None:
            self._log.close()
        self._process = self._log = None

    def greeted(self, first: bytes) -> bool:
        look = first[:SSH_LOOK_BYTES]
        if any(byte not in TEXT for byte in look) or is_info(look):
            self._said = os.fstat(self._log.fileno()).st_size if self._log else 0
            return True
        if len(look) < SSH_LOOK_BYTES:
            return False
        line = re.split(rb"[\r\n]", first[:64])[0].decode("ascii", "replace")
        raise ValueError(
            f'a shell on {self._host} wrote "{line}" before npumemctl dial could begin; what it runs at its start '
            "(~/.bashrc) must not write to stdout"
        )

    def explain(self, why: str) -> str:
        said = last_line(self._log, self._said) if self._log else ""
        return said or f"the connection to {self._host} ended"


def is_info(look: bytes) -> bool:
    """Whether text-like first bytes are a short Info. Other messages begin with a byte that is no text, in a tag or a
    length. The length of an Info is that of its contents, their head and the id of the first request."""
    return len(look) == SSH_LOOK_BYTES and look[1] == 0x2A and look[0] == look[2] + 4


class Private(Transport):
    """A daemon that ends with its connection."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def hang_up(self, waits: bool = False) -> None:
        bury(self._process)


def peer_uid(sock: socket.socket) -> int:
    _, uid, _ = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return int(uid)


def unsafe_folder(path: str, peer: int) -> str:
    """Follows a path link by link and checks each folder in which an entry is looked up, also in the middle of a chain
    of links. A folder is safe if root, this user or `peer` owns it, and
      - its mode lets no other user write, or
      - it is sticky and the entry belongs to root or this user: others cannot rename or remove that entry.
    Returns the first unsafe folder, without links in its path; "" if all are safe. OSError: the path does not exist."""
    ours, links = (0, os.geteuid()), 0
    rest, at, last = os.path.join(os.getcwd(), path).split("/"), "/", os.stat("/")
    while rest:
        name = rest.pop(0)
        if name == "..":
            at = os.path.dirname(at)
        if name in ("", ".", ".."):
            continue
        entry, folder = os.path.join(at, name), os.stat(at)
        last = os.lstat(entry)
        is_sticky = folder.st_mode & stat.S_ISVTX and last.st_uid in ours
        if folder.st_uid not in (*ours, peer) or (folder.st_mode & 0o022 and not is_sticky):
            return at
        if stat.S_ISLNK(last.st_mode):
            links += 1
            if links > LINKS_MAX:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            target = os.readlink(entry)
            rest = target.split("/") + rest
            at = "/" if target.startswith("/") else at
        elif stat.S_ISDIR(last.st_mode):
            at = entry
    # The kernel follows links of /proc to an object, not by their text: then the walk ended at another file.
    return "" if os.path.samestat(last, os.stat(path)) else at


def check_server(path: str, sock: socket.socket) -> None:
    """Checks the uid of the daemon at a path, as any user can listen in a folder that others may write. The uid must be
    root's, this user's or $NPUMEM_SERVER_UID, or only root, this user and that uid can change the path; else Refused."""
    uid, given = peer_uid(sock), os.environ.get("NPUMEM_SERVER_UID")
    if given and not given.isdecimal():
        raise ValueError(f'NPUMEM_SERVER_UID="{given[:40]}" is not a uid')
    if uid in (0, os.geteuid()) or (given and uid == int(given)):
        return
    folder = unsafe_folder(path, uid)
    if folder:
        raise Refused(
            Status.PERMISSION_DENIED,
            f"the daemon at {path} is of uid {uid}, and others can change {folder}: set NPUMEM_SERVER_UID={uid} if "
            "that daemon is meant",
            {"uid": uid},
        )


def bury(process: subprocess.Popen[bytes], seconds: float = 5.0) -> None:
    """Waits for a child, which ends with its connection; ends it if it does not."""
    for end in (process.terminate, process.kill):
        try:
            process.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            end()
    process.wait()


def last_line(log: IO[bytes], start: int = 0) -> str:
    """The last line of a log that a child writes. pread leaves the file offset, which both share, as it is."""
    start = max(start, os.fstat(log.fileno()).st_size - 1024)
    lines = os.pread(log.fileno(), 1024, start).decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
