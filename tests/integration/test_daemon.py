"""The process: its socket file, its options, its signals, and what it does without fds."""

import ctypes
import os
import resource
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import time
import unittest

from support import NPUMEMD, SECONDS, Client, Daemon, HungUp, TestCase, frame, listens, pb, wait_for


def run(*options, environment=None):
    return subprocess.run(
        [NPUMEMD, *options], capture_output=True, timeout=SECONDS, env=environment, text=True, check=False
    )


def deny_tiles():
    """In the child: arch_prctl(ARCH_REQ_XCOMP_PERM) ends with EPERM, as a unit's seccomp filter may have it."""

    def instruction(code, true, false, value):
        return struct.pack("=HBBI", code, true, false, value)

    load, equal, end = 0x20, 0x15, 0x06
    program = b"".join(
        (
            instruction(load, 0, 0, 0),  # the system call's number
            instruction(equal, 0, 3, 158),
            instruction(load, 0, 0, 16),  # its first argument's lower half
            instruction(equal, 0, 1, 0x1023),
            instruction(end, 0, 0, 0x00050000 | 1),  # SECCOMP_RET_ERRNO, EPERM
            instruction(end, 0, 0, 0x7FFF0000),  # SECCOMP_RET_ALLOW
        )
    )
    buffer = ctypes.create_string_buffer(program, len(program))
    filters = ctypes.create_string_buffer(struct.pack("@HP", len(program) // 8, ctypes.addressof(buffer)))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, seccomp, filter_mode = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(seccomp, filter_mode, filters, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


class SocketFile(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="npumem-test-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.path = os.path.join(self.directory, "npumem.sock")

    def files(self):
        return [name for name in os.listdir(self.directory) if name != "log"]

    def test_signals_leave_no_socket_file(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with Daemon(directory=self.directory) as daemon:
                self.assertIn("npumem.sock", self.files())
                self.assertEqual(daemon.output(), f"npumemd: 64 NPUs x 524288 bytes on {self.path}\n".encode())
                client = daemon.client()
                client.stat()
                daemon.end(number)
                self.assertEqual(daemon.process.returncode, 0)
                with self.assertRaises((HungUp, ConnectionResetError)):
                    client.receive()
                client.close()
            self.assertEqual(self.files(), [])

    def test_what_was_asked_is_answered_on_the_way_down(self):
        with Daemon(directory=self.directory) as daemon, daemon.client() as client:
            tensor = client.alloc("x", (1, 64, 1, 100000))
            client.write(tensor.handle, b"\1" * 6400000)
            client.send(read=pb.ReadRequest(tensor=pb.Ref(name="x")))
            # It is at work on the reply once the first bytes of it are here.
            client.sock.recv(1, socket.MSG_PEEK)
            daemon.process.send_signal(signal.SIGTERM)
            self.assertEqual(len(client.receive().done.data), 6400000)
            with self.assertRaises(HungUp):
                client.receive()
            daemon.process.wait(SECONDS)

    def test_a_client_that_does_not_read_does_not_hold_it_up(self):
        with Daemon(directory=self.directory) as daemon, daemon.client() as client:
            tensor = client.alloc("x", (1, 64, 1, 100000))
            client.write(tensor.handle, b"\1" * 6400000)
            client.send(read=pb.ReadRequest(tensor=pb.Ref(handle=tensor.handle)))
            client.sock.recv(1, socket.MSG_PEEK)
            started = time.monotonic()
            daemon.end()
            self.assertLess(time.monotonic() - started, 20)  # it has 30 s to read, when nothing ends
        self.assertEqual(self.files(), [])

    def test_a_second_daemon_is_refused(self):
        with Daemon(directory=self.directory) as daemon:
            second = run("--socket", self.path)
            self.assertEqual((second.returncode, second.stdout), (1, ""))
            self.assertEqual(second.stderr, f"npumemd: another daemon is on {self.path}\n")
            daemon.client().close()
        # Also one that knows no lock.
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(self.path)
            other.listen()
            self.assertEqual(run("--socket", self.path).returncode, 1)
            self.assertTrue(stat.S_ISSOCK(os.stat(self.path).st_mode))

    def test_many_at_once_and_one_wins(self):
        daemons = [
            subprocess.Popen([NPUMEMD, "--socket", self.path], stderr=subprocess.DEVNULL) for _ in range(8)
        ]
        wait_for(lambda: sum(d.poll() is None for d in daemons) == 1 and listens(self.path))
        for daemon in daemons:
            if daemon.poll() is None:
                daemon.terminate()
        codes = sorted(daemon.wait(SECONDS) for daemon in daemons)
        self.assertEqual(codes, [0] + [1] * 7)
        self.assertEqual(self.files(), [])

    def test_mode_and_missing_directory(self):
        for option, mode in ((), 0o666), (("--mode", "600"), 0o600), (("--mode", "0660"), 0o660):
            with Daemon(*option, directory=self.directory):
                self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), mode)
        path = os.path.join(self.directory, "new", "x.sock")
        daemon = subprocess.Popen([NPUMEMD, "--socket", path], stderr=subprocess.DEVNULL)
        wait_for(lambda: os.path.exists(path))
        daemon.terminate()
        self.assertEqual(daemon.wait(SECONDS), 0)
        refused = run("--socket", os.path.join(self.directory, "no", "such", "x.sock"))
        self.assertEqual((refused.returncode, refused.stderr.count("\n")), (1, 1))


class Options(unittest.TestCase):
    def refused(self, *options, code=2, text=""):
        result = run(*options)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result)
        self.assertTrue(result.stderr.startswith("npumemd: "), result.stderr)
        self.assertEqual(result.stderr.endswith(" (see npumemd --help)\n"), code == 2, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertIn(text, result.stderr)

    def test_bad_values(self):
        self.refused("--npus", "0", text="0")
        self.refused("--npus", "1025", text="1025")
        self.refused("--npus", "many", text="many")
        self.refused("--npus", "", text="--npus")
        self.refused("--npus", "1 ", text="--npus")
        self.refused("--npu-bytes", "100", text="100")
        self.refused("--npu-bytes", "99999999999999999999")
        self.refused("--banks", "-1")
        self.refused("--chip", "z80", text="bm1684")
        self.refused("--chip", "bm1684", "--npus", "4", text="--chip")
        self.refused("--rounding", "down", text="convergent")
        self.refused("--isa", "mmx", text="must be one of scalar avx2 avx512vnni amx_int8 neon neon_dot")
        for value in ("-1", "many", "", "9" * 30, "1KB", "K", "-1K", "9999999999G"):
            self.refused("--pack-bytes", value, text="not a number of bytes")
            self.refused("--limit", f"request_bytes={value}", text="a number of bytes above 0")
        for value in ("0", "-1", "1K", ""):
            self.refused("--limit", f"sessions={value}", text="a number above 0")
        self.refused("--limit-uid", "0:segment_bytes=1Q", text="a number of bytes above 0")
        self.refused("--uninitialized", "maybe", text="refuse")
        self.refused("--mode", "999", text="octal")
        self.refused("--log", "loud", text="debug")
        for option in ("--frame-seconds", "--drain-seconds", "--stop-seconds"):
            for value in ("0", "-1", "86401", "1.5", "soon", ""):
                self.refused(option, value, text="1 to 86400 seconds")
        for value in ("-1", "1001", "some"):
            self.refused("--spin-us", value, text="0 to 1000 microseconds")
        self.refused("--limit", "descriptors=0", text="descriptors=0")
        self.refused("--fd", "-3")
        self.refused("--fd", "3", "--socket", "x")
        self.refused("--socket", "x" * 108, text="107")
        self.refused("--socket", "")
        self.refused("--socket")
        self.refused("--frobnicate", text="--frobnicate")
        self.refused("-x")
        self.refused("argument", text="argument")
        self.refused("--fd", "99", code=1)

    def test_help_and_version(self):
        result = run("--help")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        for option in ("--socket", "--chip", "--npus", "--npu-bytes", "--rounding", "--uninitialized", "--fd"):
            self.assertIn(option, result.stdout)
        result = run("--version")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertRegex(result.stdout, r"^npumemd \d+\.\d+\.\d+\n$")

    def info(self, *options):
        with Daemon(*options) as daemon, daemon.client() as client:
            return client.call(info=pb.InfoRequest()).info

    def test_options_reach_the_device(self):
        info = self.info("--chip", "sg2380", "--rounding", "up", "--uninitialized", "warn", "--allow-unchecked-reuse")
        self.assertEqual((info.n_npus, info.npu_bytes, info.n_banks, info.eu_bytes), (32, 131072, 16, 16))
        self.assertEqual((info.rounding, info.uninitialized), (pb.UP, pb.WARN))
        self.assertTrue(info.unchecked_reuse)
        info = self.info("--npus", "4", "--npu-bytes", "4096", "--banks", "2")
        self.assertEqual((info.n_npus, info.npu_bytes, info.n_banks), (4, 4096, 2))
        self.assertEqual((info.rounding, info.uninitialized), (pb.CONVERGENT, pb.REFUSE))
        self.assertFalse(info.unchecked_reuse)
        self.assertEqual(self.info("--isa", "scalar").isa, "scalar")
        self.info("--npus", "1024", "--npu-bytes", str(1 << 24))  # 16 GiB that nobody touches

    def test_instructions_that_are_not_here(self):
        trees = [["scalar", "avx2", "avx512vnni", "amx_int8"], ["scalar", "neon", "neon_dot"]]
        best = self.info().isa
        here = next(names[: names.index(best) + 1] for names in trees if best in names)
        for name in here:
            self.assertEqual(self.info("--isa", name).isa, name)
        for name in {name for names in trees for name in names} - set(here):
            self.refused("--isa", name, text=f"--isa {name}: the best that there is here is {best}")

    @unittest.skipUnless(os.uname().machine == "x86_64", "tiles are of x86-64")
    def test_tiles_that_the_system_denies(self):
        with Daemon(preexec=deny_tiles) as daemon, daemon.client() as client:
            best = client.call(info=pb.InfoRequest()).info.isa
            self.assertIn(best, ("scalar", "avx2", "avx512vnni"))
        result = subprocess.run(
            [NPUMEMD, "--isa", "amx_int8"], capture_output=True, timeout=SECONDS, preexec_fn=deny_tiles, check=False
        )
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"the best that there is here is {best}", result.stderr.decode())

    def test_the_default_socket(self):
        # Root's would be /run/npumem/npumem.sock, which is not a test's to take.
        uid = os.geteuid() or 1234
        with tempfile.TemporaryDirectory() as directory:
            os.chown(directory, uid, -1)
            environment = dict(os.environ, XDG_RUNTIME_DIR=directory)
            daemon = subprocess.Popen(
                [NPUMEMD], env=environment, stderr=subprocess.PIPE, preexec_fn=lambda: os.setuid(uid)
            )
            path = os.path.join(directory, "npumem.sock")
            self.assertEqual(daemon.stderr.readline(), f"npumemd: 64 NPUs x 524288 bytes on {path}\n".encode())
            self.assertTrue(os.path.exists(path))
            daemon.terminate()
            self.assertEqual(daemon.wait(SECONDS), 0)
            daemon.stderr.close()


class OneSocket(unittest.TestCase):
    def start(self, child_end, *options):
        number = child_end.fileno()
        return subprocess.Popen(
            [NPUMEMD, "--fd", str(number), "--log", "warning", *options], pass_fds=[number], stderr=subprocess.PIPE
        )

    def test_serves_one_connection_and_goes_with_it(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        daemon = self.start(theirs, "--npus", "2")
        theirs.close()
        with Client(sock=ours) as client:
            self.assertEqual(client.call(info=pb.InfoRequest()).info.n_npus, 2)
            client.alloc("x", (1, 2, 1, 4))
            client.sock.sendall(frame(pb.Request(id=9, stat=pb.StatRequest())))
            client.sock.shutdown(socket.SHUT_WR)
            self.assertEqual(client.receive().stat.tensors, 1)
        self.assertEqual(daemon.wait(SECONDS), 0)
        self.assertEqual(daemon.stderr.read(), b"")
        daemon.stderr.close()

    def test_dies_with_its_parent(self):
        # The grandchild keeps our end of the socket open, so only the signal can end it.
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        parent = os.fork()
        if parent == 0:
            daemon = self.start(theirs)
            assert daemon.poll() is None
            Client(sock=ours).stat()
            os._exit(0)
        os.waitpid(parent, 0)
        theirs.close()
        with Client(sock=ours) as client, self.assertRaises((HungUp, ConnectionError)):
            client.receive()


class WithoutFds(TestCase):
    @staticmethod
    def preexec():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    def test_it_says_so_and_lives_on(self):
        clients = []
        turned_away = 0
        for _ in range(60):
            client = self.daemon.client()
            try:
                client.send(stat=pb.StatRequest())
                response = client.receive()
            except (BrokenPipeError, ConnectionResetError, HungUp):
                turned_away += 1
                client.close()
                continue
            if response.id:
                clients.append(client)
            else:
                self.assertEqual(response.status, pb.RESOURCE_EXHAUSTED)
                self.assertIn("descriptor", response.message)
                turned_away += 1
                client.close()
        self.assertGreater(len(clients), 10)
        self.assertGreater(turned_away, 10)
        for client in clients[1:]:
            client.close()
        wait_for(self.served)
        # Not a new connection: descriptors are closed on threads, so the next one can still be turned away.
        self.assertEqual(clients[0].stat().tensors, 0)
        clients[0].close()
        wait_for(self.served)

    def served(self):
        try:
            with self.daemon.client() as client:
                client.send(stat=pb.StatRequest())
                return client.receive().id != 0
        except (BrokenPipeError, ConnectionResetError, HungUp):
            return False


if __name__ == "__main__":
    unittest.main()
