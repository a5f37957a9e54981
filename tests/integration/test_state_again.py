"""Requests whose answers did not come through are sent again after a restart, and done once."""

import contextlib
import os
import time
import unittest

from state import StateTestCase, grant, seal, token_of, view
from support import Endless, HungUp, alloc, copy, dims, fill, frame, free, pb, read, ref, rss_bytes, run, submit, wait_for

FIXED = {"dtype": pb.FX8, "frac_bits": 4}
SMALL = (1, 64, 4, 16)
OTHER = 1001
N = 100  # of which one is cut off


def again(client, number, call, **more):
    """The call with the id that it had."""
    return client.pipeline(dict(call, id=number, again=True, **more))[0]


def add(out, one, other):
    return run(pb.ELTWISE_ADD, in1=one, in2=other, out=out)


class AgainTestCase(StateTestCase):
    def setUp(self):
        super().setUp()
        self.talker = self.client()
        self.token = token_of(self.talker)

    def do(self, *calls):
        """In one write; their ids, when all are answered OK."""
        ids = self.talker.post(*calls)
        self.answers = self.talker.answers(ids)
        self.assertTrue(all(answer.status == pb.OK for answer in self.answers), self.answers)
        return ids

    def come_back(self, **how):
        self.restart(**how)
        self.talker = self.resume(self.token)

    def again(self, number, call, **more):
        return again(self.talker, number, call, **more)


