"""Makes a graph smaller without changing what it computes: constants, normalizations, paddings, limits.

Invariant: `graph.shapes` has every value that is left, and each step keeps the names of the graph's outputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Callable, Optional

import numpy as np

from . import chains, floats, normalizations
from .expand import expand
from .floats.arithmetic import clip_ends
from .floats.shapes import ELEMENTS_MAX, pad_sides
from .formats import MOVES
from .model import Array, Graph, ImportRefused, Node

WEIGHTED = ("Conv", "ConvTranspose", "Gemm", "MatMul")
SHAPE_ONLY = ("Shape", "Size")


def branch(graph: Graph, node: Node, condition: Optional[Array]) -> list[Node]:
    """The nodes of the branch of an If that runs for every sample. Its values get the name of the If's output in front:
    another If may have the same names inside."""
    if condition is None:
        raise ImportRefused(
            f"{node}: its condition depends on the inputs, and a network has the same operations for each sample; "
            f"export the model with one of the branches"
        )
    if condition.size != 1:
        raise ImportRefused(f"{node}: its condition has {condition.size} elements, and needs one; export the model again")
    taken: Graph = node.get("then_branch" if condition.reshape(-1)[0] else "else_branch")
    own = {*taken.constants, *(name for one in taken.nodes for name in one.outputs if name)}
    names = {name: f"{node.outputs[0]}.{name}" for name in own}
    graph.constants.update({names[name]: value for name, value in taken.constants.items()})
    return [renamed(one, names) for one in taken.nodes] + [
        Node("Identity", node.name, [names.get(inside, inside)], [outside], {}, node.opset)
        for inside, outside in zip(taken.outputs, node.outputs)
    ]


def renamed(node: Node, names: Mapping[str, str]) -> Node:
    """The node with other names of values, also in its branches."""
    inside = {
        key: replace(one, nodes=[renamed(n, names) for n in one.nodes], outputs=[names.get(n, n) for n in one.outputs])
        for key, one in node.attributes.items()
        if isinstance(one, Graph)
    }
    inputs, outputs = ([names.get(name, name) for name in some] for some in (node.inputs, node.outputs))
    return replace(node, inputs=inputs, outputs=outputs, attributes={**node.attributes, **inside})


class Made:
    """Elements of constants: `given` by the file, and made of them by nodes, which have a few bytes each."""

    TIMES = 16  # as many as are given: weights of 8 bits become floats, are turned, and the like

    def __init__(self, given: Mapping[str, Array]) -> None:
        self.given = self.made = 0
        self.give(given)

    def give(self, given: Mapping[str, Array]) -> None:
        self.given += sum(np.size(value) for value in given.values())

    def count(self, node: Node, outputs: Sequence[Array]) -> None:
        n = sum(np.size(one) for one in outputs)
        if node.op == "Constant":
            self.given += n
        else:
            self.made += n
        most = ELEMENTS_MAX + self.TIMES * self.given
        if self.made > most:
            raise ImportRefused(
                f"{node}: with it the constants that nodes make have {self.made} elements, more than {most}, which is "
                f"2^28 and {self.TIMES} for each of the {self.given} in the file"
            )


def fold_constants(graph: Graph, sample: Mapping[str, Array]) -> None:
    """Evaluates each node that no input reaches, and drops it. An If is replaced by its branch."""
    moving, kept, left, made = set(graph.inputs), [], graph.nodes[::-1], Made(graph.constants)
    values: dict[str, Array] = {**graph.constants, **sample}
    with np.errstate(all="ignore"):
        while left:
            node = left.pop()
            if node.op == "If":
                condition = None if node.inputs[0] in moving else values.get(node.inputs[0])
                left += branch(graph, node, condition)[::-1]
                for one in node.attributes.values():
                    made.give(one.constants)
                values.update(graph.constants)
                continue
            outputs = floats.evaluate(node, values)
            values.update(zip(node.outputs, outputs))
            if node.op not in SHAPE_ONLY and any(name in moving for name in node.inputs):
                moving.update(name for name in node.outputs if name)
                kept.append(node)
            else:
                made.count(node, outputs)
                graph.constants.update({n: v for n, v in zip(node.outputs, outputs) if n})
    graph.nodes = kept
    graph.shapes = {name: tuple(np.shape(value)) for name, value in values.items()}
    graph.kinds = {name: np.asarray(value).dtype.kind for name, value in values.items()}


def drop_unused(graph: Graph) -> None:
    """Drops nodes whose values nothing uses, from the last on, then constants."""
    wanted, kept = set(graph.outputs), []
    for node in reversed(graph.nodes):
        if any(name in wanted for name in node.outputs):
            kept.append(node)
            wanted.update(node.inputs)
    graph.nodes = kept[::-1]
    graph.constants = {name: value for name, value in graph.constants.items() if name in wanted}


def bypass(graph: Graph, node: Node) -> None:
    """Gives the node's users its input, and drops it. An output of the graph keeps its node."""
    if node.outputs[0] in graph.outputs:
        return
    for user in graph.users(node.outputs[0]):
        user.inputs = [node.inputs[0] if name == node.outputs[0] else name for name in user.inputs]
    graph.nodes.remove(node)


