"""Element types, and conversion to fixed point and back: fx = round(real * 2**frac_bits), real = fx / 2**frac_bits."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from . import npumem_pb2 as pb

Array = npt.NDArray[Any]

# The containers of the element types on the wire: little-endian.
CONTAINERS: dict[str, np.dtype[Any]] = {
    "int8": np.dtype("<i1"),
    "uint8": np.dtype("<u1"),
    "int16": np.dtype("<i2"),
    "uint16": np.dtype("<u2"),
    "int32": np.dtype("<i4"),
    "uint32": np.dtype("<u4"),
    "fp32": np.dtype("<f4"),
    "fx8": np.dtype("<i1"),
    "fx16": np.dtype("<i2"),
}
FIXED = ("fx8", "fx16")
ROUNDINGS = ("convergent", "up", "nearest")


def dtype_number(name: str) -> int:
    """The protocol's number of "fx8"."""
    if name not in CONTAINERS:
        raise ValueError(f"there is no dtype {name!r}; there are {', '.join(CONTAINERS)}")
    return int(pb.Dtype.Value(name.upper()))


def dtype_name(number: int) -> str:
    return str(pb.Dtype.Name(number)).lower()


def dtype_of(array: Array) -> str:
    """The first element type whose container is the array's."""
    for name, container in CONTAINERS.items():
        if array.dtype.newbyteorder("<") == container:
            return name
    raise ValueError(f"an array of {array.dtype} needs a dtype: {', '.join(CONTAINERS)}")


def reals(array: npt.ArrayLike) -> Array:
    """As float64, which holds every value exactly."""
    values = np.asarray(array)
    if values.dtype.kind not in "fiu" or values.dtype.itemsize > 8:
        raise TypeError(f"an array of {values.dtype} cannot be quantized; float16, float32, float64 or integers can")
    return values.astype(np.float64)


def quantize_counted(
    array: npt.ArrayLike, dtype: str, frac_bits: int, rounding: str = "convergent"
) -> tuple[Array, int]:
    """As quantize; returns also the number of values that were saturated."""
    if dtype not in FIXED:
        raise ValueError(f"{dtype!r} is not fixed point; fx8 and fx16 are")
    if rounding not in ROUNDINGS:
        raise ValueError(f"there is no rounding {rounding!r}; there are {', '.join(ROUNDINGS)}")
    container = CONTAINERS[dtype]
    low, high = int(np.iinfo(container).min), int(np.iinfo(container).max)
    values = reals(array)
    if np.isnan(values).any():
        raise ValueError(f"element {tuple(int(i) for i in np.argwhere(np.isnan(values))[0])} is a NaN")
    # A product with a power of two is exact. Values beyond the ends by more than 1 saturate, so they are clipped.
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.clip(np.ldexp(values, frac_bits), low - 2.0, high + 2.0)
    whole = np.trunc(scaled)
    rest = np.abs(scaled - whole)
    if rounding == "nearest":
        tie_away = np.ones(scaled.shape, bool)
    elif rounding == "up":
        tie_away = scaled > 0
    else:
        tie_away = whole % 2 != 0
    whole += np.where((rest > 0.5) | ((rest == 0.5) & tie_away), np.sign(scaled), 0.0)
    n_saturated = int(np.count_nonzero((whole < low) | (whole > high)))
    return np.clip(whole, low, high).astype(container), n_saturated


def quantize(array: npt.ArrayLike, dtype: str, frac_bits: int, rounding: str = "convergent") -> Array:
    """Converts real numbers to the integers of fx8 or fx16 (int8, int16), in the array's shape.

    Each is real * 2**frac_bits, rounded by `rounding` ("convergent": half to even; "up": half toward +infinity;
    "nearest": half away from zero), then saturated. A NaN is a ValueError."""
    return quantize_counted(array, dtype, frac_bits, rounding)[0]


def dequantize(array: npt.ArrayLike, frac_bits: int) -> npt.NDArray[np.float32]:
    """Converts integers of fx8 or fx16 (int8, int16) to float32, exactly, in the array's shape."""
    values = np.asarray(array)
    if values.dtype.kind != "i" or values.dtype.itemsize > 2:
        raise TypeError(f"an array of {values.dtype} is not of fx8 (int8) or fx16 (int16)")
    return np.ldexp(values.astype(np.float32), -frac_bits)


def shape4(shape: tuple[int, ...]) -> tuple[int, ...]:
    """(N, C, H, W) of an array's shape: (C,) is a bias [1,C,1,1], (K, M) a weight [K,M,1,1], (C, H, W) one image."""
    if len(shape) == 1:
        return (1, shape[0], 1, 1)
    if len(shape) == 2:
        return (*shape, 1, 1)
    if len(shape) == 3:
        return (1, *shape)
    if len(shape) == 4:
        return shape
    raise ValueError(f"a tensor has the dimensions N, C, H, W; {list(shape)} has {len(shape)}")


def contained(array: npt.ArrayLike, dtype: str, frac_bits: Optional[int], rounding: str) -> tuple[Array, int]:
    """An array's elements in the container of `dtype`, and how many were saturated. An array of that container is not
    copied. Floats are quantized for fx8 and fx16; integers are the container's, and must be in its range."""
    values, container = np.asarray(array), CONTAINERS[dtype]
    if values.dtype == container:
        return values, 0
    if values.dtype.kind == "f" and dtype in FIXED:
        return quantize_counted(values, dtype, frac_bits or 0, rounding)
    if values.dtype.kind in "fiu" and dtype == "fp32":
        with np.errstate(over="ignore"):
            return values.astype(container), 0
    if values.dtype.kind not in "iu":
        raise TypeError(f"an array of {values.dtype} does not become {dtype} without being told how")
    if values.size:
        ends, least, most = np.iinfo(container), int(values.min()), int(values.max())
        if least < ends.min or most > ends.max:
            raise ValueError(f"the integers {least} to {most} do not fit {dtype}, {ends.min} to {ends.max}")
    return values.astype(container), 0
