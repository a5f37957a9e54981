"""What a uid is told: only of tensors that it may know of, and its lines in the log whatever others do."""

import contextlib
import unittest

from support import HungUp, TestCase, alloc, encode_length, free, pb, ref, wait_for

ALICE, BOB = 12001, 12002


class Moves(TestCase):
    def setUp(self):
        super().setUp()
        self.alice, self.bob = self.client(ALICE), self.client(BOB)
        self.alice.alloc("low")
        # By turns; one of Alice's is shown to Bob.
        for name in "abc":
            self.alice.call(**alloc(name))
            self.bob.call(**alloc(name))
        self.alice.call(grant=pb.GrantRequest(tensor=ref("a"), uid=BOB, access=pb.ACCESS_READ))
        self.alice.alloc("")  # unnamed, of a session
        self.alice.call(**free("low"))

    def check(self, dry_run):
        names = {tensor.handle: tensor.name for tensor in self.bob.tensors()}
        self.assertEqual(sorted(names.values()), ["a", "a", "b", "c"])
        answer = self.bob.call(compact=pb.CompactRequest(dry_run=dry_run)).compacted
        self.assertEqual({move.handle for move in answer.moves} - set(names), set(), answer.moves)
        self.assertEqual(len(answer.moves), 4)
        places = {tensor.handle: tensor.place.address for tensor in self.bob.tensors()}
        for move in answer.moves:
            self.assertEqual(places[move.handle], move.from_address if dry_run else move.to_address)

    def test_of_a_compaction(self):
        self.check(False)

    def test_of_a_dry_run(self):
        self.check(True)

    def test_who_administers_is_told_all(self):
        with self.daemon.client() as root:
            self.assertEqual(len(root.call(compact=pb.CompactRequest(dry_run=True)).compacted.moves), 7)


class Log(TestCase):
    def causes_a_line(self, uid):
        client = self.client(uid)
        with contextlib.suppress(ConnectionError):
            client.sock.sendall(encode_length(1 << 40))
            client.receive()
            with contextlib.suppress(HungUp):
                client.receive()

    def lines_of(self, uid):
        return self.daemon.output().count(f"(uid {uid}, ".encode())

    def test_lines_of_one_uid_do_not_hide_anothers(self):
        for _ in range(400):
            self.causes_a_line(ALICE)
        for _ in range(3):
            self.causes_a_line(BOB)
        wait_for(lambda: self.lines_of(BOB) >= 3)
        # Nor are there as many as one likes.
        self.assertLess(self.lines_of(ALICE), 400)


if __name__ == "__main__":
    unittest.main()
