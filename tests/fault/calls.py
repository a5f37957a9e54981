"""The daemon under system calls that fail, or move one byte: tests/fault/inject.c makes the i-th call of a kind do so,
for every i of a script of requests (with NPUMEM_FAULT_WHOLE=1; some of them else).

What a client must not notice (interruptions, short reads and writes, calls to be made again) it does not notice at all.
Other failures may cost the connection or the request that they hit, told in words; the next client is served as ever.
A daemon that cannot start says why in one line and leaves nothing. None ends by a signal, and all end when told to.
"""

import fcntl
import mmap
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from support import NPUMEMD, HungUp, Sharer, alloc, copy, dims, fill, free, pb, read, ref, run, submit

INJECT = os.environ["NPUMEM_INJECT_LIBRARY"]
WHOLE = "NPUMEM_FAULT_WHOLE" in os.environ
SECONDS = 60
EVERY_DAY = 2  # of the i of a call, and each of the first ones

UNNOTICED = {
    "recvmsg": ("EINTR", "EAGAIN", "short"),
    "send": ("EINTR", "EAGAIN", "short"),
    "epoll_wait": ("EINTR",),
    "accept4": ("EINTR", "EAGAIN", "ECONNABORTED"),
    "read": ("EINTR",),
    "write": ("EINTR",),
    "open": (),
}
COSTLY = {
    "recvmsg": ("ENOMEM", "ECONNRESET"),
    "send": ("EPIPE", "ENOBUFS", "ECONNRESET"),
    "accept4": ("EMFILE", "ENFILE", "ENOMEM", "ENOBUFS"),
    "mmap": ("ENOMEM",),
    "malloc": ("ENOMEM",),
    "open": ("EMFILE", "ENOMEM"),
    "fstat": ("EIO",),
    "flock": ("EIO",),
    "socket": ("EMFILE",),
    "bind": ("ENOSPC",),
    "listen": ("ENOBUFS",),
    "mkdir": ("ENOSPC",),
    "getrandom": ("EIO",),
    "epoll_create1": ("EMFILE",),
    "eventfd": ("EMFILE",),
    "pthread_create": ("EAGAIN",),
    "write": ("EIO", "ENOSPC"),
}


# With a state directory, at its start and while it grows.
OF_A_STATE = {
    "openat": ("EMFILE", "ENOSPC", "EACCES"),
    "fallocate": ("ENOSPC", "EINTR", "EIO"),
    "ftruncate": ("EIO",),
    "statx": ("EIO",),
    "flock": ("EIO",),
    "mmap": ("ENOMEM",),
    "mremap": ("ENOMEM",),
    "pread": ("EIO", "EINTR", "short"),
    "pwrite": ("ENOSPC", "EIO", "EINTR", "short"),
    "fsync": ("EIO", "ENOSPC"),
    "fdatasync": ("EIO", "ENOSPC"),
    "malloc": ("ENOMEM",),
    "getrandom": ("EIO",),
    "mkdir": ("ENOSPC",),
}


class Daemon:
    """npumemd with a fault; a context."""

    def __init__(self, fault="", *options):
        self.directory = tempfile.TemporaryDirectory(prefix="npumem-test-")
        self.path = os.path.join(self.directory.name, "run", "s")
        self.counts = os.path.join(self.directory.name, "counts")
        environment = {**os.environ, "LD_PRELOAD": INJECT, "NPUMEM_INJECT": fault, "NPUMEM_INJECT_COUNT": self.counts}
        if not fault:
            del environment["NPUMEM_INJECT"]
        self.process = subprocess.Popen(
            [NPUMEMD, "--socket", self.path, "--npus", "8", "--npu-bytes", "65536", *options],
            env=environment,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
        )

    def has_started(self):
        """False: it has ended instead."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with socket.socket(socket.AF_UNIX) as trial:
                try:
                    trial.connect(self.path)
                    return True
                except OSError:
                    pass
            if self.process.poll() is not None:
                return False
            time.sleep(0.002)
        raise AssertionError("it neither starts nor ends")

    def end(self):
        """Its code, and what it has said."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            _, said = self.process.communicate(timeout=SECONDS)
        finally:
            self.process.kill()
        return self.process.returncode, said.decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self.directory.cleanup()


