"""npumemctl's prompt at a terminal: an interrupt takes back the line that is typed, or what its command waits for, and no
more; a tabulator completes it. And what is printed keeps to the terminal's width."""

import fcntl
import json
import os
import pty
import re
import select
import struct
import tempfile
import termios
import time
import unittest

from support import NPUMEMCTL, SECONDS, Endless, TestCase, alloc, pb, silenced, wait_for

with open(NPUMEMCTL, "rb") as program:
    EDITS = b"libedit" in program.read()


class Terminal:
    def __init__(self, *words, columns=80, home="/nonexistent"):
        self.pid, self.fd = pty.fork()
        if not self.pid:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            os.environ.update(TERM="dumb", HOME=home)
            os.execv(NPUMEMCTL, [NPUMEMCTL, *words])
        self.text = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def read(self):
        """What was written; "" where the other end is closed."""
        if not select.select([self.fd], [], [], SECONDS)[0]:
            raise AssertionError(f"nothing came after {self.text!r}")
        try:
            return os.read(self.fd, 4096).decode()
        except OSError:
            return ""

    def until(self, pattern):
        """Everything up to what matches, which is then forgotten."""
        while not (match := re.search(pattern, self.text)):
            got = self.read()
            assert got, f"it ended with {self.text!r}, without {pattern}"
            self.text += got
        before, self.text = self.text[: match.end()], self.text[match.end() :]
        return before

    def rest(self):
        while got := self.read():
            self.text += got
        return self.text.replace("\r", "")

    def end(self):
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Followers(unittest.TestCase):
    """With --spawn all lines have one connection. A bar that is over follows nothing any more: its frame is gone."""

    def setUp(self):
        self.terminal = Terminal("--spawn")
        self.addCleanup(self.terminal.end)
        self.terminal.until("npumem> ")
        for name in ("x", "y"):
            self.ask(f"alloc {name} --shape 1,8,1,16 --dtype int8", "")

    def ask(self, line, says):
        self.terminal.type(line + "\n")
        self.terminal.until(says)
        return self.terminal.until("npumem> ")

    def assert_no_follower(self, after):
        self.terminal.type("info\n")
        text = self.terminal.until("followers +[0-9]+ of")
        self.terminal.until("npumem> ")
        self.assertRegex(text, "followers +0 of", after)

    def test_none_is_left(self):
        self.assert_no_follower("nothing")
        for line, says in (("fill x 1", ""), ("fill x 1.5", "VALUE must be an integer"), ("copy y x", ""),
                           ("copy y x", ""), ("run pad2d in=x out=y", "saturated"),
                           ("run pad2d in=y out=none", "no tensor"), ("fill x 2", "")):  # fmt: skip
            self.ask(line, says)
            self.assert_no_follower(line)

    def test_none_is_left_by_a_network(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "net.json")
            with open(path, "w", encoding="ascii") as file:
                json.dump([{"open": "x"}, {"fill": "x", "value": 1}], file)
            self.ask(f"submit {path} --out {folder}", "fill x")
        self.assert_no_follower("submit")


