"""Which fixed-point format a value gets: a type, and a power of two from what samples give.

Invariant: weights never let a sum leave the accumulator, whatever the input holds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Callable, Optional

import numpy as np

from .model import Array, Graph, ImportRefused, Node

BITS = {"fx8": 8, "fx16": 16}
ACCUMULATOR_BITS = {"fx8": 32, "fx16": 40}
FRAC_BITS_MAX = 127
SEEN_MAX = 200_000  # numbers of a value that a format is chosen from
METHODS = ("snr", "max", "percentile")
SAMPLES_BYTES = 1 << 30  # of all values of all samples together
PERCENTILE = 99.99


def noise_db(want: Array, got: Array) -> float:
    """The signal-to-noise ratio in dB; 200 where there is no difference."""
    exact = np.asarray(want, np.float64)
    error = float(((np.asarray(got, np.float64) - exact) ** 2).sum())
    signal = float((exact**2).sum())
    if not error:
        return 200.0
    return 10 * math.log10(max(signal, 1e-300) / error)


def largest(dtype: str) -> float:
    return 2.0 ** (BITS[dtype] - 1) - 1


def fitting(most: float, dtype: str) -> int:
    """The most frac_bits with which `most` is not saturated; may be below 0. Of 0 that of 1.0."""
    if not most > 0:
        return BITS[dtype] - 1
    return math.floor(math.log2(largest(dtype) / most))


def rounded(values: Array, dtype: str, frac: int) -> Array:
    """The real numbers that are left of values in a format."""
    top, unit = largest(dtype), 2.0**frac
    return np.clip(np.rint(np.asarray(values, np.float64) * unit), -top - 1, top) / unit


def integers(values: Array, dtype: str, frac: int) -> Array:
    container = np.int8 if dtype == "fx8" else np.int16
    return np.asarray(np.rint(rounded(values, dtype, frac) * 2.0**frac), container)


def best(values: Array, dtype: str, method: str = "snr") -> int:
    """The frac_bits for values: those with the best signal-to-noise ratio, or with which the largest value (or its
    percentile) fits."""
    seen = np.abs(np.asarray(values, np.float64).reshape(-1))
    seen = seen[np.isfinite(seen)]
    if not seen.size or not seen.any():
        return BITS[dtype] - 1
    frac = fitting(float(seen.max()), dtype)
    if method == "max":
        return frac
    if method == "percentile":
        return fitting(float(np.percentile(seen, PERCENTILE)), dtype)
    seen = seen[:: max(1, seen.size // SEEN_MAX)]
    tries = range(frac, frac + (5 if dtype == "fx8" else 2))
    return min(tries, key=lambda f: float(((rounded(seen, dtype, f) - seen) ** 2).sum()))


def best_of(graph: Graph, name: str, values: Array, dtype: str, method: str) -> int:
    """The same of a value. An input of whole numbers takes all that a type of 8 bits has, or all that fx16 holds of a
    larger one."""
    if name not in graph.whole:
        return best(values, dtype, method)
    kind = np.dtype(graph.whole[name])
    most = 1 if kind == bool else np.iinfo(kind).max
    return fitting(most, dtype) if kind.itemsize == 1 else min(best(values, dtype, "max"), 0)


@dataclass
class Samples:
    """What the graph computes in floats, for some samples. `runs` has the values of each."""

    runs: list[dict[str, Array]]

    def of(self, name: str) -> Array:
        """All that was seen of a value."""
        return np.concatenate([np.asarray(run[name]).reshape(-1) for run in self.runs])


@dataclass
class Policy:
    """Which type a value, and the weights of a node, have. `why` says the reason for each value; `wider` is what to do
    about one that fx8 cannot hold."""

    data: Callable[[str], str]
    weights: Callable[[Node], str]
    why: Callable[[str], str]
    wider: str = "--dtype mixed or fx16"


class Formats:
    """The formats of the values of one graph."""

    def __init__(self, graph: Graph, samples: Samples, policy: Policy, method: str) -> None:
        self.graph, self.samples, self.policy, self.method = graph, samples, policy, method
        self.known: dict[tuple[str, str], int] = {}

    def dtype(self, name: str) -> str:
        return self.policy.data(name)

    def frac(self, name: str, dtype: str) -> int:
        """The frac_bits of a value; of one that is too large for any, a refusal."""
        if (name, dtype) not in self.known:
            values = self.samples.of(name)
            if not np.isfinite(values).all():
                raise ImportRefused(f"value {name} is not finite for these samples; fixed point has no infinity or NaN")
            frac = best_of(self.graph, name, values, dtype, self.method)
            if frac < 0:
                most = float(np.abs(values).max())
                wider = self.policy.wider if dtype == "fx8" else "scale the model's inputs or weights"
                raise ImportRefused(
                    f"value {name} reaches {most:.4g}, more than {dtype} holds ({largest(dtype):.0f}): {wider}"
                )
            self.known[name, dtype] = min(frac, FRAC_BITS_MAX)
        return self.known[name, dtype]


# ---- weights ----


def weight_frac(
    rows: Array, bias: Optional[Array], data: str, frac_in: int, dtype: str, method: str, summed: Optional[Array] = None
) -> int:
    """The frac_bits of weights (a row for each output) with which no sum leaves the accumulator. `summed`: rows that
    are summed instead of these, where the kernel shifts a part of the sum."""
    frac = min(best(rows, dtype, method), FRAC_BITS_MAX)
    limit = 2.0 ** (ACCUMULATOR_BITS[data] - 1) * 0.98
    all_of = rows if summed is None else summed
    sums = np.abs(all_of).reshape(len(all_of), -1).sum(1).astype(np.float64) * 2.0 ** (BITS[data] - 1)
    if bias is not None:
        sums = sums + np.abs(bias).astype(np.float64) * 2.0**frac_in
    most = float(sums.max()) if sums.size else 0.0
    while frac > 0 and most * 2.0**frac > limit:
        frac -= 1
    if frac < 0 or most * 2.0**frac > limit:
        raise ImportRefused(
            f"weights up to {float(np.abs(rows).max()):.4g} do not fit {dtype} with sums of {ACCUMULATOR_BITS[data]} "
            f"bits; scale the weights, or take --dtype fx16"
        )
    return frac


def bias_frac(bias: Array, dtype: str, most: int) -> int:
    """The frac_bits of a bias, at most those of the products."""
    frac = min(best(bias, dtype, "max"), most, FRAC_BITS_MAX)
    if frac < 0:
        raise ImportRefused(
            f"a bias reaches {float(np.abs(bias).max()):.4g}, more than {dtype} holds; take --dtype fx16"
        )
    return frac


def compensated(rows: Array, seen: Array, quantize: Callable[[Array], Array], damp: float = 0.01) -> Array:
    """Rows of weights, rounded column by column: what the rounding of one column adds to the outputs of the samples
    [columns, points] is taken from the columns after it (the method is known as GPTQ)."""
    h = (seen @ seen.T).astype(np.float64)
    h += np.eye(len(h)) * (damp * np.trace(h) / len(h) + 1e-9)
    order = np.argsort(-np.diag(h))
    upper = np.linalg.cholesky(np.linalg.inv(h[np.ix_(order, order)])).T
    w, out = rows.astype(np.float64)[:, order], np.empty(rows.shape)
    for j in range(w.shape[1]):
        q = quantize(w[:, j])
        w[:, j + 1 :] -= np.outer((w[:, j] - q) / upper[j, j], upper[j, j + 1 :])
        out[:, order[j]] = q
    return out


# ---- which type ----


WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul", "LSTM", "GRU", "RNN")
MOVES = (
    "Cast", "Concat", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "Split", "Squeeze", "Tile",
    "Transpose", "Unsqueeze",
)  # fmt: skip


def fixed(dtype: str, graph: Graph) -> Policy:
    """One type for all; with fx8, what is computed behind the last weights is fx16: scores, and where boxes are."""
    if dtype == "fx16":
        return Policy(lambda name: "fx16", lambda node: "fx16", lambda name: "--dtype fx16")
    wide = behind(graph) | {name for name, kind in graph.whole.items() if kind not in ("int8", "bool")}
    return Policy(
        lambda name: "fx16" if name in wide else "fx8",
        lambda node: "fx8",
        lambda name: "fx16: whole numbers" if name in graph.whole and name in wide
        else "fx16: computed behind the last weights" if name in wide else "--dtype fx8",
    )


def behind(graph: Graph) -> set[str]:
    """What is computed of the last weighted nodes' outputs. Elements that only move keep their type."""
    tail, computed = heads(graph), set[str]()
    if not any(node.op in WEIGHTED for node in graph.nodes):
        return computed
    for node in graph.nodes:
        if node.op in WEIGHTED or node.outputs[0] not in tail:
            continue
        if node.op not in MOVES or any(name in computed for name in node.inputs):
            computed.update(node.outputs)
    return computed


