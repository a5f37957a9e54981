"""What a socket can bring: frames cut, empty, too long, and clients that hang up in the middle of anything."""

import contextlib
import socket
import unittest

from support import SECONDS, HungUp, TestCase, encode_length, frame, pb, rss_bytes, wait_for


class Framing(TestCase):
    def ends_with_reason(self, data, text):
        client = self.client()
        client.sock.sendall(data)
        response = client.receive()
        self.assertEqual((response.id, response.status), (0, pb.INVALID))
        self.assertIn(text, response.message)
        with self.assertRaises((HungUp, ConnectionResetError)):
            client.receive()
        self.assert_alive()

    def test_an_empty_frame_is_answered_and_the_connection_goes_on(self):
        client = self.client()
        client.sock.sendall(b"\0\0" + frame(pb.Request(id=3, stat=pb.StatRequest())))
        self.assertEqual(client.receive().status, pb.INVALID)
        self.assertEqual(client.receive().status, pb.INVALID)
        self.assertEqual(client.receive().id, 3)

    def test_a_malformed_message_is_answered_and_the_connection_goes_on(self):
        client = self.client()
        client.sock.sendall(b"\x05\x08\x07\xff\xff\xff" + frame(pb.Request(id=8, stat=pb.StatRequest())))
        response = client.receive()
        self.assertEqual((response.id, response.status), (7, pb.INVALID))
        self.assertEqual(client.receive().id, 8)

    def test_lengths_that_end_the_connection(self):
        self.ends_with_reason(b"\x80" * 10, "10 bytes")
        self.ends_with_reason(b"\xff" * 9 + b"\x02", "10 bytes")
        self.ends_with_reason(encode_length((16 << 20) + 1), "16777216")
        self.ends_with_reason(encode_length(2**64 - 1), "16777216")

    def test_what_came_before_a_bad_length_is_answered(self):
        client = self.client()
        client.sock.sendall(frame(pb.Request(id=5, stat=pb.StatRequest())) + b"\x80" * 10)
        self.assertEqual(client.receive().id, 5)
        self.assertEqual(client.receive().id, 0)

    def test_hanging_up_anywhere_in_a_message(self):
        owner = self.client()
        tensor = owner.alloc("x", (1, 8, 1, 1000))
        write = pb.WriteRequest(tensor=pb.Ref(handle=tensor.handle), data=b"\1" * 8000)
        whole = frame(pb.Request(id=1, write=write))
        for cut in (1, 2, 3, 10, 4000, len(whole) - 1):
            with self.daemon.client() as client:
                client.sock.sendall(whole[:cut])
        wait_for(lambda: owner.stat().sessions == 1)
        self.assertEqual(owner.tensors()[0].state, "unwritten")

    def test_hanging_up_before_the_reply_is_read(self):
        owner = self.client()
        tensor = owner.alloc("x", (1, 64, 1, 20000))
        owner.write(tensor.handle, b"\7" * (64 * 20000))
        read = frame(pb.Request(id=1, read=pb.ReadRequest(tensor=pb.Ref(handle=tensor.handle))))
        for _ in range(5):
            with self.daemon.client() as client:
                client.sock.sendall(read * 3)
                client.sock.recv(100)
        wait_for(lambda: owner.stat().sessions == 1)
        self.assertEqual(owner.read(tensor.handle, 5, 2), b"\7\7")

    def test_half_a_close_still_gets_its_answers(self):
        client = self.client()
        client.sock.sendall(b"".join(frame(pb.Request(id=i, info=pb.InfoRequest())) for i in range(1, 101)))
        client.sock.shutdown(socket.SHUT_WR)
        self.assertEqual([client.receive().id for _ in range(100)], list(range(1, 101)))
        with self.assertRaises(HungUp):
            client.receive()

    def test_half_a_close_with_long_replies(self):
        client = self.client()
        tensor = client.alloc("x", (1, 64, 1, 30000))
        client.write(tensor.handle, b"\3" * (64 * 30000))
        read = pb.ReadRequest(tensor=pb.Ref(handle=tensor.handle))
        client.sock.sendall(b"".join(frame(pb.Request(id=i, read=read)) for i in range(1, 11)))
        client.sock.shutdown(socket.SHUT_WR)
        responses = [client.receive() for _ in range(10)]
        self.assertEqual(sorted(response.id for response in responses), list(range(1, 11)))
        for response in responses:
            self.assertEqual(len(response.done.data), 64 * 30000)
        with self.assertRaises(HungUp):
            client.receive()

    def data_bytes(self):
        with open(f"/proc/{self.daemon.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmData")) << 10

    def test_an_announced_frame_costs_what_was_sent_of_it(self):
        clients = [self.client() for _ in range(50)]
        clients[0].stat()
        before = self.data_bytes()
        for client in clients:
            client.sock.sendall(encode_length(16 << 20) + b"\x08")
        self.assert_alive()
        self.assertLess(self.data_bytes() - before, 8 << 20)
        before, resident = self.data_bytes(), rss_bytes(self.daemon.process.pid)
        for client in clients:
            client.sock.sendall(bytes(70000))
        self.assert_alive()
        self.assertLess(rss_bytes(self.daemon.process.pid) - resident, 16 << 20)
        # Room that is not touched is set aside ahead of it, so that growing need not copy much.
        self.assertLess(self.data_bytes() - before, 64 << 20)

    def test_two_hundred_connections(self):
        clients = [self.client() for _ in range(200)]
        for i, client in enumerate(clients):
            client.send(fill=pb.FillRequest(tensor=pb.Ref(handle=i + 1), integer=1))
            client.send(info=pb.InfoRequest())
        sessions = set()
        for client in clients:
            self.assertEqual(client.receive().status, pb.NOT_FOUND)
            sessions.add(client.receive().info.session)
        self.assertEqual(len(sessions), 200)
        self.assertEqual(self.assert_alive().sessions, 201)


class Unread(TestCase):
    """How many replies are on their way when the first has filled the socket depends on the threads: what is held
    is bounded by what the uid may have."""

    MIB = 1 << 20
    LIMIT_BYTES, REST_BYTES = 8 * MIB, 8 * MIB  # the rest is what is not for this client's replies
    options = ("--limit", f"request_bytes={LIMIT_BYTES}")

    def fill_socket(self, client, data):
        """Sends until nothing more is taken from it; how many bytes that was."""
        client.sock.setblocking(False)
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while sent < 64 * self.MIB:
                sent += client.sock.send(data[sent % len(data) :])
        client.sock.setblocking(True)
        client.sock.settimeout(SECONDS)
        return sent

    def test_a_client_that_does_not_read_is_not_read_from(self):
        client = self.client()
        tensor = client.alloc("x", (1, 64, 1, 20000))
        client.write(tensor.handle, b"\5" * (64 * 20000))
        before = rss_bytes(self.daemon.process.pid)
        read = frame(pb.Request(id=1, read=pb.ReadRequest(tensor=pb.Ref(handle=tensor.handle))))
        sent = self.fill_socket(client, read * 1000)
        self.assertGreater(sent, 100 * len(read))
        self.assertLess(sent, 4 * self.MIB)
        self.assert_alive()
        self.assertLess(rss_bytes(self.daemon.process.pid) - before, self.LIMIT_BYTES + self.REST_BYTES)
        # And when it reads it gets all of it, and nothing is refused for want of room.
        for _ in range(20):
            self.assertEqual(len(client.receive().done.data), 64 * 20000)


if __name__ == "__main__":
    unittest.main()
