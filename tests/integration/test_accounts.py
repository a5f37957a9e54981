"""A user is an account: a uid with its subordinate uids. Limits are the account's; names and rights are the uid's. And
who can connect at all, where the socket file belongs to a group."""

import grp
import os
import resource
import shutil
import socket
import stat
import subprocess
import tempfile
import unittest

from state import StateTestCase, token_of
from support import NPUMEMD, Client, HungUp, TestCase, alloc, fill, free, pb, run_as, wait_for

ALICE, BOB = 12001, 12002
FIRST = 200000  # of ALICE's subordinate uids


def is_served(client):
    try:
        return client.ask(info=pb.InfoRequest()).status == pb.OK
    except (AssertionError, HungUp, ConnectionError):  # the refusal has id 0
        return False


def limits(client):
    return {limit.key: limit for limit in client.call(info=pb.InfoRequest(details=True)).info.limits}


class Accounts(TestCase):
    SESSIONS = 8

    def setUp(self):
        file = tempfile.NamedTemporaryFile("w", prefix="npumem-subuid-")  # pylint: disable=consider-using-with
        self.addCleanup(file.close)
        self.subuid = file
        self.describe(f"{ALICE}:{FIRST}:65536\n")
        self.options = ("--subuid", file.name, "--limit", f"sessions={self.SESSIONS}", "--limit", "tensors=5")
        super().setUp()

    def describe(self, text):
        self.subuid.seek(0)
        self.subuid.truncate()
        self.subuid.write(text)
        self.subuid.flush()

    def test_subordinate_uids_share_the_sessions_of_their_owner(self):
        served = [is_served(self.client(FIRST + i % 11)) for i in range(4 * self.SESSIONS)]
        self.assertEqual(sum(served), self.SESSIONS)
        self.assertFalse(is_served(self.client(ALICE)))
        self.assertEqual(sum(is_served(self.client(BOB)) for _ in range(2 * self.SESSIONS)), self.SESSIONS)

    def test_tensors_are_charged_to_the_account_and_owned_by_the_uid(self):
        alice, sub, other = self.client(ALICE), self.client(FIRST), self.client(FIRST + 1)
        alice.call(**alloc("x"))
        sub.call(**alloc("x"))  # each uid has names of its own
        for client in (alice, sub, other):
            self.assertEqual(limits(client)["tensors"].now, 2)
        for name in ("x", f"{ALICE}:x", f"{FIRST}:x"):
            self.assertEqual(other.ask(**free(name)).status, pb.NOT_FOUND)
        self.assertEqual(alice.ask(**free(f"{FIRST}:x")).status, pb.NOT_FOUND)
        for _ in range(3):
            other.alloc()
        answer = sub.ask(**alloc("y"))
        self.assertEqual(answer.status, pb.RESOURCE_EXHAUSTED)
        self.assertIn(f"uid {ALICE} has 5 tensors", answer.message)
        other.close()
        wait_for(lambda: limits(alice)["tensors"].now == 2)
        sub.call(**free("x"))
        alice.call(**free("x"))
        self.assertEqual(limits(alice)["tensors"].now, 0)

    def test_a_change_of_the_file_counts_for_new_connections(self):
        before = self.client(BOB + 5)
        before.alloc("x")
        self.describe(f"{ALICE}:{FIRST}:65536\n{ALICE}:{BOB + 5}:1\n")

        def counts_as_alice():
            with self.daemon.client(BOB + 5) as client, self.daemon.client(ALICE) as alice:
                # Those of the attempts before may be there still, as many as there may be.
                if not is_served(client) or not is_served(alice):
                    return False
                return client.ask(**alloc("")).status == pb.OK and limits(alice)["tensors"].now == 1

        wait_for(counts_as_alice)
        # What it had stays charged where it was.
        self.assertEqual(limits(before)["tensors"].now, 1)
        before.call(**free("x"))
        self.assert_alive()


