"""Operators that compute: element by element, along axes, and products of matrices."""

from __future__ import annotations

from functools import reduce
from typing import Any, Callable, Optional

import numpy as np

from ..model import Array, ImportRefused, Node, Shape
from .recurrent import sigmoid
from .shapes import axes_of, axes_within


def reduce_axes(node: Node, rank: int, given: Optional[Array]) -> tuple[int, ...]:
    """The axes of a Reduce node, from 0 on; all where it names none."""
    axes = axes_of(node, given)
    if not axes:
        return () if node.get("noop_with_empty_axes", 0) else tuple(range(rank))
    return tuple(sorted(axes_within(rank, axes)))


def reduced(by: Callable[..., Array]) -> Callable[..., Array]:
    def run(node: Node, x: Array, axes: Optional[Array] = None) -> Array:
        where = reduce_axes(node, x.ndim, axes)
        return by(x, axis=where, keepdims=bool(node.get("keepdims", 1))).astype(x.dtype)

    return run


def softmax_axes(node: Node, rank: int) -> tuple[int, ...]:
    """The axes that a Softmax sums over: before opset 13 all from `axis` on."""
    axis = node.get("axis", 1 if node.opset < 13 else -1)
    axis += rank if axis < 0 else 0
    return tuple(range(axis, rank)) if node.opset < 13 else (axis,)


def softmax(node: Node, x: Array) -> Array:
    axes = softmax_axes(node, x.ndim)
    e = np.exp(x - x.max(axes, keepdims=True))
    return e / e.sum(axes, keepdims=True)


def log_softmax(node: Node, x: Array) -> Array:
    axes = softmax_axes(node, x.ndim)
    y = x - x.max(axes, keepdims=True)
    return y - np.log(np.exp(y).sum(axes, keepdims=True))


def loss_factors(
    node: Node, shape: Shape, labels: Array, weights: Optional[Array]
) -> tuple[Array, tuple[int, ...]]:
    """What a loss multiplies the logarithms of probabilities by, and the axes that it then sums over."""
    each = np.ones(shape[1], np.float32) if weights is None else weights
    wide = (1, -1) + (1,) * (len(shape) - 2)
    labels = np.expand_dims(labels, 1)
    factors = np.where(np.arange(shape[1]).reshape(wide) == labels, each.reshape(wide), 0)
    factors = np.where(labels == node.get("ignore_index", -1), 0, factors).astype(np.float32)
    how = node.get("reduction", "mean")
    if how == "mean":
        factors = factors / factors.sum()
    return -factors, (1,) if how == "none" else tuple(range(len(shape)))


def likelihood_loss(node: Node, x: Array, labels: Array, weights: Optional[Array] = None) -> Array:
    factors, axes = loss_factors(node, x.shape, labels, weights)
    return (x * factors).sum(axes)


def entropy_loss(node: Node, x: Array, labels: Array, weights: Optional[Array] = None) -> list[Array]:
    log = x - x.max(1, keepdims=True)
    log = log - np.log(np.exp(log).sum(1, keepdims=True))
    return [likelihood_loss(node, log, labels, weights), log][: len(node.outputs)]


def clip_ends(node: Node, low: Optional[Array] = None, high: Optional[Array] = None) -> tuple[float, float]:
    least, most = node.get("min") if low is None else low, node.get("max") if high is None else high
    return -np.inf if least is None else float(least), np.inf if most is None else float(most)


def clip(node: Node, x: Array, *ends: Optional[Array]) -> Array:
    return np.clip(x, *clip_ends(node, *ends)).astype(x.dtype)


def slope_for(slope: Array, shape: Shape) -> Array:
    """A slope of one number a channel, [C], beside [N,C,spatial]; any other as it is."""
    if slope.ndim == 1 and len(shape) > 2 and slope.size == shape[1] != shape[-1]:
        return slope.reshape(-1, *[1] * (len(shape) - 2))
    return slope


def prelu(node: Node, x: Array, slope: Array) -> Array:
    return np.where(x < 0, x * slope_for(slope, x.shape), x)


def gemm(node: Node, a: Array, b: Array, c: Optional[Array] = None) -> Array:
    a, b = a.T if node.get("transA", 0) else a, b.T if node.get("transB", 0) else b
    y = node.get("alpha", 1.0) * (a @ b)
    return y if c is None else y + node.get("beta", 1.0) * c


def layer_normalization(node: Node, x: Array, scale: Array, bias: Optional[Array] = None) -> list[Array]:
    axes = tuple(range(node.get("axis", -1) % x.ndim, x.ndim))
    mean = x.mean(axes, keepdims=True)
    inverse = 1 / np.sqrt(x.var(axes, keepdims=True) + node.get("epsilon", 1e-5))
    y = (x - mean) * inverse * scale
    return [y if bias is None else y + bias, mean, inverse][: max(1, len(node.outputs))]


def instance_normalization(node: Node, x: Array, scale: Array, bias: Array) -> Array:
    axes, wide = tuple(range(2, x.ndim)), (1, -1) + (1,) * (x.ndim - 2)
    centred = x - x.mean(axes, keepdims=True)
    y = centred / np.sqrt(x.var(axes, keepdims=True) + node.get("epsilon", 1e-5))
    return y * scale.reshape(wide) + bias.reshape(wide)


