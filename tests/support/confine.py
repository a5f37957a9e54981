"""The unit's system call filter as systemd makes it, for processes that systemd does not start."""

import ctypes
import functools
import os
import re
import socket
import struct
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97


def settings(name):
    with open(os.path.join(os.environ["NPUMEM_BUILD"], "systemd/npumemd.service"), encoding="utf-8") as unit:
        return re.findall(rf"^{name}=(.*)$", unit.read(), re.MULTILINE)


@functools.cache
def calls_of(name):
    """The system calls of a set, as systemd has it."""
    if not name.startswith("@"):
        return frozenset([name])
    lines = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager", name], capture_output=True, text=True, check=True
    ).stdout.split("\n")[1:]
    names = [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]
    return frozenset().union(*(calls_of(one) for one in names))


def allowed_calls(filters):
    allowed = set(calls_of("@default"))
    for words in filters:
        forbids = words.startswith("~")
        for word in words.lstrip("~").split():
            allowed = allowed - calls_of(word) if forbids else allowed | calls_of(word)
    return allowed


def call_numbers():
    macros = subprocess.run(
        ["gcc", "-E", "-dM", "-include", "sys/syscall.h", "-x", "c", "/dev/null"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", macros)}


class Filter:
    """As systemd makes it of SystemCallFilter, SystemCallErrorNumber, RestrictAddressFamilies,
    MemoryDenyWriteExecute and RestrictNamespaces."""

    LOAD, EQUAL, ANY_OF, AND, RETURN = 0x20, 0x15, 0x45, 0x54, 0x06
    NUMBER, ARGUMENTS = 0, 16  # in struct seccomp_data

    def __init__(self, filters):
        numbers = call_numbers()
        self.program = []
        self.add(self.LOAD, self.NUMBER)
        # Those of which only some uses are refused end here, so that the number stays loaded for the others.
        self.when(numbers["socket"], 0, [(self.EQUAL, 0, 1, socket.AF_UNIX), self.ok(), self.no(EAFNOSUPPORT)])
        writes_and_runs = [(self.AND, 0, 0, 6), (self.EQUAL, 0, 1, 6), self.no(EPERM), self.ok()]
        self.when(numbers["mmap"], 2, writes_and_runs)
        self.when(numbers["mprotect"], 2, [(self.ANY_OF, 0, 1, 4), self.no(EPERM), self.ok()])
        self.when(numbers["clone"], 0, [(self.ANY_OF, 0, 1, 0x7E020000), self.no(EPERM), self.ok()])
        self.when(numbers["clone3"], 0, [self.no(ENOSYS)])
        for name in sorted(allowed_calls(filters) & numbers.keys()):
            self.add(self.EQUAL, numbers[name], 0, 1)
            self.program.append(self.ok())
        self.program.append(self.no(EPERM))
        self.code = b"".join(struct.pack("=HBBI", *step) for step in self.program)

    def add(self, code, value, yes=0, no=0):
        self.program.append((code, yes, no, value))

    def ok(self):
        return (self.RETURN, 0, 0, ALLOW)

    def no(self, errno):
        return (self.RETURN, 0, 0, REFUSE | errno)

    def when(self, number, argument, steps):
        self.add(self.EQUAL, number, 0, len(steps) + 1)
        self.add(self.LOAD, self.ARGUMENTS + 8 * argument)
        self.program += steps

    def apply(self):
        apply(self.code)


def apply(code):
    """To this process and what it executes, for good."""

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]

    program = Program(len(code) // 8, code)
    assert libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
    assert libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0, ctypes.get_errno()


def main():
    """confine.py --make FILE: the unit's filter; confine.py FILE PROGRAM ARGUMENT…: runs that under it."""
    if sys.argv[1] == "--make":
        with open(sys.argv[2], "wb") as file:
            file.write(Filter(settings("SystemCallFilter")).code)
        return
    with open(sys.argv[1], "rb") as file:
        code = file.read()
    apply(code)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
