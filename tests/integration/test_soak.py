"""Many clients at once: eight processes at random, kernels of two clients by the clock, and clients that are killed.

NPUMEM_SOAK_SECONDS (5) is how long the eight work."""

import multiprocessing
import os
import random
import signal
import time
import unittest

from support import SECONDS, Client, Convolution, Endless, TestCase, fill, long_alloc, pb, submit, wait_for

SOAK_SECONDS = float(os.environ.get("NPUMEM_SOAK_SECONDS", "5"))
CLIENTS = 8
LONG_KERNEL_S = 0.2
THREADS = 2


class Walker:
    """Allocates, writes, runs, reads and frees at random, and knows what every byte of its own must be."""

    def __init__(self, path, number, seed):
        self.client = Client(path)
        self.random = random.Random(seed)
        self.number = number
        self.tensors = {}  # name or handle -> (ref, elements or None)
        self.n = 0

    def shape(self):
        return self.random.choice([(1, 8, 4, 16), (2, 64, 8, 8), (1, 100, 3, 50), (1, 64, 64, 128)])

    def alloc(self):
        if len(self.tensors) >= 12:
            return self.free()
        self.n += 1
        shape = self.shape()
        name = f"c{self.number}.{self.n}" if self.random.random() < 0.3 else ""
        tensor = self.client.alloc(name, shape, pb.FX8, frac_bits=3, start_npu=self.random.randrange(64))
        self.tensors[tensor.handle] = (shape, None)
        return None

    def free(self):
        handle = self.random.choice(list(self.tensors))
        del self.tensors[handle]
        self.client.call(free=pb.FreeRequest(tensors=[pb.Ref(handle=handle)]))

    def write(self):
        handle, (shape, _) = self.random.choice(list(self.tensors.items()))
        data = self.random.randbytes(shape[0] * shape[1] * shape[2] * shape[3])
        self.client.write(handle, data)
        self.tensors[handle] = (shape, data)

    def read(self):
        handle, (_, data) = self.random.choice(list(self.tensors.items()))
        response = self.client.ask(read=pb.ReadRequest(tensor=pb.Ref(handle=handle)))
        if data is None:
            # Bytes that another client has freed count as never written.
            assert response.status == pb.FAILED_PRECONDITION, response
        else:
            assert response.status == pb.OK, response
            assert response.done.data == data, f"client {self.number}: tensor {handle} holds another's data"

    def run(self):
        """relu from one tensor to another of its shape."""
        known = [(h, s, d) for h, (s, d) in self.tensors.items() if d is not None]
        if not known:
            return
        source, shape, data = self.random.choice(known)
        targets = [h for h, (s, _) in self.tensors.items() if s == shape and h != source]
        if not targets:
            return
        target = self.random.choice(targets)
        operands = [pb.Operand(role=r, tensor=pb.Ref(handle=h)) for r, h in (("in", source), ("out", target))]
        self.client.call(run=pb.RunRequest(kernel=pb.RELU, operands=operands, params=[RELU_GEN]))
        self.tensors[target] = (shape, data.translate(RELU))

    def stat(self):
        stat = self.client.stat()
        assert stat.total == stat.data + stat.dummy + stat.padding + stat.empty + stat.free, stat

    def step(self):
        steps = [self.alloc, self.write, self.write, self.read, self.read, self.run, self.free]
        self.random.choice(steps if self.tensors else [self.alloc])()
        self.stat()


RELU_GEN = pb.Param(key=pb.PARAM_RELU, values=[2])
RELU = bytes(b if b < 128 else 0 for b in range(256))


def walk(path, number, end, steps):
    walker = Walker(path, number, number)
    while time.monotonic() < end:
        walker.step()
        steps[number] += 1
    # What is left is the daemon's to clean up.
    names = walker.client.names()
    os._exit(0 if all(name == "" or name.startswith("c") for name in names) else 3)


def walk_until_killed(path, number, seed):
    walker = Walker(path, number, seed)
    while True:
        walker.step()


class Soak(TestCase):
    options = ("--npus", "64", "--npu-bytes", "1048576")

    def test_eight_clients_at_random(self):
        steps = multiprocessing.Array("Q", CLIENTS)
        end = time.monotonic() + SOAK_SECONDS
        processes = [
            multiprocessing.Process(target=walk, args=(self.daemon.path, i, end, steps)) for i in range(CLIENTS)
        ]
        for process in processes:
            process.start()
        with self.daemon.client() as watcher:
            while time.monotonic() < end:
                stat = watcher.stat()
                self.assertEqual(stat.total, stat.data + stat.dummy + stat.padding + stat.empty + stat.free)
                time.sleep(0.01)
        for process in processes:
            process.join(SECONDS)
            self.assertEqual(process.exitcode, 0)
        print(f"{sum(steps)} steps of {CLIENTS} clients in {SOAK_SECONDS:g} s", flush=True)
        self.assertGreater(min(steps), 0)
        self.only_named_ones_are_left()

    def only_named_ones_are_left(self):
        with self.daemon.client() as client:
            wait_for(lambda: client.stat().sessions == 1)
            tensors = client.tensors()
            for tensor in tensors:
                self.assertNotEqual(tensor.name, "")
            self.assertEqual(client.stat().tensors, len(tensors))
            for tensor in tensors:
                client.call(free=pb.FreeRequest(tensors=[pb.Ref(handle=tensor.handle)]))
            stat = client.stat()
            self.assertEqual((stat.free, stat.tensors), (stat.total, 0))

    def test_killed_at_any_moment(self):
        randomly = random.Random(1)
        end = time.monotonic() + SOAK_SECONDS / 2
        kills = 0
        with self.daemon.client() as client:
            kept = client.alloc("kept", (1, 64, 8, 8))
            client.write(kept.handle, b"\x07" * 4096)
            while time.monotonic() < end:
                processes = [
                    multiprocessing.Process(target=walk_until_killed, args=(self.daemon.path, 100 + kills + i, kills + i))
                    for i in range(3)
                ]
                for process in processes:
                    process.start()
                for process in processes:
                    time.sleep(randomly.random() * 0.1)
                    process.kill()
                    kills += 1
                for process in processes:
                    process.join()
                    self.assertEqual(process.exitcode, -signal.SIGKILL)
                wait_for(lambda: client.stat().sessions == 1)
                tensors = client.tensors()
                # Exactly the named ones live on, whole.
                self.assertEqual(client.stat().tensors, len(tensors))
                for tensor in tensors:
                    self.assertNotEqual(tensor.name, "")
                    if tensor.name != "kept":
                        client.call(free=pb.FreeRequest(tensors=[pb.Ref(handle=tensor.handle)]))
                self.assertEqual(client.read(kept.handle), b"\x07" * 4096)
        print(f"{kills} clients killed", flush=True)
        self.only_named_ones_are_left()


