"""Where tensors lie: compaction, allocations over others, searches for a place and refusals."""

from support import dims, pb

from turns.bench import LARGE, MIB, alloc_of, compact, ref, scenario


def take_rest(bench):
    """What is left in one piece, for DMA alone."""
    rest = bench.one.stat().largest_free
    if rest:
        spec = compact((1, bench.n_npus, 1, rest))
        bench.one.call(alloc=pb.AllocRequest(tensors=[pb.Allocation(spec=spec, dma_only=True)]))


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


@scenario("4,096 if-safe guests are allocated", sized=True)
def allocate_guests(bench):
    yield
    guests(bench, 4096)


@scenario("stat with 4,096 if-safe guests", sized=True)
def stat_guests(bench):
    guests(bench, 4096)
    yield
    for details in (False, True):
        assert bench.one.call(stat=pb.StatRequest(details=details)).stat.lent


@scenario("stat and free by turns with 4,096 if-safe guests", sized=True)
def stat_free_guests(bench):
    guests(bench, 4096)
    yield
    for i in range(0, 4096, 512):
        bench.one.call(free=pb.FreeRequest(tensors=[pb.Ref(name=f"guest{i}")]))
        bench.one.call(stat=pb.StatRequest(details=True))


@scenario("16 refused allocations on a full device of 8,192 tensors")
def refused_full(bench):
    each = bench.one.stat().largest_free // 8192 // 4 * 4
    handles = bench.small(8192, shape=dims(1, 64, 1, each))
    take_rest(bench)
    bench.many({"free": pb.FreeRequest(tensors=[ref(handle)])} for handle in handles[::2])
    yield
    for reuse in (pb.NEVER, pb.IF_SAFE):
        for share in (4096, 128, 8, 1.25):
            for c in (64, 65):
                w = int(bench.npu_bytes / share)
                spec = pb.Spec(dtype=pb.INT8, shape=dims(1, c, 1, w))
                allocation = pb.Allocation(name="more", spec=spec, reuse=reuse, dma_only=True)
                bench.refused(alloc=pb.AllocRequest(tensors=[allocation]))


# ---- searches and verdicts ----

HUGE = ("--npus", "4", "--npu-bytes", str(64 * MIB), "--allow-unchecked-reuse")
VAST = ("--npus", "2", "--npu-bytes", str(1024 * MIB), "--allow-unchecked-reuse")


def strided(w, step, address=None):
    """w bytes of one channel, `step` apart."""
    spec = pb.Spec(dtype=pb.UINT8, layout=pb.STRIDED, shape=dims(1, 1, 1, w), stride=dims(1, 1, 1, step))
    if address is not None:
        spec.address = address
    return spec


def try_alloc(bench, spec, reuse, status):
    request = pb.AllocRequest(tensors=[pb.Allocation(spec=spec, reuse=reuse, dma_only=True)])
    answer = bench.one.ask(alloc=request)
    assert answer.status == status, answer


def full_of(bench, *specs):
    """These, and one in all that is left."""
    for spec in specs:
        try_alloc(bench, spec, pb.NEVER, pb.OK)
    take_rest(bench)