def mean_variance(node: Node, x: Array) -> Array:
    axes = tuple(node.get("axes", (0, 2, 3)))
    return (x - x.mean(axes, keepdims=True)) / x.std(axes, keepdims=True)


def lp_normalization(node: Node, x: Array) -> Array:
    return x / np.linalg.norm(x, node.get("p", 2), axis=node.get("axis", -1), keepdims=True)


def lrn(node: Node, x: Array) -> Array:
    size, total = node.get("size"), np.zeros_like(x)
    for c in range(x.shape[1]):
        low, high = max(0, c - (size - 1) // 2), min(x.shape[1], c + size // 2 + 1)
        total[:, c] = (x[:, low:high] ** 2).sum(1)
    return x / (node.get("bias", 1.0) + node.get("alpha", 1e-4) / size * total) ** node.get("beta", 0.75)


def divide(node: Node, x: Array, y: Array) -> Array:
    return x / y if x.dtype.kind == "f" else (x // y).astype(x.dtype)


def quantize_linear(node: Node, x: Array, scale: Array, zero: Optional[Array] = None) -> Array:
    kind = np.dtype(np.uint8) if zero is None else zero.dtype
    ends = np.iinfo(kind)
    offset: Any = 0 if zero is None else along(node, zero, x).astype(np.float64)
    return np.clip(np.rint(x / along(node, scale, x)) + offset, ends.min, ends.max).astype(kind)


def dequantize_linear(node: Node, x: Array, scale: Array, zero: Optional[Array] = None) -> Array:
    offset: Any = 0 if zero is None else along(node, zero, x).astype(np.float64)
    return ((x.astype(np.float64) - offset) * along(node, scale, x)).astype(np.float32)


def along(node: Node, values: Array, x: Array) -> Array:
    """A scale or zero point, one for all or one for each index of the axis."""
    if values.size == 1:
        return values.reshape(())
    axis = node.get("axis", 1) % x.ndim
    return values.reshape([-1 if i == axis else 1 for i in range(x.ndim)])


def quantized(node: Node, x: Array) -> Array:
    """What a pair of QuantizeLinear and DequantizeLinear in int8 leaves of a value."""
    unit = 2.0 ** node.get("frac_bits")
    return np.clip(np.rint(x * unit), -128, 127) / unit


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of an operator without attributes."""
    return lambda node, *inputs: function(*inputs)


def many(function: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    return lambda node, *inputs: reduce(function, inputs)


EVALUATE: dict[str, Any] = {
    "Abs": plain(np.abs), "Add": plain(np.add), "And": plain(np.logical_and), "Clip": clip,
    "DequantizeLinear": dequantize_linear, "Div": divide, "Equal": plain(np.equal), "Gemm": gemm,
    "GlobalAveragePool": lambda node, x: x.mean(tuple(range(2, x.ndim)), keepdims=True),
    "GlobalMaxPool": lambda node, x: x.max(tuple(range(2, x.ndim)), keepdims=True),
    "Greater": plain(np.greater), "InstanceNormalization": instance_normalization, "LRN": lrn,
    "LayerNormalization": layer_normalization,
    "LeakyRelu": lambda node, x: np.where(x < 0, x * node.get("alpha", 0.01), x), "Less": plain(np.less),
    "LogSoftmax": log_softmax, "LpNormalization": lp_normalization,
    "MatMul": plain(np.matmul), "Max": many(np.maximum), "Mean": lambda node, *x: many(np.add)(node, *x) / len(x),
    "MeanVarianceNormalization": mean_variance, "Min": many(np.minimum), "Mul": plain(np.multiply),
    "Neg": plain(np.negative), "NegativeLogLikelihoodLoss": likelihood_loss, "Not": plain(np.logical_not),
    "Or": plain(np.logical_or), "PRelu": prelu,
    "Pow": lambda node, x, y: np.power(x, y).astype(x.dtype), "QuantizeLinear": quantize_linear,
    "Quantized": quantized, "ReduceL1": reduced(lambda x, **k: np.abs(x).sum(**k)),
    "ReduceL2": reduced(lambda x, **k: np.sqrt((x * x).sum(**k))),
    "ReduceLogSum": reduced(lambda x, **k: np.log(x.sum(**k))),
    "ReduceLogSumExp": reduced(lambda x, **k: np.log(np.exp(x).sum(**k))), "ReduceMax": reduced(np.max),
    "ReduceMean": reduced(np.mean), "ReduceMin": reduced(np.min), "ReduceProd": reduced(np.prod),
    "ReduceSum": reduced(np.sum), "ReduceSumSquare": reduced(lambda x, **k: (x * x).sum(**k)),
    "Relu": lambda node, x: np.maximum(x, 0), "Sigmoid": plain(sigmoid), "Softmax": softmax,
    "SoftmaxCrossEntropyLoss": entropy_loss,
    "Sub": plain(np.subtract), "Sum": many(np.add), "Tanh": plain(np.tanh), "Where": plain(np.where),
}  # fmt: skip
