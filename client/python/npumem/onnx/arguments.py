"""What the commands of this package share: arrays from files, and failures of one line."""

from __future__ import annotations

import zipfile
from typing import Union

import numpy as np

from .model import Array


class Fail(Exception):
    """The command ends with this line."""


def array_of(path: str) -> Union[Array, dict[str, Array]]:
    """The array of an .npy file, or those of an .npz by their names."""
    try:
        loaded = np.load(path, allow_pickle=False)
        return {name: loaded[name] for name in loaded.files} if hasattr(loaded, "files") else np.asarray(loaded)
    except OSError as problem:
        raise Fail(f"{path}: {problem.strerror or problem}") from None
    except (ValueError, EOFError, zipfile.BadZipFile, MemoryError):
        raise Fail(f"{path}: the file is not an .npy or .npz with numbers") from None


def named(word: str) -> tuple[str, str]:
    """NAME=FILE; without a name it is ""."""
    name, found, path = word.partition("=")
    return (name, path) if found else ("", word)


def arrays_of(words: list[str], option: str) -> Union[Array, dict[str, Array]]:
    """The arrays of an option that may be repeated: one without a name, or each with its own."""
    together: dict[str, Array] = {}
    for word in words:
        name, path = named(word)
        loaded = array_of(path)
        if isinstance(loaded, dict):
            together.update({name: loaded[name]} if name in loaded else loaded)
        elif not name and len(words) == 1:
            return loaded
        elif not name:
            raise Fail(f"{option} {word}: several arrays need a name each: NAME=FILE")
        else:
            together[name] = loaded
    return together


def shape_of(word: str) -> tuple[str, tuple[int, ...]]:
    """NAME=1,3,240,320."""
    name, numbers = named(word)
    try:
        shape = tuple(int(number) for number in numbers.split(","))
    except ValueError:
        shape = ()
    if not name or not shape or min(shape) < 1:
        raise Fail(f"--shape {word}: it is NAME=1,3,240,320, with extents from 1 on")
    return name, shape
