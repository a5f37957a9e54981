"""Many users have one long kernel each, and each kernel keeps a thread until it ends. Another user's work finds a thread,
or is refused where the process may have no more."""

import contextlib
import os
import resource
import select
import tempfile
import time
import unittest

from support import (
    SLOWER,
    Client,
    Daemon,
    Endless,
    Sharer,
    TestCase,
    alloc,
    as_uid,
    beside,
    copy,
    dims,
    fill,
    frame,
    free,
    long_alloc,
    pb,
    ref,
    run,
    run_as,
    wait_for,
)
from test_segments import memfd

OWNERS, FIRST, VICTIM = (13001, 13002), 13003, 13900
USERS = 24  # more than 18, of which each kept one of the threads for all users of a daemon on two processors
PART = USERS // len(OWNERS)  # that use the same operands: a tensor is granted to 16 uids at most
MIB = 1 << 20
MANY = 1000
ATTEMPTS = 5
LONGEST_MS = 20


@unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
class Crowd(TestCase):
    options = ("--npu-bytes", str(32 * MIB))

    def n_threads(self):
        return len(os.listdir(f"/proc/{self.daemon.process.pid}/task"))

    def lend(self, owner, uids):
        """Operands of the owner, which these uids may read; and the shape of an output."""
        convolution = Endless(self.client(owner), None)
        for name in ("in", "weights"):
            for uid in uids:
                grant = pb.GrantRequest(tensor=ref(name), uid=uid, access=pb.ACCESS_READ)
                convolution.client.call(grant=grant)
        return convolution.out_shape

    def begin_kernel(self, owner, uid, shape, out="out"):
        client = self.client(uid)
        client.call(**alloc(out, shape, pb.FX8, frac_bits=4, start_npu=0))
        (client.kernel,) = client.post(run(pb.CONV2D, in_=f"{owner}:in", weights=f"{owner}:weights", out=out))
        return client

    def cancel(self, *clients):
        for client in clients:
            client.post({"cancel": pb.CancelRequest(request_id=client.kernel)})
        for client in clients:
            self.assertEqual(client.answers([client.kernel])[0].status, pb.CANCELLED)

    def running(self):
        with self.daemon.client() as root:
            return root.call(stat=pb.StatRequest(details=True)).stat.running


class Threads(Crowd):
    def client_as(self, uid, kind):
        with as_uid(uid):
            return self.stack.enter_context(kind(self.daemon.path))

    def test_others_find_a_thread(self):
        victim = self.client_as(VICTIM, Sharer)
        for name in ("from", "to"):
            victim.call(**alloc(name, (1, 64, 128, 512)))
            victim.call(**fill(name, 1))
        segment = victim.share(memfd(4 * MIB))
        busy = []
        for number, owner in enumerate(OWNERS):
            uids = range(FIRST + number * PART, FIRST + (number + 1) * PART)
            shape = self.lend(owner, uids)
            busy += [self.begin_kernel(owner, uid, shape) for uid in uids]
        wait_for(lambda: len(self.running()) == USERS)
        n_threads = self.n_threads()
        # Longer than a tenth of a millisecond, and on shared memory: both need a thread.
        for _ in range(3):
            victim.call(**copy("to", "from"))
            victim.call(write=pb.WriteRequest(tensor=ref("to"), segment=segment))
        self.assertEqual(select.select([client.sock for client in busy], [], [], 0)[0], [], "a kernel ended")
        self.assertGreater(n_threads, USERS)  # one for each user, and the loop's
        self.assertLessEqual(self.n_threads(), n_threads + 1)
        self.cancel(*busy)


