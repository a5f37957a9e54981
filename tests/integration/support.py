"""A daemon of its own for each test, and a client that has nothing but the .proto file and a socket."""

import atexit
import contextlib
import mmap
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
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


def wrapped(program):
    """The program, or one that runs it as NPUMEM_CONFINED (tests/checks/sandboxed.sh) or NPUMEM_VALGRIND (valgrind.sh)
    want: they name a folder."""
    confined, checked = os.environ.get("NPUMEM_CONFINED"), os.environ.get("NPUMEM_VALGRIND")
    if confined:
        words = f"/usr/bin/python3 -B {confined}/confine.py {confined}/filter {program}"
    elif checked:
        words = f"valgrind -q --error-exitcode=99 --log-file={checked}/%p {program} --isa avx2"
    else:
        return program
    directory, owner = tempfile.mkdtemp(prefix="npumem-test-"), os.getpid()
    atexit.register(lambda: os.getpid() == owner and shutil.rmtree(directory))
    os.chmod(directory, 0o755)
    path = os.path.join(directory, "npumemd")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {words} "$@"\n')
    os.chmod(path, 0o755)
    os.environ["NPUMEMD"] = path
    return path


NPUMEMD = wrapped(os.path.join(for_all_uids(os.environ["NPUMEMD"]), "npumemd"))
NPUMEMCTL = os.path.join(os.environ.get("NPUMEM_BUILD", ""), "client/ctl/npumemctl")
# Of tests of units by systemd's own tools.
needs_systemd = unittest.skipUnless(
    shutil.which("systemd-analyze"), "no systemd here, so this was NOT checked: tests/packages.sh systemd installs it"
)
SLOWER = 10 if os.environ.get("NPUMEM_SANITIZE") else 1  # than a plain build, at most: for bounds on times
FEWER = 4 if os.environ.get("NPUMEM_SANITIZE") else 1  # tensors: a sanitizer is for the code, the plain build for its time


def page_fault_us():
    """Of processor time, for the first write to a page of new memory: 0.3 to 1 us on most machines."""
    pages = 64
    with mmap.mmap(-1, pages * mmap.PAGESIZE) as memory:
        begin = time.thread_time()
        for page in range(pages):
            memory[page * mmap.PAGESIZE] = 1
        return (time.thread_time() - begin) * 1e6 / pages


# For bounds on turns of the loop: a virtual machine in another one takes 20 us for a page fault, and so much longer for a
# turn that touches new memory.
FAULTS = min(4.0, max(1.0, min(page_fault_us() for _ in range(4)) / 4))
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

    received = pb.Response

    def __init__(self, path=None, sock=None):
        if sock is None:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.connect(path)  # which waits for the daemon where many do, but not with a timeout
        sock.settimeout(SECONDS)
        self.sock = sock
        self.buffer = bytearray()
        self.id = 0
        self.early = {}  # answers that came before they were asked for

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
        response = self.received.FromString(bytes(self.buffer[used : used + length]))
        del self.buffer[: used + length]
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

    def post(self, *calls):
        """All of them in one write; their ids. A call is {"alloc": request}, with "id" where that is to be chosen."""
        ids, frames = [], []
        for call in calls:
            self.id += 1
            ids.append(call.get("id", self.id))
            frames.append(frame(pb.Request(**{"id": self.id, **call})))
        self.sock.sendall(b"".join(frames))
        return ids

    def answers(self, ids):
        """The answers with these ids, in their order; events are left out."""
        missing = set(ids).difference(self.early)
        while missing:
            response = self.receive()
            if response.id:
                self.early[response.id] = response
                missing.discard(response.id)
            else:
                assert response.HasField("event"), response
        return [self.early.pop(i) for i in ids]

    def pipeline(self, *calls):
        return self.answers(self.post(*calls))

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


# Calls, for Client.post and as members of pb.Operation.


def ref(tensor):
    """Of a name, a handle or a pb.Tensor."""
    return pb.Ref(name=tensor) if isinstance(tensor, str) else pb.Ref(handle=getattr(tensor, "handle", tensor))


def alloc(name, shape=(1, 8, 1, 16), dtype=pb.INT8, wait_ms=0, **spec):
    allocation = pb.Allocation(name=name, spec=pb.Spec(dtype=dtype, shape=dims(*shape), **spec))
    return {"alloc": pb.AllocRequest(tensors=[allocation], wait_ms=wait_ms)}


