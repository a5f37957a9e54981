"""How long heavy requests keep the daemon's loop: bench_loop [--rounds N] [part of a scenario's name ...].

Every scenario has a daemon of its own, and is run a few times, each on a device made anew. Told of the best round,
as another load on the machine only adds: the longest turn of the loop by the clock, the most processor time of one
turn, and the latency of a second process that asks `info` all the while, 99.9 % and the worst. What prepares a
round and what takes the figures is not in them.
"""

import array
import contextlib
import fcntl
import gc
import os
import resource
import signal
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from support import Client, Daemon, HungUp, dims, frame, pb  # noqa: E402

MIB = 1 << 20
SMALL = ()  # 64 NPUs of 512 KiB
LARGE = ("--npus", "64", "--npu-bytes", str(8 * MIB))
BULK_W = 496 * 1024  # with 64 channels: 31 MiB, 496 KiB per NPU
IN_FLIGHT = 12

scenarios = []


def scenario(name, options=SMALL):
    """Of function(bench), a generator: what is before its yield prepares, what is behind it is measured."""

    def add(function):
        scenarios.append((name, options, function))
        return function

    return add


# ---- a second client ----


def ping(path, out):
    """Latencies in ns to the file `out`, until the parent says so by SIGTERM."""
    times = array.array("Q")
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    gc.disable()
    request = frame(pb.Request(id=1, info=pb.InfoRequest()))
    with contextlib.suppress(KeyboardInterrupt), Client(path) as client:
        client.sock.settimeout(120)
        while True:
            before = time.perf_counter_ns()
            client.sock.sendall(request)
            client.receive()
            times.append(time.perf_counter_ns() - before)
            time.sleep(0.0002)
    with open(out, "wb") as file:
        times.tofile(file)


class Pinger:
    def __init__(self, daemon):
        self.out = os.path.join(daemon.directory, "times")
        self.child = os.fork()
        if self.child == 0:
            with contextlib.suppress(BaseException):
                # The parent's connections are to end when the parent closes them.
                os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
                ping(daemon.path, self.out)
            os._exit(0)
        time.sleep(0.05)

    def end(self):
        time.sleep(0.02)
        os.kill(self.child, signal.SIGTERM)
        os.waitpid(self.child, 0)
        times = array.array("Q")
        with open(self.out, "rb") as file:
            times.frombytes(file.read())
        return sorted(times)


# ---- what scenarios do ----


class Bench:
    def __init__(self, daemon):
        self.daemon = daemon
        self.stack = contextlib.ExitStack()
        self.one = self.client()
        self.watcher = self.client()

    def client(self):
        client = self.stack.enter_context(self.daemon.client())
        client.sock.settimeout(120)
        return client

    def many(self, calls, client=None, status=pb.OK):
        """Pipelined; all must have that status."""
        client = client or self.one
        ids, got, sent = iter(calls), {}, 0
        for call in ids:
            client.send(**call)
            sent += 1
            if sent - len(got) >= IN_FLIGHT:
                self._take(client, got, status)
        while len(got) < sent:
            self._take(client, got, status)
        return [got[i] for i in sorted(got)]

    def _take(self, client, got, status):
        response = client.receive()
        assert response.status == status, response
        got[response.id] = response

    def small(self, n, name="t", client=None, **members):
        """n tensors of 4 bytes on each NPU, named unless `name` is empty."""
        members = {"layout": pb.COMPACT, "shape": dims(1, 64, 1, 4), **members}
        spec = pb.Spec(dtype=pb.INT8, **members)
        requests = [
            pb.AllocRequest(
                tensors=[
                    pb.Allocation(name=f"{name}{i}" if name else "", spec=spec)
                    for i in range(first, min(n, first + 256))
                ]
            )
            for first in range(0, n, 256)
        ]
        answers = self.many(({"alloc": request} for request in requests), client)
        return [tensor.handle for answer in answers for tensor in answer.allocated.tensors]

    def fill(self, handles, client=None):
        self.many(({"fill": fill(handle)} for handle in handles), client)

    def bulk(self, name="bulk", w=BULK_W, h=1, c=64):
        return self.one.alloc(name, shape=(1, c, h, w), layout=pb.COMPACT).handle

    def bulk_but_one(self):
        """31 MiB of which all but the last byte were written."""
        handle, bytes_ = self.bulk(), 64 * BULK_W
        for first in range(0, bytes_ - 1, 15 * MIB):
            self.one.write(handle, bytes(min(15 * MIB, bytes_ - 1 - first)), first)
        return handle

    def watch_leaving(self):
        self.one.call(subscribe=pb.SubscribeRequest(kinds=["client-gone"]))

    def refused(self, **call):
        answer = self.one.ask(**call)
        assert answer.status != pb.OK, answer
        return answer


