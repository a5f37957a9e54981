"""What scenarios are made of: a device with a client and a watcher, requests in their hundreds."""

import contextlib

from support import dims, frame, pb

MIB = 1 << 20
SMALL = ()  # 64 NPUs of 512 KiB
LARGE = ("--npus", "64", "--npu-bytes", str(8 * MIB))
GIB = ("--npus", "64", "--npu-bytes", str(16 * MIB))
BULK_W = 496 * 1024  # with 64 channels: 31 MiB, 496 KiB per NPU
IN_FLIGHT = 12

scenarios = []


class Scenario:
    """Of function(bench), a generator: what is before its yield prepares, what is behind it is measured. Meanwhile a
    second client asks `ping` over and over; on average that may take `most` times what it takes alone. What is
    `sized` is about NPUs of the size that its options have; one with a `state` has a daemon that keeps one."""

    def __init__(self, name, options, ping, most, sized, state, function):
        self.name = name
        self.options = options
        self.ping = ping
        self.most = most
        self.sized = sized
        self.state = state
        self.function = function


def scenario(name, options=SMALL, ping="info", most=None, sized=False, state=False):
    def add(function):
        scenarios.append(Scenario(name, options, ping, most, sized, state, function))
        return function

    return add


class Bench:
    def __init__(self, daemon):
        self.daemon = daemon
        self.stack = contextlib.ExitStack()
        self.one = self.client()
        info = self.one.call(info=pb.InfoRequest()).info
        self.n_npus, self.npu_bytes = info.n_npus, info.npu_bytes
        self.watcher = self.client()
        self.n_before = 0  # tensors that no scenario made

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

    def burst(self, calls, status=pb.OK):
        """All in one write."""
        requests = [pb.Request(id=1 + i, **call) for i, call in enumerate(calls)]
        self.one.id = len(requests)
        self.one.sock.sendall(b"".join(frame(request) for request in requests))
        answers = [self.one.receive() for _ in requests]
        assert all(answer.status == status for answer in answers), answers[0]
        return answers

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

    def free_every_other(self, handles, client=None):
        client = client or self.one
        for first in range(0, len(handles), 512):
            refs = [pb.Ref(handle=handle) for handle in handles[first : first + 512 : 2]]
            client.call(free=pb.FreeRequest(tensors=refs))

    def fragment(self, n=100_000, w=256):
        """n free blocks of w bytes on each NPU, below all that comes later."""
        client = self.client()
        self.free_every_other(self.small(2 * n, "", client, shape=dims(1, 64, 1, w)), client)
        self.n_before = n

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


def compact(shape, start_npu=0):
    return pb.Spec(dtype=pb.INT8, layout=pb.COMPACT, shape=dims(*shape), start_npu=start_npu)


def alloc_of(allocations, at_once=256):
    for first in range(0, len(allocations), at_once):
        yield {"alloc": pb.AllocRequest(tensors=allocations[first : first + at_once])}