def drop_identities(graph: Graph) -> None:
    """A Cast that is left makes integers floats, or floats integers: what reads it computes in another way."""
    for node in list(graph.nodes):
        floats_only = node.op != "Cast" or {graph.kinds[node.inputs[0]], graph.kinds[node.outputs[0]]} == {"f"}
        same = node.op in ("Identity", "Dropout", "Cast") and graph.shapes[node.inputs[0]] == graph.shapes[node.outputs[0]]
        if same and floats_only:
            bypass(graph, node)


def follow_whole(graph: Graph) -> None:
    """Integers of an input that are cast or moved are the same numbers."""
    for node in graph.nodes:
        if node.op in MOVES and node.op not in ("Concat", "Pad") and node.inputs[0] in graph.whole:
            graph.whole.update(dict.fromkeys(node.outputs, graph.whole[node.inputs[0]]))


# ---- into the node before ----


def sole_maker(graph: Graph, node: Node) -> Optional[Node]:
    """The node that makes the first input, where nothing else uses it."""
    name = node.inputs[0] if node.inputs else ""
    maker = graph.maker(name)
    alone = maker is not None and name not in graph.outputs and len(graph.users(name)) == 1
    return maker if alone and maker is not None and maker.outputs[0] == name else None


def take_over(graph: Graph, maker: Node, node: Node) -> None:
    maker.outputs = node.outputs
    graph.nodes.remove(node)


def weights_of(graph: Graph, node: Node) -> tuple[Optional[Array], Optional[Array]]:
    return graph.constant(node.input(1)), graph.constant(node.input(2))


def channel_axis(node: Node, rank: int) -> int:
    return 1 if node.op in ("Conv", "ConvTranspose") else rank - 1


def by_channel(values: Array, shape: tuple[int, ...], axis: int) -> Optional[Array]:
    """A constant beside a value of `shape` as one number for each index of the axis; None: it is none."""
    if values.ndim > len(shape):
        return None
    full = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
    if any(extent != 1 and i != axis for i, extent in enumerate(full.shape)):
        return None
    return np.broadcast_to(full.reshape(-1), (shape[axis],)).astype(np.float32)