def shared_memory(n):
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.posix_fallocate(fd, 0, n)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return fd


class Guest(Sharer):
    """One that may be turned away."""

    def receive(self):
        response = super().receive()
        if not response.id:
            assert response.status == pb.RESOURCE_EXHAUSTED and response.message, response
            raise HungUp
        return response


DATA = bytes(i * 7 & 0xFF for i in range(300000))


def script(path, seconds=SECONDS):
    """What a client does; whatever is answered must be right. False: something was refused, or not answered in so many
    seconds, or the connection ended."""
    fd = shared_memory(1 << 16)
    try:
        with Guest(path) as client, mmap.mmap(fd, 1 << 16) as memory:
            client.sock.settimeout(seconds)
            memory[:2048] = DATA[:2048]
            whole = ask_all(client, fd)
            assert not whole or memory[4096 : 4096 + 2048] == DATA[:2048]
            return whole
    except (HungUp, ConnectionError, TimeoutError):
        return False
    finally:
        os.close(fd)


def ask_all(client, fd):
    """Each may be refused; those after it make do."""
    answers = []

    def ask(**call):
        answers.append(client.ask(**call))
        return answers[-1]

    ask(info=pb.InfoRequest(details=True))
    ask(**alloc("", (1, 8, 8, 512)))  # 32 KiB; anonymous
    ask(**alloc("large", (1, 8, 10, 3750)))
    ask(write=pb.WriteRequest(tensor=ref("large"), data=DATA))
    got = ask(**read("large"))
    assert got.status or got.done.data == DATA
    shared = client.ask_share(fd)
    answers.append(shared)
    if not shared.status:
        ask(**alloc("small", (1, 8, 4, 64)))
        place = {"tensor": ref("small"), "segment": shared.shared.segment}
        wrote = ask(write=pb.WriteRequest(**place))
        ask(read=pb.ReadRequest(segment_offset=4096, **place))
        got = ask(**read("small"))
        assert got.status or wrote.status or got.done.data == DATA[:2048]
        ask(**fill("small", 3))
    ask(**submit(fill("large", 1), read("large", count=4)))
    ask(list=pb.ListRequest())
    ask(stat=pb.StatRequest(details=True))
    ask(compact=pb.CompactRequest())
    ids = client.post(*[fill("large", i) for i in range(20)])
    answers.extend(client.answers(ids))
    for answer in answers:
        assert answer.status in (pb.OK, pb.NOT_FOUND) or answer.message, answer
    ask(**free("large"))
    if not shared.status:
        ask(**free("small"))
    return all(answer.status == pb.OK for answer in answers)


