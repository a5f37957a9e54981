"""A user that connects and hangs up, over and over, pays for that with its own turns at the loop."""

import os
import socket
import unittest

from support import TestCase, least_beside, pb, wait_for

ALICE, BOB = 12001, 12002
N = 64


def connects(path, n):
    """Opens n connections at a time and closes them, with nothing sent."""
    while True:
        socks = []
        for _ in range(n):
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
            try:
                sock.connect(path)
            except BlockingIOError:  # the backlog is full
                pass
            socks.append(sock)
        for sock in socks:
            sock.close()


@unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
class Connects(TestCase):
    def began(self, root):
        """Sessions of ALICE, ever; those that were turned away are not among them."""
        return root.call(stat=pb.StatRequest(details=True)).stat.all.sessions

    def test_connections_that_hang_up_at_once(self):
        bob, root = self.client(BOB), self.client()
        bob.call(info=pb.InfoRequest())

        def wait():
            before = self.began(root)
            wait_for(lambda: self.began(root) > before + 1000)

        least_beside(bob, root, ALICE, lambda: connects(self.daemon.path, N), wait)


if __name__ == "__main__":
    unittest.main()
