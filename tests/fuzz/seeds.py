"""Makes what tests/fuzz/corpus begins with: requests that reach every method and, by the
smallest golden vector of each, every kernel. Names stand for handles, so that a request means the same on any device.

usage: seeds.py BUILD   (a build folder with npumemd, npumemctl and npumem_pb2)
"""

import io
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(BUILD / "tests/integration/python"))
import npumem_pb2 as pb  # noqa: E402

GEOMETRY = ["--npus", "8", "--npu-bytes", "8192"]


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def delimited(messages):
    return b"".join(varint(len(m)) + m for m in (message.SerializeToString(deterministic=True) for message in messages))


# ---- kernels, as npumemctl conform asks for them ----


def smallest_cases():
    best = {}
    for path in sorted((ROOT / "tests/conformance/vectors").glob("*.json")):
        family = json.loads(path.read_text())
        for case in family.get("cases", []) if isinstance(family, dict) else []:
            size = sum(len(tensor["data"]) for tensor in case["tensors"].values())
            if case["kernel"] not in best or size < best[case["kernel"]][0]:
                best[case["kernel"]] = (size, case)
    return [case for _, case in best.values()]


def read_record(path):
    data, at = path.read_bytes(), 16
    while at < len(data):
        n = shift = 0
        while True:
            byte = data[at]
            n |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        yield pb.RecordEntry.FromString(data[at : at + n])
        at += n


def record_of(folder, vectors):
    ctl, socket = str(BUILD / "client/ctl/npumemctl"), str(folder / "socket")
    daemon = subprocess.Popen([BUILD / "daemon/npumemd", "--socket", socket, *GEOMETRY], stderr=subprocess.DEVNULL)
    try:
        while not os.path.exists(socket):
            time.sleep(0.01)
        recorder = subprocess.Popen([ctl, "--socket", socket, "record", str(folder / "record")], stderr=subprocess.PIPE)
        recorder.stderr.readline()
        subprocess.run([ctl, "--socket", socket, "conform", vectors], check=True)
        recorder.send_signal(2)
        recorder.wait()
    finally:
        daemon.terminate()
        daemon.wait()
    return list(read_record(folder / "record"))


def refs_of(message):
    """All Refs below a message."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for item in value if field.label == field.LABEL_REPEATED else [value]:
            if field.message_type.name == "Ref":
                yield item
            else:
                yield from refs_of(item)


def by_name(entries):
    """The requests of a record, with a name of its own for each tensor."""
    names, requests = {}, []
    for entry in entries:
        if entry.status or entry.part or not entry.request:
            assert not entry.part, "a request in parts"
            continue
        request = pb.Request.FromString(entry.request)
        if request.WhichOneof("call") not in ("alloc", "write", "fill", "run", "read", "free", "submit", "view"):
            continue
        for ref in refs_of(request):
            if ref.handle:
                ref.name = names[ref.handle]
                ref.handle = 0
        if request.WhichOneof("call") == "alloc":
            for handle, allocation in zip(entry.handles, request.alloc.tensors):
                names[handle] = allocation.name = f"t{len(names)}"
        requests.append(request)
    return requests


def split(requests):
    """Parts that end with the free of what they have made."""
    parts, part, living = [], [], 0
    for request in requests:
        part.append(request)
        living += len(request.alloc.tensors) - len(request.free.tensors)
        if not living:
            parts.append(part)
            part = []
    return parts + ([part] if part else [])


def record_of_cases(cases):
    """The file's bytes, and its entries."""
    family = {"family": "smallest", "format": 1, "case_count": len(cases), "cases": cases}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "vectors.json").write_text(json.dumps(family))
        entries = record_of(folder, str(folder / "vectors.json"))
        return (folder / "record").read_bytes(), entries


def golden_kernels():
    return split(by_name(record_of_cases(smallest_cases())[1]))


# ---- requests by hand ----


def dims(n, c, h, w):
    return pb.Dims(n=n, c=c, h=h, w=w)


