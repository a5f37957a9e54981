"""Writes, kernels and compactions that a kill cuts off: what was being written is lost and says so, until it is
rewritten; all else is whole."""

import fcntl
import os
import random
import subprocess
import time
import unittest

from state import StateTestCase, token_of, view
from support import NPUMEMD, SLOWER, Endless, HungUp, Sharer, alloc, copy, dims, fill, free, pb, read, ref, run, submit, wait_for

FIXED = {"dtype": pb.FX8, "frac_bits": 4}
BIG = ("--npus", "64", "--npu-bytes", str(4 << 20))


class Kernels(StateTestCase):
    options = (*BIG, "--allow-unchecked-reuse")

    def run_and_kill(self, client, call):
        (out,) = (tensor.handle for tensor in client.tensors() if tensor.name == "out")
        client.send(**call)
        self.kill_when_it_writes(out)
        self.stop()
        self.start()

    def test_its_output_is_lost_and_nothing_else(self):
        client = self.client()
        endless = Endless(client)
        client.call(**alloc("beside", **FIXED))
        client.call(**fill("beside", 3))
        self.run_and_kill(client, endless.call())
        self.assertIn("lost: data of 1 tensors that were written when it ended: out", self.output())
        client = self.client()
        self.assertEqual({t.name: t.state for t in client.tensors()}, {"in": "ok", "weights": "ok", "out": "lost", "beside": "ok"})
        self.assertEqual(client.call(**read("beside")).done.data, bytes([3] * 128))
        self.assertEqual(client.call(**read("in", count=4096)).done.data, bytes([1] * 4096))
        self.refused(client.ask(**read("out", count=16)), pb.DATA_LOST)
        self.refused(client.ask(**run(pb.RELU, in_="out", out="out")), pb.DATA_LOST)
        self.refused(client.ask(seal=pb.SealRequest(tensor=ref("out"))), pb.DATA_LOST)
        # It stays so, and ends when it is rewritten.
        self.restart(terminate=True)
        client = self.client()
        self.assertNotIn("lost", self.output())
        self.refused(client.ask(**read("out", count=16)), pb.DATA_LOST)
        client.call(**fill("out", 2))
        self.assertEqual({t.state for t in client.tensors()}, {"ok"})
        self.assertEqual(client.call(**read("out", count=16)).done.data, bytes([2] * 16))

    def test_what_it_may_destroy_is_lost_too(self):
        client = self.client()
        endless = Endless(client, out=None)
        out = client.alloc("out", (1, 33, *endless.out_shape[2:]), **FIXED, start_npu=0)
        over = pb.Spec(**FIXED, shape=dims(1, 3, 4, 8), address=out.place.address + 40 * (4 << 20))
        client.call(alloc=pb.AllocRequest(tensors=[pb.Allocation(name="victim", spec=over, reuse=pb.UNCHECKED)]))
        client.call(**fill("victim", 1))
        client.call(**free("weights"))
        client.call(**alloc("weights", (128, 33, 43, 43), **FIXED, start_npu=0))
        client.call(**fill("weights", 1))
        self.run_and_kill(client, endless.call())
        states = {t.name: t.state for t in self.client().tensors()}
        self.assertEqual((states["out"], states["victim"], states["in"]), ("lost", "lost", "ok"))

    def test_of_a_group_both_queues(self):
        client = self.client()
        endless = Endless(client)
        for name in ("a", "b"):
            client.call(**alloc(name, **FIXED))
            client.call(**fill(name, 1))
        self.run_and_kill(client, submit(copy("a", "b"), endless.call(), group=1))
        states = {t.name: t.state for t in self.client().tensors()}
        self.assertEqual((states["a"], states["b"], states["out"]), ("ok", "ok", "lost"))


