"""What is looked at during a compaction is as it was before or as it is after."""

import unittest

from support import TestCase, alloc, fill, free, pb, ref

N = 48
SHAPE = (1, 64, 1, 80 << 10)  # 5 MiB


class Looks(TestCase):
    options = ("--npu-bytes", str(4 << 20))

    def setUp(self):
        super().setUp()
        self.talker, self.looker = self.client(), self.client()
        self.talker.alloc("low", (1, 64, 1, 128))
        self.names = [f"t{i}" for i in range(N)]
        for i, name in enumerate(self.names):
            self.talker.call(**alloc(name, SHAPE))
            self.talker.call(**fill(name, i))
        self.talker.call(**free("low"))

    def states(self, tensors):
        return {t.name: (t.place.address, t.state, t.unwritten_bytes, t.damaged_bytes) for t in tensors}

    def looked_at(self, look):
        """All that was seen between the request to compact and its answer, and before and after."""
        before = self.states(self.looker.tensors())
        (sent,) = self.talker.post({"compact": pb.CompactRequest()})
        self.talker.sock.setblocking(False)
        seen = []
        while sent not in self.talker.early:
            seen.extend(self.states(look()).items())
            try:
                self.talker.early[sent] = self.talker.receive()
            except BlockingIOError:
                pass
        self.talker.sock.setblocking(True)
        answer = self.talker.answers([sent])[0]
        self.assertEqual((answer.status, len(answer.compacted.moves)), (pb.OK, N), answer.message)
        return before, seen, self.states(self.looker.tensors())

    def check(self, look):
        before, seen, after = self.looked_at(look)
        self.assertTrue(all(state[1:] == ("ok", 0, 0) for state in [*before.values(), *after.values()]))
        self.assertNotEqual(before, after)
        wrong = [(name, state) for name, state in seen if state not in (before[name], after[name])]
        self.assertEqual(wrong[:2], [], f"{len(wrong)} of {len(seen)} looks are of neither")

    def test_list(self):
        self.check(self.looker.tensors)

    def test_open(self):
        def look():
            calls = [{"open": pb.OpenRequest(tensor=ref(name))} for name in self.names]
            return [answer.tensor for answer in self.looker.pipeline(*calls)]

        self.check(look)


if __name__ == "__main__":
    unittest.main()
