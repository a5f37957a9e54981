"""What takes something back does not wait behind it, whatever else the connection has asked for in between; and no
request is without an id."""

import threading
import unittest

from support import Endless, TestCase, alloc, dims, fill, free, long_alloc, pb, read, ref, submit

ALICE, BOB, CAROL = 12001, 12002, 12003
MIB = 1 << 20


class Readers(TestCase):
    """Reads that wait for their user's kernel, of a part of what others may read as well."""

    options = ("--npu-bytes", str(4 * MIB))

    def test_others_read_beside_many_that_wait(self):
        owner, reader, other = self.client(ALICE), self.client(BOB), self.client(CAROL)
        owner.call(**alloc("weights", (1, 8, 2, 16)))
        owner.call(**fill("weights", 1))
        for uid in BOB, CAROL:
            owner.call(grant=pb.GrantRequest(tensor=ref("weights"), uid=uid, access=pb.ACCESS_READ))
        handle = reader.call(open=pb.OpenRequest(tensor=ref(f"{ALICE}:weights"))).tensor.handle
        reader.call(view=pb.ViewRequest(tensor=ref(handle), name="part", to=dims(1, 8, 1, 16)))
        runs = reader.post(Endless(reader).call())[0]
        waiting = reader.post(*[submit(fill("out", 1), read("part"))] * 100)
        reader.answers(reader.post({"info": pb.InfoRequest()}))
        for client in owner, other:
            client.sock.settimeout(10)
            self.assertEqual(client.call(**read(handle, 0, 3)).done.data, b"\1" * 3)
        # Nor does who writes another part wait for them, however many they are.
        other_part = pb.ViewRequest(tensor=ref(handle), name="other", to=dims(1, 8, 2, 16))
        getattr(other_part, "from").h = 1
        owner.call(view=other_part)
        owner.call(**fill("other", 2))
        reader.call(cancel=pb.CancelRequest(request_id=runs))
        self.assertTrue(all(answer.status == pb.OK for answer in reader.answers(waiting)))


class Views(TestCase):
    """Who may read a tensor changes views of it behind a kernel of its own: the tensor's owner, and others who may
    use it, wait for none of this."""

    options = ("--npu-bytes", str(4 * MIB))

    def setUp(self):
        super().setUp()
        self.owner, self.reader, self.other = self.client(ALICE), self.client(BOB), self.client(CAROL)
        self.owner.call(**alloc("weights", (1, 8, 2, 16)))
        self.owner.call(**fill("weights", 1))
        for uid in BOB, CAROL:
            self.owner.call(grant=pb.GrantRequest(tensor=ref("weights"), uid=uid, access=pb.ACCESS_READ))
        self.root = self.reader.call(open=pb.OpenRequest(tensor=ref(f"{ALICE}:weights"))).tensor.handle
        self.view("part")
        self.kernel = Endless(self.reader)
        self.runs = self.reader.post(self.kernel.call())[0]

    def view(self, name, client=None):
        view = pb.ViewRequest(tensor=ref(self.root), name=name, to=dims(1, 8, 1, 16))
        return (client or self.reader).call(view=view).tensor.handle

    def check(self, writes=True):
        """Nothing of it waits."""
        for client in self.owner, self.other:
            client.sock.settimeout(10)
            self.assertEqual(client.call(**read(self.root, 0, 3)).done.data, b"\1" * 3)
        if writes:
            self.owner.call(**fill("weights", 1))

    def finish(self, sent):
        self.reader.call(cancel=pb.CancelRequest(request_id=self.runs))
        return self.reader.answers(sent)

    def test_a_free_behind_a_kernel(self):
        sent = self.reader.post(free("part", "out"))
        self.reader.answers(self.reader.post({"info": pb.InfoRequest()}))
        self.check()
        second = self.client(BOB)
        named = second.post(alloc("part"))
        gone = second.post(read("part"))
        second.answers(second.post({"info": pb.InfoRequest()}))
        self.check()
        (freed,) = self.finish(sent)
        self.assertEqual((freed.status, freed.freed.tensors), (pb.OK, 2))
        self.assertEqual(second.answers(named)[0].status, pb.OK)
        second.answers(gone)
        self.owner.call(**free("weights"))

    def test_a_new_name_behind_a_kernel_that_others_writes_pass(self):
        """By a uid whose grant was taken back."""
        self.owner.call(grant=pb.GrantRequest(tensor=ref("weights"), uid=CAROL, access=pb.ACCESS_WRITE))
        user = self.reader.post(free("in", "out"))
        third = self.client(BOB)
        change = third.post({"rename": pb.RenameRequest(tensor=ref("part"), name="out")})
        third.answers(third.post({"info": pb.InfoRequest()}))
        self.owner.call(grant=pb.GrantRequest(tensor=ref("weights"), uid=BOB, access=pb.ACCESS_NONE))
        self.other.call(**fill(self.root, 1))
        self.check()
        self.finish(user)
        (answer,) = third.answers(change)
        self.assertEqual((answer.tensor.name, answer.tensor.state), ("out", ""))

    def test_a_new_name_tells_what_was_written_before(self):
        reads = self.reader.post(submit(fill("out", 1), read("part")))
        third = self.client(BOB)
        change = third.post({"rename": pb.RenameRequest(tensor=ref("part"), name="new")})
        self.check(writes=False)
        self.finish(reads)
        (answer,) = third.answers(change)
        self.assertEqual((answer.tensor.name, answer.tensor.state), ("new", "ok"))

    def test_a_hang_up(self):
        guest = self.client(BOB)
        for _ in range(3):
            self.view("", guest)
        guest.post(submit(fill("out", 1), read("part")))
        guest.sock.close()
        self.reader.call(info=pb.InfoRequest())
        self.check()
        self.finish([])


