"""Tensors that are listed, freed and shown, and clients that come and go."""

import contextlib
import os
import signal

from support import Client, pb

from turns.bench import LARGE, list_all, ref, scenario


@scenario("nothing but info")
def nothing(bench):
    yield
    bench.many({"info": pb.InfoRequest()} for _ in range(2000))


@scenario("list of 8,192 tensors", LARGE)
def list_8192(bench):
    bench.small(8192)
    yield
    assert list_all(bench.one) == 8192 + bench.n_before


@scenario("list of 100,000 tensors", LARGE)
def list_100000(bench):
    bench.small(100_000)
    yield
    assert list_all(bench.one) == 100_000 + bench.n_before


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


def leave_and_return(bench, n):
    client = bench.client()
    token = client.call(resume=pb.ResumeRequest(linger=True)).resumed.token
    bench.small(n, "", client)
    yield
    for _ in range(50):
        client.close()
        client = bench.client()
        while client.ask(resume=pb.ResumeRequest(token=token)).status == pb.UNAVAILABLE:
            pass
    (row,) = [row for row in bench.watcher.call(stat=pb.StatRequest(details=True)).stat.clients if row.tensors]
    assert row.tensors == n


@scenario("a session with 100,000 unnamed tensors leaves and returns", state=True, sized=True)
def leave_and_return_100000(bench):
    yield from leave_and_return(bench, 100_000)


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
    assert list_all(bench.one) == 1 + bench.n_before


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


@scenario("1,000 clients connect and leave", ("--limit", "sessions=2048"))
def crowd(bench):
    yield
    clients = [bench.client() for _ in range(1000)]
    for client in clients:
        client.send(info=pb.InfoRequest())
    for client in clients:
        assert client.receive().status == pb.OK
        client.close()


@scenario("snapshot of what 240 clients asked, by stat")
def stat_many(bench):
    clients = [bench.client() for _ in range(240)]
    for client in clients:
        bench.small(16, "", client)
    yield
    bench.many({"stat": pb.StatRequest(details=True)} for _ in range(16))
