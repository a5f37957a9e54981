"""npumemctl snapshot DIR: a consistent copy of a running daemon's state, and daemons that start from one.

NPUMEM_SNAPSHOTS says how many are taken under load: 5 without."""

import contextlib
import json
import os
import random
import shutil
import subprocess
import threading
import time
import unittest

from state import StateTestCase, grant, look, seal, token_of, view
from support import NPUMEMCTL, NPUMEMD, SECONDS, Daemon, TestCase, alloc, copy, fill, free, pb, read, ref, run, wait_for

ROUNDS = int(os.environ.get("NPUMEM_SNAPSHOTS", "5"))
OTHER = 1001
needs_root = unittest.skipIf(os.geteuid(), "root alone can be other uids")
MIB = 1 << 20


def ask_snapshot(number=0):
    return {"snapshot": pb.SnapshotRequest(snapshot=number)}


def pull(client, number, directory, n=None):
    """The rest of a snapshot, or its next n pieces, into a directory."""
    while n is None or n > 0:
        piece = client.call(**ask_snapshot(number)).snapshot
        assert piece.file.isalpha() and len(piece.data) <= MIB, piece.file
        path = os.path.join(directory, piece.file)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.truncate(piece.file_bytes)
            file.seek(piece.offset)
            file.write(piece.data)
        if piece.last:
            return True
        n = n and n - 1
    return False


class SnapshotTestCase(StateTestCase):
    def setUp(self):
        super().setUp()
        self.n_copies = 0

    def same(self, found, wanted):
        """Of look(); memory is too long to be shown."""
        self.assertEqual(found[:2], wanted[:2])
        for npu, (one, other) in enumerate(zip(found[2], wanted[2])):
            off = next((i for i in range(len(one)) if one[i] != other[i]), None) if one != other else None
            self.assertIsNone(off, f"NPU {npu}")

    def path(self):
        self.n_copies += 1
        return os.path.join(self.directory, f"copy{self.n_copies}")

    def ctl(self, *words, **more):
        return subprocess.run(
            [NPUMEMCTL, "--socket", self.daemon.path, *words], capture_output=True, timeout=SECONDS, check=False, **more
        )

    def take(self, path=None):
        path = path or self.path()
        done = self.ctl("snapshot", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    @contextlib.contextmanager
    def opened(self, path, *options):
        """A second daemon that starts from it, and a client of that."""
        directory = path + "-daemon"
        os.mkdir(directory)
        with Daemon("--state-dir", path, *self.options, *options, directory=directory) as daemon:
            self.assertNotIn("manifest", os.listdir(path))
            with daemon.client() as client:
                yield client

    def start_refused(self, path, *words):
        done = subprocess.run(
            [NPUMEMD, "--socket", os.path.join(self.directory, "no.sock"), "--state-dir", path, *self.options],
            stderr=subprocess.PIPE, timeout=SECONDS, check=False,
        )
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 1, text)
        for word in words:
            self.assertIn(word, text)


