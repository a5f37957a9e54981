"""A second client, of another uid where there may be one, and how long its requests take: alone, and beside what is
measured."""

import array
import contextlib
import gc
import os
import resource
import signal
import time

from support import Client, frame, pb

UID = 54321  # any but the bench's
MIB = 1 << 20
ALONE_SECONDS = {"info": 0.05, "fill": 0.05, "write": 0.3}


def request_of(kind, client):
    """Framed; on a tensor of its own."""
    if kind == "info":
        return frame(pb.Request(id=1, info=pb.InfoRequest()))
    shape = (1, 8, 1, 16) if kind == "fill" else (1, 64, 1, MIB // 64)
    tensor = pb.Ref(handle=client.alloc(shape=shape, layout=pb.COMPACT).handle)
    if kind == "fill":
        return frame(pb.Request(id=1, fill=pb.FillRequest(tensor=tensor, integer=1)))
    return frame(pb.Request(id=1, write=pb.WriteRequest(tensor=tensor, data=bytes(MIB))))


def ping(path, kind, out):
    """Begin and end of each in ns to the file `out`, until the parent says so by SIGTERM."""
    times = array.array("Q")
    signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    gc.disable()
    with contextlib.suppress(KeyboardInterrupt), Client(path) as client:
        client.sock.settimeout(120)
        request = request_of(kind, client)
        while True:
            before = time.monotonic_ns()
            client.sock.sendall(request)
            assert client.receive().status == pb.OK
            times.extend((before, time.monotonic_ns()))
            time.sleep(0.0002)
    times.tofile(out)


class Pinger:
    def __init__(self, daemon, kind):
        self.out = os.path.join(daemon.directory, "times")
        self.child = os.fork()
        if self.child == 0:
            with contextlib.suppress(BaseException):
                # The parent's connections are to end when the parent closes them.
                os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
                with open(self.out, "wb") as out:
                    if os.getuid() == 0:
                        os.setgid(UID)
                        os.setuid(UID)
                    ping(daemon.path, kind, out)
            os._exit(0)
        time.sleep(ALONE_SECONDS[kind])
        self.begin = time.monotonic_ns()

    def end(self):
        """Sorted durations from the beginning on, and their mean to that of the others; 0: too few to tell."""
        end = time.monotonic_ns()
        time.sleep(0.02)
        os.kill(self.child, signal.SIGTERM)
        os.waitpid(self.child, 0)
        times = array.array("Q")
        with open(self.out, "rb") as file:
            times.frombytes(file.read())
        pings = list(zip(times[::2], times[1::2]))
        alone = [after - before for before, after in pings if after <= self.begin]
        beside = [after - before for before, after in pings if after > self.begin and before < end]
        ratio = mean(beside) / mean(alone) if alone and beside else 0
        return sorted(after - before for before, after in pings if after > self.begin), ratio


def mean(values):
    return sum(values) / len(values)
