"""Clients at full load, pipelining by name, and a daemon that is killed at random moments: every request is answered
once, as if nothing had happened, but for what a kill cut off and says so.

NPUMEM_KILLS: how many kills (20); NPUMEM_SEED: the random seed."""

import collections
import os
import random
import socket
import threading
import time
import unittest

from state import StateTestCase, rename, seal, token_of, view
from support import SECONDS, Client, HungUp, alloc, copy, fill, frame, free, pb, read, run, submit

KILLS = int(os.environ.get("NPUMEM_KILLS", "20"))
SEED = int(os.environ.get("NPUMEM_SEED", str(random.SystemRandom().randrange(1 << 30))))
SHAPE = (4, 64, 16, 128)  # so large that the daemon is at work most of the time
N = 4 * 64 * 16 * 128
READ = 64  # bytes of a read
DEPTH = 32
LOST, UNWRITTEN = "lost", "unwritten"
REFUSED = {LOST: pb.DATA_LOST, UNWRITTEN: pb.FAILED_PRECONDITION}


class Model:
    """What a client's own tensors can hold: each a set of values, of which more than one where a kill cut something off."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.tensors = {}
        self.sealed = set()
        self.made = 0

    def next(self, rng):
        """A call, and what checks its answer. The model of the time when it is sent knows which names there are."""
        names = sorted(self.tensors)
        if len(names) < 3 or (len(names) < 6 and rng.random() < 0.2):
            self.made += 1
            name = f"{self.prefix}.{self.made}"
            self.tensors[name] = True
            return alloc(name, SHAPE, pb.FX8, frac_bits=3), ("alloc", name)
        x, y = rng.sample(names, 2)
        value = rng.randrange(1, 60)
        kind = rng.choices(("fill", "read", "copy", "add", "submit", "free", "seal", "view", "rename"), (6, 8, 4, 3, 3, 1, 0.3, 0.5, 0.5))[0]
        if kind in ("free", "view"):
            if kind == "free":
                del self.tensors[x]
                return free(x), ("free", x)
            return view("", x, (0, 0, 0, 0), (1, 4, 8, 32)), ("view", x)
        if kind == "rename":
            self.made += 1
            name = f"{self.prefix}.{self.made}"
            self.tensors[name] = self.tensors.pop(x)
            return rename(x, name), ("rename", x, name)
        return {
            "fill": (fill(x, value), ("fill", x, value)),
            "read": (read(x, rng.randrange(0, N - READ), READ), ("read", x)),
            "copy": (copy(x, y), ("copy", x, y)),
            "add": (run(pb.ELTWISE_ADD, in1=x, in2=y, out=x), ("add", x, y)),
            "submit": (submit(copy(y, x), fill(x, value)), ("submit", x, y, value)),
            "seal": (seal(x), ("seal", x)),
        }[kind]


class Check:
    """The same tensors as the answers, in the order of the requests, say that they are."""

    def __init__(self, is_durable):
        self.is_durable = is_durable
        self.values = {}
        self.sealed = set()
        self.missing = set()  # names that were to be made by what was given up
        self.seen = {}

    def answer(self, op, answer, was_cut):
        kind, x, *rest = op
        self.seen[kind] = self.seen.get(kind, 0) + 1
        if answer.status == pb.ABORTED:
            was_running = any(field.key == "deaths" for field in answer.fields)
            self.require(was_cut and (was_running or self.is_durable), answer)
            self.was_given_up(kind, x, *rest)
        elif self.missing & ({x} if kind in ("alloc", "rename") else {x, *rest}):
            self.require(answer.status == pb.NOT_FOUND, op, answer)
            self.missing |= {rest[0]} if kind == "rename" else set()
        else:
            getattr(self, kind)(answer, was_cut, x, *rest)

    def was_given_up(self, kind, x, *rest):
        """The daemon was killed twice while it ran; or its answer waited for the disk when what it read was changed. What
        it would have written is as it was, or written, or lost."""
        before = set(self.values.get(x, ()))
        if kind in ("alloc", "rename"):
            self.missing.add(rest[0] if rest else x)
        elif kind == "free":
            del self.values[x]
        elif kind == "fill":
            self.values[x] |= {LOST, *rest}
        elif kind == "copy":
            self.values[x] |= {LOST} | self.values[rest[0]]
        elif kind == "add":
            sums = [a + b for a in before for b in self.values[rest[0]] if {type(a), type(b)} == {int}]
            self.values[x] |= {LOST} | {min(127, sum) for sum in sums}
        elif kind == "submit":
            self.values[rest[0]] |= {LOST} | before
            self.values[x] |= {LOST, rest[1]}

    def require(self, condition, *what):
        assert condition, (SEED, *what)

    def refusal_of(self, answer, *names):
        """Reads of these: whether it was refused, as it had to be; what is known now is remembered."""
        for name in names:
            self.require(self.values[name], name)
        if answer.status == pb.OK:
            for name in names:
                self.values[name] -= {LOST, UNWRITTEN}
                self.require(self.values[name], "read what is not there", name, answer)
            return False
        possible = {REFUSED[v] for name in names for v in self.values[name] if v in REFUSED}
        self.require(answer.status in possible, names, [self.values[n] for n in names], answer)
        return True

    def refused_as_sealed(self, answer, was_cut, name):
        if name in self.sealed:
            # A refusal leaves nothing behind. Where its answer waited for the disk, it may be gone by now.
            other = pb.NOT_FOUND if was_cut and self.is_durable else pb.FAILED_PRECONDITION
            self.require(answer.status in (pb.FAILED_PRECONDITION, other), answer)
        return name in self.sealed

    def alloc(self, answer, was_cut, x):
        self.require(answer.status == pb.OK and (was_cut or answer.allocated.tensors[0].name == x), answer)
        self.values[x] = {UNWRITTEN}

    def free(self, answer, _, x):
        self.require(answer.status == pb.OK and answer.freed.tensors >= 1, answer)
        del self.values[x]
        self.sealed.discard(x)

    # A tensor is described as it is when the request is answered again: a later rename may have been done by then.
    def rename(self, answer, was_cut, x, name):
        self.require(answer.status == pb.OK and (was_cut or answer.tensor.name in (name, "")), answer)
        self.values[name] = self.values.pop(x)
        if x in self.sealed:
            self.sealed ^= {x, name}

    def view(self, answer, was_cut, x):
        self.require(answer.status == pb.OK and (was_cut or answer.tensor.base_name in (x, "")), answer)

    def seal(self, answer, _, x):
        if not self.refusal_of(answer, x):
            self.sealed.add(x)

    def fill(self, answer, was_cut, x, value):
        if not self.refused_as_sealed(answer, was_cut, x):
            self.require(answer.status == pb.OK, answer)
            self.values[x] = {value}

    def read(self, answer, _, x):
        if not self.refusal_of(answer, x):
            value = answer.done.data[0]
            self.require(answer.done.data == bytes([value]) * READ, "torn", x)
            self.require(value in self.values[x], x, value, self.values[x])
            self.values[x] = {value}

    def copy(self, answer, was_cut, x, y):
        if self.refused_as_sealed(answer, was_cut, x):
            return
        if self.refusal_of(answer, y):
            self.was_under_way(was_cut, x)
        else:
            self.values[x] = set(self.values[y])

    def was_under_way(self, was_cut, *names):
        """What it would have written was noted, and a kill does not know that it would have been refused."""
        for name in names if was_cut else ():
            self.values[name] |= {LOST}

    def add(self, answer, was_cut, x, y):
        if self.refused_as_sealed(answer, was_cut, x):
            return
        if answer.status != pb.OK:
            self.was_under_way(was_cut, x)
        if not self.refusal_of(answer, x, y):
            self.values[x] = {min(127, a + b) for a in self.values[x] for b in self.values[y]}

    def submit(self, answer, was_cut, x, y, value):
        before = set(self.values[x])
        if self.refused_as_sealed(answer, was_cut, y):
            return
        if was_cut and answer.status == pb.DATA_LOST:
            # The fill was cut off, and the copy, which was made, cannot be made again.
            self.values[y] |= before
        if answer.status != pb.OK:
            self.was_under_way(was_cut, x, y)
        if self.refusal_of_submit(answer, x):
            return
        self.values[y] = before - {LOST, UNWRITTEN}
        if x not in self.sealed:
            self.values[x] = {value}

    def refusal_of_submit(self, answer, x):
        if x in self.sealed and answer.status == pb.FAILED_PRECONDITION and len(answer.submitted.done) == 1:
            return False
        return self.refusal_of(answer, x)


class Worker(threading.Thread):
    def __init__(self, test, number):
        super().__init__()
        self.test, self.rng = test, random.Random(SEED + number)
        self.model, self.check = Model(f"w{number}"), Check("--durable" in test.options)
        self.pending = {}  # id: frame, op, answer, whether it was sent to a daemon that is gone
        self.token, self.client, self.next_id = None, None, 1000
        self.n_answers, self.problem, self.is_over = 0, None, False
        self.history = collections.deque(maxlen=60)

    def connect(self):
        end = time.monotonic() + SECONDS
        while True:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                sock.connect(self.test.path)
                client = Client(sock=sock)
                if self.token is None:
                    self.token = token_of(client)
                else:
                    answer = client.ask(resume=pb.ResumeRequest(token=self.token))
                    if answer.status == pb.UNAVAILABLE:
                        raise HungUp
                    assert answer.status == pb.OK, answer
                self.client = client
                return
            except (OSError, HungUp):
                sock.close()
                assert time.monotonic() < end, "no daemon"
                time.sleep(0.002)

    def send(self, ids, again):
        frames = b""
        for number in ids:
            call, entry = self.pending[number]["call"], self.pending[number]
            frames += frame(pb.Request(id=number, again=again, answered_below=min(self.pending), **call))
            entry["cut"] |= again
        self.client.sock.sendall(frames)

    def take(self, answer):
        if answer.id not in self.pending:
            assert answer.id < 1000, answer
            return
        assert "answer" not in self.pending[answer.id], "answered twice"
        self.pending[answer.id]["answer"] = answer
        while self.pending and "answer" in (first := self.pending[min(self.pending)]):
            status = pb.Status.Name(first["answer"].status)
            self.history.append(f"{min(self.pending)} {first['op']} {status}{' again' * first['cut']}")
            self.check.answer(first["op"], first["answer"], first["cut"])
            del self.pending[min(self.pending)]
            self.n_answers += 1

    def drain(self):
        """What the daemon had sent before it was killed."""
        try:
            while True:
                self.take(self.client.receive())
        except (HungUp, OSError):
            self.client.close()

    def waiting(self):
        return [number for number, entry in self.pending.items() if "answer" not in entry]

    def step(self):
        new = []
        while len(self.pending) < DEPTH and not self.is_over:
            call, op = self.model.next(self.rng)
            self.pending[self.next_id] = {"call": call, "op": op, "cut": False}
            new.append(self.next_id)
            self.next_id += 1
        try:
            self.send(new, False)
            while len(self.pending) > (0 if self.is_over else DEPTH // 2):
                self.take(self.client.receive())
        except (HungUp, OSError):
            self.drain()
            while True:
                self.connect()
                try:
                    self.send(self.waiting(), True)
                    return
                except OSError:
                    self.drain()

    def run(self):
        try:
            self.connect()
            while not self.is_over or self.pending:
                self.step()
            self.client.close()
        except BaseException as problem:  # pylint: disable=broad-except
            self.problem = problem
            self.history.extend(f"{number} {entry['op']} pending" for number, entry in self.pending.items())


class Kills(StateTestCase):
    options = ("--npus", "16", "--npu-bytes", str(4 << 20), "--resume-seconds", "60")
    WORKERS = 4

    def test_every_request_is_answered_once(self):
        self.path = self.daemon.path
        rng = random.Random(SEED)
        workers = [Worker(self, number) for number in range(self.WORKERS)]
        for worker in workers:
            worker.start()
        for kill in range(KILLS):
            time.sleep(rng.uniform(0.01, 0.15))
            if any(worker.problem for worker in workers):
                break
            self.restart(terminate=kill % 8 == 7)
        for worker in workers:
            worker.is_over = True
        for worker in workers:
            worker.join()
        for worker in workers:
            if worker.problem:
                print(*worker.history, sep="\n")
                raise AssertionError(f"seed {SEED}, worker {worker.model.prefix}") from worker.problem
        n = sum(worker.n_answers for worker in workers)
        self.assertGreater(n, KILLS * 10)
        print(f"{KILLS} kills, seed {SEED}: {n} answers")


class DurableKills(Kills):
    """What was answered is on the disk, and of what was not some may be gone."""

    options = (*Kills.options, "--durable")


if __name__ == "__main__":
    unittest.main()
