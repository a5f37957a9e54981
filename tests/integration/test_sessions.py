"""Several clients and several processes: what is shared, what dies with whom."""

import os
import signal
import subprocess
import sys
import unittest

from support import TestCase, dims, pb, wait_for

CHILD = """
import os, sys, time
sys.path.insert(0, {support!r})
from support import Client
client = Client({path!r})
for i in range(5):
    t = client.alloc("", (1, 8, 1, 100))
    client.write(t.handle, b"\\7" * 800)
kept = client.alloc("kept-" + str(os.getpid()), (1, 8, 1, 100))
client.write(kept.handle, b"\\7" * 800)
print(t.handle, flush=True)
time.sleep(60)
"""


class Sessions(TestCase):
    def start_child(self):
        code = CHILD.format(support=os.path.dirname(os.path.abspath(__file__)), path=self.daemon.path)
        child = subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE)
        self.stack.callback(child.wait)
        self.stack.callback(child.kill)
        self.stack.callback(child.stdout.close)
        return child, int(child.stdout.readline())

    def test_a_killed_client_leaves_exactly_its_named_tensors(self):
        client = self.client()
        mine = client.alloc("", (1, 4, 1, 10))
        children = [self.start_child() for _ in range(3)]
        self.assertEqual(client.stat().tensors, 19)
        for dead, (child, handle) in enumerate(children, 1):
            read = pb.ReadRequest(tensor=pb.Ref(handle=handle))
            self.assertEqual(client.ask(read=read).status, pb.NOT_FOUND)
            child.send_signal(signal.SIGKILL)
            wait_for(lambda n=19 - 5 * dead: client.stat().tensors == n)
            self.assertEqual(client.read(self.kept(client, child), 0, 3), b"\7\7\7")
        client.write(mine.handle, bytes(40))
        wait_for(lambda: client.stat().sessions == 1)

    def kept(self, client, child):
        request = pb.OpenRequest(tensor=pb.Ref(name=f"kept-{child.pid}"))
        return client.call(open=request).tensor.handle

    def test_a_named_tensor_is_one_for_all_sessions_of_its_uid(self):
        with self.daemon.client() as one:
            one.write(one.alloc("x", (1, 1, 1, 4)).handle, b"abcd")
        two = self.client()
        handle = two.call(open=pb.OpenRequest(tensor=pb.Ref(name="x"))).tensor.handle
        self.assertEqual(two.read(handle), b"abcd")
        taken = pb.Allocation(name="x", spec=pb.Spec(dtype=pb.INT8, shape=pb.Dims(n=1, c=1, h=1, w=1)))
        self.assertEqual(two.ask(alloc=pb.AllocRequest(tensors=[taken])).status, pb.ALREADY_EXISTS)

    def test_freed_bytes_are_gone(self):
        client = self.client()
        for _ in range(2):
            tensor = client.alloc("x", (1, 1, 1, 6))
            self.assertEqual(tensor.place.address, 0)
            self.assertEqual(tensor.state, "unwritten")
            read = pb.ReadRequest(tensor=pb.Ref(handle=tensor.handle))
            self.assertEqual(client.ask(read=read).status, pb.FAILED_PRECONDITION)
            dump = client.call(dump=pb.DumpRequest(npu=0, offset=0, bytes=6)).dump
            self.assertEqual(dump.data, bytes(6))
            client.write(tensor.handle, b"secret")
            client.call(free=pb.FreeRequest(tensors=[pb.Ref(name="x")]))

    def test_so_many_are_freed_at_once(self):
        client = self.client()
        spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 1, 1, 1))
        refs = []
        for n in (256, 1):
            made = client.call(alloc=pb.AllocRequest(tensors=[pb.Allocation(spec=spec)] * n)).allocated.tensors
            refs += [pb.Ref(handle=tensor.handle) for tensor in made]
        response = client.ask(free=pb.FreeRequest(tensors=refs))
        self.assertEqual(response.status, pb.INVALID)
        self.assertEqual(response.message, "257 tensors to free, and at most 256 are possible")
        self.assertEqual(client.stat().tensors, 257)
        self.assertEqual(client.call(free=pb.FreeRequest(tensors=refs[1:])).freed.tensors, 256)
        self.assertEqual(client.stat().tensors, 1)

    def test_sessions_that_come_and_go(self):
        for _ in range(300):
            with self.daemon.client() as client:
                client.alloc()
        client = self.client()
        wait_for(lambda: client.stat().tensors == 0)
        wait_for(lambda: client.stat().free == client.stat().total)


if __name__ == "__main__":
    unittest.main()