FIRST_LAYERS = 4
TABLES = ("Sigmoid", "Softmax", "Tanh")  # operators whose results have 7 or 15 frac_bits
ONE_TYPE = ("Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean")  # their inputs have the type of their result
SOFTMAX_FRAC = 2  # with so few frac_bits, fx8 leaves the results of a Softmax less than MIXED_DB
MIXED_DB = 26.0  # of a value's own rounding to fx8; below it the value is fx16


def heads(graph: Graph) -> set[str]:
    """The last weighted nodes of each path, and all that is made of them."""
    tail: set[str] = set()
    read: set[str] = set()  # values that a weighted node still reads, directly or not
    for node in reversed(graph.nodes):
        if node.op in WEIGHTED or any(name in read for name in node.outputs):
            if not any(name in read for name in node.outputs):
                tail.update(node.outputs)
            read.update(node.inputs)
        else:
            tail.update(node.outputs)
    return tail


def mixed(graph: Graph, samples: Samples, method: str) -> Policy:
    """fx8 where a value's own S/N allows; fx16 data with fx8 weights for the heads, the first layers, and values that
    fx8 holds badly."""
    reasons: dict[str, str] = {}
    tail = heads(graph)
    convs = [node.outputs[0] for node in graph.nodes if node.op in ("Conv", "ConvTranspose", "Gemm", "MatMul")]
    for name in tail:
        reasons[name] = "fx16: a head, or made of one"
    for name in [*graph.inputs, *convs[:FIRST_LAYERS]]:
        reasons.setdefault(name, "fx16: an input, or one of the first layers")
    wide_weights = {node.outputs[0] for node in graph.nodes if not holds_bias(graph, node)}
    for name in wide_weights:
        reasons.setdefault(name, "fx16: its bias is larger than fx8 holds")
    for node in graph.nodes:
        for name in node.outputs:
            if name and name not in reasons:
                reasons[name] = (
                    reason_of_inputs(graph, samples, node, method)
                    or reason_of_data(graph, samples, node, reasons.get(node.inputs[0], ""), method)
                    or reason_of_softmax(graph, samples, name, method)
                    or reason_of(samples.of(name), method, node.op in TABLES)
                )
    wide = {name for name, why in reasons.items() if why.startswith("fx16")}
    return Policy(
        lambda name: "fx16" if name in wide else "fx8",
        lambda node: "fx16" if node.outputs[0] in wide_weights else "fx8",
        lambda name: reasons.get(name, "fx8: a constant or an intermediate value"),
        "--dtype fx16",
    )


