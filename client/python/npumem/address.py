"""Finding a daemon, or starting one."""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
import socket
import struct
import subprocess
import tempfile
from typing import Optional, Union

from . import npumem_pb2 as pb
from ._build import DAEMON_FROM_HERE, BINDIR
from .device import Device
from .errors import DeadlineExceeded, Refused, Status, Unavailable
from .session import Session
from .transport import Path, Private, Ssh, check_server, last_line
from .wire import Wire

SYSTEM_PATH = "/run/npumem/npumem.sock"


def default_address() -> str:
    """$NPUMEM_SOCKET, else $XDG_RUNTIME_DIR/npumem.sock if it exists, else /run/npumem/npumem.sock."""
    given, runtime = os.environ.get("NPUMEM_SOCKET"), os.environ.get("XDG_RUNTIME_DIR")
    if given:
        return given
    own = f"{runtime}/npumem.sock" if runtime else ""
    return own if own and os.path.exists(own) else SYSTEM_PATH


def connect(
    address: Union[str, os.PathLike[str], None] = None,
    *,
    timeout: Optional[float] = None,
    connect_timeout: Optional[float] = 30.0,
    resume: Optional[float] = None,
) -> Device:
    """Connects to a daemon.

    address          a socket's path, "unix:PATH", "ssh:[USER@]HOST[:/SOCKET]" (runs npumemctl dial on the host over
                     $NPUMEM_SSH or ssh), "spawn:OPTIONS" as npumem.spawn, or None: $NPUMEM_SOCKET, else
                     $XDG_RUNTIME_DIR/npumem.sock if it exists, else /run/npumem/npumem.sock
    timeout          Device.timeout of the result
    connect_timeout  seconds that this call may take
    resume           seconds for which a lost connection tries to reconnect to a daemon that continues its session;
                     None: as long as that daemon keeps sessions (npumemd --resume-seconds); 0: it does not try, and
                     calls raise Unavailable

    Unavailable if no daemon listens there, DeadlineExceeded if it does not answer. Refused (PERMISSION_DENIED) if other
    users can change a folder of its path, unless the daemon's uid is root's, your own or $NPUMEM_SERVER_UID."""
    address = os.fspath(address) if address else default_address()
    if address.startswith("spawn:"):
        return spawn(*shlex.split(address.removeprefix("spawn:")), timeout=timeout, connect_timeout=connect_timeout)
    if address.startswith("ssh:"):
        return dial(address, timeout, connect_timeout, resume)
    path = address.removeprefix("unix:")
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # A blocking socket waits in a full queue of connections, for as long as a send may.
        if connect_timeout is not None:
            limit = struct.pack("ll", int(connect_timeout), int(connect_timeout % 1 * 1e6) or 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        sock.connect(path)
        check_server(path, sock)
        return greet(sock, timeout, connect_timeout, Session(Path(path), resume))
    except BlockingIOError:
        sock.close()
        raise DeadlineExceeded(Status.DEADLINE_EXCEEDED, f"no daemon answers at {path}") from None
    except (Refused, ValueError):
        sock.close()
        raise
    except OSError as problem:
        sock.close()
        raise Unavailable(Status.UNAVAILABLE, f"cannot reach a daemon at {path}: {problem.strerror or problem}") from None


def dial(address: str, timeout: Optional[float], connect_timeout: Optional[float], resume: Optional[float]) -> Device:
    transport = Ssh(address)
    try:
        return greet(transport.connect(), timeout, connect_timeout, Session(transport, resume))
    except OSError as problem:
        if isinstance(problem, (Unavailable, DeadlineExceeded)):
            raise type(problem)(problem.status, f"cannot reach {address}: {problem.message}") from None
        raise Unavailable(Status.UNAVAILABLE, f"cannot reach {address}: {problem}") from None


def greet(
    sock: socket.socket, timeout: Optional[float], connect_timeout: Optional[float], session: Session
) -> Device:
    """Makes a Device of a connected socket, which asks for the daemon's info first."""
    wire = Wire(sock, session)
    try:
        device = Device(wire, connect_timeout, not session.transport.is_remote)
    except BaseException:
        wire.close("the daemon did not answer")
        raise
    device.timeout = timeout
    if device.info.features & pb.FEATURE_RESUME:
        wire.ask_for_token()
    return device


def daemon_program() -> str:
    """$NPUMEMD, else the npumemd installed with this package, else in $PATH, else in the build's install folder."""
    given = os.environ.get("NPUMEMD")
    if given:
        return given
    beside = (pathlib.Path(__file__).parent / DAEMON_FROM_HERE / "npumemd").resolve()
    if os.access(beside, os.X_OK):
        return str(beside)
    return shutil.which("npumemd") or f"{BINDIR}/npumemd"


def spawn(
    *options: str,
    program: Optional[str] = None,
    timeout: Optional[float] = None,
    connect_timeout: Optional[float] = 30.0,
) -> Device:
    """Starts a private daemon with these options of npumemd: `with npumem.spawn("--npus", "4") as dev`. It ends with
    the connection. The program is $NPUMEMD, else the npumemd installed with this package, else npumemd in $PATH."""
    program = program or daemon_program()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with theirs, tempfile.TemporaryFile() as log:
        try:
            process = subprocess.Popen(
                [program, "--fd", str(theirs.fileno()), *options],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log, pass_fds=[theirs.fileno()],
                process_group=0,  # ^C is for the caller only
            )  # fmt: skip
        except OSError as problem:
            ours.close()
            text = f"cannot start a private daemon: {program}: {problem.strerror}"
            raise Unavailable(Status.UNAVAILABLE, text) from None
        theirs.close()
        try:
            return greet(ours, timeout, connect_timeout, Session(Private(process), 0))
        except BaseException as problem:
            if not isinstance(problem, Unavailable):
                raise
            text = last_line(log) or problem.message
            raise Unavailable(Status.UNAVAILABLE, f"the private daemon did not start: {text}") from None
