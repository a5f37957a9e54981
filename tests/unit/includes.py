"""Reads every #include below include, proto, daemon and client and fails on one that the graph of the folders does
not have, and on headers, or files with their headers, that include one another in a circle. First proves, on small
trees of its own, that it can fail.

usage: includes.py ROOT
"""

import os
import re
import sys
import tempfile

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)

# Headers that know no fd, clock or thread: of the C library, and the lists of uthash-dev.
PURE = set(
    "assert ctype errno float inttypes limits math setjmp stdalign stdarg stdatomic stdbool stddef stdint stdio "
    "stdlib stdnoreturn string strings cpuid emmintrin immintrin x86intrin arm_neon sys/auxv sys/types sys/platform/x86 utlist".split()
)
# Who may use whose headers, beside <npumem/...> and PURE. "posix" stands for the rest of the system's.
ROWS = {
    "include/npumem": [],
    "include/formulas": ["include/formulas/"],
    "proto/spin.c": ["proto/", "sched", "time"],
    "proto": ["proto/", "protobuf-c/", "zlib", "endian"],
    "daemon/device/memory": ["daemon/device/memory/", "daemon/device/isa.h", "daemon/device/implementations.h"],
    "daemon/device/geometry": ["daemon/device/geometry/", "include/formulas/boxes/kind_mask.h"],
    "daemon/device/arena": ["daemon/device/arena/", "daemon/device/memory/"],
    "daemon/device": ["daemon/device/", "include/formulas/boxes/kind_mask.h", "include/formulas/tap_pairs.h"],
    "daemon/store": ["daemon/store/", "daemon/device/memory/heap.h", "zlib", "posix"],
    "daemon/service": ["daemon/service/", "daemon/store/", "daemon/device/", "zlib"],
    "daemon/rpc": ["daemon/rpc/", "daemon/service/", "daemon/store/", "daemon/device/", "proto/", "protobuf-c/", "unistd"],
    "daemon/server": [
        "daemon/server/", "daemon/rpc/", "daemon/service/", "daemon/store/", "daemon/device/", "proto/", "uv", "posix",
    ],
    "daemon/main.c": ["daemon/server/"],
    "client/lib": ["client/lib/", "proto/", "protobuf-c/", "jansson", "posix"],
    "client/ctl": ["client/ctl/", "jansson", "zlib", "posix"],
    "client/static": ["grp", "pwd"],
}
FOREIGN = ("uv", "protobuf-c/", "google/", "jansson", "zlib", "check")


def row_of(path):
    return next((row for row in ROWS if path == row or path.startswith(row + "/")), None)


def may(row, bracket, name):
    allowed = ROWS[row]
    stem = name.removesuffix(".h")
    if ".." in name.split("/"):
        return False
    if bracket == '"':
        return any(name == a or (a.endswith("/") and a != "protobuf-c/" and name.startswith(a)) for a in allowed)
    if name.startswith("npumem/") or stem in PURE or stem in allowed:
        return True
    foreign = next((f for f in FOREIGN if stem == f or name.startswith(f)), None)
    return foreign in allowed if foreign else "posix" in allowed


def problems(root):
    found = []
    for top in ("include", "proto", "daemon", "client"):
        for directory, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if not name.endswith((".c", ".h", ".def")):
                    continue
                path = os.path.relpath(os.path.join(directory, name), root)
                row = row_of(path)
                if row is None:
                    found.append(f"{path}: no folder of the graph")
                    continue
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    for bracket, header in INCLUDE.findall(file.read()):
                        if not may(row, bracket, header):
                            found.append(f"{path}: {row} may not include {header}")
    return found


def node(path):
    """x.c counts as one with x.h: a circle through the two is one, too."""
    return os.path.splitext(path)[0] if path.endswith((".c", ".h")) else path


def circles(root):
    """The files of each circle of includes, from the first to the same one again."""
    included = {}
    for top in ("include", "proto", "daemon", "client"):
        for directory, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                path = os.path.relpath(os.path.join(directory, name), root)
                if name.endswith((".c", ".h", ".def")):
                    with open(os.path.join(root, path), encoding="utf-8") as file:
                        headers = [header for _, header in INCLUDE.findall(file.read())]
                    included.setdefault(node(path), []).extend(
                        node("include/" + header if header.startswith("npumem/") else header)
                        for header in headers
                        if header != node(path) + ".h"
                    )
    found, done = [], set()

    def follow(header, way):
        if header in way:
            found.append(" -> ".join(way[way.index(header) :] + [header]))
        elif header not in done:
            for other in included.get(header, ()):
                follow(other, way + [header])
            done.add(header)

    for header in sorted(included):
        follow(header, [])
    return found