class Moment(SnapshotTestCase):
    """What is in a snapshot is what there was when it began, whatever comes then."""

    def populate(self, client):
        client.call(**alloc("a", (1, 8, 1, 4096)))
        client.call(**fill("a", 5))
        client.call(**alloc("b", (1, 8, 1, 4096)))
        client.call(**copy("b", "a"))
        client.call(**alloc("gone", (1, 3, 1, 9000)))
        client.call(**fill("gone", 9))
        client.call(**alloc("hole"))
        client.call(**alloc("behind", (2, 13, 7, 11), pb.FX8, frac_bits=4))
        client.call(**fill("behind", 3))
        client.call(**free("hole"))
        client.call(**view("part", "a", (0, 2, 0, 100), (1, 5, 1, 200)))
        client.call(**alloc("partly", (1, 8, 1, 600)))
        client.call(write=pb.WriteRequest(tensor=ref("partly"), first=77, data=bytes(range(200))))
        client.call(**alloc("in", (1, 8, 1, 64), pb.FX8, frac_bits=4))
        client.call(**fill("in", 1))
        client.call(**alloc("out", (1, 8, 1, 64), pb.FX8, frac_bits=4))

    def change(self, client):
        client.call(**fill("part", 6))
        client.call(write=pb.WriteRequest(tensor=ref("b"), first=11, data=b"\1\2\3"))
        client.call(write=pb.WriteRequest(tensor=ref("partly"), data=bytes(600 * 8)))
        client.call(**run(pb.RELU, in_="in", out="out"))
        client.call(**free("gone"))
        client.call(compact=pb.CompactRequest())
        client.call(**seal("behind"))
        client.call(**grant("a", 77, pb.ACCESS_READ))
        client.call(**alloc("new", (1, 8, 1, 20000)))
        client.call(**fill("new", 8))
        client.call(**copy("a", "b"))

    def test_all_that_changes_after_it_is_not_in_it(self):
        # `n`: pieces that are told before anything changes.
        for n in range(4):
            client = self.client()
            self.populate(client)
            before, path = look(client), self.path()
            number = client.call(**ask_snapshot()).snapshot.snapshot
            os.mkdir(path)
            self.assertFalse(pull(client, number, path, n))
            other = self.client()
            self.change(other)
            after = look(other)
            self.assertTrue(pull(client, number, path))
            with self.opened(path) as there:
                self.same(look(there), before)
                there.call(**fill("a", 1))
            # Nothing of the device was touched.
            self.same(look(other), after)
            for name in client.names():
                if "part" != name:
                    client.call(**free(name))

    def test_many_tensors(self):
        client, path = self.client(), self.path()
        for i in range(200):
            client.call(**alloc(f"t{i}", (1, 8, 1, 64)))
            client.call(**fill(f"t{i}", i % 100))
        before = look(client)
        number = client.call(**ask_snapshot()).snapshot.snapshot
        for i in range(0, 200, 3):
            client.call(**free(f"t{i}"))
        for i in range(300):  # the tables grow
            client.call(**alloc(f"u{i}", (1, 8, 1, 64)))
        os.mkdir(path)
        self.assertTrue(pull(client, number, path))
        with self.opened(path) as there:
            self.same(look(there), before)

    def test_it_has_the_sessions_that_wait(self):
        client = self.client()
        token = token_of(client)
        tensor = client.alloc()
        client.call(**fill(tensor, 7))
        nobodys = self.client().alloc()
        with self.opened(self.take()) as there:
            there.id = 1 << 20
            there.call(resume=pb.ResumeRequest(token=token))
            self.assertEqual(there.read(tensor.handle), bytes([7] * 128))
            self.refused(there.ask(**read(nobodys)), pb.NOT_FOUND)

    def test_a_snapshot_of_a_snapshot(self):
        self.client().call(**alloc("t"))
        self.client().call(**fill("t", 3))
        path = self.take()
        self.stop()
        self.state = path
        self.start()
        with self.opened(self.take()) as there:
            self.assertEqual(there.call(**read("t")).done.data, bytes([3] * 128))

    def test_durable(self):
        self.restart("--durable")
        client, path = self.client(), self.path()
        self.populate(client)
        before = look(client)
        number = client.call(**ask_snapshot()).snapshot.snapshot
        self.change(client)
        os.mkdir(path)
        self.assertTrue(pull(client, number, path))
        with self.opened(path) as there:
            self.same(look(there), before)


class Refusals(SnapshotTestCase):
    def test_one_at_a_time_and_whose(self):
        first, second = self.client(), self.client()
        number = first.call(**ask_snapshot()).snapshot.snapshot
        self.refused(second.ask(**ask_snapshot()), pb.FAILED_PRECONDITION, "a snapshot is being taken")
        self.refused(second.ask(**ask_snapshot(number)), pb.NOT_FOUND)
        self.refused(first.ask(**ask_snapshot()), pb.FAILED_PRECONDITION)
        self.refused(first.ask(**ask_snapshot(number + 1)), pb.NOT_FOUND)
        done = self.ctl("snapshot", self.path())
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"a snapshot is being taken", done.stderr)
        self.assertEqual([name for name in os.listdir(self.directory) if "copy" in name], [])
        # Its client's end is its end.
        first.close()
        wait_for(lambda: second.ask(**ask_snapshot()).status == pb.OK)
        self.take_after(second)

    def take_after(self, client):
        client.close()
        wait_for(lambda: self.ctl("snapshot", self.path()).returncode == 0)

    def test_the_last_piece_is_its_end(self):
        client, path = self.client(), self.path()
        number = client.call(**ask_snapshot()).snapshot.snapshot
        os.mkdir(path)
        self.assertTrue(pull(client, number, path))
        self.refused(client.ask(**ask_snapshot(number)), pb.NOT_FOUND)
        self.take()

    def test_a_client_that_stalls_holds_nobody_up(self):
        client, other = self.client(), self.client()
        client.call(**ask_snapshot())
        for i in range(50):
            other.call(**alloc(f"t{i}", (1, 8, 1, 1024)))
            other.call(**fill(f"t{i}", 1))
        other.call(compact=pb.CompactRequest())
        self.assertEqual(len(other.tensors()), 50)

    @needs_root
    def test_another_uid_is_refused(self):
        self.refused(self.client(OTHER).ask(**ask_snapshot()), pb.PERMISSION_DENIED, "only root")
        self.refused(self.client(OTHER).ask(**ask_snapshot(1)), pb.NOT_FOUND)
        first = self.client().call(**ask_snapshot()).snapshot.snapshot
        self.refused(self.client(OTHER).ask(**ask_snapshot(first)), pb.NOT_FOUND)

    def test_where_it_goes(self):
        self.client().call(**alloc("t"))
        full = self.path()
        os.mkdir(full)
        with open(os.path.join(full, "memory"), "w", encoding="ascii") as file:
            file.write("mine")
        done = self.ctl("snapshot", full)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"is not empty", done.stderr)
        self.assertEqual(os.listdir(full), ["memory"])
        done = self.ctl("snapshot", os.path.join(self.directory, "no", "such"))
        self.assertEqual(done.returncode, 1)
        empty = self.path()
        os.mkdir(empty)
        self.take(empty)
        self.assertEqual(
            {name: oct(os.stat(os.path.join(empty, name)).st_mode & 0o777) for name in os.listdir(empty)},
            dict.fromkeys(("journal", "manifest", "memory", "results", "sessions", "tensors"), "0o600"),
        )
        with self.opened(empty + "/") as there:
            self.assertEqual(there.names(), ["t"])
        self.assertEqual([name for name in os.listdir(self.directory) if "partial" in name], [])
        done = self.ctl("--json", "snapshot", self.path())
        self.assertGreater(json.loads(done.stdout)["bytes"], 4096)