class Calls(unittest.TestCase):
    n_runs = 0

    def counts(self, *options):
        with Daemon("", *options) as daemon:
            self.assertTrue(daemon.has_started())
            self.assertTrue(script(daemon.path))
            self.assertTrue(script(daemon.path))
            code, said = daemon.end()
            self.assertEqual(code, 0, said)
            with open(daemon.counts) as file:
                return {name: int(n) for name, n in map(str.split, file)}

    def run_one(self, fault, unnoticed):
        """True: it came to serve."""
        type(self).n_runs += 1
        with self.subTest(fault), Daemon(fault) as daemon:
            if not daemon.has_started():
                code, said = daemon.end()
                self.assertFalse(unnoticed, said)
                self.assertEqual(code, 1, said)
                self.assertEqual(said.count("\n"), 1, said)
                self.assertFalse(os.path.exists(daemon.path))
                return False
            lasts = fault.endswith("on") and not unnoticed
            whole = script(daemon.path, 0.3 if lasts else SECONDS)
            self.assertTrue(whole or not unnoticed)
            if not lasts:
                # The one after it is served, once the fault is over.
                end = time.monotonic() + SECONDS
                while not script(daemon.path):
                    self.assertLess(time.monotonic(), end, "nobody is served any more")
            code, said = daemon.end()
            self.assertEqual(code, 0, said)
            self.assertFalse(os.path.exists(daemon.path))
        return True

    def sweep(self, table, unnoticed):
        counts = self.counts()
        for call, faults in table.items():
            for fault in faults:
                n = counts[call]
                for i in range(1, n + 1):
                    if WHOLE or i <= EVERY_DAY or i == n:
                        self.run_one(f"{call} {fault} {i}", unnoticed)

    def test_what_nobody_notices(self):
        self.sweep(UNNOTICED, True)
        for fault in ("recvmsg short 1 on", "send short 1 on"):
            self.run_one(fault, True)

    def test_what_costs_one_client(self):
        self.sweep(COSTLY, False)

    def test_from_then_on(self):
        """As long as nothing goes, nobody is served, and the daemon ends when told to."""
        counts = self.counts()
        for fault in ("accept4 EMFILE", "recvmsg ENOMEM", "send ENOBUFS", "mmap ENOMEM", "malloc ENOMEM", "open EMFILE"):
            n = counts[fault.split()[0]]
            for i in range(1, n + 1):
                if WHOLE or i % max(1, n // EVERY_DAY) == 0:
                    self.run_one(f"{fault} {i} on", False)

    def keeper(self, path, write=False):
        """A named tensor that outlives the daemon."""
        with Guest(path) as client:
            if write:
                client.call(**alloc("keeper", (1, 8, 1, 512)))
                client.call(write=pb.WriteRequest(tensor=ref("keeper"), data=DATA[:4096]))
            return client.call(**read("keeper")).done.data

    def try_keeper(self, path):
        """The fault may be yet to come."""
        try:
            with Guest(path) as client:
                got = client.ask(**read("keeper"))
        except (HungUp, ConnectionError):
            return
        self.assertTrue(got.status == pb.RESOURCE_EXHAUSTED or got.done.data == DATA[:4096], got)

    def start_again(self, state):
        with Daemon("", "--state-dir", state) as daemon:
            self.assertTrue(daemon.has_started())
            self.assertEqual(self.keeper(daemon.path), DATA[:4096])
            with Guest(daemon.path) as client:
                # What a script could not free.
                for name in set(client.names()) - {"keeper"}:
                    client.call(**free(name))
            self.assertTrue(script(daemon.path))
            self.assertEqual(daemon.end()[0], 0)

    def run_state(self, fault, closed):
        type(self).n_runs += 1
        with self.subTest(fault), tempfile.TemporaryDirectory(prefix="npumem-test-") as folder:
            state = os.path.join(folder, "state")
            if closed:
                shutil.copytree(closed, state)
            with Daemon(fault, "--state-dir", state) as daemon:
                started = daemon.has_started()
                if started:
                    if not closed:
                        script(daemon.path)
                    elif script(daemon.path):
                        self.try_keeper(daemon.path)
                code, said = daemon.end()
                self.assertIn(code, (0, 1), said)
                self.assertTrue(started or said.count("\n") >= 1, said)
                self.assertNotIn("Assert", said)
            if closed:
                self.start_again(state)

    @unittest.skipUnless(b"--state-dir" in subprocess.run([NPUMEMD, "--help"], stdout=subprocess.PIPE).stdout, "no state")
    def test_with_a_state(self):
        """Whatever fails, what stood stays."""
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as folder:
            closed = os.path.join(folder, "state")
            with Daemon("", "--state-dir", closed) as daemon:
                self.assertTrue(daemon.has_started())
                self.keeper(daemon.path, write=True)
                self.assertEqual(daemon.end()[0], 0)
            at_first, later = self.counts("--state-dir", os.path.join(folder, "new")), self.counts("--state-dir", closed)
            for call, faults in OF_A_STATE.items():
                for fault in faults:
                    for counts, state in ((at_first, None), (later, closed)):
                        n = counts[call]
                        for i in range(1, n + 1):
                            if WHOLE or (i <= 2 and fault == faults[0]) or i == n:
                                self.run_state(f"{call} {fault} {i}", state)

    # ---- a disk that does not take what is to be on it ----

    CHANGES = (
        ("x is there", alloc("x", (1, 8, 1, 512), pb.FX8, frac_bits=4)),
        ("x is 3", fill("x", 3)),
        ("y is there", alloc("y", (1, 8, 1, 512), pb.FX8, frac_bits=4)),
        ("y is 3", copy("y", "x")),
        ("x is 6", run(pb.ELTWISE_ADD, in1="x", in2="y", out="x")),
        ("y is 5", submit(fill("y", 4), fill("y", 5))),
        ("z is there", alloc("z", (1, 8, 1, 512), pb.FX8, frac_bits=4)),
        ("z is 6", copy("z", "x")),
        ("x is gone", free("x")),
        ("z is sealed", {"seal": pb.SealRequest(tensor=ref("z"))}),
    )

    def change(self, path):
        """How many of the changes were answered; less than all: the connection ended."""
        n = 0
        try:
            with Guest(path) as client:
                for _, call in self.CHANGES:
                    answer = client.ask(**call)
                    self.assertEqual(answer.status, pb.OK, answer)
                    n += 1
        except (HungUp, ConnectionError):
            pass
        return n

    def facts(self, client):
        facts = {f"{tensor.name} is sealed" for tensor in client.tensors() if tensor.sealed}
        for name in client.names():
            facts.add(f"{name} is there")
            answer = client.ask(**read(name))
            if answer.status == pb.OK:
                self.assertEqual(len(set(answer.done.data)), 1, name)
                facts.add(f"{name} is {answer.done.data[0]}")
            else:
                facts.add(f"{name} is lost" if answer.status == pb.DATA_LOST else f"{name} is unwritten")
        return facts

    def expected(self, n):
        """What holds when the first n changes were made."""
        facts = {}
        for fact, _ in self.CHANGES[:n]:
            name, _, what = fact.split(" ")
            kind = "there" if what in ("there", "gone") else "sealed" if what == "sealed" else "value"
            facts[name, kind] = fact
            if what == "gone":
                facts = {key: facts[key] for key in facts if key[0] != name}
            elif what == "there":
                facts[name, "value"] = f"{name} is unwritten"
        return set(facts.values())

    def run_durable(self, fault):
        """How far it came: whether it came to serve, and whether its clients saw it end."""
        type(self).n_runs += 1
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as folder:
            options = ("--state-dir", os.path.join(folder, "state"), "--durable")
            with Daemon(fault, *options) as daemon:
                if not daemon.has_started():
                    code, said = daemon.end()
                    self.assertEqual((code, said.count("\n") >= 1), (1, True), said)
                    return False, False
                n = self.change(daemon.path)
                ended = n < len(self.CHANGES)
                if ended:
                    daemon.process.wait(SECONDS)
                code, said = daemon.end()
                self.assertEqual(code, 1 if ended or "the state was not closed" in said else 0, said)
                self.assertEqual("the state cannot be written: i/o error; the daemon ends" in said, ended, said)
            with Daemon("", *options) as daemon:
                self.assertTrue(daemon.has_started())
                with Guest(daemon.path) as client:
                    facts = self.facts(client)
                # What was answered, and what was under way, done or lost or not.
                lost = {fact.replace("lost", value) for fact in facts for value in ("unwritten", "3", "4", "5", "6")}
                self.assertTrue(
                    any(facts == made or (made <= lost and {f for f in facts if "lost" not in f} <= made)
                        for made in (self.expected(n), self.expected(n + 1))),
                    (n, facts),
                )
                self.assertEqual(daemon.end()[0], 0)
        return True, ended

    def test_a_disk_that_fails(self):
        """Nothing is answered that it may not have, the daemon ends, and the next one has all that was answered."""
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as folder:
            with Daemon("", "--state-dir", os.path.join(folder, "state"), "--durable") as daemon:
                self.assertTrue(daemon.has_started())
                self.assertEqual(self.change(daemon.path), len(self.CHANGES))
                self.assertEqual(daemon.end()[0], 0)
                with open(daemon.counts) as file:
                    counts = {name: int(n) for name, n in map(str.split, file)}
        outcomes = []
        for name in ("fsync", "fdatasync", "pwrite"):
            for i in range(max(1, counts[name] - 60), counts[name] + 1):
                if WHOLE or i % 2 == 0:
                    for on in ("", " on"):
                        with self.subTest(name=name, i=i, on=on):
                            outcomes.append(self.run_durable(f"{name} EIO {i}{on}"))
        # At the start, while it serves, and at its end.
        self.assertEqual(set(outcomes), {(False, False), (True, True), (True, False)})
        self.assertGreater(outcomes.count((True, True)), 2 * len(self.CHANGES) // 3)

    @classmethod
    def tearDownClass(cls):
        print(f"{cls.n_runs} daemons with faults")


if __name__ == "__main__":
    unittest.main()