def scale_weights(graph: Graph, maker: Node, k: Array, shift: Array) -> bool:
    """Multiplies the outputs of a weighted node by k, and adds shift, one number a channel. False: it cannot."""
    w, b = weights_of(graph, maker)
    if w is None or maker.relu != "none" or (maker.input(2) and b is None):
        return False
    if maker.op == "Conv":
        w = w * k.reshape(-1, *[1] * (w.ndim - 1))
    elif maker.op == "ConvTranspose":
        groups = maker.get("group", 1)
        w = w * np.repeat(k.reshape(groups, -1), w.shape[0] // groups, 0).reshape(*w.shape[:2], *[1] * (w.ndim - 2))
    elif maker.op == "Gemm" and maker.get("alpha", 1.0) == 1 and maker.get("beta", 1.0) == 1:
        w = w * (k.reshape(-1, 1) if maker.get("transB", 0) else k)
    elif maker.op == "MatMul" and w.ndim == 2:
        w = w * k
    else:
        return False
    bias = shift if b is None else b * k + shift
    if bias.ndim > 1 and bias.shape[0] > 1:
        return False
    maker.inputs = [maker.inputs[0], graph.add_constant(maker.inputs[1], np.asarray(w))]
    if bias.any() or b is not None:
        maker.inputs.append(graph.add_constant(maker.inputs[1], bias))
    return True


def normalization(graph: Graph, node: Node) -> Optional[tuple[Array, Array]]:
    """k and shift of a BatchNormalization that has constants."""
    values = [graph.constant(node.input(i)) for i in range(1, 5)]
    if any(one is None for one in values) or node.get("training_mode", 0) or len([o for o in node.outputs if o]) > 1:
        return None
    scale, bias, mean, variance = (np.asarray(one, np.float64) for one in values)
    k = scale / np.sqrt(variance + node.get("epsilon", 1e-5))
    return k.astype(np.float32), (bias - mean * k).astype(np.float32)


def fold_normalization(graph: Graph, node: Node) -> bool:
    """A BatchNormalization goes into the convolution before it, or becomes a depthwise one of 1 x 1."""
    found = normalization(graph, node)
    if found is None:
        return False
    k, shift = found
    maker = sole_maker(graph, node)
    if maker is not None and maker.op in WEIGHTED and channel_axis(maker, len(graph.shapes[node.inputs[0]])) == 1:
        if scale_weights(graph, maker, k, shift):
            take_over(graph, maker, node)
            return True
    spatial = max(1, len(graph.shapes[node.inputs[0]]) - 2)
    node.op, node.outputs = "Conv", node.outputs[:1]
    node.attributes = {"group": len(k), "pads": [0] * 2 * spatial, "affine": 1}
    w = graph.add_constant(node.outputs[0], k.reshape((-1, 1) + (1,) * spatial))
    node.inputs = [node.inputs[0], w, graph.add_constant(node.outputs[0], shift)]
    return True


def fold_affine(graph: Graph, node: Node) -> bool:
    """Add, Sub, Mul and Div by a number a channel go into the weighted node before."""
    first = graph.constant(node.inputs[0])
    if first is not None and node.op in ("Add", "Mul"):
        node.inputs.reverse()
    value, maker = graph.constant(node.inputs[1]), sole_maker(graph, node)
    if value is None or maker is None or maker.op not in WEIGHTED:
        return False
    shape = graph.shapes[node.inputs[0]]
    if graph.shapes[node.outputs[0]] != shape:
        return False
    each = by_channel(value, shape, channel_axis(maker, len(shape)))
    if each is None:
        return False
    one, zero = np.ones_like(each), np.zeros_like(each)
    k, shift = {"Add": (one, each), "Sub": (one, -each), "Mul": (each, zero), "Div": (1 / each, zero)}[node.op]
    if not np.isfinite(k).all() or not scale_weights(graph, maker, k, shift):
        return False
    take_over(graph, maker, node)
    return True


def fold_limit(graph: Graph, node: Node) -> bool:
    """Relu, Clip(0, 6) and Clip(-1, 1) go into the weighted node before."""
    maker = sole_maker(graph, node)
    if maker is None or not can_limit(graph, maker) or node.get("as_seen"):
        return False
    limit = "gen"
    if node.op == "Clip":
        ends = clip_ends(node, *[graph.constant(name) for name in node.inputs[1:]])
        limit = {(0.0, math.inf): "gen", (0.0, 6.0): "6", (-1.0, 1.0): "1"}.get(ends, "")
    if not limit:
        return False
    maker.relu = limit
    take_over(graph, maker, node)
    return True


def fold_padding(graph: Graph, node: Node) -> bool:
    """A Pad of zeros before a convolution becomes the padding of it."""
    maker = sole_maker(graph, node)
    if maker is None or maker.op != "Pad" or node.get("auto_pad", "NOTSET") != "NOTSET":
        return False
    if any(graph.constant(name) is None for name in maker.inputs[1:] if name):
        return False
    value = graph.constant(maker.input(2))
    filled = maker.get("value", 0.0) if value is None else float(value.reshape(-1)[0])
    rank = len(graph.shapes[node.inputs[0]])
    sides = pad_sides(maker, rank, graph.constant(maker.input(1)), graph.constant(maker.input(3)))
    if (
        filled
        or maker.get("mode", "constant") != "constant"
        or any(map(any, sides[:2]))
        or min(min(side) for side in sides) < 0
    ):
        return False
    pads, n = list(node.get("pads", [0] * 2 * (rank - 2))), rank - 2
    for i, (begin, end) in enumerate(sides[2:]):
        pads[i] += begin
        pads[n + i] += end
    node.attributes = {**node.attributes, "pads": pads}
    node.inputs = [maker.inputs[0], *node.inputs[1:]]
    graph.nodes.remove(maker)
    return True


def quantization(graph: Graph, node: Node) -> Optional[tuple[float, int, str]]:
    """The one scale of a QuantizeLinear or DequantizeLinear, its zero point, and the type; None: it has none, or several."""
    scale, zero = graph.constant(node.input(1)), graph.constant(node.input(2))
    if not node.input(2):
        zero = np.zeros(1, np.uint8)
    if scale is None or zero is None or scale.size != 1 or zero.size != 1 or not 0 < scale.min() < math.inf:
        return None
    return float(scale.reshape(-1)[0]), int(zero.reshape(-1)[0]), str(zero.dtype)


def fold_quantization(graph: Graph, node: Node) -> bool:
    """A QuantizeLinear with its DequantizeLinear. In int8, with a power of two as the scale and a zero point of 0, the
    two are a format of the value. With others they are limits, and the format is one that the samples give."""
    users = graph.users(node.outputs[0])
    found = quantization(graph, node)
    if found is None or node.outputs[0] in graph.outputs or not users:
        return False
    scale, zero, kind = found
    if any(user.op != "DequantizeLinear" or quantization(graph, user) != found for user in users):
        return False
    frac = -math.log2(scale)
    if kind == "int8" and not zero and frac == int(frac) and frac >= 0:
        node.op, node.attributes = "Quantized", {"frac_bits": int(frac)}
    else:
        least, most = (scale * (end - zero) for end in (np.iinfo(kind).min, np.iinfo(kind).max))
        node.op, node.attributes = "Clip", {"min": least, "max": most, "as_seen": 1}
        graph.n_limits += 1
    node.inputs = node.inputs[:1]
    if len(users) == 1:
        take_over(graph, node, users[0])
        users = []
    for user in users:
        user.op, user.inputs, user.attributes = "Identity", user.inputs[:1], {}
        bypass(graph, user)
    if node.op == "Clip" and not node.get("min"):
        limit_of_relu(graph, node)
    return True


def limit_of_relu(graph: Graph, node: Node) -> None:
    """A quantizer leaves a Relu out where the zero point does its work."""
    maker = sole_maker(graph, node)
    if maker is not None and can_limit(graph, maker):
        maker.relu, node.attributes["min"] = "gen", -math.inf


def can_limit(graph: Graph, maker: Node) -> bool:
    """The node's kernel has a relu=."""
    if maker.op not in WEIGHTED or maker.relu != "none":
        return False
    return maker.op != "MatMul" or graph.constant(maker.inputs[1]) is not None


STEPS: dict[str, Callable[[Graph, Node], bool]] = {
    "Add": fold_affine,
    "BatchNormalization": fold_normalization,
    "Clip": fold_limit,
    "Conv": fold_padding,
    "Div": fold_affine,
    "Mul": fold_affine,
    "QuantizeLinear": fold_quantization,
    "Relu": fold_limit,
    "Sub": fold_affine,
}


def fold(graph: Graph, sample: Mapping[str, Array]) -> None:
    """Everything that can be done before a value has a format. `sample`: any values of the inputs, for the shapes."""
    fold_constants(graph, sample)
    if expand(graph):
        fold_constants(graph, sample)
    drop_identities(graph)
    normalizations.fold(graph)
    drop_unused(graph)
    for node in list(graph.nodes):
        if node.op in STEPS and any(one is node for one in graph.nodes):
            STEPS[node.op](graph, node)
    chains.fold(graph)
    drop_unused(graph)
    follow_whole(graph)


# ---- channels of neighbouring layers ----

BY_CHANNEL = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")  # a factor of a channel goes through these


def readers(graph: Graph, name: str) -> Optional[list[Node]]:
    """The nodes that read the channels of a value with weights of their own, also behind pools and a Flatten; None: what
    is made of the value is used in another way, too."""
    found: list[Node] = []
    if name in graph.outputs or not graph.users(name):
        return None
    for user in graph.users(name):
        if user.op in BY_CHANNEL or is_flat(graph, user):
            behind = readers(graph, user.outputs[0]) if len(user.outputs) == 1 else None
            if behind is None:
                return None
            found += behind
        elif can_equalize(graph, user, name):
            found.append(user)
        else:
            return None
    return found


def is_flat(graph: Graph, node: Node) -> bool:
    """The channels of each picture become one line, in their order."""
    if node.op not in ("Flatten", "Reshape"):
        return False
    shape, flat = graph.shapes[node.inputs[0]], graph.shapes[node.outputs[0]]
    return len(shape) > 2 and flat == (shape[0], math.prod(shape[1:]))


def can_equalize(graph: Graph, user: Node, name: str) -> bool:
    """The user reads `name` with weights of its own: a product, or a convolution without groups or with one output a
    channel."""
    w = graph.constant(user.input(1))
    if user.inputs[0] != name or w is None or len(graph.users(user.inputs[1])) > 1:
        return False
    if user.op == "Gemm":
        return not user.get("transA", 0)
    return user.op == "Conv" and (user.get("group", 1) == 1 or (user.get("group", 1) == w.shape[0] and w.shape[1] == 1))


def by_input(node: Node, w: Array, channels: int) -> Array:
    """Weights with the channels of the input first, as a view."""
    if node.op == "Gemm":
        return w.reshape(len(w), channels, -1).swapaxes(0, 1) if node.get("transB", 0) else w.reshape(channels, -1)
    return w if node.get("group", 1) > 1 else w.swapaxes(0, 1)


def equalize(graph: Graph, rounds: int = 8) -> None:
    """Scales the channels between neighbouring layers so that one format fits all of a tensor.

    A channel's outputs are divided by s, and the weights that read it are multiplied by s. Nothing changes in floats.
    """
    for _ in range(rounds):
        for node in graph.nodes:
            if node.op != "Conv" or node.relu not in ("none", "gen"):
                continue
            if any(name in graph.constants and len(graph.users(name)) > 1 for name in node.inputs):
                continue  # weights of two nodes
            users = readers(graph, node.outputs[0])
            w, b = weights_of(graph, node)
            if users is None or w is None:
                continue
            for user in users:
                graph.constants[user.inputs[1]] = graph.constants[user.inputs[1]].copy()
            theirs = [by_input(user, graph.constants[user.inputs[1]], len(w)) for user in users]
            own = np.abs(w).reshape(len(w), -1).max(1)
            most = np.max([np.abs(v).reshape(len(w), -1).max(1) for v in theirs], 0)
            both = (own > 0) & (most > 0)
            s = np.clip(np.where(both, np.sqrt(own * most) / np.maximum(most, 1e-30), 1), 1e-3, 1e3).astype(np.float32)
            graph.constants[node.inputs[1]] = (w / s.reshape(-1, *[1] * (w.ndim - 1))).astype(np.float32)
            if b is not None:
                graph.constants[node.inputs[2]] = (b / s).astype(np.float32)
            for v in theirs:
                v *= s.reshape(-1, *[1] * (v.ndim - 1))
