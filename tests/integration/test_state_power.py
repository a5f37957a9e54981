"""Loss of power, played with the files of a real daemon.

By hand: what the disk may hold is put together from copies of the state's files, and the daemon starts with another boot id.

At random: a preloaded library copies the files at each sync. For some moments a state is made of each file's copy at its
last sync before, and of any subset of the pages that changed later. Random clients' answers before that moment are compared
with what the next daemon serves.

NPUMEM_LOSSES: how many losses (30); NPUMEM_SEED: the random seed; NPUMEM_LOSSES_PLAIN: without --durable (10)."""

import os
import random
import shutil
import tempfile
import threading
import time
import unittest

from state import StateTestCase, grant, rename, seal
from support import alloc, copy, dims, fill, free, pb, read, ref, run, submit

FILES = ("journal", "memory", "tensors", "sessions", "results")
LOSSES = int(os.environ.get("NPUMEM_LOSSES", "30"))
PLAIN = int(os.environ.get("NPUMEM_LOSSES_PLAIN", "10"))
SEED = int(os.environ.get("NPUMEM_SEED", str(random.SystemRandom().randrange(1 << 30))))
PAGE, SECTOR = 4096, 512
SHAPE = (1, 8, 4, 16)
N = 8 * 4 * 16
SECRET = 77
GUESTS = (2001, 2002)


def boot(number):
    return "--boot-id", "%032x" % number


def write(name, data, first):
    return {"write": pb.WriteRequest(tensor=ref(name), first=first, data=data)}


