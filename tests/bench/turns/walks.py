"""Requests that concern very many tensors, views or requests."""

from support import dims, pb

from turns.bench import LARGE, MIB, alloc_of, compact, fill, ref, scenario
from turns.closing import as_other


MANY = ("--npus", "1", "--npu-bytes", str(256 * MIB), "--limit", "host_bytes=2G")


@scenario("900,000 tensors come, with a state", MANY, sized=True, state=True)
def growth(bench):
    yield
    bench.small(900_000, "", shape=dims(1, 1, 1, 16))


@scenario("dump of 1 MiB in 131,072 tensors, as another uid", ("--npus", "2", "--npu-bytes", str(8 * MIB)), sized=True)
def dump_many(bench):
    client = as_other(bench)
    bench.small(131_072, "", client, shape=dims(1, 1, 1, 8))
    yield
    assert len(client.call(dump=pb.DumpRequest(npu=0, offset=0, bytes=MIB)).dump.data) == MIB


@scenario("compact of a tensor with 65,536 views", LARGE)
def compact_views(bench):
    low = bench.one.alloc("low", shape=(1, 64, 1, 1024), layout=pb.COMPACT).handle
    (base,) = bench.small(1)
    view = pb.ViewRequest(tensor=ref(base), to=pb.Dims(n=1, c=64, h=1, w=1))
    bench.many({"view": view} for _ in range(65_536))
    bench.one.call(free=pb.FreeRequest(tensors=[ref(low)]))
    yield
    assert bench.one.call(compact=pb.CompactRequest()).compacted.moves


@scenario("dry-run compactions and frees of hosts by turns, with 16,384 guests", LARGE, sized=True)
def compact_guests(bench):
    n = 16_384
    bench.many(
        alloc_of([pb.Allocation(name=f"host{i}", dma_only=True, spec=compact((1, 65, 1, 8))) for i in range(n)])
    )
    specs = [compact((1, 63, 1, 8), 1) for _ in range(n)]
    for i, spec in enumerate(specs):
        spec.address = bench.npu_bytes + 16 * i + 8
    bench.many(alloc_of([pb.Allocation(dma_only=True, reuse=pb.IF_SAFE, spec=spec) for spec in specs], 1))
    yield
    for i in range(8):
        bench.one.call(free=pb.FreeRequest(tensors=[pb.Ref(name=f"host{i}")]))
        bench.one.call(compact=pb.CompactRequest(dry_run=True))


@scenario("a group of two inline reads of 7 MiB", LARGE)
def group_of_reads(bench):
    handle = bench.bulk("long", 7 * MIB // 64)
    bench.fill([handle])
    yield
    operations = [pb.Operation(group=1, read=pb.ReadRequest(tensor=ref(handle))) for _ in range(2)]
    for _ in range(8):
        assert len(bench.one.call(submit=pb.SubmitRequest(operations=operations)).submitted.done) == 2


@scenario("a client leaves with 400 submits of 256 operations that are held", LARGE)
def leave_with_held(bench):
    client = as_other(bench)
    handles = bench.small(256, "", client)
    long = client.alloc("long", shape=(1, 64, 1, MIB), layout=pb.COMPACT).handle
    slow = pb.SubmitRequest(operations=[pb.Operation(fill=fill(long))] * 60)
    held = pb.SubmitRequest(operations=[pb.Operation(fill=fill(handle)) for handle in handles])
    client.send(submit=slow)
    client.send(stat=pb.StatRequest())
    for _ in range(400):
        client.send(submit=held)
    bench.watch_leaving()
    yield
    client.close()
    bench.one.receive()
