"""A frame must arrive within a time, and a reply must go at a least rate."""

import contextlib
import signal
import time
import unittest

from support import SECONDS, SLOWER, HungUp, TestCase, encode_length, fill, frame, pb, read

MIB = 1 << 20


class Frames(TestCase):
    options = ("--frame-seconds", "1")

    def test_a_frame_arrives_within_a_time(self):
        clients = [self.client(), self.client()]
        clients[0].sock.sendall(encode_length(MIB) + bytes(1000))
        clients[1].sock.sendall(frame(pb.Request(id=1, info=pb.InfoRequest()))[:-1])
        for client in clients:
            with contextlib.suppress(HungUp, ConnectionError):
                answer = client.receive()  # why, perhaps
                self.assertEqual((answer.id, answer.status == pb.OK), (0, False), answer)
                with self.assertRaises(HungUp):
                    client.receive()

    def test_byte_by_byte_is_no_way_around_it(self):
        client = self.client()
        end = time.monotonic() + SECONDS
        client.sock.sendall(encode_length(1000))
        with self.assertRaises(ConnectionError):
            while time.monotonic() < end:
                client.sock.send(b"\0")
                time.sleep(0.2)

    def test_who_asks_nothing_stays(self):
        client = self.client()
        client.stat()
        time.sleep(1.7)
        client.stat()


class Replies(TestCase):
    """A reply goes out at a least rate: tens of KB a second are none, where so many MB wait; half a megabyte is."""

    options = ("--npu-bytes", str(MIB), "--drain-seconds", "4")

    def reader(self, n):
        client = self.client()
        client.alloc("x", (1, 64, 1, n // 64))
        client.call(**fill("x", 1))
        client.post(read("x"))
        return client

    def test_who_reads_little_now_and_then_is_dropped(self):
        client, end = self.reader(15 * MIB), time.monotonic() + SECONDS
        with self.daemon.client() as other:
            while other.stat().sessions > 1:
                self.assertLess(time.monotonic(), end, "it is still served")
                with contextlib.suppress(ConnectionError):
                    # As much as lets the daemon send some more, which the socket tells it in large steps.
                    client.sock.recv(220_000)
                time.sleep(1.5)

    def test_who_reads_all_the_while_is_not(self):
        client = self.reader(3 * MIB)
        for _ in range(20):
            client.buffer += client.sock.recv(150_000)
            time.sleep(0.25)
        self.assertEqual(len(client.receive().done.data), 3 * MIB)


class AtTheSameMoment(TestCase):
    options = ("--npu-bytes", str(MIB))
    N, TURN_MS = 100, 8 * SLOWER

    def test_many_read(self):
        """Each socket has room again for a part of a long reply, which is work of the user: no turn sends all of them."""
        watcher, clients = self.client(), [self.client(1001) for _ in range(self.N)]
        clients[0].alloc("x", (1, 64, 1, MIB // 64))
        clients[0].call(**fill("x", 1))
        found = []
        while len(found) < 4 and (not found or min(found) >= self.TURN_MS):
            for client in clients:
                client.post(read("x"))
            for client in clients:
                client._fill(1)  # pylint: disable=protected-access
            time.sleep(0.3)
            watcher.call(stat=pb.StatRequest(reset=True))
            self.daemon.process.send_signal(signal.SIGSTOP)
            for client in clients:
                self.read_what_is_there(client)
            self.daemon.process.send_signal(signal.SIGCONT)
            for client in clients:
                self.assertEqual(len(client.receive().done.data), MIB)
            found.append(watcher.call(stat=pb.StatRequest(details=True)).stat.loop.longest_cpu_ns / 1e6)
        print("longest turns, ms of processor time", found)
        self.assertLess(min(found), self.TURN_MS, found)

    @staticmethod
    def read_what_is_there(client):
        client.sock.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                client.buffer += client.sock.recv(MIB)
        client.sock.settimeout(SECONDS)


if __name__ == "__main__":
    unittest.main()
