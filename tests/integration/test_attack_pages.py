"""Small operations and dumps of memory whose pages fault, messages of one long value, and many stale answers: none of them takes
the loop's time. Counted in the processor time of its longest turn, or in the page faults of its thread."""

import os
import shutil
import tempfile
import unittest

from support import FAULTS, SLOWER, Daemon, TestCase, alloc, dims, encode_length, fill, frame, free, pb, read, ref

ALICE, BOB = 12001, 12002
MIB = 1 << 20
N_NPUS = 1024
PAGE = 4096
ATTEMPTS = 8


class Longest(TestCase):
    def setUp(self):
        super().setUp()
        self.alice, self.watcher = self.client(ALICE), self.client()

    def longest_ms(self, function):
        self.watcher.call(stat=pb.StatRequest(reset=True))
        function()
        return self.watcher.call(stat=pb.StatRequest(details=True)).stat.loop.longest_cpu_ns / 1e6 / FAULTS

    def assert_short(self, bound, functions):
        """A busy machine may disturb any one of them, but not all."""
        found = []
        for function in functions:
            found.append(self.longest_ms(function))
            if found[-1] < bound * SLOWER:
                return
        self.fail(f"the loop's longest turns: {found} ms")

    def each_on_a_page_of_its_own(self):
        """Views of 4 bytes on each NPU."""
        for i in range(ATTEMPTS):
            self.alice.alloc(f"t{i}", (1, N_NPUS, 1, 4 * PAGE), layout=pb.COMPACT)
            self.alice.call(view=pb.ViewRequest(name=f"v{i}", tensor=ref(f"t{i}"), to=dims(1, N_NPUS, 1, 4)))
        return [f"v{i}" for i in range(ATTEMPTS)]

    def fill_each(self, names, value):
        return [lambda name=name: self.alice.call(**fill(name, value)) for name in names]


def faults(daemon):
    """Of the loop's thread: page faults, and those that waited for a disk."""
    with open(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[7]), int(fields[9])