def spec(shape=(1, 8, 1, 16), dtype=pb.FX8, **members):
    result = pb.Spec(dtype=dtype, **members)
    if shape:
        result.shape.CopyFrom(dims(*shape))
    if dtype in (pb.FX8, pb.FX16):
        result.frac_bits = 4
    return result


def ref(name):
    return pb.Ref(name=name)


def alloc(name, shape=(1, 8, 1, 16), dtype=pb.FX8, wait_ms=0, reuse=0, dma_only=False, pinned=False, **members):
    one = pb.Allocation(
        name=name, spec=spec(shape, dtype, **members), reuse=reuse, dma_only=dma_only, pinned=pinned
    )
    return pb.Request(alloc=pb.AllocRequest(tensors=[one], wait_ms=wait_ms))


def free(*names):
    return pb.Request(free=pb.FreeRequest(tensors=[ref(name) for name in names]))


def fill_of(name, value=3):
    return pb.FillRequest(tensor=ref(name), integer=value)


def fill(name, value=3):
    return pb.Request(fill=fill_of(name, value))


def read(name, **members):
    return pb.Request(read=pb.ReadRequest(tensor=ref(name), **members))


def write(name, data, **members):
    return pb.Request(write=pb.WriteRequest(tensor=ref(name), data=data, **members))


def run_of(kernel, params=(), **roles):
    request = pb.RunRequest(kernel=kernel, params=[pb.Param(key=key, values=values) for key, values in params])
    for role, name in roles.items():
        request.operands.add(role=role.rstrip("_"), tensor=ref(name))
    return request


def kernel_by_hand(kernel, shapes, params=()):
    """The roles' shapes, out last: made, filled, run, read, freed."""
    roles = {role: f"k{i}" for i, role in enumerate(shapes)}
    made = [alloc(roles[role], shape) for role, shape in shapes.items()]
    filled = [fill(roles[role], 2 + i) for i, role in enumerate(shapes) if role != "out"]
    out = [pb.Request(run=run_of(kernel, params, **roles)), read(roles["out"])]
    return made + filled + out + [free(*roles.values())]


def kernels_by_hand():
    small = (1, 8, 2, 4)
    return [
        kernel_by_hand(pb.MATMUL, {"left": (4, 6, 1, 1), "right": (6, 5, 1, 1), "bias": (1, 5, 1, 1), "out": (4, 5, 1, 1)}),
        kernel_by_hand(pb.ELTWISE_DIV, {"in1": small, "in2": small, "out": small}),
        kernel_by_hand(pb.MAC, {"in1": small, "in2": small, "acc": small, "out": small}),
        kernel_by_hand(pb.REDUCE_SUM, {"in_": small, "out": (1, 8, 1, 1)}, [(pb.PARAM_AXES, [3, 4])]),
        kernel_by_hand(pb.REDUCE_MAX, {"in_": small, "out": (1, 1, 2, 4)}, [(pb.PARAM_AXES, [2])]),
        kernel_by_hand(pb.CONCAT, {"in0": small, "in1": small, "out": (1, 16, 2, 4)}, [(pb.PARAM_AXIS, [3])]),
        kernel_by_hand(pb.PAD2D, {"in_": small, "out": (1, 8, 4, 6)}, [(pb.PARAM_PADDING, [1, 1, 1, 1])]),
        kernel_by_hand(pb.LUT, {"in_": small, "table": (1, 64, 2, 2), "out": small}),
        kernel_by_hand(pb.ELTWISE_MUL, {"in1": small, "in2": (1, 8, 1, 1), "out": small}),
        # Large enough for the engine's own ways: packs of weights, sums in parts.
        kernel_by_hand(pb.CONV2D, {"in_": (1, 16, 6, 6), "weights": (16, 16, 3, 3), "out": (1, 16, 4, 4)}),
        kernel_by_hand(pb.DEPTHWISE_CONV2D, {"in_": (1, 16, 6, 6), "weights": (1, 16, 3, 3), "out": (1, 16, 4, 4)}),
        kernel_by_hand(pb.FULLY_CONNECTED, {"in_": (1, 24, 1, 1), "weights": (24, 8, 1, 1), "out": (1, 8, 1, 1)}),
    ]