def long_alloc(name, w):
    """Elements that stand apart, so that filling them keeps a thread for about w / 15 us."""
    return alloc(name, (1, 64, 1, w), layout=pb.STRIDED, stride=dims(3 * w, 3 * w, 3 * w, 3))


def free(*tensors):
    return {"free": pb.FreeRequest(tensors=[ref(tensor) for tensor in tensors])}


def fill(tensor, integer):
    return {"fill": pb.FillRequest(tensor=ref(tensor), integer=integer)}


def copy(destination, source):
    return {"copy": pb.CopyRequest(destination=ref(destination), source=ref(source))}


def read(tensor, first=0, count=0):
    return {"read": pb.ReadRequest(tensor=ref(tensor), first=first, count=count)}


def run(kernel, params=(), **operands):
    """The roles' tensors, with `in` as `in_`."""
    request = pb.RunRequest(kernel=kernel, params=params)
    for role, tensor in operands.items():
        request.operands.add(role=role.rstrip("_"), tensor=ref(tensor))
    return {"run": request}


def submit(*calls, group=0):
    return {"submit": pb.SubmitRequest(operations=[pb.Operation(group=group, **call) for call in calls])}


class Convolution:
    """Operands, and an output, of a conv2d that takes about so many seconds on this machine, or more."""

    SIDE = 128
    CHANNELS = 64  # of the shortest trial

    def __init__(self, client, seconds, out="out"):
        self.client = client
        self._input()
        channels = self.CHANNELS
        while (trial := min(self._measure(channels) for _ in range(2))) < seconds / 16 and channels < 512:
            channels *= 2
        n_products = self._products(channels, 3) * seconds / trial
        # Rather more products of an output than more outputs: these are to be read in one frame.
        for extent in (3, 7, 15, 31):
            channels = max(1, round(n_products / self._products(1, extent)))
            if channels <= 512:
                break
        self._weights(channels, extent)
        if out:
            self.alloc(out)

    def _input(self):
        self.client.call(**alloc("in", (1, 128, self.SIDE, self.SIDE), pb.FX8, frac_bits=4, start_npu=0))
        self.client.call(**fill("in", 1))

    def _weights(self, channels, extent):
        size = self.SIDE - extent + 1
        self.out_shape = (1, channels, size, size)
        weights = (128, channels, extent, extent)
        self.client.call(**alloc("weights", weights, pb.FX8, frac_bits=4, start_npu=0))
        self.client.call(**fill("weights", 1))

    def _products(self, channels, extent):
        return channels * 128 * extent**2 * (self.SIDE - extent + 1) ** 2

    def _measure(self, channels):
        self._weights(channels, 3)
        self.alloc("trial")
        before = time.monotonic()
        self.client.call(**self.call("trial"))
        took = time.monotonic() - before
        self.client.call(**free("trial", "weights"))
        return took

    def alloc(self, out, client=None):
        """One more output."""
        (client or self.client).call(**alloc(out, self.out_shape, pb.FX8, frac_bits=4, start_npu=0))

    def call(self, out="out"):
        return run(pb.CONV2D, in_="in", weights="weights", out=out)


class Endless(Convolution):
    """Operands, and an output, of a conv2d that nobody sees the end of: 6 * 10^12 multiplications, which are many
    seconds on any machine. They take a MiB and a half of each of 64 NPUs, another output half of one."""

    SIDE = 512

    def __init__(self, client, out="out"):  # pylint: disable=super-init-not-called
        self.client = client
        self._input()
        self._weights(128, 43)
        if out:
            self.alloc(out)


class Sharer(Client):
    """Sends fds along with its requests."""

    def send_fds(self, fds, **call):
        self.id += 1
        socket.send_fds(self.sock, [frame(pb.Request(id=self.id, **call))], fds)
        return self.id

    def ask_share(self, *fds):
        self.send_fds(fds, share=pb.ShareRequest())
        response = self.receive()
        assert response.id == self.id
        return response

    def share(self, fd):
        response = self.ask_share(fd)
        assert response.status == pb.OK, response
        return response.shared.segment


STARTED = re.compile(rb"npumemd: \d+ NPUs x ")  # and not what a line tells of a state that it does not take


EFFECTIVE_UID = threading.Lock()  # it is of all threads of the process


@contextlib.contextmanager
def as_uid(uid):
    with EFFECTIVE_UID:
        os.seteuid(uid)
        try:
            yield
        finally:
            os.seteuid(0)


