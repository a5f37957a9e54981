"""Convolutions and pools.

One spatial dimension is taken as two with H = 1. Weights are constants, in a format with which no sum wraps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from .. import moves
from ..floats.windows import Transposed, Window, conv
from ..formats import bias_frac, compensated, rounded, weight_frac
from ..lowering import Lowering, NoKernel, row
from ..model import Array, Node, Shape
from ..network import Held

POINTS_MAX = 6000  # of one sample, that weights are rounded with


def images(shape: Shape) -> Shape:
    """(N, C, H, W) of a value with one or two spatial dimensions."""
    if len(shape) not in (3, 4):
        raise NoKernel(f"it has {len(shape) - 2} spatial dimensions, and the kernels have two", "export a 2-D model")
    return tuple(shape) if len(shape) == 4 else (shape[0], shape[1], 1, shape[2])


def pair(values: Sequence[int], first: int) -> tuple[int, int]:
    return (int(values[0]), int(values[1])) if len(values) == 2 else (first, int(values[0]))


def sides(pads: Sequence[int]) -> list[int]:
    """top, bottom, left, right of ONNX's begins and ends."""
    return [pads[0], pads[2], pads[1], pads[3]] if len(pads) == 4 else [0, 0, pads[0], pads[1]]


def beyond(padding: Sequence[int], reach: Sequence[int]) -> bool:
    """Whether a window of this reach can lie wholly on the padding, or be cropped wholly."""
    return any(p >= r for p, r in zip(padding, (reach[0], reach[0], reach[1], reach[1])))


def padded(low: Lowering, x: Held, padding: Sequence[int], integer: int = 0) -> Held:
    n, c, h, w = x.shape
    y = low.net.tensor((n, c, h + padding[0] + padding[1], w + padding[2] + padding[3]), x.dtype, x.frac)
    more = {"value": integer} if integer else {}
    low.net.run("pad2d", in_=x, out=y, padding=list(padding), **more)
    return y


# ---- weights ----


