"""What moves data: reads, writes, copies, submits, groups."""

from support import dims, frame, pb

from turns.bench import BULK_W, MIB, fill, ref, scenario


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