class Tensors(AgainTestCase):
    def test_what_was_allocated_is_told_again(self):
        spec = pb.Spec(dtype=pb.INT8, shape=dims(2, 9, 3, 5))
        names = ("a", "", "b", "")
        call = {"alloc": pb.AllocRequest(tensors=[pb.Allocation(name=name, spec=spec) for name in names])}
        (number,) = self.do(call)
        first = self.answers[0].allocated
        for terminate in (False, True):
            self.come_back(terminate=terminate)
            self.assertEqual(self.again(number, call).allocated, first)
            self.assertEqual(self.again(number, call).allocated, first)
            self.assertEqual(self.talker.stat().tensors, 4)
        # Another request of the same kind is none of this.
        self.refused(self.again(number + 1, call), pb.ALREADY_EXISTS)

    def test_what_was_not_done_is_done(self):
        self.do(alloc("a"))
        self.come_back()
        self.assertEqual(self.again(77, alloc("b")).status, pb.OK)
        self.assertEqual(self.again(78, free("a")).freed.tensors, 1)
        self.assertEqual(self.talker.names(), ["b"])

    def test_without_again_it_is_a_new_one(self):
        (number,) = self.do(alloc(""))
        self.come_back()
        (answer,) = self.talker.pipeline(dict(alloc(""), id=number))
        self.assertNotEqual(answer.allocated, self.answers[0].allocated)

    def test_allocated_and_freed_and_neither_answer_came(self):
        calls = [alloc("a", (2, 9, 3, 5)), view("v", "a", (0, 1, 0, 0), (1, 5, 2, 2)), seal("b"), free("a"), alloc("a")]
        self.talker.call(**alloc("b"))
        self.talker.call(**fill("b", 1))
        ids = self.do(*calls)
        before = self.answers
        for _ in range(2):
            self.come_back()
            answers = [self.again(i, call) for i, call in zip(ids, calls)]
            self.assertEqual(answers[0].allocated, before[0].allocated)
            self.assertEqual((answers[1].tensor.handle, answers[1].tensor.name), (before[1].tensor.handle, "v"))
            self.assertTrue(answers[2].tensor.sealed)
            self.assertEqual(answers[3].freed.tensors, 2)
            self.assertEqual(answers[4].allocated, before[4].allocated)
            self.assertEqual(self.talker.names(), ["a", "b"])

    def test_what_is_gone_was_not_called_what_no_tensor_can_be(self):
        calls = [alloc("a"), view("v", "a", (0, 1, 0, 0), (1, 5, 1, 2))]
        ids = self.do(*calls, free("a"))
        calls[0]["alloc"].tensors[0].name = calls[0]["alloc"].tensors[0].label = "x" * 4096
        calls[1]["view"].name = "x" * 4096
        one, other = (self.again(number, call) for number, call in zip(ids, calls))
        self.assertEqual([one.allocated.tensors[0].name, one.allocated.tensors[0].label, other.tensor.name], [""] * 3)
        self.assertEqual(other.tensor.handle, self.answers[1].tensor.handle)

    def test_seal_and_grant_of_what_is_gone(self):
        calls = [alloc("a"), fill("a", 1), seal("a"), grant("a", 1001, pb.ACCESS_READ), free("a")]
        ids = self.do(*calls)
        self.come_back()
        for number, call, answer in list(zip(ids, calls, self.answers))[2:4]:
            told = self.again(number, call)
            self.assertEqual((told.status, told.tensor.handle), (pb.OK, answer.tensor.handle))
        self.refused(self.again(900, seal("a")), pb.NOT_FOUND)

    @unittest.skipIf(os.geteuid(), "root alone can be other uids")
    def test_a_view_of_what_may_not_be_read_any_more(self):
        """It was made, and that is the answer; that it cannot be read its next use tells."""
        os.chmod(self.daemon.path, 0o666)
        owner = self.talker
        owner.call(**alloc("shared"))
        owner.call(**grant("shared", OTHER, pb.ACCESS_READ))
        other = self.client(OTHER)
        token = token_of(other)
        call = view("v", f"{os.geteuid()}:shared", (0, 0, 0, 0), (1, 1, 1, 1))
        made = other.call(**call).tensor
        number = other.id
        owner.call(**grant("shared", OTHER, pb.ACCESS_NONE))
        self.restart()
        os.chmod(self.daemon.path, 0o666)
        other = self.resume(token, OTHER)
        answer = again(other, number, call)
        self.assertEqual((answer.status, answer.tensor.handle, answer.tensor.name), (pb.OK, made.handle, "v"), answer)
        self.refused(other.ask(**read("v")), pb.PERMISSION_DENIED)
        self.assertEqual(other.call(**free("v")).freed.tensors, 1)

    def test_a_name_is_changed_once(self):
        rename = {"rename": pb.RenameRequest(tensor=ref("a"), name="b")}
        _, number = self.do(alloc("a"), rename)
        handle = self.answers[1].tensor.handle
        self.do(alloc("a"))
        for _ in range(2):
            self.come_back()
            told = self.again(number, rename)
            self.assertEqual((told.status, told.tensor.handle, told.tensor.name), (pb.OK, handle, "b"))
            self.assertEqual(self.talker.names(), ["a", "b"])
        self.assertEqual(self.again(901, rename).status, pb.ALREADY_EXISTS)

    def test_another_session_frees_it(self):
        (number,) = self.do(alloc("a"))
        self.client().call(**free("a"))
        self.come_back()
        self.assertEqual(self.again(number, alloc("a")).allocated, self.answers[0].allocated)
        self.assertEqual(self.talker.stat().tensors, 0)
        # Also while it is not there.
        (number,) = self.do(alloc("b"))
        self.restart()
        with self.client() as other:
            other.call(**free("b"))
        self.restart()
        self.talker = self.resume(self.token)
        self.assertEqual(self.again(number, alloc("b")).allocated, self.answers[0].allocated)

    def test_what_the_client_has_is_forgotten(self):
        ids = self.do(alloc("a"), free("a"), alloc("b"), free("b"))
        self.talker.pipeline({"fill": pb.FillRequest(tensor=ref("none")), "answered_below": ids[2]})
        self.do(alloc("c"))  # with which it goes
        self.come_back()
        self.refused(self.again(ids[1], free("a")), pb.NOT_FOUND)
        self.assertEqual(self.again(ids[3], free("b")).freed.tensors, 1)
        self.assertIn("kept: 1 tensors", self.output())

    def test_a_lingering_session_is_answered_by_the_same_daemon(self):
        client = self.client()
        token = token_of(client, linger=True)
        number = client.send(**alloc("mine"))
        first = client.receive().allocated
        client.close()
        client = self.client()
        wait_for(lambda: client.ask(resume=pb.ResumeRequest(token=token)).status == pb.OK)
        self.assertEqual(again(client, number, alloc("mine")).allocated, first)


