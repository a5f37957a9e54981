"""Cases of every kernel with what npumem.reference makes of them: random ones of npumem.conform, and those of cases.txt.
A case that the reference refuses is one, too. cases.c runs them. The same rows make the same cases.

usage: cases.py CASES_TXT OUTPUT
"""

import itertools
import re
import sys

import numpy as np
from npumem._rows import PARAMS
from npumem.conform.cases import CASES, FIXED, bias_of, drawn, made, out_of, spoilt
from npumem.conform.draw import Draw
from npumem.conform.trial import expectation
from npumem.reference.integers import RANGES
from npumem.reference.kernels import KERNELS, PARAMETERS, ROLES, Result
from npumem.reference.tensor import Format, Tensor, shape4, tensor

RANDOM, SPOILT, OF_A_ROW = 50, 14, 6  # cases of each kernel, and of a row
ELEMENTS_MOST, MACS_MOST, LARGE_ONE_IN = 2500, 60000, 8
NUMBERS = {row[0]: (row[1], row[4].split()) for row in PARAMS}


class NotMeant(Exception):
    """A case that no request makes: without a role that it must have, with a value that does not travel."""


def size(case, result):
    outputs = result.outputs.values() if isinstance(result, Result) else ()
    elements = sum(x.n for x in [*(x for _, x in case.tensors() if isinstance(x, Tensor)), *outputs])
    return elements, result.macs if isinstance(result, Result) else 0


def numbers(name, value):
    """A parameter as it travels: its number and its values, words counted from 1."""
    number, choices = NUMBERS[name]
    values = list(value) if isinstance(value, tuple) else [value]
    if choices and any(str(one) not in choices for one in values):
        raise NotMeant
    return number, [choices.index(str(one)) + 1 if choices else int(one) for one in values]


def integers(x):
    values = x.values.astype(np.float32).view(np.uint32) if x.dtype == "fp32" else x.values
    return " ".join(map(str, values.reshape(-1).tolist()))


def operands(case, result):
    for role, x in case.tensors():
        if isinstance(x, Tensor):
            yield role, x, shape4(x.values.shape), integers(x)
        elif isinstance(result, Result):
            yield role, x, shape4(result.outputs[role].values.shape), integers(result.outputs[role])
        else:
            yield role, x, x.shape or (1, 1, 1, 1), ""


def lines(case, result):
    given = {word.rstrip("_"): value for word, value in case.given.items()}
    for role in ROLES[case.kernel]:
        if "?" not in role and role.strip(">*") not in given:
            raise NotMeant
    params = [numbers(name, given[name]) for name in PARAMETERS[case.kernel] if name in given]
    rounding = dict(params).get(NUMBERS["rounding"][0], [1])[0]
    found = list(operands(case, result))
    counts = result.counts if isinstance(result, Result) else None
    yield f"{'run' if counts else 'refused'} {rounding} {len(params)} {len(found)}"
    for number, values in params:
        yield f"{number} {len(values)} " + " ".join(map(str, [*values, 0, 0, 0, 0][:4]))
    for role, x, shape, values in found:
        yield f"{family(case.kernel, role)} {x.dtype} {x.f} {' '.join(map(str, shape))} {values}"
    if counts:
        yield f"{counts.saturated} {counts.wrapped} {counts.divided_by_zero} {counts.macs}"


def is_family(kernel, role):
    return any(row.strip(">?") == role + "*" for row in ROLES[kernel])


def family(kernel, role):
    """in of in0, where in is a numbered family."""
    name = role.rstrip("0123456789")
    return name if is_family(kernel, name) else role


# ---- the rows of cases.txt ----


