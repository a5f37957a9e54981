"""Snapshots of a large device that goes on, and records that begin with one."""

from support import pb

from turns.bench import GIB, MIB, fill, scenario

N_TENSORS = 10_000


def populate(bench):
    """10,000 tensors, and nearly all of 1 GiB written."""
    handles = bench.small(N_TENSORS)
    bulk = [bench.one.alloc(f"bulk{i}", shape=(1, 64, 1, 3 * MIB), layout=pb.COMPACT).handle for i in range(5)]
    bench.fill(bulk)
    return handles, bulk


def pull(bench, handles, bulk, record):
    """All of its pieces, while somebody else writes, copies and frees what is not told yet."""
    other = bench.client()
    number = bench.one.call(snapshot=pb.SnapshotRequest(record=record)).snapshot.snapshot
    last, n = False, 0
    while not last:
        last = bench.one.call(snapshot=pb.SnapshotRequest(snapshot=number)).snapshot.last
        n += 1
        bench.many([{"fill": fill(handles[i % N_TENSORS], n % 100)} for i in range(8 * n, 8 * n + 8)], other)
        if n % 64 == 0:
            bench.many([{"write": pb.WriteRequest(tensor=pb.Ref(handle=bulk[n // 64 % 5]), data=bytes(MIB))}], other)
        if record:
            bench.one.call(record=pb.RecordRequest(action=pb.RECORD_TAKE))
    assert n > 900


@scenario("snapshot of 10,000 tensors and 1 GiB, others write", GIB, state=True, sized=True)
def snapshot(bench):
    made = populate(bench)
    yield
    pull(bench, *made, False)


@scenario("record with a snapshot of 10,000 tensors and 1 GiB, others write", GIB, state=True, sized=True)
def record(bench):
    made = populate(bench)
    yield
    pull(bench, *made, True)