def searches(name, options):
    """What takes longest may take a minute."""

    @scenario(f"if-safe: no place over blocks, {name}", options, sized=True)
    def over_blocks(bench):
        full_of(bench, *(compact((1, 1, 1, bench.npu_bytes // 1024)) for _ in range(1000)))
        yield
        # A place for so large a compact tensor is not searched for.
        try_alloc(bench, compact((5, 1, 1, bench.npu_bytes // 16), 1), pb.IF_SAFE, pb.RESOURCE_EXHAUSTED)
        try_alloc(bench, compact((1, 1, 1, min(bench.npu_bytes // 16, MIB)), 1), pb.IF_SAFE, pb.OK)
        try_alloc(bench, strided(bench.npu_bytes // 3 - 8, 3), pb.IF_SAFE, pb.RESOURCE_EXHAUSTED)

    @scenario(f"if-safe: no place over every other byte, {name}", options, sized=True)
    def over_bytes(bench):
        full_of(bench, strided(bench.npu_bytes // 2, 2))
        yield
        try_alloc(bench, strided(bench.npu_bytes // 3 - 8, 3), pb.IF_SAFE, pb.RESOURCE_EXHAUSTED)

    @scenario(f"unchecked: a place among every 194th byte, {name}", options, sized=True)
    def among_bytes(bench):
        full_of(bench, strided(bench.npu_bytes // 194, 194))
        yield
        try_alloc(bench, strided(bench.npu_bytes // 202 - 8, 202), pb.UNCHECKED, pb.RESOURCE_EXHAUSTED)
        try_alloc(bench, strided(min(bench.npu_bytes, 4 * MIB) // 202 - 8, 202), pb.UNCHECKED, pb.OK)

    @scenario(f"a verdict: bytes 2 apart on all bytes, {name}", options, sized=True)
    def verdict_dense(bench):
        full_of(bench)
        yield
        spec = strided(bench.npu_bytes // 2 - 8, 2, address=1)
        try_alloc(bench, spec, pb.IF_SAFE, pb.FAILED_PRECONDITION)

    @scenario(f"a verdict: bytes 194 and 202 apart that never meet, {name}", options, sized=True)
    def verdict_apart(bench):
        full_of(bench, strided(bench.npu_bytes // 194, 194))
        yield
        try_alloc(bench, strided(bench.npu_bytes // 202 - 8, 202, address=1), pb.UNCHECKED, pb.OK)
        bench.one.call(stat=pb.StatRequest(details=True))


searches("64 MiB", HUGE)
searches("1 GiB", VAST)


# ---- free blocks ----


def fragmented(bench, block_w):
    """100,000 free blocks of w bytes on each NPU, and nothing else."""
    kept = bench.small(200_000, "", shape=dims(1, 64, 1, block_w))
    take_rest(bench)
    bench.free_every_other(kept)


def allocate_among(block_w, options):
    @scenario(f"512 tensors among 100,000 free blocks of {block_w} bytes", options, sized=True)
    def allocate(bench):
        fragmented(bench, block_w)
        spec = pb.Spec(dtype=pb.INT8, layout=pb.COMPACT, shape=dims(1, 64, 1, 4))
        request = pb.AllocRequest(tensors=[pb.Allocation(spec=spec)])
        yield
        answers = bench.burst({"alloc": request} for _ in range(512))
        refs = [ref(answer.allocated.tensors[0].handle) for answer in answers]
        bench.burst({"free": pb.FreeRequest(tensors=[each])} for each in refs)

    @scenario(f"16 refused allocations among 100,000 free blocks of {block_w} bytes", options, sized=True)
    def refuse(bench):
        fragmented(bench, block_w)
        spec = pb.Spec(dtype=pb.INT8, layout=pb.COMPACT, shape=dims(1, 64, 1, 2 * block_w))
        request = pb.AllocRequest(tensors=[pb.Allocation(spec=spec)])
        yield
        bench.burst(({"alloc": request} for _ in range(16)), status=pb.RESOURCE_EXHAUSTED)


allocate_among(4, LARGE)
# Almost all of a bin of the allocator, but not the largest that it could hold.
allocate_among(256, ("--npu-bytes", str(64 * MIB)))


@scenario("if-safe: a place over a block beside 100,000 free blocks", ("--npu-bytes", str(64 * MIB)), sized=True)
def guest_among(bench):
    bench.fragment()
    try_alloc(bench, compact((1, 65, 1, 512)), pb.NEVER, pb.OK)
    take_rest(bench)
    yield
    try_alloc(bench, compact((1, 63, 1, 512), 1), pb.IF_SAFE, pb.OK)


# ---- barriers ----


@scenario("15 clients ask for 64 dry-run compactions each; a fill", LARGE, ping="fill")
def dry_runs(bench):
    bench.small(4096)
    clients = [bench.client() for _ in range(15)]
    yield
    for client in clients:
        for _ in range(64):
            client.send(compact=pb.CompactRequest(dry_run=True))
    for client in clients:
        for _ in range(64):
            assert client.receive().status == pb.OK