class Resumed(StateTestCase):
    """A session goes on under another account than the one under which it was found."""

    def setUp(self):
        self.subuid = tempfile.mkdtemp(prefix="npumem-subuid-")
        self.addCleanup(shutil.rmtree, self.subuid)
        self.options = (*StateTestCase.options, "--subuid", os.path.join(self.subuid, "subuid"))
        super().setUp()

    def test_what_is_kept_of_it_is_charged_to_the_other_account(self):
        client = self.client(BOB)
        token = token_of(client)
        tensor = client.alloc()
        client.call(**fill(tensor, 7))
        for i in range(40):  # answers that are kept
            client.call(**alloc(f"x{i}"))
            client.call(**free(f"x{i}"))
        self.restart()
        with open(os.path.join(self.subuid, "subuid"), "w", encoding="ascii") as file:
            file.write(f"{ALICE}:{BOB}:1\n")
        alice = self.client(ALICE)

        def bob_counts_as_alice():
            with self.daemon.client(BOB) as other:
                other.alloc()
                return limits(alice)["tensors"].now == 1

        wait_for(bob_counts_as_alice)
        wait_for(lambda: limits(alice)["tensors"].now == 0)
        before = limits(alice)["request_bytes"].now
        client = self.resume(token, BOB)
        self.assertEqual(client.read(tensor.handle), bytes([7] * 128))
        self.assertGreater(limits(alice)["request_bytes"].now, before)
        client.call(**free(tensor))
        client.close()
        wait_for(lambda: limits(alice)["request_bytes"].now <= before)
        alice.close()
        self.restart(terminate=True)
        self.assertEqual(self.n_tensors(), 0)


class Newcomers(TestCase):
    # Of which 64 are not for sessions.
    preexec = staticmethod(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64 + 128, 64 + 128)))

    def test_who_comes_last_is_served(self):
        """Halves alone are used up by 8 users."""
        taken = []
        for uid in range(13000, 13012):
            n = 0
            while is_served(client := self.client(uid)):
                n += 1
            client.close()
            taken.append(n)
        self.assertGreaterEqual(min(taken), 1, taken)
        self.assertGreater(sum(taken[:3]), 64, taken)
        self.assertTrue(is_served(self.client(BOB)))


class Group(TestCase):
    options = ("--users", str(ALICE))  # run_as gives a uid the group of the same number

    def connects(self, uid):
        def child():
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
                try:
                    sock.connect(self.daemon.path)
                except PermissionError:
                    return "not let in"
                return Client(sock=sock).stat().sessions

        return run_as(uid, child)

    def test_members_alone_can_connect(self):
        status = os.stat(self.daemon.path)
        self.assertEqual((status.st_gid, stat.S_IMODE(status.st_mode)), (ALICE, 0o660))
        self.assertEqual(self.connects(ALICE), "1")
        self.assertEqual(self.connects(BOB), "not let in")


class GroupOptions(unittest.TestCase):
    def start(self, *options):
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as directory:
            path = os.path.join(directory, "socket")
            process = subprocess.run([NPUMEMD, "--socket", path, "--background", *options], check=False,
                                     capture_output=True, text=True, timeout=60)
            try:
                if process.returncode:
                    self.assertEqual(os.listdir(directory), [])
                    return process.stderr
                status = os.stat(path)
                return grp.getgrgid(status.st_gid).gr_name, stat.S_IMODE(status.st_mode)
            finally:
                if not process.returncode:
                    with Client(path) as client:
                        client.ask(shutdown=pb.ShutdownRequest())
                    wait_for(lambda: not os.path.exists(path))

    def test_names_and_modes(self):
        name = grp.getgrgid(1).gr_name
        self.assertEqual(self.start("--users", name), (name, 0o660))
        self.assertEqual(self.start("--users", name, "--mode", "0666"), (name, 0o666))
        self.assertIn("there is no such group", self.start("--users", "nobody-has-this-one"))


if __name__ == "__main__":
    unittest.main()
