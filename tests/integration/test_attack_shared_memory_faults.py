"""What is shared can be read at any time, or is not taken."""

import contextlib
import ctypes
import fcntl
import mmap
import os
import unittest

from support import HungUp, Sharer, TestCase, pb, ref

MFD_HUGETLB, HUGE_BYTES = 4, 2 << 20
MFD_HUGE_2MB = 21 << 26
KEEP_SIZE, PUNCH_HOLE = 1, 1 | 2  # FALLOC_FL_KEEP_SIZE, and with FALLOC_FL_PUNCH_HOLE
F_SEAL_FUTURE_WRITE = 16
POOL = "/proc/sys/vm/nr_hugepages"


def memfd(n, flags=0):
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC | flags)
    if flags:
        os.ftruncate(fd, n)  # huge pages are to be had from a pool
    else:
        os.posix_fallocate(fd, 0, n)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    return fd


def punch(fd, n):
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.fallocate(fd, PUNCH_HOLE, ctypes.c_long(0), ctypes.c_long(n))
    assert result == 0, os.strerror(ctypes.get_errno())


def huge_memfd(test, n):
    try:
        fd = memfd(n, MFD_HUGETLB | MFD_HUGE_2MB)
    except OSError as problem:
        raise unittest.SkipTest(f"this kernel has no memfd on huge pages: {problem}") from None
    test.addCleanup(os.close, fd)
    return fd


def resize_pool(n):
    with open(POOL, "r+", encoding="ascii") as pool:
        before = int(pool.read())
        pool.seek(0)
        pool.write(str(n))
    return before


