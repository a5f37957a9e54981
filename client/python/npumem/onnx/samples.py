"""Arrays that a user gives, as one input each: samples lie along the first axis."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

import numpy as np

from .model import Array, ImportRefused, Shape

Given = Union[Array, Mapping[str, Array]]


def feeds_of(declared: Mapping[str, Shape], given: Given) -> list[dict[str, Array]]:
    """The samples, one dictionary each, for inputs of these shapes."""
    constant = "; an input that no sample changes is given by --constant NAME=FILE.npy"
    names = list(declared)
    arrays = dict(given) if isinstance(given, Mapping) else {}
    if not isinstance(given, Mapping):
        if len(names) != 1:
            raise ImportRefused(
                f"the model has the inputs {', '.join(names)}; give an array for each: --samples NAME=FILE.npy, "
                f"or one .npz with these names{constant}"
            )
        arrays = {names[0]: np.asarray(given)}
    unknown, missing = sorted(set(arrays) - set(names)), [n for n in names if n not in arrays]
    if unknown or missing:
        wrong = f"there is no input {unknown[0]}" if unknown else f"samples of input {missing[0]} are missing"
        raise ImportRefused(f"{wrong}; the model has {', '.join(names)}{constant if missing else ''}")
    cut = {name: separate(name, arrays[name], declared[name]) for name in names}
    counts = {name: len(parts) for name, parts in cut.items()}
    if len(set(counts.values())) > 1:
        raise ImportRefused(f"the inputs have different numbers of samples: {counts}")
    return [{name: parts[i] for name, parts in cut.items()} for i in range(min(counts.values(), default=0))]


def whole(feeds: list[dict[str, Array]], kinds: Mapping[str, str]) -> list[dict[str, Array]]:
    """The samples, with the inputs that have whole numbers in their own types."""
    made = [{name: v.astype(kinds.get(name, "float32")) for name, v in one.items()} for one in feeds]
    for name, kind in kinds.items():
        if any((one[name] != before[name]).any() for one, before in zip(made, feeds)):
            raise ImportRefused(f"samples of {name} have numbers that {kind} has not, and the input is {kind}")
    return made


def in_order(values: Array) -> Array:
    """As npumemctl reads a file: float32, in C's order."""
    return np.ascontiguousarray(values, np.float32).reshape(values.shape)


def separate(name: str, array: Array, shape: Shape) -> list[Array]:
    """An array with samples along its first axis, one input each."""
    values = np.asarray(array)
    if values.dtype.kind not in "fiub":
        raise ImportRefused(f"samples of {name} are {values.dtype}, and must be numbers")
    values = in_order(values)
    if not np.isfinite(values).all():
        raise ImportRefused(f"samples of {name} have an infinity or a NaN")
    if values.shape == shape:
        return [values]
    if values.ndim == len(shape) + 1 and values.shape[1:] == shape:
        return list(values)
    if shape and values.ndim == len(shape) and values.shape[1:] == shape[1:] and len(values) % max(shape[0], 1) == 0:
        return list(values.reshape(-1, *shape))
    raise ImportRefused(
        f"samples of {name} are {list(values.shape)}, but the input is {list(shape)}; samples lie along the first axis"
    )
