"""A graph as operations of the device: each node by the row of its operator (rows/), each value once.

Invariant: `held` has every value that an operation made; a form of it in another shape or format is made once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np

from . import host, moves
from .formats import BITS, FRAC_BITS_MAX, Formats, best, fitting, largest
from .model import Array, Graph, ImportRefused, Node, Shape, printable
from .moves import physical
from .network import Held, Network, plain

Result = Union[Held, dict[str, Held]]
Row = Callable[["Lowering", Node], Result]
ROWS: dict[str, Row] = {}


class NoKernel(Exception):
    """A node, or a form of it, that no kernel does. `why` says what is missing, `remedy` what to do."""

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy or "replace it in the model, or run it on the host: --host"


def row(*operators: str) -> Callable[[Row], Row]:
    """Registers the function that lowers these operators."""

    def register(function: Row) -> Row:
        for operator in operators:
            assert operator not in ROWS, operator
            ROWS[operator] = function
        return function

    return register


@dataclass
class Options:
    """How weights are rounded. correct: the mean of what rounding adds goes into the bias. by_samples: weights are
    rounded with the samples in view. host: what no kernel does becomes a step on the host."""

    correct: bool = True
    by_samples: bool = False
    host: bool = False


class Lowering:
    """The state of one lowering, and what the rows use."""

    def __init__(self, graph: Graph, formats: Formats, net: Network, options: Options) -> None:
        self.graph, self.formats, self.net, self.options = graph, formats, net, options
        self.samples = formats.samples
        self.held: dict[str, Held] = {}
        self.files: dict[str, str] = {}  # of outputs
        self.hosted: dict[str, dict[str, Any]] = {}  # values that a step on the host makes, and the step
        self.why: dict[str, str] = {}  # by the name of a node on the host
        self.forms: dict[tuple[str, Shape, str, int], Held] = {}

    # ---- the whole ----

    def all(self) -> None:
        """Every node, and a read of each output."""
        for name in self.graph.inputs:
            if 0 in self.graph.shapes[name]:
                raise ImportRefused(f"input {name} has no elements, and a tensor has at least one")
            dtype = self.formats.dtype(name)
            held = self.net.declare(name, physical(self.graph.shapes[name]), dtype, self.formats.frac(name, dtype))
            self.net.tensors[held.name].update(file=f"{held.name}.npy", quantize=True)
            self.held[name] = held
        for node in self.graph.nodes:
            self.node(node)
        self.net.label = ""
        for name in self.graph.outputs:
            self.output(name)

    def node(self, node: Node) -> None:
        brought: list[str] = []
        before = len(self.net.operations), dict(self.forms)
        try:
            made = self.on_device(node, brought)
        except NoKernel as problem:
            if not self.options.host:
                raise ImportRefused(f"{node}: {problem.why}; {problem.remedy}") from None
            for name in brought:
                del self.held[name]
                self.hosted[name]["writes"].pop()
            del self.net.operations[before[0] :]
            self.forms = before[1]
            self.on_host(node, problem.why)
        except ImportRefused as problem:
            raise ImportRefused(str(problem) if str(problem).startswith("node ") else f"{node}: {problem}") from None
        else:
            self.held.update(made if isinstance(made, dict) else {node.outputs[0]: made})

    def on_device(self, node: Node, brought: list[str]) -> Result:
        """Adds the operations of a node. `brought` gets the inputs that came from the host for it."""
        self.check(node)
        for name in node.inputs:
            if name in self.hosted and name not in self.held:
                self.held[name] = host.bring(self, name)
                brought.append(name)
        self.net.label, self.net.near = printable(node.name), node.outputs[0]
        try:
            return ROWS[node.op](self, node)
        except (ValueError, IndexError) as problem:  # parameters that broadcast in floats, and in no kernel
            raise NoKernel(f"its inputs fit no kernel ({problem})", "export the model again") from None

    def on_host(self, node: Node, why: str) -> None:
        self.net.operations.append(host.step(self, node))
        self.hosted.update({name: self.net.operations[-1] for name in node.outputs if name in self.graph.shapes})
        self.why[node.name] = why

    def check(self, node: Node) -> None:
        if node.op not in ROWS:
            raise NoKernel(f"no kernel does {node.op}")
        stays = node.op in ("Identity", "Cast") and node.inputs[0] in self.hosted
        if stays and self.graph.kinds.get(node.outputs[0], "f") != "f":
            raise NoKernel("its integers come from the host, and stay there")
        for name in node.inputs:
            if name in self.hosted and not host.has_one_shape(self, name):
                raise NoKernel(f"the shape of {name} depends on the data, and a tensor has one shape")
        if node.op == "Div" and self.samples.runs[0][node.outputs[0]].dtype.kind in "iu":
            raise NoKernel("it divides integers, and a kernel does not cut the fraction")
        for name in [*node.inputs, *node.outputs]:
            if name and name not in self.graph.constants and 0 in self.graph.shapes.get(name, ()):
                raise NoKernel(f"{name} has no elements, and a tensor has at least one")

    def output(self, name: str) -> None:
        """The read of an output. Of a constant, and of what is read already, a tensor of its own."""
        self.net.near = name
        if name in self.graph.constants:
            value = self.graph.constants[name]
            if value.dtype.kind != "f":
                raise ImportRefused(
                    f"output {name} is a constant of {value.dtype}, and only numbers of fixed point are read"
                )
            self.held[name] = self.value(name, None, "fx16")
        if name not in self.held and name not in self.hosted:
            raise ImportRefused(
                f"output {name} is not made by any node; export the model for inference, not for training"
            )
        file, n = f"{plain(name)}.npy", 1
        while file in self.files.values():
            n += 1
            file = f"{plain(name)}.{n}.npy"
        self.files[name] = file
        if name not in self.hosted:
            self.net.read(self.held[name], file, self.graph.shapes.get(name, self.held[name].shape))

    # ---- values ----

    def shape(self, name: str) -> Shape:
        if name not in self.graph.shapes:
            raise NoKernel(f"there is no rule for its output {name}", "export the model without that output")
        return self.graph.shapes[name]

    def constant(self, name: str) -> Optional[Array]:
        return self.graph.constant(name)

    def parameter(self, node: Node, index: int, what: str) -> Array:
        """An input that must be a constant."""
        value = self.constant(node.input(index))
        if value is None:
            raise NoKernel(
                f"its {what} is computed, and a kernel takes only a constant",
                "export the model with a constant there, or run it on the host: --host",
            )
        return value

    def of(self, node: Node, index: int = 0) -> Held:
        """An input in any shape."""
        return self.value(node.inputs[index])

    def wide(self, node: Node) -> Held:
        """The first input as it is; in fx16 where the output is to be fx16."""
        return self.value(node.inputs[0], None, "fx16" if self.dtype(node) == "fx16" else None)

    def value(
        self, name: str, shape: Optional[Sequence[int]] = None, dtype: Optional[str] = None, frac: Optional[int] = None
    ) -> Held:
        """A value in a shape (N, C, H, W) and a format; None: as it is."""
        if name in self.graph.constants:
            v = self.graph.constants[name]
            kind = dtype or "fx16"
            wanted = self.const_frac(v, kind) if frac is None else frac
            return self.net.constant(v, shape or physical(v.shape), kind, wanted, name)
        x = self.held[name]
        wide = tuple(int(extent) for extent in shape or x.shape)
        if frac is None:
            frac = x.frac if dtype in (None, x.dtype) else self.formats.frac(name, dtype or x.dtype)
        key = (name, wide, dtype or x.dtype, frac)
        if key not in self.forms:
            self.forms[key] = self.converted(moves.reshaped(self.net, x, wide), key[2], frac)
        return self.forms[key]

    def converted(self, x: Held, dtype: str, frac: int) -> Held:
        if (x.dtype, x.frac) == (dtype, frac):
            return x
        y = self.net.tensor(x.shape, dtype, frac)
        self.net.run("convert_tensor", in_=x, out=y)
        return y

    def const_frac(self, values: Array, dtype: str) -> int:
        frac = min(best(values, dtype, self.formats.method), FRAC_BITS_MAX)
        if frac < 0:
            raise ImportRefused(
                f"a constant reaches {float(np.abs(values).max()):.4g}, more than {dtype} holds ({largest(dtype):.0f})"
            )
        return frac

    def scalar(self, value: float, dtype: str, frac: Optional[int] = None) -> Held:
        array = np.array([value], np.float64)
        return self.net.constant(array, (1, 1, 1, 1), dtype, self.const_frac(array, dtype) if frac is None else frac)

    # ---- results ----

    def dtype(self, node: Node, index: int = 0) -> str:
        return self.formats.dtype(node.outputs[index])

    def out(self, node: Node, shape: Optional[Sequence[int]] = None, index: int = 0) -> Held:
        """The tensor of an output, in the format that the samples gave it."""
        name = node.outputs[index]
        dtype = self.formats.dtype(name)
        return self.net.tensor(shape or physical(self.shape(name)), dtype, self.formats.frac(name, dtype))

    def range_frac(self, values: Array, dtype: str) -> int:
        """The frac_bits for values between nodes, which no name of the model stands for."""
        most = float(np.abs(values).max()) if values.size else 0.0
        frac = fitting(most, dtype)
        if frac < 0:
            raise NoKernel(
                f"a value between its operations reaches {most:.4g}, more than {dtype} holds", "scale its inputs"
            )
        return min(frac, FRAC_BITS_MAX)

    def seen(self, name: str) -> list[Array]:
        """What a value was in each sample."""
        if name in self.graph.constants:
            return [self.graph.constants[name]]
        return [run[name] for run in self.samples.runs]

    def unit(self, dtype: str) -> int:
        return BITS[dtype] - 1

    def kernel(
        self, name: str, out: Held, /, **given: Union[Held, list[Held], int, str, Sequence[int], Sequence[str], None]
    ) -> Held:
        self.net.run(name, out=out, **given)
        return out

    def like(self, x: Held, frac: Optional[int] = None) -> Held:
        """A new tensor of x's shape and type."""
        return self.net.tensor(x.shape, x.dtype, x.frac if frac is None else max(0, min(frac, FRAC_BITS_MAX)))