class SharedMemory(TestCase):
    options = ("--npu-bytes", str(1 << 20), "--refuse-holes")

    def setUp(self):
        super().setUp()
        self.sharer = self.stack.enter_context(Sharer(self.daemon.path))
        self.tensor = self.sharer.alloc(shape=(1, 64, 1, HUGE_BYTES // 64))
        self.sharer.call(fill=pb.FillRequest(tensor=ref(self.tensor), integer=7))

    def assert_refused(self, answer):
        self.assertEqual(answer.status, pb.INVALID, answer.message)
        self.assertIn("huge page", answer.message)

    def test_huge_pages_are_refused(self):
        self.assert_refused(self.sharer.ask_share(huge_memfd(self, HUGE_BYTES)))

    def test_huge_pages_with_a_hole_do_not_end_the_daemon(self):
        """A page that was given back, and is no longer to be had when the daemon touches it."""
        fd = huge_memfd(self, HUGE_BYTES)
        try:
            self.addCleanup(resize_pool, resize_pool(1))
            with mmap.mmap(fd, HUGE_BYTES) as memory:
                memory[0] = 1
        except OSError as problem:
            self.skipTest(f"no huge page is to be had here: {problem}")
        answer = self.sharer.ask_share(fd)
        punch(fd, HUGE_BYTES)
        resize_pool(0)
        if answer.status == pb.OK:
            self.sharer.send(read=pb.ReadRequest(tensor=ref(self.tensor), segment=answer.shared.segment))
            try:
                self.sharer.receive()
            except (ConnectionError, HungUp) as problem:
                self.fail(f"the daemon has ended: {problem!r}")
        self.assert_alive()
        self.assert_refused(answer)

    def allocated(self, fd):
        return os.fstat(fd).st_blocks * 512

    def test_holes_are_refused(self):
        page = mmap.PAGESIZE
        fd = memfd(HUGE_BYTES)
        self.addCleanup(os.close, fd)
        punch(fd, 3 * page)
        answer = self.sharer.ask_share(fd)
        self.assertEqual(answer.status, pb.INVALID, answer.message)
        self.assertIn(f"{3 * page} of the memfd's {HUGE_BYTES} bytes are holes", answer.message)
        os.posix_fallocate(fd, 0, HUGE_BYTES)
        self.sharer.share(fd)

    def test_the_daemon_makes_no_page_where_a_client_takes_one_away(self):
        if b"userfaultfd" in self.daemon.output():
            self.skipTest("this kernel lets the daemon have no userfaultfd, so this was NOT checked")
        for call in ("read", "write"):
            with self.subTest(call):
                fd = memfd(HUGE_BYTES)
                self.addCleanup(os.close, fd)
                segment = self.sharer.share(fd)
                punch(fd, HUGE_BYTES // 2)
                kind = {"read": pb.ReadRequest, "write": pb.WriteRequest}[call]
                request = {call: kind(tensor=ref(self.tensor), segment=segment)}
                for _ in range(2):
                    answer = self.sharer.ask(**request)
                    self.assertEqual(answer.status, pb.DATA_LOST, answer.message)
                self.assertEqual(self.allocated(fd), HUGE_BYTES - HUGE_BYTES // 2)
                self.sharer.call(unshare=pb.UnshareRequest(segment=segment))
                self.sharer.call(fill=pb.FillRequest(tensor=ref(self.tensor), integer=7))
        self.assert_alive()

    def anonymous(self):
        """Bytes of memory of the daemon's own."""
        with open(f"/proc/{self.daemon.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("RssAnon"))

    def test_no_page_of_the_daemons_own_stands_in_for_one_that_was_taken_away(self):
        """An element in each page: 4,096 elements would fill 16 MiB."""
        if b"userfaultfd" in self.daemon.output():
            self.skipTest("this kernel lets the daemon have no userfaultfd, so this was NOT checked")
        n, page = 4096, mmap.PAGESIZE
        fd = memfd(n * page)
        self.addCleanup(os.close, fd)
        tensor = self.sharer.alloc(shape=(1, 1, 1, n))
        self.sharer.call(fill=pb.FillRequest(tensor=ref(tensor), integer=7))
        segment = self.sharer.share(fd)
        request = pb.ReadRequest(tensor=ref(tensor), segment=segment, segment_stride=pb.Dims(n=1, c=1, h=1, w=page))
        self.sharer.call(read=request)
        before = self.anonymous()
        punch(fd, n * page)
        self.assertEqual(self.sharer.ask(read=request).status, pb.DATA_LOST)
        self.assertLess(self.anonymous() - before, n * page // 4)
        self.assertEqual(self.allocated(fd), 0)
        self.sharer.call(unshare=pb.UnshareRequest(segment=segment))

    def test_what_can_no_longer_be_written_has_no_holes_either(self):
        for seal in (fcntl.F_SEAL_WRITE, F_SEAL_FUTURE_WRITE):
            fd = memfd(HUGE_BYTES)
            self.addCleanup(os.close, fd)
            os.pwrite(fd, b"x" * HUGE_BYTES, 0)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seal)
            segment = self.sharer.share(fd)
            with self.assertRaises(AssertionError):
                punch(fd, HUGE_BYTES)
            self.sharer.call(write=pb.WriteRequest(tensor=ref(self.tensor), segment=segment))
            self.assertEqual(set(self.sharer.read(self.tensor.handle)), {ord("x")})

    def test_pages_behind_the_end_stand_for_no_holes(self):
        if b"userfaultfd" in self.daemon.output():
            self.skipTest("this kernel lets the daemon have no userfaultfd, so this was NOT checked")
        for seal in (fcntl.F_SEAL_WRITE, F_SEAL_FUTURE_WRITE, 0):
            with self.subTest(seal=seal):
                fd = os.memfd_create("test", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
                self.addCleanup(os.close, fd)
                os.ftruncate(fd, HUGE_BYTES)
                libc = ctypes.CDLL(None)
                libc.fallocate(fd, KEEP_SIZE, ctypes.c_long(HUGE_BYTES), ctypes.c_long(HUGE_BYTES))
                before = self.allocated(fd)
                self.assertEqual(before, HUGE_BYTES)
                fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | seal)
                segment = self.sharer.share(fd)
                request = pb.WriteRequest(tensor=ref(self.tensor), segment=segment)
                self.assertEqual(self.sharer.ask(write=request).status, pb.DATA_LOST)
                self.assertEqual(self.allocated(fd), before)


class MemoryCgroup(TestCase):
    """What the daemon's memory cgroup is charged for, with a limit as a unit's MemoryMax sets."""

    LIMIT, MEMFD, TIMES = 192 << 20, 32 << 20, 10
    options = ("--npus", "64", "--npu-bytes", str(1 << 20))

    def setUp(self):
        self.cgroup = self.make_cgroup()
        self.preexec = self.enter
        super().setUp()

    def make_cgroup(self):
        """The daemon has ended when it is removed: cleanups come in the other order."""
        for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            path = os.path.join(root, f"npumem-test-{os.getpid()}")
            try:
                os.mkdir(path)
            except OSError:
                continue
            self.addCleanup(os.rmdir, path)
            with contextlib.suppress(OSError):
                with open(os.path.join(path, limit), "r+", encoding="ascii") as file:
                    file.write(str(self.LIMIT))
                return path
        self.skipTest("no memory cgroup can be made here, so this was NOT checked")

    def enter(self):
        with open(os.path.join(self.cgroup, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(os.getpid()))

    def test_clients_cannot_fill_it_by_holes(self):
        if b"userfaultfd" in self.daemon.output():
            self.skipTest("this kernel lets the daemon have no userfaultfd, so this was NOT checked")
        sharer = self.stack.enter_context(Sharer(self.daemon.path))
        tensor = sharer.alloc(shape=(1, 64, 1, self.MEMFD // 64))
        sharer.call(fill=pb.FillRequest(tensor=ref(tensor), integer=7))
        for _ in range(self.TIMES):
            fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
            self.addCleanup(os.close, fd)
            os.ftruncate(fd, self.MEMFD)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
            answer = sharer.ask_share(fd)
            if answer.status != pb.OK:
                os.posix_fallocate(fd, 0, self.MEMFD)
                answer = sharer.ask_share(fd)
                punch(fd, self.MEMFD)
            try:
                sharer.ask(read=pb.ReadRequest(tensor=ref(tensor), segment=answer.shared.segment))
                sharer.call(unshare=pb.UnshareRequest(segment=answer.shared.segment))
            except (ConnectionError, HungUp) as problem:
                self.fail(f"the daemon was killed: {problem!r}")
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
