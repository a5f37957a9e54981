"""Runs an imported network on samples: python3 -m npumem.onnx.run DIR/network.json --samples X.npy --out OUT

Constants are written once; each sample is one request after the other. Outputs have the model's shapes, with the
samples along the first axis."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np

from ..address import connect, spawn
from ..device import Device
from ..errors import Refused
from ..formats import quantize_counted
from ..tensor import Tensor
from . import host
from .arguments import Fail, array_of, arrays_of
from .formats import noise_db
from .importing import Imported
from .model import Array, ImportRefused, printable
from .samples import feeds_of

Json = dict[str, Any]
OPERATIONS_MAX = 256  # of one request
READ_MAX = 1 << 22  # elements that one reads in all: a reply has 16 MiB


class Session:
    """A network on a device. All its tensors are there until it is closed.

    whole    network.json
    report   report.json: the shapes of inputs and outputs
    load     gives the array of a file"""

    def __init__(self, device: Device, whole: Json, report: Json, load: Any) -> None:
        self.device, self.whole, self.report, self.load = device, whole, report, load
        self.parts = parts([one for one in whole["operations"] if "view" not in one])
        self.tensors: dict[str, Tensor] = {}
        self.saturated = self.wrapped = self.inputs_saturated = 0
        fed = {one["tensor"] for one in report["inputs"].values()}
        try:
            for name, one in whole["tensors"].items():
                self.declare(name, one, None if name in fed else one.get("file"), load)
            for one in whole["operations"]:
                if "view" in one:
                    self.tensors[one["view"]] = self.view(one)
        except BaseException:
            self.close()
            raise

    def declare(self, name: str, one: Json, file: Optional[str], load: Any) -> None:
        tensor = self.device.alloc(
            shape=tuple(one["shape"]),
            dtype=one["dtype"],
            frac_bits=one.get("frac_bits"),
            layout=one.get("layout", "aligned"),
        )
        self.tensors[name] = tensor
        if file:
            tensor.write(load(file))

    def view(self, one: Json) -> Tensor:
        base = self.tensors[one["of"]]
        if "frac_bits" in one:
            return base.with_frac_bits(one["frac_bits"])
        if "shape" in one:
            n, c, h, w = one["shape"]
            return base.reshape((n, c, h, w))
        return base.view(tuple(slice(a, b) for a, b in zip(one["from"], one["to"])))

    def close(self) -> None:
        bases = [t for t in self.tensors.values() if not t.message.base_handle]
        for i in range(0, len(bases), 256):
            self.device.free(*bases[i : i + 256])
        self.tensors = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def given(self, one: Json) -> Json:
        """The arguments of a run: tensors in place of their names."""
        found: Json = {}
        for key, value in one.items():
            if key in ("run", "name", "comment"):
                continue
            if isinstance(value, str) and value in self.tensors and key not in ("axis", "act", "relu", "direction"):
                found[key + "_"] = self.tensors[value]
            elif isinstance(value, list) and value and isinstance(value[0], str) and key != "axes":
                found[key + "_"] = [self.tensors[name] for name in value]
            else:
                found[key] = value
        return found

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs of one sample, by their names."""
        for name, one in self.report["inputs"].items():
            tensor = self.tensors[one["tensor"]]
            values, n = quantize_counted(feeds[name], tensor.dtype, tensor.frac_bits or 0, self.whole["rounding"])
            self.inputs_saturated += n
            tensor.write(values.reshape(tensor.shape))
        read: dict[str, Array] = {}
        large: list[Json] = []  # reads that no reply to a list has room for
        hosted: dict[str, Array] = {}  # what steps on the host give
        for part in self.parts:
            results, room = Json(), READ_MAX
            if "host" in part[0]:
                self.on_host(part[0], hosted)
                continue
            with self.device.submit() as batch:
                for one in part:
                    if "run" in one:
                        batch.run(one["run"], rounding=self.whole["rounding"], **self.given(one))
                    elif "copy" in one:
                        batch.copy(self.tensors[one["copy"]], self.tensors[one["from"]])
                    elif "fill" in one:
                        batch.fill(self.tensors[one["fill"]], one["value"])
                    elif (room := room - int(np.prod(self.tensors[one["read"]].shape))) >= 0:
                        results[one["file"]] = batch.read(self.tensors[one["read"]], real=True)
                    else:
                        large.append(one)
            self.saturated += sum(done.saturated for done in batch.done)
            self.wrapped += sum(done.wrapped for done in batch.done)
            read.update({file: result.value for file, result in results.items()})
        read.update({one["file"]: self.tensors[one["read"]].read(real=True) for one in large})
        return {
            name: hosted[name] if name in hosted else read[one["file"]].reshape(one["shape"])
            for name, one in self.report["outputs"].items()
        }

    def on_host(self, one: Json, values: dict[str, Array]) -> None:
        """A step between two lists: `values` gets its results, the device those that kernels need."""
        for part in one["reads"]:
            x = self.tensors[part["tensor"]].read(real=True).reshape(part["shape"])
            values[part["value"]] = x.astype(part["dtype"]) if part["dtype"].startswith("float") else rounded(x, part)
        values.update(host.run(one, {**values, **{name: self.load(f) for name, f in one["constants"].items()}}))
        for part in one["writes"]:
            tensor = self.tensors[part["tensor"]]
            reals = np.asarray(values[part["value"]], np.float32)
            integers, n = quantize_counted(reals, tensor.dtype, tensor.frac_bits or 0, self.whole["rounding"])
            self.saturated += n
            tensor.write(integers.reshape(tensor.shape))


