"""Events of each kind, who hears what of them, followers that do not keep up, and npumemctl events."""

import json
import os
import select
import signal
import subprocess
import time
import unittest

from support import NPUMEMCTL, SECONDS, Endless, TestCase, dims, frame, pb

KINDS = ["allocated", "freed", "sealed", "renamed", "moved", "damaged", "refused", "low-space", "client-gone", "progress"]


class Events(TestCase):
    options = (
        "--npus", "4", "--npu-bytes", "8192", "--banks", "8", "--allow-unchecked-reuse", "--limit", "followers=300", "--limit", "sessions=400",
    )

    def subscriber(self, *kinds):
        client = self.client()
        client.call(subscribe=pb.SubscribeRequest(kinds=kinds or KINDS))
        return client

    def next(self, client, kind):
        response = client.receive()
        self.assertEqual((response.id, response.WhichOneof("result")), (0, "event"), response)
        self.assertEqual(response.event.kind, kind, response)
        self.assertGreater(response.event.time_ns, 0)
        return response.event

    def free(self, client, *names):
        client.call(free=pb.FreeRequest(tensors=[pb.Ref(name=n) for n in names]))

    def test_a_refusal_that_quotes_what_is_no_text(self):
        """Neither what no message in Python may have, nor a control sequence of terminals."""
        client, follower = self.client(), self.subscriber("refused")
        for text in (b"\xf8\x90\x80\x80", "\x9b2J".encode()):
            client.id += 1
            request = pb.Request(id=client.id, subscribe=pb.SubscribeRequest(kinds=["~" * len(text)]))
            client.sock.sendall(frame(request.SerializeToString().replace(b"~" * len(text), text)))
            refused = client.receive()
            self.assertRegex(refused.message, "^there are no events of the kind [ -~]*$")
            self.assertEqual(self.next(follower, "refused").message, refused.message)

    def test_of_each_kind(self):
        client = self.client()
        follower = self.subscriber()
        a = client.alloc("a", (1, 4, 1, 1024))
        event = self.next(follower, "allocated")
        self.assertEqual((event.name, event.handle, event.bytes, event.pid), ("a", a.handle, 1024, os.getpid()))
        b = client.alloc("b", (1, 4, 1, 2048))
        self.next(follower, "allocated")
        self.free(client, "a")
        event = self.next(follower, "freed")
        self.assertEqual((event.name, event.handle, event.bytes), ("a", a.handle, 1024))
        client.call(compact=pb.CompactRequest(dry_run=True))
        client.call(compact=pb.CompactRequest())
        self.assertEqual(self.next(follower, "moved").name, "b")
        client.call(fill=pb.FillRequest(tensor=pb.Ref(name="b"), integer=1))
        client.call(seal=pb.SealRequest(tensor=pb.Ref(name="b")))
        self.assertEqual(self.next(follower, "sealed").handle, b.handle)
        client.call(rename=pb.RenameRequest(tensor=pb.Ref(name="b"), name="c"))
        event = self.next(follower, "renamed")
        self.assertEqual((event.name, event.message, event.handle), ("c", "b", b.handle))
        client.call(rename=pb.RenameRequest(tensor=pb.Ref(name="c"), name="c"))  # nothing to tell
        client.call(rename=pb.RenameRequest(tensor=pb.Ref(handle=b.handle), name="b"))
        self.next(follower, "renamed")
        refused = client.ask(fill=pb.FillRequest(tensor=pb.Ref(name="b"), integer=1))
        event = self.next(follower, "refused")
        self.assertEqual((event.status, event.request_id), (refused.status, refused.id))
        self.assertEqual(event.message, refused.message)
        client.alloc("most", (1, 4, 1, 5632))
        self.next(follower, "allocated")
        self.assertEqual(self.next(follower, "low-space").bytes, 512)
        client.alloc("more", (1, 4, 1, 256))  # low already
        self.next(follower, "allocated")
        self.free(client, "most")
        self.next(follower, "freed")
        with self.daemon.client() as other:
            session = other.call(info=pb.InfoRequest()).info.session
        event = self.next(follower, "client-gone")
        self.assertEqual((event.session, event.pid), (session, os.getpid()))

    def test_damage(self):
        client = self.client()
        tall = client.alloc("tall", (1, 1, 1, 256))  # NPU 0 only: the others' bytes are empty
        client.write(tall.handle, bytes(256))
        spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 1, 1, 256), start_npu=1)
        spec.address = 8192 + tall.place.offset
        allocation = pb.Allocation(name="guest", spec=spec, reuse=pb.UNCHECKED)
        guest = client.call(alloc=pb.AllocRequest(tensors=[allocation])).allocated.tensors[0]
        client.write(guest.handle, b"\1" * 256)
        source = client.alloc("source", (1, 1, 1, 256))
        client.write(source.handle, b"\2" * 256)
        follower = self.subscriber("damaged")
        operands = [pb.Operand(role="in", tensor=pb.Ref(name="source")), pb.Operand(role="out", tensor=pb.Ref(name="tall"))]
        run = pb.RunRequest(kernel=pb.PAD2D, operands=operands, params=[])
        answer = client.ask(run=run)
        self.assertEqual(answer.status, pb.OK, answer)
        event = self.next(follower, "damaged")
        self.assertEqual((event.name, event.bytes), ("guest", answer.done.destroyed[0].total_bytes))

    def test_unsubscribes_and_unknown_kinds(self):
        follower = self.subscriber()
        answer = follower.ask(subscribe=pb.SubscribeRequest(kinds=["allocated", "eaten"]))
        self.assertEqual(answer.status, pb.INVALID)
        self.assertIn("eaten", answer.message)
        self.assertEqual(follower.receive().event.kind, "refused")
        follower.call(subscribe=pb.SubscribeRequest())
        self.client().alloc("x")
        self.assertEqual(follower.stat().tensors, 1)

    def test_followers_come_and_go(self):
        client = self.client()
        for i in range(50):
            self.subscriber().close()
            client.alloc(f"t{i}", (1, 4, 1, 16))
        self.assert_alive()

    def test_many_followers_all_hear_and_hold_up_nobody(self):
        client = self.client()
        followers = [self.subscriber("allocated", "freed") for _ in range(300)]
        took = []
        for _ in range(20):
            began = time.monotonic()
            client.alloc("x", (1, 4, 1, 64))
            took.append(time.monotonic() - began)
            self.free(client, "x")
        for follower in followers:
            kinds = [follower.receive().event.kind for _ in range(40)]
            self.assertEqual(kinds, ["allocated", "freed"] * 20)
        # A busy machine lets some of them wait, a daemon that tells all of them at once each one.
        self.assertLess(min(took), 0.1)

    def test_npumemctl(self):
        client = self.client()
        command = [NPUMEMCTL, "--socket", self.daemon.path, "--json", "events", "--kind", "allocated", "--kind", "freed"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            while not select.select([child.stdout], [], [], 0.1)[0]:  # it may not follow yet
                client.alloc("x", (1, 4, 1, 128))
                self.free(client, "x")
            event = json.loads(child.stdout.readline())
            self.assertIn(event["kind"], ("allocated", "freed"))
            self.assertEqual((event["name"], event["bytes"]), ("x", 128))
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(SECONDS), 0)
        wrong = subprocess.run([*command, "--kind", "eaten"], stderr=subprocess.PIPE, check=False)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn(b"eaten", wrong.stderr)


