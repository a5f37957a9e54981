"""Tensors: integers with a format. The refusals that several kernels share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from .integers import FIXED, RANGES, Array, divided, rounded, saturated

Shape = tuple[int, int, int, int]
FRAC_BITS_MAX = 127
PARAMETER_MAX = 2**31 - 1
PRODUCTS_MAX = 2**32


class Refused(ValueError):
    """The device would refuse the call. Nothing is written."""


def need(holds: bool, text: str) -> None:
    if not holds:
        raise Refused(text)


def need_range(name: str, value: int, low: int, high: int) -> None:
    need(low <= value <= high, f"{name} is {value}, but must be {low} to {high}")


def shape4(shape: tuple[int, ...]) -> Shape:
    """(C,) is [1,C,1,1], (K, M) is [K,M,1,1], (C, H, W) is [1,C,H,W]."""
    n = len(shape)
    need(n <= 4, f"a tensor has the dimensions N, C, H, W; {list(shape)} has {n}")
    n_, c, h, w = {0: (1, 1, 1, 1), 1: (1, *shape, 1, 1), 2: (*shape, 1, 1), 3: (1, *shape), 4: shape}[n]
    return n_, c, h, w


@dataclass(frozen=True, eq=False)
class Format:
    """An element type, with frac_bits for fx8 and fx16: a real number is integer / 2^frac_bits. `shape`, if it is
    given, is the shape that the output must have."""

    dtype: str
    frac_bits: Optional[int] = None
    shape: Optional[Shape] = None

    def __post_init__(self) -> None:
        need(self.dtype in RANGES or self.dtype == "fp32", f"there is no element type {self.dtype!r}")
        if self.dtype in FIXED:
            need(self.frac_bits is not None, f"{self.dtype} needs frac_bits, 0 to {FRAC_BITS_MAX}")
            need_range("frac_bits", self.f, 0, FRAC_BITS_MAX)
        else:
            need(self.frac_bits is None, f"{self.dtype} has no frac_bits")

    @property
    def f(self) -> int:
        """frac_bits; 0 for a type that has none."""
        return self.frac_bits or 0


@dataclass(frozen=True, eq=False)
class Tensor(Format):
    """A format with elements: values is an array [N,C,H,W] of int64, for fp32 of float32."""

    values: Array = field(default_factory=lambda: np.zeros((1, 1, 1, 1), np.int64))

    @property
    def n(self) -> int:
        return int(self.values.size)

    def __repr__(self) -> str:
        f = "" if self.frac_bits is None else f", frac_bits {self.frac_bits}"
        return f"<{self.dtype}{f} {list(self.values.shape)}: {self.values.reshape(-1)[:16].tolist()}>"


def made(values: Array, like: Format) -> Tensor:
    """A kernel's output, in the format that was asked for."""
    shape = shape4(values.shape)
    need(like.shape is None or like.shape == shape, f"out has shape {like.shape}, but must have {shape}")
    return Tensor(like.dtype, like.frac_bits, shape, values)


def tensor(
    array: npt.ArrayLike, dtype: Optional[str] = None, frac_bits: Optional[int] = None, rounding: str = "convergent"
) -> Tensor:
    """Makes a tensor of an array. Integers are the container's, and must be in its range. Floats become fx8 or fx16 as
    round(x * 2^frac_bits), saturated; for fp32 they stay. Without dtype, an array of int8 becomes int8, and so on."""
    values = np.asarray(array)
    if dtype is None:
        dtype = "fp32" if values.dtype.kind == "f" else str(values.dtype)
    form = Format(dtype, frac_bits)
    if dtype == "fp32":
        values = values.astype(np.float32)
    elif values.dtype.kind == "f":
        need(dtype in FIXED, f"floats do not become {dtype}")
        values = saturated(quantized(values, form.f, rounding), dtype)
    else:
        values = values.astype(object)
        low, high = RANGES[dtype]
        need(bool(np.all((values >= low) & (values <= high))), f"integers do not fit {dtype}, {low} to {high}")
        values = values.astype(np.int64)
    values = values.reshape(shape4(values.shape))
    return Tensor(dtype, frac_bits, shape4(values.shape), values)


def fx8(array: npt.ArrayLike, frac_bits: int) -> Tensor:
    """tensor(array, "fx8", frac_bits)"""
    return tensor(array, "fx8", frac_bits)


def fx16(array: npt.ArrayLike, frac_bits: int) -> Tensor:
    """tensor(array, "fx16", frac_bits)"""
    return tensor(array, "fx16", frac_bits)


def quantized(values: Array, frac_bits: int, rounding: str) -> Array:
    """round(x * 2^frac_bits) of floats, exactly: every float is an integer times a power of two. Of an infinity, an
    integer that no container holds."""
    mantissas, exponents = np.frexp(np.where(np.isinf(values), np.sign(values), values).astype(np.float64))
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    result = np.zeros(values.shape, object)
    for at in np.ndindex(values.shape):
        shift = 53 - int(exponents[at]) - frac_bits
        far = 200 if np.isinf(values[at]) else 0
        result[at] = rounded(np.array([int(whole[at])], object), shift - far, rounding)[0]
    return result


def real(values: Array, frac_bits: int, rounding: str) -> Array:
    """integer / 2^frac_bits as float32. An integer of more than 24 bits is rounded to 24 by `rounding`."""
    most = int(abs(values).max()).bit_length()
    if most > 24:
        excess = np.array([max(0, abs(int(x)).bit_length() - 24) for x in values.reshape(-1)]).reshape(values.shape)
        return np.ldexp(divided(values, 1 << excess, rounding).astype(np.float32), excess - frac_bits)
    return np.ldexp(values.astype(np.float32), -frac_bits)


# ---- refusals of several kernels ----


def need_shape(name: str, x: Tensor, shape: tuple[int, ...]) -> None:
    need(x.values.shape == shape, f"{name} has shape {list(x.values.shape)}, but must have {list(shape)}")


def need_fixed(name: str, x: Format) -> None:
    need(x.dtype in FIXED, f"{name} is {x.dtype}, but must be fx8 or fx16")


def need_same_type(name: str, x: Format, other: Format) -> None:
    need(x.dtype == other.dtype, f"{name} is {x.dtype}, but must be {other.dtype}")


def need_same_format(name: str, x: Format, other: Format) -> None:
    need_same_type(name, x, other)
    need(x.f == other.f, f"{name} has {x.f} frac_bits, but must have {other.f}")


def need_weights(
    data: Tensor, weights: Tensor, bias: Optional[Tensor], out: Format, products: int, widens: bool = False
) -> None:
    """Types of data, weights, bias and out; the bias's format; the number of products of one output."""
    need_fixed("the data", data)
    mixed = data.dtype == "fx16" and weights.dtype == "fx8"
    need(weights.dtype == data.dtype or mixed, f"weights are {weights.dtype} with {data.dtype} data")
    if bias is not None:
        need_same_type("bias", bias, weights)
        most = data.f + weights.f
        need(bias.f <= most, f"bias has {bias.f} frac_bits, more than the {most} of data and weights")
    if not (widens and (data.dtype, out.dtype) == ("fx8", "fx16")):
        need_same_type("out", out, data)
    need(products <= PRODUCTS_MAX, f"an output would sum {products} products, more than {PRODUCTS_MAX}")


def only(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    need(value in choices, f"{name} is {value}, but must be one of {', '.join(map(str, choices))}")
