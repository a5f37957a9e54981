"""Sessions from another host: over a real sshd, on the loopback."""

import ctypes
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest
from random import Random

import npumem
import test_python_client
from sshd import CTL, OverSsh, Sshd, children, why_not
from support import NPUMEMD, SECONDS, Endless, TestCase, alloc, free, frame, pb, wait_for

BUILD = os.environ["NPUMEM_BUILD"]


class Library:
    """libnpumem's calls, as little as is needed here."""

    class Error(ctypes.Structure):
        _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 512), ("rest", ctypes.c_char * 65536)]

    class Segment(ctypes.Structure):
        _fields_ = [("id", ctypes.c_uint64), ("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]

    class Options(ctypes.Structure):
        _fields_ = [("size", ctypes.c_size_t), *((name, ctypes.c_uint32) for name in ("connect_ms", "call_ms", "spin_us")),
                    ("resume_ms", ctypes.c_uint64)]  # fmt: skip

    NO_RESUME = 2**64 - 1

    def __init__(self, address, **options):
        self.library = ctypes.CDLL(os.path.join(BUILD, "client/lib/libnpumem.so"))
        self.error = self.Error()
        self.npumem = ctypes.c_void_p()
        given = self.Options(size=ctypes.sizeof(self.Options), **options)
        self.status = self.library.npumem_open(
            address.encode(), ctypes.byref(given), ctypes.byref(self.npumem), ctypes.byref(self.error)
        )
        assert self.status == 0 or options.get("connect_ms"), self.error.message

    def close(self):
        self.library.npumem_close(self.npumem)

    def call(self, name, *words):
        return getattr(self.library, "npumem_" + name)(self.npumem, *words, ctypes.byref(self.error))

    def open(self, name):
        tensor = ctypes.c_void_p()
        assert self.call("open_tensor", name.encode(), ctypes.byref(tensor)) == 0, self.error.message
        return ctypes.cast(tensor, ctypes.POINTER(ctypes.c_uint64))[0]

    def segment(self, n_bytes):
        segment = ctypes.POINTER(self.Segment)()
        assert self.call("segment_create", ctypes.c_size_t(n_bytes), ctypes.byref(segment)) == 0, self.error.message
        return segment

    def write_segment(self, handle, segment, offset=0, first=0, count=0):
        return self.call(
            "write_segment", *map(ctypes.c_uint64, (handle,)), segment, ctypes.c_uint64(offset), None, ctypes.c_int64(first),
            ctypes.c_int64(count),
        )  # fmt: skip

    def strided(self, name, handle, segment, offset, stride):
        stride = (ctypes.c_int64 * 4)(*stride)
        return self.call(
            name + "_segment", ctypes.c_uint64(handle), segment, ctypes.c_uint64(offset), stride, ctypes.c_int64(0),
            ctypes.c_int64(0), *([None] if name == "read" else []),
        )  # fmt: skip

    def read_part(self, handle, n_bytes):
        data = ctypes.create_string_buffer(n_bytes)
        status = self.call(
            "read_part", ctypes.c_uint64(handle), ctypes.c_int64(0), ctypes.c_int64(n_bytes), data, ctypes.c_size_t(n_bytes), None
        )
        return status, data.raw


class Both(OverSsh):
    """Of a daemon that keeps sessions, and of one that does not."""

    options = ("--npu-bytes", "4194304")
    N_KILLED = 0  # sessions of clients that are killed, which the daemon keeps

    def setUp(self):
        super().setUp()
        self.address = f"ssh:npu:{self.daemon.path}"

    def ctl(self, *words, address=None, ssh=None, code=0):
        done = subprocess.run(
            [CTL, "--socket", address or self.address, *words], env=self.sshd.environment(**({"NPUMEM_SSH": ssh} if ssh else {})),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def sessions(self):
        with self.daemon.client() as client:
            return client.stat().sessions - 1

    def test_the_suite_of_the_library(self):
        env = self.sshd.environment(NPUMEM_TEST_ADDRESS=self.address)
        done = subprocess.run(
            [os.path.join(BUILD, "tests/integration/integration_library")], env=env, capture_output=True, text=True,
            timeout=4 * SECONDS, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        wait_for(lambda: self.sessions() <= self.N_KILLED)

    def test_a_session_that_is_not_to_go_on(self):
        library = Library(self.address, resume_ms=Library.NO_RESUME)
        self.addCleanup(library.close)
        segment = library.segment(64)
        (ssh,) = children(os.getpid(), "ssh")
        os.kill(ssh, signal.SIGKILL)
        self.assertEqual(library.write_segment(1, segment), pb.NOT_FOUND)
        self.assertEqual(library.read_part(1, 64)[0], pb.UNAVAILABLE)
        self.assertEqual(library.error.message, b"the connection to npu ended")
        wait_for(lambda: not self.sessions(), 25)

    def test_connecting_has_its_time(self):
        os.kill(self.sshd.process.pid, signal.SIGSTOP)
        try:
            library = Library(self.address, connect_ms=300)
        finally:
            os.kill(self.sshd.process.pid, signal.SIGCONT)
        self.assertEqual(library.status, pb.DEADLINE_EXCEEDED)
        self.assertIn(b"cannot reach npu", library.error.message)
        self.assertEqual(children(os.getpid(), "ssh"), [])

    def test_what_cannot_be_sent(self):
        client = self.client()
        client.alloc("t", (1, 4, 4, 4))
        library = Library(self.address)
        self.addCleanup(library.close)
        segment = library.segment(64)
        shown = client.alloc("unknown", (1, 4, 4, 4)).handle
        self.assertEqual(library.write_segment(shown, segment), pb.NOT_FOUND)
        self.assertIn(b"was not told of", library.error.message)
        handle = library.open("t")
        self.assertEqual(library.write_segment(handle, segment), 0)
        for words in ({"offset": 1}, {"first": 64}, {"first": -1}, {"count": 65}, {"count": -1}, {"offset": 2**64 - 8}):
            self.assertEqual(library.write_segment(handle, segment, **words), pb.INVALID, words)
        self.assertEqual(library.write_segment(handle, segment, offset=60, first=60), 0)
        self.assertEqual(library.read_part(handle, 64), (0, bytes(64)))


@unittest.skipIf(why_not(), why_not())
class Remote(Both, TestCase):
    # ---- what works ----

    def test_info_says_so(self):
        self.assertIs(json.loads(self.ctl("--json", "info"))["remote"], True)
        self.assertIn("over ssh", self.ctl("info"))
        near = json.loads(self.ctl("--json", "info", address=self.daemon.path))
        self.assertIs(near["remote"], False)
        far = json.loads(self.ctl("--json", "info"))
        self.assertEqual(far["uid"], near["uid"])

    def test_a_socket_that_a_shell_would_take_apart(self):
        odd = os.path.join(self.daemon.directory, "it's $(touch pwned) `x` \"y\" \\ *;")
        os.mkdir(odd)
        path = os.path.join(odd, "s")
        os.symlink(self.daemon.path, path)
        self.ctl("info", address="ssh:npu:" + path)

    def test_the_three_commands_of_the_manual(self):
        with open(os.path.join(os.path.dirname(__file__), "../../client/man/npumem-farm.7.scd"), encoding="utf-8") as file:
            commands = file.read().split("# A DEVICE ON ANOTHER HOST\n")[1].split("```\n")[1].splitlines()
        self.assertEqual(len(commands), 3)
        path = os.path.join(self.daemon.directory, "readme")
        there = f"{os.path.dirname(CTL)}:{os.path.dirname(NPUMEMD)}"
        with Sshd(path=there) as sshd:
            commands = [command.replace("/home/me/npumem", path) for command in commands]
            script = [f'ssh() {{ command {sshd.ssh} "$@"; }}', *commands, "npumemctl shutdown"]
            done = subprocess.run(
                ["bash", "-e", "-c", "\n".join(script)],
                env=sshd.environment(PATH=f"{os.path.dirname(CTL)}:{os.environ['PATH']}"), capture_output=True, text=True,
                timeout=SECONDS, check=False,
            )  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("over ssh", done.stdout)

    # ---- dial ----

    def test_dial_keeps_a_half_closed_connection(self):
        requests = b"".join(frame(pb.Request(id=i, info=pb.InfoRequest())) for i in range(1, 200))
        done = subprocess.run(
            [CTL, "--socket", self.daemon.path, "dial"], input=requests, capture_output=True, timeout=SECONDS, check=True
        )
        self.assertEqual(done.stderr, b"")
        data, ids = done.stdout, []
        while data:
            length = shift = used = 0
            while True:
                byte = data[used]
                length |= (byte & 0x7F) << shift
                shift += 7
                used += 1
                if byte < 0x80:
                    break
            ids.append(pb.Response.FromString(data[used : used + length]).id)
            data = data[used + length :]
        self.assertEqual(sorted(ids), list(range(1, 200)))

    def test_dial_closes_with_its_client(self):
        client = self.client()
        Endless(client)
        with subprocess.Popen(
            [CTL, "--socket", self.daemon.path, "dial", "--close"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        ) as dial:
            request = pb.Request(id=1, run=pb.RunRequest(kernel=pb.CONV2D))
            for role in ("in", "weights", "out"):
                request.run.operands.add(role=role, tensor=pb.Ref(name=role))
            dial.stdin.write(frame(request))
            dial.stdin.flush()
            wait_for(lambda: self.sessions() == 2)
            dial.stdin.close()
            self.assertEqual(dial.wait(SECONDS), 0)
        wait_for(lambda: self.sessions() == 1)

    def test_an_interrupt_is_for_the_client(self):
        """Of a whole process group, as from a terminal."""
        path = os.path.join(self.daemon.directory, "record")
        with subprocess.Popen(
            [CTL, "--socket", self.address, "record", path], env=self.sshd.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        ) as ctl:  # fmt: skip
            self.assertIn(b"recording", ctl.stderr.readline())
            with self.daemon.client() as client:
                client.alloc("recorded")
            os.killpg(ctl.pid, signal.SIGINT)
            told, complaint = ctl.communicate(timeout=SECONDS)
            self.assertEqual(ctl.returncode, 0, told + complaint)
        with self.daemon.client() as client:
            client.call(**free("recorded"))
        self.assertIn("0 differences", self.ctl("replay", path))

    def test_dial_is_for_paths(self):
        for address in ("ssh:npu", "spawn:"):
            self.assertIn("is not a path of a socket", self.ctl("dial", address=address, code=1))
        self.assertIn("cannot reach a daemon at /nowhere", self.ctl("dial", address="/nowhere", code=1))

    # ---- what does not ----

    def test_hosts_that_are_none(self):
        mark = os.path.join(self.daemon.directory, "ran")
        ssh = f"touch {mark}"
        for host in (
            "", "-oProxyCommand=x", "u@-x", "@x", "a b", "a;b", "$(x)", "`x`", "a'b", 'a"b', "a\nb", "a|b", "//a", "a/b", "a%b", "é",
            "x" * 300, "\\", "a\tb", "*", "~", "-", "u@",
        ):  # fmt: skip
            for rest in ("", ":/s"):
                told = self.ctl("info", address=f"ssh:{host}{rest}", ssh=ssh, code=1)
                self.assertIn("has no host that could be asked", told, host)
        self.assertIn("longer than", self.ctl("info", address="ssh:npu:/" + "x" * 200, ssh=ssh, code=1))
        self.assertFalse(os.path.exists(mark))

    def test_ssh_that_fails(self):
        told = self.ctl("info", address="ssh:stranger:/s", code=1)
        self.assertRegex(told, r"^npumemctl: cannot reach stranger: .*Permission denied \(publickey\)")
        told = self.ctl("info", address="ssh:npu:/nowhere", code=1)
        self.assertIn("cannot reach npu: npumemctl: cannot reach a daemon at /nowhere: No such file", told)
        told = self.ctl("info", ssh="/no/such/ssh", code=1)
        self.assertIn("No such file", told)
        self.assertIn("cannot reach npu", self.ctl("info", ssh="false", code=1))
        self.assertIn("cannot reach npu", self.ctl("info", ssh=" ", code=1))
        self.assertIn("cannot reach npu", self.ctl("info", ssh="x " * 40, code=1))
        self.assertEqual(self.sessions(), 0)

    def test_no_program_there(self):
        with Sshd(path="/nonexistent") as sshd:
            told = self.ctl("info", ssh=sshd.ssh, code=1)
        self.assertRegex(told, "npumemctl.*not found")

    def test_a_profile_that_speaks(self):
        for line in ("Welcome to the farm", "x" * 3000, "Été"):
            speak = shlex.quote(f"echo {line}; eval \"$SSH_ORIGINAL_COMMAND\"")
            with Sshd(f"ForceCommand /bin/sh -c {speak}") as sshd:
                told = self.ctl("info", ssh=sshd.ssh, code=1)
            self.assertIn("must not write to stdout", told)
        self.assertIn("Welcome to the farm", self.speaks("Welcome to the farm"))
        # Too little to tell, and no message all the same.
        self.assertIn("cannot reach npu", self.speaks("a"))

    def speaks(self, line):
        speak = shlex.quote(f"echo {line}; eval \"$SSH_ORIGINAL_COMMAND\"")
        with Sshd(f"ForceCommand /bin/sh -c {speak}") as sshd:
            return self.ctl("info", ssh=sshd.ssh, code=1)

    def test_strides_as_over_a_path(self):
        """The same calls over both: the same bytes in the end, and the same refusals."""
        random, size = Random(1), 1 << 16
        near, far = Library(self.daemon.path), Library(self.address)
        self.addCleanup(near.close)
        self.addCleanup(far.close)
        segments = near.segment(size), far.segment(size)
        statuses = []
        client = self.client()
        for i in range(150):
            matrix = random.random() < 0.3
            shape = [random.choice((1, 2, 3, 5)) for _ in range(4)]
            if matrix:
                spec = pb.Spec(dtype=pb.INT16, layout=pb.MATRIX, rows=shape[0], cols=shape[1] * 3 + 1)
                client.call(alloc=pb.AllocRequest(tensors=[pb.Allocation(name=f"t{i}", spec=spec)]))
            else:
                client.call(**alloc(f"t{i}", shape, random.choice((pb.INT8, pb.INT16, pb.INT32))))
            stride, at = [], 1
            for extent in reversed(shape):
                stride.insert(0, random.choice((at, at, at, at + 1, 0, -1, 1 << 62)) if random.random() < 0.3 else at)
                at *= extent + random.choice((0, 1))
            if matrix:
                stride = [random.choice((64, 20)), random.choice((1, 2)), random.choice((0, 1, 1, 2)), 1]
            offset, data = 4 * random.randrange(64) if random.random() < 0.95 else size - 4, random.randbytes(size)
            told = []
            for library, segment in zip((near, far), segments):
                ctypes.memmove(segment.contents.base, data, size)
                handle = library.open(f"t{i}")
                wrote = library.strided("write", handle, segment, offset, stride)
                ctypes.memset(segment.contents.base, 0x5A, size)
                got = library.strided("read", handle, segment, offset, stride) if wrote == 0 else None
                told.append((wrote, got, ctypes.string_at(segment.contents.base, size)))
            self.assertEqual(told[0], told[1], (shape, stride, offset, matrix))
            statuses.append(told[0][:2])
        self.assertGreater(statuses.count((0, 0)), 50)
        self.assertGreater(sum(wrote == pb.INVALID for wrote, _ in statuses), 5)

    # ---- a way that is lost ----

    def test_ssh_is_killed(self):
        client = self.client()
        client.alloc("t", (1, 4, 4, 4))
        library = Library(self.address)
        self.addCleanup(library.close)
        handle = library.open("t")
        (ssh,) = children(os.getpid(), "ssh")
        os.kill(ssh, signal.SIGKILL)
        status, _ = library.read_part(handle, 64)
        self.assertEqual(status, pb.UNAVAILABLE)
        wait_for(lambda: self.sessions() == 1)
        self.assertEqual(client.names(), ["t"])


@unittest.skipIf(why_not(), why_not())
class Lingering(Both, TestCase):
    """Where the daemon keeps sessions."""

    RESUME_SECONDS = 30  # more than a connection of ssh takes
    N_KILLED = 1

    def setUp(self):
        self.state = tempfile.TemporaryDirectory(prefix="npumem-state-")
        self.addCleanup(self.state.cleanup)
        self.options = (*self.options, "--state-dir", self.state.name, "--resume-seconds", str(self.RESUME_SECONDS))
        super().setUp()

    def test_ssh_is_killed(self):
        client = self.client()
        client.alloc("t", (1, 4, 4, 4))
        library = Library(self.address)
        self.addCleanup(library.close)
        handle, segment = library.open("t"), library.segment(64)
        for i in range(4):
            ctypes.memset(segment.contents.base, i + 1, 64)
            self.assertEqual(library.write_segment(handle, segment), 0, library.error.message)
            (ssh,) = children(os.getpid(), "ssh")
            os.kill(ssh, (signal.SIGKILL, signal.SIGTERM)[i % 2])
            self.assertEqual(library.read_part(handle, 64), (0, bytes([i + 1] * 64)), library.error.message)
        self.assertEqual(self.sessions(), 2)

    def test_a_closed_session_does_not_wait(self):
        library = Library(self.address)
        library.call("info", None)
        library.close()
        self.assertEqual(children(os.getpid(), "ssh"), [])
        wait_for(lambda: not self.sessions(), self.RESUME_SECONDS - 5)


@unittest.skipIf(why_not(), why_not())
class Python(OverSsh, test_python_client.Calls):
    """What the package's tests of its calls ask, with another address."""

    def connect(self, **options):
        address = f"ssh:npu:{self.daemon.path}"
        return self.stack.enter_context(npumem.connect(address, **{"timeout": SECONDS, **options}))

    def test_an_interrupt_is_for_the_program(self):
        """Of a whole process group, as from a terminal."""
        program = (
            "import npumem, sys, time\n"
            "dev = npumem.connect(sys.argv[1])\n"
            "try:\n    print(flush=True)\n    while True: time.sleep(0.1)\n"
            "except KeyboardInterrupt:\n    print(dev.stat().sessions, flush=True)\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", program, f"ssh:npu:{self.daemon.path}"], stdout=subprocess.PIPE, start_new_session=True
        ) as process:
            process.stdout.readline()
            os.killpg(process.pid, signal.SIGINT)
            self.assertEqual(process.communicate(timeout=SECONDS)[0], b"2\n")

    def test_memory_that_is_not_shared(self):
        array = self.dev.empty((1, 8, 4, 4), "int8")
        array[:] = 7
        x = self.dev.alloc("x", array, dtype="int8")
        self.assertTrue((x.read() == 7).all())

    def test_addresses_that_are_none(self):
        for host in ("", "-x", "u@-x", "a;b", "a b", "u@"):
            with self.assertRaisesRegex(ValueError, "has no host"):
                npumem.connect(f"ssh:{host}:/s")
        with self.assertRaisesRegex(npumem.Unavailable, "Permission denied"):
            npumem.connect("ssh:stranger:/s")
        with self.assertRaisesRegex(npumem.Unavailable, "cannot reach a daemon at /nowhere"):
            npumem.connect("ssh:npu:/nowhere")


if __name__ == "__main__":
    unittest.main()