class Progress(TestCase):
    options = ("--npu-bytes", "4194304")

    def test_of_a_long_run(self):
        client = self.client()
        call = Endless(client).call()
        client.call(subscribe=pb.SubscribeRequest(kinds=["progress"]))
        (sent,) = client.post(call)
        events, seen = [], []
        while len(set(seen)) < 3:  # a step may take longer than it is until the next event
            events.append(client.receive().event)
            seen.append(events[-1].done)
        self.assertEqual({(event.kind, event.request_id) for event in events}, {("progress", sent)})
        self.assertEqual(seen, sorted(seen))
        self.assertEqual(len({event.total for event in events}), 1)
        self.assertLess(seen[-1], events[0].total)
        self.assertEqual(events[0].message, "conv2d in=in weights=weights out=out")
        # Another session of this uid hears the same; npumemctl says it in words.
        other = self.client()
        other.call(subscribe=pb.SubscribeRequest(kinds=["progress"]))
        event = other.receive().event
        self.assertEqual((event.session, event.request_id, event.message), (events[0].session, sent, events[0].message))
        command = [NPUMEMCTL, "--socket", self.daemon.path, "events", "--kind", "progress"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            line = child.stdout.readline().decode()
            self.assertRegex(line, rf"^[0-9:.]+ progress +uid {os.getuid()} \(\S+\) pid {os.getpid()} request {sent} +[0-9]+%: conv2d in=in")
            child.send_signal(signal.SIGINT)
            self.assertEqual(child.wait(SECONDS), 0)


if __name__ == "__main__":
    unittest.main()