def rounded(x: Array, part: Json) -> Array:
    """The integers, or truths, of a value that came from the device."""
    return np.asarray(np.rint(x).astype(part["dtype"]))


def parts(operations: list[Json]) -> list[list[Json]]:
    """Lists of one request each; a step on the host is one of its own."""
    made: list[list[Json]] = []
    for one in operations:
        if not made or "host" in one or "host" in made[-1][0] or len(made[-1]) == OPERATIONS_MAX:
            made.append([])
        made[-1].append(one)
    return made


def per_npu(whole: Json, size: int = 1 << 20) -> int:
    """Bytes of local memory with which all tensors fit 64 NPUs, with room to spare; at least `size`."""
    total = 0
    for one in whole["tensors"].values():
        n, c, h, w = one["shape"]
        each = h * w * {"fx8": 1, "fx16": 2, "int32": 4}[one["dtype"]]
        total += n * -(-(c + 63) // 64) * -(-each // 128) * 128
    while size < 2 * total:
        size *= 2
    return size


def peak_per_npu(whole: Json) -> int:
    """The same where npumemctl runs it: a tensor is there from its first operation to its last one."""
    used: dict[str, list[int]] = {}
    for i, one in enumerate(whole["operations"]):
        for word in one.values():
            for name in word if isinstance(word, list) else [word]:
                if isinstance(name, str) and name in whole["tensors"]:
                    used.setdefault(name, []).append(i)
    return max(
        (
            per_npu({"tensors": {name: whole["tensors"][name] for name, at in used.items() if at[0] <= i <= at[-1]}}, 512 << 10)
            for i in range(len(whole["operations"]))
        ),
        default=0,
    )


def measured(imported: Imported) -> dict[str, float]:
    """The S/N in dB of each output against floats, over the samples that gave the formats, on a private daemon. An output
    whose shape depends on the data has none."""
    whole, runs = imported.network.document(), imported.samples.runs
    with spawn("--npu-bytes", str(per_npu(whole))) as device:
        with Session(device, whole, imported.report, imported.network.arrays.__getitem__) as session:
            got = [session.run({name: np.asarray(one[name], np.float32) for name in imported.graph.inputs}) for one in runs]
    return {
        name: round(noise_db(np.stack([one[name] for one in runs]), np.stack([one[name] for one in got])), 1)
        for name in imported.graph.outputs
        if all(np.shape(a[name]) == np.shape(b[name]) == np.shape(got[0][name]) for a, b in zip(runs, got))
    }


# ---- the command ----


def stacked(parts: list[Array], shape: list[int]) -> Array:
    """Samples along the first axis: in place of a first extent of 1, or before the shape."""
    return np.concatenate(parts) if shape and shape[0] == 1 else np.stack(parts)


def read_json(path: str) -> Json:
    try:
        with open(path, encoding="utf-8") as file:
            return dict(json.load(file))
    except OSError as problem:
        raise Fail(f"{path}: {problem.strerror}") from None
    except ValueError:
        raise Fail(f"{path}: the file is not a JSON object; give the network.json that npumem-import wrote") from None


def outputs_of(report: Json, path: str) -> dict[str, str]:
    """The files that outputs go into, which lie in --out whatever a report says."""
    files = {name: str(one["file"]) for name, one in report["outputs"].items()}
    for file in files.values():
        if os.path.basename(file) != file or not file.endswith(".npy"):
            raise Fail(f"{path}: the output file {file} is not NAME.npy; give what npumem-import wrote")
    return files


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python3 -m npumem.onnx.run", description="Runs an imported network on samples."
    )
    made.add_argument("network", help="network.json of an import")
    made.add_argument(
        "--samples", action="append", required=True, metavar="[NAME=]FILE", help="an .npy, or an .npz by name"
    )
    made.add_argument("--out", required=True, metavar="DIR", help="where the outputs are written, NAME.npy each")
    made.add_argument("--socket", metavar="PATH", help="a daemon that runs; without it a private one is started")
    made.add_argument(
        "--expect", action="append", default=[], metavar="NAME=FILE", help="an output's float values: tells its S/N"
    )
    return made


