"""Taking requests back by their ids: waiting, queued, running, between and inside the operations of a submit, answered,
never sent, of somebody else, and twice. And how far long operations say that they are."""

import time
import unittest

from support import TestCase, dims, pb


def ref(tensor):
    return pb.Ref(handle=tensor.handle)


class Long(TestCase):
    options = ("--npu-bytes", "4194304", "--isa", "scalar")  # long runs are to be long

    def setUp(self):
        super().setUp()
        self.talker = self.client()

    def cancel(self, client, request_id):
        """The id of the answer to come."""
        return client.send(cancel=pb.CancelRequest(request_id=request_id))

    def answers(self, client, ids):
        """The answers with these ids, whatever else comes."""
        answers, events = {}, []
        while set(ids) - set(answers):
            response = client.receive()
            if response.id:
                answers[response.id] = response
            else:
                events.append(response.event)
        self.events = events
        return [answers[i] for i in ids]

    def fill(self, tensor, value):
        self.talker.call(fill=pb.FillRequest(tensor=ref(tensor), integer=value))

    def run_of(self, channels=512):
        """A convolution of some seconds, if it were let."""
        tensors = {}
        for role, shape in (("in", (1, 128, 128, 128)), ("weights", (128, channels, 3, 3)), ("out", (1, channels, 128, 128))):
            tensors[role] = self.talker.alloc(role, shape, pb.FX8, 4, start_npu=0)
            self.fill(tensors[role], 1)
        operands = [pb.Operand(role=r, tensor=ref(t)) for r, t in tensors.items()]
        params = [pb.Param(key=pb.PARAM_PADDING, values=[1, 1, 1, 1])]
        return pb.RunRequest(kernel=pb.CONV2D, operands=operands, params=params), tensors

    def strided(self, name):
        """Elements that stand apart, so that moving them takes long."""
        spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 64, 64, 16384), layout=pb.STRIDED, stride=dims(1, 3145728, 49152, 3))
        allocation = pb.Allocation(name=name, spec=spec)
        return self.talker.call(alloc=pb.AllocRequest(tensors=[allocation])).allocated.tensors[0]


