"""What `cmake --install` puts where, and that each file of it works from there."""

import os
import shutil
import subprocess
import tempfile
import unittest

from support import SECONDS, needs_systemd

BUILD = os.environ["NPUMEM_BUILD"]
SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))


def cached(name, directory=BUILD):
    with open(os.path.join(directory, "CMakeCache.txt"), encoding="utf-8") as cache:
        return next(line.split("=", 1)[1].strip() for line in cache if line.startswith(name + ":"))


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS * 3, check=False, **options)
    return done.returncode, done.stdout, done.stderr


PROGRAM = r"""
#include <npumem/client.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	struct npumem_geometry geometry;
	struct npumem_spec spec;
	struct npumem_plan plan;
	struct npumem_allocation allocation = NPUMEM_ALLOCATION_INIT;
	const struct npumem_tensor *tensor;
	struct npumem_error error = {0};
	struct npumem *npumem;
	signed char sent[24], got[24] = {0};

	npumem_geometry_default(&geometry);
	npumem_spec_init(&spec);
	spec.shape = (struct npumem_dims){2, 3, 1, 4};
	spec.dtype = NPUMEM_INT8;
	if (npumem_plan(&geometry, &spec, &plan, &error) || plan.place.bytes_per_npu != 256)
		return printf("plan: %s\n", error.message), 1;
	if (npumem_open("spawn:--chip bm1690", NULL, &npumem, &error))
		return printf("open: %s\n", error.message), 1;
	allocation.spec = spec;
	allocation.name = "x";
	memset(sent, -5, sizeof(sent));
	if (npumem_alloc(npumem, &allocation, 1, &tensor, &error) ||
	    npumem_write(npumem, tensor, sent, sizeof(sent), &error) ||
	    npumem_read(npumem, tensor, got, sizeof(got), NULL, &error))
		return printf("tensor: %s\n", error.message), 1;
	npumem_close(npumem);
	puts(memcmp(sent, got, sizeof(got)) ? "other bytes" : "the same bytes");
	return 0;
}
"""


class Case(unittest.TestCase):
    """An installation of its own for each class."""

    @classmethod
    def setUpClass(cls):
        cls.root = tempfile.mkdtemp(prefix="npumem-test-")
        cls.addClassCleanup(shutil.rmtree, cls.root)
        code, _, complaint = run("cmake", "--install", BUILD, env=dict(os.environ, DESTDIR=cls.root))
        assert code == 0, complaint
        cls.prefix = cached("CMAKE_INSTALL_PREFIX")
        cls.libraries = cached("CMAKE_INSTALL_LIBDIR")

    def at(self, *path):
        return os.path.join(self.root + self.prefix, *path)

    def installed(self):
        """An environment in which it is found."""
        return dict(os.environ, LD_LIBRARY_PATH=self.at(self.libraries), NPUMEMD=self.at("bin/npumemd"))


