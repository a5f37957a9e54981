"""ONNX models as networks of npumem.

    import npumem.onnx, numpy as np

    imported = npumem.onnx.load("model.onnx", np.load("samples.npy"), dtype="fx16")
    imported.write("model")                           # model/network.json, arrays, report.txt
    print(imported.report["outputs"])

It needs the package onnx, of Debian's python3-onnx; the rest of npumem does not."""

try:
    import onnx as _onnx
except ImportError as problem:
    raise ImportError("npumem.onnx needs the package onnx: apt-get install python3-onnx") from problem

from .importing import Imported, load
from .model import ImportRefused

assert _onnx

__all__ = ["ImportRefused", "Imported", "load"]