def submit(*operations):
    request = pb.SubmitRequest()
    for group, member, operation in operations:
        request.operations.add(group=group, **{member: operation})
    return pb.Request(submit=request)


def numerics():
    pair = pb.NumericPair(x=pb.NumericFormat(integer_bits=3, frac_bits=4), y=pb.NumericFormat(integer_bits=1, frac_bits=6))
    terms = pb.NumericTerms(
        data_dtype=pb.FX8, weights_dtype=pb.FX8, data_frac_bits=4, weights_frac_bits=5, has_bias=True, bias_frac_bits=3, n=1601
    )
    advise = pb.NumericAdvise(kernel="conv2d", data_dtype=pb.FX8)
    for role, shape, bits in (("in", (1, 8, 6, 6), 4), ("weights", (8, 4, 3, 3), 5), ("out", (1, 4, 4, 4), 3)):
        advise.operands.add(role=role, shape=dims(*shape), frac_bits=bits)
    questions = [
        pb.NumericRequest(add=pair),
        pb.NumericRequest(mul=pair),
        pb.NumericRequest(div=pair),
        pb.NumericRequest(sum=pb.NumericSum(x=pair.x, n=1601)),
        pb.NumericRequest(bound=terms),
        pb.NumericRequest(advise=advise),
    ]
    return [pb.Request(numeric=question) for question in questions]


def looks():
    return [
        pb.Request(resume=pb.ResumeRequest()),
        pb.Request(resume=pb.ResumeRequest(token=bytes(16))),
        pb.Request(info=pb.InfoRequest(features=1, details=True)),
        pb.Request(stat=pb.StatRequest(details=True)),
        pb.Request(list=pb.ListRequest(limit=3)),
        pb.Request(list=pb.ListRequest(after=2)),
        pb.Request(dump=pb.DumpRequest(npu=1, offset=0, bytes=64)),
        pb.Request(open=pb.OpenRequest(tensor=ref("b0"))),
        pb.Request(open=pb.OpenRequest(tensor=ref("1001:a2"))),
        pb.Request(open=pb.OpenRequest(tensor=ref("1001:a0"))),
        pb.Request(open=pb.OpenRequest(tensor=pb.Ref(handle=1))),
        pb.Request(read=pb.ReadRequest(tensor=pb.Ref(handle=3))),
        pb.Request(plan=pb.PlanRequest(spec=spec())),
        pb.Request(plan=pb.PlanRequest(spec=spec(None, pb.INT8, layout=pb.MATRIX, rows=5, cols=37))),
        pb.Request(plan=pb.PlanRequest(spec=spec(layout=pb.STRIDED, stride=dims(64, 32, 32, 2)))),
        pb.Request(cancel=pb.CancelRequest(request_id=1)),
        pb.Request(),
    ]


