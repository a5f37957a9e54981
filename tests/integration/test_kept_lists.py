"""Lists of operations that a session keeps: sent once, run by their ids, with other tensors or segments in their places."""

import os
import unittest

import npumem
from state import StateTestCase, token_of
from support import Sharer, TestCase, copy, encode_length, fill, free, pb, read, ref, run, submit, wait_for
from test_record import RecordCase, read_record
from test_segments import memfd

OTHER = 1001
needs_root = unittest.skipIf(os.geteuid(), "root alone can be other uids")
RELU = [pb.Param(key=pb.PARAM_RELU, values=[2])]


def handle(tensor):
    return pb.Ref(handle=tensor.handle)


def operations(*calls):
    return submit(*calls)["submit"].operations


def keep(number, *calls):
    return {"keep": pb.KeepRequest(list=number, operations=operations(*calls))}


def go(number, *changes):
    return {"submit": pb.SubmitRequest(list=number, changes=[pb.Change(**change) for change in changes])}


class Case(TestCase):
    def refused(self, answer, status, *words):
        self.assertEqual(answer.status, status, answer)
        for word in words:
            self.assertIn(word, answer.message)

    def data(self, answer, place):
        self.assertEqual(answer.status, pb.OK, answer)
        return answer.submitted.done[place].data


