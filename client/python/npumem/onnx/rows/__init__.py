"""The table of lowering: an operator of ONNX is a function with @row in one of these files."""

from . import convolutions, elementwise, functions, groups, products, recurrent, shapes

__all__ = ["convolutions", "elementwise", "functions", "groups", "products", "recurrent", "shapes"]
