"""Where a tensor lies in local memory: the NPU and the byte of every element, and the kind of every byte.

An array has X NPUs of S bytes each. Address A lies on NPU floor(A / S) at offset A mod S. A tensor starts at NPU Q.
Its words are its elements, or in a storage mode packed groups of elements that follow each other along N:

    mode 4n: 4 elements of 8 bits     mode 2n: 2 elements of 16 bits     mode 2ic: 2 elements of fp32

With L elements in a word, element (n, c, h, w) is element n mod L of word (floor(n / L), c, h, w), which lies on

    NPU   (Q + c) mod X
    byte  (floor(n / L) * stride_n + row * stride_c + h * stride_h + w * stride_w) * word_bytes
          + (n mod L) * element_bytes,  with row = floor((Q + c) / X)

counted from the tensor's own offset, which is the same on all NPUs. Strides are in words. Rows of channels are counted
from NPU 0: on NPUs before Q row 0 stays empty. There are R = ceil((Q + C) / X) of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Optional

import numpy as np

from .integers import Array
from .tensor import Format, Shape, need, need_range

BYTES = {"int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "fp32": 4, "fx8": 1, "fx16": 2}
# A mode's elements in a word, and the bytes that an element must have.
MODES = {"plain": (1, 0), "4n": (4, 1), "2n": (2, 2), "2ic": (2, 4)}
LAYOUTS = ("aligned", "compact", "matrix", "strided")
KINDS = ("data", "dummy", "padding", "empty")
EXTENT_MAX = 2**31 - 1


class Dims(NamedTuple):
    n: int
    c: int
    h: int
    w: int


def ceil_div(a: int, b: int) -> int:
    return -(-a // b)


@dataclass(frozen=True, eq=False)
class Place:
    """A tensor's place. shape is [N,C,H,W], of a matrix [rows, ceil(cols / w), 1, w]; stride is in words. npu and byte
    are arrays of that shape: the NPU of each element, and its byte from the start of the tensor."""

    shape: Dims
    stride: Dims
    lanes: int  # elements in a word
    word_bytes: int
    start_npu: int
    n_npus: int
    channels_per_npu: int  # R
    bytes_per_npu: int
    align_bytes: int
    last_w: int  # elements of a row that the last channel holds: of a matrix the rest of its columns
    whole_blocks: bool  # features lie in blocks of stride_c words
    npu: Array  # of each element [n,c,h,w]
    byte: Array  # likewise, from the tensor's offset; -1 where a matrix has no such column

    @property
    def kinds(self) -> Array:
        """An array [NPU, byte] of indices into KINDS: 0 data (elements), 1 dummy (the rest of the last words along N), 2
        padding (all other bytes), 3 empty (blocks without a feature)."""
        kinds = np.full((self.n_npus, self.bytes_per_npu), 2, np.int8)
        words_n, rows = ceil_div(self.shape.n, self.lanes), self.channels_per_npu
        channels = {(q // self.n_npus, q % self.n_npus) for q in range(self.start_npu, self.start_npu + self.shape.c)}
        for row in range(rows):
            for npu in range(self.n_npus):
                if (row, npu) not in channels:
                    self._empty(kinds[npu], row, words_n)
        element = self.word_bytes // self.lanes
        for n in reversed(range(words_n * self.lanes)):
            is_dummy = int(n >= self.shape.n)
            of_n = min(n, self.shape.n - 1)
            shift = self._byte(n) - self._byte(of_n)
            for at in np.argwhere(self.byte[of_n] >= 0):
                c, h, w = at
                first = int(self.byte[of_n, c, h, w]) + shift
                kinds[self.npu[of_n, c, h, w], first : first + element] = is_dummy
        return kinds

    def _byte(self, n: int) -> int:
        return n // self.lanes * self.stride.n * self.word_bytes + n % self.lanes * (self.word_bytes // self.lanes)

    def _empty(self, bytes_: Array, row: int, words_n: int) -> None:
        """Marks the bytes of a row on an NPU that has no channel in it."""
        if self.whole_blocks:
            for n in range(words_n):
                first = (n * self.stride.n + row * self.stride.c) * self.word_bytes
                bytes_[first : first + self.stride.c * self.word_bytes] = 3
            return
        for n, h, w in np.ndindex(words_n, self.shape.h, self.shape.w):
            words = n * self.stride.n + row * self.stride.c + h * self.stride.h + w * self.stride.w
            bytes_[words * self.word_bytes : (words + 1) * self.word_bytes] = 3

    @property
    def blocks(self) -> dict[str, int]:
        """The number of bytes of each kind, over all NPUs."""
        counts = np.bincount(self.kinds.reshape(-1), minlength=4)
        return {kind: int(counts[i]) for i, kind in enumerate(KINDS)}


def matrix_width(
    rows: int, cols: int, start_npu: int, n_npus: int, lanes: int, word_bytes: int, unit: int
) -> int:
    """The columns per channel that a matrix has if w is not given: those with the least storage; of equal ones, one
    with no more channels than NPUs; of these the smallest."""

    def cost(w: int) -> tuple[int, bool, int]:
        channels = ceil_div(cols, w)
        block = ceil_div(w * word_bytes, unit) * unit
        return ceil_div(rows, lanes) * ceil_div(start_npu + channels, n_npus) * block, channels > n_npus, w

    return min(range(1, cols + 1), key=cost)


def place(
    shape: tuple[int, ...], dtype: str, frac_bits: Optional[int] = None, *, layout: str = "aligned",
    mode: str = "plain", w: int = 0, stride: Optional[tuple[int, int, int, int]] = None, start_npu: int = 0,
    n_npus: int = 64, npu_bytes: int = 524288, eu_bytes: int = 128,
) -> Place:  # fmt: skip
    """The place of a tensor on n_npus NPUs of npu_bytes. The arguments are those of npumem.spec. R is the number of block
    rows, ceil((start_npu + C) / n_npus). A word is one element, or L elements that follow each other along N: L = 4 in
    mode 4n, 2 in the modes 2n and 2ic, else 1.

        aligned  stride_w = 1, stride_h = W, stride_c = H * W words rounded up to a multiple of eu_bytes (128),
                 stride_n = stride_c * R; offset a multiple of eu_bytes, or of a larger word
        compact  stride_w = 1, stride_h = W, stride_c = H * W, stride_n = stride_c * R; offset a multiple of 4 bytes, or
                 of a larger word
        matrix   rows x cols is the tensor [rows, ceil(cols / w), 1, w] in the aligned layout; column j is element
                 j mod w of channel floor(j / w)
        strided  the strides of the caller, in words; offset a multiple of the word; if an extent is 1, a stride of 0
                 counts as 1

    bytes_per_npu is the number of bytes that each NPU reserves, a multiple of 4: ceil(N / L) * stride_n words; in the
    strided layout the words up to the last one. Refused: strides that put two elements on one byte; more bytes than an
    NPU has; a mode that does not take the type (4n: 8 bits, 2n: 16 bits, 2ic: fp32)."""
    need(layout in LAYOUTS, f"there is no layout {layout!r}")
    need(mode in MODES, f"there is no storage mode {mode!r}")
    Format(dtype, frac_bits)
    lanes, element_bytes = MODES[mode]
    fits = element_bytes in (0, BYTES[dtype]) and (mode != "2ic" or dtype == "fp32")
    need(fits, f"mode {mode} does not take {dtype}")
    need_range("start NPU", start_npu, 0, n_npus - 1)
    need(stride is None or not any(stride) or layout == "strided", "strides are for the strided layout")
    word_bytes = lanes * BYTES[dtype]
    unit = max(eu_bytes, word_bytes)
    for extent in shape:
        need_range("an extent", extent, 1, EXTENT_MAX)
    if layout == "matrix":
        rows, cols = shape
        need_range("w", w, 0, cols)
        w = w or matrix_width(rows, cols, start_npu, n_npus, lanes, word_bytes, unit)
        dims, last_w = Dims(rows, ceil_div(cols, w), 1, w), cols - (ceil_div(cols, w) - 1) * w
    else:
        need(w == 0, "w is for the matrix layout")
        dims, last_w = Dims(*shape), shape[3]
    r, words_n = ceil_div(start_npu + dims.c, n_npus), ceil_div(dims.n, lanes)
    if layout == "strided":
        extents = (words_n, r, dims.h, dims.w)
        given = stride or (0, 0, 0, 0)
        s = Dims(*(1 if g == 0 and e == 1 else g for g, e in zip(given, extents)))
        for one in s:
            need_range("a stride", one, 1, EXTENT_MAX)
        words, align = 1 + sum((e - 1) * one for e, one in zip(extents, s)), word_bytes
    else:
        feature = dims.h * dims.w
        block = feature if layout == "compact" else ceil_div(feature * word_bytes, unit) * unit // word_bytes
        s = Dims(block * r, block, dims.w, 1)
        words, align = words_n * s.n, max(4, word_bytes) if layout == "compact" else unit
    bytes_per_npu = ceil_div(words * word_bytes, 4) * 4
    need(bytes_per_npu <= npu_bytes, f"the tensor needs {bytes_per_npu} bytes on each NPU; an NPU has {npu_bytes}")
    npu, byte = located(dims, s, lanes, word_bytes, start_npu, n_npus, last_w)
    if layout == "strided":
        need(are_apart(npu, byte, word_bytes // lanes), "two elements lie at the same place")
    return Place(
        dims, s, lanes, word_bytes, start_npu, n_npus, r, bytes_per_npu, align, last_w, layout != "strided", npu, byte
    )


def located(
    dims: Dims, s: Dims, lanes: int, word_bytes: int, start_npu: int, n_npus: int, last_w: int
) -> tuple[Array, Array]:
    """NPU and byte of each element."""
    n, c, h, w = np.indices(dims)
    row = (start_npu + c) // n_npus
    words = n // lanes * s.n + row * s.c + h * s.h + w * s.w
    byte = words * word_bytes + n % lanes * (word_bytes // lanes)
    exists = (c < dims.c - 1) | (w < last_w)
    return (start_npu + c) % n_npus, np.where(exists, byte, -1)


def are_apart(npu: Array, byte: Array, element_bytes: int) -> bool:
    """Whether no two elements share a byte. All strides are whole words, so that elements share all bytes or none."""
    places: Any = np.unique(np.stack([npu.reshape(-1), byte.reshape(-1)]), axis=1)
    return bool(places.shape[1] == npu.size)


__all__ = ["KINDS", "Dims", "Place", "Shape", "place"]