class Files(Case):
    def test_nothing_more_and_nothing_less(self):
        with open(os.path.join(SOURCE, "CMakeLists.txt"), encoding="utf-8") as top:
            version = next(line for line in top if line.startswith("project(")).split()[2]
        headers = os.path.join(SOURCE, "include/npumem")
        package = {"_build.py", "_rows.py", "npumem_pb2.py", "npumem_pb2.pyi"}
        python = os.path.join(SOURCE, "client/python/npumem")
        package |= {
            os.path.relpath(os.path.join(directory, name), python)
            for directory, _, names in os.walk(python)
            for name in names
            if name[0] != "." and "__pycache__" not in directory
        }
        manuals = []
        if os.path.exists(os.path.join(os.environ["NPUMEM_BUILD"], "client", "man", "npumem.7.gz")):
            pages = ("npumemctl.1", "npumem-import.1", "libnpumem.3", "npumem-python.3", "npumem.7", "npumem-farm.7", "npumem-kernels.7", "npumem-threats.7",
                     "npumem-wire.7", "npumemd.8")
            manuals = [f"share/man/man{page[-1]}/{page}.gz" for page in pages]
        expected = {
            "bin/npumem-import",
            "bin/npumemctl",
            "bin/npumemd",
            f"{self.libraries}/libnpumem.so",
            f"{self.libraries}/libnpumem.so.0",
            f"{self.libraries}/libnpumem.so.{version}",
            f"{self.libraries}/cmake/npumem/npumem-config-version.cmake",
            f"{self.libraries}/cmake/npumem/npumem-config.cmake",
            f"{self.libraries}/cmake/npumem/npumem-targets-{cached('CMAKE_BUILD_TYPE').lower() or 'relwithdebinfo'}.cmake",
            f"{self.libraries}/cmake/npumem/npumem-targets.cmake",
            f"{self.libraries}/pkgconfig/npumem.pc",
            "lib/systemd/system/npumemd-job@.service",
            "lib/systemd/system/npumemd-job@.socket",
            "lib/systemd/system/npumemd.service",
            "lib/systemd/system/npumemd.socket",
            "lib/systemd/system/npumemd@.service",
            "lib/systemd/system/npumemd@.socket",
            *(f"libexec/npumem/slurm/{name}" for name in ("configure", "epilog", "job", "prolog", "task-prolog")),
            "lib/sysusers.d/npumem.conf",
            "lib/tmpfiles.d/npumem.conf",
            "share/bash-completion/completions/npumemctl",
            "share/doc/npumem/README.md",
            *manuals,
            "share/doc/npumem/copyright",
            "share/npumem/npumem.proto",
            "share/zsh/vendor-completions/_npumemctl",
            *(f"lib/python3/dist-packages/npumem/{name}" for name in package),
        } | {f"include/npumem/{name}" for name in os.listdir(headers) if name.endswith((".h", ".def"))}
        found = {
            os.path.relpath(os.path.join(directory, name), self.root + self.prefix)
            for directory, _, names in os.walk(self.root)
            for name in names
        }
        found.remove("../etc/npumem/npumem.conf")
        self.assertEqual(found, expected)
        self.assertIn("include/npumem/client.h", found)
        self.assertEqual(os.readlink(self.at(self.libraries, "libnpumem.so")), "libnpumem.so.0")
        for name in ("bin/npumemctl", "bin/npumemd"):
            self.assertEqual(os.stat(self.at(name)).st_mode & 0o777, 0o755)

    def test_where_debian_has_it(self):
        """In a build directory that was told nothing."""
        triplet = run("gcc", "-print-multiarch")[1].strip()
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as directory:
            code, _, complaint = run("cmake", "-S", SOURCE, "-B", directory, "-DNPUMEM_TESTS=OFF")
            self.assertEqual(code, 0, complaint)
            self.assertEqual(cached("CMAKE_INSTALL_PREFIX", directory), "/usr")
            self.assertEqual(cached("CMAKE_INSTALL_LIBDIR", directory), f"lib/{triplet}")
            with open(os.path.join(directory, "systemd/npumemd.service"), encoding="utf-8") as unit:
                unit = unit.read()
        self.assertIn(
            "\nExecStart=/usr/bin/npumemd --socket /run/npumem/npumem.sock --boot-id %b --state-dir systemd: "
            "--set-aside 4 $NPUMEMD_OPTIONS\n",
            unit,
        )
        self.assertIn("\nEnvironmentFile=-/etc/npumem/npumem.conf\n", unit)

    def test_packages_are_refused_for_another_prefix(self):
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as directory:
            code, _, complaint = run("cmake", "-S", SOURCE, "-B", directory, "-DNPUMEM_TESTS=OFF", "--install-prefix", "/opt/npumem")
            self.assertEqual(code, 0, complaint)
            code, _, complaint = run("cpack", "-G", "DEB", cwd=directory)
            self.assertNotEqual(code, 0)
            self.assertIn("Debian packages install below /usr.", complaint)
            self.assertFalse([name for name in os.listdir(directory) if name.endswith(".deb")])

    def test_a_program_against_the_library(self):
        environment = dict(os.environ, PKG_CONFIG_LIBDIR=self.at(self.libraries, "pkgconfig"))
        code, flags, complaint = run("pkg-config", "--cflags", "--libs", "npumem", env=environment)
        self.assertEqual(code, 0, complaint)
        include, library, name = flags.split()
        self.assertEqual(os.path.realpath(include[2:]), self.at("include"))
        self.assertEqual(os.path.realpath(library[2:]), self.at(self.libraries))
        self.assertEqual((include[:2], library[:2], name), ("-I", "-L", "-lnpumem"))
        sanitizers = cached("NPUMEM_SANITIZE")
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as directory:
            program = os.path.join(directory, "program")
            with open(program + ".c", "w", encoding="utf-8") as file:
                file.write(PROGRAM)
            code, _, complaint = run(
                "gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", program + ".c", "-o", program,
                *flags.split(), *([f"-fsanitize={sanitizers}"] if sanitizers else []),
            )  # fmt: skip
            self.assertEqual((code, complaint), (0, ""))
            self.assertEqual(run(program, env=self.installed()), (0, "the same bytes\n", ""))

    def test_the_command_line(self):
        code, out, complaint = run(self.at("bin/npumemctl"), "--spawn", "--json", "info", env=self.installed())
        self.assertEqual((code, complaint), (0, ""))
        self.assertIn('"version"', out)

    def test_the_proto_file(self):
        with tempfile.TemporaryDirectory(prefix="npumem-test-") as directory:
            code, _, complaint = run(
                "protoc", f"--python_out={directory}", f"-I{self.at('share/npumem')}", "npumem.proto"
            )
            self.assertEqual((code, complaint), (0, ""))
            self.assertEqual(os.listdir(directory), ["npumem_pb2.py"])