class Looks(StateTestCase):
    """Killed while an operation looks at what it reads, or computes elsewhere than in its output, nothing is lost."""

    options = BIG
    SHAPE = (1, 64, 256, 512)
    ROUNDS = 6 if SLOWER == 1 else 3

    def fill_all_but_a_part(self, client):
        """So that whoever reads it looks at nearly all of it before it is refused."""
        client.call(**alloc("in", self.SHAPE, **FIXED))
        client.call(**view("most", "in", (0, 0, 0, 0), (1, 64, 255, 512)))
        client.call(**fill("most", 1))

    def check_whole(self, client, name, value):
        (tensor,) = (t for t in client.tensors() if t.name == name)
        self.assertEqual(tensor.state, "ok", self.output())
        shape = tensor.place.shape
        elements = shape.n * shape.c * shape.h * shape.w
        for first in range(0, elements, 1 << 22):
            data = client.call(**read(name, first, min(1 << 22, elements - first))).done.data
            self.assertEqual(data, bytes([value]) * len(data))

    def test_of_what_is_refused(self):
        client = self.client()
        self.fill_all_but_a_part(client)
        client.call(**alloc("out", self.SHAPE, **FIXED))
        client.call(**fill("out", 7))
        for call in (run(pb.RELU, in_="in", out="out"), copy("out", "in"), submit(copy("out", "in"))) * 2:
            client = self.client()
            number = client.post(*[call] * 100)[-1]
            wait_for(lambda: client.receive().status == pb.FAILED_PRECONDITION)
            time.sleep(random.random() * 0.002)
            self.restart()
            client = self.client()
            self.check_whole(client, "out", 7)
            self.refused(client.pipeline(dict(call, id=number, again=True))[0], pb.FAILED_PRECONDITION)

    def test_of_data_that_a_kernel_refuses(self):
        client = self.client()
        client.call(**alloc("in", self.SHAPE, pb.FP32))
        client.call(**fill("in", 1))
        nan = {"write": pb.WriteRequest(tensor=ref("in"), data=b"\xff" * 4, first=64 * 256 * 512 - 1, count=1)}
        client.call(**nan)
        client.call(**alloc("out", self.SHAPE, **FIXED))
        client.call(**fill("out", 7))
        for _ in range(self.ROUNDS):
            client = self.client()
            client.post(*[run(pb.CONVERT_TENSOR, in_="in", out="out")] * 20)
            self.refused(client.receive(), pb.INVALID)
            time.sleep(random.random() * 0.02)
            self.restart()
            self.check_whole(self.client(), "out", 7)

    def test_of_a_kernel_that_computes_beside_its_output(self):
        client = self.client()
        endless = Endless(client, out=None)
        strides = [0] * 4
        for axis, step in ((3, 2), (2, 2 * endless.out_shape[3]), (1, 2 * endless.out_shape[3] * endless.out_shape[2])):
            strides[axis] = step
        strides[0] = 2 * strides[1]
        spec = pb.Spec(**FIXED, shape=dims(*endless.out_shape), layout=pb.STRIDED, stride=dims(*strides), start_npu=0)
        client.call(alloc=pb.AllocRequest(tensors=[pb.Allocation(name="out", spec=spec)]))
        client.call(**fill("out", 7))
        client.send(**endless.call())
        with self.client() as other:
            wait_for(lambda: other.call(stat=pb.StatRequest(details=True)).stat.running)
        time.sleep(0.3)
        self.restart()
        self.check_whole(self.client(), "out", 7)


class Beginnings(StateTestCase):
    """Killed again while it finds what the last one left."""

    options = BIG

    def test_what_was_cut_off_stays_lost(self):
        client = self.client()
        token = token_of(client)
        endless = Endless(client)
        unnamed = client.alloc(shape=(4, 64, 64, 256))
        with self.client() as gone:
            big = gone.alloc(shape=(4, 64, 128, 256))
            gone.call(**fill(big, 1))
            for i in range(200):
                client.call(**alloc(f"t{i}", **FIXED))
                client.call(**fill(f"t{i}", i % 8))
            client.call(**fill(unnamed, 6))
            number = client.send(**endless.call())
            self.kill_when_it_writes()
            self.stop()
        path = os.path.join(self.directory, "npumem.sock")
        for i in range(15):
            with subprocess.Popen([NPUMEMD, "--socket", path, "--state-dir", self.state, *self.options]) as process:
                time.sleep(0.002 * i)
                process.kill()
        self.start()
        client = self.resume(token)
        tensors = {t.name: t.state for t in client.tensors()}
        self.assertEqual(tensors.pop("out"), "lost")
        self.assertEqual(set(tensors.values()), {"ok"})
        self.assertEqual(len(tensors), 203)  # and no tensor of the session that is gone
        self.assertEqual(client.read(unnamed.handle, 0, 1000), bytes([6] * 1000))
        for i in range(200):
            self.assertEqual(client.call(**read(f"t{i}")).done.data, bytes([i % 8] * 128))
        self.refused(client.pipeline(dict(read("out", count=1), id=number + 1))[0], pb.DATA_LOST)


