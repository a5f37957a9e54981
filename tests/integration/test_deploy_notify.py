"""What the daemon tells systemd, and that it serves the socket that systemd hands it."""

import contextlib
import fcntl
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from support import NPUMEMD, SECONDS, Client, Daemon, HungUp, needs_systemd, pb, rss_bytes, wait_for

READY = "READY=1\nSTATUS="
STOPPING = "STOPPING=1\nSTATUS="
WATCHDOG = "WATCHDOG=1"
F_SETPIPE_SZ = 1031


class Case(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="npumem-test-")
        self.addCleanup(shutil.rmtree, self.directory)
        os.chmod(self.directory, 0o755)
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)

    def path(self, name):
        return os.path.join(self.directory, name)


class Systemd:
    """The end of $NOTIFY_SOCKET that systemd has."""

    def __init__(self, case, name=None):
        self.name = name or case.path("notify")
        self.socket = case.stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.socket.bind("\0" + self.name[1:] if self.name[0] == "@" else self.name)

    def environment(self, watchdog_ms=0):
        """For a daemon's preexec: WATCHDOG_PID must be the daemon's own."""

        def set_up():
            os.environ["NOTIFY_SOCKET"] = self.name
            if watchdog_ms:
                os.environ.update(WATCHDOG_USEC=str(watchdog_ms * 1000), WATCHDOG_PID=str(os.getpid()))

        return set_up

    def told(self, seconds=SECONDS):
        """The next message, or None."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(4096).decode()
        except (TimeoutError, BlockingIOError):
            return None

    def told_all(self):
        return list(iter(lambda: self.told(0), None))


class Notify(Case):
    def test_ready_when_it_can_be_reached_and_stopping_when_it_ends(self):
        for name in (self.path("notify"), f"@npumem-test-{os.getpid()}"):
            systemd = Systemd(self, name)
            process = subprocess.Popen(
                [NPUMEMD, "--socket", self.path("s"), "--chip", "bm1690"],
                stderr=subprocess.DEVNULL,
                preexec_fn=systemd.environment(),
            )
            try:
                self.assertEqual(systemd.told(), f"{READY}64 NPUs x 262144 bytes on {self.path('s')}")
                with Client(self.path("s")) as client:
                    client.stat()
                process.terminate()
                self.assertEqual(systemd.told(), f"{STOPPING}finishing what runs")
                self.assertEqual(process.wait(SECONDS), 0)
            finally:
                process.kill()
                process.wait()
            self.assertEqual(systemd.told_all(), [])

    def test_not_ready_where_it_cannot_serve(self):
        systemd = Systemd(self)
        with Daemon(directory=self.directory) as daemon:
            second = subprocess.run(
                [NPUMEMD, "--socket", daemon.path],
                stderr=subprocess.DEVNULL,
                preexec_fn=systemd.environment(1000),
                timeout=SECONDS,
            )
        self.assertEqual(second.returncode, 1)
        self.assertEqual(systemd.told_all(), [])

    def test_a_private_daemon_is_nobodys_service(self):
        systemd = Systemd(self)
        ours, its = socket.socketpair()

        def set_up():
            systemd.environment(1)()
            os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))

        with subprocess.Popen([NPUMEMD, "--fd", str(its.fileno())], pass_fds=[its.fileno()], preexec_fn=set_up,
                              stderr=subprocess.DEVNULL) as process:
            its.close()
            with Client(sock=ours) as client:
                client.stat()
                time.sleep(0.05)
            self.assertEqual(process.wait(SECONDS), 0)
        self.assertEqual(systemd.told_all(), [])

    def test_a_name_that_is_no_socket(self):
        long = "/" + 108 * "x"
        for name, complaint in (
            ("", "NOTIFY_SOCKET : not the name of a Unix socket"),
            ("vsock:2:1", "NOTIFY_SOCKET vsock:2:1: not the name of a Unix socket"),
            (long, f"NOTIFY_SOCKET {long}: not the name of a Unix socket"),
            ("/nowhere/notify", "cannot tell systemd READY=1: No such file or directory"),
        ):
            with Daemon(preexec=lambda name=name: os.environ.update(NOTIFY_SOCKET=name)) as daemon:
                with daemon.client() as client:
                    client.stat()
                self.assertIn(f"npumemd: {complaint}\n", daemon.output().decode())


class Watchdog(Case):
    def daemon(self, systemd, watchdog_ms, fds=1024):
        def set_up():
            systemd.environment(watchdog_ms)()
            resource.setrlimit(resource.RLIMIT_NOFILE, (fds, fds))

        return self.stack.enter_context(Daemon(directory=self.directory, preexec=set_up))

    def test_signs_of_life_twice_in_its_time(self):
        systemd = Systemd(self)
        # From before the first: what is told waits for a reader that is slow.
        started = time.monotonic()
        self.daemon(systemd, 200)
        self.assertTrue(systemd.told().startswith(READY))
        for _ in range(4):
            self.assertEqual(systemd.told(), WATCHDOG)
        self.assertGreater(time.monotonic() - started, 0.3)

    def test_none_unasked(self):
        def another_process(variables):
            return lambda: os.environ.update(variables, NOTIFY_SOCKET=systemd.name)

        systemd = Systemd(self)
        for variables in (
            {},
            {"WATCHDOG_USEC": "2000", "WATCHDOG_PID": "1"},
            {"WATCHDOG_USEC": "0"},
            {"WATCHDOG_USEC": "-5"},
            {"WATCHDOG_USEC": "2000x"},
            {"WATCHDOG_USEC": "2000", "WATCHDOG_PID": "me"},
        ):
            with Daemon(directory=self.directory, preexec=another_process(variables)) as daemon:
                time.sleep(0.02)
                daemon.end()
            kinds = [message.split("\n")[0] for message in systemd.told_all()]
            self.assertEqual(kinds, ["READY=1", "STOPPING=1"], variables)

    def test_none_while_it_is_held_up(self):
        systemd = Systemd(self)
        daemon = self.daemon(systemd, 100)
        self.assertTrue(systemd.told().startswith(READY))
        self.assertEqual(systemd.told(), WATCHDOG)
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(0.1)
        systemd.told_all()
        self.assertIsNone(systemd.told(0.5))
        daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(systemd.told(), WATCHDOG)

    def test_a_log_that_nobody_reads_holds_nothing_up(self):
        systemd = Systemd(self)
        reader, writer = os.pipe()
        process = subprocess.Popen(
            [NPUMEMD, "--socket", self.path("s"), "--log", "debug"],
            stderr=writer,
            preexec_fn=systemd.environment(100),
        )
        try:
            self.assertTrue(systemd.told().startswith(READY))
            fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
            with Client(self.path("s")) as client:  # about which it has something to say
                for _ in range(200):
                    client.stat()
            systemd.told_all()
            for _ in range(3):
                self.assertEqual(systemd.told(), WATCHDOG)
            process.terminate()
            self.assertEqual(process.wait(SECONDS), 0)
        finally:
            process.kill()
            process.wait()
            os.close(reader)
            os.close(writer)

    def test_it_lives_without_fds(self):
        systemd = Systemd(self)
        daemon = self.daemon(systemd, 100, fds=24)
        for _ in range(24):
            client = self.stack.enter_context(daemon.client())
            # One that is turned away may be so before it has said anything; the reason is there all the same.
            with contextlib.suppress(BrokenPipeError):
                client.send(stat=pb.StatRequest())
            response = client.receive()
            if response.status != pb.OK:
                break
        self.assertEqual(response.status, pb.RESOURCE_EXHAUSTED)
        systemd.told_all()
        for _ in range(3):
            self.assertEqual(systemd.told(), WATCHDOG)

    def test_it_lives_until_its_end(self):
        systemd = Systemd(self)
        daemon = self.daemon(systemd, 100)
        with daemon.client() as client:
            tensor = client.alloc("x", (1, 64, 1, 100000))
            client.write(tensor.handle, b"\1" * 6400000)
            client.send(read=pb.ReadRequest(tensor=pb.Ref(name="x")))
            client.sock.recv(1, socket.MSG_PEEK)
            daemon.process.terminate()  # which waits for the client to read
            # It is told of nothing for a while where the daemon is slow to look at the signal.
            while not (word := systemd.told()) or not word.startswith(STOPPING):
                pass
            for _ in range(3):
                self.assertEqual(systemd.told(), WATCHDOG)
            self.assertEqual(len(client.receive().done.data), 6400000)
        daemon.process.wait(SECONDS)


@needs_systemd
class Activation(Case):
    """Under systemd-socket-activate, which does as systemd does: it listens, and runs the daemon for the first
    client."""

    def activate(self, *listen, options=(), preexec=None):
        log = self.stack.enter_context(open(self.path("log"), "wb"))
        process = subprocess.Popen(
            ["systemd-socket-activate", *listen, NPUMEMD, *options], stderr=log, preexec_fn=preexec
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_for(lambda: self.output().count(b"Listening on") == listen.count("-l"))
        return process

    def output(self):
        with open(self.path("log"), "rb") as log:
            return log.read()

    def wait_for_output(self, text):
        wait_for(lambda: text.encode() in self.output())

    def test_the_first_client_is_answered_and_the_file_stays(self):
        process = self.activate("-l", self.path("s"), options=("--socket", self.path("other")))
        before = os.stat(self.path("s"))
        with Client(self.path("s")) as client, Client(self.path("s")) as second:
            client.stat()
            second.stat()
            self.wait_for_output(f"64 NPUs x 524288 bytes on {self.path('s')}\n")
            self.assertEqual(sorted(os.listdir(self.directory)), ["log", "s"])
            process.terminate()
            with self.assertRaises((HungUp, ConnectionResetError)):
                client.receive()
        self.assertEqual(process.wait(SECONDS), 0)
        self.assertEqual(os.stat(self.path("s")).st_ino, before.st_ino)
        self.assertEqual(sorted(os.listdir(self.directory)), ["log", "s"])

    def test_an_abstract_name(self):
        name = f"@npumem-test-{os.getpid()}"
        self.activate("-l", name)
        with Client("\0" + name[1:]) as client:
            client.stat()
        self.wait_for_output(f"64 NPUs x 524288 bytes on {name}\n")

    def test_a_busy_daemon_takes_many(self):
        process = self.activate("-l", self.path("s"))
        clients = [self.stack.enter_context(Client(self.path("s"))) for _ in range(200)]
        for client in clients:
            client.stat()
        self.assertIsNone(process.poll())
        self.assertLess(rss_bytes(process.pid), 64 << 20)

    def test_more_than_one_socket_is_refused(self):
        process = self.activate("-l", self.path("a"), "-l", self.path("b"))
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.path("a"))
            self.assertEqual(process.wait(SECONDS), 1)
        self.assertTrue(
            self.output().endswith(b"npumemd: 2 sockets were passed (LISTEN_FDS): one can be served\n"), self.output()
        )

    def test_another_kind_of_socket_is_refused(self):
        complaint = (
            b"npumemd: the socket that was passed (LISTEN_FDS) is not a listening Unix stream socket\n"
        )
        process = self.activate("-d", "-l", self.path("s"))
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as client:
            client.sendto(b"x", self.path("s"))
            self.assertEqual(process.wait(SECONDS), 1)
        self.assertTrue(self.output().endswith(complaint), self.output())

    def test_variables_meant_for_another_process(self):
        for variables in ({"LISTEN_FDS": "1", "LISTEN_PID": "1"}, {"LISTEN_FDS": "x"}, {"LISTEN_FDS": "1"}):
            with Daemon(preexec=lambda variables=variables: os.environ.update(variables)) as daemon:
                with daemon.client() as client:
                    client.stat()


if __name__ == "__main__":
    unittest.main()
