"""The specification of npumem: every kernel and every layout as NumPy code that can be read and run. It needs no
daemon.

    from npumem import reference
    from npumem.reference import Format, fx8

    result = reference.run("conv2d", in_=fx8(image, 5), weights=fx8(kernel, 7), out=Format("fx8", 4), stride=(2, 2))
    result.out.values, result.saturated, result.wrapped, result.macs

    reference.place((1, 70, 3, 5), "fx8", 4).npu[0, 64, 0, 0]   # where an element lies
    reference.network("net.json")                              # a network file, as npumemctl submit takes it
    python3 -m npumem.reference PATH…                          # golden vectors, as npumemctl conform takes them

Kernels by family: convolutions, dense, elementwise, groups, packed; each function has its formula and its words.
integers: rounding, saturation, accumulators. tables: the tables and how they are read. place: the layouts. numeric:
formats, and the range of an accumulator."""

from . import numeric
from .kernels import KERNELS, Result, described, run
from .network import Network, network
from .place import Place, place
from .tensor import Format, Refused, Tensor, fx8, fx16, tensor

__all__ = [
    "KERNELS",
    "Format",
    "Network",
    "Place",
    "Refused",
    "Result",
    "Tensor",
    "described",
    "fx16",
    "fx8",
    "network",
    "numeric",
    "place",
    "run",
    "tensor",
]