class Phases(Crowd):
    """A transposed convolution of a million phases packs its weights for a second, phase by phase. Others' operations
    get its thread meanwhile."""

    options = ("--npu-bytes", str(64 * MIB))
    SIDE = 1000

    def begin_phases(self, uid):
        client = self.client(uid)
        for role, side in (("in", 4), ("weights", self.SIDE), ("out", 4 * self.SIDE)):
            client.call(**alloc(role, (1, 1, side, side), pb.FX8, frac_bits=0))
            if role != "out":
                client.call(**fill(role, 0))
        stride = pb.Param(key=pb.PARAM_STRIDE, values=[self.SIDE, self.SIDE])
        (client.kernel,) = client.post(run(pb.TRANSPOSE_CONV2D, [stride], in_="in", weights="weights", out="out"))
        return client

    def test_others_do_not_wait_for_the_pack(self):
        victim = self.client(VICTIM)
        for name in ("from", "to"):
            victim.call(**alloc(name, (1, 64, 128, 512)))
            victim.call(**fill(name, 1))
        done = []
        # A busy machine may let the victim wait for a processor as long as a pack takes.
        while len(done) < ATTEMPTS and not (done and set(done[-1]) == {0}):
            busy = [self.begin_phases(FIRST + os.cpu_count() * len(done) + number) for number in range(os.cpu_count())]
            wait_for(lambda: len(self.running()) == os.cpu_count())
            for _ in range(3):
                victim.call(**copy("to", "from"))
            done.append([kernel.done for kernel in self.running()])
            self.cancel(*busy)
            for client in busy:
                client.call(**free("in", "weights", "out"))
        # No kernel had made an output.
        self.assertEqual(done[-1], [0] * os.cpu_count(), done)


class Preempted(Crowd):
    """Processes of a user keep its threads from the processor. A thread that loses it where it wakes another one would
    keep the loop, if it held a lock then."""

    SPINNING, FLOODS, IN_FLIGHT, W = 14, 4, 8, 4000
    MOST_MS, PART_SECONDS = 5, 1

    def flood(self):
        client = Client(self.daemon.path)
        name = f"t{os.getpid()}"
        client.call(**long_alloc(name, self.W))
        message = frame(pb.Request(id=7, **fill(name, 1)))
        client.sock.sendall(message * self.IN_FLIGHT)
        while True:
            client.receive()
            client.sock.sendall(message)

    @staticmethod
    def spin():
        while True:
            pass

    def slept_ms(self, root):
        """The longest sleep within a turn."""
        root.call(stat=pb.StatRequest(reset=True))
        time.sleep(self.PART_SECONDS)
        return root.call(stat=pb.StatRequest(details=True)).stat.loop.longest_wait_ns / 1e6

    def share_and_unshare(self):
        client, fd = Sharer(self.daemon.path), memfd(64 * MIB)
        while True:
            client.call(unshare=pb.UnshareRequest(segment=client.share(fd)))

    def test_the_loop_does_not_wait_for_a_thread(self):
        self.nobody_waits_beside(self.flood)

    def test_the_loop_does_not_wait_for_a_mapping(self):
        self.nobody_waits_beside(self.share_and_unshare)

    def nobody_waits_beside(self, flood):
        root, found = self.client(), []
        with contextlib.ExitStack() as stack:
            for function in [self.spin] * self.SPINNING + [flood] * self.FLOODS:
                stack.enter_context(beside(FIRST, function))
            while len(found) < ATTEMPTS and (not found or min(found) >= self.MOST_MS):
                found.append(self.slept_ms(root))
        self.assertLess(min(found), self.MOST_MS, found)


class Shares(Crowd):
    def test_a_share_does_not_wait_for_kernels_of_its_user(self):
        kernel = Endless(self.client(FIRST))
        kernel.alloc("more")
        clients = [self.client(FIRST) for _ in range(2)]
        for client, out in zip(clients, ("out", "more")):
            (client.kernel,) = client.post(kernel.call(out))
        wait_for(lambda: len(self.running()) == len(clients))
        with as_uid(FIRST):
            sharer = self.stack.enter_context(Sharer(self.daemon.path))
        self.assertGreater(sharer.share(memfd(4096)), 0)
        self.cancel(*clients)