def command(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    whole = read_json(options.network)
    folder = os.path.dirname(os.path.abspath(options.network))
    report = read_json(os.path.join(folder, "report.json"))
    files = outputs_of(report, os.path.join(folder, "report.json"))
    declared = {name: tuple(one["shape"]) for name, one in report["inputs"].items()}
    feeds = feeds_of(declared, arrays_of(options.samples, "--samples"))
    device = connect(options.socket) if options.socket else spawn("--npu-bytes", str(per_npu(whole)))
    outputs: dict[str, list[Array]] = {name: [] for name in report["outputs"]}
    with device, Session(device, whole, report, lambda file: array_of(os.path.join(folder, file))) as session:
        for one in feeds:
            for name, value in session.run(one).items():
                outputs[name].append(value)
        print(
            f"{len(feeds)} samples; saturated: {session.inputs_saturated} inputs, {session.saturated} results; "
            f"{session.wrapped} sums wrapped"
        )
    wanted = arrays_of(options.expect, "--expect") if options.expect else {}
    os.makedirs(options.out, exist_ok=True)
    for name, parts in outputs.items():
        if len({part.shape for part in parts}) > 1:  # of the host: as many boxes as a picture has
            for i, part in enumerate(parts):
                np.save(os.path.join(options.out, f"{files[name][:-4]}.{i}.npy"), part)
            shapes = ", ".join(str(list(part.shape)) for part in parts[:4])
            print(f"{printable(name)} {len(parts)} files: {shapes}, …")
            continue
        whole_output = stacked(parts, report["outputs"][name]["shape"])
        np.save(os.path.join(options.out, files[name]), whole_output)
        db = ""
        if isinstance(wanted, Mapping) and name in wanted:
            db = f", S/N {noise_db(wanted[name].reshape(whole_output.shape), whole_output):.1f} dB"
        print(f"{printable(name)} {list(whole_output.shape)}{db}")
    return 0


def main() -> int:
    try:
        return command(sys.argv[1:])
    except (Fail, ImportRefused, Refused) as problem:
        full = isinstance(problem, Refused) and "largest_free_bytes" in problem.fields
        hint = "; a daemon with larger --npu-bytes has room (without --socket one is started)" if full else ""
        print(f"npumem.onnx.run: {printable(str(problem))}{hint}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
