"""Writes daemon/device/fixed/rows/lut_tables.c: entry i = round(f((i - offset) / 2^q) * 2^out), half away from zero, kept
in 16 bits. In decimal arithmetic of 60 digits, so that it writes the same on every machine.

usage: lut_tables.py > daemon/device/fixed/rows/lut_tables.c
"""

from decimal import ROUND_HALF_UP, Decimal, getcontext

getcontext().prec = 60


def sigmoid(x):
    return 1 / (1 + (-x).exp())


def tanh(x):
    return (x.exp() - (-x).exp()) / (x.exp() + (-x).exp())


def exp(x):
    return min(x, Decimal(0)).exp()


def invsqrt(x):
    return 1 / x.sqrt()


# name, function, size, q, offset, out
TABLES = [
    ("sigmoid_mli2_0", sigmoid, 320, 4, 160, 15),
    ("sigmoid_mli1_1", sigmoid, 180, 3, 90, 15),
    ("tanh_mli2_0", tanh, 344, 5, 172, 15),
    ("tanh_mli1_1", tanh, 178, 4, 89, 15),
    ("exp_mli2_0", exp, 358, 5, 356, 15),
    ("exp_mli1_1", exp, 181, 4, 179, 15),
    ("invsqrt_mli2_0", invsqrt, 97, 0, -32, 17),
]


def entries(function, size, q, offset, out):
    for i in range(size):
        exact = function(Decimal(i - offset) / 2**q) * 2**out
        yield max(-32768, min(32767, int(exact.quantize(Decimal(1), ROUND_HALF_UP))))


def lines(values):
    line = ""
    for value in values:
        text = f"{value},"
        if len(line) + len(text) + 1 > 100:
            yield line
            line = ""
        line += (" " if line else "") + text
    yield line


print("/* The tables of lut.h. Written by tests/support/lut_tables.py; data, so that no mathematics library of a host")
print(" * decides on a bit. The unit test holds them against their formulas and the reference's own tables. */")
print('#include "daemon/device/fixed/rows/lut.h"')
print("\n/* clang-format off */")
for name, function, size, q, offset, out in TABLES:
    print(f"\nstatic const int16_t {name}[] = {{")
    print("\n".join("\t" + line for line in lines(entries(function, size, q, offset, out))))
    print("};")
print("\nconst struct lut lut_tables[LUT_FUNCTIONS][LUT_LIBRARIES] = {")
for function in ("sigmoid", "tanh", "exp", "invsqrt"):
    print(f"\t[LUT_{function.upper()}] = {{")
    for name, _, size, q, offset, out in TABLES:
        if name.startswith(function):
            library = name.removeprefix(function + "_").upper()
            print(f"\t\t[LUT_{library} - 1] = {{{name}, {size}, {q}, {offset}, {out}}},")
    print("\t},")
print("};")
