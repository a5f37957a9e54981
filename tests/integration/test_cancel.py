"""Taking requests back by their ids: waiting, queued, running, between and inside the operations of a submit, answered,
never sent, of somebody else, and twice. And how far long operations say that they are."""

import os
import signal
import time
import unittest

from support import FEWER, Endless, TestCase, dims, fill, pb, read, ref, submit, wait_for


class Minutes(Endless):
    """Without vectors. A thousandth of it, which progress tells, is there soon."""

    SIDE = 128


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

    def run_of(self, channels):
        """A convolution that comes to its end."""
        tensors = {}
        for role, shape in (("in", (1, 128, 128, 128)), ("weights", (128, channels, 3, 3)), ("out", (1, channels, 128, 128))):
            tensors[role] = self.talker.alloc(role, shape, pb.FX8, 4, start_npu=0)
            self.talker.call(**fill(role, 1))
        operands = [pb.Operand(role=r, tensor=ref(t)) for r, t in tensors.items()]
        params = [pb.Param(key=pb.PARAM_PADDING, values=[1, 1, 1, 1])]
        return pb.RunRequest(kernel=pb.CONV2D, operands=operands, params=params)

    def strided(self, name):
        """Elements that stand apart, so that moving them takes long."""
        spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 64, 64, 16384), layout=pb.STRIDED, stride=dims(1, 3145728, 49152, 3))
        allocation = pb.Allocation(name=name, spec=spec)
        return self.talker.call(alloc=pb.AllocRequest(tensors=[allocation])).allocated.tensors[0]


class Cancel(Long):

    def test_a_run_and_what_waits_for_it(self):
        call = Endless(self.talker).call()
        self.talker.call(**fill("out", 7))
        cancels = [{"cancel": pb.CancelRequest(request_id=i)} for i in (102, 101, 101)]
        one, two, *found = self.talker.pipeline({**call, "id": 101}, {**call, "id": 102}, *cancels)
        self.assertEqual((one.status, two.status), (pb.CANCELLED, pb.CANCELLED))
        # The second time it may be answered already.
        self.assertEqual([f.cancelled.found for f in found][:2], [True, True])
        self.old_or_never_written("out", 7)

    def old_or_never_written(self, tensor, value):
        """As a run that was cancelled before its kernel began, or then, leaves its output."""
        answer = self.talker.ask(**read(tensor, 0, 5))
        if answer.status == pb.OK:
            self.assertEqual(answer.done.data, bytes([value] * 5))
            return
        self.assertEqual(answer.status, pb.FAILED_PRECONDITION, answer.message)
        self.assertIn("never written", answer.message)

    def test_inside_an_operation_of_a_submit(self):
        call = Minutes(self.talker).call()
        self.talker.call(subscribe=pb.SubscribeRequest(kinds=["progress"]))
        (submits,) = self.talker.post(submit(fill("out", 7), call, fill("out", 7)))
        while (event := self.talker.receive().event).done <= event.total // 3:
            pass  # the fill
        self.assertEqual((event.kind, event.request_id), ("progress", submits))
        self.assertLess(event.done, event.total * 2 // 3)  # it is in the run
        answer, cancelled = self.answers(self.talker, [submits, self.cancel(self.talker, submits)])
        self.assertEqual((answer.status, cancelled.cancelled.found), (pb.CANCELLED, True))
        self.assertIn("operation 1", answer.message)
        self.assertEqual(len(answer.submitted.done), 1)  # the first fill
        self.old_or_never_written("out", 7)

    def test_between_the_operations_of_a_submit(self):
        self.talker.alloc("x", (1, 64, 64, 2048))
        cancel = {"cancel": pb.CancelRequest(request_id=101)}
        answer, cancelled = self.talker.pipeline({**submit(*[fill("x", 7)] * 1000), "id": 101}, cancel)
        self.assertEqual((answer.status, cancelled.cancelled.found), (pb.CANCELLED, True))
        self.assertLess(len(answer.submitted.done), 1000)
        self.assert_alive()

    def test_dma_on_its_way(self):
        tensor = self.strided("x")
        self.talker.call(subscribe=pb.SubscribeRequest(kinds=["progress"]))
        wait_for(lambda: self.is_caught_on_its_way(tensor))
        # Half of it is neither old nor new, and nobody gets to see that.
        answer = self.talker.ask(read=pb.ReadRequest(tensor=ref(tensor), count=1 << 20))
        self.assertEqual(answer.status, pb.FAILED_PRECONDITION, answer.message)

    def is_caught_on_its_way(self, tensor):
        """Whether a fill was taken back after it had told how far it is. That is told of what takes longer than 0.1 s:
        for so long the daemon stands still, when it has begun and before it is over, if that is caught."""
        self.answers(self.talker, self.talker.post(fill(tensor, 1)))
        (fills,) = self.talker.post(fill(tensor, 2))
        time.sleep(0.005)
        os.kill(self.daemon.process.pid, signal.SIGSTOP)
        time.sleep(0.15)
        os.kill(self.daemon.process.pid, signal.SIGCONT)
        response = self.talker.receive()
        if response.id:
            return False  # it is over
        event = response.event
        self.assertEqual((event.kind, event.request_id), ("progress", fills))
        self.assertLessEqual(event.done, event.total)
        answer, _ = self.answers(self.talker, [fills, self.cancel(self.talker, fills)])
        if answer.status == pb.OK:
            return False
        self.assertEqual(answer.status, pb.CANCELLED)
        return "counts as never written" in answer.message and 0 < event.done < event.total

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
        run = self.run_of(32 // FEWER)
        runs = self.talker.send(run=run)
        with self.daemon.client() as other:
            for request_id in range(1, runs + 3):
                answer = other.ask(cancel=pb.CancelRequest(request_id=request_id))
                self.assertEqual((answer.status, answer.cancelled.found), (pb.OK, False))
        self.assertEqual(self.answers(self.talker, [runs])[0].status, pb.OK)


class Progress(Long):
    """How far a submit is: only ever further."""

    def test_of_a_submit(self):
        run = self.run_of(128 // FEWER)
        self.talker.call(subscribe=pb.SubscribeRequest(kinds=["progress"]))
        operations = [pb.Operation(run=run)] * 400
        submits = self.talker.send(submit=pb.SubmitRequest(operations=operations))
        events, done = [], []
        while len(set(done)) < 3:  # a step may take longer than it is until the next event
            events.append(self.talker.receive().event)
            done.append(events[-1].done)
        self.assertEqual({(event.kind, event.request_id) for event in events}, {("progress", submits)})
        self.assertEqual(done, sorted(done))
        self.assertEqual(len({event.total for event in events}), 1)
        self.assertLess(done[-1], events[0].total)
        answer, _ = self.answers(self.talker, [submits, self.cancel(self.talker, submits)])
        # What it said is about what it did.
        self.assertLessEqual(done[-1] * len(operations) // events[0].total, len(answer.submitted.done))


if __name__ == "__main__":
    unittest.main()
