"""What a client passes and leaves, and another uid's threads must close."""

import contextlib
import fcntl
import os
import signal

from hostile import Lingerers, give
from support import Sharer, frame, pb

from turns.bench import MIB, scenario
from turns.ping import UID


def as_other(bench, kind=None):
    """A connection of another uid than the second client's, where there may be one."""
    if os.getuid():
        return bench.client()
    os.seteuid(UID + 1)
    try:
        return bench.stack.enter_context(kind(bench.daemon.path) if kind else bench.daemon.client())
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def stopped(bench):
    """For a moment, so that the daemon has the last references."""
    bench.daemon.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        bench.daemon.process.send_signal(signal.SIGCONT)


@scenario("100 connections with two lingering sockets each")
def lingering(bench):
    lingerers = bench.stack.enter_context(Lingerers())
    clients = [as_other(bench) for _ in range(100)]
    socks = [lingerers.make_many(2) for _ in clients]
    yield
    for client, pair in zip(clients, socks):
        give(client.sock, pair)
        client.close()
    bench.one.call(info=pb.InfoRequest())


@scenario("253 lingering sockets in one message")
def many_in_one(bench):
    lingerers = bench.stack.enter_context(Lingerers())
    client, socks = as_other(bench), lingerers.make_many(253)
    yield
    give(client.sock, socks)
    bench.one.call(info=pb.InfoRequest())


@scenario("a shared memfd of 512 MiB, unshared by the last who had it")
def last_reference(bench):
    sharer = as_other(bench, Sharer)
    fd = os.memfd_create("bench", os.MFD_ALLOW_SEALING)
    os.posix_fallocate(fd, 0, 512 * MIB)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    segment = sharer.share(fd)
    os.close(fd)
    yield
    sharer.call(unshare=pb.UnshareRequest(segment=segment))
    bench.one.call(info=pb.InfoRequest())


@scenario("the same, refused")
def refused_memory(bench):
    sharer = as_other(bench, Sharer)
    fd = os.memfd_create("bench", os.MFD_ALLOW_SEALING)
    os.posix_fallocate(fd, 0, 512 * MIB)
    give_memory = frame(pb.Request(id=1, share=pb.ShareRequest()))
    yield
    with stopped(bench):
        sharer.sock.sendmsg([give_memory], [(1, 1, fd.to_bytes(4, "little"))])
        os.close(fd)
    assert sharer.receive().status == pb.INVALID
    bench.one.call(info=pb.InfoRequest())