def changes():
    return [
        alloc("", wait_ms=20),
        alloc("d0", mode=pb.MODE_4N, shape=(4, 8, 1, 16)),
        alloc("d1", layout=pb.COMPACT, dtype=pb.INT16, pinned=True),
        alloc("d2", None, pb.INT32, layout=pb.MATRIX, rows=5, cols=37),
        alloc("d3", layout=pb.STRIDED, stride=dims(64, 64, 64, 4), start_npu=3),
        alloc("d4", dtype=pb.FP32, mode=pb.MODE_2IC, shape=(4, 6, 3, 3)),
        alloc("d5", shape=(1, 3, 1, 16), dma_only=True),
        alloc("d6", shape=(1, 5, 1, 16), reuse=pb.IF_SAFE, dma_only=True, start_npu=3),
        alloc("big", (1, 8, 1, 100000)),
        alloc("large", (1, 8, 1, 7000)),
        alloc("late", (1, 8, 1, 4000), wait_ms=500),
        pb.Request(view=pb.ViewRequest(name="v0", tensor=ref("d0"), to=dims(4, 4, 1, 8))),
        pb.Request(view=pb.ViewRequest(name="v1", tensor=ref("d5"), shape=dims(1, 3, 4, 4))),
        fill("d0"),
        fill("v1", 9),
        write("d1", struct.pack("<16h", *range(16)), first=4),
        pb.Request(copy=pb.CopyRequest(destination=ref("b1"), source=ref("b0"))),
        pb.Request(copy=pb.CopyRequest(destination=ref("b1"), source=ref("1001:a0"))),
        pb.Request(fill=pb.FillRequest(tensor=ref("b3"), real=1.5)),
        read("d0", first=3, count=20),
        read("b4"),
        pb.Request(seal=pb.SealRequest(tensor=ref("d0"))),
        pb.Request(seal=pb.SealRequest(tensor=ref("d3"))),
        fill("d0"),
        pb.Request(grant=pb.GrantRequest(tensor=ref("d0"), uid=1003, access=pb.ACCESS_READ)),
        pb.Request(grant=pb.GrantRequest(tensor=ref("d0"), uid=1003, access=pb.ACCESS_NONE)),
        pb.Request(rename=pb.RenameRequest(tensor=ref("d1"), name="d7")),
        pb.Request(rename=pb.RenameRequest(tensor=ref("1001:a0"), name="mine")),
        pb.Request(rename=pb.RenameRequest(tensor=ref("d7"), name="d1")),
        pb.Request(compact=pb.CompactRequest(dry_run=True)),
        free("large", "d2"),
        pb.Request(compact=pb.CompactRequest()),
        free("v0", "d0", "d1"),
        free("d3", "nobody"),
        free("1001:a0"),
    ]


def lists():
    run = run_of(pb.RELU, in_="b0", out="b1")
    return [
        submit((0, "fill", fill_of("b0")), (0, "run", run), (0, "read", pb.ReadRequest(tensor=ref("b1")))),
        submit((1, "fill", fill_of("b2")), (1, "run", run), (2, "copy", pb.CopyRequest(destination=ref("b0"), source=ref("b1")))),
        submit((1, "fill", fill_of("b0")), (1, "run", run)),
        submit((0, "fill", fill_of("b0")), (0, "read", pb.ReadRequest(tensor=ref("b3"))), (0, "run", run)),
        submit((0, "run", run_of(pb.ELTWISE_ADD, in1="b0", in2="1001:a2", out="b1"))),
    ]


def shared():
    memory = {"segment": 1, "segment_offset": 64}
    return [
        pb.Request(share=pb.ShareRequest()),
        pb.Request(write=pb.WriteRequest(tensor=ref("b0"), **memory)),
        pb.Request(read=pb.ReadRequest(tensor=ref("b0"), segment_stride=dims(1000, 64, 64, 2), **memory)),
        pb.Request(read=pb.ReadRequest(tensor=ref("b2"), first=5, count=100, **memory)),
        pb.Request(unshare=pb.UnshareRequest(segment=1)),
        pb.Request(unshare=pb.UnshareRequest(segment=1)),
    ]


def told():
    kinds = ["allocated", "freed", "renamed", "sealed", "moved", "damaged", "refused", "low-space", "client-gone", "progress"]
    return [
        pb.Request(subscribe=pb.SubscribeRequest(kinds=kinds)),
        alloc("e0"),
        fill("e0"),
        pb.Request(seal=pb.SealRequest(tensor=ref("e0"))),
        free("e0"),
        pb.Request(subscribe=pb.SubscribeRequest()),
    ]


def recorded():
    def record(action):
        return pb.Request(record=pb.RecordRequest(action=action))

    return [
        record(pb.RECORD_HASH),
        record(pb.RECORD_START),
        alloc("g0"),
        pb.Request(share=pb.ShareRequest()),
        pb.Request(write=pb.WriteRequest(tensor=ref("g0"), segment=1)),
        pb.Request(read=pb.ReadRequest(tensor=ref("g0"), segment=1, segment_offset=512)),
        fill("g0"),
        read("g0"),
        fill("nobody"),
        record(pb.RECORD_TAKE),
        submit((0, "fill", fill_of("g0")), (0, "read", pb.ReadRequest(tensor=ref("g0")))),
        free("g0"),
        record(pb.RECORD_STOP),
        record(pb.RECORD_TAKE),
    ]


