"""Everything that a client can make the daemon hold is in its user's books: a row for each limit, with an attack that
grows the thing until it is refused, and for each place of the source that takes memory or a thread, whose it is. That the manual has each limit is unit_man's."""

import contextlib
import fcntl
import os
import pathlib
import re
import socket
import unittest

from support import HungUp, Sharer, TestCase, alloc, dims, fill, frame, pb, ref, run, submit, wait_for

# What is freed is to be free under the address sanitizer, too.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"

SOURCE = pathlib.Path(__file__).resolve().parents[2]
KIB, MIB = 1 << 10, 1 << 20
ALICE, BOB = 12001, 12002


def keys_of_source():
    return re.findall(r"^LIMIT\(\w+, (\w+)", (SOURCE / "daemon/service/limits.def").read_text(), re.MULTILINE)


def fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def reset_peak(pid):
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def peak(pid):
    """Of host memory, since the last reset."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) * KIB


def address_space(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def maps(pid):
    with open(f"/proc/{pid}/maps", encoding="ascii") as file:
        return sum("memfd:test" in line for line in file)


def nothing(_):
    return 0


def memfd(test, n):
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    test.addCleanup(os.close, fd)
    os.posix_fallocate(fd, 0, n)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return fd


# Attacks: each does one step more each time it is called, and returns the answer.


def connect(test, uid):
    def step():
        client = test.client(uid)
        with contextlib.suppress(ConnectionError):
            client.post({"info": pb.InfoRequest()})
        return client.receive()

    return step


def asks(**call):
    def attack(test, uid):
        client = test.client(uid)
        return lambda: client.ask(**call)

    return attack


def allocate_and_grant(test, uid):
    client, names = test.client(uid), iter(range(1 << 20))

    def step():
        n = next(names)
        # Names, as only what has one can be granted.
        spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 1, 1, 16))
        batch = [pb.Allocation(name=f"t{n}_{i}", spec=spec) for i in range(16)]
        answer = client.ask(alloc=pb.AllocRequest(tensors=batch))
        for tensor in batch if answer.status == pb.OK else ():
            answer = client.ask(grant=pb.GrantRequest(tensor=ref(tensor.name), uid=uid + 1, access=pb.ACCESS_READ))
        return answer

    return step


def look_at_parts(test, uid):
    client = test.client(uid)
    base = client.alloc("", (1, 1, 1, 16))
    return lambda: client.ask(view=pb.ViewRequest(tensor=ref(base), to=dims(1, 1, 1, 8)))


def flood(test, uid):
    """Many at once, of which some wait."""
    client = test.client(uid)
    client.alloc("flood", (1, 64, 1, 400000))
    client.call(**fill("flood", 1))  # its memory is the device's

    def step():
        answers = client.pipeline(*[fill("flood", 1)] * 64)
        return max(answers, key=lambda answer: answer.status != pb.OK)

    return step


def groups(test, uid):
    """Lists of 5 KB whose groups take 2 MiB each to run in, and as much to answer from."""
    fd, clients = memfd(test, MIB), [test.sharer(uid) for _ in range(20)]
    clients[0].alloc("x", (1, 64, 1, MIB // 64))
    clients[0].call(**fill("x", 1))
    requests = []
    for client in clients:
        reads = [{"read": pb.ReadRequest(tensor=ref("x"), segment=client.share(fd))}] * 256
        requests.append(frame(pb.Request(id=7, **submit(*reads, group=1))) * 15)

    unsent = [b""] * len(clients)

    def step():
        for i, client in enumerate(clients):
            unsent[i] = unsent[i] or requests[i]
            client.sock.settimeout(0.2)
            with contextlib.suppress(TimeoutError):  # it is paused, or other work is before its own
                while unsent[i]:
                    unsent[i] = unsent[i][client.sock.send(unsent[i]) :]
        for client in clients:
            with contextlib.suppress(TimeoutError):
                while (answer := client.receive()).status == pb.OK:
                    pass
                return answer
        return pb.Response()

    return step


def wait_for_room(test, uid):
    owner = test.daemon.client()
    test.addCleanup(owner.close)
    if not owner.names():
        owner.alloc("all", (1, 64, 1, 8 * MIB))

    def step():
        client = test.client(uid)
        client.post(alloc("", (1, 64, 1, 8 * MIB), wait_ms=60000))
        client.sock.settimeout(0.1)
        try:
            return client.receive()
        except TimeoutError:
            return pb.Response()

    return step


def follow(test, uid):
    return lambda: test.client(uid).ask(subscribe=pb.SubscribeRequest(kinds=["client-gone"]))


def share(n_bytes):
    def attack(test, uid):
        fd = memfd(test, n_bytes)
        return lambda: test.sharer(uid).ask_share(fd)

    return attack


def park(test, uid):
    fd = memfd(test, 4096)

    def step():
        client = test.client(uid)
        socket.send_fds(client.sock, [b"\x7f"], [fd] * 2)
        client.sock.settimeout(0.1)
        try:
            return client.receive()
        except TimeoutError:
            return pb.Response()

    return step


def gather(test, uid):
    """An operand that the kernel cannot use where it lies."""
    client, n = test.client(uid), 512
    for name in ("x", "out"):
        client.alloc(name, (n, n, 1, 1), pb.FX8, 4, layout=pb.COMPACT)
        client.call(**fill(name, 1))
    operands = {f"{role}{i}": "x" for role in ("in", "weights") for i in range(2)}
    return lambda: client.ask(**run(pb.RNN_DENSE, **operands, out="out"))


def keep_lists(test, uid):
    """Each of 100 fills, as many in a session as it may have."""
    fills = [pb.Operation(fill=pb.FillRequest(tensor=pb.Ref(handle=1), integer=1))] * 100
    client, ids = test.client(uid), iter(range(1, 1 << 20))
    return lambda: client.ask(keep=pb.KeepRequest(list=next(ids), operations=fills))


# For each limit: what it is set to, the attack, what grows, by how much at most, and how often another user does the
# same afterwards.
BOOKS = {
    "sessions": (20, connect, fds, 30, 1),
    "tensors": (50, asks(**alloc("")), peak, 4 * MIB, 1),
    "views": (50, look_at_parts, peak, 4 * MIB, 1),
    "device_bytes": (4 * MIB, asks(**alloc("", (1, 64, 1, 4096))), nothing, 0, 1),
    "host_bytes": (MIB, allocate_and_grant, peak, 2 * MIB, 1),
    "requests": (8, flood, peak, 8 * MIB, 0),
    "request_bytes": (64 * MIB, groups, peak, 96 * MIB, 0),
    "waiting": (5, wait_for_room, peak, 4 * MIB, 1),
    "followers": (3, follow, peak, 4 * MIB, 1),
    "segments": (8, share(4096), maps, 12, 1),
    "segment_bytes": (MIB, share(256 * KIB), maps, 8, 1),
    "descriptors": (4, park, fds, 64, 1),
    "scratch_bytes": (64 * KIB, gather, peak, 16 * MIB, 0),
    "list_bytes": (512 * KIB, keep_lists, peak, 4 * MIB, 1),
}


class Books(TestCase):
    STEPS_MAX = 100

    def setUp(self):
        """Each row has a daemon of its own."""

    def begin(self, key):
        limit, attack, self.measure, _, _ = BOOKS[key]
        self.options = ("--npu-bytes", str(8 * MIB), "--limit", f"{key}={limit}")
        super().setUp()
        self.pid = self.daemon.process.pid
        self.root = self.client()
        self.root.stat()
        self.growth = 0
        return attack

    def sharer(self, uid):
        return self.stack.enter_context(Sharer(sock=self.client(uid).sock))

    def held(self, probe, key):
        limits = probe.call(info=pb.InfoRequest(details=True)).info.limits
        return next(limit.now for limit in limits if limit.key == key)

    def grow(self, step, most):
        for _ in range(self.STEPS_MAX):
            answer = step()
            self.growth = max(self.growth, self.measure(self.pid) - self.before)
            self.assertLessEqual(self.growth, most)
            if answer.status != pb.OK:
                return answer
        self.fail("it is never refused")

    def attack(self, key):
        limit, _, _, most, n_others = BOOKS[key]
        step = self.begin(key)(self, ALICE)
        reset_peak(self.pid)
        self.before = self.measure(self.pid)
        refused = self.grow(step, most)
        self.assertEqual(refused.status, pb.RESOURCE_EXHAUSTED, refused.message)
        self.assertIn(key, refused.message)
        # Another user has what it may.
        other = BOOKS[key][1](self, BOB)
        for _ in range(n_others):
            self.assertEqual(other().status, pb.OK)

    def test_each_limit_holds(self):
        for key in BOOKS:
            with self.subTest(key):
                self.attack(key)
                # All charges end with what they are for.
                self.stack.pop_all().close()

    def test_all_is_given_back(self):
        for key in BOOKS:
            with self.subTest(key):
                attack = self.begin(key)
                probe = self.client(ALICE)
                at_first = self.held(probe, key)
                with contextlib.ExitStack() as clients:
                    daemon, self.stack = self.stack, clients
                    with contextlib.suppress(HungUp, ConnectionError):
                        attack(self, ALICE)()
                    self.stack = daemon
                for tensor in probe.tensors():
                    if tensor.uid == ALICE:  # one without a name may go with its session meanwhile
                        probe.ask(free=pb.FreeRequest(tensors=[ref(tensor)]))
                wait_for(lambda: self.held(probe, key) == at_first)  # pylint: disable=cell-var-from-loop
                self.stack.pop_all().close()


class Fixed(TestCase):
    """What is in nobody's books has a bound that does not depend on the size of an NPU."""

    options = ("--npus", "4", "--npu-bytes", str(1024 * MIB))

    def test_counts_of_tensors_over_one_another(self):
        client, pid = self.client(), self.daemon.process.pid

        def one(npu):
            # The address is the same on each NPU.
            spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 1, 1, 512 * MIB), start_npu=npu, address=1024 * npu * MIB)
            tensor = pb.Allocation(spec=spec, dma_only=True, reuse=pb.IF_SAFE)
            client.call(alloc=pb.AllocRequest(tensors=[tensor]))

        one(0)
        before = address_space(pid)
        one(1)
        self.assertLess(address_space(pid) - before, 8 * MIB)


