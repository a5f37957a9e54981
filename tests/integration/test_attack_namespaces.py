"""Where the daemon has no name for a peer's uid, the peer is turned away: all such peers would be one uid."""

import contextlib
import shutil
import subprocess
import unittest

from support import NPUMEMD, HungUp, TestCase, fill, pb, read

ALICE, BOB = 12001, 12002
UNSHARE = shutil.which("unshare")


def unshare_works():
    if not UNSHARE:
        return False
    return subprocess.run([UNSHARE, "--user", "--map-root-user", "true"], stderr=subprocess.DEVNULL).returncode == 0


@unittest.skipUnless(unshare_works(), "no user namespaces here")
class Namespaces(TestCase):
    """In a namespace whose map has root alone; Alice and Bob arrive as the overflow uid."""

    program = (UNSHARE, "--user", "--map-root-user", NPUMEMD)

    def test_a_peer_without_a_uid_is_turned_away(self):
        for uid in (ALICE, BOB):
            client = self.client(uid)
            with contextlib.suppress(ConnectionError):
                client.post({"info": pb.InfoRequest()})
            answer = client.receive()
            self.assertEqual((answer.id, answer.status), (0, pb.PERMISSION_DENIED), answer)
            self.assertIn("uid", answer.message)
            with self.assertRaises((HungUp, ConnectionError)):
                client.receive()
        self.assertEqual(self.client().stat().sessions, 1)

    def test_two_uids_do_not_share_their_tensors(self):
        alice, bob = self.client(ALICE), self.client(BOB)
        with contextlib.suppress(HungUp, ConnectionError):
            alice.post({"info": pb.InfoRequest()})
            if alice.receive().id == 0:
                return  # neither has any
            alice.alloc("secret")
            alice.call(**fill("secret", 5))
            answer = bob.pipeline(read("secret"))[0]
            self.assertNotEqual(answer.done.data, b"\5" * 128, "Bob has read what is Alice's")

    def test_whom_the_daemon_has_a_name_for_is_served(self):
        with self.daemon.client() as client:
            self.assertEqual(client.call(info=pb.InfoRequest()).info.uid, 0)


class Overflow(TestCase):
    """Outside of any namespace the same number is a uid like others."""

    def test_the_overflow_uid_itself_is_served(self):
        with open("/proc/sys/kernel/overflowuid", encoding="ascii") as overflow:
            uid = int(overflow.read())
        client = self.client(uid)
        self.assertEqual(client.call(info=pb.InfoRequest()).info.uid, uid)


if __name__ == "__main__":
    unittest.main()
