"""A random case of each kernel: tensors with formats and elements, parameters, and where the tensors lie."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

import numpy as np

from ..reference.integers import RANGES
from ..reference.kernels import KERNELS, PARAMETERS, VALUES
from ..reference.place import BYTES, MODES
from ..reference.tensor import Format, Shape, Tensor, shape4, tensor
from .draw import Draw

WORDS = ("up", "nearest", "none", "n", "c", "all", "forward", "batch_to_last", "one_to_one", "mli1_1", "int16")
ROUNDINGS = ("convergent", "up", "nearest")
WORK_MOST = 3_000_000  # products of one case
MUCH = 10_000_000  # those of a large one, which threads share
FIXED = (("fx8", "fx8"), ("fx16", "fx16"), ("fx16", "fx8"))
INTEGERS = ("int8", "uint8", "int16", "uint16")
Given = dict[str, Any]

# Kernels whose output may be the very tensor of an input, and which input.
IN_PLACE = {
    **dict.fromkeys(("relu", "leaky_relu", "prelu", "sigmoid", "tanh", "softmax", "l2_normalize"), "in_"),
    "convert_tensor": "in_",
    **dict.fromkeys(("eltwise_add", "eltwise_sub", "eltwise_mul", "eltwise_div", "eltwise_min", "eltwise_max"), "in1"),
    **{name: "in1" for name in KERNELS if name.startswith("packed_")},
    "lut": "in_",
    "mac": "acc",
}


@dataclass
class Case:
    kernel: str
    given: Given  # as reference.run takes it
    places: dict[str, Given] = field(default_factory=dict)  # by role: the arguments of npumem.spec beside the format
    margins: dict[str, tuple[Shape, Shape]] = field(default_factory=dict)  # by role: of a view, before and after
    reshaped: set[str] = field(default_factory=set)  # roles that are views of a tensor of another H and W
    in_place: str = ""  # the role whose tensor out is
    in_list: bool = False  # one request with its writes and reads
    in_group: bool = False  # and of a parallel group in it
    n_npus: int = 64

    def tensors(self) -> list[tuple[str, Union[Tensor, Format]]]:
        """By role; those of a family as in0, in1, …"""
        found: list[tuple[str, Any]] = []
        for word, value in self.given.items():
            role = word.rstrip("_")
            if isinstance(value, list) and value and isinstance(value[0], Tensor):
                found += [(f"{role}{i}", one) for i, one in enumerate(value)]
            elif isinstance(value, Format):
                found.append((role, value))
        return found


# ---- pieces ----


def made(d: Draw, shape: tuple[int, ...], dtype: str, frac_bits: Optional[int] = None) -> Tensor:
    if dtype in ("fx8", "fx16") and frac_bits is None:
        frac_bits = d.frac_bits()
    if dtype == "fp32":
        values = d.elements(shape, "int16").astype(np.float64) * 2.0 ** d.integer(-40, 40)
        if d.flag(8):
            values.reshape(-1)[:1] = d.pick((np.inf, -np.inf, 1e38, -0.0, 1e-45))
        return tensor(values.astype(np.float32))
    values = d.elements(shape, dtype)
    return Tensor(dtype, frac_bits, shape4(values.shape), values.astype(np.int64))


def fixed(d: Draw) -> str:
    return d.pick(("fx8", "fx16"))


def any_shape(d: Draw, most: int = 20000) -> tuple[int, int, int, int]:
    n, c, h, w = d.extent(9), d.extent(150), d.extent(60), d.extent(300)
    while n * c * h * w > most:
        n, c, h, w = max(n // 2, 1), max(c // 2, 1), max(h // 2, 1), max(w // 2, 1)
    return n, c, h, w


def out_of(d: Draw, dtype: str, exact: int) -> Format:
    """In reach of an exact result with `exact` frac_bits, at times anywhere."""
    near = min(max(exact - d.integer(0, 26), 0), 127)
    return Format(dtype, d.pick((near, near, near, min(exact, 127), d.integer(0, 127))))


def near_to(d: Draw, x: Format) -> Format:
    """fx8 or fx16 with frac_bits around those of another."""
    return out_of(d, fixed(d), x.f + d.integer(0, 12))


def bias_of(d: Draw, shape: tuple[int, ...], weights: Tensor, exact: int) -> Given:
    if d.flag(3):
        return {}
    most = min(exact, 127)
    f = most - d.integer(0, min(most, d.pick((8, 8, 24, 40, 127))))
    return {"bias": made(d, shape, weights.dtype, f)}


def relu(d: Draw) -> str:
    return d.pick(("none", "gen", "1", "6"))


def window(d: Draw, size: int, transposed: bool = False) -> tuple[int, int, int, int, int]:
    """Kernel, stride, dilation, padding before and after, along an axis that has room for them."""
    kernel = d.integer(1, d.pick((1, 3, 3, 5, 9, 13)))
    stride, dilation = d.pick((1, 1, 2, 3)), 1 if transposed else d.pick((1, 1, 1, 2, 3))
    reach = (kernel - 1) * dilation + 1
    before, after = d.integer(0, reach - 1), d.integer(0, reach - 1)
    if transposed:
        while (size - 1) * stride + kernel - before - after < 1:
            before, after = before // 2, after // 2
    while not transposed and size + before + after < reach:
        before, after = min(before + 1, reach - 1), min(after + 1, reach - 1)
        if before == after == reach - 1 and size + before + after < reach:
            return window(Draw(0, [0]), size)
    return kernel, stride, dilation, before, after


def of_window(h: tuple[int, ...], w: tuple[int, ...], dilation: bool) -> Given:
    given: Given = {"stride": (h[1], w[1]), "padding": (h[3], h[4], w[3], w[4])}
    if dilation:
        given["dilation"] = (h[2], w[2])
    return given


# ---- one for each kernel ----


def convolution(d: Draw, kernel: str) -> Given:
    data, weights = d.pick(FIXED)
    h_w = d.extent(40), d.extent(70)
    h, w = (window(d, size, kernel == "transpose_conv2d") for size in h_w)
    groups = d.integer(1, 4) if kernel in ("group_conv2d", "transpose_conv2d") else 1
    n, i, o, most = d.extent(5), d.extent(140), d.extent(140), WORK_MOST
    if d.flag(15):
        n, i, o, h_w, most = 1, d.integer(40, 100), d.integer(40, 130), (d.integer(10, 30), d.integer(10, 30)), MUCH
        h, w = (window(d, size, kernel == "transpose_conv2d") for size in h_w)
    if kernel == "depthwise_conv2d":
        o = d.integer(1, 3)
    while n * i * o * h_w[0] * h_w[1] * h[0] * w[0] * groups > most and max(n, i, o, *h_w) > 1:
        n, i, o = max(n // 2, 1), max(i * 2 // 3, 1), max(o * 2 // 3, 1)
        if n == i == o == 1:
            h_w = max(h_w[0] // 2, 1), max(h_w[1] // 2, 1)
            h, w = (window(d, size, kernel == "transpose_conv2d") for size in h_w)
    shape = (1, i * o) if kernel == "depthwise_conv2d" else (i, o * groups)
    x = made(d, (n, i * groups, *h_w), data)
    weight = made(d, (*shape, h[0], w[0]), weights)
    exact = x.f + weight.f
    given: Given = {"in_": x, "weights": weight, **bias_of(d, (1, shape[1], 1, 1), weight, exact)}
    given |= {"out": out_of(d, "fx16" if d.flag(4) else data, exact), "relu": relu(d), **of_window(h, w, kernel != "transpose_conv2d")}
    if kernel == "transpose_conv2d":
        given["output_padding"] = d.pick(((0, 0), (d.integer(0, 3), d.integer(0, 3)), (d.integer(0, 9), 0)))
    return given | ({"groups": groups} if kernel in ("group_conv2d", "transpose_conv2d") else {})


def dense(d: Draw, kernel: str) -> Given:
    data, weights = d.pick(FIXED)
    flat = kernel == "matmul" or d.flag(2)
    n, c, h, w = d.extent(40), d.extent(300), 1 if flat else d.extent(8), 1 if flat else d.extent(8)
    m, most = d.extent(300), WORK_MOST
    if d.flag(15):
        n, c, h, w, m, most = d.integer(20, 150), d.integer(100, 500), 1, 1, d.integer(100, 500), MUCH
    while n * c * h * w * m > most:
        n, c, m = max(n // 2, 1), max(c // 2, 1), max(m // 2, 1)
    x, weight = made(d, (n, c, h, w), data), made(d, (c * h * w, m, 1, 1), weights)
    exact = x.f + weight.f
    names = ("left", "right") if kernel == "matmul" else ("in_", "weights")
    given = {names[0]: x, names[1]: weight, **bias_of(d, (1, m, 1, 1), weight, exact)}
    return given | {"out": out_of(d, data, exact), "relu": relu(d)}


def pool(d: Draw, kernel: str) -> Given:
    dtype = fixed(d)
    n, c, h_, w_ = any_shape(d, 6000)
    h, w = (window(d, size, d.flag(2)) for size in (h_, w_))
    if d.flag(4):  # whole features
        h, w = (h_, 1, 1, 0, 0), (w_, 1, 1, 0, 0)
    for_all = [size + one[3] + one[4] > (one[0] - 1) * one[2] and one[2] <= size for size, one in ((h_, h), (w_, w))]
    if not all(for_all):
        h, w = (1, h[1], 1, 0, 0), (1, w[1], 1, 0, 0)
    x = made(d, (n, c, h_, w_), dtype)
    f = d.pick((x.f, x.f, max(x.f - d.integer(0, 9), 0), min(x.f + d.integer(0, 9), 127)))
    given: Given = {"in_": x, "out": Format(dtype, f), "kernel": (h[0], w[0]), **of_window(h, w, True)}
    if kernel == "maxpool":
        return given
    padding = given["padding"]
    counted = d.pick(((0, 0, 0, 0), padding, tuple(d.integer(0, side) for side in padding)))
    return given | {"exact": d.integer(0, 1), "count_padding": counted}


def one_to_one(d: Draw, kernel: str) -> Given:
    x = made(d, any_shape(d), fixed(d))
    if kernel == "relu":
        f = d.pick((x.f, max(x.f - d.integer(0, 9), 0), min(x.f + d.integer(0, 9), 127), d.frac_bits()))
        return {"in_": x, "out": Format(x.dtype, f), "relu": relu(d)}
    unit = 7 if x.dtype == "fx8" else 15
    return {"in_": x, "out": Format(x.dtype, unit), "lut": d.pick(("mli2_0", "mli1_1"))}


def looked_up(d: Draw, _: str) -> Given:
    x, out = made(d, any_shape(d), fixed(d)), Format(fixed(d), d.frac_bits())
    entries = 256 if x.dtype == "fx8" else d.pick((3, 513, 65536, 2 ** d.integer(1, 15) + 1))
    shape = d.pick(((1, 1, 1, entries), (1, entries, 1, 1), (entries, 1, 1, 1)))
    if entries % 64 == 0 and d.flag(2):
        shape = (1, 64, 2, entries // 128)
    return {"in_": x, "table": made(d, shape, out.dtype, out.f), "out": out}


def slopes(d: Draw, kernel: str) -> Given:
    x = made(d, any_shape(d), fixed(d))
    given: Given = {"in_": x, "out": Format(x.dtype, x.frac_bits)}
    shape = [1, 1, 1, 1]
    if kernel == "prelu":
        axis = d.integer(1, 3)
        given["axis"], shape[axis] = "nchw"[axis], x.values.shape[axis]
    return given | {"slope": made(d, tuple(shape), x.dtype)}


def groups_of(d: Draw, kernel: str) -> Given:
    dtype = "fx16" if kernel == "l2_normalize" else fixed(d)
    x = made(d, any_shape(d, 6000), dtype)
    given: Given = {"in_": x, "out": Format(dtype, 7 if dtype == "fx8" else 15)}
    if x.values.shape[0] > 1 or d.flag(2):
        given["axis"] = d.pick(("none", "c", "h", "w"))
    return given | ({"lut": d.pick(("mli2_0", "mli1_1"))} if kernel == "softmax" else {})


def spread(d: Draw, shape: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """A shape that goes with all of this one."""
    n, c, h, w = shape
    h, w = d.pick(((1, 1), (h, w)))
    return d.pick(((1, 1, 1, 1), (1, c, h, w), (n, 1, h, w), (n, c, h, w), (1, 1, h, w)))


def pair(d: Draw, kernel: str) -> Given:
    dtype, shape = fixed(d), any_shape(d)
    which = d.integer(0, 3)
    shapes = [shape, shape]
    if which > 1:
        shapes[which - 2] = spread(d, shape)
    a = made(d, shapes[0], dtype)
    same = kernel in ("eltwise_min", "eltwise_max")
    b = made(d, shapes[1], dtype, a.f if same else None)
    exact = {"eltwise_mul": a.f + b.f, "eltwise_div": max(a.f - b.f, 0) + d.integer(0, 20)}.get(kernel, max(a.f, b.f))
    return {"in1": a, "in2": b, "out": d.pick((Format(dtype, a.f), out_of(d, dtype, exact)))}


def multiply_add(d: Draw, _: str) -> Given:
    shape = any_shape(d)
    acc = made(d, shape, fixed(d))
    factors = [made(d, d.pick((shape, shape, spread(d, shape))), fixed(d)) for _ in range(2)]
    return {"in1": factors[0], "in2": factors[1], "acc": acc, "out": Format(acc.dtype, acc.frac_bits)}


def converted(d: Draw, _: str) -> Given:
    types = ("fx8", "fx16", "fp32", "int8", "uint8", "int16", "uint16", "int32", "uint32")
    x, to = made(d, any_shape(d, 2000), d.pick(types)), d.pick(types)
    fixed_point = to in ("fx8", "fx16")
    f = d.pick((min(max(x.f - d.integer(0, 12) + 4, 0), 127), d.frac_bits()))
    return {"in_": x, "out": Format(to, f if fixed_point else None)}


def reduction(d: Draw, _: str) -> Given:
    x = made(d, any_shape(d), fixed(d))
    given: Given = {"in_": x, "out": Format(x.dtype, d.pick((x.f, max(x.f - d.integer(0, 12), 0), d.frac_bits())))}
    axes = tuple(axis for axis in "nchw" if d.flag(2))
    return given | ({"axes": axes} if axes else {})


def best(d: Draw, _: str) -> Given:
    x = made(d, any_shape(d, 3000), d.pick(("fx8", "fx16", "int8", "uint8", "int16", "uint16", "int32", "uint32")))
    axis = d.pick(("none", "n", "c", "h", "w"))
    size = x.n if axis == "none" else x.n // x.values.shape["nchw".index(axis)]
    return {"in_": x, "out": Format("int32"), "axis": axis, "topk": d.integer(1, min(size, d.pick((1, 4, 40))))}


def any_type(d: Draw) -> str:
    return d.pick(("fx8", "fx16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "fp32"))


def permuted(d: Draw, _: str) -> Given:
    x = made(d, any_shape(d), any_type(d))
    left = list(range(d.pick((4, 3))))
    perm = tuple(left.pop(d.integer(0, len(left) - 1)) for _ in range(len(left)))
    return {"in_": x, "out": Format(x.dtype, x.frac_bits), "perm": perm}


def joined(d: Draw, _: str) -> Given:
    dtype, shape, axis = any_type(d), list(any_shape(d, 4000)), d.integer(0, 3)
    first = made(d, tuple(shape), dtype)
    parts, mixed = [first], dtype in ("fx8", "fx16") and d.flag(2)
    for _part in range(d.integer(0, 4)):
        shape[axis] = d.extent(9)
        form = near_to(d, first) if mixed else first
        parts.append(made(d, tuple(shape), form.dtype, form.frac_bits))
    return {"in_": parts, "out": near_to(d, first) if mixed else Format(dtype, first.frac_bits), "axis": "nchw"[axis]}


def padded(d: Draw, _: str) -> Given:
    x = made(d, any_shape(d, 4000), any_type(d))
    out = near_to(d, x) if x.dtype in ("fx8", "fx16") and d.flag(2) else Format(x.dtype, x.frac_bits)
    given: Given = {"in_": x, "out": out}
    given["padding"] = tuple(d.integer(0, d.pick((0, 2, 9))) for _ in range(4))
    low, high = RANGES.get(out.dtype, (-(2**24), 2**24))
    return given | ({"value": d.pick((0, 1, low, high))} if d.flag(2) else {})


def rnn_dense(d: Draw, _: str) -> Given:
    data, weights = d.pick(FIXED)
    n, m, inputs = d.extent(6), d.extent(100), d.integer(1, 4)
    xs = [made(d, (n, d.extent(60), 1, 1), data) for _ in range(inputs)]
    ws = [made(d, (x.values.shape[1], m, 1, 1), weights) for x in xs]
    exact = xs[0].f + ws[0].f
    given = {"in_": xs, "weights": ws, **bias_of(d, (1, m, 1, 1), ws[0], exact)}
    return given | {"out": out_of(d, data, exact)}


def least(shape: tuple[int, ...], dtype: str, frac_bits: int) -> Tensor:
    return Tensor(dtype, frac_bits, shape4(shape), np.full(shape, RANGES[dtype][0], np.int64))


def wrapping(d: Draw, kernel: str, given: Given) -> Given:
    """The same cell with formats that bring its accumulators out of range: of in by the bias, and that of the state, or
    the end of a common one, by 512 products of the least numbers or by f_prev_out above f_in."""
    old, x, prev = "weights" in given, given["in_"], given["prev_out"]
    k, m, t = x.values.shape[1], prev.values.shape[1], x.values.shape[0]
    f_x, f_w = d.integer(16, 30), d.integer(12, 30)
    f_h = max(f_x + d.pick((-9, 9, -1, 1, 25, 0)), 0)
    given = given | {"in_": dataclasses.replace(x, frac_bits=f_x), "prev_out": dataclasses.replace(prev, frac_bits=f_h)}
    w = dataclasses.replace(given["weights" if old else "weights_in"], frac_bits=f_w)
    given["weights" if old else "weights_in"] = w
    gates = w.values.shape[0]
    if d.flag(3) and given.get("mode") != "one_to_one":
        k, m, t = d.integer(1, 20), d.integer(512, 600), d.integer(1, 2)
        given |= {"in_": made(d, (t, k, 1, 1), "fx16", f_x), "prev_out": least((1, m, 1, 1), "fx16", f_h)}
        columns = {"weights": k + m} if old else {"weights_in": k, "weights_out": m}
        given |= {role: least((gates, m, 1, n), "fx16", f_w) for role, n in columns.items()}
        if kernel == "lstm_cell":
            c = given["cell_in"]
            given["cell_in"] = made(d, (1, m, 1, 1), "fx16", c.f)
            given["cell_out"] = Format("fx16", c.f)
        unit = kernel == "basic_rnn_cell" and given["act"] != "none"
        given["out"] = Format("fx16", 15 if unit else given["out"].f)
    given.pop("bias", None)
    if not d.flag(4):
        dtype = given["weights" if old else "weights_in"].dtype
        given["bias"] = made(d, (gates, m, 1, 1), dtype, d.integer(0, 6))
    return given


def cell(d: Draw, kernel: str) -> Given:
    given = any_cell(d, kernel)
    return wrapping(d, kernel, given) if d.flag(4) else given


def any_cell(d: Draw, kernel: str) -> Given:
    old = kernel == "basic_rnn_cell" or (kernel == "lstm_cell" and d.flag(2))
    data, weights = d.pick(FIXED if old else FIXED[1:])
    t, k, m = d.extent(7), d.extent(40), d.extent(40)
    mode = d.pick(("batch_to_batch", "batch_to_last", "one_to_one")) if old else None
    t = 1 if mode == "one_to_one" else t
    gates = {"lstm_cell": 4, "gru_cell": 3}.get(kernel) or (d.integer(1, 5) if mode == "one_to_one" else 1)
    x, prev = made(d, (t, k, 1, 1), data, d.integer(4, 14)), made(d, (1, m, 1, 1), data, d.integer(4, 15))
    given: Given = {"in_": x, "prev_out": prev}
    if old:
        given["weights"] = w = made(d, (gates, m, 1, k + m), weights, d.integer(2, 15))
    else:
        given["weights_in"] = w = made(d, (gates, m, 1, k), weights, d.integer(2, 15))
        given["weights_out"] = made(d, (gates, m, 1, m), weights)
        given |= {"direction": d.pick(("forward", "backward")), "results": d.pick(("all", "last"))}
    given |= bias_of(d, (gates, m, 1, 1), w, x.f + w.f)
    given["lut"] = d.pick(("mli2_0", "mli1_1"))
    unit = 7 if data == "fx8" else 15
    given["out"] = Format(data, d.pick((unit, d.integer(2, unit), d.integer(0, 30))))
    if kernel != "gru_cell":
        given["act"] = d.pick(("tanh", "none", "sigm"))
    if kernel == "lstm_cell":
        given["cell_in"] = c = made(d, (1, m, 1, 1), data, d.pick((d.integer(2, unit), d.integer(0, 30))))
        given |= {"cell_out": Format(data, c.f), "rules": "mli1_1" if old else "mli2_0"}
    if kernel == "basic_rnn_cell" and given["act"] != "none":
        given["out"] = Format(data, unit)
    return given | ({"mode": mode} if mode else {})


def packed(d: Draw, kernel: str) -> Given:
    name = kernel.removeprefix("packed_")
    constant = name.endswith("_c") or name == "c_sub"
    kind = {"c_sub": "sub"}.get(name, name.removesuffix("_c"))
    narrow, wide = ("int8", "uint8"), ("int16", "uint16")
    sources = {"mul": narrow, "mac": narrow, "arithmetic_shift": ("int16",), "logical_shift": wide}
    first = d.pick(sources.get(kind, INTEGERS))
    width = narrow if first in narrow else wide
    second = first if kind in ("min", "max") else d.pick(width)
    out = d.pick({"mac": wide, "min": width, "max": width}.get(kind, INTEGERS)) if "shift" not in kind else first
    shape = any_shape(d)
    given: Given = {"in1": made(d, shape, first), "out": Format(out)}
    if not constant:
        given["in2"] = made(d, shape, second)
        if "shift" in kind and d.flag(2):
            near = given["in2"].values % 40 - (20 if second == "int16" else 0)
            given["in2"] = dataclasses.replace(given["in2"], values=near)
    else:
        low, high = RANGES[second]
        given |= {"value": d.pick((0, d.integer(low, high), low, high)), "value_dtype": second}
        if "shift" in kind:
            given["value"] = d.integer(-20 if second == "int16" else 0, 20)
    if kind == "mac":
        given |= {"acc": made(d, shape, d.pick(wide)), "lshift": d.integer(0, d.pick((0, 8, 31)))}
    if kind in ("add", "sub", "mul", "mac"):
        given["rshift"] = d.integer(0, d.pick((0, 8, 31)))
    return given


Maker = Callable[[Draw, str], Given]
CASES: dict[str, Maker] = {
    **dict.fromkeys(("conv2d", "depthwise_conv2d", "group_conv2d", "transpose_conv2d"), convolution),
    **dict.fromkeys(("fully_connected", "matmul"), dense),
    **dict.fromkeys(("maxpool", "avepool"), pool),
    **dict.fromkeys(("relu", "sigmoid", "tanh"), one_to_one),
    **dict.fromkeys(("leaky_relu", "prelu"), slopes),
    "lut": looked_up,
    **dict.fromkeys(("softmax", "l2_normalize"), groups_of),
    **dict.fromkeys(("eltwise_add", "eltwise_sub", "eltwise_mul", "eltwise_div", "eltwise_min", "eltwise_max"), pair),
    **dict.fromkeys(("reduce_sum", "reduce_max"), reduction),
    **dict.fromkeys(("lstm_cell", "gru_cell", "basic_rnn_cell"), cell),
    **{name: packed for name in KERNELS if name.startswith("packed_")},
    "mac": multiply_add,
    "convert_tensor": converted,
    "argmax": best,
    "permute": permuted,
    "concat": joined,
    "pad2d": padded,
    "rnn_dense": rnn_dense,
}


# ---- where tensors lie ----


def place_of(d: Draw, shape: Shape, dtype: str, n_npus: int) -> Given:
    """Arguments of npumem.spec: a layout, a mode, a start NPU; strides with gaps."""
    n, c, h, w = shape
    place: Given = {"start_npu": d.integer(0, n_npus - 1) if d.flag(2) else 0}
    layout = d.pick(("aligned", "compact", "strided", "matrix"))
    packed_mode = "2ic" if dtype == "fp32" else {1: "4n", 2: "2n"}.get(BYTES[dtype], "plain")
    mode = d.pick(("plain", packed_mode))
    if layout == "matrix" and (h, w) != (1, 1):
        layout = "aligned"
    if layout == "strided":
        rows = -(-(place["start_npu"] + c) // n_npus)
        step_w = d.pick((1, 1, 2))
        step_h = w * step_w + d.pick((0, 0, 3))
        step_c = h * step_h + d.pick((0, 1, 32))
        place["stride"] = (step_c * rows + d.pick((0, 5)), step_c, step_h, step_w)
    return place | {"layout": layout, "mode": mode}


def margin_of(d: Draw, place: Given) -> Optional[tuple[Shape, Shape]]:
    """Of a view that is a slice: elements of its base before and after it, along each dimension."""
    if place["layout"] not in ("aligned", "compact") or not d.flag(4):
        return None
    before, after = ([d.integer(0, 2) for _ in range(4)] for _ in range(2))
    lanes = MODES[place["mode"]][0]
    before[0] *= lanes
    after[0] = 0 if lanes > 1 else after[0]
    return shape4(tuple(before)), shape4(tuple(after))


def drawn(d: Draw, kernel: str) -> Case:
    case = Case(kernel, CASES[kernel](d, kernel))
    if not kernel.startswith("packed_"):
        case.given["rounding"] = d.pick(ROUNDINGS)
    case.n_npus = d.pick((64, 4, 1))
    case.in_list = d.flag(2)
    case.in_group = d.flag(3)
    case.in_place = IN_PLACE.get(kernel, "") if d.flag(3) else ""
    for role, x in case.tensors():
        if isinstance(x, Tensor):
            put(d, case, role, x)
    return case


def put(d: Draw, case: Case, role: str, x: Tensor) -> None:
    """Chooses a place, and at times a view."""
    case.places[role] = place_of(d, shape4(x.values.shape), x.dtype, case.n_npus)
    margin = margin_of(d, case.places[role])
    if margin:
        case.margins[role] = margin
    elif case.places[role]["layout"] in ("aligned", "compact") and d.flag(6):
        case.reshaped.add(role)


def another(d: Draw, case: Case) -> Given:
    """A parameter more, of those that the kernel takes, or an argument less."""
    given = dict(case.given)
    name = d.pick(PARAMETERS[case.kernel])
    if name in given or d.flag(2):
        inputs = [word for word, value in given.items() if not isinstance(value, Format) or isinstance(value, Tensor)]
        del given[d.pick(inputs)]
    else:
        least, most, choices = VALUES[name]
        values = tuple(d.pick(choices) if choices else d.integer(0, 2) for _ in range(d.integer(least, most)))
        given[name] = values[0] if most == 1 else values
    return given


def spoilt(d: Draw, case: Case) -> Case:
    """One thing is changed, so that the call is likely to be refused: by the device as by the specification."""
    given = dict(case.given)
    word = d.pick(list(given))
    value: Any = given[word]
    if d.flag(5):
        return dataclasses.replace(case, given=another(d, case), in_place="", margins={}, places={}, reshaped=set())
    if isinstance(value, Tensor):
        change = d.integer(0, 2)
        if value.dtype == "fp32":
            value.values.reshape(-1)[-1] = np.nan
        elif change == 0:
            shape = list(value.values.shape)
            at = d.integer(0, 3)
            shape[at] += 1
            value = dataclasses.replace(value, values=np.resize(value.values, shape), shape=shape4(tuple(shape)))
        elif change == 1 and value.frac_bits is not None:
            value = dataclasses.replace(value, frac_bits=d.integer(0, 127))
        else:
            to = d.pick(("fx8", "fx16", "int8", "uint8", "int32"))
            clipped = np.clip(value.values, *RANGES[to]).astype(np.int64)
            value = dataclasses.replace(value, dtype=to, frac_bits=3 if to in ("fx8", "fx16") else None, values=clipped)
    elif isinstance(value, Format):
        to = d.pick(("fx8", "fx16", "int8", "uint8", "int32"))
        value = dataclasses.replace(value, dtype=to, frac_bits=3 if to in ("fx8", "fx16") else None)
    elif isinstance(value, tuple) and value and isinstance(value[0], int):
        at = d.integer(0, len(value) - 1)
        value = (*value[:at], d.integer(-1, 6), *value[at + 1 :])
    elif isinstance(value, int):
        value = d.pick((value + 1, value - 1, -1, 2**31, 40000))
    elif isinstance(value, str):
        value = d.pick(WORDS)
    else:
        return case
    given[word] = value
    return dataclasses.replace(case, given=given, in_place="", margins={}, places={}, reshaped=set())
