"""What the daemon holds in host memory for a uid is bounded, whatever its connections send or do not read."""

import contextlib
import os
import resource
import socket
import time
import unittest

from support import HungUp, TestCase, fill, pb, read, rss_bytes, run

# What is freed is to be free under the address sanitizer, too.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"

MIB = 1 << 20
ALICE, BOB = 12001, 12002


class HostMemory(TestCase):
    options = ("--npu-bytes", str(MIB))

    def pid(self):
        return self.daemon.process.pid

    def most_of(self, seconds):
        """The most that the daemon holds within that time."""
        end, most = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            most = max(most, rss_bytes(self.pid()))
            time.sleep(0.02)
        return most

    def assert_bounded(self, before, most_mib, seconds=1.5):
        grown = (self.most_of(seconds) - before) / MIB
        self.assertLess(grown, most_mib, "MiB")
        # And others are served.
        with self.daemon.client(BOB) as bob:
            bob.alloc("x")
            bob.call(**fill("x", 1))


class UnreadReplies(HostMemory):
    options = ("--npu-bytes", str(MIB), "--limit", f"request_bytes={128 * MIB}")

    def test_replies_that_are_not_read_are_charged(self):
        owner = self.client(ALICE)
        owner.alloc("x", (1, 64, 1, 250 << 10))
        owner.call(**fill("x", 1))
        before = rss_bytes(self.pid())
        clients = [self.client(ALICE) for _ in range(60)]
        for client in clients:
            client.post(read("x"))
            client.sock.recv(1, socket.MSG_PEEK)  # answered, as far as the socket goes
        self.assert_bounded(before, 128 + 64, 0.5)
        # Each is answered, with its bytes or with why not.
        for client in clients:
            with contextlib.suppress(HungUp, ConnectionError):
                answer = client.receive()
                self.assertIn(answer.status, (pb.OK, pb.RESOURCE_EXHAUSTED), answer.message)
        self.assert_alive()


class Sessions(TestCase):
    preexec = staticmethod(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (20000, 20000)))
    ATTEMPTS = 4200

    def setUp(self):
        super().setUp()
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        resource.setrlimit(resource.RLIMIT_NOFILE, (20000, max(20000, limits[1])))

    def test_a_uid_does_not_get_as_many_as_there_are_fds_for(self):
        """Each costs memory, and time at every sweep."""
        for n in range(self.ATTEMPTS):
            client = self.client(ALICE)
            if n % 50:
                continue
            with contextlib.suppress(ConnectionError):  # the reason is there
                client.post({"info": pb.InfoRequest()})
            answer = client.receive()
            if answer.status != pb.OK:
                self.assertEqual((answer.id, answer.status), (0, pb.RESOURCE_EXHAUSTED))
                self.assertIn("sessions", answer.message)
                break
        self.assertLess(n, self.ATTEMPTS - 50, "none was turned away")
        self.client(BOB).call(info=pb.InfoRequest())


class Gathered(HostMemory):
    options = ("--npu-bytes", str(8 * MIB))
    N = 3072  # 9 MiB

    def test_a_tensor_in_many_roles_is_gathered_once(self):
        client, shape = self.client(ALICE), (self.N, self.N, 1, 1)
        client.alloc("x", shape, pb.FX8, 4, layout=pb.COMPACT)
        client.call(**fill("x", 1))
        client.alloc("out", shape, pb.FX8, 4, layout=pb.COMPACT)
        client.call(**fill("out", 1))
        before = rss_bytes(self.pid())
        operands = {f"{role}{i}": "x" for role in ("in", "weights") for i in range(9)}
        (sent,) = client.post(run(pb.RNN_DENSE, **operands, out="out"))
        # Once to read, once to write, and what the kernel needs beside.
        self.assert_bounded(before, 5 * 9, 1.5)
        client.answers([sent, *client.post({"cancel": pb.CancelRequest(request_id=sent)})])


if __name__ == "__main__":
    unittest.main()