def ref(handle):
    return pb.Ref(handle=handle)


def fill(handle, integer=1):
    return pb.FillRequest(tensor=ref(handle), integer=integer)


def list_all(client):
    """However many answers it takes."""
    after = n = 0
    while True:
        answer = client.call(list=pb.ListRequest(after=after) if after else pb.ListRequest()).list
        n += len(answer.tensors)
        after = getattr(answer, "next", 0)
        if not after:
            return n


# ---- scenarios ----


@scenario("nothing but info")
def nothing(bench):
    yield
    bench.many({"info": pb.InfoRequest()} for _ in range(2000))


@scenario("list of 8,192 tensors", LARGE)
def list_8192(bench):
    bench.small(8192)
    yield
    assert list_all(bench.one) == 8192


@scenario("list of 100,000 tensors", LARGE)
def list_100000(bench):
    bench.small(100_000)
    yield
    assert list_all(bench.one) == 100_000


@scenario("free of a written tensor of 31 MiB")
def free_bulk(bench):
    handle = bench.bulk()
    bench.fill([handle])
    yield
    bench.one.call(free=pb.FreeRequest(tensors=[ref(handle)]))


@scenario("free of 8,192 tensors, 256 in one request", LARGE)
def free_many(bench):
    handles = bench.small(8192)
    bench.fill(handles)
    yield
    bench.many(
        {"free": pb.FreeRequest(tensors=[ref(handle) for handle in handles[first : first + 256]])}
        for first in range(0, 8192, 256)
    )


@scenario("a client with 8,192 written tensors disconnects", LARGE)
def disconnect(bench):
    client = bench.client()
    bench.fill(bench.small(8192, "", client), client)
    bench.watch_leaving()
    yield
    client.close()
    bench.one.receive()


@scenario("a client with 8,192 written tensors is killed", LARGE)
def killed(bench):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            client = Client(bench.daemon.path)
            client.sock.settimeout(120)
            bench.fill(bench.small(8192, "", client), client)
            os.write(writer, b"x")
            signal.pause()
        os._exit(1)
    os.close(writer)
    assert os.read(reader, 1) == b"x"
    os.close(reader)
    bench.watch_leaving()
    yield
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    bench.one.receive()


@scenario("compact of one tensor of 31 MiB")
def compact_one(bench):
    low = bench.one.alloc("low", shape=(1, 64, 1, 1024), layout=pb.COMPACT).handle
    bench.fill([bench.bulk()])
    bench.one.call(free=pb.FreeRequest(tensors=[ref(low)]))
    yield
    assert bench.one.call(compact=pb.CompactRequest()).compacted.moves


@scenario("compact of 31 MiB in 4,096 tensors")
def compact_many(bench):
    low = bench.one.alloc("low", shape=(1, 64, 1, 1024), layout=pb.COMPACT).handle
    bench.fill(bench.small(4096, shape=dims(1, 64, 1, 124)))
    bench.one.call(free=pb.FreeRequest(tensors=[ref(low)]))
    yield
    assert bench.one.call(compact=pb.CompactRequest()).compacted.moves


def guests(bench, n):
    """n tensors in the empty blocks of n others, on a device that is full."""
    hosts = [
        pb.Allocation(name=f"host{i}", dma_only=True, spec=compact((1, 65, 1, 32)))
        for i in range(n)
    ]
    held = [
        pb.Allocation(name=f"guest{i}", dma_only=True, reuse=pb.IF_SAFE, spec=compact((1, 63, 1, 32), 1))
        for i in range(n)
    ]
    bench.many(alloc_of(hosts))
    free = bench.one.stat().largest_free
    bench.one.alloc("rest", shape=(1, 64, 1, free), layout=pb.COMPACT)
    bench.many(alloc_of(held, 1))


def compact(shape, start_npu=0):
    return pb.Spec(dtype=pb.INT8, layout=pb.COMPACT, shape=dims(*shape), start_npu=start_npu)


def alloc_of(allocations, at_once=256):
    for first in range(0, len(allocations), at_once):
        yield {"alloc": pb.AllocRequest(tensors=allocations[first : first + at_once])}


@scenario("4,096 if-safe guests are allocated")
def allocate_guests(bench):
    yield
    guests(bench, 4096)


@scenario("stat with 4,096 if-safe guests")
def stat_guests(bench):
    guests(bench, 4096)
    yield
    for details in (False, True):
        assert bench.one.call(stat=pb.StatRequest(details=details)).stat.lent


@scenario("stat and free by turns with 4,096 if-safe guests")
def stat_free_guests(bench):
    guests(bench, 4096)
    yield
    for i in range(0, 4096, 512):
        bench.one.call(free=pb.FreeRequest(tensors=[pb.Ref(name=f"guest{i}")]))
        bench.one.call(stat=pb.StatRequest(details=True))


