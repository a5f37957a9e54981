#!/usr/bin/python3
"""Trains the demo's digit classifier and writes what the demo ships.

    train.py train DIGITS.csv.gz [DIRECTORY]   trains, quantises, writes the model (default: model/ beside it)
    train.py simulate [DIRECTORY]              the shipped model's accuracies by exact integer arithmetic
    train.py scores FORMAT [DIRECTORY]         the same, every score: `digit label predicted score0 ... score9`
    train.py export OUT.onnx [DIRECTORY]       the shipped floats as an ONNX model, for npumem-import (python3-onnx)

The test digits are set aside first and take no part in training, in choosing the epoch or in choosing frac_bits.
The simulation follows the rules of the kernels (one rounding, one saturation), not their code, so that it can
judge them. It does not talk to a daemon.
"""
import gzip
import json
import os
import sys

import numpy as np

SEED = 20
N_TEST = 400
N_VALIDATION = 200
EPOCHS = 200
BATCH = 32
LEARNING_RATE = 1e-2
WEIGHT_DECAY = 1e-4

INPUT_FRAC_BITS = 4  # a pixel 0..16 stands for 0..1, so in Q.4 it is its own value
BITS = {"fx8": 8, "fx16": 16}
ACCUMULATOR_BITS = {"fx8": 32, "fx16": 40}
CONTAINERS = {"fx8": np.int8, "fx16": np.int16}

# The network; `kernel` and `params` are npumem's, `out` is C,H,W.
LAYERS = [
    {"name": "conv1", "kernel": "conv2d", "out": [8, 8, 8], "params": {"padding": "1,1,1,1", "relu": "gen"}},
    {"name": "pool1", "kernel": "maxpool", "out": [8, 4, 4], "params": {"kernel": "2,2", "stride": "2,2"}},
    {"name": "conv2", "kernel": "conv2d", "out": [16, 4, 4], "params": {"padding": "1,1,1,1", "relu": "gen"}},
    {"name": "pool2", "kernel": "maxpool", "out": [16, 2, 2], "params": {"kernel": "2,2", "stride": "2,2"}},
    {"name": "fc", "kernel": "fully_connected", "out": [10, 1, 1], "params": {}},
]
# Weights as the kernels take them: convolutions [I,O,kh,kw], fully connected [K,M,1,1].
WEIGHTS = {"conv1": (1, 8, 3, 3), "conv2": (8, 16, 3, 3), "fc": (64, 10, 1, 1)}

ATTRIBUTION = ('The digits are part of "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, UCI '
               "Machine Learning Repository, CC BY 4.0), as packaged by Debian's python3-sklearn.")


# ---- the network's layers; x is N,C,H,W, any number type --------------------------------------------------------

def windows(x):
    """The 3x3 windows of x with a border of one zero: N,C,H,W,3,3."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))


def convolve(x, weights):
    return np.tensordot(windows(x), weights, axes=([1, 4, 5], [0, 2, 3])).transpose(0, 3, 1, 2)


def pool(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


def products(layer, x, weights):
    """The sums of a layer with weights, before its bias."""
    if layer["kernel"] == "conv2d":
        return convolve(x, weights)
    flat = x.reshape(x.shape[0], -1)
    return (flat @ weights[:, :, 0, 0])[:, :, None, None]


# ---- training in float ------------------------------------------------------------------------------------------

def forward_float(model, x):
    """Every layer's output, and what it was before relu."""
    outputs, sums = [], []
    for layer in LAYERS:
        if layer["kernel"] == "maxpool":
            x = pool(x)
            sums.append(x)
        else:
            weights, bias = model[layer["name"]]
            x = products(layer, x, weights) + bias
            sums.append(x)
            if layer["params"].get("relu") == "gen":
                x = np.maximum(x, 0)
        outputs.append(x)
    return outputs, sums


def scores_float(model, x):
    return forward_float(model, x)[0][-1][:, :, 0, 0]


