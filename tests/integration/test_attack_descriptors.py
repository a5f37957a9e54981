"""Descriptors that wait in a connection are counted, so that no uid takes those that others need."""

import contextlib
import fcntl
import os
import resource
import socket
import unittest

from support import HungUp, Sharer, TestCase, fill, frame, pb, wait_for

ALICE, BOB = 12001, 12002
FDS_AT_ONCE = 16


class Descriptors(TestCase):
    preexec = staticmethod(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024)))

    def setUp(self):
        super().setUp()
        self.fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        self.addCleanup(os.close, self.fd)

    def park(self, client):
        """Behind the first byte of a frame that never ends. True if the daemon has not closed the connection."""
        with contextlib.suppress(ConnectionError):
            socket.send_fds(client.sock, [b"\x7f"], [self.fd] * FDS_AT_ONCE)
            return True
        return False

    def test_other_uids_are_served(self):
        before, clients = self.n_fds(), [self.client(ALICE) for _ in range(70)]
        for client in clients:
            self.park(client)
        with self.daemon.client(BOB) as bob:
            bob.sock.settimeout(10)
            bob.alloc("x")
            bob.call(**fill("x", 1))
        self.assertLess(self.n_fds(), before + len(clients) + 256)

    def test_connections_end_where_a_uid_parks_many(self):
        clients = [self.client(ALICE) for _ in range(70)]
        for client in clients:
            self.park(client)
        for client in clients:
            client.sock.settimeout(0.1)
            try:
                self.assertEqual(client.receive().id, 0)  # why
                client.receive()
            except (HungUp, ConnectionError):
                return
            except TimeoutError:
                pass
        self.fail("none has ended")

    def test_one_that_comes_with_its_request_is_taken(self):
        """However slowly the request comes, and on several connections at once."""
        os.posix_fallocate(self.fd, 0, 4096)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        sharers = [self.stack.enter_context(Sharer(self.daemon.path)) for _ in range(4)]
        for sharer in sharers:
            sharer.stat()
        before = self.n_fds()
        request = frame(pb.Request(id=1, share=pb.ShareRequest()))
        for sharer in sharers:
            socket.send_fds(sharer.sock, [request[:1]], [self.fd])
        for sharer in sharers:
            sharer.sock.sendall(request[1:])
            self.assertEqual(sharer.receive().status, pb.OK)
        wait_for(lambda: self.n_fds() == before)  # a thread closes them


if __name__ == "__main__":
    unittest.main()