# Whose the memory, the mappings and the threads are that a file of the daemon takes: a limit's key; "admin": only root
# and the daemon's own uid can have it taken; "option": --pack-bytes; "fixed": a bound that no client can move.
HELD = {
    "daemon/device/arena/arena.c": "host_bytes",
    "daemon/device/arena/block_bitmap.c": "fixed",
    "daemon/device/arena/odd_blocks.c": "fixed",
    "daemon/device/life.c": "fixed",
    "daemon/device/memory/chunks.c": "host_bytes",
    "daemon/device/memory/heap.c": "fixed",
    "daemon/device/memory/heap.h": "fixed",
    "daemon/device/operations/lockstep.c": "host_bytes",  # at most the output's meetings, while an operation runs
    "daemon/device/operations/op_kernel.c": "scratch_bytes",
    "daemon/device/operations/packs.c": "option",
    "daemon/device/placement/alloc.c": "request_bytes",
    "daemon/device/reuse/overlap.c": "host_bytes",
    "daemon/device/reuse/overlap_count.c": "fixed",
    "daemon/device/reuse/reuse_search.c": "request_bytes",
    "daemon/device/tensors/meetings.c": "host_bytes",
    "daemon/device/tensors/totals.c": "fixed",
    "daemon/rpc/calls/charge.c": "request_bytes",
    "daemon/rpc/calls/life.c": "request_bytes",
    "daemon/rpc/calls/recording.c": "admin",
    "daemon/rpc/handlers/handle_compact.c": "requests",
    "daemon/rpc/handlers/operations/handle_operations.c": "request_bytes",
    "daemon/rpc/handlers/handle_stat.c": "requests",
    "daemon/rpc/handlers/operations/lists.c": "list_bytes",
    "daemon/rpc/handlers/operations/operate.c": "request_bytes",
    "daemon/rpc/handlers/record_tensors.c": "admin",
    "daemon/rpc/handlers/tensor_page.c": "request_bytes",
    "daemon/rpc/order/claim.c": "request_bytes",
    "daemon/rpc/reply.c": "request_bytes",
    "daemon/rpc/resume/detached.c": "sessions",
    "daemon/server/connections/connections.c": "sessions",
    "daemon/server/connections/input.c": "request_bytes",
    "daemon/server/connections/outbox.c": "request_bytes",
    "daemon/server/loop/closer.c": "descriptors",
    "daemon/server/loop/closer_threads.c": "descriptors",
    "daemon/server/loop/share.c": "fixed",
    "daemon/server/loop/workers.c": "requests",
    "daemon/server/process/accounts.c": "fixed",
    "daemon/server/process/blocks.c": "fixed",
    "daemon/server/process/disk.c": "fixed",
    "daemon/server/process/log.c": "fixed",
    "daemon/server/process/mappings.c": "segment_bytes",
    "daemon/server/process/memory.c": "segment_bytes",
    "daemon/server/process/state.c": "fixed",
    "daemon/service/checksum.c": "admin",
    "daemon/service/kept/ids.c": "request_bytes",
    "daemon/service/kept/notes.c": "requests",
    "daemon/service/kept/persist.c": "sessions",
    "daemon/service/kept/recover.c": "fixed",
    "daemon/service/kept/recover_tensors.c": "host_bytes",
    "daemon/service/kept/results.c": "request_bytes",
    "daemon/service/limits.c": "sessions",
    "daemon/service/observed/events.c": "followers",
    "daemon/service/observed/recorder.c": "admin",
    "daemon/service/segments.c": "segments",
    "daemon/service/session.c": "sessions",
    "daemon/service/tensors/change.c": "host_bytes",
    "daemon/store/describe.c": "fixed",
    "daemon/store/files/aside.c": "fixed",
    "daemon/store/files/calls.c": "fixed",
    "daemon/store/image/image.c": "admin",
    "daemon/store/image/manifest.c": "fixed",
    "daemon/store/log/log.c": "fixed",
    "daemon/store/log/replay.c": "fixed",
    "daemon/store/open.c": "fixed",
    "daemon/store/under_way.c": "fixed",
}
TAKES = re.compile(r"heap_z?alloc\(|(?<!\w)(?:mmap|malloc|calloc)\(|uv_thread_create|\w+_append_fd\(")


class Lists(unittest.TestCase):
    def test_every_limit_has_an_attack(self):
        self.assertEqual(sorted(BOOKS), sorted(keys_of_source()))

    def test_every_place_that_takes_something_has_a_book(self):
        files = [path for kind in ("*.c", "*.h") for path in (SOURCE / "daemon").rglob(kind)]
        taking = {str(path.relative_to(SOURCE)) for path in files if TAKES.search(path.read_text())}
        self.assertEqual(taking, set(HELD))
        self.assertLessEqual(set(HELD.values()), {*keys_of_source(), "admin", "option", "fixed"})


if __name__ == "__main__":
    unittest.main()