@scenario("16 refused allocations on a full device of 8,192 tensors")
def refused_full(bench):
    handles = bench.small(8192, shape=dims(1, 64, 1, 64))
    bench.many({"free": pb.FreeRequest(tensors=[ref(handle)])} for handle in handles[::2])
    yield
    for reuse in (pb.NEVER, pb.IF_SAFE):
        for w in (128, 4096, 65536, 400_000):
            for c in (64, 65):
                spec = pb.Spec(dtype=pb.INT8, shape=dims(1, c, 1, w))
                allocation = pb.Allocation(name="more", spec=spec, reuse=reuse, dma_only=True)
                bench.refused(alloc=pb.AllocRequest(tensors=[allocation]))


@scenario("a refused read of a tensor of 31 MiB but one byte")
def refused_read(bench):
    handle = bench.bulk_but_one()
    yield
    bench.refused(read=pb.ReadRequest(tensor=ref(handle), first=64 * BULK_W - 15 * MIB, count=15 * MIB))


@scenario("a partial read of a tensor of 31 MiB but one byte")
def partial_read(bench):
    handle = bench.bulk_but_one()
    yield
    bench.one.call(read=pb.ReadRequest(tensor=ref(handle), first=0, count=1))


@scenario("a refused copy of a tensor of 31 MiB but one byte", ("--npu-bytes", str(MIB)))
def refused_copy(bench):
    handle, to = bench.bulk_but_one(), bench.bulk("to")
    yield
    bench.refused(copy=pb.CopyRequest(destination=ref(to), source=ref(handle)))


