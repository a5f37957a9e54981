"""Models that are newer than the installed onnx. Its checker sees what it knows; the rows below name the rest.

Invariant: what a newer opset changed is in NEWER, or is refused by name; nothing is taken as its older form."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

NEWEST_OPSET = 22  # whose changes are below
NEXT = "npumem.next"  # the domain of a node that the checker is not to know

# By operator: attributes that opsets 18 to 22 added, each with the one value that is done; None: any. An operator that
# came with them, or takes more inputs than before, has a row, too.
SINCE_18: dict[str, dict[str, object]] = {
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
                     "ReduceProd", "ReduceSumSquare"), {"noop_with_empty_axes": None}),
    "AveragePool": {"dilations": None}, "Cast": {"saturate": None}, "Gelu": {"approximate": None}, "Mish": {}, "Pad": {},
    "DequantizeLinear": {"block_size": 0, "output_dtype": 0},
    "QuantizeLinear": {"block_size": 0, "output_dtype": 0, "saturate": None},
    "Resize": {"antialias": 0, "axes": None, "keep_aspect_ratio_policy": b"stretch"}, "Split": {"num_outputs": None},
}  # fmt: skip


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes, and those of the branches and bodies in them."""
    for inside in all_graphs(graph):
        yield from inside.node


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for one in node.attribute:
            for inside in (one.g, *one.graphs) if one.HasField("g") or one.graphs else ():
                yield from all_graphs(inside)


def newest() -> int:
    return max(NEWEST_OPSET, onnx.defs.onnx_opset_version())


def hide(model: onnx.ModelProto, opset: int) -> list[str]:
    """Gives the model the version of the installed onnx, and nodes with a row a domain that its checker leaves alone.
    Returns what is refused, in words."""
    model.ir_version = min(model.ir_version, onnx.IR_VERSION)
    known = onnx.defs.onnx_opset_version()
    if opset <= known:
        return []
    refused = []
    for node in all_nodes(model.graph):
        if node.domain not in ("", "ai.onnx") or node.op_type not in SINCE_18:
            continue
        later = SINCE_18[node.op_type]
        for one in node.attribute:
            value = onnx.helper.get_attribute_value(one) if one.name in later else None
            if one.name in later and later[one.name] not in (None, value):
                refused.append(f'node "{node.name}" ({node.op_type}): its {one.name} is not {later[one.name]!r}')
        node.domain = NEXT
    for one in model.opset_import:
        one.version = known if one.domain in ("", "ai.onnx") else one.version
    model.opset_import.add(domain=NEXT, version=1)
    return refused


def show(model: onnx.ModelProto, opset: int) -> None:
    """Undoes what hide() did to the nodes and the opset."""
    for node in all_nodes(model.graph):
        if node.domain == NEXT:
            node.domain = ""
    for one in list(model.opset_import):
        if one.domain == NEXT:
            model.opset_import.remove(one)
        elif one.domain in ("", "ai.onnx"):
            one.version = opset
