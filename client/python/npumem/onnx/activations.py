"""Float values of the layers by name, from any framework: what the layers of the network are compared with."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from .formats import Samples, noise_db
from .model import Array, Graph, ImportRefused
from .samples import separate


def taken(graph: Graph, known: Collection[str], given: Mapping[str, Array], n_samples: int) -> dict[str, list[Array]]:
    """By value of the graph: what it is for each sample. `known`: the names of the model before folding. What was
    folded into others is left out."""
    found: dict[str, list[Array]] = {}
    for name, array in given.items():
        if name not in known:
            raise ImportRefused(f"--activations: the model has no value {name}; give the names that the model has")
        if name not in graph.shapes or name in graph.constants or graph.maker(name) is None:
            continue
        found[name] = separate(name, array, graph.shapes[name])
        if len(found[name]) != n_samples:
            raise ImportRefused(
                f"--activations: {name} has {len(found[name])} samples, and --samples has {n_samples}; give both of "
                f"the same samples, in one order"
            )
    if not found:
        raise ImportRefused("--activations: none of its arrays is a value that is left after folding; give outputs")
    return found


def facts(found: Mapping[str, list[Array]], n_given: int, samples: Samples) -> dict[str, Any]:
    """How well they agree with what NumPy makes of the samples: the worst value shows samples that are others."""
    runs = samples.runs
    decibels = {
        name: noise_db(np.stack(parts[: len(runs)]), np.stack([run[name] for run in runs]))
        for name, parts in found.items()
    }
    worst = min(decibels, key=lambda name: decibels[name])
    return {"values": len(found), "folded": n_given - len(found), "least_db": round(decibels[worst], 1), "least": worst}