class Writes(StateTestCase):
    options = BIG
    SHAPE = (4, 64, 128, 256)
    N = 4 * 64 * 128 * 256

    def kill_while(self, client, *calls, n=100):
        """Kills it in the midst of them, one after the other."""
        client.answers(client.post(*calls * n)[:4])
        time.sleep(random.random() * 0.002)
        self.restart()

    def test_a_slice_s_neighbours_are_whole(self):
        client = self.client()
        client.call(**alloc("base", self.SHAPE))
        n_lost = 0
        for round_ in range(8):
            client = self.client()
            if round_ == 0:
                client.call(**fill("base", 1))
                client.call(**view("part", "base", (0, 16, 0, 0), (4, 48, 128, 256)))
            client.call(**fill("part", 2))
            self.kill_while(client, fill("part", 3), fill("part", 4))
            client = self.client()
            base, part = sorted(client.tensors(), key=lambda t: t.name)
            self.assertIn(base.state, ("ok", "lost"))
            n_lost += base.state == "lost"
            for n in range(4):
                for c, whole in ((0, True), (15, True), (16, False), (47, False), (48, True), (63, True)):
                    first = (n * 64 + c) * 128 * 256
                    answer = client.ask(**read("base", first, 128 * 256))
                    if whole:
                        self.assertEqual(answer.done.data, bytes([1]) * (128 * 256), (n, c))
                    elif answer.status != pb.DATA_LOST:
                        self.assertIn(set(answer.done.data), ({3}, {4}, {2}), (n, c))
            client.call(**fill("part", 2))
            self.assertEqual({t.state for t in client.tensors()}, {"ok"})
        self.assertGreater(n_lost, 0)

    def test_a_part_of_a_write_from_shared_memory(self):
        fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        self.addCleanup(os.close, fd)
        os.posix_fallocate(fd, 0, self.N)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        first, count = self.N // 4 + 100, self.N // 2
        states = set()
        for _ in range(6):
            client = self.stack.enter_context(Sharer(self.daemon.path))
            if not client.tensors():
                client.call(**alloc("t", self.SHAPE))
            client.call(**fill("t", 7))
            segment = client.share(fd)
            write = {"write": pb.WriteRequest(tensor=ref("t"), segment=segment, first=first, count=count)}
            self.kill_while(client, write)
            client = self.client()
            (tensor,) = client.tensors()
            states.add(tensor.state)
            for at, n in ((0, 4096), (first - 4096, 4096), (first + count, 4096), (self.N - 4096, 4096)):
                self.assertEqual(client.call(**read("t", at, n)).done.data, bytes([7]) * n)
            inside = client.ask(**read("t", first, 4096))
            if tensor.state == "lost":
                self.refused(client.ask(**read("t")), pb.DATA_LOST)
                self.refused(inside, pb.DATA_LOST)
            else:
                self.assertIn(set(inside.done.data), ({0}, {7}))
        self.assertIn("lost", states)

    def test_what_is_being_freed_is_there_or_gone(self):
        seen = set()
        for round_ in range(10):
            client = self.client()
            if not client.tensors():
                client.call(**alloc("t", self.SHAPE))
            client.call(**fill("t", 7))
            client.post(free("t"))
            time.sleep(0.0005 * 2**round_)
            self.restart()
            states = [t.state for t in self.client().tensors()]
            self.assertIn(states, ([], ["ok"]))
            seen.add(tuple(states))
            if states:
                self.assertEqual(self.client().call(**read("t", self.N - 16, 16)).done.data, bytes([7] * 16))
            else:
                self.assertEqual(self.client().call(dump=pb.DumpRequest(npu=5, offset=0, bytes=1 << 20)).dump.data, bytes(1 << 20))
        self.assertIn((), seen)


