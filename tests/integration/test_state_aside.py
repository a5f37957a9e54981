"""A state that cannot be used: each reason has its own words, the daemon begins anew only where it was told to, and the
old state is kept and described."""

import json
import os
import shutil
import struct
import subprocess
import unittest
import zlib

from state import GEOMETRY, StateTestCase
from support import NPUMEMCTL, NPUMEMD, SECONDS, alloc, fill, read

FILES = ("journal", "memory", "tensors", "sessions", "results")
OTHER = ("--npus", "16", "--npu-bytes", "65536")
needs_root = unittest.skipIf(os.geteuid(), "root alone can be other uids")

# struct format_header of daemon/store/files/format.h.
VERSION_OFF, GEOMETRY_OFF, HEADER_BYTES = 8, 300, 556
CELLS_OFF = GEOMETRY_OFF + 40


class Aside(StateTestCase):
    def setUp(self):
        super().setUp()
        client = self.client()
        client.call(**alloc("t"))
        client.call(**fill("t", 7))
        self.restart(terminate=True)
        self.daemon.end()
        self.stop()

    def path(self, name):
        return os.path.join(self.state, name)

    def content(self, directory=None):
        directory = directory or self.state
        result = {}
        for name in os.listdir(directory):
            path = os.path.join(directory, name)
            if os.path.isfile(path) and name != "why":
                with open(path, "rb") as file:
                    result[name] = file.read()
        return result

    def change(self, name, at, data):
        with open(self.path(name), "r+b") as file:
            file.seek(at)
            file.write(data)

    def change_headers(self, at, data):
        """With their checksum, in all files."""
        for name in FILES:
            self.change(name, at, data)
            with open(self.path(name), "rb") as file:
                header = file.read(HEADER_BYTES)
            self.change(name, HEADER_BYTES, struct.pack("<I", zlib.crc32(header)))

    def run_refused(self, *options, state=None):
        done = subprocess.run(
            [NPUMEMD, "--socket", os.path.join(self.directory, "no.sock"), "--state-dir", state or self.state, *options],
            stderr=subprocess.PIPE, timeout=SECONDS, check=False,
        )  # fmt: skip
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 1, text)
        return text

    def describe(self, directory=None, code=0):
        done = subprocess.run(
            [NPUMEMCTL, "--json", "state", directory or self.state], capture_output=True, timeout=SECONDS, check=False,
            env=dict(os.environ, NPUMEMD=NPUMEMD),
        )  # fmt: skip
        self.assertEqual(done.returncode, code, done)
        return json.loads(done.stdout)

    def check(self, verdict, *words, options=GEOMETRY, described=True):
        """Refused with these words; with --set-aside it is kept, whole, and a new state begun."""
        before = self.content()
        text = self.run_refused(*options)
        for word in (*words, "--set-aside"):
            self.assertIn(word, text)
        self.assertEqual(self.content(), before)
        if described:
            self.assertEqual(self.describe()["verdict"], verdict)
        self.options = options
        self.start("--set-aside", "4")
        self.assertEqual(self.client().names(), [])
        self.assertIn("is set aside in " + self.state, self.output())
        for word in words:
            self.assertIn(word, self.output())
        self.client().call(**alloc("new"))
        found = self.describe()
        self.assertEqual((found["verdict"], found["in_use"], found["tensors"]), ("usable", True, 1))
        (aside,) = found["set_aside"]
        self.assertEqual((aside["set_aside_as"], aside["time"][-1]), (verdict, "Z"))
        for word in words:
            self.assertIn(word, aside["why"])
        folder = self.path(aside["aside"])
        self.assertEqual(os.stat(folder).st_mode & 0o777, 0o700)
        self.assertEqual(self.content(folder), before)
        self.restart("--set-aside", "4")
        self.assertEqual(self.client().names(), ["new"])
        self.assertEqual(len(self.describe()["set_aside"]), 1)
        return folder

    def test_another_geometry(self):
        folder = self.check("other_geometry", "16 NPUs", "8 NPUs x 65536 bytes", options=OTHER, described=False)
        self.stop()
        # It is still a state, of its own geometry.
        self.state, self.options = folder, GEOMETRY
        self.assertTrue(self.describe()["closed"])
        self.start()
        self.assertEqual(self.client().call(**read("t")).done.data, bytes([7] * 128))

    def test_another_cells_version(self):
        self.change_headers(CELLS_OFF, struct.pack("<Q", 77))
        self.check("other_cells", "its tables are of version 77", described=False)

    def test_a_newer_format(self):
        self.change_headers(VERSION_OFF, struct.pack("<I", 99))
        self.check("newer_format", "is of version 99 of the state's format")

    def test_an_older_format(self):
        self.change_headers(VERSION_OFF, struct.pack("<I", 0))
        self.check("older_format", "is of version 0 of the state's format")

    def test_a_version_in_which_a_bit_flipped(self):
        self.change("sessions", VERSION_OFF + 3, b"\x40")
        self.check("damaged", "sessions: is damaged: the version in its header is wrong")

    def test_a_damaged_header(self):
        self.change("tensors", 100, b"\xff")
        self.check("damaged", "tensors: is damaged: the checksum of its header is wrong")

    def test_a_damaged_beginning(self):
        self.change("memory", 0, b"\0\0")
        self.check("damaged", "memory: is damaged")

    def test_cut_short(self):
        os.truncate(self.path("memory"), 5000)
        self.check("cut_short", "memory: is cut short: it has 5000 bytes", described=False)

    def test_files_of_two_states(self):
        other = os.path.join(self.directory, "other")
        state, self.state = self.state, other
        self.start()
        self.stop()
        self.state = state
        with open(os.path.join(other, "results"), "rb") as file:
            self.change("results", 0, file.read())
        self.check("mixed", "results: is of another state")

    def test_a_copy_of_one_that_was_not_closed(self):
        self.start()
        shutil.copytree(self.state, self.state + "-copy")
        self.stop()
        self.state += "-copy"
        self.check("copy", "is a copy of a state that was not closed")

    def refused_in_any_case(self, verdict, *words, state=None):
        for options in ((), ("--set-aside", "4")):
            text = self.run_refused(*GEOMETRY, *options, state=state)
            for word in words:
                self.assertIn(word, text)
            self.assertNotIn("--set-aside", text)
        if verdict:
            self.assertEqual(self.describe(state)["verdict"], verdict)

    def test_what_is_not_of_npumem(self):
        for name in FILES:
            with open(self.path(name), "wb") as file:
                file.write(b"a novel, " * 1000)
        before = self.content()
        self.refused_in_any_case("foreign", "is not of an npumem state")
        self.assertEqual((self.content(), sorted(os.listdir(self.state))), (before, sorted(FILES)))

    def test_one_in_use(self):
        self.start()
        self.refused_in_any_case(None, "is in use by another npumemd")
        self.assertTrue(self.describe()["in_use"])

    @needs_root
    def test_one_of_another_user(self):
        os.chown(self.path("results"), 12001, 12001)
        self.refused_in_any_case(None, "belongs to uid 12001")
        os.chown(self.path("results"), 0, 0)
        os.chmod(self.state, 0o770)
        self.refused_in_any_case(None, "may be written by others")

    def test_a_snapshot_that_was_not_finished(self):
        """npumemctl writes the journal last, and gives the directory its name then."""
        for names in (("memory",), ("memory", "tensors", "sessions"), ("memory", "tensors", "sessions", "results", "manifest")):
            for is_empty in (True, False):
                copied = os.path.join(self.directory, "part")
                os.mkdir(copied, 0o700)
                for name in names:
                    with open(os.path.join(copied, name), "wb") as file:
                        if name == "manifest" or is_empty:
                            file.truncate(1 << 16)
                        else:
                            shutil.copyfile(self.path(name), os.path.join(copied, name))
                self.refused_in_any_case("partial_snapshot", "a snapshot that was not finished", state=copied)
                self.assertEqual(sorted(os.listdir(copied)), sorted(names))
                shutil.rmtree(copied)
        copied = os.path.join(self.directory, "snap.partial-aB3x9z")
        os.mkdir(copied, 0o700)
        self.refused_in_any_case("partial_snapshot", "a snapshot that was not finished", state=copied)
        self.assertEqual(os.listdir(copied), [])

    def test_no_more_are_kept_than_it_was_told(self):
        for i in range(2):
            self.options = (*(GEOMETRY if i % 2 else OTHER), "--set-aside", "2")
            self.start()
            self.stop()
        before = self.content()
        text = self.run_refused(*OTHER, "--set-aside", "2")
        self.assertIn("2 states are set aside in " + self.state, text)
        self.assertEqual(self.content(), before)
        folders = sorted(aside["aside"] for aside in self.describe()["set_aside"])
        shutil.rmtree(self.path(folders[0]))
        self.options = (*OTHER, "--set-aside", "2")
        self.start()
        self.assertEqual(len(self.describe()["set_aside"]), 2)

    @needs_root
    def test_a_stranger_reads_nothing_of_it(self):
        os.chmod(self.directory, 0o755)
        # The build may be in a folder that only root may enter, and npumemctl needs a library of it.
        program = shutil.copy(NPUMEMD, self.directory)
        done = subprocess.run([program, "--describe-state", self.state], capture_output=True, timeout=SECONDS, check=False,
                              user=12001, group=12001, extra_groups=[], cwd="/")  # fmt: skip
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(b"Permission denied", done.stdout + done.stderr)

    def test_a_directory_that_is_not_there(self):
        self.assertIn("No such file", json.dumps(self.describe(self.state + "-no", code=1)))

    def test_it_goes_with_a_directory(self):
        done = subprocess.run([NPUMEMD, "--set-aside", "1"], stderr=subprocess.PIPE, timeout=SECONDS, check=False)
        self.assertEqual((done.returncode, done.stderr), (2, b"npumemd: --set-aside goes with --state-dir (see npumemd --help)\n"))

    def test_in_words(self):
        self.options = (*OTHER, "--set-aside", "4")
        self.start()
        done = subprocess.run([NPUMEMCTL, "state", self.state], capture_output=True, timeout=SECONDS, check=True,
                              env=dict(os.environ, NPUMEMD=NPUMEMD))  # fmt: skip
        text = done.stdout.decode()
        for words in ("the state can be used", "in use by a daemon", "set aside: " + self.state + "/aside-", "(other_geometry)",
                      "1 tensors and views, closed"):  # fmt: skip
            self.assertIn(words, text)


if __name__ == "__main__":
    unittest.main()
