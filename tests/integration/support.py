"""A daemon of its own for each test, and a client that has nothing but the .proto file and a socket."""

import atexit
import contextlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

import npumem_pb2 as pb


def is_for_all_uids(path):
    path = pathlib.Path(path).resolve()
    return path.stat().st_mode & 5 == 5 and all(folder.stat().st_mode & 1 for folder in path.parents)


def for_all_uids(*paths):
    """A folder with a program that every uid can start, and what it loads: copies where a folder above is its owner's
    alone, as /root is."""
    if os.geteuid() or all(map(is_for_all_uids, paths)):
        return os.path.dirname(paths[0])
    owner, directory = os.getpid(), tempfile.mkdtemp(prefix="npumem-test-")
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(directory))
    os.chmod(directory, 0o755)
    for path in paths:
        os.chmod(shutil.copy(path, directory), 0o755)
    return directory


NPUMEMD = os.path.join(for_all_uids(os.environ["NPUMEMD"]), "npumemd")
SECONDS = 60  # after which something hangs: long, as a sanitizer on a busy machine is slow


def encode_length(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def frame(message):
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return encode_length(len(data)) + data


class HungUp(Exception):
    pass


class Client:
    """Length-delimited messages by hand."""

    def __init__(self, path=None, sock=None):
        if sock is None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(SECONDS)
            sock.connect(path)
        sock.settimeout(SECONDS)
        self.sock = sock
        self.buffer = b""
        self.id = 0

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, **call):
        self.id += 1
        request = pb.Request(id=self.id, **call)
        self.sock.sendall(frame(request))
        return self.id

    def _fill(self, n):
        while len(self.buffer) < n:
            got = self.sock.recv(1 << 20)
            if not got:
                raise HungUp
            self.buffer += got

    def receive(self):
        length = shift = used = 0
        while True:
            self._fill(used + 1)
            byte = self.buffer[used]
            used += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        self._fill(used + length)
        response = pb.Response.FromString(self.buffer[used : used + length])
        self.buffer = self.buffer[used + length :]
        return response

    def ask(self, **call):
        """The answer, whatever its status."""
        sent = self.send(**call)
        response = self.receive()
        assert response.id == sent, (response, sent)
        return response

    def call(self, **call):
        """The answer, which must be OK."""
        response = self.ask(**call)
        assert response.status == pb.OK, response
        return response

    # What most tests need.

    def alloc(self, name="", shape=(1, 8, 1, 16), dtype=pb.INT8, frac_bits=None, **members):
        spec = pb.Spec(dtype=dtype, shape=dims(*shape), **members)
        if frac_bits is not None:
            spec.frac_bits = frac_bits
        request = pb.AllocRequest(tensors=[pb.Allocation(name=name, spec=spec)])
        return self.call(alloc=request).allocated.tensors[0]

    def write(self, handle, data, first=0):
        return self.call(write=pb.WriteRequest(tensor=pb.Ref(handle=handle), first=first, data=data))

    def read(self, handle, first=0, count=0):
        request = pb.ReadRequest(tensor=pb.Ref(handle=handle), first=first, count=count)
        return self.call(read=request).done.data

    def pages(self, limit=0):
        """All of a list, page by page."""
        after = None
        while after != 0:
            page = self.call(list=pb.ListRequest(after=after, limit=limit)).list
            assert not page.next or page.next > (after or 0), page.next
            yield page
            after = page.next

    def tensors(self):
        return [tensor for page in self.pages() for tensor in page.tensors]

    def names(self):
        return sorted(tensor.name for tensor in self.tensors())

    def stat(self):
        return self.call(stat=pb.StatRequest()).stat


def dims(n, c, h, w):
    return pb.Dims(n=n, c=c, h=h, w=w)


class Daemon:
    """A running npumemd. Ends by SIGTERM, cleanly, or the test fails."""

    def __init__(self, *options, directory=None, preexec=None):
        self.directory = directory or tempfile.mkdtemp(prefix="npumem-test-")
        os.chmod(self.directory, 0o755)
        self.own_directory = directory is None
        self.path = os.path.join(self.directory, "npumem.sock")
        self.log_path = os.path.join(self.directory, "log")
        self.log = open(self.log_path, "wb")
        self.process = subprocess.Popen(
            [NPUMEMD, "--socket", self.path, *options], stderr=self.log, preexec_fn=preexec
        )
        wait_for(lambda: b" NPUs x " in self.output() or self.process.poll() is not None)
        assert self.process.poll() is None, self.output()

    def output(self):
        with open(self.log_path, "rb") as log:
            return log.read()

    def client(self):
        return Client(self.path)

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        try:
            self.process.wait(SECONDS)
        finally:
            self.process.kill()
            self.process.wait()
            self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if self.process.poll() is None:
                self.end()
            output = self.output()
        finally:
            self.log.close()
            if self.own_directory:
                shutil.rmtree(self.directory, ignore_errors=True)
        assert self.process.returncode in (0, -signal.SIGKILL), (self.process.returncode, output)
        assert b"Sanitizer" not in output, output


def wait_for(condition, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


class TestCase(unittest.TestCase):
    """With a daemon for each test."""

    options = ()
    preexec = None  # called in the daemon's process before it is one

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.daemon = self.stack.enter_context(Daemon(*self.options, preexec=self.preexec))

    def client(self):
        return self.stack.enter_context(self.daemon.client())

    def assert_alive(self):
        with self.daemon.client() as client:
            stat = client.stat()
        self.assertEqual(stat.total, stat.data + stat.dummy + stat.padding + stat.empty + stat.free)
        return stat


def rss_bytes(pid):
    with open(f"/proc/{pid}/statm", "rb") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def run_as(uid, function):
    """Calls function() in a child process of another uid; returns what it returns, as text."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reader)
            os.setgid(uid)
            os.setuid(uid)
            os.write(writer, str(function()).encode())
            code = 0
        except BaseException as problem:  # noqa: the child must not return into unittest
            os.write(writer, repr(problem).encode())
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        text = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    assert status == 0, text
    return text