class Data(AgainTestCase):
    def setUp(self):
        super().setUp()
        self.do(alloc("x", **FIXED), alloc("y", **FIXED), alloc("z", **FIXED))
        self.do(fill("x", 1), fill("y", 2), fill("z", 3))

    def values(self, name):
        values = set(self.talker.call(**read(name)).done.data)
        self.assertEqual(len(values), 1)
        return values.pop()

    def test_what_does_the_same_twice_is_done_twice(self):
        calls = [fill("x", 5), copy("y", "x"), add("z", "x", "y"), submit(fill("x", 6), copy("y", "x"), copy("z", "y"))]
        ids = self.do(*calls)
        self.come_back()
        self.assertEqual(self.again(ids[0], calls[0]).status, pb.OK)
        self.assertEqual([self.values(name) for name in "xyz"], [5, 6, 6])
        self.assertEqual(len(self.again(ids[3], calls[3]).submitted.done), 3)
        self.assertEqual([self.values(name) for name in "xyz"], [6, 6, 6])

    def test_what_reads_what_it_writes_is_done_once(self):
        self.do(fill("x", 100))
        call = add("x", "x", "y")
        (number,) = self.do(call)
        for i in range(30):
            (number,) = self.do(call)
        self.assertEqual(self.values("x"), 127)
        self.assertEqual(self.answers[0].done.saturated, 128)
        for _ in range(2):
            self.come_back()
            done = self.again(number, call)
            self.assertEqual((done.status, done.done.saturated), (pb.OK, 128))
        self.do(fill("x", 1))
        self.assertEqual(self.again(number, call).status, pb.OK)
        self.assertEqual(self.values("x"), 1)

    def test_a_submit_that_changes_what_it_has_read_is_done_once(self):
        call = submit(copy("y", "x"), add("z", "x", "y"), fill("x", 9), run(pb.RELU, in_="z", out="z"))
        (number,) = self.do(call)
        self.come_back()
        told = self.again(number, call)
        self.assertEqual([done.operation for done in told.submitted.done], [0, 1, 2, 3])
        self.assertEqual([self.values(name) for name in "xyz"], [9, 1, 2])
        # Another submit of the same operations is done.
        self.assertEqual(self.talker.pipeline(call)[0].status, pb.OK)
        self.assertEqual([self.values(name) for name in "xyz"], [9, 9, 18])

    def test_what_it_read_is_not_known_any_more(self):
        call = submit(read("x"), fill("x", 8))
        (number,) = self.do(call)
        self.come_back()
        told = self.again(number, call)
        self.refused(told, pb.ABORTED, "what it read")
        self.assertEqual({f.key: f.number for f in told.fields}["done"], 2)
        self.assertEqual(self.values("x"), 8)

    def test_a_refused_one_is_tried_again(self):
        self.do(alloc("new", **FIXED))
        call = add("x", "x", "new")
        (number,) = self.talker.post(call)
        self.refused(self.talker.answers([number])[0], pb.FAILED_PRECONDITION, "written")
        self.come_back()
        self.refused(self.again(number, call), pb.FAILED_PRECONDITION, "written")
        self.do(fill("new", 2))
        self.assertEqual(self.again(number, call).status, pb.OK)
        self.assertEqual(self.values("x"), 3)

    def test_an_id_that_had_another_request(self):
        """What is known of the id is of operation 1 alone, as 0 was refused in its group; or of fewer operations."""
        self.do(alloc("new", **FIXED))
        call = submit(read("new"), run(pb.RELU, in_="x", out="x"), group=1)
        (number,) = self.talker.post(call)
        (answer,) = self.talker.answers([number])
        self.assertEqual([done.operation for done in answer.submitted.done], [1])
        (single,) = self.do(add("y", "y", "x"))
        self.come_back()
        self.refused(self.again(number, fill("y", 9)), pb.ABORTED, "0 of its 1")
        self.refused(self.again(number, call), pb.ABORTED, "1 of its 2")
        self.refused(self.again(single, submit(fill("y", 9), fill("y", 9))), pb.ABORTED, "1 of its 2")
        self.assertEqual([self.values(name) for name in "xy"], [1, 3])


