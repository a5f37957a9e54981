"""A user is served as one, however many connections it has: the loop's time is shared between users."""

import os
import select
import socket
import time
import unittest

from support import Client, TestCase, alloc, beside, frame, least_beside, pb, wait_for

ALICE, BOB = 12001, 12002
ATTEMPTS = 10


def floods(path, n_connections):
    """Sends short requests over all connections, and reads the answers."""
    socks = []
    for _ in range(n_connections):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(path)
        sock.setblocking(False)
        socks.append(sock)
    data = frame(pb.Request(id=1, info=pb.InfoRequest())) * 500
    poll = select.epoll()
    of = {sock.fileno(): [sock, b""] for sock in socks}
    for fd in of:
        poll.register(fd, select.EPOLLIN | select.EPOLLOUT)
    while True:
        for fd, events in poll.poll():
            sock, rest = of[fd]
            if events & select.EPOLLIN:
                sock.recv(1 << 20)
            if events & select.EPOLLOUT:
                rest = rest or data
                try:
                    of[fd][1] = rest[sock.send(rest) :]
                except BlockingIOError:
                    of[fd][1] = rest


def refused_lists(path, n_connections):
    """Over each connection lists of fills, of which the last is refused, without waiting for answers."""
    clients = [Client(path) for _ in range(n_connections)]
    one = pb.Operation(fill=pb.FillRequest(tensor=pb.Ref(name="mine"), integer=1))
    clients[0].ask(**alloc("mine", (1, 64, 1, 4)))  # which stays from one time to the next
    wrong = pb.Operation(fill=pb.FillRequest(tensor=pb.Ref(name="none"), integer=1))
    data = frame(pb.Request(id=1, submit=pb.SubmitRequest(operations=[one] * 1000 + [wrong])))
    poll = select.epoll()
    of = {}
    for client in clients:
        client.sock.setblocking(False)
        of[client.sock.fileno()] = [client.sock, b""]
        poll.register(client.sock, select.EPOLLIN | select.EPOLLOUT)
    while True:
        for fd, events in poll.poll():
            sock, rest = of[fd]
            if events & select.EPOLLIN:
                sock.recv(1 << 20)
            if events & select.EPOLLOUT:
                rest = rest or data
                try:
                    of[fd][1] = rest[sock.send(rest) :]
                except BlockingIOError:
                    of[fd][1] = rest


@unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
class ManyConnections(TestCase):
    options = ("--npu-bytes", str(4 << 20))

    def requests(self, root):
        return {row.uid: row.requests for row in root.call(stat=pb.StatRequest(details=True)).stat.uids}

    def test_a_user_with_fifty_is_served_as_often_as_one_with_two(self):
        root, ratios = self.client(), []
        with beside(ALICE, lambda: floods(self.daemon.path, 50)), beside(BOB, lambda: floods(self.daemon.path, 2)):
            wait_for(lambda: min(self.requests(root).get(uid, 0) for uid in (ALICE, BOB)) > 1000)
            while len(ratios) < ATTEMPTS and (not ratios or min(ratios) > 2):
                before = self.requests(root)
                time.sleep(0.5)
                after = self.requests(root)
                ratios.append((after[ALICE] - before[ALICE]) / max(1, after[BOB] - before[BOB]))
        self.assertLess(min(ratios), 2, ratios)

    def test_lists_that_are_refused_at_their_end(self):
        bob, root = self.client(BOB), self.client()
        bob.call(info=pb.InfoRequest())

        def wait():
            before = self.requests(root).get(ALICE, 0)
            wait_for(lambda: self.requests(root).get(ALICE, 0) > before + 300)

        least_beside(bob, root, ALICE, lambda: refused_lists(self.daemon.path, 250), wait)


if __name__ == "__main__":
    unittest.main()