def elements(shape, dtype, style):
    """The least or the greatest number; each number of the container, in turn or (slowly) for 256 elements; a list."""
    if dtype == "fp32":
        return np.array([float(one) for one in style.split(",")]).reshape(shape)
    low, high = RANGES[dtype]
    n = int(np.prod(shape))
    if style in ("least", "most"):
        return np.full(shape, low if style == "least" else high)
    if style in ("all", "slowly"):
        return (np.arange(n) // (1 if style == "all" else 256) % (high - low + 1) + low).reshape(shape)
    if style == "spread":
        return np.linspace(low, high, n).astype(np.int64).reshape(shape)
    return np.array([int(one) for one in style.split(",")]).reshape(shape)


def operand(d, text, types, role):
    """DTYPE.FRAC_BITS[N,C,H,W]:ELEMENTS, each part but the shape drawn where it is left out."""
    dtype, f, shape, style = re.fullmatch(r"([a-z]+[0-9]+)?(?:\.(\d+))?(?:\[([\d,]+)\])?(?::(\S+))?", text).groups()
    dtype = dtype or types[role in ("weights", "right", "bias")]
    if not shape:
        return Format(dtype, int(f) if f else None)
    extents = tuple(map(int, shape.split(",")))
    if style:
        values = elements(extents, dtype, style)
        return tensor(values if dtype == "fp32" else values.astype(object), dtype, int(f) if f else None)
    return made(d, extents, dtype, int(f) if f else None)


def value(text):
    items = tuple(int(one) if re.fullmatch(r"-?\d+", one) else one for one in text.split(","))
    return items if len(items) > 1 else items[0]


def of_row(d, row):
    kernel, *words = row.split()
    types, given = d.pick(FIXED), {}
    for name, text in (word.split("=", 1) for word in words):
        if name in PARAMETERS[kernel]:
            given[name] = value(text)
        else:
            found = [operand(d, one, types, name) for one in text.split("+")]
            given["in_" if name == "in" else name] = found if is_family(kernel, name) else found[0]
    if "out" not in given:  # of a kernel with weights
        x, w = (given[name] for name in (("left", "right") if kernel == "matmul" else ("in_", "weights")))
        x, w = (one[0] if isinstance(one, list) else one for one in (x, w))
        given |= {"out": out_of(d, x.dtype, x.f + w.f), **bias_of(d, (1, w.values.shape[1], 1, 1), w, x.f + w.f)}
        given |= {"relu": d.pick(("none", "gen", "1", "6"))} if "relu" in PARAMETERS[kernel] else {}
    given.setdefault("rounding", d.pick(("convergent", "up", "nearest")))
    case = drawn(Draw(0, []), kernel)
    case.given = given
    return case


def random_case(d, kernel):
    while True:
        case = drawn(d, kernel)
        for name in PARAMETERS[kernel]:
            if name in case.given and d.flag(8):
                del case.given[name]  # its default
        result = expectation(case)
        elements_, macs = size(case, result)
        larger = 8 if d.flag(LARGE_ONE_IN) else 1
        if isinstance(result, Result) and elements_ <= ELEMENTS_MOST * larger and macs <= MACS_MOST * larger:
            return case, result


def spoilt_case(d, kernel):
    case, result = random_case(d, kernel)
    for role, x in result.outputs.items():
        case.given[role] = Format(x.dtype, x.frac_bits, x.shape)
    case = spoilt(d, case)
    return case, expectation(case)


def every_type(kernel):
    """Packed operations with each combination of types: three elements."""
    inputs = [role.rstrip("?") for role in ROLES[kernel] if role[0] != ">"]
    constant = ["value_dtype"] if "value" in PARAMETERS[kernel] else []
    for types in itertools.product(("int8", "uint8", "int16", "uint16"), repeat=len(inputs) + len(constant) + 1):
        d = Draw(f"{kernel}/{types}")
        case = drawn(Draw(0, []), kernel)
        case.given = {role: made(d, (1, 1, 1, 3), dtype) for role, dtype in zip(inputs, types)}
        if constant:
            case.given |= {"value_dtype": types[-2], "value": d.integer(*RANGES[types[-2]])}
        case.given |= {name: d.integer(0, 31) for name in ("lshift", "rshift") if name in PARAMETERS[kernel]}
        case.given["out"] = Format(types[-1], None, (1, 1, 1, 3))
        yield case, expectation(case)


def cases(kernel, rows):
    if kernel.startswith("packed_"):
        yield from every_type(kernel)
    for i in range(RANDOM):
        yield random_case(Draw(f"{kernel}/{i}"), kernel)
    for i in range(SPOILT):
        yield spoilt_case(Draw(f"spoilt/{kernel}/{i}"), kernel)
    for row in rows:
        for i in range(1 if row.count(":") else OF_A_ROW):
            case = of_row(Draw(f"{row}/{i}"), row)
            result = expectation(case)
            assert isinstance(result, Result), (row, result)
            yield case, result


def main(table, output):
    with open(table, encoding="utf-8") as file:
        rows = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    with open(output, "w", encoding="utf-8") as file:
        for kernel in KERNELS:
            file.write(f"kernel {kernel}\n")
            for case, result in cases(kernel, [row for row in rows if row.split()[0] == kernel]):
                try:
                    file.write("\n".join(lines(case, result)) + "\n")
                except NotMeant:
                    continue
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