class Unread(AgainTestCase):
    """The client has not read its answers, so that some have not left the daemon, when what they tell of is changed."""

    options = ("--npus", "64", "--npu-bytes", str(4 << 20))
    SHAPE = (1, 64, 8, 256)  # answers of 128 KiB: some go into the socket, and all are less than a MiB

    def setUp(self):
        super().setUp()
        self.talker.call(**alloc("x", self.SHAPE, **FIXED))
        self.talker.call(**fill("x", 1))

    def send_and_kill(self, *calls):
        """Not read, until the last one, which fills x with 2, is done; their ids. self.told: what the socket had."""
        ids = self.talker.post(*calls)
        with self.client() as other:
            wait_for(lambda: set(other.call(**read("x", 0, 64)).done.data) == {2})
        self.daemon.process.kill()
        self.daemon.process.wait()
        self.told = []
        with contextlib.suppress(HungUp):
            while True:
                self.told.append(self.talker.receive())
        self.stop()
        self.start()
        self.talker = self.resume(self.token)
        return ids

    def test_what_was_answered_and_nothing_else(self):
        endless = Endless(self.talker)
        self.talker.call(**alloc("y", self.SHAPE, **FIXED))
        self.talker.call(**fill("y", 5))
        # Two that wait behind it, one of which reads what is not changed.
        calls = [endless.call(), copy("y", "out"), read("x", 0, 64), *[read("x")] * 6, fill("x", 2)]
        ids = self.send_and_kill(*calls)
        read_ids = {answer.id for answer in self.told}
        self.assertTrue(read_ids.isdisjoint({*ids[:2], *ids[-2:]}), read_ids)
        for answer in self.told:
            self.assertEqual(set(answer.done.data), {1})
        for number, call in list(zip(ids, calls))[2:-1]:
            if number not in read_ids:
                self.refused(self.again(number, call), pb.ABORTED, "before the answer was read")
        # What was not answered has not been done: it is now, in order.
        self.talker.post(dict(calls[0], id=ids[0], again=True))
        self.talker.call(cancel=pb.CancelRequest(request_id=ids[0]))
        self.refused(self.talker.answers([ids[0]])[0], pb.CANCELLED)
        self.talker.call(**fill("out", 3))
        self.assertEqual(self.again(ids[1], dict(copy("y", "x"))).status, pb.OK)
        self.assertEqual(set(self.talker.call(**read("y")).done.data), {2})
        self.assertEqual(self.again(ids[-1], calls[-1]).status, pb.OK)

    def test_it_is_known_after_another_restart_until_the_client_says_so(self):
        calls = [*[read("x")] * 7, fill("x", 2)]
        ids = self.send_and_kill(*calls)
        self.come_back()
        self.refused(self.again(ids[-2], calls[0]), pb.ABORTED, "before the answer was read")
        self.talker.pipeline({"fill": pb.FillRequest(tensor=ref("none")), "answered_below": ids[-1]})
        self.do(alloc("y"))
        self.come_back()
        self.assertEqual(set(self.again(ids[-2], calls[0]).done.data), {2})

    def test_ids_in_any_order(self):
        """Of a client that gives them as it likes: none counts that lies between those that were answered."""
        ids = [500, 100, 900, 300, 700, 200]
        self.talker.post(*[dict(read("x"), id=number) for number in ids], dict(fill("x", 2), id=1000))
        self.send_and_kill()
        told = {answer.id for answer in self.told}
        self.assertLess(len(told), len(ids))
        for number in ids:
            if number not in told:
                self.refused(self.again(number, read("x")), pb.ABORTED)
        for number in (99, 101, 299, 301, 450, 501, 899, 1000):
            self.assertEqual(set(self.again(number, read("x", 0, 64)).done.data), {2})


    def test_who_never_reads_makes_the_state_grow_no_further(self):
        """100,000 answers, each with an id that is next to no other."""
        path = os.path.join(self.state, "results")
        before = os.stat(path).st_size
        self.talker.call(**alloc("small", (1, 8, 1, 2048), **FIXED))
        frames = []
        for i in range(100000, 0, -1):
            call = fill("small", i % 100) if i % 2 else read("small", 0, 1)
            frames.append(frame(pb.Request(id=1000 + 2 * i, **call)))
        self.talker.sock.setblocking(False)
        sent, data, held = 0, b"".join(frames), rss_bytes(self.daemon.process.pid)
        with self.client() as other:
            # Until the daemon takes no more, which is when it holds a MiB.
            end = time.monotonic() + 1
            while sent < len(data) and time.monotonic() < end:
                try:
                    sent += self.talker.sock.send(data[sent : sent + 65536])
                    end = time.monotonic() + 1
                except BlockingIOError:
                    time.sleep(0.005)
            self.assertLess(sent, len(data))
            # Of which what was freed may be kept for the next ones (process/blocks.h).
            self.assertLess(rss_bytes(self.daemon.process.pid) - held, 96 << 20)
            self.assertEqual(other.call(**read("x", 0, 1)).status, pb.OK)
        self.assertLess(os.stat(path).st_size - before, 1 << 20)
        self.restart()
        self.assertLess(os.stat(path).st_size - before, 1 << 20)
        self.talker = self.resume(self.token)
        self.refused(self.again(1000 + 2 * 99000, read("small", 0, 1)), pb.ABORTED)
        self.assertEqual(self.again(999, fill("small", 1)).status, pb.OK)


