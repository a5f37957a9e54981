"""What a daemon says of a state that it cannot take, or not wholly."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from state import GEOMETRY, StateTestCase
from support import NPUMEMD, SECONDS, HungUp, alloc, fill, free, pb, read, ref

needs_root = unittest.skipIf(os.geteuid(), "root alone can mount")


class Files(StateTestCase):
    def start_refused(self, *words, options=GEOMETRY, state=None):
        """What a daemon says that does not start; nothing of the state changes by that."""
        state = state or self.state
        before = {name: self.content(state, name) for name in os.listdir(state)}
        path = os.path.join(self.directory, "other.sock")
        done = subprocess.run(
            [NPUMEMD, "--socket", path, "--state-dir", state, *options], stderr=subprocess.PIPE, timeout=SECONDS, check=False
        )
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 1, text)
        for word in words:
            self.assertIn(word, text)
        self.assertEqual({name: self.content(state, name) for name in os.listdir(state)}, before)
        return text

    @staticmethod
    def content(state, name):
        with open(os.path.join(state, name), "rb") as file:
            return file.read()

    def change(self, name, change):
        with open(os.path.join(self.state, name), "r+b") as file:
            change(file)

    @needs_root
    def test_a_directory_that_others_can_change_is_refused(self):
        """Also a new one, in which nothing is made then."""
        self.client().call(**alloc("t"))
        self.stop()
        made = os.path.join(self.directory, "made")
        os.mkdir(made, 0o700)
        for state in (self.state, made):
            for mode in (0o777, 0o1777, 0o770, 0o702):
                os.chmod(state, mode)
                self.start_refused(state + ":", f"may be written by others (mode {mode:04o})", state=state)
            os.chmod(state, 0o755)
            os.chown(state, 12001, 12001)
            self.start_refused(state + ":", "belongs to uid 12001, not to uid 0", state=state)
            os.chown(state, 0, 0)
        self.assertEqual(os.listdir(made), [])
        self.start()
        self.assertEqual(self.client().names(), ["t"])

    def test_a_damaged_cell_costs_that_tensor_alone(self):
        client = self.client()
        handles = {}
        for i in range(5):
            handles[f"t{i}"] = client.alloc(f"t{i}").handle
            client.call(**fill(f"t{i}", i + 1))
        self.kill()
        content = self.content(self.state, "tensors")
        at = content.index(b"t2\0")
        self.change("tensors", lambda file: (file.seek(at), file.write(b"T")))
        self.start()
        self.assertIn("lost: 1 tensors, whose cells are damaged", self.output())
        client = self.client()
        self.assertEqual(client.names(), ["t0", "t1", "t3", "t4"])
        for i in (0, 1, 3, 4):
            self.assertEqual(client.call(**read(f"t{i}")).done.data, bytes([i + 1] * 128))
        # Nobody can read what it had, and its handle is never given again.
        place = client.call(open=pb.OpenRequest(tensor=ref("t1"))).tensor.place
        self.assertEqual(client.call(dump=pb.DumpRequest(npu=0, offset=place.offset + 128, bytes=128)).dump.data, bytes(128))
        for _ in range(50):
            tensor = client.alloc()
            self.assertNotIn(tensor.handle, handles.values())
            client.call(**free(tensor))
        self.restart()
        self.assertNotIn("lost", self.output())
        self.assertEqual(self.client().names(), ["t0", "t1", "t3", "t4"])


class CompactionRecord(StateTestCase):
    """daemon/device/memory/kept.h, behind the first page of the file: how many moves, where it is, and the moves."""

    options = ("--npus", "4", "--npu-bytes", "33554432")
    MOVES_OFF, MOVES = 4096 + 8, 4096 + 24

    def setUp(self):
        super().setUp()
        while not self.kill_when_it_moves():
            self.stop()
            shutil.rmtree(self.state)
            self.start()

    def kill_when_it_moves(self):
        """Whether that came before the compaction was over."""
        client = self.client()
        for i in range(6):
            client.call(**alloc(f"hole{i}", (1, 4, 1, 640)))
            client.call(**alloc(f"t{i}", (1, 4, 1, 5000000)))
            client.call(**fill(f"t{i}", i + 1))
        for i in range(6):
            client.call(**free(f"hole{i}"))
        client.post({"compact": pb.CompactRequest()})
        end = time.monotonic() + 1
        while not self.stops_within_moves():
            self.daemon.process.send_signal(signal.SIGCONT)
            if time.monotonic() > end:
                return False
        self.daemon.process.kill()
        self.daemon.process.wait()
        self.stop()
        return True

    def stops_within_moves(self):
        self.daemon.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.daemon.process.pid, os.WUNTRACED)
        with open(os.path.join(self.state, "memory"), "rb") as file:
            file.seek(self.MOVES_OFF)
            words = file.read(16)
        return any(words[:8]) and any(words[8:14])

    def value(self, name):
        """Of all its elements, which are more than a frame has."""
        values = set()
        for first in (0, 10000000):
            answer = self.client().ask(read=pb.ReadRequest(tensor=ref(name), first=first, count=10000000))
            if answer.status:
                return answer.status
            values |= set(answer.done.data)
        return values

    def values(self):
        return [self.value(f"t{i}") for i in range(6)]

    def test_it_is_gone_on_with(self):
        self.start()
        self.assertEqual(self.values(), [{i + 1} for i in range(6)])

    def test_a_flip_in_it_is_noticed(self):
        with open(os.path.join(self.state, "memory"), "r+b") as file:
            file.seek(self.MOVES + 8)  # where the first one is moved from
            byte = file.read(1)[0]
            file.seek(self.MOVES + 8)
            file.write(bytes([byte ^ 64]))
        self.start()
        self.assertIn("lost: the data of all 6 tensors, as the record of the compaction", self.output())
        self.assertEqual(self.values(), [pb.DATA_LOST] * 6)
        client = self.client()
        client.call(**fill("t0", 9))
        self.restart()
        self.assertEqual(self.values(), [{9}] + [pb.DATA_LOST] * 5)


class CutShort(StateTestCase):
    def test_a_file_that_is_cut_short_under_the_daemon_is_named(self):
        for name in ("memory", "tensors"):
            client = self.client()
            client.call(**alloc("t"))
            os.truncate(os.path.join(self.state, name), 0)
            with contextlib.suppress(OSError, HungUp):
                client.call(**fill("t", 1))
                client.call(**alloc("u"))
            self.assertEqual(self.daemon.process.wait(SECONDS), -signal.SIGBUS)
            self.assertIn(f"npumemd: SIGBUS: the file {self.state}/{name} is shorter than it was", self.output())
            self.daemon.process.returncode = 0  # as it was to be
            self.stop()
            shutil.rmtree(self.state)
            self.start()


@needs_root
class FullDisk(StateTestCase):
    """Of a small file system."""

    def setUp(self):
        self.mount = tempfile.mkdtemp(prefix="npumem-full-")
        self.addCleanup(os.rmdir, self.mount)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4M", "npumem", self.mount], check=False).returncode:
            self.skipTest("no file system can be mounted here: a full disk was NOT tested")
        self.addCleanup(subprocess.run, ["umount", "-l", self.mount], check=True)
        super().setUp()

    def start(self, *options):
        self.state = os.path.join(self.mount, "state")
        super().start(*options)

    def fill_disk(self):
        with open(os.path.join(self.mount, "rest"), "wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(4096))

    def test_a_change_that_needs_room_is_refused_and_what_stood_stays(self):
        client = self.client()
        self.fill_disk()
        n, refused = 0, None
        while not refused:
            answer = client.ask(**alloc(f"t{n}", (1, 8, 1, 4), layout=pb.COMPACT))
            refused = answer if answer.status else None
            n += not refused
            self.assertLess(n, 10000)
        self.refused(refused, pb.RESOURCE_EXHAUSTED, "no room", "nothing was changed")
        self.assertGreater(n, 3)
        self.assertEqual(client.stat().tensors, n)
        # What needs no room is done.
        client.call(**fill("t0", 9))
        client.call(seal=pb.SealRequest(tensor=ref("t0")))
        client.call(**free("t1"))
        client.call(**alloc("again", (1, 8, 1, 4), layout=pb.COMPACT))
        self.restart()
        client = self.client()
        self.assertEqual(set(client.names()), {f"t{i}" for i in range(n) if i != 1} | {"again"})
        self.assertEqual(client.call(**read("t0")).done.data, bytes([9] * 32))
        # With room again it goes on.
        os.unlink(os.path.join(self.mount, "rest"))
        client.call(**alloc("more", (1, 8, 1, 4), layout=pb.COMPACT))

    def test_everything_that_a_token_needs(self):
        client = self.client()
        client.call(**alloc("t"))
        self.fill_disk()
        n, answer = 0, None
        while not answer or not answer.status:
            client = self.client()
            answer = client.ask(resume=pb.ResumeRequest())
            n += 1
            self.assertLess(n, 200)
        self.refused(answer, pb.RESOURCE_EXHAUSTED, "no room")
        client.call(**free("t"))

    def test_no_room_to_begin(self):
        self.stop()
        shutil.rmtree(self.state)
        with open(os.path.join(self.mount, "rest"), "wb") as file:
            os.posix_fallocate(file.fileno(), 0, (4 << 20) - (300 << 10))
        path = os.path.join(self.directory, "other.sock")
        done = subprocess.run(
            [NPUMEMD, "--socket", path, "--state-dir", self.state, *GEOMETRY], stderr=subprocess.PIPE, timeout=SECONDS, check=False
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"No space left", done.stderr)
        os.unlink(os.path.join(self.mount, "rest"))
        self.start()


class Durable(StateTestCase):
    options = (*GEOMETRY, "--durable")

    def test_it_does_the_same(self):
        client = self.client()
        for i in range(20):
            client.call(**alloc(f"t{i}"))
            client.call(**fill(f"t{i}", i))
        client.call(**free("t3"))
        self.restart()
        client = self.client()
        self.assertEqual(len(client.names()), 19)
        self.assertEqual(client.call(**read("t7")).done.data, bytes([7] * 128))

    def test_it_needs_a_directory(self):
        done = subprocess.run([NPUMEMD, "--durable"], stderr=subprocess.PIPE, timeout=SECONDS, check=False)
        self.assertEqual((done.returncode, done.stderr), (2, b"npumemd: --durable goes with --state-dir (see npumemd --help)\n"))


if __name__ == "__main__":
    unittest.main()