class Crowd(StateTestCase):
    """Tensors over one another that take too long to compare before the daemon listens."""

    NPU, N = 4 << 20, 28
    options = ("--npus", "2", "--npu-bytes", str(NPU), "--allow-unchecked-reuse")

    def comb(self, i):
        """Bytes between the teeth of the other combs, in rows whose lengths have no common period."""
        row = 512 * (301 + i)
        h = self.NPU // row - 1
        spec = pb.Spec(dtype=pb.INT8, layout=pb.STRIDED, shape=dims(1, 1, h, 300), stride=dims(row * h, row * h, row, 512))
        spec.start_npu, spec.address = 0, i
        return {"alloc": pb.AllocRequest(tensors=[pb.Allocation(name=f"t{i}", spec=spec, dma_only=True, reuse=pb.UNCHECKED)])}

    def test_they_come_back_unless_they_may_be_of_different_times(self):
        self.stop()
        self.start(*boot(1))
        client = self.client()
        for i in range(self.N):
            client.call(**self.comb(i))
        self.restart(*boot(1))
        self.assertEqual(self.n_tensors(), self.N)
        self.restart(*boot(2))
        self.assertIn("it takes too long to see that it lies on no data of others", self.output())
        self.assertIn(self.n_tensors(), range(self.N // 2, self.N))


class Plain(StateTestCase):
    options = ("--npus", "8", "--npu-bytes", "16384", *boot(1))

    def test_nobody_reads_what_was_freed(self):
        """Memory is older than the tables: where a tensor was freed its bytes and marks are there again."""
        for policy in ("refuse", "allow", "warn"):
            for was_closed_again in (False, True):
                with self.subTest(policy=policy, was_closed_again=was_closed_again):
                    self.lose_power_after_a_free(policy, was_closed_again)

    def lose_power_after_a_free(self, policy, was_closed_again):
        self.stop()
        shutil.rmtree(self.state)
        self.start()
        owner = self.client(1001)
        owner.alloc("x", SHAPE)
        owner.alloc("z", SHAPE)
        owner.call(**fill("x", SECRET))
        memory = os.path.join(self.state, "memory")
        with open(memory, "rb") as file:
            older = file.read()
        owner.call(**free("x"))
        self.kill()
        with open(memory, "r+b") as file:
            file.write(older)
        self.start(*boot(2), "--uninitialized", policy)
        if was_closed_again:
            self.restart(*boot(2), "--uninitialized", policy, terminate=True)
        other = self.client(1002)
        place = other.alloc("y", SHAPE).place
        self.assertEqual(place.offset, 0)
        answer = other.pipeline(read("y"))[0]
        if policy == "refuse":
            self.refused(answer, pb.FAILED_PRECONDITION, "never written")
        else:
            self.assertEqual(set(answer.done.data), {0})
        self.assertEqual(set(other.call(dump=pb.DumpRequest(npu=0, offset=0, bytes=64)).dump.data), {0})
        self.refused(self.client(1001).pipeline(read("z"))[0], pb.DATA_LOST)


    def test_a_grant_that_was_taken_back(self):
        """The disk has a page of tensors from before: nobody else may read what the owner writes then."""
        owner = self.client(1001)
        owner.alloc("x", SHAPE)
        owner.call(**grant("x", 1002, pb.ACCESS_READ))
        tensors = os.path.join(self.state, "tensors")
        with open(tensors, "rb") as file:
            older = file.read()
        owner.call(**grant("x", 1002, pb.ACCESS_NONE))
        self.kill()
        with open(tensors, "r+b") as file:
            file.write(older)
        self.start(*boot(2))
        for _ in range(2):
            self.client(1001).call(**fill("x", SECRET))
            self.refused(self.client(1002).pipeline(read("1001:x"))[0], pb.NOT_FOUND)
            self.restart(*boot(2))


class Moments:
    """Copies of the files at each sync: what a sync began with is what it makes sure of."""

    def __init__(self, folder):
        self.folder = folder
        with open(os.path.join(folder, "log"), encoding="ascii") as file:
            self.syncs = [(int(n), name, int(t0), int(t1)) for n, name, t0, t1 in map(str.split, file)]

    def file(self, number, name):
        path = os.path.join(self.folder, f"{number:05}", name)
        if not os.path.exists(path):
            return b""
        with open(path, "rb") as file:
            return file.read()

    def make(self, at, directory, rng, unit):
        """Makes the files of a directory, which stay the same files, what they may be after a loss of power in a sync: all
        syncs before have ended. unit None: nothing that came later."""
        moment = next(i for i, sync in enumerate(self.syncs) if sync[0] == at)
        for name in FILES:
            last = max((s[0] for s in self.syncs[:moment] if s[1] == name), default=None)
            data = bytearray(self.file(last, name) if last is not None else b"")
            later = self.file(rng.choice([s[0] for s in self.syncs[: moment + 1] if last is None or s[0] >= last]), name)
            if unit:
                data.extend(bytes(max(0, len(later) - len(data))))
                for off in range(0, len(later), unit):
                    if data[off : off + unit] != later[off : off + unit] and rng.random() < 0.5:
                        data[off : off + unit] = later[off : off + unit]
            with open(os.path.join(directory, name), "r+b") as file:
                file.truncate(0)
                file.write(data)
        return self.syncs[moment][2]


class Model:
    """What each tensor of a client may hold, by the answers up to a moment; what was asked and not answered by then may be
    done, or not, or be lost."""

    def __init__(self):
        self.requests = []  # what, when it was sent, when it was answered

    def at(self, moment, until=None):
        """At some time between the moment and `until`."""
        tensors, doubtful = {}, []
        for op, sent, answered in self.requests:
            if answered is not None and answered < moment:
                assert not doubtful
                self.do(tensors, op)
            elif sent < (until or moment):
                doubtful.append(op)
        return tensors, doubtful

    @staticmethod
    def do(tensors, op):
        kind, name, *rest = op
        if kind == "alloc":
            tensors[name] = {"values": [None] * N, "sealed": False, "grants": {}}
        elif kind == "free":
            del tensors[name]
        elif kind == "rename":
            tensors[rest[0]] = tensors.pop(name)
        elif kind == "seal":
            tensors[name]["sealed"] = True
        elif kind == "grant":
            uid, access = rest
            tensors[name]["grants"][uid] = access
            if access == pb.ACCESS_NONE:
                del tensors[name]["grants"][uid]
        elif kind == "fill":
            tensors[name]["values"] = [rest[0]] * N
        elif kind == "write":
            first, data = rest
            tensors[name]["values"][first : first + len(data)] = list(data)
        elif kind == "copy":
            tensors[name]["values"] = list(tensors[rest[0]]["values"])
        elif kind == "add":
            tensors[name]["values"] = [min(127, a + b) for a, b in zip(tensors[name]["values"], tensors[rest[0]]["values"])]
        elif kind == "list":
            for each in rest[0]:
                Model.do(tensors, each)


def request_of(op):
    kind, name, *rest = op
    if kind == "list":
        return submit(*map(request_of, rest[0]))
    return {
        "alloc": lambda: alloc(name, SHAPE, pb.FX8, frac_bits=3),
        "free": lambda: free(name),
        "rename": lambda: rename(name, rest[0]),
        "seal": lambda: seal(name),
        "grant": lambda: grant(name, *rest),
        "fill": lambda: fill(name, rest[0]),
        "write": lambda: write(name, rest[1], rest[0]),
        "copy": lambda: copy(name, rest[0]),
        "add": lambda: run(pb.ELTWISE_ADD, in1=name, in2=rest[0], out=name),
        "compact": lambda: {"compact": pb.CompactRequest()},
    }[kind]()


class RandomClient:
    def __init__(self, client, rng, prefix):
        self.client, self.rng, self.prefix = client, rng, prefix
        self.model, self.now, self.made = Model(), {}, 0

    def next(self):
        rng, names = self.rng, sorted(self.now)
        full = [n for n in names if None not in self.now[n]["values"]]
        open_ = [n for n in names if not self.now[n]["sealed"]]
        if len(names) < 3 or (len(names) < 7 and rng.random() < 0.25):
            self.made += 1
            return "alloc", f"{self.prefix}{self.made}"
        kinds = ["free", "rename", "compact", "grant"] + ["fill", "write"] * 3
        if full and open_:
            kinds += ["copy", "add", "list"] * 2
        if full:
            kinds.append("seal")
        kind = rng.choice(kinds)
        if kind == "seal":
            return "seal", rng.choice(full)
        if kind == "free":
            return "free", rng.choice(names)
        if kind == "grant":
            access = rng.choice((pb.ACCESS_NONE, pb.ACCESS_READ, pb.ACCESS_WRITE))
            return "grant", rng.choice(names), rng.choice(GUESTS), access
        if kind == "rename":
            self.made += 1
            return "rename", rng.choice(names), f"{self.prefix}{self.made}"
        if kind == "compact" or not open_:
            return ("compact", "")
        x, value = rng.choice(open_), rng.randrange(1, 40)
        if kind == "write":
            first = rng.randrange(N - 8)
            return "write", x, first, bytes([value]) * rng.randrange(1, N - first)
        if kind == "copy" and full != [x]:
            return "copy", x, rng.choice([y for y in full if y != x])
        if kind == "add" and x in full:
            return "add", x, rng.choice(full)
        if kind == "list":
            return "list", "", (("fill", x, value), ("write", x, 3, b"\x11" * 20))
        return "fill", x, value

    def step(self):
        op = self.next()
        entry = [op, time.monotonic_ns(), None]
        self.model.requests.append(entry)
        answer = self.client.ask(**request_of(op))
        assert answer.status == pb.OK, (SEED, op, answer)
        entry[2] = time.monotonic_ns()
        Model.do(self.now, op)


class Snapshot:
    """A copy of the state, taken beside the random clients, and when it was."""

    def __init__(self, client, directory):
        self.directory = directory
        os.mkdir(directory, 0o700)
        self.asked = time.monotonic_ns()
        number = client.call(snapshot=pb.SnapshotRequest()).snapshot.snapshot
        self.answered = time.monotonic_ns()
        last = False
        while not last:
            piece = client.call(snapshot=pb.SnapshotRequest(snapshot=number)).snapshot
            with open(os.open(os.path.join(directory, piece.file), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
                file.truncate(piece.file_bytes)
                file.seek(piece.offset)
                file.write(piece.data)
            last = piece.last


class Losses(StateTestCase):
    options = ("--npus", "8", "--npu-bytes", "16384")

    def setUp(self):
        self.rng = random.Random(SEED)
        self.directory = tempfile.mkdtemp(prefix="npumem-state-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.stack = None
        self.addCleanup(self.stop)

    def record(self, number, steps, *options):
        """A daemon whose syncs are copied, what its clients saw, and a snapshot that was taken meanwhile."""
        self.state = os.path.join(self.directory, f"state{number}")
        copies = os.path.join(self.directory, f"copies{number}")
        os.mkdir(copies)
        settings = {"LD_PRELOAD": os.environ["NPUMEM_COPY_SYNCS"], "SHIM_DIR": self.state, "SHIM_OUT": copies}
        os.environ.update(settings)
        self.start(*boot(1), *options)
        for key in settings:
            del os.environ[key]
        clients = [RandomClient(self.client(), random.Random(self.rng.random()), prefix) for prefix in "abc"]
        compactor = self.client()
        threads = [threading.Thread(target=lambda c=c: [c.step() for _ in range(steps)]) for c in clients]
        for thread in threads:
            thread.start()
        snapshot = None
        while any(thread.is_alive() for thread in threads):
            compactor.call(compact=pb.CompactRequest())
            if not snapshot and len(clients[0].model.requests) > steps // 2:
                snapshot = Snapshot(compactor, os.path.join(self.directory, f"snapshot{number}"))
            time.sleep(0.002)
        self.kill()
        return Moments(copies), [client.model for client in clients], snapshot

    def bytes_of(self, name):
        with open(os.path.join(self.state, name), "rb") as file:
            return file.read()

    def check(self, tensors, doubtful, served, client):
        """One client's tensors: what was answered is there, but for what a doubtful request was about to change."""
        touched = set()
        for op in doubtful:
            touched |= {op[1], *(x for x in op[2:] if isinstance(x, str))}
            touched |= {each[1] for each in (op[2] if op[0] == "list" else ())}
        for name, tensor in tensors.items():
            if name in touched:
                continue
            self.assertIn(name, served, (SEED, "gone", name))
            self.assertEqual(served[name].sealed, tensor["sealed"], (SEED, name))
            self.assertEqual({g.uid: g.access for g in served[name].grants}, tensor["grants"], (SEED, name))
            values = tensor["values"]
            answer = client.pipeline(read(name))[0]
            if None in values:
                self.assertEqual(answer.status, pb.FAILED_PRECONDITION, (SEED, name))
                for first, value in enumerate(values):
                    if value is not None and (first == 0 or values[first - 1] is None):
                        answer = client.pipeline(read(name, first, 1))[0]
                        self.assertEqual((answer.status, answer.done.data), (pb.OK, bytes([value])), (SEED, name))
            else:
                self.assertEqual((answer.status, answer.done.data), (pb.OK, bytes(values)), (SEED, name, doubtful))

    def check_guests(self, tensors, served):
        """Other uids read what was granted to them, and nothing else."""
        for uid in () if os.geteuid() else GUESTS:
            guest = self.client(uid)
            for name in sorted(set(tensors) & set(served))[:4]:
                may = uid in {g.uid for g in served[name].grants}
                status = guest.pipeline(read(f"0:{name}"))[0].status
                self.assertEqual(status != pb.NOT_FOUND, may, (SEED, uid, name))

    def look_after_a_loss(self, models, *moments):
        self.start(*boot(2), "--durable")
        client = self.client()
        served = {t.name: t for t in client.tensors()}
        for model in models:
            tensors, doubtful = model.at(*moments)
            self.check(tensors, doubtful, served, client)
            self.check_guests(tensors, served)
        self.restart(*boot(2), "--durable", terminate=self.rng.random() < 0.5)
        self.assertEqual({t.name for t in self.client().tensors()}, set(served))

    def test_durable(self):
        n_losses = n_snapshots = number = 0
        while n_losses < LOSSES:
            number += 1
            moments, models, snapshot = self.record(number, 25, "--durable")
            some = self.rng.sample(moments.syncs[5:], min(20, len(moments.syncs) - 5))
            for at, *_ in some:
                unit = self.rng.choice([None, PAGE, SECTOR])
                moment = moments.make(at, self.state, self.rng, unit)
                with self.subTest(seed=SEED, number=number, at=at, unit=unit):
                    self.look_after_a_loss(models, moment)
                self.stop()
                n_losses += 1
            if snapshot:
                self.state = snapshot.directory
                with self.subTest(seed=SEED, number=number, snapshot=True):
                    self.look_after_a_loss(models, snapshot.asked, snapshot.answered)
                self.stop()
                n_snapshots += 1
            for name in os.listdir(self.directory):
                shutil.rmtree(os.path.join(self.directory, name), ignore_errors=True)
        print(f"{n_losses} losses with --durable, {n_snapshots} snapshots, seed {SEED}")

    def test_plain(self):
        """All data is lost, none of it is another's, and the next two starts succeed."""
        n_losses, number = 0, 0
        while n_losses < PLAIN:
            number += 1
            self.state = os.path.join(self.directory, f"plain{number}")
            self.start(*boot(1))
            client = RandomClient(self.client(), self.rng, "a")
            before = None
            for i in range(40):
                client.step()
                if i == 25:
                    before = {name: self.bytes_of(name) for name in FILES}
                if i == 30 and number % 4 == 0:
                    snapshot = Snapshot(client.client, os.path.join(self.directory, f"snapshot{number}"))
            self.kill()
            client_model = client.model
            for name in FILES:
                path = os.path.join(self.state, name)
                with open(path, "r+b") as file:
                    now = file.read()
                    for off in range(PAGE, min(len(now), len(before[name])), PAGE):
                        if self.rng.random() < 0.5:
                            file.seek(off)
                            file.write(before[name][off : off + PAGE])
            with self.subTest(seed=SEED, number=number):
                self.start(*boot(2))
                client = self.client()
                for tensor in client.tensors():
                    answer = client.pipeline(read(tensor.name))[0]
                    self.assertIn(answer.status, (pb.DATA_LOST, pb.FAILED_PRECONDITION), (SEED, tensor))
                names = [tensor.name for tensor in client.tensors()]
                other = self.client(1002)
                for i in range(100):
                    answer = other.ask(**alloc(f"n{i}", SHAPE))
                    if answer.status != pb.OK:
                        break
                    self.assertEqual(other.pipeline(read(f"n{i}"))[0].status, pb.FAILED_PRECONDITION)
                self.restart(*boot(2), terminate=True)
                self.restart(*boot(3), terminate=self.rng.random() < 0.5)
                self.assertLessEqual(set(names), {t.name for t in self.client().tensors()})
                self.stop()
            if number % 4 == 0:
                self.state = snapshot.directory
                with self.subTest(seed=SEED, number=number, snapshot=True):
                    self.look_after_a_loss([client_model], snapshot.asked, snapshot.answered)
                self.stop()
            shutil.rmtree(self.directory)
            os.mkdir(self.directory)
            n_losses += 1
        print(f"{n_losses} losses, seed {SEED}")


if __name__ == "__main__":
    unittest.main()
