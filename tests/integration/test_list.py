"""Lists in pages, as a foreign client asks for them, while others come and go."""

import subprocess
import threading
import unittest

from support import NPUMEMCTL, TestCase, dims, pb

PAGE_TENSORS = 256


def allocate(client, n, prefix=""):
    """n tensors of 128 bytes on one NPU; their handles."""
    handles = []
    spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 1, 1, 16))
    while len(handles) < n:
        names = [prefix and f"{prefix}{i}" for i in range(len(handles), min(len(handles) + PAGE_TENSORS, n))]
        request = pb.AllocRequest(tensors=[pb.Allocation(name=name, spec=spec) for name in names])
        handles += [tensor.handle for tensor in client.call(alloc=request).allocated.tensors]
    return handles


def free(client, handles):
    for first in range(0, len(handles), PAGE_TENSORS):
        some = handles[first : first + PAGE_TENSORS]
        client.call(free=pb.FreeRequest(tensors=[pb.Ref(handle=handle) for handle in some]))


class Pages(TestCase):
    options = ("--npus", "4", "--npu-bytes", str(2 << 20))

    def test_one_that_is_there_throughout_is_told_once(self):
        client, other = self.client(), self.client()
        passing = allocate(other, 300, "before")
        stays = set(allocate(client, 1000, "x"))
        passing += allocate(other, 300, "between")
        over = threading.Event()
        problems, rounds = [], []

        def come_and_go():
            try:
                handles = passing
                while not over.is_set():
                    rounds.append(len(handles))
                    free(other, handles[::2])
                    free(other, handles[1::2])
                    handles = allocate(other, 600, f"round{len(rounds)}.")
            except BaseException as problem:  # noqa: told by the test
                problems.append(problem)

        thread = threading.Thread(target=come_and_go)
        thread.start()
        try:
            for limit in (0, 7, 100, 256, 2**32 - 1) * 3:
                told = []
                for page in client.pages(limit):
                    self.assertLessEqual(len(page.tensors), limit if 0 < limit < PAGE_TENSORS else PAGE_TENSORS)
                    told += [tensor.handle for tensor in page.tensors]
                self.assertEqual(len(set(told)), len(told))
                self.assertEqual(stays - set(told), set())
        finally:
            over.set()
            thread.join()
        self.assertEqual(problems, [])
        self.assertGreater(len(rounds), 1)

    def test_the_command_line_shows_all_of_them(self):
        client = self.client()
        allocate(client, 2 * PAGE_TENSORS + 1, "x")
        command = [NPUMEMCTL, "--socket", self.daemon.path, "ls"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        self.assertEqual(len(lines), 1 + 2 * PAGE_TENSORS + 1)


if __name__ == "__main__":
    unittest.main()
