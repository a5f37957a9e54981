"""Snapshots that are interrupted, that have no room, that go where they must not, and that are far larger or slower than
what is under way beside them."""

import os
import shutil
import signal
import struct
import subprocess
import unittest

from state import token_of
from support import FEWER, NPUMEMD, SECONDS, Daemon, alloc, dims, fill, free, pb, read, ref, run_as, wait_for
from test_snapshot import MIB, NPUMEMCTL, SnapshotTestCase, ask_snapshot, pull

OTHER = 1001
needs_root = unittest.skipIf(os.geteuid(), "root alone mounts and can be other uids")


class Interrupted(SnapshotTestCase):
    options = ("--npus", "8", "--npu-bytes", str(16 * MIB))

    def setUp(self):
        super().setUp()
        client = self.client()
        for i in range(12):
            client.call(**alloc(f"t{i}", (1, 8, 1, MIB)))
            client.call(**fill(f"t{i}", i + 1))

    def left(self):
        return [name for name in os.listdir(self.directory) if "partial" in name]

    def in_the_middle(self, path, *words):
        """A snapshot that waits for its next piece, as the daemon is stopped; None: it was over before that."""
        one = subprocess.Popen([NPUMEMCTL, "--socket", self.daemon.path, *(words or ("snapshot",)), path], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
        self.addCleanup(one.communicate)
        self.addCleanup(one.kill)
        wait_for(lambda: self.left() or one.poll() is not None)
        self.daemon.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.daemon.process.send_signal, signal.SIGCONT)
        os.waitpid(self.daemon.process.pid, os.WUNTRACED)
        wait_for(lambda: one.poll() is not None or self.is_asleep(one))
        return one if one.poll() is None and self.left() else None

    @staticmethod
    def is_asleep(process):
        with open(f"/proc/{process.pid}/stat", encoding="ascii") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "S"

    def interrupt(self, number, *words):
        for _ in range(20):
            path = self.path()
            one = self.in_the_middle(path, *words)
            if one:
                one.send_signal(number)
                one.communicate(timeout=SECONDS)
            self.daemon.process.send_signal(signal.SIGCONT)
            if one:
                self.assertFalse(os.path.exists(path))
                return one.returncode
        self.fail("it was always over before it could be interrupted")

    def test_a_signal_leaves_nothing(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self.assertEqual(self.interrupt(number), -number)
            self.assertEqual(self.left(), [])
        self.assertEqual(self.interrupt(signal.SIGINT, "record", os.path.join(self.directory, "file"), "--snapshot"), -signal.SIGINT)
        self.assertEqual(self.left(), [])
        wait_for(lambda: self.ctl("snapshot", self.path()).returncode == 0)

    def test_what_a_kill_leaves_is_told_and_in_nobodys_way(self):
        path = self.path()
        self.path = lambda: path
        self.assertEqual(self.interrupt(signal.SIGKILL), -signal.SIGKILL)
        (name,) = self.left()

        def taken():
            done = self.ctl("snapshot", path)
            self.assertIn(f"{name} was left by an npumemctl that was killed".encode(), done.stderr)
            return done.returncode == 0

        wait_for(taken)
        self.assertEqual(self.left(), [name])
        left = os.path.join(self.directory, name)
        if os.listdir(left):  # else it is a new state's place
            self.start_refused(left, "journal")

    @needs_root
    def test_names_of_directories_are_not_commands_of_the_terminal(self):
        shared = os.path.join(self.directory, "shared")
        os.mkdir(shared)
        os.chmod(shared, 0o1777)
        evil = ".partial-\x1b]0;owned\x07\x1b[31m"
        path = os.path.join(shared, "S")
        run_as(OTHER, lambda: os.mkdir(path + evil + "theirs"))
        os.mkdir(path + evil + "own")
        done = self.ctl("snapshot", path)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(done.stderr.count(b"was left"), 1)
        self.assertIn(b"S.partial-?]0;owned??[31mown was left", done.stderr)
        self.assertNotIn(b"theirs", done.stderr)

    def test_one_that_is_under_way_is_not_taken_for_a_leftover(self):
        one = None
        while one is None:
            path = self.path()
            one = self.in_the_middle(path)
            if one is None:
                self.daemon.process.send_signal(signal.SIGCONT)
        directory = os.path.join(self.directory, "other")
        os.mkdir(directory)
        with Daemon("--state-dir", os.path.join(directory, "state"), *self.options, directory=directory) as daemon:
            done = subprocess.run([NPUMEMCTL, "--socket", daemon.path, "snapshot", path], capture_output=True, timeout=SECONDS,
                                  check=False)
        self.assertNotIn(b"was left", done.stderr)
        self.daemon.process.send_signal(signal.SIGCONT)
        # Whoever comes second finds the first one's place taken.
        _, text = one.communicate(timeout=SECONDS)
        self.assertEqual((done.returncode, one.returncode), (0, 1), (done.stderr, text))
        self.assertEqual(self.left(), [])


class Places(SnapshotTestCase):
    def setUp(self):
        super().setUp()
        client = self.client()
        client.call(**alloc("t", (1, 8, 1, 4096)))
        client.call(write=pb.WriteRequest(tensor=ref("t"), data=os.urandom(8 * 4096)))

    def refused(self, path, *words):  # pylint: disable=arguments-renamed
        done = self.ctl("snapshot", path)
        self.assertEqual(done.returncode, 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr.decode())
        for directory, names, _ in os.walk(self.directory):
            self.assertEqual([name for name in names if "partial" in name], [], directory)

    @needs_root
    def test_a_full_disk(self):
        disk = os.path.join(self.directory, "disk")
        os.mkdir(disk)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", disk], check=True)
        try:
            self.refused(os.path.join(disk, "copy"), "No space left")
            self.assertEqual(os.listdir(disk), [])
            subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
            path = os.path.join(disk, "copy")
            self.take(path)
            with self.opened(path) as there:
                self.assertEqual(there.names(), ["t"])
            # The place is another file system's root: nothing can take it.
            self.refused(disk + "/", "is not empty")
            shutil.rmtree(path)
            shutil.rmtree(path + "-daemon")
            self.refused(disk, "cannot write")
            self.assertEqual(os.listdir(disk), [])
        finally:
            subprocess.run(["umount", disk], check=True)

    def test_links(self):
        empty, link = os.path.join(self.directory, "empty"), os.path.join(self.directory, "link")
        os.mkdir(empty)
        for target in (empty, os.path.join(self.directory, "nothing")):
            os.symlink(target, link)
            for path in (link, link + "/"):
                self.refused(path, "cannot write")
            self.assertTrue(os.path.islink(link))
            os.remove(link)
        self.assertEqual(os.listdir(empty), [])
        with open(link, "w", encoding="ascii") as file:
            file.write("mine")
        self.refused(link, "cannot write")
        self.assertEqual(os.path.getsize(link), 4)

    @needs_root
    def test_a_link_of_another_uid_in_a_folder_of_all(self):
        folder = os.path.join(self.directory, "all")
        os.mkdir(folder)
        os.chmod(folder, 0o1777)
        victim = os.path.join(self.directory, "victim")
        os.mkdir(victim)
        os.symlink(victim, os.path.join(folder, "copy"))
        os.lchown(os.path.join(folder, "copy"), OTHER, OTHER)
        self.refused(os.path.join(folder, "copy"))
        self.assertEqual(os.listdir(victim), [])

    def test_another_geometry_and_another_version(self):
        path = self.take()
        done = subprocess.run([NPUMEMD, "--socket", path + ".sock", "--state-dir", path, "--npus", "4", "--npu-bytes", "65536"],
                              capture_output=True, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"of a device of 8 NPUs x 65536 bytes", done.stderr)
        for name, words in (("journal", "is damaged: the version"), ("manifest", "is of ")):
            other = self.path()
            shutil.copytree(path, other)
            with open(os.path.join(other, name), "r+b") as file:
                file.seek(8)
                file.write(struct.pack("<I", 99))
            if name == "journal":  # whose header has a checksum; of a bit that flipped there the manifest says so
                os.remove(os.path.join(other, "manifest"))
            self.start_refused(other, f"{name}: {words}", "version")
        # As it was, it is good still.
        with self.opened(path) as there:
            self.assertEqual(there.names(), ["t"])

    def test_given_up(self):
        client = self.client()
        number = client.call(**ask_snapshot()).snapshot.snapshot
        client.call(**ask_snapshot(number))
        self.assertEqual(client.ask(snapshot=pb.SnapshotRequest(snapshot=number + 1, end=True)).status, pb.NOT_FOUND)
        self.assertEqual(self.client().ask(snapshot=pb.SnapshotRequest(snapshot=number, end=True)).status, pb.NOT_FOUND)
        piece = client.call(snapshot=pb.SnapshotRequest(snapshot=number, end=True)).snapshot
        self.assertEqual((piece.file, piece.last), ("", True))
        self.assertEqual(client.ask(**ask_snapshot(number)).status, pb.NOT_FOUND)
        self.take()

    def test_of_a_device_that_has_just_come_back(self):
        client = self.client()
        token = token_of(client)
        own = client.alloc("", (1, 8, 1, 64))
        client.call(**fill(own, 4))
        self.restart()
        with self.opened(self.take()) as there:
            there.id = 1 << 20
            there.call(resume=pb.ResumeRequest(token=token))
            self.assertEqual(there.read(own.handle), bytes([4] * 512))


class Turns(SnapshotTestCase):
    """What a snapshot keeps the loop for, in processor time: about what a long answer does, and not what the device has."""

    options = ("--npus", "8", "--npu-bytes", str(32 * MIB))
    TIMES, TRIES = 10, 6

    def longest(self, watcher, work):
        watcher.call(stat=pb.StatRequest(reset=True))
        work()
        return watcher.call(stat=pb.StatRequest(details=True)).stat.loop.longest_cpu_ns

    def read(self, client):
        for _ in range(64):
            client.call(**read("t0", 0, MIB))

    def snapshot(self, client, other, record):
        number = client.call(snapshot=pb.SnapshotRequest(record=record)).snapshot.snapshot
        last, n = False, 0
        while not last:
            last = client.call(**ask_snapshot(number)).snapshot.last
            other.call(**fill(f"s{n % 2000}", n % 100))
            n += 1
        self.assertGreater(n, 200)
        if record:
            client.call(record=pb.RecordRequest(action=pb.RECORD_STOP))

    def test_no_turn_is_long(self):
        client, other, watcher = (self.client() for _ in range(3))
        for i in range(6):
            client.call(**alloc(f"t{i}", (1, 8, 1, 4 * MIB)))
            client.call(**fill(f"t{i}", 1))
        spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 8, 1, 16))
        for first in range(0, 2000, 250):
            names = [f"s{i}" for i in range(first, first + 250)]
            client.call(alloc=pb.AllocRequest(tensors=[pb.Allocation(name=name, spec=spec) for name in names]))
        for record in (False, True):
            for _ in range(self.TRIES):  # another process's caches are in it, too
                usual = self.longest(watcher, lambda: self.read(client))
                turn = self.longest(watcher, lambda: self.snapshot(client, other, record))
                if turn < self.TIMES * usual:
                    break
            else:
                self.fail(f"a turn of {turn} ns, where a read of 1 MiB takes {usual} ns")