@needs_systemd
class Systemd(Case):
    """What systemd makes of it, in a root directory that has systemd's own units beside ours."""

    UNITS = ("npumemd.service", "npumemd.socket", "npumemd@one.service", "npumemd@one.socket")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        shutil.copytree(
            "/usr/lib/systemd/system", cls.root + "/usr/lib/systemd/system", symlinks=True, dirs_exist_ok=True
        )
        os.makedirs(cls.root + "/etc", exist_ok=True)

    def unit(self, name):
        with open(self.at("lib/systemd/system", name), encoding="utf-8") as file:
            return file.read()

    def change(self, name, old, new):
        text = self.unit(name)
        self.assertIn(old, text)
        self.addCleanup(self.write, name, text)
        self.write(name, text.replace(old, new))

    def write(self, name, text):
        with open(self.at("lib/systemd/system", name), "w", encoding="utf-8") as file:
            file.write(text)

    def verify(self, *units):
        return run("systemd-analyze", "verify", "--man=no", f"--root={self.root}", *units)

    def exposure(self, unit):
        """Whether it is 1.0 at most."""
        code, out, complaint = run(
            "systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=10",
            f"--root={self.root}", unit,
        )  # fmt: skip
        self.assertEqual(complaint, "")
        self.assertIn("Overall exposure level", out)
        return code == 0

    def test_units_are_as_systemd_wants_them(self):
        self.assertEqual(self.verify(*self.UNITS), (0, "", ""))
        self.change("npumemd@.service", "WatchdogSec=", "WatchdogSeconds=")
        self.assertIn("WatchdogSeconds", self.verify(*self.UNITS)[2])

    def test_a_program_that_is_not_there(self):
        os.rename(self.at("bin/npumemd"), self.at("bin/other"))
        self.addCleanup(os.rename, self.at("bin/other"), self.at("bin/npumemd"))
        self.assertNotEqual(self.verify("npumemd.service")[0], 0)

    def test_exposure(self):
        for unit in ("npumemd.service", "npumemd@one.service"):
            self.assertTrue(self.exposure(unit), unit)
        self.change("npumemd.service", "SystemCallFilter=", "#")
        self.assertFalse(self.exposure("npumemd.service"))

    def test_peers_keep_their_uids(self):
        for unit in ("npumemd.service", "npumemd@.service"):
            settings = [line for line in self.unit(unit).split("\n") if line[:1].isalpha()]
            self.assertNotIn("PrivateUsers", "\n".join(settings))
            self.assertNotIn("DynamicUser", "\n".join(settings))

    def test_what_it_may_use(self):
        """Each is there once, as systemd takes it; the reasons are in the unit."""
        for unit in ("npumemd.service", "npumemd@.service"):
            lines = [line.split("=", 1) for line in self.unit(unit).split("\n") if line[:1].isalpha()]
            settings = dict(lines)
            self.assertEqual(settings["LimitCORE"], "0")
            self.assertRegex(settings["MemoryMax"], r"^\d+%$")
            self.assertLess(2048 + 63 + 64 + 4, int(settings["TasksMax"]))  # workers.h, share.h, closer.h
            # Never so often that systemd gives the daemon, and with it the socket, up: 5 starts in 10 s.
            self.assertLess(10, 5 * int(settings["RestartSec"].removesuffix("s")))
            # The daemon takes a minute for what runs, and 2 s for replies.
            self.assertLess(62, int(settings["TimeoutStopSec"].removesuffix("s")))
            documentation = settings["Documentation"].removeprefix("file:")
            self.assertTrue(os.path.isfile(self.root + documentation), documentation)
            for name in ("LimitCORE", "MemoryMax", "TasksMax", "RestartSec", "TimeoutStopSec", "Documentation"):
                self.assertEqual([one[0] for one in lines].count(name), 1, name)
        for old, name in (("75%", "MemoryMax"), ("2200", "TasksMax"), ("3s", "RestartSec"), ("90s", "TimeoutStopSec")):
            self.change("npumemd.service", f"\n{name}={old}\n", f"\n{name}=x\n")
            self.assertIn(", ignoring: ", self.verify("npumemd.service")[2], name)
            self.change("npumemd.service", f"\n{name}=x\n", f"\n{name}={old}\n")

    def test_each_device_has_its_own(self):
        """All that tells the two services apart is the name of the device."""
        for kind in ("service", "socket"):
            one, each = self.unit(f"npumemd.{kind}"), self.unit(f"npumemd@.{kind}")
            self.assertNotIn("%i", one)
            each = each.replace("npumemd@%i", "npumemd").replace("%i", "npumem")
            self.assertEqual(one, each)
        self.assertIn("\nRequires=npumemd@%i.socket\n", self.unit("npumemd@.service"))
        self.assertIn("\nListenStream=/run/npumem/%i.sock\n", self.unit("npumemd@.socket"))

    def test_the_user(self):
        code, _, complaint = run("systemd-sysusers", f"--root={self.root}")
        self.assertEqual(code, 0, complaint)
        with open(self.root + "/etc/passwd", encoding="utf-8") as users:
            user = next(line.strip().split(":") for line in users if line.startswith("npumem:"))
        self.assertEqual(user[5:], ["/", "/usr/sbin/nologin"])
        self.assertTrue(0 < int(user[2]) < 1000, user)
        self.assertIn("\nUser=npumem\n", self.unit("npumemd.service"))

    def test_the_directory(self):
        code, _, complaint = run("systemd-tmpfiles", f"--root={self.root}", "--create", "npumem.conf")
        self.assertEqual(code, 0, complaint)
        self.assertEqual(os.stat(self.root + "/run/npumem").st_mode & 0o7777, 0o755)


if __name__ == "__main__":
    unittest.main()