class Few(Crowd):
    """Of a daemon that may have no more threads."""

    UID = 13999

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        directory = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="npumem-test-"))
        os.chown(directory, self.UID, self.UID)
        self.daemon = self.stack.enter_context(Daemon(*self.options, directory=directory, preexec=self.become))

    def become(self):
        os.setgid(self.UID)
        os.setuid(self.UID)  # the limit does not hold for root

    def bound_threads(self, n):
        """That uid has no other process."""
        limits = (n, resource.getrlimit(resource.RLIMIT_NPROC)[1])
        run_as(self.UID, lambda: resource.prlimit(self.daemon.process.pid, resource.RLIMIT_NPROC, limits))

    def is_refused(self, client):
        client.answers(client.post({"info": pb.InfoRequest()}))
        return client.kernel in client.early

    def test_a_user_without_a_thread_is_refused(self):
        uids = range(FIRST, FIRST + PART)
        shape = self.lend(OWNERS[0], uids)
        victim = self.client(VICTIM)
        for name in ("from", "to"):
            victim.call(**alloc(name, (1, 64, 128, 512)))
            victim.call(**fill(name, 1))
        self.bound_threads(self.n_threads() + 2)
        busy = [self.begin_kernel(OWNERS[0], uid, shape) for uid in uids]
        refused = [client for client in busy if self.is_refused(client)]
        self.assertIn(len(refused), range(1, PART - 2))
        for client in refused:
            self.is_exhausted(client.answers([client.kernel])[0])
            busy.remove(client)
        self.is_exhausted(victim.ask(**copy("to", "from")))
        victim.call(**alloc("small"))
        victim.call(**fill("small", 1))
        # A thread that is idle again, and one that the process may have again.
        self.cancel(busy.pop())
        victim.call(**copy("to", "from"))
        self.bound_threads(MANY)
        busy += [self.begin_kernel(OWNERS[0], uids[-1], shape, out) for out in ("one", "two")]
        victim.call(**copy("to", "from"))
        self.cancel(*busy)

    def test_what_looks_at_bytes_waits_for_the_common_thread(self):
        """Else it would look at 64 MiB of marks on the loop."""
        uids = range(FIRST, FIRST + PART)
        shape = self.lend(OWNERS[0], uids)
        watcher, victim = self.client(), self.client(VICTIM)
        stride = dims(2 * MIB, 2 * MIB, 2 * MIB, 2)
        spec = pb.Spec(dtype=pb.INT8, layout=pb.STRIDED, shape=dims(1, 64, 1, MIB), stride=stride, start_npu=0)
        victim.call(alloc=pb.AllocRequest(tensors=[pb.Allocation(name="x", spec=spec)]))
        victim.call(write=pb.WriteRequest(tensor=ref("x"), first=0, data=b"1"))
        self.bound_threads(self.n_threads() + 2)
        busy = [self.begin_kernel(OWNERS[0], uid, shape) for uid in uids]
        refused = [client for client in busy if self.is_refused(client)]
        self.assertTrue(refused)
        self.is_exhausted(victim.ask(**fill("x", 1)))
        watcher.call(stat=pb.StatRequest(reset=True))
        victim.call(open=pb.OpenRequest(tensor=ref("x")))
        victim.call(list=pb.ListRequest())
        self.assertIn("never written", victim.ask(seal=pb.SealRequest(tensor=ref("x"))).message)
        victim.call(**free("x"))
        longest_ns = watcher.call(stat=pb.StatRequest(details=True)).stat.loop.longest_cpu_ns
        self.assertLess(longest_ns / 1e6, LONGEST_MS * SLOWER)
        self.cancel(*[client for client in busy if client not in refused])

    def is_exhausted(self, answer):
        self.assertEqual(answer.status, pb.RESOURCE_EXHAUSTED, answer)
        self.assertIn("thread", answer.message)


if __name__ == "__main__":
    unittest.main()
