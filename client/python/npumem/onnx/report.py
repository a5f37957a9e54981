"""What an import says of itself: formats, reasons, operations; for programs, and for eyes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .formats import noise_db, rounded
from .model import printable

if TYPE_CHECKING:
    from .lowering import Lowering


def layer(low: Lowering, name: str, operator: str, node: str) -> dict[str, Any]:
    """The format of one value, and the S/N that its own rounding leaves."""
    held, values = low.held[name], low.samples.of(name)
    return {
        "value": name, "node": node, "operator": operator, "shape": list(low.graph.shapes[name]), "dtype": held.dtype,
        "frac_bits": held.frac, "largest": float(np.abs(values).max()) if values.size else 0.0,
        "rounding_db": round(noise_db(values, rounded(values, held.dtype, held.frac)), 1),
        "why": low.formats.policy.why(name),
    }  # fmt: skip


def facts(low: Lowering, path: str, dtype: str, n_samples: int, n_seen: int) -> dict[str, Any]:
    graph, net = low.graph, low.net
    whole = net.document()
    kernels = Counter(one.get("run", "copy" if "copy" in one else "") for one in whole["operations"])
    layers = [layer(low, name, "input", "") for name in graph.inputs]
    layers += [
        layer(low, name, n.op, n.name)
        for n in graph.nodes
        for name in n.outputs
        if name in low.held and name in graph.shapes
    ]
    constants = [one for one in whole["tensors"].values() if str(one.get("file", "")).startswith("arrays/")]
    return {
        "model": path, "opset": graph.opset, "dtype": dtype, "samples": n_samples, "calibrated": n_seen,
        "inputs": {
            name: {"file": f"{tensor}.npy", "tensor": tensor, "shape": list(graph.declared[name])}
            for name, tensor in ((name, low.held[name].name) for name in graph.inputs)
        },
        "outputs": {name: {"file": low.files[name], "shape": list(graph.shapes[name])} for name in graph.outputs},
        "host": [
            {"node": one["name"], "operator": one["host"], "why": low.why[one["name"]],
             "reads": [part["value"] for part in one["reads"]], "gives": [name for name in one["outputs"] if name],
             "after": sum("run" in other or "copy" in other for other in net.operations[: net.operations.index(one)])}
            for one in net.operations if "host" in one
        ],
        "operations": {kernel: n for kernel, n in sorted(kernels.items()) if kernel},
        "open_batches": graph.open_batches,
        "limits": graph.n_limits,
        "constant_bytes": sum(net.arrays[one["file"]].nbytes for one in constants),
        "layers": layers,
    }  # fmt: skip


def lists(host: list[dict[str, Any]], total: int) -> list[str]:
    """The lists of operations, and the steps on the host between them."""
    lines, done = ["", "Device and host take turns:", ""], 0
    for one in host:
        if one["after"] > done:
            lines.append(f"  device  operations {done + 1} to {one['after']}")
        done = one["after"]
        reads = f" reads {', '.join(one['reads'])}," if one["reads"] else ""
        lines.append(
            f'  HOST    {one["operator"]} "{one["node"]}":{reads} gives {", ".join(one["gives"])}; {one["why"]}'
        )
    return lines + ([f"  device  operations {done + 1} to {total}"] if total > done else [])


def text(said: dict[str, Any]) -> str:
    """The report as a page of text; the layers whose own rounding costs most come first."""
    kernels = sorted(said["operations"].items(), key=lambda pair: -int(pair[1]))
    total = sum(n for _, n in kernels)
    lines = [
        f"{said['model']}: opset {said['opset']}, {said['dtype']}; "
        f"formats from {said['calibrated']} of {said['samples']} samples",
        f"{total} operation{'s' * (total != 1)}: " + ", ".join(f"{n} {kernel}" for kernel, n in kernels),
        f"{said['constant_bytes']} bytes of constants",
    ]
    if said["limits"]:
        lines.append(
            f"{said['limits']} pairs of QuantizeLinear and DequantizeLinear have a scale or zero point that no format has: "
            f"only their limits are kept, and the samples give the formats"
        )
    lines += [f"input  {name} {one['shape']} <- {one['file']}" for name, one in said["inputs"].items()]
    if said["open_batches"]:
        names = ", ".join(said["open_batches"])
        batch = said["inputs"][said["open_batches"][0]]["shape"][0]
        lines.append(f"the model leaves the batch open: it is {batch} ({names}); --shape gives another")
    for name, one in said["outputs"].items():
        db = said.get("output_db", {}).get(name)
        lines.append(f"output {name} {one['shape']} -> {one['file']}" + (f", S/N {db:.1f} dB" if db is not None else ""))
    if "activations" in said:
        one = said["activations"]
        lines.append(
            f"activations of {one['values']} values are compared, {one['folded']} were folded into others; "
            f"NumPy agrees to {one['least_db']} dB or better (the least: {one['least']})"
        )
    lines += lists(said["host"], sum(n for _, n in kernels)) if said["host"] else []
    lines += ["", "S/N of each value after rounding to its format, the lowest first:", ""]
    rows = [("dB", "format", "largest", "operator", "value", "why")]
    for one in sorted(said["layers"], key=lambda one: float(one["rounding_db"])):
        form = f"{one['dtype']}.{one['frac_bits']}"
        rows.append(
            (f"{one['rounding_db']:.1f}", form, f"{one['largest']:.4g}", one["operator"], one["value"], one["why"])
        )
    widths = [max(len(line[i]) for line in rows) for i in range(5)]
    for line in rows:
        lines.append("  ".join(cell.ljust(widths[i]) if i < 5 else cell for i, cell in enumerate(line)).rstrip())
    return "\n".join(printable(line) for line in lines) + "\n"
