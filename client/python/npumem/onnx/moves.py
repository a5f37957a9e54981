"""Elements in another order or shape: reshapes, permutations, repetitions, selections.

Every value has its elements in ONNX's order, whatever (N, C, H, W) holds it. A tensor with one channel ("flat") takes
any shape of one channel as a view; other changes of C are one permute each way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import numpy as np

from .model import ImportRefused, Shape
from .network import Held, Network

CONCAT_MAX = 39  # inputs of one concat
PARTS_MAX = 4096  # inputs in all


def size(shape: Sequence[int]) -> int:
    return int(np.prod([int(extent) for extent in shape], dtype=np.int64))


def physical(shape: Shape) -> Shape:
    """The natural (N, C, H, W) of a value."""
    if len(shape) > 4:
        return (1, 1, 1, size(shape))
    return {0: (1, 1, 1, 1), 1: (1, *shape, 1, 1), 2: (*shape, 1, 1), 3: (1, *shape), 4: tuple(shape)}[len(shape)]


def permuted(net: Network, x: Held, perm: Sequence[int]) -> Held:
    y = net.tensor([x.shape[p] for p in perm], x.dtype, x.frac)
    net.run("permute", in_=x, out=y, perm=list(perm))
    return y


def copied(net: Network, x: Held) -> Held:
    y = net.tensor(x.shape, x.dtype, x.frac)
    net.copy(y, x)
    return y


def flat(net: Network, x: Held) -> Held:
    """With one channel, elements in order."""
    n, c, h, w = x.shape
    if c == 1:
        return x if x.dense else copied(net, x)
    if n == 1:
        return permuted(net, x, (1, 0, 2, 3))
    if h == 1:
        return permuted(net, x, (0, 2, 1, 3))
    if w == 1:
        return permuted(net, x, (0, 3, 1, 2))
    x = x if x.dense else copied(net, x)
    return permuted(net, net.shaped(x, (n, c, h * w, 1)), (0, 3, 1, 2))


def reshaped(net: Network, x: Held, shape: Sequence[int]) -> Held:
    """The same elements, in order, in another (N, C, H, W)."""
    n, c, h, w = (int(extent) for extent in shape)
    if (n, c, h, w) == x.shape:
        return x
    if x.dense and c == x.shape[1] and (c == 1 or n == x.shape[0]):
        return net.shaped(x, (n, c, h, w))
    if x.shape[0] == 1 and x.shape[2] == 1 and (n, h, w) == (x.shape[1], 1, 1):  # rows that were channels
        return permuted(net, x, (1, 3, 2, 0))
    if x.shape[2] == x.shape[3] == 1 and (n, c, h) == (1, x.shape[0], 1):
        return permuted(net, x, (3, 0, 2, 1))
    x = flat(net, x)
    if c == 1:
        return net.shaped(x, (n, 1, h, w))
    y = permuted(net, net.shaped(x, (n, 1, c, h * w)), (0, 2, 3, 1))
    return net.shaped(y, (n, c, h, w))


def swapped(net: Network, x: Held, before: int, a: int, b: int, after: int) -> Held:
    """Of elements (before, a, b, after) those of (before, b, a, after), in any shape."""
    if a == 1 or b == 1:
        return x
    x = flat(net, x)
    if before == 1:
        return permuted(net, net.shaped(x, (a, 1, b, after)), (2, 1, 0, 3))
    if after == 1:
        return permuted(net, net.shaped(x, (before, 1, a, b)), (0, 1, 3, 2))
    return flat(net, permuted(net, reshaped(net, x, (before, a, b, after)), (0, 2, 1, 3)))


def transposed(net: Network, x: Held, shape: Shape, perm: Sequence[int]) -> Held:
    """A value of `shape` with its dimensions in another order. Any rank."""
    if len(shape) <= 4 and x.shape == (1,) * (4 - len(shape)) + tuple(shape):
        lead = 4 - len(shape)
        whole = [*range(lead), *[p + lead for p in perm]]
        ones = [i for i, p in enumerate(whole) if x.shape[p] == 1]
        if ones:  # with one channel the result takes any shape
            whole.insert(1, whole.pop(ones[0]))
        return permuted(net, x, whole)
    order, extents = list(range(len(shape))), [int(extent) for extent in shape]
    for to, axis in enumerate(perm):
        at = order.index(axis)
        if at == to:
            continue
        before, middle = size(extents[:to]), size(extents[to:at])
        if middle > 1 and extents[at] > 1:
            x = swapped(net, x, before, middle, extents[at], size(extents[at + 1 :]))
        order.insert(to, order.pop(at))
        extents.insert(to, extents.pop(at))
    return x


def joined(net: Network, xs: Sequence[Held], axis: int, form: Optional[tuple[str, int]] = None) -> Held:
    """Tensors one behind the other, in a type and frac_bits; None: the first one's, which all have. More than one
    concat takes go into slices of the result."""
    dtype, frac = form or (xs[0].dtype, xs[0].frac)
    if len(xs) == 1 and (xs[0].dtype, xs[0].frac) == (dtype, frac):
        return xs[0]
    if len(xs) > PARTS_MAX:
        raise ImportRefused(f"{len(xs)} parts would be joined, and {PARTS_MAX} are the most")
    shape = [int(sum(x.shape[axis] for x in xs)) if i == axis else extent for i, extent in enumerate(xs[0].shape)]
    y, at = net.tensor(shape, dtype, frac), 0
    for i in range(0, len(xs), CONCAT_MAX):
        some = list(xs[i : i + CONCAT_MAX])
        end = at + sum(x.shape[axis] for x in some)
        start, stop = [0] * 4, list(y.shape)
        start[axis], stop[axis] = at, end
        net.run("concat", in_=some, out=net.slice(y, start, stop), axis="nchw"[axis])
        at = end
    return y


def widened(net: Network, x: Held, shape: Sequence[int]) -> Held:
    """Repeated along dimensions of extent 1, or of a divisor of the new extent."""
    for axis, want in enumerate(int(extent) for extent in shape):
        have = x.shape[axis]
        while have != want and want % have == 0:
            times = min(want // have, CONCAT_MAX)
            while (want // have) % times:
                times -= 1
            times = times if times > 1 else want // have
            x, have = joined(net, [x] * times, axis), have * times
        if have != want:
            raise ImportRefused(f"{list(x.shape)} does not broadcast to {list(shape)}")
    return x


def lines(net: Network, x: Held, shape: Shape, axis: int) -> Held:
    """The value as (outer, 1, extent, inner): lines along an axis are those along H."""
    return reshaped(net, x, (size(shape[:axis]), 1, shape[axis], size(shape[axis + 1 :])))


def first_dim(rank: int) -> int:
    """Which of N, C, H, W is the first dimension of a value in its natural form."""
    return {0: 0, 1: 1, 2: 0, 3: 1, 4: 0}[rank]


def along(net: Network, x: Held, shape: Shape, axis: int) -> tuple[Held, int]:
    """The value in a form that has an axis of its own, and which of N, C, H, W that is: its natural form, which leaves
    channels on their NPUs, or else lines."""
    if len(shape) <= 4 and x.shape == physical(shape):
        return x, first_dim(len(shape)) + axis
    return lines(net, x, shape, axis), 2


def picked(net: Network, x: Held, indices: Sequence[int], axis: int = 2) -> Held:
    """The elements at these indices along an axis, in their order. Neighbours are one slice."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and runs[-1][1] == index:
            runs[-1][1] += 1
        else:
            runs.append([index, index + 1])
    parts = []
    for begin, end in runs:
        start, stop = [0] * 4, list(x.shape)
        start[axis], stop[axis] = begin, end
        parts.append(net.slice(x, start, stop))
    return joined(net, parts, axis)
