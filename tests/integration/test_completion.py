"""Completion in bash, and in zsh where that is installed: commands, options, kernels, their roles, parameters and
choices, and the daemon's tensors."""

import os
import pty
import re
import shutil
import subprocess
import unittest

import npumem
from support import NPUMEMCTL, SECONDS, TestCase

BUILD = os.environ["NPUMEM_BUILD"]
SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
SCRIPT = os.path.join(BUILD, "client/ctl/completion/npumemctl")

BASH = r"""
. "$1"
COMP_LINE=$2 COMP_POINT=${#2}
_npumemctl
printf '%s\n' "${COMPREPLY[@]}"
"""


class Completion(TestCase):
    def setUp(self):
        super().setUp()
        self.dev = self.stack.enter_context(npumem.connect(self.daemon.path))
        for name in ("image", "weights", "out"):
            self.dev.alloc(name, shape=(1, 4, 1, 4), dtype="int8")

    def fits(self, line, **variables):
        """What bash offers behind `npumemctl LINE`."""
        environment = {**os.environ, "NPUMEM_SOCKET": self.daemon.path, **variables}
        done = subprocess.run(
            ["bash", "-c", BASH, "-", SCRIPT, f"{NPUMEMCTL} {line}"],
            capture_output=True, text=True, timeout=SECONDS, env=environment, check=False,
        )  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [word for word in done.stdout.split("\n") if word]

    def test_commands_and_options(self):
        with open(os.path.join(SOURCE, "client/ctl/commands.def"), encoding="utf-8") as file:
            commands = set(re.findall(r"^COMMAND\((\w+),", file.read(), re.MULTILINE))
        self.assertEqual(set(self.fits("")), commands)
        self.assertEqual(self.fits("compa"), ["compact"])
        self.assertEqual(self.fits("nothing"), [])
        self.assertEqual(self.fits("--all-devices --devices list compa"), ["compact"])
        self.assertIn("--socket", self.fits("--s"))
        self.assertEqual(self.fits("alloc x --frac"), ["--frac-bits"])
        self.assertNotIn("--frac-bits", self.fits("free --"))

    def test_values_of_options(self):
        """Each word that is offered is one that npumemctl takes, and all that its help names are offered."""
        self.assertEqual(self.fits("alloc x --layout "), ["aligned", "compact", "matrix", "strided"])
        self.assertEqual(self.fits("alloc x --layout c"), ["compact"])
        self.assertEqual(self.fits("alloc x --dtype fx"), ["fx8", "fx16"])
        self.assertEqual(self.fits("alloc x --mode=2"), ["2n", "2ic"])
        self.assertEqual(self.fits("alloc x --reuse "), ["never", "if-safe", "unchecked"])
        self.assertEqual(self.fits("--json plan --chip sg"), ["sg2260", "sg2380"])
        self.assertEqual(self.fits("check net.json --layouts a"), ["aligned", "all"])
        # Files, by the shell itself.
        for line in ("--socket ", "plan --svg ", "check --junit ", "--devices "):
            self.assertEqual(self.fits(line), [], line)
        # A value is not an argument.
        self.assertEqual(self.fits("write --rounding up im"), ["image"])
        self.assertEqual(self.fits("run --time conv2d in=im"), ["image"])
        helps = {}
        for command in ("alloc", "plan", "load", "write", "check", "events"):
            said = subprocess.run([NPUMEMCTL, command, "--help"], capture_output=True, text=True, check=True).stdout
            for option, words in re.findall(r"^  (--[a-z-]+) [A-Z]\S* +(?:.*: )?((?:[a-z0-9-]+(?: \(the default\))?, (?:or )?)+[a-z0-9-]+)$", said, re.MULTILINE):
                helps[command, option] = re.sub(r" \(the default\)|or ", "", words).split(", ")
        self.assertGreater(len(helps), 10, helps)
        for (command, option), words in helps.items():
            offered = self.fits(f"{command} {option} ")
            self.assertTrue(set(words) <= set(offered), (command, option, words, offered))
        kinds = re.search(r"^Kinds: ((?:[a-z-]+,?\s)+)", said, re.MULTILINE)[1].replace("\n", " ").split(", ")
        self.assertEqual(self.fits("events --kind "), [kind.strip() for kind in kinds])

    def test_kernels(self):
        self.assertEqual(set(self.fits("run ")), set(npumem.kernels))
        self.assertEqual(self.fits("run conv"), ["conv2d", "convert_tensor"])
        for name, row in npumem.kernels.items():
            words = {role.strip(">?").replace("*", "0") + "=" for role in row.roles}
            words |= {parameter + "=" for parameter in (*row.parameters, "rounding")}
            if name in ("conv2d", "concat", "lstm_cell", "packed_mac_c", "mac"):
                self.assertEqual(set(self.fits(f"run {name} ")), words)
        self.assertEqual(self.fits("run conv2d in=image wei"), ["weights="])
        self.assertEqual(self.fits("run conv2d in=image relu="), ["none", "gen", "1", "6"])
        self.assertEqual(self.fits("run conv2d rounding=n"), ["nearest"])
        self.assertEqual(self.fits("run conv2d stride="), [])

    def test_tensors(self):
        self.assertEqual(set(self.fits("run conv2d in=")), {"image", "weights", "out"})
        self.assertEqual(self.fits("run conv2d in=im"), ["image"])
        self.assertEqual(self.fits("free out we"), ["weights"])
        self.assertEqual(self.fits("write im"), ["image"])
        self.assertEqual(self.fits("write image "), [])  # a file
        self.assertEqual(set(self.fits("grant image 1000 ")), {"read", "write", "none"})
        nowhere = "/nonexistent/npumem.sock"
        self.assertEqual(self.fits("free ", NPUMEM_SOCKET=nowhere), [])
        self.assertEqual(self.fits(f"--socket {self.daemon.path} free ou", NPUMEM_SOCKET=nowhere), ["out"])

    def test_what_a_shell_could_take_for_its_own(self):
        directory = self.daemon.directory
        for line in ("free $(touch X)", "run `touch X` ", "free ;touch X", "run conv2d in=$(touch X)", "fr*", "free 'a", "run * "):
            done = subprocess.run(
                ["bash", "-c", BASH, "-", SCRIPT, f"{NPUMEMCTL} {line}"], capture_output=True, cwd=directory, check=False,
                timeout=SECONDS, env=dict(os.environ, NPUMEM_SOCKET=self.daemon.path),
            )  # fmt: skip
            self.assertEqual((done.returncode, done.stderr), (0, b""), line)
        self.assertFalse(os.path.exists(os.path.join(directory, "X")))

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed: what bash offers is tested, not what zsh makes of it")
    def test_zsh(self):
        site = os.path.join(self.daemon.directory, "share/zsh/vendor-completions")
        bash = os.path.join(self.daemon.directory, "share/bash-completion/completions")
        os.makedirs(site)
        os.makedirs(bash)
        shutil.copy(os.path.join(SOURCE, "client/ctl/completion/_npumemctl"), site)
        shutil.copy(SCRIPT, bash)
        for line, expected in (
            ("npumemctl compac\t", "npumemctl compact"),
            ("npumemctl run conv2d in=im\t", "npumemctl run conv2d in=image"),
            ("npumemctl run conv2d wei\tou\t", "npumemctl run conv2d weights=out"),
            ("npumemctl run convert\t", "npumemctl run convert_tensor"),
        ):
            self.assertEqual(self.in_zsh(site, line), expected)

    def in_zsh(self, site, line):
        """What stands in the line after it was typed."""
        pid, terminal = pty.fork()
        if not pid:
            os.environ.update(NPUMEM_SOCKET=self.daemon.path, PATH=f"{os.path.dirname(NPUMEMCTL)}:{os.environ['PATH']}", TERM="dumb")
            os.execvp("zsh", ["zsh", "-f", "-i"])
        written = b""
        try:
            os.write(terminal, f"PS1='>'; fpath=({site} $fpath); autoload -Uz compinit; compinit -u -D; echo READ''Y\n".encode())
            while b"READY" not in written.replace(b"READ''Y", b""):
                written += os.read(terminal, 4096)
            os.write(terminal, line.encode() + b"\x01echo LINE=\"\x05\"\n")
            while not re.search(rb"\nLINE=[^\n]*\n", written):
                written += os.read(terminal, 4096)
        finally:
            os.close(terminal)
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        return re.search(rb"\nLINE=([^\r\n]*)", written)[1].decode().rstrip()


if __name__ == "__main__":
    unittest.main()