def gradients(model, x, labels):
    """The cross entropy's gradients over one batch: {layer: [weights, bias]}."""
    outputs, _ = forward_float(model, x)
    inputs = [x] + outputs[:-1]
    scores = outputs[-1][:, :, 0, 0]
    softmax = np.exp(scores - scores.max(axis=1, keepdims=True))
    softmax /= softmax.sum(axis=1, keepdims=True)
    softmax[np.arange(len(labels)), labels] -= 1
    back = (softmax / len(labels))[:, :, None, None]
    result = {}
    for layer, entered, left in reversed(list(zip(LAYERS, inputs, outputs))):
        if layer["kernel"] == "maxpool":
            spread = left.repeat(2, axis=2).repeat(2, axis=3)
            back = back.repeat(2, axis=2).repeat(2, axis=3) * (entered == spread)
            continue
        if layer["params"].get("relu") == "gen":
            back = back * (left > 0)
        weights, bias = model[layer["name"]]
        bias_gradient = back.sum(axis=(0, 2, 3)).reshape(bias.shape)
        if layer["kernel"] == "conv2d":
            weights_gradient = np.tensordot(windows(entered), back, axes=([0, 2, 3], [0, 2, 3]))
            weights_gradient = weights_gradient.transpose(0, 3, 1, 2)
            back = convolve(back, weights.transpose(1, 0, 2, 3)[:, :, ::-1, ::-1])
        else:
            flat = entered.reshape(entered.shape[0], -1)
            weights_gradient = (flat.T @ back[:, :, 0, 0]).reshape(weights.shape)
            back = (back[:, :, 0, 0] @ weights[:, :, 0, 0].T).reshape(entered.shape)
        result[layer["name"]] = [weights_gradient, bias_gradient]
    return result


def shifted(x, random):
    """Every other picture moved by up to one pixel, so that 1,200 digits go further."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    moved = x.copy()
    for i, (down, right) in enumerate(random.randint(0, 3, size=(len(x), 2))):
        if random.randint(2):
            moved[i] = padded[i, :, down:down + 8, right:right + 8]
    return moved


def initial(random):
    model = {}
    for name, shape in WEIGHTS.items():
        fan_in = shape[0] * shape[2] * shape[3]
        model[name] = [random.normal(0, np.sqrt(2 / fan_in), shape), np.zeros((1, shape[1], 1, 1))]
    return model


def train(x, labels, validation_x, validation_labels, random):
    """Adam; the epoch with the lowest loss on the validation digits is kept."""
    model = initial(random)
    first = {name: [np.zeros_like(p) for p in pair] for name, pair in model.items()}
    second = {name: [np.zeros_like(p) for p in pair] for name, pair in model.items()}
    step, best_loss, best = 0, np.inf, None
    for epoch in range(EPOCHS):
        rate = LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        order = random.permutation(len(x))
        for start in range(0, len(x), BATCH):
            batch = order[start:start + BATCH]
            step += 1
            for name, pair in gradients(model, shifted(x[batch], random), labels[batch]).items():
                for i, gradient in enumerate(pair):
                    m = first[name][i] = 0.9 * first[name][i] + 0.1 * gradient
                    v = second[name][i] = 0.999 * second[name][i] + 0.001 * gradient ** 2
                    move = (m / (1 - 0.9 ** step)) / (np.sqrt(v / (1 - 0.999 ** step)) + 1e-8)
                    model[name][i] -= rate * (move + WEIGHT_DECAY * model[name][i])
        scores = scores_float(model, validation_x)
        top = scores.max(axis=1)
        sums = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
        loss = np.mean(sums - scores[np.arange(len(scores)), validation_labels])
        right = np.mean(scores.argmax(axis=1) == validation_labels)
        if loss < best_loss:
            best_loss, best = loss, {name: [p.copy() for p in pair] for name, pair in model.items()}
        if epoch % 25 == 24:
            print(f"epoch {epoch + 1}: validation loss {loss:.4f}, accuracy {100 * right:.1f} %", flush=True)
    return best


# ---- fixed point ------------------------------------------------------------------------------------------------

def frac_bits_for(values, bits):
    """The most frac_bits with which every value still fits the container."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    for frac_bits in range(30, -1, -1):
        scaled = np.rint(np.asarray(values, dtype=np.float64) * 2.0 ** frac_bits)
        if scaled.min() >= low and scaled.max() <= high:
            return frac_bits
    raise ValueError("the values do not fit the container")