class Prompt(TestCase):
    options = ("--npu-bytes", "4194304")

    def setUp(self):
        super().setUp()
        self.terminal = Terminal("--socket", self.daemon.path)
        self.terminal.until("npumem> ")

    def tearDown(self):
        self.terminal.end()
        super().tearDown()

    def ask(self, line, says):
        self.terminal.type(line + "\n")
        self.terminal.until(says)
        self.terminal.until("npumem> ")

    def finish(self):
        self.terminal.type("exit\n")
        self.terminal.rest()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(self.terminal.pid, 0)[1]), 0)
        self.terminal.end = lambda: os.close(self.terminal.fd)

    def test_a_line_is_taken_back(self):
        for _ in range(3):
            self.terminal.type("free --all")
            self.terminal.until("free --all")
            self.terminal.type("\x03")
            # An interrupt flushes a terminal after it has sent the signal: the kernel may drop the new prompt.
            if not select.select([self.terminal.fd], [], [], 5)[0]:
                self.terminal.type("\n")
            self.terminal.until("npumem> ")
        self.client().alloc("x")
        self.ask("ls", "x +")  # nothing was freed, and no rest of a line is in front of it
        self.finish()

    def test_what_runs_is_taken_back(self):
        looker = self.client()
        endless = Endless(looker)
        for _ in range(2):
            self.terminal.type("run conv2d in=in weights=weights out=out\n")
            while not any(row.done for row in looker.call(stat=pb.StatRequest(details=True)).stat.running):
                time.sleep(0.01)
            self.terminal.type("\x03")
            self.terminal.until("npumemctl: [^\n]*cancelled")
            self.terminal.until("npumem> ")
        wait_for(lambda: not looker.call(stat=pb.StatRequest(details=True)).stat.running)
        self.ask("fill out 1", "")
        self.assertIsNotNone(endless)
        self.finish()

    def test_several_commands_in_a_line(self):
        self.ask("alloc x --shape 1,8,1,4 --dtype int8; fill x 7; read x", "7 7 7 7")
        # What is typed goes on after a failure, as in a shell.
        self.ask("fill none 1;ls # ; free x", "npumemctl: [^\n]*none")
        self.ask("ls", "x +int8")
        self.terminal.type("free x; exit; alloc y --shape 1,1,1,1 --dtype int8\n")
        self.terminal.rest()
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(self.terminal.pid, 0)[1]), 0)
        self.terminal.end = lambda: os.close(self.terminal.fd)
        self.assertEqual(list(self.client().call(list=pb.ListRequest()).list.tensors), [])

    def test_clear(self):
        self.ask("clear", re.escape("\033[H\033[2J\033[3J"))
        self.ask("clear now", 'there is no command "clear"')
        self.finish()

    def test_what_waits_is_taken_back(self):
        self.terminal.type("alloc all --shape 4096,64,32,32 --dtype int8 --address 0 \n")
        self.terminal.until("npumem> ")
        self.terminal.type("alloc more --shape 4096,64,32,32 --dtype int8 --wait 1000\n")
        looker = self.client()
        wait_for(lambda: looker.call(stat=pb.StatRequest(details=True)).stat.running)
        self.terminal.type("\x03")
        self.terminal.until("npumemctl: ")
        self.terminal.until("npumem> ")
        self.assertEqual([t.name for t in looker.call(list=pb.ListRequest()).list.tensors], ["all"])
        self.finish()

    def test_what_is_not_answered_is_left(self):
        self.ask("alloc x --shape 1,8,1,4 --dtype int8", "address")
        with silenced(self.daemon.process):
            self.terminal.type("ls\n")
            self.terminal.until("ls")
            time.sleep(0.2)  # what is typed at the prompt is no interrupt of a command
            self.terminal.type("\x03")
            self.terminal.until("npumemctl: no answer yet; another interrupt ends npumemctl")
            self.terminal.type("\x03")
            self.terminal.rest()
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(self.terminal.pid, 0)[1]), -2)
            self.terminal.end = lambda: os.close(self.terminal.fd)

    def test_after_commands_with_signals_of_their_own(self):
        client = self.client()
        for _ in range(2):
            self.terminal.type("events\n")
            while "allocated" not in self.terminal.text:
                client.call(**alloc(""))
                if select.select([self.terminal.fd], [], [], 0.05)[0]:
                    self.terminal.text += self.terminal.read()
            self.terminal.type("\x03")
            self.terminal.until("npumem> ")
        self.terminal.type("ls")
        self.terminal.until("ls")  # the line has begun
        self.terminal.type("\x03")
        self.terminal.until("npumem> ")
        os.kill(self.terminal.pid, 15)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(self.terminal.pid, 0)[1]), -15)
        self.terminal.end = lambda: os.close(self.terminal.fd)

    def test_the_tensors_of_a_private_daemon_stay(self):
        self.terminal.end()
        self.terminal = Terminal("--spawn")
        self.terminal.until("npumem> ")
        self.ask("alloc x --shape 1,8,1,16 --dtype int8", "address")
        self.terminal.type("fill x\x03")
        self.terminal.until("npumem> ")
        self.ask("ls", "x +")
        self.finish()


