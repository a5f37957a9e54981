"""The local memory of an NPU array, as a client of npumemd.

    import npumem, numpy as np

    with npumem.spawn() as dev:                       # or npumem.connect()
        x = dev.alloc("x", np.random.randn(1, 8, 16, 16), dtype="fx8", frac_bits=4)
        y = dev.alloc("y", shape=x.shape, dtype="fx8", frac_bits=4)
        done = dev.run("relu", in_=x, out=y, relu="gen")
        y.read(real=True)                             # float32, [1, 8, 16, 16]

Arrays have the shape (N, C, H, W), or (rows, cols) of a matrix. What the daemon refuses is an npumem.Refused, with
`status`, `message` and `fields`; what is wrong with a call itself is a ValueError or TypeError, and was not sent.
npumem.kernels has the kernels; dev.ask sends any other request of the protocol (npumem.pb)."""

from importlib import import_module as _import_module

for _package in ("google.protobuf", "numpy"):
    try:
        _import_module(_package)
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"npumem needs {_package}, which this Python has not: apt-get install python3-protobuf python3-numpy, and run "
            "/usr/bin/python3",
            name=missing.name,
        ) from None

from . import npumem_pb2 as pb
from ._build import VERSION as __version__
from .address import connect, spawn
from .batch import Batch, Kept, Read
from .device import Device, Region
from .errors import DeadlineExceeded, DeviceWarning, Refused, Status, Unavailable
from .formats import dequantize, quantize, quantize_counted
from .kernel import Kernel, kernels
from .operations import Costs, Destroyed, Done, spec
from .tensor import Tensor
from .wire import Pending

__all__ = [
    "Batch",
    "Kept",
    "DeadlineExceeded",
    "Destroyed",
    "Device",
    "DeviceWarning",
    "Costs",
    "Done",
    "Kernel",
    "Pending",
    "Read",
    "Refused",
    "Region",
    "Status",
    "Tensor",
    "Unavailable",
    "__version__",
    "connect",
    "dequantize",
    "kernels",
    "pb",
    "quantize",
    "quantize_counted",
    "spawn",
    "spec",
]