def quantise(model, sums, form):
    """Per tensor frac_bits and the container's integers, from the weights and what the training digits make of
    them: the range before relu, for the one saturation comes first."""
    tensors, frac_bits = {}, {}
    coming = INPUT_FRAC_BITS
    for layer, values in zip(LAYERS, sums):
        name = layer["name"]
        if layer["kernel"] == "maxpool":
            frac_bits[name] = {"out": coming}
            continue
        weights, bias = model[name]
        of_weights = frac_bits_for(weights, BITS[form])
        of_bias = min(frac_bits_for(bias, BITS[form]), coming + of_weights)
        # No more than the accumulator has: a left shift at the output would only make up digits.
        of_out = min(frac_bits_for(values, BITS[form]), coming + of_weights)
        frac_bits[name] = {"weights": of_weights, "bias": of_bias, "out": of_out}
        tensors[name] = [np.rint(weights * 2.0 ** of_weights).astype(CONTAINERS[form]),
                         np.rint(bias * 2.0 ** of_bias).astype(CONTAINERS[form])]
        coming = of_out
    return tensors, frac_bits


def round_shift(x, n):
    """x / 2^n, half to even."""
    if n <= 0:
        return x << -n
    quotient, rest, half = x >> n, x & ((1 << n) - 1), 1 << (n - 1)
    return quotient + ((rest > half) | ((rest == half) & (quotient & 1 == 1)))


def forward_fixed(tensors, frac_bits, pixels, form):
    """The scores as integers, and how many outputs of all layers were saturated. Refuses to wrap."""
    low, high = -(1 << (BITS[form] - 1)), (1 << (BITS[form] - 1)) - 1
    limit = 1 << (ACCUMULATOR_BITS[form] - 1)
    x, coming, saturated = pixels.astype(np.int64), INPUT_FRAC_BITS, 0
    for layer in LAYERS:
        if layer["kernel"] == "maxpool":
            x = pool(x)
            continue
        weights, bias = (t.astype(np.int64) for t in tensors[layer["name"]])
        bits = frac_bits[layer["name"]]
        sums = products(layer, x, weights) + (bias << (coming + bits["weights"] - bits["bias"]))
        if sums.min() < -limit or sums.max() >= limit:
            raise OverflowError(f"{layer['name']}: the accumulator wraps")
        x = round_shift(sums, coming + bits["weights"] - bits["out"])
        saturated += int(((x < low) | (x > high)).sum())
        x = np.clip(x, low, high)
        if layer["params"].get("relu") == "gen":
            x = np.maximum(x, 0)
        coming = bits["out"]
    return x[:, :, 0, 0], saturated


# ---- files ------------------------------------------------------------------------------------------------------

def read_digits(path):
    with gzip.open(path, "rt", encoding="ascii") as file:
        rows = np.loadtxt(file, delimiter=",", dtype=np.float64).astype(np.uint8)
    return rows[:, :64].reshape(-1, 1, 8, 8), rows[:, 64]


def save(directory, model, formats, pixels, labels):
    os.makedirs(directory, exist_ok=True)
    np.save(os.path.join(directory, "digits.npy"), pixels)
    np.save(os.path.join(directory, "labels.npy"), labels)
    for form, tensors in [("float", model)] + [(form, tensors) for form, (tensors, _) in formats.items()]:
        for name, pair in tensors.items():
            for role, values in zip(("weights", "bias"), pair):
                kept = values.astype("<f4") if form == "float" else values
                np.save(os.path.join(directory, f"{form}.{name}.{role}.npy"), kept)
    layers = [dict(layer, frac_bits={form: bits[layer["name"]] for form, (_, bits) in formats.items()})
              for layer in LAYERS]
    # A layer a line: json has no such form of its own.
    rows = ",\n".join("    " + json.dumps(layer) for layer in layers)
    with open(os.path.join(directory, "model.json"), "w", encoding="ascii") as file:
        file.write('{\n  "attribution": ' + json.dumps(ATTRIBUTION) + ",\n"
                   f'  "input": {{"shape": [1, 8, 8], "frac_bits": {INPUT_FRAC_BITS}}},\n'
                   f'  "layers": [\n{rows}\n  ]\n}}\n')


