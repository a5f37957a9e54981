"""How well a face detector keeps its outputs: faces.py MODEL.onnx DATA.npz [OPTIONS of npumem-import…]

DATA.npz has `images` (uint8) and the float outputs `scores` and `boxes` of each. The first 6 images give the formats; S/N
is that of the others. A face: score[1] > 0.7, after suppression at IoU 0.3; counted are the images whose faces are all
found again at IoU 0.9 and 0.8, of all images. Without options: fx16, mixed and fx8, plain and with options that help."""

import sys
import warnings

import numpy as np

import npumem
import npumem.onnx
from npumem.onnx import run
from npumem.onnx.formats import noise_db

N_CALIBRATE = 6
WAYS = {
    "fx16": {"dtype": "fx16"},
    "fx16 --equalize": {"dtype": "fx16", "equalize": True},
    "mixed": {"dtype": "mixed"},
    "mixed --equalize": {"dtype": "mixed", "equalize": True},
    "mixed --equalize --round-by-samples": {"dtype": "mixed", "equalize": True, "by_samples": True},
    "fx8": {"dtype": "fx8"},
    "fx8 --equalize": {"dtype": "fx8", "equalize": True},
    "fx8 --round-by-samples": {"dtype": "fx8", "by_samples": True},
    "fx8 --equalize --round-by-samples": {"dtype": "fx8", "equalize": True, "by_samples": True},
}


def overlaps(box, boxes):
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    both = np.prod(np.maximum(high - low, 0), 1)
    return both / (np.prod(box[2:] - box[:2]) + np.prod(boxes[:, 2:] - boxes[:, :2], 1) - both)


def faces(scores, boxes):
    kept = []
    for i in np.argsort(-scores[:, 1], kind="stable"):
        if scores[i, 1] > 0.7 and (not kept or overlaps(boxes[i], boxes[kept]).max() <= 0.3):
            kept.append(i)
    return boxes[kept]


def are_same(found, wanted, least):
    left = list(wanted)
    for box in found:
        each = overlaps(box, np.array(left)) if left else np.zeros(0)
        if not each.size or each.max() < least:
            return False
        left.pop(int(each.argmax()))
    return not left


def one(model, data, way):
    x = (data["images"].astype(np.float32) - 127) / 128
    imported = npumem.onnx.load(model, x[:N_CALIBRATE], **way)
    whole = imported.network.document()
    with npumem.spawn("--npu-bytes", str(run.per_npu(whole))) as device:
        with run.Session(device, whole, imported.report, imported.network.arrays.__getitem__) as session:
            got = [session.run({imported.graph.inputs[0]: image[None]}) for image in x]
            assert not session.wrapped
    scores, boxes = (np.concatenate([run_[name] for run_ in got]) for name in ("scores", "boxes"))
    db = [
        noise_db(data[name][N_CALIBRATE:], value[N_CALIBRATE:])
        for name, value in (("scores", scores), ("boxes", boxes))
    ]
    pairs = [(faces(s, b), faces(ws, wb)) for s, b, ws, wb in zip(scores, boxes, data["scores"], data["boxes"])]
    return db, [sum(are_same(a, b, least) for a, b in pairs) for least in (0.9, 0.8)], len(pairs)


def main():
    warnings.simplefilter("ignore")
    model, data = sys.argv[1], np.load(sys.argv[2])
    print(f"{'':36} {'scores':>8} {'boxes':>8}   images with the same faces at 0.9, 0.8")
    for name, way in WAYS.items():
        db, same, n = one(model, data, way)
        print(f"{name:36} {db[0]:5.1f} dB {db[1]:5.1f} dB   {same[0]:2}, {same[1]:2} of {n}", flush=True)


if __name__ == "__main__":
    main()