class Kept(Case):
    def setUp(self):
        super().setUp()
        self.one = self.client()
        self.x, self.y, self.z = (self.one.alloc("", dtype=pb.FX8, frac_bits=4) for _ in range(3))
        for value, tensor in enumerate((self.x, self.y, self.z), 1):
            self.one.call(**fill(tensor, value))

    def test_it_runs_as_often_as_it_is_asked_for(self):
        kept = self.one.call(**keep(5, copy(self.y, self.x), read(self.y))).kept
        self.assertEqual(kept.list, 5)
        self.assertGreater(kept.bytes, 0)
        for value in (7, 9):
            self.one.call(**fill(self.x, value))
            self.assertEqual(self.data(self.one.ask(**go(5)), 1), bytes([value] * 128))
        # What was sent before it is given back runs, and nothing after.
        ids = self.one.post(go(5), {"unkeep": pb.UnkeepRequest(list=5)}, go(5))
        first, given_back, late = self.one.answers(ids)
        self.assertEqual((first.status, given_back.status), (pb.OK, pb.OK))
        self.refused(late, pb.NOT_FOUND, "keeps no list 5")
        self.refused(self.one.ask(unkeep=pb.UnkeepRequest(list=5)), pb.NOT_FOUND, "list 5")

    def test_other_tensors_in_its_places(self):
        self.one.call(**keep(1, copy(self.y, self.x), read(self.y), run(pb.RELU, RELU, **{"in": self.x, "out": self.y})))
        changed = self.one.ask(**go(1, {"operation": 0, "role": "source", "tensor": self.z.handle}))
        self.assertEqual(self.data(changed, 1), bytes([3] * 128))
        # For that run alone.
        self.assertEqual(self.data(self.one.ask(**go(1)), 1), bytes([1] * 128))
        both = [{"operation": 0, "role": role, "tensor": self.z.handle} for role in ("destination", "source")]
        self.refused(self.one.ask(**go(1, *both)), pb.INVALID, "operation 0")
        changed = self.one.ask(
            **go(
                1,
                {"operation": 0, "role": "destination", "tensor": self.z.handle},
                {"operation": 1, "tensor": self.z.handle},
                {"operation": 2, "role": "in", "tensor": self.z.handle},
            )
        )
        self.assertEqual(self.data(changed, 1), bytes([1] * 128))
        for words, change in {
            "behind the list's end": {"operation": 3, "tensor": self.z.handle},
            "neither a tensor nor a segment": {"operation": 1},
            "its operation none": {"operation": 1, "segment": 1},
            'role that its operation has not: "weights"': {"operation": 2, "role": "weights", "tensor": self.z.handle},
            'role that its operation has not: "in"': {"operation": 1, "role": "in", "tensor": self.z.handle},
            "operation 2": {"operation": 2, "role": "in", "tensor": 12345},
        }.items():
            answer = self.one.ask(**go(1, change))
            self.refused(answer, pb.NOT_FOUND if "operation 2" in words else pb.INVALID, words)
            self.assertEqual(len(answer.submitted.done), 0)

    def test_what_cannot_be_kept(self):
        good = fill(ref(self.x), 1)
        many = [good] * 1025
        for words, asked in {
            "above 0": keep(0, good),
            "0 operations": keep(1),
            "1025 operations": keep(1, *many),
            "by their handles": keep(1, good, read("x")),
            "operation 0": keep(1, copy(self.x, "x")),
            "a kept list": keep(1, run(pb.RELU, RELU, **{"in": self.x, "out": "y"})),
            "changes and no list": {"submit": pb.SubmitRequest(changes=[pb.Change()])},
            "not both": {"submit": pb.SubmitRequest(list=1, operations=operations(good))},
        }.items():
            self.refused(self.one.ask(**asked), pb.INVALID, words)
        self.one.call(**keep(1, good))
        self.refused(self.one.ask(**keep(1, good)), pb.INVALID, "already keeps a list 1")
        for number in range(2, 65):
            self.one.call(**keep(number, good))
        self.refused(self.one.ask(**keep(65, good)), pb.RESOURCE_EXHAUSTED, "keeps 64 lists")

    def test_a_tensor_that_is_gone(self):
        self.one.call(**keep(1, fill(self.y, 4), read(self.x)))
        self.one.call(**free(self.x))
        # The same place and shape, and another tensor.
        again = self.one.alloc("", dtype=pb.FX8, frac_bits=4)
        self.one.call(**fill(again, 9))
        answer = self.one.ask(**go(1))
        self.refused(answer, pb.NOT_FOUND, "operation 1")
        self.assertEqual(len(answer.submitted.done), 0)
        self.assertEqual(self.one.read(self.y.handle), bytes([2] * 128))
        self.assertEqual(self.data(self.one.ask(**go(1, {"operation": 1, "tensor": again.handle})), 1), bytes([9] * 128))

    def test_a_tensor_that_has_changed(self):
        self.one.call(**keep(1, fill(self.x, 4), read(self.y)))
        self.one.call(seal=pb.SealRequest(tensor=handle(self.x)))
        answer = self.one.ask(**go(1))
        self.refused(answer, pb.FAILED_PRECONDITION, "operation 0", "seal")
        self.assertEqual(len(answer.submitted.done), 0)

    def test_a_list_is_its_sessions(self):
        self.one.call(**keep(1, read(self.x)))
        two = self.client()
        self.refused(two.ask(**go(1)), pb.NOT_FOUND, "keeps no list 1")
        two.call(**keep(1, fill(two.alloc(), 3)))
        self.assertEqual(self.data(self.one.ask(**go(1)), 0), bytes([1] * 128))
        two.close()

    def test_its_memory_is_charged_and_given_back(self):
        def held(client):
            limits = client.call(info=pb.InfoRequest(details=True)).info.limits
            return next(limit.now for limit in limits if limit.key == "list_bytes")

        data = bytes(128)
        first = self.one.call(**keep(1, {"write": pb.WriteRequest(tensor=handle(self.x), data=data)})).kept.bytes
        self.assertEqual(held(self.one), first)
        two = self.client()
        second = two.call(**keep(1, *[fill(self.x, 2)] * 100)).kept.bytes
        self.assertEqual(held(self.one), first + second)
        two.close()
        wait_for(lambda: held(self.one) == first)
        self.one.call(**go(1))
        self.assertEqual(self.one.read(self.x.handle), data)
        self.one.call(unkeep=pb.UnkeepRequest(list=1))
        self.assertEqual(held(self.one), 0)

    @needs_root
    def test_rights_that_are_taken_away_in_between(self):
        named = self.one.alloc("given")
        self.one.call(**fill(named, 6))
        self.one.call(grant=pb.GrantRequest(tensor=handle(named), uid=OTHER, access=pb.ACCESS_READ))
        other = self.daemon.client(OTHER)
        self.addCleanup(other.close)
        other.call(**keep(1, read(named)))
        self.assertEqual(self.data(other.ask(**go(1)), 0), bytes([6] * 128))
        self.one.call(grant=pb.GrantRequest(tensor=handle(named), uid=OTHER, access=pb.ACCESS_NONE))
        self.refused(other.ask(**go(1)), pb.NOT_FOUND, "operation 0")
        # Nor does a list give what a call would not.
        other.call(**keep(2, read(self.x)))
        self.refused(other.ask(**go(2)), pb.NOT_FOUND, "operation 0")


