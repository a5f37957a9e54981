#!/usr/bin/python3
"""tests/demo.sh says what it does while it builds: its steps, every tenth of the build, and where a failure is told.

It runs in a folder with packages, cmake and a demo that only print.
"""
import os
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
CMAKE = """#!/bin/sh
[ "$1" = --build ] || exit 0
%s
exit %d
"""


def run(lines, code):
    with tempfile.TemporaryDirectory() as top:
        os.mkdir(os.path.join(top, "tests"))
        shutil.copy(os.path.join(HERE, "..", "demo.sh"), os.path.join(top, "tests"))
        for name, text in (("tests/packages.sh", "#!/bin/sh\n"), ("tests/demo/run.sh", "#!/bin/sh\necho ran $1\n"),
                           ("bin/cmake", CMAKE % ("\n".join(f"echo '{line}'" for line in lines), code))):
            path = os.path.join(top, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="ascii") as file:
                file.write(text)
            os.chmod(path, 0o755)
        environment = dict(os.environ, PATH=os.path.join(top, "bin") + ":" + os.environ["PATH"])
        done = subprocess.run([os.path.join(top, "tests/demo.sh")], capture_output=True, text=True, env=environment,
                              check=False)
        with open(os.path.join(top, "build/demo-build.log"), encoding="ascii") as file:
            assert file.read() == "".join(line + "\n" for line in lines), "the log is not the build's output"
        return done


def tenths(out):
    return [line.split()[1] for line in out.splitlines() if line.startswith("demo:   ")]


def main():
    for lines in ([f"[{i:3}%] Building {i}" for i in range(101)], [f"[{i}/550] Building" for i in range(1, 551)]):
        done = run(lines, 0)
        assert done.returncode == 0, done.stderr
        steps = [line for line in done.stdout.splitlines() if line.startswith("demo: step")]
        assert len(steps) == 4, done.stdout
        assert tenths(done.stdout) == [str(i) for i in range(10, 101, 10)], done.stdout
        assert done.stdout.endswith("\nran build\n"), done.stdout
    done = run(["[ 20%] Building", "x.c: an error"], 1)
    assert done.returncode == 1 and "ran build" not in done.stdout, done
    assert "x.c: an error" in done.stderr and "build/demo-build.log" in done.stderr, done.stderr


main()
