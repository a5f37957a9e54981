"""Golden vectors: JSON files of cases, each a kernel with its tensors, parameters and expected outputs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, Optional, Union

import numpy as np

from .kernels import PARAMETERS, ROLES, Result, run
from .tensor import Format, Refused, Shape, Tensor, shape4

Json = dict[str, Any]

# A tensor's dims by their names: which of them is N, C, H and W; "-": that extent is 1.
DIMS = {
    "N,C,H,W": "0123",
    "O,I,H,W": "1023",  # weights lie [I,O,kh,kw]
    "N": "-0--",
    "M": "-0--",
    "O": "-0--",
    "S": "-0--",
    "M,N": "10--",  # weights of a fully connected layer lie [K,M,1,1]
    "T,N": "01--",
    "T,M": "01--",
    "G,M": "01--",
    "G,M,N": "01-2",
    "G,M,K": "01-2",
    "G,M,N+M": "01-2",
    "M,N+M": "-0-1",
    "d0,d1,d2": "-012",
    "e0,e1,e2": "-012",
    "d0,d1,d2,d3": "0123",
    "e0,e1,e2,e3": "0123",
    "one,K": "-1--",
    "N,K": "-0-1",
    "C,K": "-0-1",
    "H,K": "-0-1",
    "W,K": "-0-1",
}
RENAMED = {"perm_dim": "perm", "luts": "lut"}
# Parameters that repeat the tensors' shapes, and remarks.
REMARKS = ("scalar_operand", "op", "inputs_num", "gate_order", "index_encoding")


def read_tensor(json_tensor: Json) -> Tensor:
    dims, shape = ",".join(json_tensor["dims"]), json_tensor["shape"]
    places = DIMS[dims]
    dtype = {"i32": "int32"}.get(json_tensor["dtype"], json_tensor["dtype"])
    values = np.array(json_tensor["data"], np.float32 if dtype == "fp32" else np.int64).reshape(shape)
    order = [int(place) for place in places if place != "-"]
    order += [d for d in range(len(shape)) if d not in order]  # of extent 1
    extents = shape4(tuple(1 if place == "-" else shape[int(place)] for place in places))
    values = values.transpose(order).reshape(extents)
    return Tensor(dtype, json_tensor.get("frac_bits"), extents, values)


def read_parameter(kernel: str, name: str, value: Any) -> Optional[tuple[str, Any]]:
    """A parameter under npumem's name; None for a remark."""
    name = RENAMED.get(name, name)
    known = name in PARAMETERS[kernel]
    is_remark = name in REMARKS or value is None or (name in ("groups", "lut") and not known)
    if is_remark or (name == "dilation" and not known and list(value) == [1, 1]):
        return None
    if not known:
        raise ValueError(f"{kernel} has no such parameter: {name}")
    if isinstance(value, dict):
        return name, tuple(value[side] for side in ("top", "bottom", "left", "right"))
    if name == "lut":
        text = value if isinstance(value, str) else value[0]
        return name, text[text.index("mli") :]
    return name, value.lower() if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


def arguments(case: Json) -> tuple[str, dict[str, Any], dict[str, Tensor]]:
    """A case as run takes it, and its expected outputs by role."""
    kernel = case["kernel"]
    given: dict[str, Any] = {}
    expected: dict[str, Tensor] = {}
    if kernel not in ROLES:
        raise ValueError(f"there is no kernel {kernel!r}")
    roles = {role.strip(">?*"): role for role in ROLES[kernel]}
    for role, json_tensor in case["tensors"].items():
        x, family = read_tensor(json_tensor), role.rstrip("0123456789")
        if json_tensor["role"] == "output":
            expected[role] = x
            given[role] = Format(x.dtype, x.frac_bits, x.shape)
        elif role not in roles and roles.get(family, "").endswith("*"):
            given.setdefault(family + "_", []).append(x)
        else:
            given[role + "_"] = x
    for name, value in case["params"].items():
        pair = read_parameter(kernel, name, value)
        if pair:
            given[pair[0]] = pair[1]
    if kernel == "lstm_cell" and "weights" in case["tensors"]:
        given["rules"] = "mli1_1"
    if "act" in PARAMETERS[kernel]:
        given.setdefault("act", "none")
    if case.get("rounding", "any") != "any":
        given["rounding"] = case["rounding"]
    return kernel, given, expected


def difference(case: Json) -> str:
    """Runs a case. The first difference from the expected outputs; empty if there is none."""
    try:
        kernel, given, expected = arguments(case)
        result = run(kernel, **given)
    except (Refused, ValueError, KeyError, TypeError) as problem:
        return f"{type(problem).__name__}: {problem}"
    return unequal(result, expected)


def unequal(result: Result, expected: dict[str, Tensor]) -> str:
    for role, want in expected.items():
        is_, wrong = result.outputs[role].values, result.outputs[role].values != want.values
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            return f"{role}{list(at)} is {is_[at]}, {want.values[at]} is expected"
    return ""


def cases(paths: list[str]) -> Iterator[tuple[str, Json]]:
    """The cases of files, and of the *.json files in folders, which may hold other files, too."""
    for path in paths:
        if os.path.isdir(path):
            names = sorted(name for name in os.listdir(path) if not name.startswith("."))
            yield from cases(
                [os.path.join(path, name) for name in names if name.endswith(".json") or "." not in name]
            )
        elif path.endswith(".json") or os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                whole = json.load(file)
            if isinstance(whole, dict) and isinstance(whole.get("family"), str):
                yield from ((path, case) for case in whole.get("cases", []))


# ---- writing ----


def write_tensor(x: Tensor, output: bool) -> Json:
    written: Json = {"role": "output" if output else "input", "dtype": x.dtype, "dims": list("NCHW")}
    written["shape"] = list(x.values.shape)
    if x.frac_bits is not None:
        written["frac_bits"] = x.frac_bits
    written["data"] = x.values.reshape(-1).tolist()
    return written


def written(name: str, kernel: str, given: dict[str, Any], result: Result) -> Json:
    """A run of tensors and parameters as a case that npumemctl conform takes."""
    tensors: Json = {}
    params: Json = {}
    rounding: Union[str, Any] = "any"
    for word, value in given.items():
        role = word.rstrip("_")
        if isinstance(value, Tensor):
            tensors[role] = write_tensor(value, False)
        elif isinstance(value, list) and value and isinstance(value[0], Tensor):
            tensors.update({f"{role}{i}": write_tensor(one, False) for i, one in enumerate(value)})
        elif role == "rounding":
            rounding = value
        elif role == "padding":
            params[role] = dict(zip(("top", "bottom", "left", "right"), value))
        elif role != "rules" and not isinstance(value, Format):
            params[role] = list(value) if isinstance(value, tuple) else value
    tensors.update({role: write_tensor(x, True) for role, x in result.outputs.items()})
    first = next(iter(tensors.values()))
    return {
        "name": name, "kernel": kernel, "dtype": first["dtype"], "rounding": rounding, "tags": [], "params": params,
        "tensors": tensors,
    }  # fmt: skip


def family(kernel: str, one: list[Json], source: str) -> Json:
    return {"family": kernel, "format": 1, "source": source, "layout": "N,C,H,W", "case_count": len(one), "cases": one}


__all__ = ["Shape", "arguments", "cases", "difference", "family", "unequal", "written"]
