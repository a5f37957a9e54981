"""Lists in pages, as a foreign client asks for them, while others come and go."""

import os
import subprocess
import threading
import unittest

from support import Client, TestCase, dims, pb, run_as

ALICE, BOB = 12001, 12002
NPUMEMCTL = os.path.join(os.environ["NPUMEM_BUILD"], "client/ctl/npumemctl")
PAGE_TENSORS = 256
PAGE_LOOKS = 4096


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

    def test_any_number_will_do(self):
        client = self.client()
        handles = allocate(client, 3)
        pages = list(client.pages(1))
        self.assertEqual([[tensor.handle for tensor in page.tensors] for page in pages], [[h] for h in handles])
        self.assertEqual(pages[-1].next, 0)
        for after in (4, 2**31, 2**32 - 1, 2**63, 2**64 - 1, pages[1].next + 1, *handles):
            page = client.call(list=pb.ListRequest(after=after)).list
            self.assertLessEqual(len(page.tensors), 3)
        page = client.call(list=pb.ListRequest(after=2**64 - 1, limit=2**32 - 1)).list
        self.assertEqual((len(page.tensors), page.next), (0, 0))
        # What was told last is gone when the next page is asked for, or another has its place.
        free(client, handles[:1])
        self.assertEqual([t.handle for t in client.call(list=pb.ListRequest(after=pages[0].next)).list.tensors], handles[1:])
        (newer,) = allocate(client, 1)
        self.assertEqual([t.handle for t in client.call(list=pb.ListRequest(after=pages[0].next)).list.tensors], handles[1:])
        self.assertEqual({t.handle for t in client.tensors()}, {newer, *handles[1:]})

    def test_others_are_neither_told_nor_waited_for(self):
        n = 3 * PAGE_LOOKS

        def alice():
            with Client(self.daemon.path) as client:
                allocate(client, n, "hers")

        def bob():
            with Client(self.daemon.path) as client:
                (own,) = allocate(client, 1, "his")
                pages = list(client.pages())
                assert [t.handle for page in pages for t in page.tensors] == [own], pages
                # No page looked at more than it may.
                assert [page.next for page in pages] == [PAGE_LOOKS, 2 * PAGE_LOOKS, 3 * PAGE_LOOKS, 0], pages

        run_as(ALICE, alice)
        run_as(BOB, bob)
        names = run_as(ALICE, lambda: len(Client(self.daemon.path).names()))
        self.assertEqual(names, str(n))

    def test_the_command_line_shows_all_of_them(self):
        client = self.client()
        allocate(client, 2 * PAGE_TENSORS + 1, "x")
        command = [NPUMEMCTL, "--socket", self.daemon.path, "ls"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        self.assertEqual(len(lines), 1 + 2 * PAGE_TENSORS + 1)


if __name__ == "__main__":
    unittest.main()
