"""Worker threads are shared: one uid's long kernels keep another's short work waiting for a part of one of them."""

import os
import select
import statistics
import time
import unittest

from support import Client, Endless, TestCase, as_uid, pb
from test_segments import Sharer, memfd

ALICE, BOB, CAROL = 12001, 12002, 12003
MIB = 1 << 20
TIMES, ROUNDS, TRIES = 3, 5, 8
RATIO, BUSY_S = 3, 0.02  # a busy machine takes its time


def ref(tensor):
    return pb.Ref(handle=tensor.handle)


@unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
class Turns(TestCase):
    options = ("--npu-bytes", str(32 * MIB))

    def client_as(self, uid, kind=Client):
        """A connection of another uid."""
        with as_uid(uid):
            return self.stack.enter_context(kind(self.daemon.path))

    def convolution(self, client, n, channels, side):
        """Sends n convolutions, into a tensor each. Returns the ids of their answers and the tensors."""
        inputs = {}
        for role, shape in (("in", (1, 128, side, side)), ("weights", (128, channels, 3, 3))):
            inputs[role] = client.alloc("", shape, pb.FX8, 4, start_npu=0)
            client.call(fill=pb.FillRequest(tensor=ref(inputs[role]), integer=1))
        outs = [client.alloc("", (1, channels, side, side), pb.FX8, 4, start_npu=0) for _ in range(n)]
        params = [pb.Param(key=pb.PARAM_PADDING, values=[1, 1, 1, 1])]
        ids = []
        for out in outs:
            operands = [pb.Operand(role=r, tensor=ref(t)) for r, t in {**inputs, "out": out}.items()]
            ids.append(client.send(run=pb.RunRequest(kernel=pb.CONV2D, operands=operands, params=params)))
        return ids, outs

    def endless(self, client, n):
        """Calls of n convolutions that do not come to their end, into a tensor each."""
        convolution = Endless(client, None)
        outs = [f"out{i}" for i in range(n)]
        for out in outs:
            convolution.alloc(out)
        return [convolution.call(out) for out in outs]

    def writes(self, client, tensor, **data):
        """The seconds that one takes, in the median."""
        times = []
        for _ in range(TIMES):
            begin = time.perf_counter()
            client.call(write=pb.WriteRequest(tensor=ref(tensor), **data))
            times.append(time.perf_counter() - begin)
        return statistics.median(times)

    def test_a_write_beside_32_long_kernels(self):
        alice, bob = self.client_as(ALICE), self.client_as(BOB, Sharer)
        tensor = bob.alloc("", (1, 64, 1, MIB // 64))
        ways = {"data": os.urandom(MIB)}, {"segment": bob.share(memfd(MIB))}
        alone = [min(self.writes(bob, tensor, **way) for _ in range(ROUNDS)) for way in ways]
        alice.post(*self.endless(alice, 32))
        for way, best in zip(ways, alone):
            beside = []
            while not beside or (min(beside) > RATIO * best + BUSY_S and len(beside) < TRIES):
                beside.append(self.writes(bob, tensor, **way))
            self.assertLess(min(beside), RATIO * best + BUSY_S, (way.keys(), beside))
        # They were not done in the meantime.
        self.assertFalse(alice.buffer or select.select([alice.sock], [], [], 0)[0])

    def test_what_gave_way_is_done_as_well(self):
        """Three uids on the slots of two, or of all processors."""
        side = 32  # some milliseconds, but half a minute under a sanitizer
        clients = [self.client_as(uid) for uid in (ALICE, BOB, CAROL)]
        sent = [self.convolution(client, 2, channels=64, side=side) for client in clients]
        for client, (ids, outs) in zip(clients, sent):
            answers = [client.receive() for _ in ids]
            self.assertEqual({a.id: a.status for a in answers}, dict.fromkeys(ids, pb.OK))
            for out in outs:
                data = client.read(out.handle)
                # Beside the border 1152 products of 1/16 and 1/16, in steps of 1/16.
                self.assertEqual(set(data[side * 10 + 1 : side * 10 + side - 1]), {72})

    def test_a_cancel_reaches_what_gave_way(self):
        clients = [self.client_as(uid) for uid in (ALICE, BOB, CAROL)]
        calls = [self.endless(client, 2) for client in clients]
        sent = [client.post(*two) for client, two in zip(clients, calls)]
        for client, ids in zip(clients, sent):
            answers = client.pipeline(*({"cancel": pb.CancelRequest(request_id=i)} for i in ids))
            self.assertEqual([answer.cancelled.found for answer in answers], [True] * 2)
            self.assertEqual([answer.status for answer in client.answers(ids)], [pb.CANCELLED] * 2)


if __name__ == "__main__":
    unittest.main()
