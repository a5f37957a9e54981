"""A record that begins with a snapshot: of a device at work, replayed on what there was at that moment.

NPUMEM_RECORDS says how many are taken under load: 3 without."""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
import unittest

from state import StateTestCase, grant, seal, token_of, view
from support import (NPUMEMCTL, NPUMEMD, SECONDS, Daemon, TestCase, alloc, copy, dims, fill, frame, free, pb, read, ref, run,
                     submit, wait_for)
from test_record import Memory, read_record, write_record

ROUNDS = int(os.environ.get("NPUMEM_RECORDS", "3"))
ALICE = 12001
needs_root = unittest.skipIf(os.geteuid(), "root alone can be other uids")


class RecordTestCase(StateTestCase):
    def setUp(self):
        super().setUp()
        self.n_records = 0

    def begin(self, *options):
        """Of a record that is being taken: its process, what it says, its file and its snapshot."""
        self.n_records += 1
        file, copied = (os.path.join(self.directory, f"{name}{self.n_records}") for name in ("record", "copy"))
        log = file + ".log"
        with open(log, "wb") as out:
            process = subprocess.Popen([NPUMEMCTL, "--socket", self.daemon.path, "record", *(options or ("--snapshot", copied)), file],
                                       stdout=out, stderr=out)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def text():
            with open(log, encoding="utf-8") as said:
                return said.read()

        wait_for(lambda: "recording" in text() or process.poll() is not None)
        return process, text, file, copied

    def end(self, process, text):
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(SECONDS), 0, text())

    def replay(self, *words, environment=()):
        done = subprocess.run([NPUMEMCTL, "--json", "replay", *words], capture_output=True, text=True, timeout=SECONDS, check=False,
                              env={**os.environ, "NPUMEMD": NPUMEMD, "TMPDIR": self.directory, **dict(environment)})
        self.assertEqual([name for name in os.listdir(self.directory) if name.startswith("npumem-replay")], [])
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    def same(self, file, copied):
        code, result, error = self.replay("--snapshot", copied, file)
        self.assertEqual((code, result and result["differences"]), (0, 0), error)
        case = result["cases"][0]
        self.assertEqual((case["same_geometry"], case["npu"]), (True, -1))
        return result

    def refused(self, file, *options, words):
        code, _, error = self.replay(*options, file)
        self.assertNotEqual(code, 0)
        for word in words:
            self.assertIn(word, error)