@scenario("a refused copy of a strided tensor, a run per element", ("--npu-bytes", str(MIB)))
def refused_strided(bench):
    spec = pb.Spec(
        dtype=pb.INT8, layout=pb.STRIDED, shape=dims(1, 64, 1, BULK_W // 2), stride=dims(BULK_W, BULK_W, BULK_W, 2)
    )
    request = pb.AllocRequest(tensors=[pb.Allocation(name=name, spec=spec) for name in ("from", "to")])
    source, to = (tensor.handle for tensor in bench.one.call(alloc=request).allocated.tensors)
    bench.one.write(source, bytes(15 * MIB))
    yield
    bench.refused(copy=pb.CopyRequest(destination=ref(to), source=ref(source)))


@scenario("seal of a tensor of 31 MiB")
def seal(bench):
    handle = bench.bulk()
    bench.fill([handle])
    yield
    bench.one.call(seal=pb.SealRequest(tensor=ref(handle)))


@scenario("a refused seal of a tensor of 31 MiB but one byte")
def refused_seal(bench):
    handle = bench.bulk_but_one()
    yield
    bench.refused(seal=pb.SealRequest(tensor=ref(handle)))


@scenario("open and list of a tensor of 31 MiB but one byte")
def show(bench):
    handle = bench.bulk_but_one()
    yield
    assert bench.one.call(open=pb.OpenRequest(tensor=ref(handle)))
    assert list_all(bench.one) == 1


@scenario("submit of 1,024 fills of 1,024 tensors")
def submit_many(bench):
    handles = bench.small(1024)
    yield
    operations = [pb.Operation(fill=fill(handle)) for handle in handles]
    assert len(bench.one.call(submit=pb.SubmitRequest(operations=operations)).submitted.done) == 1024


@scenario("submit of 1,024 fills of one tensor")
def submit_one(bench):
    (handle,) = bench.small(1)
    yield
    operations = [pb.Operation(fill=fill(handle)) for _ in range(1024)]
    assert len(bench.one.call(submit=pb.SubmitRequest(operations=operations)).submitted.done) == 1024


@scenario("requests of nothing but fields, 15 MiB each")
def fields(bench):
    operations = frame(b"\x0a\0" * (15 * MIB // 2))  # with its length, as a member of a message has it
    numbers = frame(b"\x1a" + frame(b"\x12" + frame(b"\2" * (15 * MIB))))
    yield
    for request in (b"\x08\5" * (15 * MIB // 2), b"\x92\1" + operations, b"\x8a\1" + numbers):
        bench.one.sock.sendall(frame(request))
        assert bench.one.receive().status == pb.RESOURCE_EXHAUSTED


def group_on_tiles(bench, axis, n=256):
    """Half of the tiles of a tensor of 31 MiB are filled, the other half is what kernels read, all in one group."""
    extent = {"n": 1, "c": 64, "h": 512, "w": 992}
    base = bench.one.alloc("base", shape=tuple(extent.values()), layout=pb.COMPACT, dtype=pb.FX8, frac_bits=4).handle
    bench.fill([base])
    operations = []
    for i in range(n):
        low, high = dict.fromkeys(extent, 0), dict(extent)
        low[axis], high[axis] = i * extent[axis] // n, (i + 1) * extent[axis] // n
        view = pb.ViewRequest(tensor=ref(base), to=pb.Dims(**high))
        getattr(view, "from").CopyFrom(pb.Dims(**low))
        tile = bench.one.call(view=view).tensor.handle
        if i % 2:
            operations.append(pb.Operation(group=1, fill=fill(tile)))
            continue
        shape = tuple(high[key] - low[key] for key in extent)
        out = bench.one.alloc(shape=shape, layout=pb.COMPACT, dtype=pb.FX8, frac_bits=4).handle
        run = pb.RunRequest(kernel=pb.RELU)
        run.operands.add(role="in", tensor=ref(tile))
        run.operands.add(role="out", tensor=ref(out))
        run.params.add(key=pb.PARAM_RELU, values=[1])
        operations.append(pb.Operation(group=1, run=run))
    return pb.SubmitRequest(operations=operations)


def group(axis):
    @scenario(f"a group of 256 operations on tiles in {axis} of 31 MiB", ("--npu-bytes", str(MIB)))
    def group_of(bench):
        request = group_on_tiles(bench, axis)
        yield
        answer = bench.one.call(submit=request).submitted
        assert len(answer.done) == 256


group("h")
group("w")


@scenario("dump of 31 MiB, an NPU after the other")
def dump(bench):
    bench.fill([bench.bulk()])
    yield
    bench.many({"dump": pb.DumpRequest(npu=npu, offset=0, bytes=BULK_W)} for npu in range(64))


@scenario("an inline write of 16 MiB")
def inline_write(bench):
    handle, data = bench.bulk(), bytes(16 * MIB - 64)
    yield
    bench.one.write(handle, data)


@scenario("an inline read of 16 MiB")
def inline_read(bench):
    handle = bench.bulk()
    bench.fill([handle])
    yield
    assert len(bench.one.read(handle, 0, 16 * MIB - 1024)) == 16 * MIB - 1024


@scenario("16 subscribers are told of 256 tensors")
def subscribers(bench):
    followers = [bench.client() for _ in range(16)]
    for follower in followers:
        follower.call(subscribe=pb.SubscribeRequest(kinds=["allocated", "freed"]))
    yield
    handles = bench.small(256)
    bench.one.call(free=pb.FreeRequest(tensors=[ref(handle) for handle in handles]))
    for follower in followers:
        told = 0
        while told < 512:  # some of them as lost
            told += 1 + follower.receive().event.lost


@scenario("1,000 clients connect and leave")
def crowd(bench):
    yield
    clients = [bench.client() for _ in range(1000)]
    for client in clients:
        client.send(info=pb.InfoRequest())
    for client in clients:
        client.receive()
        client.close()


@scenario("snapshot of what 256 clients asked, by stat")
def stat_many(bench):
    clients = [bench.client() for _ in range(256)]
    for client in clients:
        bench.small(16, "", client)
    yield
    bench.many({"stat": pb.StatRequest(details=True)} for _ in range(16))


# ---- figures ----


def run_round(options, function):
    with Daemon(*options) as daemon:
        bench = Bench(daemon)
        with bench.stack:
            steps = function(bench)
            next(steps)
            # Its own turn is not counted, however long it has to look at the device.
            bench.watcher.call(stat=pb.StatRequest(reset=True))
            pinger = Pinger(daemon)
            next(steps, None)
            times = pinger.end()
            loop = bench.watcher.call(stat=pb.StatRequest(details=True)).stat.loop
            return loop.longest_ns, loop.longest_cpu_ns, times


def run(name, options, function, rounds):
    results = [run_round(options, function) for _ in range(rounds)]
    longest = min(result[0] for result in results)
    cpu = min(result[1] for result in results)
    times = min((result[2] for result in results), key=lambda times: times[-1])
    most = times[min(len(times) - 1, len(times) * 999 // 1000)]
    print(
        f"{name:58} {longest / 1e6:9.3f} {cpu / 1e6:9.3f} {most / 1e6:9.3f} {times[-1] / 1e6:9.3f} {len(times):7}",
        flush=True,
    )


def main():
    words = sys.argv[1:]
    rounds = 3
    if words[:1] == ["--rounds"]:
        rounds, words = int(words[1]), words[2:]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print(f"{'milliseconds':58} {'turn':>9} {'of cpu':>9} {'99.9 %':>9} {'worst':>9} {'pings':>7}")
    for name, options, function in scenarios:
        if words and not any(word in name for word in words):
            continue
        try:
            run(name, options, function, rounds)
        except (AssertionError, HungUp, OSError) as problem:
            print(f"{name:58} failed: {str(problem)[:200]!r}", flush=True)


main()