class Daemon:
    """A running npumemd. Ends by SIGTERM, cleanly, or the test fails."""

    def __init__(self, *options, directory=None, preexec=None, program=(NPUMEMD,)):
        self.directory = directory or tempfile.mkdtemp(prefix="npumem-test-")
        os.chmod(self.directory, 0o755)
        self.own_directory = directory is None
        self.path = os.path.join(self.directory, "npumem.sock")
        self.log_path = os.path.join(self.directory, "log")
        self.log = open(self.log_path, "wb")
        self.process = subprocess.Popen(
            [*program, "--socket", self.path, *options], stderr=self.log, preexec_fn=preexec
        )
        wait_for(lambda: STARTED.search(self.output()) or self.process.poll() is not None)
        assert self.process.poll() is None, self.output()

    def output(self):
        with open(self.log_path, "rb") as log:
            return log.read()

    def client(self, uid=None):
        """Of this process, or of another uid: the kernel names to the daemon who connects."""
        if uid is None:
            return Client(self.path)
        with as_uid(uid):
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


def listens(path):
    """A socket's file is there before that."""
    with contextlib.suppress(FileNotFoundError, ConnectionRefusedError), socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
        return True
    return False


def is_alive(pid):
    """A zombie is not."""
    return os.path.exists(f"/proc/{pid}/exe")


@contextlib.contextmanager
def silenced(process):
    """It has its sockets, but does nothing."""
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def wait_for(condition, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


class TestCase(unittest.TestCase):
    """With a daemon for each test."""

    options = ()
    preexec = None  # called in the daemon's process before it is one
    program = (NPUMEMD,)

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.daemon = self.stack.enter_context(Daemon(*self.options, preexec=self.preexec, program=self.program))

    def client(self, uid=None):
        return self.stack.enter_context(self.daemon.client(uid))

    def ctl(self, *words, code=0, says="", text="", **environment):
        """What npumemctl prints, in the daemon's directory; it says this too, or complains of it where it is to fail."""
        done = subprocess.run([NPUMEMCTL, *words], capture_output=True, text=True, input=text, cwd=self.daemon.directory,
                              timeout=4 * SECONDS, env=os.environ | {"NPUMEM_SOCKET": self.daemon.path} | environment)  # fmt: skip
        self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
        self.assertIn(says, done.stderr if code else done.stdout)
        return done.stdout

    def n_fds(self):
        return len(os.listdir(f"/proc/{self.daemon.process.pid}/fd"))

    def assert_alive(self):
        with self.daemon.client() as client:
            stat = client.stat()
        self.assertEqual(stat.total, stat.data + stat.dummy + stat.padding + stat.empty + stat.free)
        return stat


def quantiles(client, seconds, **call):
    """p50 and p99 of what a request takes, in milliseconds."""
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.perf_counter()
        client.call(**call)
        times.append(1e3 * (time.perf_counter() - begin))
    times.sort()
    return times[len(times) // 2], times[len(times) * 99 // 100]


def spin():
    while True:
        pass


def least_beside(client, root, uid, attack, wait, attempts=8):
    """Fails where an info takes much longer beside another uid's attack than beside a process of that uid that only takes a
    processor: each time, as a busy machine disturbs some. wait() returns when the attack goes on."""
    found, sessions = [], root.stat().sessions
    while len(found) < attempts:
        wait_for(lambda: root.stat().sessions == sessions)
        with beside(uid, spin):
            alone = quantiles(client, 0.5, info=pb.InfoRequest())
        with beside(uid, attack):
            wait()
            found.append((alone, quantiles(client, 1, info=pb.InfoRequest())))
        p50, p99 = found[-1][1]
        if p50 < 3 * alone[0] + 1 and p99 < max(20 * SLOWER, 3 * alone[1]):
            print(f"info alone {alone[0]:.3f} ms, beside {p50:.3f} ms, 99 % within {p99:.3f} ms")
            return
    raise AssertionError(f"p50 and p99 in ms, alone and beside: {found}")


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


def fork(uid, function):
    """A child of this or another uid that runs until it is killed."""
    pid = os.fork()
    if pid:
        return pid
    try:
        if uid != os.getuid():
            os.setgid(uid)
            os.setuid(uid)
        function()
    finally:
        os._exit(0)


@contextlib.contextmanager
def beside(uid, function):
    """function() in a child of another uid, which is killed in the end."""
    child = fork(uid, function)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