class Beginning(RecordTestCase):
    def populate(self, client):
        client.call(**alloc("a", (1, 8, 1, 4096)))
        client.call(**fill("a", 5))
        client.call(**alloc("b", (1, 8, 1, 4096)))
        client.call(**copy("b", "a"))
        client.call(**view("part", "a", (0, 2, 0, 100), (1, 5, 1, 200)))
        client.call(**alloc("hole"))
        client.call(**alloc("behind"))
        client.call(**fill("behind", 3))
        client.call(**free("hole"))

    def test_what_was_there_is_used_and_changed(self):
        client = self.client()
        self.populate(client)
        own = client.alloc("", (1, 8, 1, 64))
        client.call(**fill(own, 9))
        process, text, file, copied = self.begin()
        client.call(**fill("part", 6))
        self.assertEqual(client.read(own.handle), bytes([9] * 512))
        client.call(**copy("b", "a"))
        client.call(**free("a"))
        client.call(**alloc("a", (1, 3, 1, 100)))
        client.call(**seal("behind"))
        self.assertEqual(client.ask(**fill("behind", 1)).status, pb.FAILED_PRECONDITION)
        client.call(compact=pb.CompactRequest())
        client.call(**read("b"))
        self.end(process, text)
        result = self.same(file, copied)
        self.assertEqual(result["skipped"], 0)
        entries = read_record(file)
        before = [entry for entry in entries if entry.before]
        told = pb.Response.FromString(before[-1].answer).list.tensors
        self.assertEqual([tensor.name for tensor in told], ["a", "b", "part", "", "behind"])
        self.assertEqual(list(before[-1].handles), [tensor.handle for tensor in told])
        self.assertNotEqual(entries[-1].end.snapshot, 0)
        # As often as one likes: the snapshot stays as it is.
        self.same(file, copied)

    def test_sessions_with_and_without_tokens_end_as_they_did(self):
        clients = [self.client() for _ in range(4)]
        tensors = [client.alloc("", (1, 8, 1, 64)) for client in clients[:3]]
        token_of(clients[1])
        for i, tensor in enumerate(tensors):
            clients[i].call(**fill(tensor, i + 1))
        process, text, file, copied = self.begin()
        # One asks before its end, one does not, and a third one stays.
        self.assertEqual(clients[0].read(tensors[0].handle), bytes([1] * 512))
        clients[0].close()
        clients[1].close()
        clients[3].call(**alloc("named"))
        wait_for(lambda: len(clients[2].tensors()) == 2)
        self.assertEqual(clients[2].read(tensors[2].handle), bytes([3] * 512))
        self.end(process, text)
        self.same(file, copied)

    def test_system_memory_that_was_shared_before(self):
        client = self.client()
        memory = Memory(client, 4096)
        client.call(**alloc("t", (1, 8, 1, 64)))
        process, text, file, copied = self.begin()
        memory.map[:512] = bytes(range(256)) * 2
        client.call(write=pb.WriteRequest(tensor=ref("t"), segment=memory.id))
        client.call(read=pb.ReadRequest(tensor=ref("t"), segment=memory.id, segment_offset=1024))
        self.end(process, text)
        self.same(file, copied)

    @needs_root
    def test_other_uids(self):
        alice = self.client(ALICE)
        alice.call(**alloc("hers"))
        alice.call(**fill("hers", 7))
        own = alice.alloc("")
        alice.call(**fill(own, 8))
        alice.call(**grant("hers", 12002, pb.ACCESS_READ))
        process, text, file, copied = self.begin()
        alice.call(**copy(own, "hers"))
        self.assertEqual(self.client(12002).call(**read(f"{ALICE}:hers")).done.data, bytes([7] * 128))
        self.assertEqual(self.client(12003).ask(**read(f"{ALICE}:hers")).status, pb.NOT_FOUND)
        alice.close()
        wait_for(lambda: self.n_tensors() == 1)
        self.end(process, text)
        self.same(file, copied)

    def test_after_a_restart(self):
        """Sessions that come back, and what they ask again, which is not done again."""
        client = self.client()
        token = token_of(client)
        own = client.alloc("")
        client.call(**fill(own, 3))
        client.call(**alloc("kept"))
        last = client.id
        gone = self.client()
        token_of(gone)
        gone.alloc("")
        self.restart()
        process, text, file, copied = self.begin()
        client = self.client()
        client.id = 1 << 20
        client.call(resume=pb.ResumeRequest(token=token))
        client.id = last - 1
        client.sock.sendall(frame(pb.Request(id=last, again=True, **alloc("kept"))))
        self.assertEqual(client.receive().status, pb.OK)
        client.id = 1 << 21
        self.assertEqual(client.read(own.handle), bytes([3] * 128))
        client.call(**free(own))
        self.end(process, text)
        self.same(file, copied)
        entries = read_record(file)
        recovery = next(entry.recovery for entry in entries if entry.HasField("recovery"))
        self.assertEqual((recovery.tensors, recovery.sessions, recovery.cut, recovery.was_closed), (3, 2, 0, False))
        with open(file, "rb") as whole:
            self.assertNotIn(token, whole.read())
        returns = [entry for entry in entries if entry.request == bytes((0xCA, 3, 0))]
        self.assertEqual(len(returns), 1)
        self.assertIn(returns[0].session, [entry.session for entry in entries if entry.before])

    def test_many_tensors(self):
        client = self.client()
        for i in range(300):
            client.call(**alloc(f"t{i}"))
        client.call(**free(*(f"t{i}" for i in range(0, 300, 3))))
        process, text, file, copied = self.begin()
        client.call(**free("t1"))
        self.end(process, text)
        self.same(file, copied)
        told = [entry for entry in read_record(file) if entry.before and entry.answer]
        self.assertEqual(sum(len(entry.handles) for entry in told), 200)


