"""Functions of one element, which the kernel lut does by a table, in NumPy."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from ..model import Array, Node


def of_each(function: Callable[[Array], Any]) -> Callable[..., Any]:
    """Of an operator without attributes."""
    return lambda node, x: function(x)


ERF: Any = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    return np.asarray(ERF(x), x.dtype)


def softplus(x: Array) -> Array:
    return np.log1p(np.exp(-np.abs(x))) + np.maximum(x, 0)


def elu(node: Node, x: Array) -> Array:
    return np.where(x < 0, node.get("alpha", 1.0) * np.expm1(np.minimum(x, 0)), x)


def selu(node: Node, x: Array) -> Array:
    alpha, gamma = node.get("alpha", 1.6732632), node.get("gamma", 1.0507010)
    return gamma * np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)


def celu(node: Node, x: Array) -> Array:
    alpha = node.get("alpha", 1.0)
    return np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(np.minimum(x, 0) / alpha))


def hard_sigmoid(node: Node, x: Array) -> Array:
    return np.clip(node.get("alpha", 0.2) * x + node.get("beta", 0.5), 0, 1)


def gelu(node: Node, x: Array) -> Array:
    if node.get("approximate", "none") == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def shrink(node: Node, x: Array) -> Array:
    limit, bias = node.get("lambd", 0.5), node.get("bias", 0.0)
    return np.where(x < -limit, x + bias, np.where(x > limit, x - bias, 0)).astype(x.dtype)


FUNCTIONS: dict[str, Any] = {
    "Acos": of_each(np.arccos), "Acosh": of_each(np.arccosh), "Asin": of_each(np.arcsin),
    "Asinh": of_each(np.arcsinh), "Atan": of_each(np.arctan), "Atanh": of_each(np.arctanh), "Ceil": of_each(np.ceil),
    "Celu": celu, "Cos": of_each(np.cos), "Cosh": of_each(np.cosh), "Elu": elu, "Erf": of_each(erf),
    "Exp": of_each(np.exp), "Floor": of_each(np.floor), "Gelu": gelu, "HardSigmoid": hard_sigmoid,
    "HardSwish": lambda node, x: x * np.clip(x / 6 + 0.5, 0, 1), "Log": of_each(np.log),
    "Mish": lambda node, x: x * np.tanh(softplus(x)), "Reciprocal": lambda node, x: 1 / x, "Round": of_each(np.rint),
    "Selu": selu, "Shrink": shrink, "Sign": of_each(np.sign), "Sin": of_each(np.sin), "Sinh": of_each(np.sinh),
    "Softplus": of_each(softplus), "Softsign": lambda node, x: x / (1 + np.abs(x)), "Sqrt": of_each(np.sqrt),
    "Tan": of_each(np.tan), "ThresholdedRelu": lambda node, x: np.where(x > node.get("alpha", 1.0), x, 0),
}  # fmt: skip
