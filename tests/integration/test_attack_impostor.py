"""Another user listens at a path where a client expects a daemon. The library and the Python package talk to it only where
nobody else could have put it there, or where its uid was given."""

import os
import shutil
import subprocess
import tempfile
import unittest

import npumem

from support import NPUMEMD, SECONDS, for_all_uids, listens, run_as, wait_for

BUILD = os.environ["NPUMEM_BUILD"]
MALLORY, ALICE = 12001, 12002
SAYS = f"is of uid {MALLORY}, and others can change "


@unittest.skipIf(os.getuid(), "needs other uids")
class Impostor(unittest.TestCase):
    def setUp(self):
        # Below /tmp no folder is safe.
        self.base = tempfile.mkdtemp(dir="/run", prefix="npumem-test-")
        self.addCleanup(shutil.rmtree, self.base)
        os.chmod(self.base, 0o755)
        self.programs = for_all_uids(*(os.path.join(BUILD, "client", name) for name in ("ctl/npumemctl", "lib/libnpumem.so.0")))
        self.path = os.path.join(self.folder("d", MALLORY), "npumem.sock")
        process = subprocess.Popen([NPUMEMD, "--socket", self.path], stderr=subprocess.DEVNULL, user=MALLORY, group=MALLORY,
                                   extra_groups=[], cwd="/")  # fmt: skip
        self.addCleanup(process.wait, SECONDS)
        self.addCleanup(process.terminate)
        wait_for(lambda: listens(self.path))

    def folder(self, name, owner, mode=0o755):
        path = os.path.join(self.base, name)
        os.mkdir(path)
        os.chown(path, owner, owner)
        os.chmod(path, mode)
        return path

    def link(self, folder, target=None):
        """A socket in this folder: the daemon's, by a link of its own uid."""
        path = os.path.join(folder, "link.sock")
        os.symlink(target or self.path, path)
        os.chown(path, MALLORY, MALLORY, follow_symlinks=False)
        return path

    def by_ctl(self, path, uid, given=""):
        done = subprocess.run(
            [os.path.join(self.programs, "npumemctl"), "--socket", path, "info"], user=uid, group=uid, extra_groups=[],
            capture_output=True, text=True, timeout=SECONDS, check=False, cwd=self.base,
            env={"LD_LIBRARY_PATH": self.programs, "NPUMEM_SERVER_UID": given},
        )  # fmt: skip
        self.assertIn(done.returncode, (0, 1), done)
        return done.stderr

    def by_python(self, path, uid, given=""):
        def connect():
            os.chdir(self.base)
            os.environ["NPUMEM_SERVER_UID"] = given
            try:
                npumem.connect(path).close()
            except (npumem.Refused, ValueError) as problem:
                return problem
            return ""

        return run_as(uid, connect)

    def assert_refused(self, path, folder, uid=ALICE):
        for ask in (self.by_ctl, self.by_python):
            self.assertIn(f"the daemon at {path} {SAYS}{folder}: set NPUMEM_SERVER_UID={MALLORY} ", ask(path, uid), ask)
            self.assertIn(SAYS, ask(path, uid, str(MALLORY + 1)))
            self.assertEqual(ask(path, uid, str(MALLORY)), "")
            self.assertIn('NPUMEM_SERVER_UID="12 001" is not a uid', ask(path, uid, "12 001"))

    def assert_good(self, path, uid=ALICE):
        for ask in (self.by_ctl, self.by_python):
            self.assertEqual(ask(path, uid), "", (ask, path))

    def test_where_only_its_user_can_listen(self):
        self.assert_good(self.path)
        self.assert_good(self.path, 0)
        self.assert_good(os.path.relpath(self.path, self.base))

    def test_in_a_folder_that_others_may_write(self):
        for mode in (0o777, 0o1777, 0o775):
            os.chmod(os.path.dirname(self.path), mode)
            self.assert_refused(self.path, os.path.dirname(self.path))
            self.assert_good(self.path, MALLORY)  # its own
        self.assert_refused(self.path, os.path.dirname(self.path), 0)
        os.chmod(os.path.dirname(self.path), 0o755)
        os.chmod(self.base, 0o1777)  # and so is one above
        self.assert_refused(self.path, self.base)
        self.assert_refused(os.path.relpath(self.path, self.base), self.base)

    def test_in_a_folder_of_a_third_user(self):
        os.chown(os.path.dirname(self.path), 12003, 12003)
        self.assert_refused(self.path, os.path.dirname(self.path))

    def test_by_a_link(self):
        safe, shared = self.folder("safe", 0), self.folder("shared", 0, 0o1777)
        self.assert_good(self.link(safe))
        self.assert_refused(self.link(shared), shared)
        os.symlink(shared, os.path.join(safe, "into"))
        self.assert_refused(os.path.join(safe, "into", "link.sock"), shared)
        # And the other way: the path is root's, and what it leads to is not.
        os.chmod(os.path.dirname(self.path), 0o1777)
        self.assert_refused(os.path.join(safe, "link.sock"), os.path.dirname(self.path))

    def test_by_a_folder_in_the_middle_of_a_chain_of_links(self):
        """The path and what it leads to are safe; a link between them is in a folder that anybody may write."""
        safe = self.folder("safe", 0)
        for mode, owner in ((0o777, 0), (0o1777, 0), (0o775, 0), (0o755, 12003)):
            middle = self.folder("middle", owner, mode)
            os.symlink(os.path.dirname(self.path), os.path.join(middle, "on"))
            os.chown(os.path.join(middle, "on"), 12003, 12003, follow_symlinks=False)
            for first in (os.path.join(middle, "on"), "../middle/on", "../middle/../middle/./on/"):
                os.symlink(first, os.path.join(safe, "first"))
                os.symlink("first", os.path.join(safe, "zeroth"))
                self.assert_refused(os.path.join(safe, "zeroth", "npumem.sock"), middle)
                os.unlink(os.path.join(safe, "first"))
                os.unlink(os.path.join(safe, "zeroth"))
            shutil.rmtree(middle)

    def test_by_a_link_that_nobody_else_can_replace(self):
        """In a sticky folder only its owner, and the folder's, replaces an entry."""
        sticky = self.folder("sticky", 0, 0o1777)
        for owner in (0, ALICE):
            path = os.path.join(sticky, f"link{owner}.sock")
            os.symlink(self.path, path)
            os.chown(path, owner, owner, follow_symlinks=False)
            self.assert_good(path)
        self.assert_refused(path, sticky, 12004)

    def test_links_that_lead_nowhere(self):
        os.symlink("loop", os.path.join(self.base, "loop"))
        for path in (os.path.join(self.base, "loop"), os.path.join(self.base, "nowhere")):
            self.assertIn(f"cannot reach a daemon at {path}: ", self.by_ctl(path, ALICE))

    def test_root_may_listen_anywhere(self):
        shared = self.folder("shared", 0, 0o1777)
        path = os.path.join(shared, "npumem.sock")
        process = subprocess.Popen([NPUMEMD, "--socket", path], stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait, SECONDS)
        self.addCleanup(process.terminate)
        wait_for(lambda: listens(path))
        self.assert_good(path)


if __name__ == "__main__":
    unittest.main()
