"""Figures count what they say: data without dummies, and on each NPU what is there."""

import unittest

from support import TestCase, alloc, fill, pb, run

FORMAT = {"dtype": pb.FX8, "frac_bits": 4}


class Dummies(TestCase):
    """A guest of one N in a mode for four: of each word one byte is data, and three are dummies."""

    options = ("--npus", "4", "--npu-bytes", "2048", "--allow-unchecked-reuse")
    DATA = 3 * 32  # 3 channels of 4 x 8

    def setUp(self):
        super().setUp()
        self.talker = self.client()
        # 5 channels on 4 NPUs, so that three NPUs have an empty block of 128 bytes.
        self.talker.call(**alloc("in", (1, 5, 4, 32), **FORMAT))
        self.host = self.talker.alloc("host", (1, 5, 4, 32), **FORMAT)
        self.talker.call(**fill("in", 1))
        spec = pb.Spec(**FORMAT, shape=pb.Dims(n=1, c=3, h=4, w=8), mode=pb.MODE_4N)
        spec.address = 2048 + self.host.place.offset + 128
        allocation = pb.Allocation(name="guest", spec=spec, reuse=pb.UNCHECKED)
        self.guest = self.talker.call(alloc=pb.AllocRequest(tensors=[allocation])).allocated.tensors[0]
        self.talker.call(**fill("guest", 7))

    def test_lent_is_data(self):
        blocks = self.guest.place.blocks
        self.assertEqual((blocks.data, blocks.dummy), (self.DATA, 3 * self.DATA))
        # On NPU 0 it is the other way round: the host's last channel lies in the guest's empty block.
        self.assertEqual(self.assert_alive().lent, self.DATA + 4 * 32)

    def test_what_was_destroyed_is_data(self):
        done = self.talker.call(**run(pb.RELU, in_="in", out="host")).done
        (destroyed,) = done.destroyed
        self.assertEqual((destroyed.name, destroyed.total_bytes), ("guest", self.DATA))
        self.assertEqual((destroyed.npu, destroyed.offset), (1, self.host.place.offset + 128))


class Npus(TestCase):
    options = ("--npus", "2", "--npu-bytes", "1024")

    def npu_data(self, **spec):
        client = self.client()
        allocation = pb.Allocation(name="x", spec=pb.Spec(dtype=pb.INT8, **spec))
        client.call(alloc=pb.AllocRequest(tensors=[allocation]))
        return list(client.call(stat=pb.StatRequest(details=True)).stat.npu_data)

    def test_the_last_columns_of_a_matrix_may_be_fewer(self):
        self.assertEqual(self.npu_data(layout=pb.MATRIX, rows=1, cols=5, w=4), [4, 1])

    def test_also_where_they_come_round(self):
        self.assertEqual(self.npu_data(layout=pb.MATRIX, rows=3, cols=9, w=4), [3 * 4 + 3 * 1, 3 * 4])

    def test_wherever_it_begins(self):
        self.assertEqual(self.npu_data(layout=pb.MATRIX, rows=1, cols=5, w=4, start_npu=1), [1, 4])


if __name__ == "__main__":
    unittest.main()