class Segments(Case):
    def test_other_segments_in_its_places(self):
        client = self.stack.enter_context(Sharer(self.daemon.path))
        x = client.alloc()
        fds = [memfd(4096), memfd(4096)]
        shared = []
        for fd in fds:
            self.addCleanup(os.close, fd)
            shared.append(client.share(fd))
        os.pwrite(fds[0], bytes([1] * 128 + [2] * 128), 0)
        os.pwrite(fds[1], bytes([3] * 128), 256)
        write = {"write": pb.WriteRequest(tensor=handle(x), segment=shared[0])}
        client.call(**keep(1, write, read(x)))
        self.assertEqual(self.data(client.ask(**go(1)), 1), bytes([1] * 128))
        change = {"operation": 0, "segment": shared[0], "segment_offset": 128}
        self.assertEqual(self.data(client.ask(**go(1, change)), 1), bytes([2] * 128))
        change = {"operation": 0, "segment": shared[1], "segment_offset": 256}
        self.assertEqual(self.data(client.ask(**go(1, change)), 1), bytes([3] * 128))
        for words, change in {
            "none": {"operation": 1, "segment": shared[0]},
            "segment 99": {"operation": 0, "segment": 99},
            "bytes": {"operation": 0, "segment": shared[0], "segment_offset": 4095},
        }.items():
            answer = client.ask(**go(1, change))
            self.assertNotEqual(answer.status, pb.OK, answer)
            self.assertIn(words, answer.message)
        client.call(unshare=pb.UnshareRequest(segment=shared[0]))
        self.refused(client.ask(**go(1)), pb.NOT_FOUND, "operation 0", "segment")


class Recorded(RecordCase):
    def test_a_replay_has_the_operations_that_ran(self):
        """A replay has another session's ids to ask by, and need not know of lists."""
        process, text = self.start()
        client = self.client()
        x, y, z = (client.alloc() for _ in range(3))
        for value, tensor in enumerate((x, y, z), 1):
            client.call(**fill(tensor, value))
        client.call(**keep(4, copy(y, x), read(y)))
        client.call(**go(4))
        client.call(**go(4, {"operation": 0, "role": "source", "tensor": z.handle}))
        client.call(**keep(5, read(y)))
        client.call(**go(5))
        self.assertEqual(self.stop(process), 0, text())
        requests = [pb.Request.FromString(entry.request) for entry in read_record(self.file) if entry.request]
        submits = [request.submit for request in requests if request.HasField("submit")]
        self.assertEqual([len(one.operations) for one in submits], [2, 2, 1])
        self.assertEqual(submits[1].operations[0].copy.source.handle, z.handle)
        self.same()

    def test_unknown_fields_of_a_list_are_not_recorded(self):
        """They lie in the message, whose memory has others' messages when the list runs."""
        process, text = self.start()
        client, other = self.client(), self.client()
        x, y = client.alloc(), other.alloc()
        wanted, sent = operations(fill(x, 3)), operations(fill(x, 3))
        sent[0].MergeFromString(b"\xc2\x3e" + encode_length(2000) + b"U" * 2000)
        client.call(keep=pb.KeepRequest(list=7, operations=sent))
        other.call(write=pb.WriteRequest(tensor=handle(y), data=b"secret! " * 16))
        client.call(**go(7))
        self.assertEqual(self.stop(process), 0, text())
        requests = [pb.Request.FromString(entry.request) for entry in read_record(self.file) if entry.request]
        self.assertEqual([one.submit.operations for one in requests if one.HasField("submit")], [wanted])


class Resumed(StateTestCase):
    def test_a_list_is_gone_with_the_daemon_and_may_be_kept_again(self):
        client = self.client()
        token = token_of(client)
        x, y = client.alloc(), client.alloc()
        client.call(**fill(x, 7))
        client.call(**keep(3, copy(y, x), read(y)))
        self.kill()
        self.start()
        client = self.resume(token)
        self.refused(client.ask(**go(3)), pb.NOT_FOUND, "keeps no list 3")
        client.call(**keep(3, copy(y, x), read(y)))
        self.assertEqual(client.call(**go(3)).submitted.done[1].data, bytes([7] * 128))

    def test_the_python_client_sends_it_again(self):
        with npumem.connect(self.daemon.path) as dev:
            x, y = (dev.alloc(shape=(1, 8, 1, 16), dtype="int8") for _ in range(2))
            with dev.keep() as kept:
                kept.copy(y, x)
                result = kept.read(y)
            for value in (3, 4):
                x.fill(value)
                kept.submit()
                self.assertTrue((result.value == value).all())
                self.kill()
                self.start()
            x.fill(5)
            kept.submit()
            self.assertTrue((result.value == 5).all())
            kept.close()
            self.kill()
            self.start()
            with self.assertRaisesRegex(ValueError, "not kept"):
                kept.submit()
            with self.assertRaisesRegex(npumem.Refused, "keeps no list 1"):
                dev.ask("submit", pb.SubmitRequest(list=1))


if __name__ == "__main__":
    unittest.main()
