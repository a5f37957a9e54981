"""What outlives a process of the unit, and what its clients see of a restart."""

import json
import os
import sys
import threading
import time
import unittest

import machine as machines

sys.path.insert(0, os.path.join(machines.SOURCE, "tests/integration"))
from support import Client, HungUp, pb, ref  # noqa: E402

why = machines.cannot_run()
if why:
    print(f"{why}: the units were NOT tested under systemd")
    sys.exit(machines.SKIPPED)

machine = machines.Machine()


def setUpModule():
    unittest.enterModuleContext(machine)


class Case(unittest.TestCase):
    def setUp(self):
        self.addCleanup(machine.reset)

    def client(self, token=b""):
        """With a session that can be resumed, or the one of that token."""
        client = Client(machine.socket())
        self.addCleanup(client.close)
        client.id = 1 << 20 if token else 0
        self.token = client.call(resume=pb.ResumeRequest(token=token)).resumed.token
        return client

    def fill(self, client, name, value):
        return client.call(fill=pb.FillRequest(tensor=ref(name), integer=value))

    def restart(self, how):
        if how == "restart":
            machine.call("systemctl", "restart", "npumemd")
        else:
            machine.call("systemctl", "kill", "-s", how, "npumemd")

    def check_kept(self, how):
        client = self.client()
        named, unnamed = client.alloc("x"), client.alloc()
        for tensor, value in ((named, 3), (unnamed, 4)):
            self.fill(client, tensor, value)
        pid = machine.main_pid()
        self.restart(how)
        client = self.client(self.token)
        self.assertNotEqual(machine.main_pid(), pid)
        for tensor, value in ((named, 3), (unnamed, 4)):
            self.assertEqual(set(client.read(tensor.handle)), {value})
        client.close()
        machine.wait(lambda: [tensor.name for tensor in self.client().tensors()] == ["x"])


class KeptBySystemd(Case):
    def test_over_a_kill(self):
        machine.configure("npumemd", "RestartSec=100ms")
        self.check_kept("KILL")

    def test_over_a_restart(self):
        self.check_kept("restart")

    def test_over_many(self):
        machine.configure("npumemd", "RestartSec=10ms", "StartLimitBurst=1000")
        client = self.client()
        client.alloc("x")
        for i in range(10):
            self.fill(client, "x", i)
            self.restart(("KILL", "restart")[i % 2])
            client = self.client(self.token)
            self.assertEqual(set(client.call(read=pb.ReadRequest(tensor=ref("x"))).done.data), {i})

    def test_not_over_a_stop(self):
        client = self.client()
        client.alloc("x")
        machine.call("systemctl", "stop", "npumemd.socket", "npumemd.service")
        machine.call("systemctl", "start", "npumemd.socket")
        self.assertEqual(self.client().tensors(), [])

    def test_other_options_begin_anew_and_say_so(self):
        self.client().alloc("x")
        machine.write("/etc/npumem/npumem.conf", "NPUMEMD_OPTIONS=--chip sg2380\n")
        self.addCleanup(machine.call, "sh", "-c", "rm -r /etc/npumem/npumem.conf /var/lib/npumem/npumem/aside-*")
        machine.call("systemctl", "restart", "npumemd")
        client = self.client()
        self.assertEqual((client.tensors(), client.call(info=pb.InfoRequest()).info.n_npus), ([], 32))
        self.assertIn("is set aside in /var/lib/npumem/npumem/aside-", machine.call("journalctl", "-u", "npumemd", "-o", "cat"))
        state = json.loads(machine.call("env", "-u", "NPUMEMD", "npumemctl", "--json", "state", "/var/lib/npumem/npumem"))
        self.assertEqual([(aside["set_aside_as"], aside["tensors"], aside["closed"]) for aside in state["set_aside"]],
                         [("other_geometry", 1, True)])
        client.alloc("y")
        token = self.token
        machine.call("systemctl", "restart", "npumemd")
        self.assertEqual([tensor.name for tensor in self.client(token).tensors()], ["y"])

    def test_it_takes_no_more_memory_than_is_used(self):
        self.client()
        status = machine.call("cat", f"/proc/{machine.main_pid()}/status")
        rss = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
        self.assertLess(rss, 16 << 10, "KiB")

    def test_clients_at_work_see_a_pause(self):
        """Each goes on by its token, and sends again what was not answered."""
        stop, failures, counts = threading.Event(), [], [0] * 4

        def work(i):
            try:
                client = Client(machine.socket())
                token = client.call(resume=pb.ResumeRequest()).resumed.token
                client.alloc(f"x{i}")
                while not stop.is_set():
                    request = {"fill": pb.FillRequest(tensor=ref(f"x{i}"), integer=counts[i] % 100)}
                    try:
                        client.call(**request)
                    except (HungUp, ConnectionResetError, BrokenPipeError):
                        sent = client.id
                        client.close()
                        client = Client(machine.socket())
                        client.id = sent
                        client.call(resume=pb.ResumeRequest(token=token))
                        client.call(**request)
                    counts[i] += 1
                client.close()
            except Exception as failure:  # noqa: BLE001, said below
                failures.append((i, failure))

        workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for worker in workers:
            worker.start()
        for _ in range(4):
            time.sleep(0.3)
            machine.call("systemctl", "restart", "npumemd")
        time.sleep(0.3)
        stop.set()
        for worker in workers:
            worker.join()
        self.assertEqual(failures, [])
        client = self.client()
        for i, count in enumerate(counts):
            self.assertGreater(count, 10)
            data = client.call(read=pb.ReadRequest(tensor=ref(f"x{i}"))).done.data
            self.assertEqual(set(data), {(count - 1) % 100})


class KeptInADirectory(Case):
    def setUp(self):
        super().setUp()
        machine.write("/etc/npumem/npumem.conf", "NPUMEMD_OPTIONS=--state-dir /var/lib/npumem/npumem\n")
        self.addCleanup(machine.call, "rm", "-r", "/etc/npumem/npumem.conf", "/var/lib/npumem/npumem")

    def test_over_a_kill_and_a_restart(self):
        machine.configure("npumemd", "RestartSec=100ms")
        self.check_kept("KILL")
        self.client().call(free=pb.FreeRequest(tensors=[ref("x")]))
        self.check_kept("restart")

    def test_over_a_stop(self):
        client = self.client()
        client.alloc("x")
        self.fill(client, "x", 5)
        machine.call("systemctl", "stop", "npumemd.socket", "npumemd.service")
        self.assertEqual(machine.call("stat", "-c", "%U %a", "/var/lib/npumem/npumem"), "npumem 700")
        machine.call("systemctl", "start", "npumemd.socket")
        self.assertEqual(set(self.client().call(read=pb.ReadRequest(tensor=ref("x"))).done.data), {5})


if __name__ == "__main__":
    unittest.main()
