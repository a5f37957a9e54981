"""What a killed daemon leaves behind: every named tensor as it was, and of the unnamed ones nothing."""

import unittest

from state import StateTestCase, grant, look, seal, view
from support import alloc, dims, fill, free, pb, ref, run

READER = 1002


def data(n, seed=0):
    return bytes((seed + 7 * i) % 251 for i in range(n))


class Tensors(StateTestCase):
    options = (*StateTestCase.options, "--allow-unchecked-reuse", "--resume-seconds", "600")

    def assert_same(self, change=lambda: None, **how):
        before = look(self.client())
        change()
        self.restart(**how)
        after = look(self.client())
        for one, other in zip(before, after):
            self.assertEqual(one, other)

    def fill_device(self, client):
        call = client.call
        write = lambda name, n, first=0: call(write=pb.WriteRequest(tensor=ref(name), first=first, data=data(n, first)))
        call(**alloc("aligned", (2, 11, 3, 5)))
        write("aligned", 330)
        call(**alloc("compact", (1, 9, 3, 3), pb.INT16, layout=pb.COMPACT))
        write("compact", 40, first=7)  # the rest was never written
        call(**alloc("untouched", (1, 3, 2, 2), pb.FP32))
        matrix = pb.Spec(dtype=pb.INT8, layout=pb.MATRIX, rows=5, cols=37, w=8)
        call(alloc=pb.AllocRequest(tensors=[pb.Allocation(name="matrix", spec=matrix)]))
        write("matrix", 5 * 37)
        call(**alloc("strided", (1, 8, 2, 4), layout=pb.STRIDED, stride=dims(64, 64, 16, 3), start_npu=2))
        write("strided", 64)
        call(**alloc("packed", (5, 8, 2, 2), mode=pb.MODE_4N))
        write("packed", 160)
        call(**alloc("fixed", (1, 8, 1, 16), pb.FX8, frac_bits=7, address=3 * 65536 + 8192))
        call(**fill("fixed", -3))
        call(**view("slice", "aligned", (0, 2, 1, 1), (2, 9, 3, 4)))
        call(view=pb.ViewRequest(name="reshaped", tensor=ref("aligned"), shape=dims(2, 11, 1, 15)))
        call(**seal("matrix"))
        call(**grant("aligned", READER, pb.ACCESS_READ))
        call(**grant("compact", READER, pb.ACCESS_WRITE))

    def place_over(self, client):
        """A guest that may be where it is, and one that a kernel destroys."""
        spec = lambda npu: pb.Spec(dtype=pb.FX8, frac_bits=4, shape=dims(1, 3, 4, 8), start_npu=npu)
        one = lambda name, npu, **how: client.call(
            alloc=pb.AllocRequest(tensors=[pb.Allocation(name=name, spec=spec(npu), **how)])
        )
        one("host", 0, dma_only=True)
        one("safe", 3, dma_only=True, reuse=pb.IF_SAFE)
        one("in", 0, pinned=True)
        one("out", 0)
        address = client.call(open=pb.OpenRequest(tensor=ref("out"))).tensor.place.address
        over = pb.Spec(dtype=pb.FX8, frac_bits=4, shape=dims(1, 3, 4, 8), address=address + 4 * 65536)
        client.call(alloc=pb.AllocRequest(tensors=[pb.Allocation(name="victim", spec=over, reuse=pb.UNCHECKED)]))
        for name in ("host", "safe", "in", "victim"):
            client.call(**fill(name, 5))
        done = client.call(**run(pb.RELU, in_="in", out="out")).done
        self.assertEqual([d.name for d in done.destroyed], ["victim"])

    def test_all_of_it_is_there_again(self):
        client = self.client()
        self.fill_device(client)
        self.place_over(client)
        for terminate in (False, True, False):
            self.assert_same(terminate=terminate)
        client = self.client()
        states = {t.name: t.state for t in client.tensors()}
        self.assertEqual(
            [states[name] for name in ("aligned", "compact", "untouched", "victim")],
            ["ok", "partly written", "unwritten", "damaged"],
        )
        self.refused(client.ask(**fill("matrix", 1)), pb.FAILED_PRECONDITION, "sealed")
        self.refused(client.ask(**run(pb.RELU, in_="victim", out="out")), pb.DATA_LOST, "victim")
        self.refused(client.ask(**run(pb.RELU, in_="in", out="safe")), pb.FAILED_PRECONDITION, "dma_only")
        self.refused(client.ask(**alloc("aligned")), pb.ALREADY_EXISTS)
        # A view is its base's bytes.
        client.call(**fill("slice", 9))
        self.assertIn(9, client.call(read=pb.ReadRequest(tensor=ref("aligned"))).done.data)
        self.assertEqual(client.call(**free("aligned")).freed.tensors, 3)

    def test_unnamed_ones_without_a_token_are_gone(self):
        client = self.client()
        unnamed = client.alloc(shape=(1, 8, 4, 32))
        client.call(**fill(unnamed, 0x55))
        client.call(**view("seen", unnamed, (0, 0, 0, 0), (1, 4, 1, 4)))
        client.call(**alloc("named"))
        self.restart()
        tensors, sums, memory = look(self.client())
        self.assertEqual([t.name for t in tensors.values()], ["named"])
        self.assertFalse(any(any(npu) for npu in memory), "bytes of a tensor that is gone")
        self.assertIn("ended: 2 unnamed tensors", self.output())
        self.restart()
        self.assertNotIn("ended:", self.output())
        self.assertEqual(look(self.client())[1], sums)

    def test_compaction_and_what_was_freed(self):
        client = self.client()
        for i in range(40):
            client.call(**alloc(f"t{i}", (1, 8, 1 + i % 3, 32)))
            client.call(**fill(f"t{i}", i))
        client.call(**free(*(f"t{i}" for i in range(0, 40, 2))))
        self.assert_same()
        moves = self.client().call(compact=pb.CompactRequest()).compacted.moves
        self.assertGreater(len(moves), 10)
        self.assert_same()

    def test_info_says_where(self):
        info = self.client().call(info=pb.InfoRequest(details=True)).info
        self.assertTrue(info.features & pb.FEATURE_RESUME)
        self.assertEqual((info.state_dir, info.resume_seconds), (self.state, 600))


if __name__ == "__main__":
    unittest.main()
