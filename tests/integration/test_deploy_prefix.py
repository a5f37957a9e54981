"""`cmake --install --prefix P` with a P that the build knew nothing of: everything in it works without PATH,
LD_LIBRARY_PATH and $NPUMEMD, and still does when the tree was moved."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

from support import SECONDS
from test_deploy_install import BUILD, PROGRAM, cached, run

CMAKE = """
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(npumem 0.1 REQUIRED)
add_executable(program program.c)
target_link_libraries(program npumem::npumem)
"""
PYTHON = "import npumem; dev = npumem.spawn('--npus', '4'); print(npumem.__file__, dev.info.pid, dev.info.n_npus)"


class Prefix(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="npumem-test-")
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        first = os.path.join(cls.directory, "first")
        code, _, complaint = run("cmake", "--install", BUILD, "--prefix", first)
        assert code == 0, complaint
        with open(os.path.join(first, "lib/systemd/system/npumemd@.service"), encoding="utf-8") as unit:
            cls.unit = unit.read()
        cls.first, cls.prefix = first, os.path.join(cls.directory, "moved")
        cls.libraries = cached("CMAKE_INSTALL_LIBDIR")
        cls.sanitizers = cached("NPUMEM_SANITIZE")
        # So that what still looks for it where it was put finds nothing.
        os.rename(first, cls.prefix)

    def at(self, *path):
        return os.path.join(self.prefix, *path)

    def bare(self, *command, **environment):
        """With nothing in its environment."""
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False, cwd="/"
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""), command)
        return done.stdout

    def source(self, text=PROGRAM):
        directory = tempfile.mkdtemp(dir=self.directory)
        with open(os.path.join(directory, "program.c"), "w", encoding="utf-8") as file:
            file.write(text)
        return directory

    def test_the_command_line(self):
        self.assertIn("NPUs of", self.bare(self.at("bin/npumemctl"), "--spawn", "info"))
        told = self.bare(self.at("bin/npumemctl"), "--spawn=--npus 4", "exec", "/bin/sh", "-c", "echo $NPUMEM_SOCKET")
        self.assertIn("npumem.sock", told)

    def test_it_is_this_trees_daemon(self):
        """Not one that is elsewhere, whatever is in $PATH."""
        other = tempfile.mkdtemp(dir=self.directory)
        with open(os.path.join(other, "npumemd"), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 1\n")
        os.chmod(os.path.join(other, "npumemd"), 0o755)
        self.assertIn("NPUs of", self.bare(self.at("bin/npumemctl"), "--spawn", "info", PATH=f"{other}:/usr/bin:/bin"))
        self.assertIn(" 4\n", self.bare("/usr/bin/python3", "-B", "-c", PYTHON, PATH=other, PYTHONPATH=self.at("lib/python3/dist-packages")))
        done = subprocess.run(
            [self.at("bin/npumemctl"), "--spawn", "info"], env={"NPUMEMD": os.path.join(other, "npumemd")},
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        self.assertEqual(done.returncode, 1)
        self.assertIn("did not start", done.stderr)

    def test_without_a_daemon(self):
        """$PATH, and then none at all: what was looked for is told."""
        daemon, away = self.at("bin/npumemd"), os.path.join(tempfile.mkdtemp(dir=self.directory), "npumemd")
        os.rename(daemon, away)
        self.addCleanup(os.rename, away, daemon)
        self.assertIn("NPUs of", self.bare(self.at("bin/npumemctl"), "--spawn", "info", PATH=f"/nonexistent::{os.path.dirname(away)}"))
        if not os.path.exists(os.path.join(cached("CMAKE_INSTALL_PREFIX"), "bin/npumemd")):
            done = subprocess.run(
                [self.at("bin/npumemctl"), "--spawn", "info"], env={}, capture_output=True, text=True, timeout=SECONDS, check=False
            )
            self.assertEqual(done.returncode, 1)
            self.assertIn("$NPUMEMD, with the library and in $PATH", done.stderr)

    def test_a_program_by_pkg_config(self):
        directory = self.source()
        environment = dict(os.environ, PKG_CONFIG_PATH=self.at(self.libraries, "pkgconfig"))
        code, flags, complaint = run("pkg-config", "--cflags", "--libs", "npumem", env=environment)
        self.assertEqual(code, 0, complaint)
        self.assertNotIn(self.first, flags)
        program = os.path.join(directory, "program")
        code, _, complaint = run(
            "gcc", "-std=c11", "-Werror", program + ".c", "-o", program, *flags.split(),
            *([f"-fsanitize={self.sanitizers}"] if self.sanitizers else []),
        )  # fmt: skip
        self.assertEqual(code, 0, complaint)
        self.assertEqual(self.bare(program), "the same bytes\n")

    def test_a_program_by_cmake(self):
        directory = self.source()
        with open(os.path.join(directory, "CMakeLists.txt"), "w", encoding="utf-8") as file:
            file.write(CMAKE)
        flags = [f"-DCMAKE_C_FLAGS=-fsanitize={self.sanitizers}"] if self.sanitizers else []
        for command in (
            ("cmake", "-S", directory, "-B", directory, f"-DCMAKE_PREFIX_PATH={self.prefix}", *flags),
            ("cmake", "--build", directory),
        ):
            code, out, complaint = run(*command)
            self.assertEqual(code, 0, out + complaint)
        self.assertEqual(self.bare(os.path.join(directory, "program")), "the same bytes\n")
        code, _, complaint = run("cmake", "-S", directory, "-B", directory + "/other", "-DCMAKE_DISABLE_FIND_PACKAGE_npumem=1")
        self.assertNotEqual(code, 0)

    def test_a_python_program(self):
        told = self.bare("/usr/bin/python3", "-B", "-c", PYTHON, PYTHONPATH=self.at("lib/python3/dist-packages"))
        self.assertEqual(told.split()[0], self.at("lib/python3/dist-packages/npumem/__init__.py"))

    def test_units_have_the_prefixs_paths(self):
        self.assertIn(f"\nExecStart={self.first}/bin/npumemd --socket /run/npumem/%i.sock ", self.unit)
        self.assertIn(f"\nEnvironmentFile=-{self.first}/etc/npumem/%i.conf\n", self.unit)
        self.assertIn(f"\nDocumentation=file:{self.first}/share/doc/npumem/README.md\n", self.unit)
        self.assertTrue(os.path.isfile(self.at("etc/npumem/npumem.conf")))
        with open(os.path.join(BUILD, "systemd/npumemd.service"), encoding="utf-8") as unit:
            self.assertNotIn(self.first, unit.read())

    def test_a_prefix_from_here(self):
        code, _, complaint = run("cmake", "--install", BUILD, "--prefix", "relative", cwd=self.directory)
        self.assertEqual(code, 0, complaint)
        with open(os.path.join(self.directory, "relative/lib/systemd/system/npumemd.service"), encoding="utf-8") as unit:
            self.assertIn(f"\nExecStart={os.path.realpath(self.directory)}/relative/bin/npumemd ", unit.read())

    def test_a_changed_configuration_stays(self):
        changed = self.at("etc/npumem/npumem.conf")
        with open(changed, "a", encoding="utf-8") as file:
            file.write("NPUMEMD_OPTIONS=--npus 4\n")
        self.assertEqual(run("cmake", "--install", BUILD, "--prefix", self.prefix)[0], 0)
        with open(changed, encoding="utf-8") as file:
            self.assertTrue(file.read().endswith("\nNPUMEMD_OPTIONS=--npus 4\n"))

    def test_nothing_of_the_build_is_left(self):
        """But for what debuggers want."""
        for directory, _, names in os.walk(self.prefix):
            for name in names:
                path = os.path.join(directory, name)
                if re.search(r"\.(cmake|pc|py|service|socket|conf)$|completions/", path):
                    with open(path, encoding="utf-8") as file:
                        self.assertNotIn(BUILD, file.read(), path)
        runpath = run("readelf", "-d", self.at("bin/npumemctl"))[1]
        self.assertRegex(runpath, r"R(UN)?PATH.*\[\$ORIGIN/\.\./" + re.escape(self.libraries) + r"\]")


if __name__ == "__main__":
    unittest.main()