class Cancel(TestCase):
    options = ("--npu-bytes", str(16 * MIB))

    def test_a_cancel_overtakes_writes_that_wait_for_the_kernel(self):
        client = self.client()
        convolution = Endless(client)
        write = {"write": pb.WriteRequest(tensor=ref("in"), data=b"\5" * MIB)}
        runs, *writes, cancel = sent = list(range(100, 108))
        calls = [convolution.call(), *[write] * 6, {"cancel": pb.CancelRequest(request_id=runs)}]
        # The daemon may stop reading before it has come to the end.
        poster = threading.Thread(target=lambda: client.post(*({**call, "id": i} for call, i in zip(calls, sent))))
        poster.start()
        answers = client.answers([runs, cancel, *writes])
        poster.join()
        self.assertEqual([answer.status for answer in answers], [pb.CANCELLED] + [pb.OK] * 7)
        self.assertTrue(answers[1].cancelled.found)
        self.assertEqual(client.call(**read("in", MIB - 1, 2)).done.data, b"\5\1")

    def test_a_free_overtakes_allocations_that_wait(self):
        other, client = self.client(BOB), self.client(ALICE)
        client.alloc("x")
        other.alloc("big", (1, 64, 1, 15 * MIB))
        waiting = client.post(*(alloc(f"w{i}", (1, 64, 1, 2 * MIB), wait_ms=30000) for i in range(256)))
        (freed,) = client.post(free("x"))
        first = client.receive()
        self.assertEqual((first.id, first.status), (freed, pb.OK), f"{waiting[0]} to {waiting[-1]} wait")


class Ids(TestCase):
    """An id of 0 is refused before anything is done."""

    options = ("--npu-bytes", str(16 * MIB))

    def setUp(self):
        super().setUp()
        self.talker = self.client()
        self.talker.call(**long_alloc("long", 65536))
        for name in ("short", "other"):
            self.talker.alloc(name, dtype=pb.FX8, frac_bits=4)
        for name in ("long", "short", "other"):
            self.talker.call(**fill(name, 1))

    def check(self, *calls):
        for call in calls:
            self.talker.post({**call, "id": 0})
            answer = self.talker.receive()
            self.assertEqual((answer.id, answer.status), (0, pb.INVALID), (call, answer))
            self.assertIn("id", answer.message)
        for name in ("long", "short", "other"):
            self.assertEqual(self.talker.call(**read(name, 0, 128)).done.data, b"\1" * 128)
        self.assertEqual(self.talker.names(), ["long", "other", "short"])

    def test_of_what_is_short(self):
        self.check(fill("short", 2), read("short"), submit(fill("short", 2)), free("short"), alloc("new"))

    def test_of_what_is_long(self):
        self.check(fill("long", 2))

    def test_of_a_submit_that_is_long(self):
        self.check(submit(fill("short", 2), fill("long", 2)))

    def test_of_what_waits_for_something_long(self):
        (sent,) = self.talker.post(fill("long", 1))
        self.talker.post({**fill("long", 2), "id": 0})
        self.talker.post({**free("long"), "id": 0})
        answers = sorted((answer.id, answer.status) for answer in (self.talker.receive() for _ in range(3)))
        self.assertEqual(answers, [(0, pb.INVALID)] * 2 + [(sent, pb.OK)])
        self.check()

    def test_of_an_allocation_that_waits(self):
        self.talker.alloc("most", (1, 64, 1, 14 * MIB))
        self.talker.post({**alloc("new", (1, 64, 1, 4 * MIB), wait_ms=500), "id": 0})
        answer = self.talker.receive()
        self.assertEqual((answer.id, answer.status), (0, pb.INVALID), answer)
        self.talker.call(**free("most"))
        self.check()


if __name__ == "__main__":
    unittest.main()