class Frees(StateTestCase):
    """Of a name that two sessions of one uid have one after the other."""

    options = BIG

    def is_answered(self, client):
        """Of a daemon that was killed."""
        try:
            client.receive()
        except (OSError, HungUp):
            return False
        return True

    def free_again(self, token, number):
        """By the session that had no answer."""
        with self.resume(token) as client:
            return client.pipeline(dict(free("t"), id=number, again=True))[0]

    def test_a_name_is_another_s_while_the_bytes_are_zeroed(self):
        n_cut = 0
        for _ in range(40):
            old, new = self.client(), self.client()
            token = token_of(old)
            old.call(**alloc("t", (96, 64, 128, 256)))
            old.call(**fill("t", 7))
            number = old.send(**free("t"))
            self.assertEqual([answer.status for answer in new.pipeline(alloc("t"), fill("t", 3))], [pb.OK, pb.OK])
            self.daemon.process.kill()
            self.daemon.process.wait()
            n_cut += not self.is_answered(old)
            self.stop()
            self.start()
            self.assertEqual(self.free_again(token, number).freed.tensors, 1)
            client = self.client()
            self.assertEqual([(t.name, t.state) for t in client.tensors()], [("t", "ok")], self.output())
            self.assertEqual(client.call(**read("t")).done.data, bytes([3] * 128))
            client.call(**free("t"))
            if n_cut == 3:
                break
        self.assertGreater(n_cut, 0)

    def test_nobody_is_told_of_a_free_that_may_not_be(self):
        """The kernel that it waits for ends with the daemon."""
        old, new, stranger = self.client(), self.client(), self.client(uid=1234)
        token = token_of(old)
        endless = Endless(old)
        old.call(**alloc("t", **FIXED))
        old.call(**fill("t", 7))
        free_both = {"free": pb.FreeRequest(tensors=[ref("t"), ref("in")])}
        kernel, number = old.post(endless.call(), free_both)
        with self.client() as other:
            wait_for(lambda: other.call(stat=pb.StatRequest(details=True)).stat.running)
            waiting = [self.client(), self.client()]
            waiting[0].send(**read("t"))
            waiting[1].send(**alloc("in"))
            new.send(**alloc("t"))
            self.refused(stranger.ask(**read(f"{os.getuid()}:t")), pb.NOT_FOUND)
            time.sleep(0.3)
            self.assertEqual(sorted(t.name for t in other.tensors()), ["in", "out", "t", "weights"])
        self.kill_when_it_writes()
        self.assertEqual([self.is_answered(client) for client in (old, new, *waiting)], [False] * 4)
        self.stop()
        self.start()
        client = self.client()
        self.assertEqual({t.name: t.state for t in client.tensors()}, {"in": "ok", "weights": "ok", "out": "lost", "t": "ok"})
        self.assertEqual(client.call(**read("t")).done.data, bytes([7] * 128))
        with self.resume(token) as old:
            self.assertEqual(old.pipeline(dict(free_both, id=number, again=True))[0].freed.tensors, 2)
        self.assertGreater(number, kernel)
        self.assertEqual(sorted(client.names()), ["out", "weights"])


class Compaction(StateTestCase):
    """Killed at random moments of compactions that move megabytes by a few bytes, and by many."""

    options = BIG
    ROUNDS = int(os.environ.get("NPUMEM_KILLS", "12" if SLOWER == 1 else "6"))

    def test_every_tensor_is_whole(self):
        random_ = random.Random(5)
        names = 0
        for round_ in range(self.ROUNDS):
            client = self.client()
            tensors = {t.name: t for t in client.tensors()}
            self.assertEqual({t.state for t in tensors.values()} - {"ok"}, set(), (round_, self.output()))
            for name, tensor in tensors.items():
                data = client.call(**read(name)).done.data
                self.assertEqual(data, bytes([int(name[1:]) % 251]) * len(data), (round_, name))
            for _ in range(6):
                names += 1
                shape = (1, 64, random_.choice((1, 7, 31)), random_.choice((16, 128, 1000)))
                if client.ask(**alloc(f"t{names}", shape)).status == pb.OK:
                    client.call(**fill(f"t{names}", names % 251 - 256 * (names % 251 > 127)))
            for name in random_.sample(sorted(tensors), len(tensors) // 3):
                client.call(**free(name))
            client.post({"compact": pb.CompactRequest()})
            time.sleep(random_.random() * 0.006)
            self.restart()


if __name__ == "__main__":
    unittest.main()