class Large(SnapshotTestCase):
    """A hundred thousand tensors, and a client that takes its time, while another one changes all of them."""

    options = ("--npus", "1", "--npu-bytes", str(32 * MIB))
    N = 100_000 // FEWER
    STEP = 250

    def names(self, first, prefix="t"):
        return [f"{prefix}{i}" for i in range(first, first + self.STEP)]

    def make(self, client, first, prefix="t"):
        spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 1, 1, 16))
        return {"alloc": pb.AllocRequest(tensors=[pb.Allocation(name=name, spec=spec) for name in self.names(first, prefix)])}

    def test_all_of_it_is_as_it_was(self):
        client, slow, path = self.client(), self.client(), self.path()
        for first in range(0, self.N, self.STEP):
            client.call(**self.make(client, first))
        for i in range(0, self.N, 1000):
            client.call(**fill(f"t{i}", i // 1000))
        number = slow.call(**ask_snapshot()).snapshot.snapshot
        os.mkdir(path)
        over = False
        for n, first in enumerate(range(0, self.N, self.STEP)):
            client.pipeline(free(*self.names(first)), self.make(client, first, "u"), fill(f"u{first}", 99))
            if n % 8 == 0 and not over:
                over = pull(slow, number, path, 1)
        self.assertEqual(client.stat().tensors, self.N)
        if not over:
            self.assertTrue(pull(slow, number, path))
        with self.opened(path) as there:
            self.assertEqual(there.stat().tensors, self.N)
            for i in range(0, self.N, 1000):
                self.assertEqual(there.call(**read(f"t{i}")).done.data, bytes([i // 1000] * 16))
            self.assertEqual(there.ask(**read("u0")).status, pb.NOT_FOUND)


if __name__ == "__main__":
    unittest.main()
