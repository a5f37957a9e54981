"""npumem-import: an ONNX model as a network. See npumem-import(1)."""

from __future__ import annotations

import argparse
import os
import sys


LEAST_DB = 20  # of an output; below it there is a warning
DEFAULT = 512 << 10  # --npu-bytes of a private daemon that is not told


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="npumem-import",
        description="Writes an ONNX model as a network for npumemctl: network.json, arrays and a report.",
    )
    made.add_argument("model", metavar="MODEL.onnx")
    made.add_argument(
        "--samples", action="append", required=True, metavar="[NAME=]FILE",
        help="inputs that give the formats, along the first axis: an .npy, or an .npz with an array for each input",
    )  # fmt: skip
    made.add_argument(
        "--dtype", choices=("fx8", "fx16", "mixed"), default="fx16",
        help="mixed: fx8 where a layer allows, else fx16 data with fx8 weights; default: fx16",
    )  # fmt: skip
    made.add_argument("--out", metavar="DIR", help="the folder, which is made (the name of MODEL.onnx without .onnx)")
    made.add_argument(
        "--method", choices=("snr", "max", "percentile"), default="snr",
        help="frac_bits: the best S/N, or those with which the largest value, or 99.99 %% of them, fit; default: snr",
    )  # fmt: skip
    made.add_argument("--equalize", action="store_true", help="scale the channels of neighbouring layers first")
    made.add_argument(
        "--round-by-samples", action="store_true", help="round weights so that the samples' outputs change least"
    )
    made.add_argument(
        "--no-correct", action="store_true", help="leave the mean error of rounded weights out of the biases"
    )
    made.add_argument(
        "--host", action="store_true", help="run what no kernel does on the host, between two lists of operations"
    )
    made.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=N,…",
        help="the shape of an input whose dimensions have no numbers",
    )
    made.add_argument(
        "--constant",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="the value of an input that no sample changes",
    )
    made.add_argument(
        "--activations", metavar="FILE.npz",
        help="float values by name, of the same samples, that layers are compared with",
    )  # fmt: skip
    made.add_argument(
        "--no-expect", action="store_true", help="leave out the float values of the layers, for npumemctl check"
    )
    return made


def command(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    from .arguments import Fail, array_of, arrays_of, named, shape_of
    from .importing import check_place, load
    from .report import text
    from ..errors import Refused
    from .model import printable
    from .run import measured, peak_per_npu

    out = options.out or os.path.splitext(os.path.basename(options.model))[0]
    check_place(out)
    constants = {}
    for word in options.constant:
        name, path = named(word)
        value = array_of(path)
        if not name or isinstance(value, dict):
            raise Fail(f"--constant {word}: it is NAME=FILE.npy")
        constants[name] = value
    activations = arrays_of([options.activations], "--activations") if options.activations else None
    if activations is not None and not isinstance(activations, dict):
        raise Fail(f"--activations {options.activations}: it is an .npz with an array for each value")
    samples = arrays_of(options.samples, "--samples")
    for array in samples.values() if isinstance(samples, dict) else [samples]:
        if array.dtype.str not in ("<f4", "<f8", "|u1", "|b1", "<i4", "<i8"):
            raise Fail(
                f"--samples: npumemctl submit --samples reads float32, float64, uint8, bool, int32 and int64, and not "
                f"{array.dtype}: convert it with astype"
            )
    imported = load(
        options.model, samples, dtype=options.dtype, method=options.method,
        equalize=options.equalize, correct=not options.no_correct, by_samples=options.round_by_samples,
        shapes=dict(shape_of(word) for word in options.shape), constants=constants, host=options.host,
        activations=activations,
    )  # fmt: skip
    try:
        imported.report["output_db"] = measured(imported)
    except Refused as problem:  # the daemon is another package
        print(f"npumem-import: the S/N of the outputs is not known: {printable(str(problem))}", file=sys.stderr)
    imported.write(out, expect=not options.no_expect)
    print(text(imported.report).partition("\n\n")[0])
    for name, db in imported.report.get("output_db", {}).items():
        if db < LEAST_DB:
            print(
                f"npumem-import: output {printable(name)} has {db:.1f} dB, and below {LEAST_DB} dB results are often wrong: "
                "take a wider --dtype, --equalize, or other samples; npumemctl check shows which layer loses it",
                file=sys.stderr,
            )
    needs = peak_per_npu(imported.network.document())
    spawn = "--spawn" if needs <= DEFAULT else f"--spawn='--npu-bytes {needs}'"
    if imported.report["host"]:
        print(f"written to {out}: python3 -m npumem.onnx.run {out}/network.json --samples X.npy --out OUT runs it")
    else:
        print(f"written to {out}: npumemctl {spawn} check {out} --min-snr 20 compares each layer")
    return 0


def main() -> int:
    """The command. One line on stderr, and 1, where the model or a file is refused."""
    try:
        from .arguments import Fail
        from .model import ImportRefused, printable
    except ImportError as problem:
        print(f"npumem-import: {problem}", file=sys.stderr)
        return 1
    try:
        return command(sys.argv[1:])
    except (Fail, ImportRefused) as problem:
        print(f"npumem-import: {printable(str(problem))}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