def holds_bias(graph: Graph, node: Node) -> bool:
    """fx8 holds the node's bias, with room for what rounded weights add."""
    bias = graph.constant(node.input(2)) if node.op in ("Conv", "ConvTranspose", "Gemm", "MatMul") else None
    return bias is None or not bias.size or float(np.abs(bias).max()) < largest("fx8") * 0.9


def reason_of_inputs(graph: Graph, samples: Samples, node: Node, method: str) -> str:
    """Why a value is fx16 that fx8 itself could hold; empty: its inputs are no reason."""
    for name in node.inputs if node.op in ONE_TYPE else ():
        constant = graph.constant(name)
        values = samples.of(name) if constant is None else constant
        if best_of(graph, name, values, "fx8", method) < 0:
            most = float(np.abs(values).max())
            return f"fx16: {name}, from which it is made, reaches {most:.4g}, which fx8 cannot hold"
    return ""


def reason_of_data(graph: Graph, samples: Samples, node: Node, why: str, method: str) -> str:
    """A weighted node has the type of its result: fx8 would take from its data what made them fx16."""
    if node.op not in WEIGHTED or not why.startswith("fx16"):
        return ""
    maker = graph.maker(node.inputs[0])
    own = reason_of(samples.of(node.inputs[0]), method, maker is not None and maker.op in TABLES)
    return f"fx16: of {node.inputs[0]}: {own[6:]}" if own.startswith("fx16") else ""


def reason_of_softmax(graph: Graph, samples: Samples, name: str, method: str) -> str:
    """An error of a Softmax's input is as large in each result, whatever the largest input is."""
    frac = best(samples.of(name), "fx8", method)
    if frac < 0 or frac > SOFTMAX_FRAC or all(user.op != "Softmax" for user in graph.users(name)):
        return ""
    return f"fx16: a Softmax reads it, and fx8 has steps of {2.0**-frac:g}"


def reason_of(values: Array, method: str, has_unit: bool) -> str:
    """Why a value is fx8 or fx16. `has_unit`: its frac_bits are those that the kernel gives."""
    frac = BITS["fx8"] - 1 if has_unit else best(values, "fx8", method)
    if frac < 0:
        return f"fx16: it reaches {float(np.abs(values).max()):.4g}, which fx8 cannot hold"
    db = noise_db(values, rounded(values, "fx8", frac))
    if db < MIXED_DB:
        return f"fx16: fx8 has {db:.1f} dB, below {MIXED_DB:.0f}"
    return f"fx8: {db:.1f} dB"


def chosen(dtype: str, graph: Graph, samples: Samples, method: str) -> Policy:
    return mixed(graph, samples, method) if dtype == "mixed" else fixed(dtype, graph)


def calibrated(graph: Graph, feeds: Sequence[Mapping[str, Array]], run: Callable[..., dict[str, Array]]) -> Samples:
    """Runs the samples, as many as there is room for; at least one."""
    runs, room = [], SAMPLES_BYTES
    for one in feeds:
        runs.append(run(graph, one))
        each = sum(value.nbytes for name, value in runs[-1].items() if name not in graph.constants)
        room -= each
        if room < each:
            break
    return Samples(runs)