def seen_windows(low: Lowering, node: Node, kernel: Sequence[int]) -> Array:
    """The inputs of every weight, over the samples: [C, points, taps]."""
    parts = []
    for run in low.samples.runs:
        x = run[node.inputs[0]]
        window = Window(node, x.shape[2:], kernel)
        v = np.moveaxis(window.taps(window.padded(x, 0.0)), 1, 0)
        v = v.reshape(len(v), -1, int(np.prod(kernel)))
        parts.append(v[:, :: max(1, v.shape[1] // POINTS_MAX)])
    return np.concatenate(parts, 1)


def rounded_weights(low: Lowering, node: Node, w: Array, dtype: str, frac: int) -> Array:
    """The weights that the format leaves; by option with the samples in view."""

    def quantize(values: Array) -> Array:
        return rounded(values, dtype, frac)

    if not low.options.by_samples or node.get("group", 1) not in (1, w.shape[0]) or node.get("affine", 0):
        return quantize(w)
    v = seen_windows(low, node, w.shape[2:])
    if node.get("group", 1) > 1:
        each = w.shape[0] // len(v)
        kept = [compensated(w[c].reshape(1, -1), v[c // each].T, quantize).reshape(w[c].shape) for c in range(len(w))]
        return np.stack(kept)
    seen = v.transpose(0, 2, 1).reshape(-1, v.shape[1])
    return compensated(w.reshape(len(w), -1), seen, quantize).reshape(w.shape)


def corrected(
    low: Lowering, node: Node, w: Array, b: Optional[Array], dtype: str, frac: int
) -> tuple[Array, Optional[Array]]:
    """Rounded weights, and the bias with the mean of what the rounding takes from each output."""
    q = rounded_weights(low, node, w, dtype, frac)
    if not low.options.correct:
        return q, b
    lost = (w - q).astype(np.float32)
    axes = (0, *range(2, w.ndim))
    mean = np.mean([conv(node, run[node.inputs[0]], lost).mean(axes) for run in low.samples.runs], 0)
    if b is None and not np.any(mean):
        return q, None
    return q, mean if b is None else b + mean


def bias_of(low: Lowering, b: Optional[Array], dtype: str, most: int) -> Optional[Held]:
    if b is None:
        return None
    return low.net.constant(b, (1, b.size, 1, 1), dtype, bias_frac(b, dtype, most), low.net.near + ".bias")


def data_of(low: Lowering, node: Node, shape: Shape, out: Held, weights: str) -> Held:
    """The first input in the type of the output; fx8 goes with fx8 weights as it is."""
    name, held = node.inputs[0], low.held.get(node.inputs[0])
    stays = held is not None and held.dtype == weights == "fx8"
    return low.value(name, shape, None if stays else out.dtype)


def relu_of(node: Node) -> Optional[str]:
    return node.relu if node.relu != "none" else None


@row("Conv")
def convolution(low: Lowering, node: Node) -> Held:
    w = low.parameter(node, 1, "weights")
    b = low.parameter(node, 2, "bias") if node.input(2) else None
    shape, groups = images(low.shape(node.inputs[0])), int(node.get("group", 1))
    y = low.out(node, images(low.shape(node.outputs[0])))
    dtype = low.formats.policy.weights(node) if y.dtype == "fx16" else "fx8"
    dtype = "fx16" if node.get("affine", 0) and y.dtype == "fx16" else dtype
    x = data_of(low, node, shape, y, dtype)
    window = Window(node, low.shape(node.inputs[0])[2:], w.shape[2:])
    kernel, reach, padding = pair(window.kernel, 1), pair(window.reach, 1), sides(window.pads)
    if beyond(padding, reach):
        x, padding = padded(low, x, padding), [0] * 4  # a window wholly on padding is refused
    frac = weight_frac(w, b, x.dtype, x.frac, dtype, low.formats.method)
    q, b = corrected(low, node, w, b, dtype, frac)
    q = q.reshape(*q.shape[:2], *kernel)
    deep = groups > 1 and groups == shape[1]
    q = q.reshape(1, -1, *kernel) if deep else q.transpose(1, 0, 2, 3)
    name = "depthwise_conv2d" if deep else "group_conv2d" if groups > 1 else "conv2d"
    low.net.run(
        name, in_=x, weights=low.net.constant(q, q.shape, dtype, frac, low.net.near + ".weights"),
        bias=bias_of(low, b, dtype, frac + x.frac), out=y, stride=pair(window.stride, 1), padding=padding,
        dilation=pair(window.dilation, 1), relu=relu_of(node), groups=groups if groups > 1 and not deep else None,
    )  # fmt: skip
    return y


@row("ConvTranspose")
def transposed_convolution(low: Lowering, node: Node) -> Held:
    """Dilation is zeros in the weights."""
    w = low.parameter(node, 1, "weights")
    b = low.parameter(node, 2, "bias") if node.input(2) else None
    shape, groups = images(low.shape(node.inputs[0])), int(node.get("group", 1))
    place = Transposed(node, low.shape(node.inputs[0])[2:], w.shape[2:])
    wide = np.zeros(w.shape[:2] + tuple((k - 1) * d + 1 for k, d in zip(w.shape[2:], place.dilation)), np.float32)
    wide[(...,) + tuple(slice(None, None, d) for d in place.dilation)] = w
    padding, kernel, more = sides(place.crop), pair(wide.shape[2:], 1), pair(place.extra, 0)
    if beyond(padding, kernel):
        raise NoKernel(f"it crops {padding}, and transpose_conv2d crops less than its kernel {list(kernel)}")
    y = low.out(node, images(low.shape(node.outputs[0])))
    dtype = low.formats.policy.weights(node) if y.dtype == "fx16" else "fx8"
    x = data_of(low, node, shape, y, dtype)
    wide = wide.reshape(groups, -1, w.shape[1], *kernel).swapaxes(0, 1).reshape(shape[1] // groups, -1, *kernel)
    frac = weight_frac(wide.swapaxes(0, 1), b, x.dtype, x.frac, dtype, low.formats.method)
    low.net.run(
        "transpose_conv2d", in_=x, weights=low.net.constant(wide, wide.shape, dtype, frac, low.net.near + ".weights"),
        bias=bias_of(low, b, dtype, frac + x.frac), out=y, stride=pair(place.stride, 1), padding=padding,
        output_padding=more if any(more) else None, relu=relu_of(node), groups=groups if groups > 1 else None,
    )  # fmt: skip
    return y


# ---- pools ----


def least(x: Held) -> int:
    return -128 if x.dtype == "fx8" else -32768


def pooled(low: Lowering, node: Node, x: Held, kernel_name: str, y: Held) -> Held:
    """A pool of the node's windows. A window that could lie wholly on padding is refused, or sees the least number."""
    window, n = Window(node, low.shape(node.inputs[0])[2:], node.get("kernel_shape")), len(node.get("kernel_shape"))
    padding = sides(window.pads[:n] + [p + e for p, e in zip(window.pads[n:], window.extra)])
    reach, dilation = pair(window.reach, 1), pair(window.dilation, 1)
    more: dict[str, Any] = {"exact": 1} if kernel_name == "avepool" else {}
    if node.get("count_include_pad", 0):
        more["count_padding"] = sides(window.pads)
    if dilation != (1, 1):
        more["dilation"] = dilation
    if beyond(padding, reach) or dilation[0] > x.shape[2] or dilation[1] > x.shape[3]:
        if kernel_name == "avepool":
            raise NoKernel("a window of avepool lies wholly on padding")
        x, padding = padded(low, x, padding, -128 if x.dtype == "fx8" else -32768), [0] * 4
    low.net.run(
        kernel_name, in_=x, out=y, kernel=pair(window.kernel, 1), stride=pair(window.stride, 1), padding=padding, **more
    )
    return y


@row("MaxPool")
def max_pool(low: Lowering, node: Node) -> Held:
    if len([name for name in node.outputs if name]) > 1:
        raise NoKernel("maxpool gives no indices", "export the model without them")
    x = low.value(node.inputs[0], images(low.shape(node.inputs[0])))
    return pooled(low, node, x, "maxpool", low.net.tensor(images(low.shape(node.outputs[0])), x.dtype, x.frac))


@row("AveragePool")
def average_pool(low: Lowering, node: Node) -> Held:
    x = low.value(node.inputs[0], images(low.shape(node.inputs[0])))
    y = low.net.tensor(images(low.shape(node.outputs[0])), x.dtype, low.formats.frac(node.outputs[0], x.dtype))
    return pooled(low, node, x, "avepool", y)


@row("GlobalMaxPool", "GlobalAveragePool")
def global_pool(low: Lowering, node: Node) -> Held:
    shape = low.shape(node.inputs[0])
    n, c, h, w = (shape[0], shape[1], 1, moves.size(shape[2:])) if len(shape) != 4 else shape
    x = low.value(node.inputs[0], (n, c, h, w))
    if node.op == "GlobalMaxPool":
        return low.kernel("maxpool", low.net.tensor((n, c, 1, 1), x.dtype, x.frac), in_=x, kernel=[h, w])
    y = low.net.tensor((n, c, 1, 1), x.dtype, low.formats.frac(node.outputs[0], x.dtype))
    return low.kernel("avepool", y, in_=x, kernel=[h, w], exact=1)


def affine(low: Lowering, x: Held, y: Held, k: Array, shift: Array) -> Held:
    """x * k + shift, one number for each channel: a depthwise convolution of 1 x 1."""
    w = k.reshape(1, -1, 1, 1)
    frac = weight_frac(k.reshape(-1, 1), shift, x.dtype, x.frac, x.dtype, low.formats.method)
    weights = low.net.constant(w, w.shape, x.dtype, frac)
    low.net.run("depthwise_conv2d", in_=x, weights=weights, bias=bias_of(low, shift, x.dtype, frac + x.frac), out=y)
    return y
