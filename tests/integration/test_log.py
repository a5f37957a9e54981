"""What the daemon says on stderr, and that nobody who fails to listen holds it up."""

import fcntl
import os
import re
import socket
import subprocess
import time
import unittest

from support import NPUMEMD, SECONDS, Client, HungUp, TestCase, dims, encode_length, listens, pb, run_as, wait_for

F_SETPIPE_SZ = 1031
LOST = re.compile(rb"npumemd: (\d+) lines?(?: of uid (\d+))? w\w+ lost")
LOUD, QUIET = 2001, 2002
REQUESTS = 3000  # a line of about 90 bytes each: more than the daemon keeps


def drain(fd, is_all):
    """What comes until that is all, and what is there then."""
    os.set_blocking(fd, False)
    out, last, end = b"", False, time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            got = os.read(fd, 1 << 20)
        except BlockingIOError:
            if last:
                break
            last = is_all(out)  # nothing comes after what is there by now
            time.sleep(0 if last else 0.01)
            continue
        if not got:
            break
        out, last = out + got, False
    return out


def accounted(out):
    """How many requests it tells of, said or lost."""
    return out.count(b" info: OK, ") + sum(int(lost[1]) for lost in LOST.finditer(out))


class Deaf(TestCase):
    """stderr is full and nobody reads it."""

    def start(self, stderr, *options, environment=None):
        path = os.path.join(self.daemon.directory, "deaf.sock")
        variables = dict(os.environ, **environment(stderr) if environment else {})
        process = subprocess.Popen(
            [NPUMEMD, "--socket", path, "--log", "debug", *options], stderr=stderr, env=variables
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_for(lambda: listens(path))
        return process, path

    def ask_much(self, path):
        with Client(path) as client:
            for _ in range(REQUESTS // 100):
                for _ in range(100):
                    client.send(info=pb.InfoRequest())
                for _ in range(100):
                    client.receive()

    def check(self, out, least):
        """Whole lines, and every one of them or the number of those that are missing."""
        self.assertTrue(out.endswith(b"\n"), out[-200:])
        lines = [re.sub(rb"^<\d>", b"", line) for line in out.split(b"\n")[:-1]]
        for line in lines:
            self.assertTrue(line.startswith(b"npumemd: "), line)
        lost = [int(m[1]) for m in (LOST.fullmatch(line) for line in lines) if m]
        self.assertGreater(len(lost), 0)
        answers = sum(b" info: OK, " in line for line in lines)
        self.assertLess(answers, REQUESTS)
        self.assertGreaterEqual(answers + sum(lost), least)
        self.assertLess(answers + sum(lost), least + 100)

    def deaf(self, reader, writer, environment=None):
        process, path = self.start(writer, environment=environment)
        self.ask_much(path)
        self.check(drain(reader, lambda out: out.endswith(b"\n") and accounted(out) >= REQUESTS), REQUESTS)
        # And from then on all is told again.
        with Client(path) as client:
            client.call(info=pb.InfoRequest())
        self.assertIn(b" info: OK, ", drain(reader, lambda out: b" info: OK, " in out))
        process.terminate()
        self.assertEqual(process.wait(SECONDS), 0)
        self.assertTrue(drain(reader, lambda _: True).endswith(b"npumemd: stopped\n"))

    def test_a_pipe(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        self.deaf(reader, writer)

    def test_a_pipe_that_is_not_waited_for(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        os.set_blocking(writer, False)
        self.deaf(reader, writer)

    def test_the_journal(self):
        def environment(sock):
            status = os.fstat(sock)
            return {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}

        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with ours, theirs:
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            self.deaf(ours.fileno(), theirs.fileno(), environment)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_one_uid_does_not_hide_another(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        process, path = self.start(writer)

        def ask_little():
            with Client(path) as client:
                for _ in range(20):
                    client.call(info=pb.InfoRequest())

        run_as(LOUD, lambda: self.ask_much(path))
        run_as(QUIET, ask_little)
        process.terminate()  # which is told, too
        out = drain(reader, lambda _: process.poll() is not None)
        self.assertEqual(process.wait(SECONDS), 0)
        lines = out.decode().splitlines()
        self.assertEqual(sum(f"(uid {QUIET}, " in line and " info: OK, " in line for line in lines), 20)
        self.assertTrue(any("terminated" in line for line in lines), lines[-5:])
        lost = {int(m[2]): int(m[1]) for m in map(LOST.fullmatch, out.splitlines()) if m}
        said = sum(f"(uid {LOUD}, " in line and " info: OK, " in line for line in lines)
        self.assertEqual(list(lost), [LOUD])
        self.assertGreater(said, 0)
        self.assertLessEqual(abs(said + lost[LOUD] - REQUESTS), 100)

    def test_its_end_does_not_wait_for_long(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        process, path = self.start(writer)
        self.ask_much(path)
        process.terminate()
        self.assertEqual(process.wait(SECONDS / 2), 0)

    def test_who_has_gone(self):
        reader, writer = os.pipe()
        os.close(reader)
        process, path = self.start(writer)
        os.close(writer)
        self.ask_much(path)
        process.terminate()
        self.assertEqual(process.wait(SECONDS), 0)


class Log(TestCase):
    def lines(self):
        return self.daemon.output().decode("ascii").splitlines()

    def client_line(self, text):
        wait_for(lambda: any(text in line for line in self.lines()))
        line = next(line for line in self.lines() if text in line)
        self.assertRegex(line, rf"^npumemd: session \d+ \(uid {os.getuid()}, pid {os.getpid()}\): ")
        return line


class Lines(Log):
    def test_ordinary_clients_are_not_worth_a_line(self):
        with self.daemon.client() as client:
            client.alloc("x")
            client.ask(free=pb.FreeRequest(tensors=[pb.Ref(name="y")]))
        self.daemon.end()
        self.assertEqual(len(self.lines()), 3)
        self.assertIn(" NPUs x ", self.lines()[0])
        self.assertEqual(self.lines()[1:], ["npumemd: terminated: finishing what runs", "npumemd: stopped"])

    def test_who_breaks_the_rules_is(self):
        with self.daemon.client() as client:
            client.sock.sendall(encode_length(1 << 30))
            with self.assertRaises(HungUp):
                while True:
                    client.receive()
        self.client_line("a frame of more than 16777216 bytes")

    def test_a_path_ends_no_line(self):
        done = subprocess.run(
            [NPUMEMD, "--socket", "/nowhere/\n\x1b/a/b"], capture_output=True, timeout=SECONDS, check=False
        )
        self.assertEqual((done.returncode, done.stderr.count(b"\n")), (1, 1))
        self.assertIn(rb"/nowhere/\x0a\x1b/a", done.stderr)

    def test_they_cannot_bury_the_others(self):
        clients = [self.client() for _ in range(80)]
        for client in clients:  # all of them within a second
            client.sock.sendall(encode_length(1 << 30))
        for client in clients:
            client.receive()
        self.assertLessEqual(sum("a frame of more" in line for line in self.lines()), 79)
        time.sleep(1.1)
        with self.daemon.client() as client:
            client.sock.sendall(encode_length(1 << 30))
            client.receive()
        # The line about those comes before the last client's.
        wait_for(lambda: any("more lines about clients were left out" in line for line in self.lines()))
        wait_for(lambda: self.accounted_for() >= 81)
        self.assertEqual(self.accounted_for(), 81)

    def accounted_for(self):
        lines = self.lines()
        left_out = sum(int(m[1]) for m in (re.search(r": (\d+) more lines", line) for line in lines) if m)
        return sum("a frame of more" in line for line in lines) + left_out


class Debug(Log):
    options = ("--log", "debug")

    def test_a_line_for_each_request(self):
        client = self.client()
        self.client_line("begins")
        client.alloc("x")
        line = self.client_line("alloc: OK")
        self.assertRegex(line, r"alloc: OK, \d+ bytes in, \d+ out, \d+ us$")
        client.ask(free=pb.FreeRequest(tensors=[pb.Ref(name="nobody")]))
        self.assertRegex(self.client_line("free: NOT_FOUND"), r"us: .*nobody")
        client.sock.sendall(b"\x02\xff\xff")
        client.receive()
        self.client_line("none: INVALID")
        client.close()
        self.client_line("ends")

    def test_no_client_can_forge_a_line_or_reach_the_terminal(self):
        client = self.client()
        for name in ("a\nnpumemd: all is well", "\x1b[2J\x1b]0;title\x07", "\u009b2J", "\u202egnp", "\r\b\x7f"):
            spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 1, 1, 1))
            client.ask(alloc=pb.AllocRequest(tensors=[pb.Allocation(name=name, spec=spec)]))
            client.ask(open=pb.OpenRequest(tensor=pb.Ref(name=name)))
            client.ask(subscribe=pb.SubscribeRequest(kinds=[name]))
        client.call(info=pb.InfoRequest())
        self.client_line("info: OK")
        output = self.daemon.output()
        self.assertIn(b"no tensor ?[2J?]0;title?", output)
        self.assertEqual([byte for byte in set(output) if byte != 10 and not 32 <= byte <= 126], [])
        for line in self.lines():
            self.assertRegex(line, r"^npumemd: (session \d+ \(|64 NPUs)")


if __name__ == "__main__":
    unittest.main()
