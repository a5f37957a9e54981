#!/usr/bin/env python3
"""Builds npumem for aarch64 (toolchain.cmake) and runs it under qemu: the unit tests of the device, and the golden vectors
through a daemon with each instruction set of aarch64. A row a line; 77 where the cross compiler or its packages are missing.
Usage: run.py BUILD [CMAKE-OPTION...]"""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
VECTORS = SOURCE / "tests/conformance/vectors"
INSTRUCTION_SETS = ("scalar", "neon", "neon_dot")
CANNOT = 77


def ran(words: list[str], **environment: str) -> bool:
    result = subprocess.run(words, cwd=SOURCE, env=os.environ | environment, check=False)
    print(f"{'ok' if result.returncode == 0 else 'FAILED'}: {' '.join(map(str, words))}", flush=True)
    return result.returncode == 0


def main() -> int:
    build = Path(sys.argv[1])
    sysroot = subprocess.run([HERE / "sysroot.sh"], stdout=subprocess.PIPE, text=True, check=False)
    if sysroot.returncode == CANNOT:
        return CANNOT
    emulator = ["qemu-aarch64-static", "-L", sysroot.stdout.strip()]
    configure = ["cmake", "-S", SOURCE, "-B", build, "--toolchain", HERE / "toolchain.cmake", *sys.argv[2:]]
    targets = ["npumemd", "npumemctl", "unit_device"]
    if not ran(list(map(str, configure))) or not ran(["cmake", "--build", str(build), "--parallel", "2", "--target", *targets]):
        return 1
    # The kernel does not run programs of another architecture, so the client starts this.
    daemon = build / "npumemd-emulated"
    daemon.write_text(f'#!/bin/sh\nexec {" ".join(emulator)} "{build}/daemon/npumemd" "$@"\n')
    daemon.chmod(0o755)
    results = [ran([*emulator, f"{build}/tests/unit_device"], CK_EXCLUDE_TAGS="slow", CK_TIMEOUT_MULTIPLIER="10")]
    for isa in INSTRUCTION_SETS:
        ctl = [*emulator, f"{build}/client/ctl/npumemctl", f"--spawn=--isa {isa}", "conform", str(VECTORS)]
        results.append(ran(ctl, NPUMEMD=str(daemon)))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
