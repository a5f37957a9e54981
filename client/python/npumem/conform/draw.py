"""Random choices that can be made again, and made smaller: a case is a function of its list of choices, and each choice
is a number from 0 on, 0 being the simplest. Any list makes a case: a missing choice is 0, and one that
is too large is the largest."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any, Optional, TypeVar

import numpy as np

from ..reference.integers import RANGES, Array

T = TypeVar("T")
SEED_MAX = 2**20
STYLES = ("zeros", "least", "small", "uniform", "ends", "sparse", "halves")


class Draw:
    """Makes choices: anew, or those of `again` first."""

    def __init__(self, seed: Any, again: Optional[Sequence[int]] = None) -> None:
        self._random = random.Random(seed)
        self._again = again
        self.choices: list[int] = []

    def _choice(self, most: int) -> int:
        at = len(self.choices)
        if self._again is None:
            value = self._random.randint(0, most)
        else:
            value = min(self._again[at], most) if at < len(self._again) else 0
        self.choices.append(value)
        return value

    def integer(self, low: int, high: int) -> int:
        """Uniform in [low, high]; low is the simplest."""
        return low + self._choice(max(high - low, 0))

    def pick(self, options: Sequence[T]) -> T:
        """One of them; the first is the simplest."""
        return options[self._choice(len(options) - 1)]

    def extent(self, most: int) -> int:
        """1 to most, small ones more often."""
        limit = self.pick((1, 3, 8, max(most // 4, 1), most))
        return self.integer(1, min(limit, most))

    def frac_bits(self) -> int:
        """0 to 127: mostly as programs use them, at times anywhere."""
        return self.integer(0, self.pick((15, 15, 15, 30, 30, 127)))

    def flag(self, one_in: int) -> bool:
        return self.integer(0, one_in - 1) == one_in - 1

    def elements(self, shape: tuple[int, ...], dtype: str) -> Array:
        """The container's integers: in one of several styles."""
        style = self.pick(STYLES)
        source = np.random.default_rng(self.integer(0, SEED_MAX))
        low, high = RANGES[dtype]
        if style == "zeros":
            return np.zeros(shape, np.int64)
        if style == "ends":
            return source.choice(np.array([low, high, low + 1, high - 1, 0, 1]), shape)
        if style == "least":
            return np.full(shape, low, np.int64)
        values: Array = source.integers(low, high, shape, endpoint=True)
        if style == "small":
            values = np.clip(values, max(low, -1), 1) * (source.integers(0, 3, shape) + 1)
        if style == "sparse":
            values = values * (source.integers(0, 4, shape) == 0)
        if style == "halves":  # many ties
            values = values // 4 * 4
        return np.asarray(values)


def shrunk(choices: list[int], fails: Callable[[list[int]], bool], seconds: float) -> list[int]:
    """Fewer and smaller choices that still fail."""
    end = time.monotonic() + seconds
    changed = True

    def better(candidate: list[int]) -> bool:
        return time.monotonic() < end and candidate != choices and fails(candidate)

    while changed and time.monotonic() < end:
        changed = False
        for size in (16, 8, 4, 2, 1):
            for at in range(0, len(choices), size):
                candidate = choices[:at] + [0] * len(choices[at : at + size]) + choices[at + size :]
                if better(candidate):
                    choices, changed = candidate, True
        for at in range(len(choices)):
            for smaller in (choices[at] // 2, choices[at] - 1):
                candidate = [*choices[:at], max(smaller, 0), *choices[at + 1 :]]
                if choices[at] and better(candidate):
                    choices, changed = candidate, True
                    break
    return choices