def load(directory):
    """The shipped digits, labels and tensors: {format: (tensors, frac_bits)}."""
    def array(name):
        return np.load(os.path.join(directory, name + ".npy"))

    with open(os.path.join(directory, "model.json"), encoding="ascii") as file:
        layers = json.load(file)["layers"]
    formats = {}
    for form in ("float", "fx8", "fx16"):
        tensors = {name: [array(f"{form}.{name}.weights"), array(f"{form}.{name}.bias")] for name in WEIGHTS}
        formats[form] = (tensors, {layer["name"]: layer["frac_bits"].get(form) for layer in layers})
    return array("digits"), array("labels"), formats


# ---- the commands -----------------------------------------------------------------------------------------------

def command_train(source, directory):
    pixels, labels = read_digits(source)
    random = np.random.RandomState(SEED)
    order = random.permutation(len(pixels))
    test, validation, rest = np.split(order, [N_TEST, N_TEST + N_VALIDATION])
    real = pixels / 16.0
    model = train(real[rest], labels[rest], real[validation], labels[validation], random)
    model = {name: [p.astype(np.float32).astype(np.float64) for p in pair] for name, pair in model.items()}
    _, sums = forward_float(model, real[order[N_TEST:]])
    formats = {form: quantise(model, sums, form) for form in BITS}
    print(f"{len(rest)} digits trained on, {len(validation)} to choose the epoch, {len(test)} for the test")
    save(directory, model, formats, pixels[test], labels[test])


def command_simulate(directory):
    pixels, labels, formats = load(directory)
    scores = scores_float(formats["float"][0], (pixels / 16).astype(np.float32))
    print(f"float: {(scores.argmax(axis=1) == labels).sum()} of {len(labels)} right")
    for form in BITS:
        scores, saturated = forward_fixed(*formats[form], pixels, form)
        print(f"{form}: {(scores.argmax(axis=1) == labels).sum()} of {len(labels)} right, {saturated} saturated")


def command_scores(form, directory):
    pixels, labels, formats = load(directory)
    scores, _ = forward_fixed(*formats[form], pixels, form)
    for i, row in enumerate(scores):
        print(i, labels[i], row.argmax(), *row)


def command_export(path, directory):
    """The input is the pixels over 16, [1,1,8,8]; the output is the scores, [1,10]."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    model, nodes, constants, coming = load(directory)[2]["float"][0], [], {}, "digit"
    for layer in LAYERS:
        name, given = layer["name"], {key: [int(n) for n in value.split(",")]
                                      for key, value in layer["params"].items() if key != "relu"}
        if layer["kernel"] == "maxpool":
            nodes.append(helper.make_node("MaxPool", [coming], [name], name, kernel_shape=given["kernel"],
                                          strides=given["stride"]))
        else:
            weights, bias = model[name]
            constants[name + ".bias"] = bias.reshape(-1)
            ins, dense = [name + ".weights", name + ".bias"], layer["kernel"] == "fully_connected"
            constants[ins[0]] = weights[:, :, 0, 0] if dense else weights.transpose(1, 0, 2, 3)
            if dense:
                nodes.append(helper.make_node("Flatten", [coming], [name + ".flat"]))
                nodes.append(helper.make_node("Gemm", [name + ".flat", *ins], ["scores"], name))
            else:
                nodes.append(helper.make_node("Conv", [coming, *ins], [name], name, pads=given["padding"]))
        coming = name
        if layer["params"].get("relu") == "gen":
            coming = name + ".relu"
            nodes.append(helper.make_node("Relu", [name], [coming]))
    of = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "digits", [of("digit", TensorProto.FLOAT, [1, 1, 8, 8])],
                              [of("scores", TensorProto.FLOAT, [1, 10])],
                              [numpy_helper.from_array(np.ascontiguousarray(v, np.float32), k) for k, v in constants.items()])
    onnx.save_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7), path)


def main(arguments):
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model")
    if arguments[:1] == ["train"] and len(arguments) in (2, 3):
        directory = (arguments[2:] or [here])[0]
        command_train(arguments[1], directory)
        command_simulate(directory)
    elif arguments[:1] == ["simulate"] and len(arguments) in (1, 2):
        command_simulate((arguments[1:] or [here])[0])
    elif arguments[:1] == ["export"] and len(arguments) in (2, 3):
        command_export(arguments[1], (arguments[2:] or [here])[0])
    elif arguments[:1] == ["scores"] and len(arguments) in (2, 3) and arguments[1] in BITS:
        command_scores(arguments[1], (arguments[2:] or [here])[0])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