class WithoutState(TestCase):
    def test_it_is_refused(self):
        answer = self.client().ask(**ask_snapshot())
        self.assertEqual(answer.status, pb.FAILED_PRECONDITION)
        self.assertIn("--state-dir", answer.message)


class Damage(SnapshotTestCase):
    """A snapshot that is not what was written is refused as a whole, and left as it is."""

    def setUp(self):
        super().setUp()
        client = self.client()
        client.call(**alloc("t", (1, 8, 1, 60000)))
        client.call(**fill("t", 7))
        self.whole = self.take()

    def damaged(self):
        path = self.path()
        shutil.copytree(self.whole, path)
        return path

    def test_a_copy_of_it_is_as_good(self):
        with self.opened(self.damaged()) as there:
            self.assertEqual(there.call(**read("t", count=10)).done.data, bytes([7] * 10))

    def test_plain_copies_under_load_are_detected(self):
        stop = threading.Event()

        def work():
            with self.daemon.client() as client:
                i = 0
                while not stop.is_set():
                    i += 1
                    client.call(**fill("t", i % 100))
                    client.call(**alloc(f"u{i}", (1, 8, 1, 16)))
                    client.call(**free(f"u{i}"))

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for _ in range(20):
                path = self.path()
                subprocess.run(["cp", "-r", self.state, path], check=True)
                self.start_refused(path, "copy of a state that was not closed")
                shutil.rmtree(path)
        finally:
            stop.set()
            thread.join()


