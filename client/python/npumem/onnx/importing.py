"""An import from the file to the folder: read, fold, choose formats, lower, write.

Invariant: nothing is at the place of the folder before everything in it is written."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np

from . import activations as compared
from . import floats, fold, formats, masks, moves, report, rows
from .formats import Formats, Policy, Samples
from .lowering import Lowering, Options
from .model import Array, Graph, ImportRefused, read
from .network import Network
from .samples import Given, feeds_of, in_order, whole

DTYPES = ("fx8", "fx16", "mixed")
CALIBRATE_MAX = 16  # samples that formats come from
EXPECT_BYTES = 64 << 20  # of float values that are written, of as many samples as have room
assert rows  # which registers what lowers each operator


@dataclass
class Imported:
    """A model as a network.

    network  tensors, operations and arrays
    graph    the model after folding
    samples  what it computes in floats, for the samples
    report   what became of it: `report["outputs"]` has the file and the shape of each
    compared float values of the samples that are not NumPy's, by name"""

    network: Network
    graph: Graph
    samples: Samples
    policy: Policy
    lowering: Lowering
    report: dict[str, Any]
    compared: dict[str, list[Array]]

    def write(self, folder: Union[str, os.PathLike[str]], expect: bool = True) -> None:
        """The folder: network.json, arrays, the first sample, report.txt and report.json; with `expect` the float
        values of every layer, of the samples that gave the formats, for npumemctl check. It must not exist, or be empty."""
        write(self, os.fspath(folder), expect)


# ---- the import ----


def load(
    model: Union[str, os.PathLike[str]], samples: Given, *, dtype: str = "fx16", method: str = "snr",
    equalize: bool = False, correct: bool = True, by_samples: bool = False, host: bool = False,
    shapes: Optional[Mapping[str, Sequence[int]]] = None, constants: Optional[Mapping[str, Array]] = None,
    activations: Optional[Mapping[str, Array]] = None,
) -> Imported:  # fmt: skip
    """Imports an ONNX model.

    samples    an array with samples along its first axis, or one for each input by name; formats come from the first 16
    dtype      fx8, fx16, or mixed: fx8 where a layer allows, fx16 data with fx8 weights elsewhere
    method     the frac_bits with the best S/N (snr), or with which the largest value (max) or a percentile fits
    equalize   scales channels of neighbouring layers against each other first
    correct    puts the mean of what rounded weights lose into the biases
    by_samples rounds weights with the samples in view
    host       runs what no kernel does on the host, between two lists of operations
    shapes     of inputs that have dimensions without a number
    constants  values of inputs that no sample gives
    activations  float values by name, of the same samples, that layers are compared with instead of NumPy's

    ImportRefused says what is wrong with the model, and what to do."""
    if dtype not in DTYPES or method not in formats.METHODS:
        raise ValueError(f"dtype is one of {', '.join(DTYPES)}, method one of {', '.join(formats.METHODS)}")
    path = os.fspath(model)
    arrays = samples.items() if isinstance(samples, Mapping) else [(None, samples)]
    graph = read(path, shapes, constants, {name: np.shape(one) for name, one in arrays})
    if not graph.inputs:
        raise ImportRefused(f"{path}: the model has no input that a sample could give")
    feeds = whole(feeds_of(graph.declared, samples), graph.whole)
    if not feeds:
        raise ImportRefused("there is no sample, and formats come from samples")
    if activations and equalize:
        raise ImportRefused("--activations with --equalize: equalizing scales the values in between; leave one out")
    known = {name for node in graph.nodes for name in node.outputs} | {*graph.inputs, *graph.constants}
    fold.fold(graph, feeds[0])
    if equalize:
        fold.equalize(graph)
    given = compared.taken(graph, known, activations, len(feeds)) if activations else {}
    seen = formats.calibrated(graph, feeds[:CALIBRATE_MAX], floats.run)
    if masks.raised(graph, feeds, seen, dtype):
        seen = formats.calibrated(graph, feeds[:CALIBRATE_MAX], floats.run)
    policy = formats.chosen(dtype, graph, seen, method)
    name = os.path.splitext(os.path.basename(path))[0]
    net = Network(name)
    low = Lowering(graph, Formats(graph, seen, policy, method), net, Options(correct, by_samples, host))
    low.all()
    said = report.facts(low, path, dtype, len(feeds), len(seen.runs))
    if activations:
        said["activations"] = compared.facts(given, len(activations), seen)
    return Imported(net, graph, seen, policy, low, said, given)


# ---- the folder ----


def check_place(folder: str) -> None:
    """Refuses a folder that has something in it: nothing is overwritten."""
    if os.path.lexists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):
        raise ImportRefused(f"{folder} is there and not empty; remove it, or name another with --out")


def write(imported: Imported, folder: str, expect: bool) -> None:
    check_place(folder)
    parent = os.path.dirname(os.path.abspath(folder))
    try:
        os.makedirs(parent, exist_ok=True)
        made = tempfile.mkdtemp(prefix=".npumem-import-", dir=parent)
    except OSError as problem:
        raise ImportRefused(f"{folder}: {problem.strerror}") from None
    try:
        fill(imported, made, expect)
        os.chmod(made, 0o777 & ~umask())
        os.rename(made, folder)
    except OSError as problem:
        raise ImportRefused(f"{folder}: {problem.strerror}") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now


def fill(imported: Imported, folder: str, expect: bool) -> None:
    low = imported.lowering
    if expect:
        expectations(imported, folder)
    imported.network.write(folder)
    for name in imported.graph.inputs:
        held = low.held[name]
        np.save(os.path.join(folder, f"{held.name}.npy"), in_order(imported.samples.runs[0][name]).reshape(held.shape))
    with open(os.path.join(folder, "report.json"), "w", encoding="utf-8") as file:
        json.dump(imported.report, file, indent=1)
        file.write("\n")
    with open(os.path.join(folder, "report.txt"), "w", encoding="utf-8") as file:
        file.write(report.text(imported.report))


def expectations(imported: Imported, folder: str) -> None:
    """What each layer gives in floats for the samples, along the first axis, so that npumemctl check compares them. The
    inputs are among them: they show samples that are others."""
    low, runs, tensors = imported.lowering, imported.samples.runs, imported.network.tensors
    wanted = {
        name: held
        for name, held in low.held.items()
        if name in runs[0] and "expect" not in tensors.get(held.name, {"expect": ""})  # a view
        and (name in low.graph.inputs or "file" not in tensors[held.name])
    }  # fmt: skip
    each = 4 * sum(moves.size(held.shape) for held in wanted.values())
    n = max(1, min(len(runs), EXPECT_BYTES // max(each, 1)))
    os.makedirs(os.path.join(folder, "expect"), exist_ok=True)
    for name, held in wanted.items():
        tensors[held.name].update(expect=f"expect/{held.name}.npy", quantize=True)
        parts = imported.compared.get(name, [run[name] for run in runs])[:n]
        values = np.stack([in_order(one).reshape(held.shape) for one in parts])
        np.save(os.path.join(folder, "expect", f"{held.name}.npy"), values if n > 1 else values[0])