def destroys():
    return [
        alloc("f0", (1, 5, 1, 64), address=6144),
        alloc("f1", (1, 5, 1, 64), address=6400),
        alloc("f2", (1, 3, 1, 64), reuse=pb.UNCHECKED, address=5 * 8192 + 6400),
        fill("f0"),
        fill("f1"),
        fill("f2"),
        pb.Request(run=run_of(pb.RELU, in_="f0", out="f1")),
        read("f2"),
        pb.Request(shutdown=pb.ShutdownRequest()),
        free("f0", "f1", "f2"),
    ]


def crowd():
    """Lists that are longer than what has room beside a request."""
    small = [pb.Allocation(name=f"h{i}", spec=spec((1, 1, 1, 4), pb.INT8, layout=pb.COMPACT)) for i in range(70)]
    fills = [(0, "fill", fill_of(f"h{i}")) for i in range(20)]
    return [
        pb.Request(alloc=pb.AllocRequest(tensors=small)),
        submit(*fills),
        submit(*[(1, *operation[1:]) for operation in fills]),
        pb.Request(list=pb.ListRequest()),
        free(*[f"h{i}" for i in range(40)]),
        pb.Request(list=pb.ListRequest(after=3)),
    ]


def under_way():
    """Many at once: they are on threads."""
    return (
        [alloc(f"i{i}", (4, 8, 1, 104), mode=pb.MODE_4N) for i in range(2)]
        + [fill(f"i{i % 2}", i) for i in range(12)]
        + [write("b2", bytes(100)), pb.Request(list=pb.ListRequest()), write("i0", bytes(2000)), read("i1"), pb.Request(open=pb.OpenRequest(tensor=ref("i0"))), free("i0")]
        + [pb.Request(cancel=pb.CancelRequest(request_id=i)) for i in (4, 9, 14)]
        + [alloc("i2", (1, 8, 1, 6000), wait_ms=1000), alloc("i3", (1, 8, 1, 5900), wait_ms=900), free("i1")]
    )


def over_others():
    """Places over others' empty blocks, given and searched for."""
    guests = [alloc(f"j{i}", (1, 1, 1, 64), reuse=pb.UNCHECKED, start_npu=5 + i % 3) for i in range(12)]
    return (
        [alloc("j", (1, 5, 1, 4096), start_npu=0), alloc("jj", (1, 5, 1, 4096), start_npu=0), fill("j")]
        + guests
        + [alloc("k", (1, 2, 1, 64), reuse=pb.IF_SAFE, dma_only=True, start_npu=6), fill("j3"), fill("j4")]
        + [pb.Request(stat=pb.StatRequest(details=True)), pb.Request(run=run_of(pb.RELU, in_="j", out="jj"))]
        + [write("j0", bytes(7)), pb.Request(open=pb.OpenRequest(tensor=ref("j0")))]
        + [pb.Request(list=pb.ListRequest()), read("j3"), pb.Request(compact=pb.CompactRequest()), free("j", "jj")]
    )


# ---- files ----


def request_input(requests, mode=0, who=0, ends=True):
    """As tests/fuzz/request.h has it."""
    out = bytearray([mode])
    for i, request in enumerate(requests, 1):
        request.id = i
        message = request.SerializeToString(deterministic=True)
        assert len(message) < 1 << 14
        out += bytes([who << 4]) + (bytes([len(message)]) if len(message) < 0x80 else bytes([len(message) & 0x7F | 0x80, len(message) >> 7]))
        out += message
        if mode & 2 and ends and i % 3 == 0:
            out += bytes([9])
    return bytes(out)


