"""What is shared can be read at any time, or is not taken."""

import ctypes
import fcntl
import mmap
import os
import unittest

from support import HungUp, Sharer, TestCase, pb, ref

MFD_HUGETLB, HUGE_BYTES = 4, 2 << 20
MFD_HUGE_2MB = 21 << 26
PUNCH_HOLE = 1 | 2  # FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE
POOL = "/proc/sys/vm/nr_hugepages"


def memfd(n, flags=0):
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC | flags)
    os.ftruncate(fd, n)
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
    options = ("--npu-bytes", str(1 << 20))

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

    def test_a_hole_is_zeros_and_can_be_written(self):
        fd = memfd(HUGE_BYTES)
        self.addCleanup(os.close, fd)
        with mmap.mmap(fd, HUGE_BYTES) as memory:
            memory[:] = b"\5" * HUGE_BYTES
            segment = self.sharer.share(fd)
            punch(fd, HUGE_BYTES // 2)
            self.sharer.call(write=pb.WriteRequest(tensor=ref(self.tensor), segment=segment))
            half = bytes(HUGE_BYTES // 2)
            self.assertEqual(self.sharer.read(self.tensor.handle), half + b"\5" * len(half))
            punch(fd, HUGE_BYTES)
            self.sharer.call(read=pb.ReadRequest(tensor=ref(self.tensor), segment=segment))
            self.assertEqual(memory[:], half + b"\5" * len(half))
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