class Kernels(TestCase):
    """Long convolutions, by the daemon's own clock."""

    options = ("--npu-bytes", str(8 << 20), "--isa", "scalar")

    @staticmethod
    def preexec():
        os.environ["UV_THREADPOOL_SIZE"] = str(THREADS)

    def times(self, calls):
        """Sends each from a client of its own, all at once; returns their (start, end)."""
        clients = [self.client() for _ in calls]
        for client, call in zip(clients, calls):
            client.post(call)
        answers = [client.receive() for client in clients]
        for answer in answers:
            self.assertEqual(answer.status, pb.OK, answer)
        return [(a.done.start_ns, a.done.end_ns) for a in answers]

    def test_conflicting_kernels_never_overlap_and_independent_ones_do(self):
        convolution = Convolution(self.client(), LONG_KERNEL_S, "a")
        convolution.alloc("b")
        for _ in range(3):
            (start, end), (other_start, other_end) = self.times([convolution.call("a"), convolution.call("a")])
            self.assertTrue(end <= other_start or other_end <= start, "two kernels that write one tensor overlapped")

        overlaps = []
        for _ in range(3):
            (start, end), (other_start, other_end) = self.times([convolution.call("a"), convolution.call("b")])
            overlap = min(end, other_end) - max(start, other_start)
            overlaps.append(overlap / min(end - start, other_end - other_start))
        print("independent kernels overlap by " + ", ".join(f"{o:.0%}" for o in overlaps), flush=True)
        self.assertGreater(max(overlaps), 0.5, "two independent kernels did not overlap")

    def test_a_group_has_dma_and_kernel_at_once(self):
        client = self.client()
        convolution = Convolution(client, LONG_KERNEL_S)
        client.call(**long_alloc("other", 65536))
        request = submit(convolution.call(), *[fill("other", 1)] * 16, group=1)
        overlaps = []
        for _ in range(3):
            run, *dma = client.call(**request).submitted.done
            overlaps.append(min(run.end_ns, dma[-1].end_ns) - max(run.start_ns, dma[0].start_ns))
        # A busy machine may give the second of them no processor until the first is over.
        self.assertGreater(max(overlaps), 0, "one lane waited for all of the other")

    def test_the_thread_of_a_killed_client_is_free_at_once(self):
        client = self.client()
        convolution = Endless(client, None)
        calls = [convolution.call(f"out{i}") for i in range(THREADS)]
        for i in range(THREADS):
            convolution.alloc(f"out{i}")
        client.call(**long_alloc("other", 4096))
        # The best of some: a busy machine lets even those wait who have nobody before them.
        waited = min(self.wait_for_a_thread(client, calls, fill("other", 1)) for _ in range(3))
        print(f"a thread was free {waited:.1f} ms after its client was killed", flush=True)
        self.assertLess(waited, 500)
        # What was cancelled has written nothing.
        states = {tensor.name: tensor.state for tensor in client.tensors()}
        self.assertEqual([states[f"out{i}"] for i in range(THREADS)], ["unwritten"] * THREADS)

    def wait_for_a_thread(self, client, calls, request):
        """How many milliseconds after the clients that have all threads are killed `request` begins."""
        before = client.stat().sessions
        processes = [multiprocessing.Process(target=self.run_and_wait, args=(call,)) for call in calls]
        for process in processes:
            process.start()
        pids = {process.pid for process in processes}

        def all_run():
            usages = client.call(stat=pb.StatRequest(details=True)).stat.clients
            return {usage.pid for usage in usages if usage.in_flight} >= pids

        wait_for(all_run)
        with self.daemon.client() as other:
            other.post(request)
            # Long enough that it would have begun, had there been a thread.
            time.sleep(0.2)
            killed = time.monotonic_ns()
            for process in processes:
                self.assertTrue(process.is_alive())
                process.kill()
            done = other.receive()
        for process in processes:
            process.join()
        self.assertEqual(done.status, pb.OK, done)
        self.assertGreater(done.done.start_ns, killed, "a thread was free before")
        # What the killed ones ran is over, so that the next ones need not wait for it.
        wait_for(lambda: client.stat().sessions == before)
        return (done.done.start_ns - killed) / 1e6

    def run_and_wait(self, call):
        with Client(self.daemon.path) as client:
            client.post(call)
            signal.pause()


if __name__ == "__main__":

    unittest.main()
