"""A frame must arrive within a time, and a reply must go at a least rate."""

import contextlib
import time
import unittest

from support import SECONDS, HungUp, TestCase, encode_length, fill, frame, pb, read

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

    options = ("--npu-bytes", str(MIB), "--drain-seconds", "2")

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
        client = self.reader(2 * MIB)
        for _ in range(12):
            client.buffer += client.sock.recv(100_000)
            time.sleep(0.2)
        self.assertEqual(len(client.receive().done.data), 2 * MIB)


if __name__ == "__main__":
    unittest.main()
