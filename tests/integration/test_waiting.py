"""Allocations that wait for room, with the real daemon and its clock."""

import os
import socket
import subprocess
import sys
import time
import unittest

from support import NPUMEMCTL, SECONDS, Client, HungUp, TestCase, as_uid, dims, pb, run_as, wait_for



def request(name, w, wait_ms=0, c=4):
    spec = pb.Spec(dtype=pb.INT8, shape=dims(1, c, 1, w))
    return pb.AllocRequest(tensors=[pb.Allocation(name=name, spec=spec)], wait_ms=wait_ms)


class Waiting(TestCase):
    options = ("--npus", "4", "--npu-bytes", "8192", "--banks", "8", "--limit", "waiting=3")

    def free(self, client, name):
        client.call(free=pb.FreeRequest(tensors=[pb.Ref(name=name)]))

    def wait_for_waiters(self, client, n):
        """Until so many allocations are in the line."""
        details = {"stat": pb.StatRequest(details=True)}
        wait_for(lambda: client.call(**details).stat.all.in_flight == n)

    def test_waits_until_another_process_frees(self):
        client = self.client()
        client.call(alloc=request("big", 8192))
        code = (
            f"import sys; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n"
            "from support import Client\nfrom test_waiting import request\n"
            f"print(Client({self.daemon.path!r}).call(alloc=request('w', 4096, 9000)).allocated.tensors[0].name)"
        )
        with subprocess.Popen([sys.executable, "-B", "-c", code], stdout=subprocess.PIPE) as child:
            self.wait_for_waiters(client, 1)
            self.assertIsNone(child.poll())
            self.free(client, "big")
            self.assertEqual(child.stdout.read(), b"w\n")
        self.assertEqual(client.names(), ["w"])

    def test_the_line_of_two_uids(self):
        if os.getuid():
            self.skipTest("needs root")
        os.chmod(self.daemon.path, 0o666)
        owner = self.client()
        owner.call(alloc=request("all", 8192))
        first = self.client()
        for name in "ab":
            first.send(alloc=request(name, 5120, 9000))

        def other():
            with Client(self.daemon.path) as client:
                client.call(alloc=request("c", 5120, 9000))
                self.free(client, "c")
            return "served"

        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.write(writer, run_as(1001, other).encode())
            os._exit(0)
        self.wait_for_waiters(owner, 3)
        self.free(owner, "all")
        answer = first.receive()
        self.assertEqual((answer.status, answer.allocated.tensors[0].name), (pb.OK, "a"))
        self.assertEqual(owner.names(), ["a"])
        self.free(owner, "a")  # it is the other uid's turn, then again ours
        self.assertEqual(os.read(reader, 100), b"served")
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)
        self.assertEqual(first.receive().allocated.tensors[0].name, "b")

    def client_as(self, uid):
        with as_uid(uid):
            return self.client()

    def test_who_waits_for_all_delays_others_by_one_window(self):
        """The 2 s that npumem-threats(7) names, for as long as a third user holds what is waited for."""
        if os.getuid():
            self.skipTest("needs root")
        os.chmod(self.daemon.path, 0o666)
        greedy, other, third = self.client_as(12001), self.client_as(12002), self.client_as(12003)
        third.call(alloc=request("theirs", 1024))
        greedy.send(alloc=request("all", 8192, 2**31))
        greedy.stat()
        delays = []
        for i in range(12):
            began = time.monotonic()
            other.call(alloc=request("waits", 128, 50000))
            delays.append(time.monotonic() - began)
            self.free(other, "waits")
            time.sleep(0.3)
        self.assertGreater(max(delays), 0.5)  # it does, in every second window
        self.assertLess(max(delays), 2 + 1.9, delays)  # not by two windows
        self.free(third, "theirs")
        self.assertEqual(greedy.receive().allocated.tensors[0].name, "all")

    def wait_half_closed(self):
        waiting = self.daemon.client()
        waiting.send(alloc=request("w", 4096, 60000))
        waiting.stat()
        waiting.sock.shutdown(socket.SHUT_WR)
        return waiting

    def test_who_sends_no_more_still_gets_its_room(self):
        client = self.client()
        client.call(alloc=request("big", 8192))
        with self.wait_half_closed() as waiting:
            self.wait_for_waiters(client, 1)
            self.assertEqual(client.stat().sessions, 2)
            self.free(client, "big")
            self.assertEqual(waiting.receive().allocated.tensors[0].name, "w")
            with self.assertRaises(HungUp):
                waiting.receive()
        self.assertEqual(client.names(), ["w"])

    def test_who_sends_no_more_and_is_gone_is_out_of_the_line(self):
        client = self.client()
        client.call(alloc=request("big", 5120))
        waiting = self.wait_half_closed()
        self.wait_for_waiters(client, 1)
        self.assertEqual(client.stat().sessions, 2)
        waiting.close()
        wait_for(lambda: client.stat().sessions == 1)
        client.call(alloc=request("small", 3072))

    def test_a_client_can_free_what_it_waits_for(self):
        client = self.client()
        client.call(alloc=request("big", 8192))
        waits = client.send(alloc=request("w", 8192, 9000))
        freed = client.send(free=pb.FreeRequest(tensors=[pb.Ref(name="big")]))
        self.assertEqual({client.receive().id for _ in range(2)}, {waits, freed})
        self.assertEqual(client.names(), ["w"])

    def test_a_daemon_that_ends_tells_who_waits(self):
        client = self.client()
        client.call(alloc=request("big", 8192))
        client.send(alloc=request("w", 8192, 60000))
        client.post({"info": pb.InfoRequest()})
        self.assertTrue(client.receive().HasField("info"))  # it is in the line by now
        self.daemon.process.terminate()
        answer = client.receive()
        self.assertEqual(answer.status, pb.UNAVAILABLE)
        self.assertEqual([(field.key, field.number) for field in answer.fields], [("going_down", 1)])
        self.daemon.process.wait(SECONDS / 2)  # rather than until its deadline

    def test_npumemctl(self):
        client = self.client()
        client.call(alloc=request("big", 8192))
        command = [NPUMEMCTL, "--socket", self.daemon.path, "alloc", "x", "--shape", "1,4,1,4096", "--dtype", "int8"]
        result = subprocess.run([*command, "--wait", "0.1"], stderr=subprocess.PIPE, check=False)
        self.assertEqual(result.returncode, 1)
        self.assertIn(b"waited 100 ms: no room for 4096 bytes", result.stderr)
        with subprocess.Popen([*command, "--wait", "9"], stdout=subprocess.PIPE) as child:
            self.wait_for_waiters(client, 1)
            self.free(client, "big")
            self.assertIn(b"x at address", child.stdout.read())


if __name__ == "__main__":
    unittest.main()