@unittest.skipUnless(EDITS, "npumemctl was built without libedit, so this was NOT checked: tests/packages.sh libedit-dev")
class Completion(TestCase):
    """The key of the tabulator goes on with what may stand there, and lines are remembered from one time to the next."""

    options = ("--npu-bytes", "4194304")

    def open(self):
        self.terminal = Terminal("--socket", self.daemon.path, home=self.daemon.directory)
        self.terminal.until("npumem> ")

    def setUp(self):
        super().setUp()
        self.client().alloc("activations")
        self.open()

    def finish(self):
        self.terminal.type("exit\n")
        self.terminal.rest()
        self.assertEqual(self.terminal.end(), 0)

    def completes(self, typed, line, says):
        """A tabulator makes the line what it should be, and it runs."""
        self.terminal.type(typed + "\t")
        self.terminal.until(re.escape(line))
        self.terminal.type("\n")
        self.terminal.until(says)
        self.terminal.until("npumem> ")

    def test_of_what_may_stand_there(self):
        self.completes("vers", "version", "npumemctl")
        self.completes("show acti", "show activations", "owner")
        self.completes("kernels eltwise_mi", "kernels eltwise_min", "eltwise_min")
        self.completes("help comp", "help compact", "compact")
        self.completes("compact --dry", "compact --dry-run", "0 tensors would move")
        self.finish()

    def test_of_a_call(self):
        """A kernel's roles and parameters, their values, tensors behind a role; and the values of options."""
        self.completes("run eltwise_min in1=acti", "run eltwise_min in1=activations", "npumemctl: ")
        self.completes("run eltwise_min ou", "run eltwise_min out=", "npumemctl: ")
        self.completes("run conv2d relu=g", "run conv2d relu=gen", "npumemctl: ")
        self.completes("run conv2d rounding=conv", "run conv2d rounding=convergent", "npumemctl: ")
        self.completes("alloc y --shape 1,1,1,1 --dtype int1", "alloc y --shape 1,1,1,1 --dtype int16", "y at address")
        self.completes("alloc z --dtype int8 --shape 1,1,1,1 --layout comp", "--layout compact", "z at address")
        self.completes("version; kernels eltwise_mi", "version; kernels eltwise_min", "eltwise_min")
        self.finish()

    def test_of_nothing(self):
        """What nothing begins with stays as it was typed: a command, a kernel, a tensor."""
        for typed, says in (("nonsen", "nonsen"), ("kernels nonsen", "nonsen"), ("show nonsen", "nonsen")):
            self.completes(typed, typed, f"npumemctl: [^\n]*{says}[^\n]*\n")
        self.finish()

    def test_without_a_daemon(self):
        """A completion that would ask a daemon that is gone says nothing of it, and the options are still found."""
        self.daemon.end()
        self.completes("show acti", "show acti", "npumemctl: ")
        self.terminal.type("compact --dry\t")
        self.terminal.until("compact --dry-run")
        self.terminal.type("\x03")
        self.terminal.until("npumem> ")
        self.finish()

    def test_of_files(self):
        """Where a file may stand its name comes, and nowhere else."""
        path = os.path.join(self.daemon.directory, "numbers.npy")
        with open(path, "wb") as file:
            file.write(b"no array")
        self.completes(f"write activations {path[:-6]}", f"write activations {path}", "npumemctl: [^\n]*numbers.npy[^\n]*\n")
        self.completes(f"show {path[:-6]}", f"show {path[:-6]}", "npumemctl: [^\n]*/numbe\\b(?!rs)[^\n]*\n")
        self.finish()

    def test_lines_are_remembered(self):
        self.terminal.type("version\n")
        self.terminal.until("npumemctl [^\n]+\n")
        self.terminal.until("npumem> ")
        self.finish()
        with open(os.path.join(self.daemon.directory, ".npumemctl_history"), encoding="utf-8") as file:
            self.assertEqual([line for line in file.read().splitlines() if line in ("version", "exit")], ["version", "exit"])
        self.open()
        self.terminal.type("\x10\x10")  # what was typed before the last
        self.terminal.until("version")
        self.terminal.type("\n")
        self.terminal.until("npumemctl [^\n]+\n")
        self.terminal.until("npumem> ")
        self.finish()


class Width(unittest.TestCase):
    def lines(self, columns, *words):
        terminal = Terminal(*words, columns=columns)
        lines = terminal.rest().split("\n")
        self.assertEqual(terminal.end(), 0)
        return lines

    def test_numeric(self):
        questions = (
            "advise conv2d --dtype fx16 in=1,64,32,32:Q.11 weights=64,32,5,5:Q.15 bias=Q.20 out=Q.8 stride=1,1 padding=2,2,2,2",
            "products fx16w8 --in-frac 11 --weights-frac 7 --bias-frac 10", "sums fx8", "mul Q4.3 Q5.7", "sum Q3.4 --n 34",
        )
        for question in questions:
            whole = self.lines(400, "numeric", *question.split())
            for columns in (40, 60, 80):
                lines = self.lines(columns, "numeric", *question.split())
                self.assertLessEqual(max(map(len, lines)), columns, lines)
                self.assertEqual(" ".join(lines).split(), " ".join(whole).split())


if __name__ == "__main__":
    unittest.main()