GOOD = {
    "include/npumem/a.h": "#include <stdint.h>\n#include <npumem/types.h>\n",
    "include/formulas/a.c": '#include "include/formulas/a.h"\n#include <math.h>\n',
    "proto/a.c": '#include "proto/frame.h"\n#include <protobuf-c/protobuf-c.h>\n',
    "daemon/device/a.c": '#include "daemon/device/heap.h"\n// #include "daemon/service/x.h"\n',
    "daemon/device/d.c": '#include "include/formulas/boxes/kind_mask.h"\n',
    "daemon/rpc/a.c": '#include "daemon/service/a.h"\n#include "proto/frame.h"\n#include <unistd.h>\n',
    "daemon/server/a.c": "#include <uv.h>\n#include <sys/socket.h>\n",
    "daemon/main.c": '#include "daemon/server/server.h"\n',
    "daemon/store/a.c": '#include "daemon/device/memory/heap.h"\n#include <zlib.h>\n#include <sys/mman.h>\n',
    "client/lib/a.c": '#include "proto/frame.h"\n#include <poll.h>\n#include <npumem/client.h>\n',
    "client/ctl/a.c": "#include <jansson.h>\n#include <npumem/client.h>\n",
}
BAD = {
    "include/npumem/b.h": '#include "include/formulas/a.h"\n',
    "include/npumem/c.h": "#include <unistd.h>\n",
    "include/formulas/b.c": '#include "daemon/device/heap.h"\n',
    "proto/b.c": "#include <sys/socket.h>\n",
    "proto/c.c": '#include "client/lib/a.h"\n',
    "daemon/device/b.c": '#include "daemon/service/a.h"\n',
    "daemon/device/c.c": "#include <time.h>\n",
    "daemon/device/geometry/b.c": '#include "daemon/device/internal.h"\n',
    "daemon/device/arena/b.c": '#include "daemon/device/geometry/intersect.h"\n',
    "daemon/device/e.c": '#include "include/formulas/layout_row.h"\n',
    "daemon/device/kernels/d.c": "  #  include <pthread.h>\n",
    "daemon/store/b.c": '#include "daemon/device/device.h"\n',
    "daemon/store/c.c": "#include <uv.h>\n",
    "daemon/service/b.c": '#include "daemon/rpc/a.h"\n',
    "daemon/service/c.c": "#include <uv.h>\n",
    "daemon/service/d.c": '#include "proto/convert.h"\n',
    "daemon/rpc/b.c": '#include "daemon/server/process/log.h"\n',
    "daemon/rpc/c.c": "#include <fcntl.h>\n",
    "daemon/rpc/d.h": "#include <uv.h>\n",
    "daemon/server/b.c": '#include "../rpc/a.h"\n',
    "daemon/server/c.c": '#include "client/lib/a.h"\n',
    "daemon/server/d.c": "#include <protobuf-c/protobuf-c.h>\n",
    "daemon/server/e.c": '#include "log.h"\n',
    "daemon/other/b.c": "",
    "client/lib/b.c": '#include "daemon/device/heap.h"\n',
    "client/lib/c.c": "#include <uv.h>\n",
    "client/ctl/b.c": '#include "proto/frame.h"\n',
    "client/ctl/c.c": '#include "client/lib/a.h"\n',
}


CIRCLES = {
    "client/lib/x.h": '#include "client/lib/y.h"\n',
    "client/lib/y.h": '#include "client/lib/z.h"\n',
    "client/lib/z.h": '#include "client/lib/y.h"\n',
    "daemon/rpc/x.c": '#include "daemon/rpc/x.h"\n#include "daemon/rpc/y.h"\n',
    "daemon/rpc/y.h": '#include "daemon/rpc/x.h"\n',
}


def plant(root, tree):
    for path, text in tree.items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)


def self_test():
    with tempfile.TemporaryDirectory() as root:
        plant(root, GOOD)
        assert problems(root) == [], problems(root)
        plant(root, BAD)
        found = [problem.split(":")[0] for problem in problems(root)]
        assert sorted(found) == sorted(BAD), sorted(set(BAD) ^ set(found))
        assert circles(root) == [], circles(root)
        plant(root, CIRCLES)
        assert circles(root) == [
            "client/lib/y -> client/lib/z -> client/lib/y",
            "daemon/rpc/x -> daemon/rpc/y -> daemon/rpc/x",
        ], circles(root)


def main():
    self_test()
    found = problems(sys.argv[1]) + circles(sys.argv[1])
    print("\n".join(found) or "includes: as the graph has it")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
