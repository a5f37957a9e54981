"""Packed weights are kept within one budget that uids share: through the socket, by what stat tells of each."""

import os
import unittest

from support import Client, TestCase, pb, wait_for

BOB = 12002
BUDGET = 100_000


def ref(tensor):
    return pb.Ref(handle=tensor.handle)


class Convolution:
    """Of a session: an image, an output, and as many weights as are asked for."""

    def __init__(self, client):
        self.client = client
        self.image = self.tensor(1, 64, 4, 4)
        self.out = self.tensor(1, 64, 4, 4)
        client.call(fill=pb.FillRequest(tensor=ref(self.image), integer=1))

    def tensor(self, *shape):
        return self.client.alloc("", shape=shape, dtype=pb.FX8, frac_bits=0)

    def run(self, weights):
        run = pb.RunRequest(kernel=pb.CONV2D)
        for role, tensor in (("in", self.image), ("weights", weights), ("out", self.out)):
            run.operands.add(role=role, tensor=ref(tensor))
        self.client.call(run=run)

    def pack(self):
        """New weights that were used once."""
        weights = self.tensor(64, 64, 1, 1)
        self.client.call(fill=pb.FillRequest(tensor=ref(weights), integer=1))
        self.run(weights)
        return weights

    def packs(self, uid=os.getuid()):
        """Bytes that are kept for it, as its session sees it."""
        rows = self.client.call(stat=pb.StatRequest(details=True)).stat.uids
        return {row.uid: row.packs for row in rows}[uid]

    def free(self, weights):
        self.client.call(free=pb.FreeRequest(tensors=[ref(weights)]))


class Packs(TestCase):
    options = ["--pack-bytes", str(BUDGET)]

    def test_a_freed_tensor_has_none(self):
        mine = Convolution(self.client())
        self.assertEqual(mine.packs(), 0)
        weights = mine.pack()
        one = mine.packs()
        self.assertGreater(one, 4096)
        self.assertEqual(mine.client.call(stat=pb.StatRequest()).stat.packs, one)
        other = mine.pack()
        self.assertEqual(mine.packs(), 2 * one)
        mine.free(weights)
        self.assertEqual(mine.packs(), one)
        mine.free(other)
        self.assertEqual(mine.packs(), 0)
        self.assertEqual(mine.client.call(stat=pb.StatRequest()).stat.packs, 0)

    def test_a_session_takes_its_packs_along(self):
        mine = Convolution(self.client())
        with Client(self.daemon.path) as client:
            Convolution(client).pack()
            self.assertGreater(mine.packs(), 0)
        wait_for(lambda: not mine.packs())

    @unittest.skipUnless(os.getuid() == 0, "needs other uids")
    def test_no_uid_pushes_out_another(self):
        mine, his = Convolution(self.client()), Convolution(self.client(BOB))
        for _ in range(2):
            theirs = his.pack()
        before = his.packs(BOB)
        self.assertGreater(before, 0)
        weights = [mine.pack() for _ in range(25)]
        stat = mine.client.call(stat=pb.StatRequest(details=True)).stat
        rows = {row.uid: row.packs for row in stat.uids}
        self.assertEqual(rows[BOB], before)
        self.assertEqual(sum(rows.values()), stat.packs)
        self.assertEqual(stat.all.packs, stat.packs)
        self.assertLessEqual(stat.packs, BUDGET)
        self.assertGreater(rows[0], before)
        # What a uid has freed is for others.
        his.free(theirs)
        self.assertEqual(his.packs(BOB), before // 2)
        mine.run(weights[0])
        self.assertGreater(mine.packs(), rows[0])

    @unittest.skipUnless(os.getuid() == 0, "needs other uids")
    def test_who_comes_late_gets_a_share(self):
        mine, his = Convolution(self.client()), Convolution(self.client(BOB))
        for _ in range(25):
            mine.pack()
        for _ in range(25):
            his.pack()
        share = BUDGET // 2
        self.assertGreater(mine.packs(), share - 10_000)
        self.assertGreater(his.packs(BOB), share - 10_000)


if __name__ == "__main__":
    unittest.main()
