"""What of a parallel group has run when one of its operations is refused does not depend on timing."""

import unittest

from support import Client, TestCase, beside, fill, long_alloc, pb, read, run, submit

ALICE, BOB = 12001, 12002
RELUS = [run(pb.RELU, in_="x", out="y")] * 20


class Groups(TestCase):
    options = ("--npu-bytes", str(2 << 20))

    def setUp(self):
        super().setUp()
        self.talker = self.client(ALICE)
        self.talker.call(**long_alloc("long", 4096))
        self.talker.alloc("unwritten")
        for name in ("x", "y"):
            self.talker.alloc(name, (1, 64, 8, 256), pb.FX8, 4)
            self.talker.call(**fill(name, 1))

    def outcomes(self, request):
        """How much of it has run, and whether kernels have, of many tries."""
        found = set()
        for _ in range(40):
            self.talker.call(**fill("y", 9))
            answer = self.talker.pipeline(request)[0]
            self.assertEqual(answer.status, pb.FAILED_PRECONDITION, answer.message)
            found.add((len(answer.submitted.done), self.talker.call(**read("y", 0, 1)).done.data))
        return found

    def load(self):
        with Client(self.daemon.path) as client:
            client.call(**long_alloc("load", 2048))
            while True:
                client.call(**fill("load", 1))

    def check(self, *calls):
        with beside(BOB, self.load):
            outcomes = self.outcomes(submit(*calls, group=1))
        self.assertEqual(len(outcomes), 1, outcomes)

    def test_behind_something_long(self):
        self.check(fill("long", 1), read("unwritten"), *RELUS)

    def test_before_something_long(self):
        self.check(read("unwritten"), fill("long", 1), *RELUS)

    def test_behind_kernels(self):
        self.check(*RELUS, fill("long", 1), read("unwritten"))


if __name__ == "__main__":
    unittest.main()
