"""A submit is resolved once, whole, before its first operation starts: a tensor that is born later does not exist for
it, and one that it holds is not freed."""

import unittest

from support import Convolution, Endless, TestCase, alloc, fill, free, long_alloc, pb, read, run, submit

ALICE, BOB = 12001, 12002
SECONDS = 0.3  # of an operation; how far it is is told every 0.1 s


class StaleNames(TestCase):
    options = ("--npu-bytes", str(16 << 20))

    def setUp(self):
        super().setUp()
        # Two sessions of Alice, and Bob, who has nothing to do with them.
        self.one, self.two, self.bob = self.client(ALICE), self.client(ALICE), self.client(BOB)
        self.convolution = Convolution(self.one, SECONDS, "z")
        self.one.call(**fill("z", 1))
        self.one.call(subscribe=pb.SubscribeRequest(kinds=["progress"]))

    def alloc_y(self, client):
        self.convolution.alloc("y", client)

    def wait_until_beyond(self, request_id, n, n_operations):
        """Until so many operations of the submit are done, or all of it is."""
        while request_id not in self.one.early:
            response = self.one.receive()
            if response.id:
                self.one.early[response.id] = response
            elif response.event.done * n_operations > response.event.total * n:
                return

    def born_and_gone(self, request_id, n, n_operations):
        """y lives while the first n operations run; then its place is Bob's."""
        self.wait_until_beyond(request_id, 0, n_operations)
        self.alloc_y(self.two)
        self.wait_until_beyond(request_id, n, n_operations)
        self.two.call(**free("y"))
        place = self.bob.alloc("secret", self.convolution.out_shape).place
        self.bob.call(**fill("secret", 0x5A))
        return place

    def assert_refused(self, answer, index):
        self.assertEqual(answer.status, pb.NOT_FOUND, answer.message)
        self.assertIn(f"operation {index}", answer.message)
        # The whole of it.
        self.assertEqual(len(answer.submitted.done), 0)
        self.assertEqual(self.one.call(**read("z", 0, 5)).done.data, b"\1" * 5)

    def test_nothing_is_written_where_a_tensor_born_later_was(self):
        run_z, run_y = self.convolution.call("z"), self.convolution.call("y")
        (sent,) = self.one.post(submit(run_z, run_y))
        self.born_and_gone(sent, 1, 2)
        (answer,) = self.one.answers([sent])
        data = self.bob.call(**read("secret")).done.data
        self.assertEqual(len(data) - data.count(0x5A), 0, "bytes of another uid have changed")
        self.assert_refused(answer, 1)

    def test_nothing_is_read_where_a_tensor_born_later_was(self):
        self.one.call(**long_alloc("slow", 4096))
        request = submit(self.convolution.call("z"))
        group = submit(*[fill("slow", 2)] * 200, read("y", 0, 1024), group=1)
        request["submit"].MergeFrom(group["submit"])
        (sent,) = self.one.post(request)
        self.born_and_gone(sent, 1, 202)
        (answer,) = self.one.answers([sent])
        data = b"".join(done.data for done in answer.submitted.done)
        self.assertEqual(data.count(0x5A), 0, "bytes of another uid were read")
        self.assert_refused(answer, 201)

    def test_a_tensor_born_while_the_submit_waits_does_not_exist_for_it(self):
        ids = self.one.post(self.convolution.call("z"), submit(fill("z", 7), fill("y", 7)), {"info": pb.InfoRequest()})
        self.one.answers(ids[2:])  # so that all of it has arrived
        self.alloc_y(self.two)
        run, answer = self.one.answers(ids[:2])
        self.assertEqual(run.status, pb.OK)
        self.assertEqual(answer.status, pb.NOT_FOUND, answer.message)
        self.assertEqual(len(answer.submitted.done), 0)

    def test_a_free_waits_for_the_operation_that_is_to_come(self):
        self.alloc_y(self.one)
        (sent,) = self.one.post(submit(self.convolution.call("z"), self.convolution.call("y"), read("y", 0, 1)))
        self.wait_until_beyond(sent, 0, 3)
        self.two.call(**free("y"))
        # Answered by then, or about to be: what is freed is out of its hands.
        (answer,) = self.one.answers([sent])
        self.assertEqual((answer.status, len(answer.submitted.done)), (pb.OK, 3), answer.message)


class UnknownRoles(TestCase):
    """The tensor of an operand that the kernel has not is freed while the run waits for another one."""

    options = ("--npu-bytes", str(8 << 20))

    def is_refused(self, call):
        kernel, client, other = (self.client(ALICE) for _ in range(3))
        endless = Endless(kernel)
        client.call(**alloc("y"))
        (runs,) = kernel.post(endless.call())
        kernel.answers(kernel.post({"info": pb.InfoRequest()}))
        (sent,) = client.post(call)
        client.answers(client.post({"info": pb.InfoRequest()}))
        freed = other.post(free("y"))
        kernel.call(cancel=pb.CancelRequest(request_id=runs))
        (answer,) = client.answers([sent])
        self.assertEqual(answer.status, pb.INVALID, answer.message)
        self.assertIn("bogus", answer.message)
        self.assertEqual(other.answers(freed)[0].status, pb.OK)
        self.assert_alive()

    def test_of_a_run(self):
        self.is_refused(run(pb.RELU, in_="out", out="out", bogus="y"))

    def test_of_a_submit(self):
        self.is_refused(submit(run(pb.RELU, in_="out", out="out", bogus="y")))


if __name__ == "__main__":
    unittest.main()