class Cancel(Long):
    def test_waiting_for_room(self):
        big = self.talker.alloc("big", (1, 64, 1, 4 << 20))
        spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 64, 1, 1 << 20))
        request = pb.AllocRequest(tensors=[pb.Allocation(name="w", spec=spec)], wait_ms=60000)
        waits = self.talker.send(alloc=request)
        answer, cancelled = self.answers(self.talker, [waits, self.cancel(self.talker, waits)])
        self.assertEqual((answer.status, cancelled.cancelled.found), (pb.CANCELLED, True))
        self.talker.call(free=pb.FreeRequest(tensors=[ref(big)]))
        self.assertEqual(self.talker.names(), [])

    def test_a_run_and_what_waits_for_it(self):
        run, tensors = self.run_of()
        self.fill(tensors["out"], 7)
        runs, queued = self.talker.send(run=run), self.talker.send(run=run)
        began = time.monotonic()
        ids = [runs, queued] + [self.cancel(self.talker, i) for i in (queued, runs, runs)]
        one, two, *found = self.answers(self.talker, ids)
        self.assertEqual((one.status, two.status), (pb.CANCELLED, pb.CANCELLED))
        # The second time it may be answered already.
        self.assertEqual([f.cancelled.found for f in found][:2], [True, True])
        self.assertLess(time.monotonic() - began, 2)
        self.old_or_never_written(tensors["out"], 7)

    def old_or_never_written(self, tensor, value):
        """As a run that was cancelled before its kernel began, or then, leaves its output."""
        answer = self.talker.ask(read=pb.ReadRequest(tensor=ref(tensor), count=5))
        if answer.status == pb.OK:
            self.assertEqual(answer.done.data, bytes([value] * 5))
            return
        self.assertEqual(answer.status, pb.FAILED_PRECONDITION, answer.message)
        self.assertIn("never written", answer.message)

    def test_inside_an_operation_of_a_submit(self):
        run, tensors = self.run_of()
        self.talker.call(subscribe=pb.SubscribeRequest(kinds=["progress"]))
        fill = pb.Operation(fill=pb.FillRequest(tensor=ref(tensors["out"]), integer=7))
        submits = self.talker.send(submit=pb.SubmitRequest(operations=[fill, pb.Operation(run=run), fill]))
        while (event := self.talker.receive().event).done <= event.total // 3:
            pass  # the fill
        self.assertEqual((event.kind, event.request_id), ("progress", submits))
        self.assertLess(event.done, event.total * 2 // 3)  # it is in the run
        answer, cancelled = self.answers(self.talker, [submits, self.cancel(self.talker, submits)])
        self.assertEqual((answer.status, cancelled.cancelled.found), (pb.CANCELLED, True))
        self.assertIn("operation 1", answer.message)
        self.assertEqual(len(answer.submitted.done), 1)  # the first fill
        self.old_or_never_written(tensors["out"], 7)

    def test_between_the_operations_of_a_submit(self):
        tensor = self.talker.alloc("x", (1, 64, 64, 2048))
        fill = pb.Operation(fill=pb.FillRequest(tensor=ref(tensor), integer=7))
        submits = self.talker.send(submit=pb.SubmitRequest(operations=[fill] * 1000))
        answer, cancelled = self.answers(self.talker, [submits, self.cancel(self.talker, submits)])
        self.assertEqual((answer.status, cancelled.cancelled.found), (pb.CANCELLED, True))
        self.assertLess(len(answer.submitted.done), 1000)
        self.assert_alive()

    def test_dma_on_its_way(self):
        old, new = self.strided("x"), pb.FillRequest(integer=2)
        self.fill(old, 1)
        self.talker.call(subscribe=pb.SubscribeRequest(kinds=["progress"]))
        new.tensor.handle = old.handle
        fills = self.talker.send(fill=new)
        event = self.talker.receive().event
        self.assertEqual((event.kind, event.request_id), ("progress", fills))
        self.assertLess(0, event.done)
        self.assertLess(event.done, event.total)
        answer, _ = self.answers(self.talker, [fills, self.cancel(self.talker, fills)])
        self.assertEqual(answer.status, pb.CANCELLED)
        self.assertIn("counts as never written", answer.message)
        # Half of it is neither old nor new, and nobody gets to see that.
        answer = self.talker.ask(read=pb.ReadRequest(tensor=ref(old), count=1 << 20))
        self.assertEqual(answer.status, pb.FAILED_PRECONDITION, answer.message)

    def test_what_is_not_there(self):
        tensor = self.talker.alloc("x")
        answered = self.talker.ask(fill=pb.FillRequest(tensor=ref(tensor), integer=1)).id
        for request_id in (0, answered, 12345, 2**64 - 1):
            answer = self.talker.ask(cancel=pb.CancelRequest(request_id=request_id))
            self.assertEqual((answer.status, answer.cancelled.found), (pb.OK, False), request_id)
        # Nor is a cancel a request that can be taken back, itself the least.
        answer = self.talker.ask(cancel=pb.CancelRequest(request_id=self.talker.id + 1))
        self.assertFalse(answer.cancelled.found)

    def test_somebody_elses(self):
        run, _ = self.run_of(32)
        runs = self.talker.send(run=run)
        with self.daemon.client() as other:
            for request_id in range(1, runs + 3):
                answer = other.ask(cancel=pb.CancelRequest(request_id=request_id))
                self.assertEqual((answer.status, answer.cancelled.found), (pb.OK, False))
        self.assertEqual(self.answers(self.talker, [runs])[0].status, pb.OK)


class Progress(Long):
    """How far a submit is: only ever further."""

    def test_of_a_submit(self):
        run, tensors = self.run_of(128)
        self.talker.call(subscribe=pb.SubscribeRequest(kinds=["progress"]))
        operations = [pb.Operation(run=run)] * 40
        submits = self.talker.send(submit=pb.SubmitRequest(operations=operations))
        events = [self.talker.receive().event for _ in range(3)]
        self.assertEqual({(event.kind, event.request_id) for event in events}, {("progress", submits)})
        done = [event.done for event in events]
        self.assertEqual(done, sorted(set(done)))
        self.assertEqual(len({event.total for event in events}), 1)
        self.assertTrue(all(0 < d < events[0].total for d in done), done)
        answer, _ = self.answers(self.talker, [submits, self.cancel(self.talker, submits)])
        # What it said is about what it did.
        self.assertLessEqual(done[-1] * len(operations) // events[0].total, len(answer.submitted.done))


if __name__ == "__main__":
    unittest.main()