class CutOff(AgainTestCase):
    options = ("--npus", "64", "--npu-bytes", str(4 << 20))

    def setUp(self):
        super().setUp()
        self.endless = Endless(self.talker)
        for name in "xy":
            self.talker.call(**alloc(name, **FIXED))
            self.talker.call(**fill(name, 2))

    def test_what_was_done_is_not_taken_back(self):
        calls = [view("v", "x", (0, 0, 0, 0), (1, 1, 1, 1)), alloc("new"), grant("y", 1234, pb.ACCESS_READ), add("x", "x", "y"), free("y")]
        ids = self.do(*calls)
        first = self.answers
        self.come_back()
        # All of them wait for the list, and that for the kernel.
        kernel, behind = self.talker.post(self.endless.call(), {"list": pb.ListRequest()})
        self.talker.post(*(dict(call, id=i, again=True) for i, call in zip(ids, calls)))
        late, new = self.talker.post(dict(alloc("late"), again=True), alloc("newer"))
        cancels = [{"cancel": pb.CancelRequest(request_id=i)} for i in (*ids, late, new, kernel)]
        self.assertTrue(all(answer.cancelled.found for answer in self.talker.pipeline(*cancels)))
        answers = self.talker.answers([kernel, behind, *ids, late, new])
        self.assertEqual([a.status for a in answers], [pb.CANCELLED] + [pb.OK] * 6 + [pb.CANCELLED] * 2)
        self.assertEqual(answers[2].tensor.handle, first[0].tensor.handle)
        self.assertEqual(answers[3].allocated.tensors[0].handle, first[1].allocated.tensors[0].handle)
        self.assertEqual(answers[6].freed.tensors, 1)

    def kill_while_it_runs(self, call):
        (out,) = (tensor.handle for tensor in self.talker.tensors() if tensor.name == "out")
        (number,) = self.talker.post(call)
        self.kill_when_it_writes(out)
        self.stop()
        self.start()
        self.talker = self.resume(self.token)
        return number

    def test_after_what_must_not_be_done_twice(self):
        call = submit(add("x", "x", "y"), self.endless.call(), fill("y", 9))
        number = self.kill_while_it_runs(call)
        told = self.again(number, call)
        self.refused(told, pb.ABORTED, "1 of its 3 operations were done")
        self.assertEqual({f.key: f.number for f in told.fields}["done"], 1)
        for name, value in (("x", 4), ("y", 2)):
            self.assertEqual(set(self.talker.call(**read(name)).done.data), {value})
        self.refused(self.talker.ask(**read("out", count=1)), pb.DATA_LOST)

    def test_after_what_may_be_done_twice(self):
        call = submit(copy("x", "y"), self.endless.call(), add("y", "y", "x"))
        number = self.kill_while_it_runs(call)
        self.talker.post(dict(call, id=number, again=True))
        # It runs once more: cancelled, it tells what it did.
        self.talker.call(cancel=pb.CancelRequest(request_id=number))
        self.refused(self.talker.answers([number])[0], pb.CANCELLED)