def put(name, data):
    path = HERE / "corpus" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def npy(descr, shape, data, order="False", version=1):
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    room = (4 if version > 1 else 2) + 8
    header += b" " * (-(len(header) + room + 1) % 64) + b"\n"
    length = struct.pack("<I" if version > 1 else "<H", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + data


def arrays():
    def zipped(method, *members):
        with io.BytesIO() as file:
            with zipfile.ZipFile(file, "w", method) as archive:
                for name, data in members:
                    archive.writestr(zipfile.ZipInfo(name), data, method)
            return file.getvalue()

    small = npy("|i1", "(1, 2, 1, 4)", bytes(range(8)))
    real = npy("<f4", "(2, 4)", struct.pack("<8f", *[0.25 * i - 1 for i in range(8)]))
    place = bytes([7, 4, 0, 1, 0, 3, 1])  # fx8, [1,2,1,4]
    return {
        "stream": b"\0" + place + b"\0" + small,
        "stream-quantized": b"\0" + bytes([7, 4, 0, 1, 0, 3, 1]) + b"\1" + npy("<f4", "(1, 2, 1, 4)", struct.pack("<8f", *range(8))),
        "stream-permuted": b"\1" + place + b"\1\0" + npy("|i1", "(1, 1, 4, 2)", bytes(8)),
        "values": b"\2\0" + real,
        "values-transposed": b"\2\1" + npy(">f8", "(2, 3)", struct.pack(">6d", *range(6)), "True"),
        "values-half": b"\2\0" + npy("<f2", "(3,)", struct.pack("<3e", 1, -2, 65504), version=2),
        "values-integers": b"\2\0" + npy("<u8", "(2, 1, 2)", struct.pack("<4Q", 0, 1, 255, 2**63)),
        "stored": b"\3\0" + zipped(zipfile.ZIP_STORED, ("a.npy", real)),
        "deflated": b"\3\0" + zipped(zipfile.ZIP_DEFLATED, ("a.npy", real)),
        "two": b"\3\0" + zipped(zipfile.ZIP_DEFLATED, ("a.npy", real), ("b.npy", small)),
    }


SCALE = """{"tensors": {"x": {"shape": [1,8,2,4], "dtype": "fx8", "frac_bits": 4, "file": "x.npy"},
 "y": {"shape": [1,8,2,4], "dtype": "fx8", "frac_bits": 4, "expect": "y.npy", "keep": true}},
 "operations": [{"run": "relu", "in": "x", "out": "y", "relu": 6},
 {"parallel": [{"fill": "x", "value": 3}, {"run": "relu", "in": "y", "out": "y"}]}]}"""
LINES = """{"alloc": "m", "layout": "matrix", "rows": 5, "cols": 37, "dtype": "int16"}
{"view": "v", "of": "x", "shape": [1,16,1,4]}
{"alloc": "x", "shape": [1,8,2,4], "dtype": "fx16", "frac_bits": 3, "address": 4096, "pinned": true}
{"view": "v", "of": "x", "from": [0,0,0,0], "to": [1,4,2,4]}
{"write": "x", "file": "a.npy", "quantize": true, "rounding": "up", "perm": [0,3,1,2]}
{"copy": "v", "from": "v"} {"seal": "x"} {"read": "v", "file": "b.npy"} {"free": "v"}"""
COMMAND_LINES = [
    ["--socket", "/x/y.sock", "--chip", "sg2260", "--limit", "tensors=9", "--limit-uid", "1001:device_bytes=99"],
    ["--npus", "8", "--npu-bytes", "8192", "--banks", "4", "--rounding", "up", "--uninitialized", "warn"],
    ["--fd", "3", "--log", "debug", "--stop-seconds", "5", "--mode=0600", "--allow-unchecked-reuse", "--background"],
    ["--spin-us", "50", "--pack-bytes", "100000", "--share-device", "--frame-seconds", "9", "--drain-seconds", "9"],
]
LINES_TYPED = [
    "--shape 1,8,2,4 --dtype fx8 --frac-bits 4 --layout compact --mode 4n --start-npu 3 --address 0x1000",
    "--layout matrix --rows 5 --cols 37 --w 4 --dtype int16",
    "--shape 2,8,2,4 --dtype=fp32 --layout strided --stride 64,32,8,2",
    "mul Q4.3 Q5.7",
    "sum Q3.4 --n 1601",
    "products --dtype fx8 --n 1601 --in-frac 4 --weights-frac=5 --bias --bias-frac 3 --weights-sum 99",
    "advise conv2d in=1,8,6,6:4 weights=8,4,3,3:5 out=1,4,4,4:3 stride=1,1 --dtype fx8",
    "conv2d in=x weights=w bias=b out='y z' stride=1,2 padding=1,1,0,0 relu=6 rounding=up",
    'v=x[0:1,2:,:3,] "a b" 12K 0x7f 1e9 # rest',
]


def client_seeds():
    yield from ((f"npy/{name}", data) for name, data in arrays().items())
    cases = [case for case in smallest_cases() if sum(len(t["data"]) for t in case["tensors"].values()) < 14]
    for case in cases[:6]:
        case = {key: case[key] for key in ("name", "kernel", "rounding", "params", "tensors")}
        yield f"vectors/{case['kernel']}", json.dumps({"family": "f", "cases": [case]}, separators=(",", ":")).encode()
    for path in (ROOT / "tests/examples/networks").glob("*.json"):
        yield f"network/{path.stem}", path.read_bytes()
    yield "network/declared", SCALE.encode()
    yield "network/lines", LINES.encode()
    record = record_of_cases(cases[:2])[0]
    yield "record/run", record
    yield "record/cut", record[: len(record) // 2]
    for i, words in enumerate(COMMAND_LINES):
        yield f"options/{i}", b"\0".join(word.encode() for word in words)
    for i, line in enumerate(LINES_TYPED):
        yield f"words/{i}", line.encode()


# ---- valid runs ----


def runs():
    """Of each kernel, by the number of its row, what random bytes choose."""
    dice, kernels = random.Random(17), (ROOT / "include/npumem/kernels.def").read_text()
    for row, name in enumerate(re.findall(r"^KERNEL\((\w+)", kernels, re.M)):
        for i in range(4):
            yield f"runs/{name}-{i}", bytes([row]) + dice.randbytes(160)


def main():
    for name, data in runs():
        put(name, data)
    for name, data in client_seeds():
        put(name, data)
    golden, by_hand = golden_kernels(), kernels_by_hand()
    plain = {"looks": looks(), "changes": changes(), "lists": lists(), "shared": shared(), "told": told(),
             "recorded": recorded(), "destroys": destroys(), "numerics": numerics(), "crowd": crowd()}
    for name, requests in plain.items():
        put(f"request/{name}", request_input(requests))
        put(f"request/{name}-threads", request_input(requests, 2))
    for name, mode in (("looks", 1), ("changes", 1), ("told", 1), ("destroys", 5), ("recorded", 5), ("lists", 1)):
        put(f"request/{name}-admin", request_input(plain[name], mode, 4))
        put(f"request/{name}-admin-threads", request_input(plain[name], mode | 2, 4))
    put("request/over-others", request_input(over_others(), 4))
    put("request/over-others-threads", request_input(over_others(), 6))
    put("request/under-way", request_input(under_way(), 2, ends=False))
    kernels = set()
    for part in golden + by_hand:
        kernel = next((request.run.kernel for request in part if request.HasField("run")), 0)
        name = f"request/kernel-{pb.Kernel.Name(kernel).lower()}"
        name += "-more" if name in kernels else ""
        kernels.add(name)
        put(name, request_input(part))
    for name, message in (("info", looks()[2]), ("list", lists()[1]), ("alloc", changes()[4])):
        put(f"frame/{name}", b"\0" + delimited([message]) + b"\x81")
    response = pb.Response(id=3, status=pb.NOT_FOUND, message="no", fields=[pb.Field(key="k", number=-1)])
    put("frame/response", b"\1" + delimited([response]))
    entry = pb.RecordEntry(number=1, request=b"x", handles=[1, 2], end=pb.RecordEnd(entries=1, local=[1, 2]))
    put("frame/entry", b"\2" + delimited([entry]))
    put("frame/long", b"\0" + b"\xff" * 9 + b"\x01")
    put("frame/too-long", b"\0" + b"\xff" * 11)
    print(f"{len(golden) + len(by_hand)} kernels")


if __name__ == "__main__":
    main()