class PlainMemory(Longest):
    options = ("--npus", str(N_NPUS), "--npu-bytes", str(MIB // 4))

    def test_the_first_small_fill_of_many_npus(self):
        self.assert_short(1.5, self.fill_each(self.each_on_a_page_of_its_own(), 1))

    def test_the_first_small_fill_in_a_submit(self):
        names = self.each_on_a_page_of_its_own()
        calls = [{"submit": pb.SubmitRequest(operations=[pb.Operation(**fill(name, 1))])} for name in names]
        self.assert_short(1.5, [lambda call=call: self.alice.call(**call) for call in calls])

    def test_to_free_what_was_filled_in_a_small_part(self):
        """To forget a tensor clears all its bytes: here 4 on each NPU, of as many pages, of which one was ever written."""
        shape = {"shape": (1, N_NPUS, 4, 1), "stride": dims(4 * PAGE, 4 * PAGE, PAGE, 1)}
        for i in range(ATTEMPTS):
            tensor = self.alice.alloc(f"t{i}", layout=pb.STRIDED, **shape)
            self.alice.write(tensor.handle, b"x")
        self.assert_short(1.5, [lambda i=i: self.alice.call(**free(f"t{i}")) for i in range(ATTEMPTS)])

    def test_dumps_of_pages_that_were_never_touched(self):
        found = []
        for npu in range(ATTEMPTS):
            before = faults(self.daemon)[0]
            data = self.alice.call(dump=pb.DumpRequest(npu=npu, bytes=MIB // 4)).dump.data
            found.append(faults(self.daemon)[0] - before)
            self.assertEqual(data, bytes(MIB // 4))
        self.assertLess(min(found), MIB // 4 // PAGE // 2, found)


class LargeMemory(Longest):
    options = ("--npus", "16", "--npu-bytes", str(1024 * MIB))

    def test_opens_whose_marks_are_on_many_pages(self):
        """Each element has its marks on a page of its own."""
        stride = dims(0, 0, 0, 8 * PAGE)
        found = []
        for i in range(4):
            spec = pb.Spec(dtype=pb.INT8, layout=pb.STRIDED, shape=dims(1, 2, 1, 32000), stride=stride, start_npu=2 * i)
            self.alice.call(alloc=pb.AllocRequest(tensors=[pb.Allocation(name="t", spec=spec)]))
            self.alice.call(write=pb.WriteRequest(tensor=ref("t"), first=0, data=b"1"))
            found.append(self.longest_ms(lambda: self.alice.call(open=pb.OpenRequest(tensor=ref("t")))))
            self.alice.call(**free("t"))
        self.assertLess(min(found), 5 * SLOWER, found)


class Disk(Longest):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="npumem-state-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.options = ("--npus", str(N_NPUS), "--npu-bytes", str(MIB // 4), "--state-dir", self.directory + "/state")
        super().setUp()

    def sync(self):
        """As sync(2) of any user does, for the state's files alone."""
        for name in os.listdir(self.directory + "/state"):
            fd = os.open(f"{self.directory}/state/{name}", os.O_RDONLY)
            os.fsync(fd)
            os.close(fd)

    def test_the_first_small_fill_and_one_after_a_sync(self):
        names = self.each_on_a_page_of_its_own()
        self.assert_short(1.5, self.fill_each(names[:1], 1))
        self.assert_short(1.5, self.fill_each(names[1:], 1))

        def after_a_sync(fills):
            self.sync()
            return fills

        self.assert_short(1.5, (after_a_sync(fills) for fills in self.fill_each(names[1:], 2)))


class ColdDisk(unittest.TestCase):
    """A daemon that starts with a state of which nothing is in memory, as after a boot."""

    N = 64
    ORDER = [i * 37 % 64 for i in range(N)]

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="npumem-state-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.options = ("--npus", "1", "--npu-bytes", str(64 * MIB), "--state-dir", self.directory + "/state")
        with Daemon(*self.options) as daemon, daemon.client(ALICE) as alice:
            for i in range(self.N):
                for name, n in ((f"part{i}", MIB // 2), (f"all{i}", 16), (f"between{i}", MIB // 4)):
                    alice.write(alice.alloc(name, (1, 1, 1, n)).handle, b"0123456789abcdef")
        for name in os.listdir(self.directory + "/state"):
            fd = os.open(f"{self.directory}/state/{name}", os.O_RDONLY)
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)

    def faults(self, kind, calls):
        """Of the loop's thread while they were done: all, or (1) those that waited for the disk."""
        with Daemon(*self.options) as daemon, daemon.client(ALICE) as alice, daemon.client(BOB) as bob:
            before = faults(daemon)[kind]
            for call in calls:
                alice.call(**call)
                bob.call(info=pb.InfoRequest())
            return faults(daemon)[kind] - before

    def test_small_reads(self):
        for name in ("part", "all"):
            self.assertLess(self.faults(1, (read(f"{name}{i}", 0, 16) for i in self.ORDER)), 3, name)

    def test_dumps(self):
        dumps = ({"dump": pb.DumpRequest(npu=0, offset=i * MIB, bytes=MIB)} for i in self.ORDER)
        self.assertLess(self.faults(1, dumps), 3)

    @unittest.skipIf(SLOWER > 1, "a sanitizer's own memory has faults, too")
    def test_opens(self):
        """The bits are in memory by then, but not in the tables of the new process."""
        opens = ({"open": pb.OpenRequest(tensor=ref(f"part{i}"))} for i in self.ORDER)
        self.assertLess(self.faults(0, opens), self.N // 2)


class LongValues(Longest):
    def message(self, *numbers_and_content):
        *numbers, content = numbers_and_content
        for number in reversed(numbers):
            content = encode_length(number << 3 | 2) + encode_length(len(content)) + content
        return frame(b"\x08\x01" + content)

    def ask(self, message, status, words=""):
        def ask():
            self.alice.sock.sendall(message)
            answer = self.alice.receive()
            self.assertEqual(answer.status, status, answer.message)
            self.assertIn(words, answer.message)

        return ask

    def test_a_long_text_is_refused_unread(self):
        message = self.message(10, 1, 2, b"a" * (15 * MIB))
        refused = self.ask(message, pb.INVALID, "field name has a text of 15728640 bytes: at most 4096")
        self.assert_short(0.8, [refused] * ATTEMPTS)
        self.ask(self.message(10, 1, 2, b"a" * 4097), pb.INVALID, "field name")()
        answer = self.alice.ask(open=pb.OpenRequest(tensor=pb.Ref(name="a" * 4096)))
        self.assertNotIn("field name", answer.message)

    def test_many_texts_are_refused(self):
        message = frame(pb.Request(id=1, free=pb.FreeRequest(tensors=[ref("a" * 4096)] * 4000)))
        refused = self.ask(message, pb.RESOURCE_EXHAUSTED, "more than 524288 bytes of text")
        self.assert_short(1.6, [refused] * ATTEMPTS)
        self.assertNotIn("of text", self.alice.ask(free=pb.FreeRequest(tensors=[ref("a" * 4096)] * 128)).message)

    def test_an_unknown_field_is_not_copied(self):
        message = self.message(2047, b"\x01" * (16 * MIB - 100))
        self.assert_short(0.8, [self.ask(message, pb.UNIMPLEMENTED, "call 2047")] * ATTEMPTS)


class Stale(Longest):
    """Answers of reads that lingering sessions have not acknowledged, all of which one change makes stale."""

    N = 4096

    def setUp(self):
        directory = tempfile.mkdtemp(prefix="npumem-state-")
        self.addCleanup(shutil.rmtree, directory)
        self.options = ("--state-dir", directory + "/state")
        super().setUp()

    def test_a_change_of_what_many_have_read(self):
        self.alice.call(resume=pb.ResumeRequest(linger=True))
        self.alice.call(**alloc("t"))
        self.alice.call(**fill("t", 1))
        ids = iter(range(1001, 1 << 20, 2))

        def changes():
            for _ in range(self.N // 256):
                requests = [pb.Request(id=next(ids), **read("t", 0, 1)) for _ in range(256)]
                self.alice.sock.sendall(b"".join(frame(request) for request in requests))
                for _ in requests:
                    self.assertEqual(self.alice.receive().status, pb.OK)
            self.alice.sock.sendall(frame(pb.Request(id=next(ids), **fill("t", 2))))
            self.assertEqual(self.alice.receive().status, pb.OK)

        self.assert_short(1, [changes] * 3)


if __name__ == "__main__":
    unittest.main()
