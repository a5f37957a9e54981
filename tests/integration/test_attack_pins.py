"""Tensors that cannot move leave every other user an equal share in one piece: however they come not to move, and whoever
is free of the rule."""

import os
import unittest

from support import TestCase, dims, free, pb

ALICE, BOB, CAROL = 12001, 12002, 12003
NPUS, NPU_BYTES, TINY = 4, 512 << 10, 128
CELL = NPU_BYTES // 1024
COMPACT = {"compact": pb.CompactRequest()}


def tensor(name, bytes_per_npu, address=None, c=NPUS, **members):
    spec = pb.Spec(dtype=pb.INT8, shape=dims(1, c, 1, bytes_per_npu))
    if address is not None:
        spec.address = address
    return {"alloc": pb.AllocRequest(tensors=[pb.Allocation(name=name, spec=spec, **members)])}


def share(users):
    """1 / (users + 1) of an NPU, in whole cells."""
    return 1024 // (users + 1) * CELL


def field(response, key):
    return next(f.number for f in response.fields if f.key == key)


@unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
class Base(TestCase):
    options = ("--npus", str(NPUS), "--npu-bytes", str(NPU_BYTES), "--compact-percent", "100")

    def scatter(self, client, n=256):
        """One tiny pinned tensor in each 1 / n of the device; how many are refused."""
        refused = 0
        for i in range(n):
            answer = client.ask(**tensor(f"p{i}", TINY, i * NPU_BYTES // n))
            if answer.status == pb.RESOURCE_EXHAUSTED:
                self.assertEqual([f.text for f in answer.fields if f.key == "limit"], ["places"])
                refused += 1
            else:
                self.assertEqual(answer.status, pb.OK, answer.message)
        return refused

    def check_shares(self, *clients):
        """Each of these users has an equal share in one piece, all at once."""
        bytes_per_npu = share(len(clients) + 1)
        clients[0].call(**COMPACT)
        for client in clients:
            client.call(**tensor("share", bytes_per_npu))


class Pins(Base):
    def test_one_in_each_256th(self):
        alice, bob, carol = self.client(ALICE), self.client(BOB), self.client(CAROL)
        self.assertGreater(self.scatter(alice), 128)
        self.check_shares(bob, carol)

    def test_before_the_others_come(self):
        alice = self.client(ALICE)
        self.scatter(alice)
        self.check_shares(self.client(BOB))

    def test_pins_and_then_an_equal_share_of_bytes(self):
        alice, bob, carol = self.client(ALICE), self.client(BOB), self.client(CAROL)
        self.scatter(alice)
        alice.ask(**tensor("bytes", share(3)))
        self.check_shares(bob, carol)

    def test_pinned_without_an_address(self):
        """Between tensors that go again."""
        alice, bob = self.client(ALICE), self.client(BOB)
        for i in range(64):
            alice.call(**tensor(f"gap{i}", NPU_BYTES // 64 - TINY))
            alice.ask(**tensor(f"p{i}", TINY, pinned=True))
        alice.call(**free(*(f"gap{i}" for i in range(64))))
        self.check_shares(bob)

    def test_several_in_one_request(self):
        """All or nothing."""
        alice, _ = self.client(ALICE), self.client(BOB)
        calls = [tensor(f"p{i}", TINY, i * NPU_BYTES // 8)["alloc"].tensors[0] for i in range(8)]
        answer = alice.ask(alloc=pb.AllocRequest(tensors=calls))
        self.assertEqual(answer.status, pb.RESOURCE_EXHAUSTED)
        self.assertEqual(alice.names(), [])
        self.assert_alive()

    def test_tensors_that_lend_and_borrow(self):
        """Hosts of one channel more than there are NPUs, and guests in their empty blocks."""
        alice, bob = self.client(ALICE), self.client(BOB)
        guests = 0
        for i in range(64):
            alice.call(**tensor(f"gap{i}", NPU_BYTES // 64 - 2 * TINY))
            alice.call(**tensor(f"host{i}", TINY, c=NPUS + 1, dma_only=True))
        for i in range(64):
            guest = tensor(f"guest{i}", TINY, c=1, dma_only=True, reuse=pb.IF_SAFE)
            guest["alloc"].tensors[0].spec.start_npu = 1
            answer = alice.ask(**guest)
            guests += answer.status == pb.OK
            if answer.status != pb.OK:
                self.assertEqual(field(answer, "share_bytes"), share(2), answer.message)
        self.assertGreater(guests, 4)
        alice.call(**free(*(f"gap{i}" for i in range(64))))
        self.check_shares(bob)

    def test_the_refusal_says_where_pins_may_lie(self):
        alice, _ = self.client(ALICE), self.client(BOB)
        alice.call(**tensor("low", TINY, 0))
        alice.call(**tensor("middle", TINY, NPU_BYTES // 2))
        answer = alice.ask(**tensor("quarter", TINY, NPU_BYTES // 4))
        self.assertEqual(answer.status, pb.RESOURCE_EXHAUSTED)
        self.assertIn("would not be left in one piece for each user; pins at offsets", answer.message)
        self.assertEqual(field(answer, "share_bytes"), share(2))
        self.assertEqual({f.key for f in answer.fields}, {"limit", "share_bytes", "spare_from", "spare_to"})
        start, end = field(answer, "spare_from"), field(answer, "spare_to")
        self.assertGreaterEqual(end - start, NPU_BYTES // 8)
        spare = []
        for at in range((start + TINY - 1) // TINY * TINY, end - TINY, 8 * TINY):
            spare.append(f"spare{at}")
            alice.call(**tensor(spare[-1], TINY, at))
        # What is refused is gone, and what goes makes room for another.
        self.assertNotIn("quarter", alice.names())
        alice.call(**free("middle", *spare))
        alice.call(**tensor("quarter", TINY, NPU_BYTES // 4))

    def test_alone_half_of_the_device_is_free_for_pins(self):
        alice = self.client(ALICE)
        for i in range(256):
            alice.call(**tensor(f"p{i}", TINY, i * NPU_BYTES // 512))
        answer = alice.ask(**tensor("more", TINY, NPU_BYTES * 3 // 4))
        self.assertEqual(answer.status, pb.RESOURCE_EXHAUSTED)

    def test_who_takes_no_piece_may_pin_beside_the_pins_of_others(self):
        """Also where fewer are left than there are users now."""
        alice = self.client(ALICE)
        for i in range(256):
            alice.call(**tensor(f"p{i}", TINY, i * NPU_BYTES // 512))
        bob = self.client(BOB)
        self.client(CAROL)
        bob.call(**tensor("between", TINY, 512))
        self.assertEqual(bob.ask(**tensor("outside", TINY, NPU_BYTES * 3 // 4)).status, pb.RESOURCE_EXHAUSTED)

    def test_root_is_free_of_it(self):
        root, _ = self.client(), self.client(ALICE)
        self.assertEqual(self.scatter(root), 0)


@unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
class AnyPins(Base):
    options = (*Base.options, "--allow-any-pins")

    def test_all_may_lie_anywhere(self):
        self.assertEqual(self.scatter(self.client(ALICE)), 0)


if __name__ == "__main__":
    unittest.main()