class WhileItBegins(RecordTestCase):
    """Other requests run while the tensors of the moment are recorded; what they do is in the record."""

    options = ("--npus", "8", "--npu-bytes", str(4 << 20))
    N_TENSORS, AT_ONCE = 3000, 50

    def some(self, rng, name=""):
        def one(i):
            spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 1, 1, rng.choice((8, 12, 16, 100, 128, 256))), layout=pb.COMPACT)
            return pb.Allocation(name=name and f"{name}{i}", spec=spec)

        return {"alloc": pb.AllocRequest(tensors=[one(i) for i in range(self.AT_ONCE)])}

    def populate(self, rng, client):
        """Handles of tensors that lie in no order, between free blocks in no order."""
        answers = client.pipeline(*(self.some(rng) for _ in range(self.N_TENSORS // self.AT_ONCE)))
        handles = [tensor.handle for answer in answers for tensor in answer.allocated.tensors]
        rng.shuffle(handles)
        for _ in range(self.N_TENSORS // self.AT_ONCE // 2):
            client.call(**free(*handles[: self.AT_ONCE]))
            del handles[: self.AT_ONCE]
        return handles

    def change(self, rng, client, handles):
        gone = handles[: self.AT_ONCE]
        del handles[: self.AT_ONCE]
        answers = client.pipeline(free(*gone), fill(rng.choice(handles), 1), self.some(rng))
        self.assertEqual([answer.status for answer in answers], [pb.OK] * 3)
        handles += [tensor.handle for tensor in answers[2].allocated.tensors]

    def test_what_is_freed_and_allocated_meanwhile(self):
        # A busy machine may keep this process from asking.
        self.assertTrue(any(self.runs_meanwhile(f"named{n}.") for n in range(5)), "nothing ran meanwhile")

    def runs_meanwhile(self, name):
        seed = int(os.environ.get("NPUMEM_SEED", time.time_ns() % 10**9))
        rng = random.Random(seed)
        clients = [self.client() for _ in range(4)]
        token_of(clients[0])
        clients[3].call(**self.some(rng, name))
        handles = [self.populate(rng, client) for client in clients]
        begun = []
        beginning = threading.Thread(target=lambda: begun.append(self.begin()))
        beginning.start()
        # Each client frees what it had first, and last what it allocates here.
        while beginning.is_alive():
            for client, own in zip(clients, handles):
                self.change(rng, client, own)
        beginning.join()
        process, text, file, copied = begun[0]
        # What a session frees while others allocate is not replayed in the same order.
        for client in clients[:3]:
            n_sessions = clients[3].call(stat=pb.StatRequest()).stat.sessions
            client.close()
            wait_for(lambda n=n_sessions: clients[3].call(stat=pb.StatRequest()).stat.sessions < n)
            self.change(rng, clients[3], handles[3])
        self.end(process, text)
        self.same(file, copied)
        entries = read_record(file)
        told = [handle for entry in entries if entry.before for handle in entry.handles]
        made = [handle for entry in entries if not entry.before for handle in entry.handles]
        requests = [pb.Request.FromString(entry.request) for entry in entries if entry.request and not entry.part]
        freed = [tensor.handle for request in requests for tensor in request.free.tensors]
        self.assertEqual(len(told + made), len(set(told + made)), seed)
        self.assertLessEqual(set(freed), set(told + made), seed)
        numbers = [entry.number for entry in entries if entry.before]
        clients[3].close()
        with self.daemon.client() as client:
            wait_for(lambda: client.stat().sessions == 1)
        return max(numbers) > len(numbers)


class Refusals(RecordTestCase):
    def setUp(self):
        super().setUp()
        self.client().call(**alloc("t"))

    def test_without_a_snapshot_the_device_is_empty(self):
        process, text, *_ = self.begin("--log")
        self.assertEqual(process.wait(SECONDS), 2)
        log = os.path.join(self.directory, "plain")
        done = subprocess.run([NPUMEMCTL, "--socket", self.daemon.path, "record", log], capture_output=True, text=True, timeout=SECONDS,
                              check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("or begin with a snapshot", done.stderr)
        self.assertFalse(os.path.exists(log))

    def test_which_snapshot_it_is(self):
        process, text, file, copied = self.begin()
        self.client().call(**fill("t", 1))
        self.end(process, text)
        other_process, other_text, other_file, other = self.begin()
        self.end(other_process, other_text)
        self.same(file, copied)
        self.refused(file, words=["--snapshot DIR must name"])
        self.refused(file, "--snapshot", other, words=["another snapshot"])
        self.refused(other_file, "--snapshot", copied, words=["another snapshot"])
        self.refused(file, "--snapshot", self.directory, words=["not a snapshot"])
        self.refused(file, "--snapshot", copied, "--npus", "4", words=["--npus"])
        self.refused(file, "--snapshot", copied, "--socket", self.daemon.path, words=["of its own"])

    def test_one_that_is_damaged_or_used(self):
        process, text, file, copied = self.begin()
        self.end(process, text)
        damaged = copied + "-damaged"
        shutil.copytree(copied, damaged)
        with open(os.path.join(damaged, "memory"), "r+b") as memory:
            memory.seek(10000)
            memory.write(b"\1")
        self.refused(file, "--snapshot", damaged, words=["memory: is damaged", "did not start"])
        used = copied + "-used"
        shutil.copytree(copied, used)
        directory = used + "-daemon"
        os.mkdir(directory)
        with Daemon("--state-dir", used, *self.options, directory=directory):
            pass
        self.refused(file, "--snapshot", used, words=["none any more"])

    def test_a_record_of_an_empty_device_takes_none(self):
        process, text, file, copied = self.begin()
        self.end(process, text)
        self.client().call(**free("t"))
        plain = os.path.join(self.directory, "plain")
        with open(plain + ".log", "wb") as out:
            process = subprocess.Popen([NPUMEMCTL, "--socket", self.daemon.path, "record", plain], stderr=out)
        wait_for(lambda: os.path.getsize(plain + ".log"))
        self.end(process, lambda: "")
        self.refused(plain, "--snapshot", copied, words=["does not begin with a snapshot"])

    def test_one_at_a_time(self):
        process, text, *_ = self.begin()
        second, said, file, copied = self.begin()
        self.assertEqual(second.wait(SECONDS), 1)
        self.assertIn("records already", said())
        self.assertFalse(os.path.exists(copied))
        self.end(process, text)
        client = self.client()
        client.call(snapshot=pb.SnapshotRequest())
        third, said, *_ = self.begin()
        self.assertEqual(third.wait(SECONDS), 1)
        self.assertIn("a snapshot is being taken", said())
        # Nor is anything recorded because of it.
        self.assertEqual(client.ask(record=pb.RecordRequest(action=pb.RECORD_STOP)).status, pb.FAILED_PRECONDITION)

    @needs_root
    def test_another_uid(self):
        other = self.client(ALICE)
        for call in ({"snapshot": pb.SnapshotRequest(record=True)}, {"record": pb.RecordRequest(action=pb.RECORD_WATCH)}):
            self.assertEqual(other.ask(**call).status, pb.PERMISSION_DENIED)

    def test_its_end_needs_all_of_the_snapshot(self):
        """Of a client that goes on without it: the daemon keeps nothing for anybody."""
        client = self.client()
        client.call(snapshot=pb.SnapshotRequest(record=True))
        client.close()
        other = self.client()
        wait_for(lambda: other.ask(snapshot=pb.SnapshotRequest(record=True)).status == pb.OK)

    def test_a_daemon_that_is_killed_ends_it(self):
        process, text, file, copied = self.begin()
        size = os.path.getsize(file)
        self.client().call(**fill("t", 1))
        wait_for(lambda: os.path.getsize(file) > size)
        self.restart()
        self.assertEqual(process.wait(SECONDS), 1, text())
        self.assertRegex(text(), r"the recording ends after entry \d+: the daemon was started again")
        code, result, error = self.replay("--snapshot", copied, file)
        self.assertEqual((code, result["requests"], result["differences"]), (0, 1, 0), error)
        self.refused(file, words=["begins with tensors: --snapshot DIR"])
        # The snapshot is one.
        directory = copied + "-daemon"
        os.mkdir(directory)
        with Daemon("--state-dir", copied, *self.options, directory=directory) as daemon, daemon.client() as client:
            self.assertEqual(client.names(), ["t"])

    def test_what_was_only_looked_at_is_not_replayed(self):
        client = self.client()
        client.call(record=pb.RecordRequest(action=pb.RECORD_WATCH))
        self.client().call(**fill("t", 1))
        stopped = client.call(record=pb.RecordRequest(action=pb.RECORD_STOP)).recorded
        entries = client.call(record=pb.RecordRequest(action=pb.RECORD_TAKE)).recorded.entries
        self.assertTrue(any(entry.before and entry.handles for entry in entries))
        info = client.call(info=pb.InfoRequest()).info
        header = pb.RecordEntry(header=info)
        end = pb.RecordEntry(end=pb.RecordEnd(entries=len(entries), hash=stopped.hash, local=stopped.local))
        file = os.path.join(self.directory, "watched")
        write_record(file, [header, *entries, end])
        self.refused(file, words=["for a report alone"])
        # Nor where something of before is a request as well.
        entries[0].request = pb.Request(id=1, info=pb.InfoRequest()).SerializeToString()
        write_record(file, [header, *entries, end])
        self.refused(file, words=["a request as well"])


class WithoutState(TestCase):
    def test_it_is_refused(self):
        answer = self.client().ask(snapshot=pb.SnapshotRequest(record=True))
        self.assertEqual(answer.status, pb.FAILED_PRECONDITION)
        self.assertIn("--state-dir", answer.message)
        done = subprocess.run([NPUMEMD, "--replay"], capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual((done.returncode, "--replay goes with --state-dir" in done.stderr), (2, True), done.stderr)


class Worker(threading.Thread):
    """Asks all kinds of things of tensors of its own and of one that all share; some of its sessions have tokens."""

    def __init__(self, daemon, index, seed):
        super().__init__()
        self.daemon, self.index = daemon, index
        self.random = random.Random(seed + index)
        self.stop = threading.Event()
        self.rounds = 0
        self.failed = None

    def run(self):
        try:
            while not self.stop.is_set():
                with self.daemon.client() as client:
                    if self.random.random() < 0.5:
                        token_of(client)
                    self.session(client)
        except Exception as error:  # told by the test
            self.failed = error

    def session(self, client):
        own = [client.alloc("", (1, 8, 1, 2048)) for _ in range(3)]
        name = f"n{self.index}"
        client.ask(**alloc(name, (1, 8, 1, 1024)))
        for n in range(self.random.randrange(1, 30)):
            if self.stop.is_set():
                return
            one, other = self.random.sample(own, 2)
            calls = [
                fill(one, n), copy(other, one), fill("shared", n + self.index), read(other, 5, 100),
                view(f"v{self.index}-{n}", one.handle, (0, 0, 0, n), (1, 4, 1, n + 64)), fill(name, n),
                submit(run(pb.ELTWISE_ADD, in1=one, in2=other, out=other), read(other)),
                free(f"v{self.index}-{n}"), free(name), alloc(name, (1, 8, 1, 100 + n)), fill(name, 1), read("shared"),
            ]
            client.pipeline(*calls[self.random.randrange(4):])
            self.rounds += 1


class UnderLoad(RecordTestCase):
    options = ("--npus", "8", "--npu-bytes", str(1 << 20))

    def test_nothing_is_lost_between_the_snapshot_and_the_record(self):
        seed = int(os.environ.get("NPUMEM_SEED", time.time_ns() % 10**9))
        rng = random.Random(seed)
        self.client().call(**alloc("shared", (1, 8, 1, 65536)))
        workers = [Worker(self.daemon, i, seed) for i in range(4)]
        requests = 0
        with contextlib.ExitStack() as stack:
            for worker in workers:
                stack.callback(worker.join)
                stack.callback(worker.stop.set)
                worker.start()
            for _ in range(ROUNDS):
                time.sleep(rng.random() * 0.1)
                process, text, file, copied = self.begin()
                seen = [worker.rounds for worker in workers]
                wait_for(lambda: all(worker.rounds > n for worker, n in zip(workers, seen)) or any(w.failed for w in workers))
                self.end(process, text)
                self.assertEqual([worker.failed for worker in workers], [None] * 4, seed)
                requests += self.check(file, copied, seed)
                shutil.rmtree(copied)
        print(f"{ROUNDS} records under 4 writers, {requests} requests, seed {seed}")

    def check(self, file, copied, seed):
        code, result, error = self.replay("--snapshot", copied, file)
        self.assertEqual((code, result and result["differences"]), (0, 0), (error, seed))
        return result["requests"]


if __name__ == "__main__":
    unittest.main()