class InPlace(AgainTestCase):
    """Cut off while it overwrites what it reads: that is gone, and nobody takes what is left for it."""

    options = ("--npus", "64", "--npu-bytes", str(4 << 20))
    SHAPE = (1, 64, 1024, 1024)

    def setUp(self):
        super().setUp()
        for name in "xyz":
            self.talker.call(**alloc(name, self.SHAPE if name != "z" else SMALL, **FIXED))
            self.talker.call(**fill(name, 1))

    def cut_off(self, calls, handle=None):
        """Killed in the midst of one of them, while it writes that tensor; its id, the call, and which it is."""
        ids = self.talker.post(*calls)
        self.kill_when_it_writes(handle)
        n_answered = 0
        with contextlib.suppress(HungUp):
            while self.talker.receive():
                n_answered += 1
        self.stop()
        self.start()
        self.talker = self.resume(self.token)
        return ids[n_answered], calls[n_answered], n_answered

    def check_lost(self, answer, name):
        self.refused(answer, pb.DATA_LOST, name, "the daemon ended while they were written")
        fields = {f.key: f for f in answer.fields}
        self.assertEqual(fields["tensor"].text, name)
        self.assertGreater(fields["lost_bytes"].number, 0)

    def handle(self, name):
        return next(tensor.handle for tensor in self.talker.tensors() if tensor.name == name)

    def value(self, name):
        values = set(self.talker.call(**read(name, 0, 1024)).done.data)
        self.assertEqual(len(values), 1)
        return values.pop()

    def test_its_only_operation(self):
        number, call, _ = self.cut_off([add("x", "x", "y")] * N)
        for _ in range(2):
            self.check_lost(self.again(number, call), "x")
        self.assertEqual({t.name: t.state for t in self.talker.tensors()}, {"x": "lost", "y": "ok", "z": "ok"})
        # Rewritten, it is done, for the first time.
        self.talker.call(**fill("x", 4))
        self.assertEqual(self.again(number, call).status, pb.OK)
        self.assertEqual(self.value("x"), 5)

    def test_the_first_of_several(self):
        number, call, n = self.cut_off([submit(add("x", "x", "y"), fill("z", i + 2)) for i in range(N)])
        told = self.again(number, call)
        self.check_lost(told, "x")
        self.assertEqual({f.key: f.number for f in told.fields}["operation"], 0)
        self.assertEqual(len(told.submitted.done), 0)
        self.assertEqual(self.value("z"), n + 1)

    def test_after_one_that_was_done(self):
        """Which must not be done again: that it was is what is told, and what is lost says so itself."""
        number, call, n = self.cut_off([submit(add("z", "z", "z"), add("x", "x", "y"))] * N, self.handle("x"))
        told = self.again(number, call)
        self.refused(told, pb.ABORTED, "1 of its 2 operations were done")
        self.assertEqual({f.key: f.number for f in told.fields}["done"], 1)
        self.assertEqual(self.value("z"), min(2 << n, 127))
        self.check_lost(self.talker.ask(**read("x", 0, 1)), "x")


if __name__ == "__main__":
    unittest.main()
