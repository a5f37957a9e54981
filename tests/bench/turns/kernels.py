"""Long kernels, and what others ask for meanwhile."""

from support import dims, pb

from turns.bench import MIB, fill, ref, scenario

ROOMY = ("--npu-bytes", str(2 * MIB))


class Convolution:
    """A kernel that runs long: about 28 G multiplications of one channel plane of 128 x 128, 4.6 G of 64 x 64."""

    def __init__(self, bench, extent, kernel):
        self.bench = bench
        self.left = extent - kernel + 1
        self.image = self.tensor(64, extent)
        self.weights = self.tensor(64, kernel, n=64)
        bench.fill([self.image, self.weights])

    def tensor(self, c, extent, n=1):
        shape = (n, c, extent, extent)
        return self.bench.one.alloc(shape=shape, layout=pb.COMPACT, dtype=pb.FX16, frac_bits=4).handle

    def request(self):
        """To an output of its own; that tensor's handle, and the request."""
        out = self.tensor(64, self.left)
        run = pb.RunRequest(kernel=pb.CONV2D)
        for role, tensor in (("in", self.image), ("weights", self.weights), ("out", out)):
            run.operands.add(role=role, tensor=ref(tensor))
        return out, run


def receive_all(client, n):
    for _ in range(n):
        answer = client.receive()
        assert answer.status == pb.OK, answer


@scenario("two long kernels of one uid; 1 MiB writes of another", ROOMY, ping="write", most=3)
def two_kernels(bench):
    convolution = Convolution(bench, 128, 25)
    runs = [convolution.request()[1] for _ in range(2)]
    yield
    for run in runs:
        bench.one.send(run=run)
    receive_all(bench.one, 2)


@scenario("32 long kernels of one uid; 1 MiB writes of another", ROOMY, ping="write", most=3)
def many_kernels(bench):
    convolution = Convolution(bench, 64, 33)
    runs = [convolution.request()[1] for _ in range(32)]
    yield
    for run in runs:
        bench.one.send(run=run)
    receive_all(bench.one, 32)


@scenario("nothing but 1 MiB writes of another uid", ROOMY, ping="write", most=3)
def only_writes(bench):
    yield
    bench.many({"info": pb.InfoRequest()} for _ in range(2000))


@scenario("3,840 short fills of 15 clients wait for one kernel", ROOMY, ping="fill")
def fills_behind_kernel(bench):
    out, run = Convolution(bench, 128, 25).request()
    view = pb.ViewRequest(tensor=ref(out), to=dims(1, 64, 1, 4), name="part")
    getattr(view, "from").CopyFrom(dims(0, 0, 0, 0))
    part = bench.one.call(view=view).tensor.handle
    clients = [bench.client() for _ in range(15)]
    yield
    bench.one.send(run=run)
    for client in clients:
        for _ in range(256):
            client.send(fill=fill(part))
    receive_all(bench.one, 1)
    for client in clients:
        receive_all(client, 256)
