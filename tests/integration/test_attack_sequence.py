"""What a session sends takes effect as if one after the other, whatever exists when it arrives."""

import random
import unittest

from support import TestCase, alloc, copy, fill, free, long_alloc, pb, read, ref, run, submit

ALICE, BOB = 12001, 12002


def look(name):
    return {"open": pb.OpenRequest(tensor=ref(name))}


# A free that waits, so that whatever changes the names must wait behind it.
BUSY = (long_alloc("t", 128 << 10), fill("t", 5), free("t"))


class Sequence(TestCase):
    options = ("--npu-bytes", str(1 << 20), "--uninitialized", "allow")

    def assert_ok(self, answers):
        for i, answer in enumerate(answers):
            self.assertEqual(answer.status, pb.OK, (i, answer.message))

    def test_a_copy_from_what_is_still_to_be_allocated_keeps_its_place(self):
        *done, answer = self.client().pipeline(
            alloc("y"), fill("y", 1), *BUSY, alloc("b"), fill("b", 7), copy("y", "b"), read("y")
        )
        self.assert_ok(done)
        self.assertEqual(answer.done.data, b"\7" * 128)

    def test_it_does_not_undo_what_was_sent_after_it(self):
        client = self.client()
        *done, answer = client.pipeline(
            alloc("y"), fill("y", 1), *BUSY, alloc("b"), fill("b", 7), copy("y", "b"), fill("y", 9), read("y")
        )
        self.assert_ok(done)
        self.assertEqual((answer.done.data, client.pipeline(read("y"))[0].done.data), (b"\x09" * 128,) * 2)

    def test_what_another_uid_sends_meanwhile_is_before_or_after_it_whole(self):
        """Between sessions only what was answered has an order."""
        alice, bob = self.client(ALICE), self.client(BOB)
        alice.alloc("y")
        alice.call(grant=pb.GrantRequest(tensor=ref("y"), uid=BOB, access=pb.ACCESS_WRITE))
        ids = alice.post(*BUSY, alloc("b"), fill("b", 7), copy("y", "b"), {"info": pb.InfoRequest()})
        alice.answers(ids[-1:])  # all before it has arrived, too
        bob.call(**fill(f"{ALICE}:y", 9))
        self.assert_ok(alice.answers(ids[:-1]))
        self.assertIn(alice.pipeline(read("y"))[0].done.data, (b"\x07" * 128, b"\x09" * 128))
        bob.call(**fill(f"{ALICE}:y", 8))
        self.assertEqual(alice.pipeline(read("y"))[0].done.data, b"\x08" * 128)

    def test_a_run_and_a_submit_into_what_is_still_to_be_allocated_keep_their_places(self):
        format_ = {"dtype": pb.FX8, "frac_bits": 4}
        *done, y, z = self.client().pipeline(
            alloc("y", **format_), fill("y", 1), alloc("z", **format_), fill("z", 1), *BUSY,
            alloc("b", **format_), fill("b", 7), run(pb.RELU, in_="b", out="y"), submit(copy("z", "b"), fill("b", 8)),
            read("y"), read("z"),
        )  # fmt: skip
        self.assert_ok(done)
        self.assertEqual((y.done.data, z.done.data), (b"\7" * 128,) * 2)

    def test_names_come_and_go_in_turn(self):
        *done, b, x = self.client().pipeline(
            alloc("x"), fill("x", 1), *BUSY, alloc("b"), free("b"), alloc("b"), fill("b", 3), look("b"),
            free("b"), alloc("b"), fill("b", 4), read("b"), read("x"),
        )  # fmt: skip
        self.assert_ok(done)
        self.assertEqual((b.done.data, x.done.data), (b"\4" * 128, b"\1" * 128))

    def test_what_is_opened_and_then_freed_was_there(self):
        answers = self.client().pipeline(alloc("x"), *BUSY, look("x"), free("x"), look("x"))
        self.assert_ok(answers[:-1])
        self.assertEqual(answers[-1].status, pb.NOT_FOUND)

    def test_what_is_allocated_again_and_then_freed_existed(self):
        answers = self.client().pipeline(alloc("x"), *BUSY, alloc("x"), free("x"), alloc("x"))
        self.assertEqual(answers.pop(4).status, pb.ALREADY_EXISTS)
        self.assert_ok(answers)


class World:
    """What must be answered: the four names, one request after the other."""

    def __init__(self):
        self.tensors = {}  # name: [elements, value]

    def ask(self, call):
        (kind, request), = call.items()
        return getattr(self, kind)(request)

    def alloc(self, request):
        allocation = request.tensors[0]
        if allocation.name in self.tensors:
            return (pb.ALREADY_EXISTS,)
        shape = allocation.spec.shape
        self.tensors[allocation.name] = [shape.c * shape.w, 0]
        return (pb.OK,)

    def free(self, request):
        return (pb.OK if self.tensors.pop(request.tensors[0].name, None) else pb.NOT_FOUND,)

    def fill(self, request):
        tensor = self.tensors.get(request.tensor.name)
        if not tensor:
            return (pb.NOT_FOUND,)
        tensor[1] = request.integer
        return (pb.OK,)

    def copy(self, request):
        names = request.destination.name, request.source.name
        destination, source = (self.tensors.get(name) for name in names)
        if not destination or not source:
            return (pb.NOT_FOUND,)
        if names[0] == names[1] or destination[0] != source[0]:
            return (pb.INVALID,)
        destination[1] = source[1]
        return (pb.OK,)

    def read(self, request):
        tensor = self.tensors.get(request.tensor.name)
        return (pb.OK, bytes([tensor[1]]) * 128) if tensor else (pb.NOT_FOUND,)


def random_calls(seed):
    """Mostly of what exists by then, with something long between, and all that there is then in the end."""
    draw, world = random.Random(seed), World()
    for i in range(32):
        name, other = draw.choice("abcd"), draw.choice("abcd")
        operations = (fill(name, draw.randrange(1, 100)), copy(name, other), read(name, 0, 128))
        usual = (4, 6, 3, 3, 1) if name in world.tensors else (1, 1, 1, 1, 16)
        calls = draw.choices((*operations, free(name), alloc(name)), usual)
        if i % 16 == 8:
            calls = long_alloc("t", 4096), fill("t", 5), free("t")
        for call in calls:
            world.ask(call)
            yield call
    yield from (read(name, 0, 128) for name in "abcd")


class Pipelines(TestCase):
    options = Sequence.options

    def difference(self, client, seed):
        """From the sequential world, in words, or None."""
        calls, world = list(random_calls(seed)), World()
        for i, (call, answer) in enumerate(zip(calls, client.pipeline(*calls))):
            expected = world.ask(call)
            got = (answer.status, answer.done.data) if len(expected) > 1 else (answer.status,)
            if got != expected:
                return f"pipeline {seed}, request {i} ({next(iter(call))}): {got!r:.20}, not {expected!r:.20}"
        return None

    def test_random_ones_are_answered_as_in_sequence(self):
        wrong = []
        for seed in range(200):
            with self.daemon.client() as client:
                problem = self.difference(client, seed)
                if problem:
                    wrong.append(problem)
                for name in client.names():
                    client.call(**free(name))
        self.assertEqual(wrong[:3], [], f"{len(wrong)} of 200")


if __name__ == "__main__":
    unittest.main()
