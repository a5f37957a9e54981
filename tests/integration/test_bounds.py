"""What a connection may hold, and for how long: memory of frames on their way, file descriptors, the daemon's end."""

import fcntl
import os
import select
import signal
import socket
import time
import unittest

from support import Client, Endless, HungUp, TestCase, frame, pb, run_as, wait_for

MIB = 1 << 20
ALICE, BOB = 12001, 12002


def write_of(n, number):
    return frame(pb.Request(id=number, write=pb.WriteRequest(tensor=pb.Ref(name="x"), data=bytes(n))))


def info(number):
    return frame(pb.Request(id=number, info=pb.InfoRequest()))


class Bodies(TestCase):
    options = ("--npu-bytes", str(MIB), "--limit", f"request_bytes={4 * MIB}")

    def test_what_may_not_be_held_is_refused_by_its_id_and_the_connection_goes_on(self):
        client = self.client()
        for number, n in ((7, 6 * MIB), (300, 15 * MIB)):
            client.sock.sendall(write_of(n, number) + info(number + 1))
            answer = client.receive()
            self.assertEqual((answer.id, answer.status), (number, pb.RESOURCE_EXHAUSTED), answer)
            self.assertIn("request_bytes", answer.message)
            self.assertEqual(client.receive().id, number + 1)
        self.assert_alive()

    def test_a_part_counts_until_it_is_gone(self):
        begun = [self.client() for _ in range(3)]
        for client in begun:
            client.sock.sendall(write_of(MIB, 1)[:-1])
        late = self.client()

        def status():
            late.sock.sendall(write_of(MIB + MIB // 2, 9))
            return late.receive().status

        # Of a name that nobody has, where it is held at all.
        wait_for(lambda: status() == pb.RESOURCE_EXHAUSTED)
        for client in begun:
            client.close()
        wait_for(lambda: status() == pb.NOT_FOUND)

    def test_another_uid_has_room(self):
        begun = [self.client() for _ in range(8)]
        for client in begun:
            client.sock.sendall(write_of(MIB, 1)[:-1])

        def bob():
            with Client(self.daemon.path) as client:
                client.sock.sendall(write_of(3 * MIB, 4))
                return client.receive().status

        self.assertEqual(run_as(BOB, bob), str(pb.NOT_FOUND))

    def test_frames_of_every_length_in_every_piece(self):
        client = self.client()
        lengths = [0, 1, 100, 16300, 16384, 16400, 40000, 65500, 65536, 70000, 262144, 300000, MIB, 2 * MIB]
        data = b"".join(write_of(n, i + 1) for i, n in enumerate(lengths))
        for piece in (1 << 16, 7777, 100_003):
            for at in range(0, len(data), piece):
                client.sock.sendall(data[at : at + piece])
            answers = [client.receive() for _ in lengths]
            self.assertEqual(sorted(answer.id for answer in answers), list(range(1, len(lengths) + 1)))
            self.assertEqual({answer.status for answer in answers}, {pb.NOT_FOUND})


class Descriptors(TestCase):
    def memfd(self, n=4096):
        fd = os.memfd_create("test", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        self.addCleanup(os.close, fd)
        os.posix_fallocate(fd, 0, n)
        return fd

    def test_more_than_a_request_takes_end_the_connection(self):
        client = self.client()
        client.stat()
        before, fd = self.n_fds(), self.memfd()
        with self.daemon.client() as other:
            socket.send_fds(other.sock, [info(1)], [fd] * 20)
            answer = other.receive()
            self.assertEqual((answer.id, answer.status), (0, pb.INVALID), answer)
            self.assertIn("file descriptors", answer.message)
            with self.assertRaises((HungUp, ConnectionError)):
                other.receive()
        wait_for(lambda: self.n_fds() == before)

    def test_one_behind_a_part_of_a_frame_and_one_of_the_next(self):
        client = self.client()
        share = frame(pb.Request(id=1, share=pb.ShareRequest()))
        fds = [self.memfd(n) for n in (4096, 8192)]
        for fd in fds:
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        for _ in range(20):
            socket.send_fds(client.sock, [share[:1]], [fds[0]])
            client.sock.sendall(share[1:])
            socket.send_fds(client.sock, [share], [fds[1]])
            answers = sorted((client.receive().shared for _ in range(2)), key=lambda shared: shared.segment)
            self.assertEqual([answer.bytes for answer in answers], [4096, 8192])
            for answer in answers:
                client.sock.sendall(frame(pb.Request(id=2, unshare=pb.UnshareRequest(segment=answer.segment))))
                self.assertEqual(client.receive().status, pb.OK)

    def test_a_uid_parks_some_and_another_has_room(self):
        fd, before = self.memfd(), self.n_fds()
        clients = [self.client() for _ in range(20)]
        for client in clients:
            socket.send_fds(client.sock, [b"\x08"], [fd])
        told = {}  # as many descriptors are there on the way to it, too

        def are_refused():
            for sock in select.select([client.sock for client in clients if client not in told], [], [], 0)[0]:
                client = next(client for client in clients if client.sock is sock)
                told[client] = client.receive()
            return len(told) == 4 and self.n_fds() == before + 16 + 16

        wait_for(are_refused)
        for answer in told.values():
            self.assertEqual((answer.id, answer.status), (0, pb.RESOURCE_EXHAUSTED), answer)
            self.assertIn("descriptors", answer.message)

        def bob():
            with Client(self.daemon.path) as client:
                socket.send_fds(client.sock, [b"\x08"], [fd])
                client.sock.settimeout(0.2)
                client.receive()

        with self.assertRaisesRegex(AssertionError, "Timeout"):
            run_as(BOB, bob)
        for client in clients:
            client.close()
        wait_for(lambda: self.n_fds() == before)

    def test_one_that_waits_for_earlier_requests_to_be_handled(self):
        """Where the uid may park none any more, and the daemon reads all at once."""
        fd, n = self.memfd(), 400
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        before = self.n_fds()
        for client in [self.client() for _ in range(16)]:
            socket.send_fds(client.sock, [b"\x08"], [fd])
        wait_for(lambda: self.n_fds() == before + 2 * 16)
        infos, share = b"".join(info(1) for _ in range(n)), frame(pb.Request(id=2, share=pb.ShareRequest()))

        def send(last):
            client = self.client()
            os.kill(self.daemon.process.pid, signal.SIGSTOP)
            client.sock.sendall(infos)
            socket.send_fds(client.sock, [last], [fd])
            os.kill(self.daemon.process.pid, signal.SIGCONT)
            self.assertEqual({client.receive().id for _ in range(n)}, {1})
            return client.receive()

        self.assertEqual(send(share).shared.bytes, 4096)
        # A part of a request does wait for the client, once all that came before it is handled.
        answer = send(share[:1])
        self.assertEqual((answer.id, answer.status), (0, pb.RESOURCE_EXHAUSTED), answer)
        self.assertIn("descriptors", answer.message)


class End(TestCase):
    """Of a daemon with work that would go on for many seconds."""

    options = ("--npu-bytes", str(4 * MIB))

    def begin_long(self):
        client = self.client()
        client.post(Endless(client).call())
        client.answers(client.post({"info": pb.InfoRequest()}))  # so that it has begun
        return client


class EndInTime(End):
    options = (*End.options, "--stop-seconds", "1")

    def test_what_takes_longer_is_cut_off_and_the_log_says_what(self):
        client = self.begin_long()
        began = time.monotonic()
        self.daemon.end()
        self.assertGreater(time.monotonic() - began, 0.9)
        with self.assertRaises((HungUp, ConnectionError)):
            client.receive()
        output = self.daemon.output()
        self.assertIn(b"terminated: finishing 1 requests of 1 clients", output)
        self.assertIn(b"1 requests of 1 clients have not ended within 1 s", output)
        self.assertNotIn(b"does not read", output)


class EndAtOnce(End):
    options = (*End.options, "--stop-seconds", "3600")

    def test_a_second_signal_ends_it_at_once(self):
        self.begin_long()
        self.daemon.process.send_signal(signal.SIGTERM)
        wait_for(lambda: b"terminated: finishing" in self.daemon.output())
        self.daemon.end(signal.SIGINT)
        self.assertIn(b"interrupted again", self.daemon.output())
        self.assertFalse(os.path.exists(self.daemon.path))


class Spinning(TestCase):
    options = ("--spin-us", "50")

    def test_it_answers_like_any_other(self):
        client = self.client()
        client.alloc("x", (1, 64, 1, 1000))
        for i in range(2000):
            client.call(fill=pb.FillRequest(tensor=pb.Ref(name="x"), integer=i % 100))
        time.sleep(0.1)
        self.assertEqual(client.call(read=pb.ReadRequest(tensor=pb.Ref(name="x"), count=1)).done.data, bytes([1999 % 100]))

    def test_it_sleeps_where_nothing_comes(self):
        client = self.client()
        client.stat()
        time.sleep(0.2)

        def ticks():
            with open(f"/proc/{self.daemon.process.pid}/stat", "rb") as stat:
                fields = stat.read().rsplit(b") ", 1)[1].split()
            return int(fields[11]) + int(fields[12])

        before = ticks()
        time.sleep(0.5)
        self.assertLess(ticks() - before, 0.2 * os.sysconf("SC_CLK_TCK"))


if __name__ == "__main__":
    unittest.main()