class Killed(SnapshotTestCase):
    """Whoever is killed in the middle leaves nothing that a daemon takes for a snapshot."""

    options = ("--npus", "8", "--npu-bytes", str(2 * MIB))

    def setUp(self):
        super().setUp()
        client = self.client()
        for i in range(12):
            client.call(**alloc(f"t{i}", (1, 8, 1, 128 << 10)))
            client.call(write=pb.WriteRequest(tensor=ref(f"t{i}"), data=os.urandom(MIB)))

    def check_rest(self, path):
        self.assertFalse(os.path.exists(path))
        for name in os.listdir(self.directory):
            rest = os.path.join(self.directory, name)
            if "partial" not in name or not os.path.exists(os.path.join(rest, "memory")):
                continue
            if os.path.exists(os.path.join(rest, "journal")):
                continue  # its files were all there, or the next lines would say so
            with open(os.path.join(rest, "memory"), "rb") as memory:
                if not any(memory.read(4096)):
                    continue  # nothing is there yet: that is a beginning, and a daemon says so
            self.start_refused(rest)
            shutil.rmtree(rest)

    def test_clients(self):
        rng = random.Random(5)
        for _ in range(10):
            path = self.path()
            with subprocess.Popen([NPUMEMCTL, "--socket", self.daemon.path, "snapshot", path], stdout=subprocess.DEVNULL) as one:
                time.sleep(rng.random() * 0.05)
                one.kill()
            if not os.path.exists(path):
                self.check_rest(path)
        # It has no owner any more.
        wait_for(lambda: self.ctl("snapshot", self.path()).returncode == 0)

    def test_every_beginning_of_one_is_refused(self):
        client, path = self.client(), self.path()
        number = client.call(**ask_snapshot()).snapshot.snapshot
        os.mkdir(path)
        n = 0
        while not pull(client, number, path, 1):
            n += 1
            # Behind the first part of the journal all is there: what comes is zero.
            if not os.path.exists(os.path.join(path, "journal")) and n % 4 == 1:
                torn = self.path()
                shutil.copytree(path, torn)
                self.start_refused(torn)
                shutil.rmtree(torn)
        with self.opened(path) as there:
            self.assertEqual(len(there.tensors()), 12)

    def test_daemons(self):
        rng = random.Random(6)
        for _ in range(5):
            path = self.path()
            with subprocess.Popen(
                [NPUMEMCTL, "--socket", self.daemon.path, "snapshot", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ) as one:
                time.sleep(rng.random() * 0.03)
                # It comes back to a daemon that knows nothing of its snapshot.
                self.restart()
                code = one.wait(SECONDS)
            self.assertEqual(code == 0, os.path.exists(path))
            self.assertEqual([name for name in os.listdir(self.directory) if "partial" in name], [])


class Writer(threading.Thread):
    """Writes x, then y, then renews a tensor, each with the round's number; notes what was acknowledged."""

    WORDS = 16 << 10  # of an NPU

    def __init__(self, daemon, index):
        super().__init__()
        self.daemon, self.index = daemon, index
        self.sent = self.acknowledged = 0
        self.there, self.leaving = set(), set()
        self.stop = threading.Event()
        self.lock = threading.Lock()

    def run(self):
        with self.daemon.client() as client:
            x, y = f"x{self.index}", f"y{self.index}"
            for name in (x, y):
                client.call(**alloc(name, (1, 8, 1, 4 * self.WORDS), pb.UINT8))
            while not self.stop.is_set():
                self.round(client, x, y)

    def round(self, client, x, y):
        n = self.sent + 1
        data = n.to_bytes(4, "little") * (8 * self.WORDS)
        old = f"n{self.index}-{n - 5}"
        with self.lock:
            self.sent = n
            if old in self.there:
                self.leaving.add(old)
        calls = [
            {"write": pb.WriteRequest(tensor=ref(x), data=data)},
            {"write": pb.WriteRequest(tensor=ref(y), data=data)},
            alloc(f"n{self.index}-{n}", (1, 8, 1, 100)),
            fill(f"n{self.index}-{n}", n % 100),
        ]
        if n > 5:
            calls.append(free(old))
        for answer in client.pipeline(*calls):
            assert answer.status == pb.OK, answer
        with self.lock:
            self.acknowledged = n
            self.there.add(f"n{self.index}-{n}")
            self.there.discard(old)

    def noted(self):
        with self.lock:
            return self.acknowledged, set(self.there)

    def may_be_gone(self):
        with self.lock:
            return self.sent, set(self.leaving)


class UnderLoad(SnapshotTestCase):
    options = ("--npus", "8", "--npu-bytes", str(MIB))

    def number(self, client, name, seed):
        data = client.call(**read(name)).done.data
        self.assertTrue(data == data[:4] * (len(data) // 4), (name, "is torn", seed))
        return int.from_bytes(data[:4], "little")

    def check(self, path, before, after, seed):
        with self.opened(path) as client:
            tensors = {tensor.name: tensor for tensor in client.tensors()}
            self.assertEqual({t.state for t in tensors.values()} - {"ok", "unwritten"}, set(), seed)
            for i, (acknowledged, there) in enumerate(before):
                sent, leaving = after[i]
                x, y = self.number(client, f"x{i}", seed), self.number(client, f"y{i}", seed)
                self.assertGreaterEqual(y, acknowledged, seed)
                self.assertGreaterEqual(x, y, seed)
                self.assertLessEqual(x, min(sent, y + 1), seed)
                self.assertEqual(there - leaving - set(tensors), set(), seed)
                for name in there & set(tensors):
                    data = client.call(**read(name)).done.data
                    self.assertEqual(data, bytes([int(name.split("-")[1]) % 100] * 800), (name, seed))

    def test_they_all_open_and_hold_what_was_acknowledged(self):
        seed = int(os.environ.get("NPUMEM_SEED", time.time_ns() % 10**9))
        rng = random.Random(seed)
        writers = [Writer(self.daemon, i) for i in range(4)]
        for writer in writers:
            writer.start()
        try:
            wait_for(lambda: all(writer.acknowledged > 6 for writer in writers))
            during = 0
            for _ in range(ROUNDS):
                time.sleep(rng.random() * 0.05)
                before = [writer.noted() for writer in writers]
                path = self.take()
                after = [writer.may_be_gone() for writer in writers]
                during += sum(a[0] - b[0] for a, b in zip(after, before))
                self.check(path, before, after, seed)
                shutil.rmtree(path)
        finally:
            for writer in writers:
                writer.stop.set()
            for writer in writers:
                writer.join()
        self.assertGreater(during, 0)
        print(f"{ROUNDS} snapshots, {during} rounds of 4 writers during them, seed {seed}")


if __name__ == "__main__":
    unittest.main()
