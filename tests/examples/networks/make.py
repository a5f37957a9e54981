#!/usr/bin/python3
"""Makes the example networks beside this file: make.py [DIRECTORY].

digits_fx8, digits_fx16: the demo's network with ten digits. picture: convolutions, pooling and a softmax head, as
CIFAR-10's quick network has them. motion: fully connected layers and two LSTM layers, as for a phone's sensors. The
weights of the latter two are random, from a fixed seed. Every expected output is computed here, in integers, by the
rules of the specification; nothing of npumem is used.
"""

import json
import os
import sys

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
DEMO = os.path.join(HERE, "..", "..", "demo")
SEED = 20260
N_DIGITS = 10

# ---- the rules ----------------------------------------------------------------------------------------------------


def rounded(x, n):
    """x / 2^n, half to even; for n <= 0 a left shift."""
    x = np.asarray(x, dtype=np.int64)
    if n <= 0:
        return x << -n
    quotient, rest, half = x >> n, x & ((1 << n) - 1), 1 << (n - 1)
    return quotient + ((rest > half) | ((rest == half) & (quotient & 1 == 1)))


def clamped(x, bits):
    return np.clip(x, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def windows(x, kernel, stride, padding, outside=0):
    """The windows of x [N,C,H,W] and which of their points are valid: [N,C,Ho,Wo,kh,kw]."""
    top, bottom, left, right = padding
    borders = ((0, 0), (0, 0), (top, bottom), (left, right))
    result = []
    for values, border in ((x, outside), (np.ones(x.shape, np.int64), 0)):
        padded = np.pad(values, borders, constant_values=border)
        view = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(2, 3))
        result.append(view[:, :, :: stride[0], :: stride[1]])
    return result


def conv2d(x, weights, bias, bits, frac_bits, stride=(1, 1), padding=(0, 0, 0, 0), relu=False):
    """weights [I,O,kh,kw], bias [1,O,1,1]; frac_bits of in, weights, bias, out."""
    f_in, f_weights, f_bias, f_out = frac_bits
    seen, _ = windows(x.astype(np.int64), weights.shape[2:], stride, padding)
    sums = np.tensordot(seen, weights.astype(np.int64), axes=([1, 4, 5], [0, 2, 3])).transpose(0, 3, 1, 2)
    sums = sums + (bias.astype(np.int64) << (f_in + f_weights - f_bias))
    y = clamped(rounded(sums, f_in + f_weights - f_out), bits)
    return np.maximum(y, 0) if relu else y


def fully_connected(x, weights, bias, bits, frac_bits, relu=False):
    """weights [K,M,1,1]."""
    flat = x.reshape(x.shape[0], -1, 1, 1)
    return conv2d(flat, weights, bias, bits, frac_bits, relu=relu)


def maxpool(x, kernel, stride, padding=(0, 0, 0, 0)):
    seen, _ = windows(x.astype(np.int64), kernel, stride, padding, outside=-(1 << 40))
    return seen.max(axis=(4, 5))


def avepool(x, kernel, stride, bits, padding=(0, 0, 0, 0)):
    """By the library's reciprocal of 15 significant bits, with the formats of in and out equal."""
    seen, valid = windows(x.astype(np.int64), kernel, stride, padding)
    sums, counts = seen.sum(axis=(4, 5)), valid.sum(axis=(4, 5))
    result = np.zeros_like(sums)
    for index in np.ndindex(sums.shape):
        n = int(counts[index])
        multiplier, shift = 1 << 14, 14
        if n > 1:
            value, places = (1 << 31) // n, 0
            while not value >> 31:
                value, places = value << 1, places + 1
            multiplier, shift = value >> 17, 14 + places
        result[index] = clamped(rounded(sums[index] * multiplier, shift), bits)
    return result


def table(function, size, q, offset):
    x = (np.arange(size) - offset) / 2.0**q
    return q, offset, np.clip(np.floor(function(x) * 32768 + 0.5), -32768, 32767).astype(np.int64)


SIGMOID = table(lambda x: 1 / (1 + np.exp(-x)), 320, 4, 160)
TANH = table(np.tanh, 344, 5, 172)
EXP = table(np.exp, 358, 5, 356)


def looked_up(x, which, frac_bits):
    """f(x) in Q.15 by a table, with linear interpolation."""
    q, offset, values = which
    x, d = np.asarray(x, dtype=np.int64), frac_bits - q
    if d <= 0:
        return values[np.clip((x << -d) + offset, 0, len(values) - 1)]
    if d > 15:
        x, d = x >> min(d - 15, 15), 15
    index = np.clip((x >> d) + offset, 0, len(values) - 2)
    low, high = values[index], values[index + 1]
    return low - clamped(rounded((low - high) * (x & ((1 << d) - 1)), d), 16)


def softmax(x, frac_bits):
    """fx16, along C of [N,C,1,1]; Q.15."""
    exponentials = looked_up(x.astype(np.int64) - x.max(axis=1, keepdims=True), EXP, frac_bits)
    result = np.zeros_like(exponentials)
    for n in range(x.shape[0]):
        total = int(exponentials[n].sum())
        bits = total.bit_length()
        mantissa = min(int(rounded(total, bits - 15)), 32767)
        reciprocal = min((1 << 29) // mantissa, 32767)
        result[n] = clamped(rounded(exponentials[n] * reciprocal, bits - 1), 16)
    return result


def lstm(x, weights_in, weights_out, bias, frac_bits):
    """fx16 data, gates i g f o, act=tanh, from states of 0: all outputs [T,M,1,1] and the last cell [1,M,1,1].
    frac_bits of in, weights (both), bias, cell, out (and the state before)."""
    f_in, f_weights, f_bias, f_cell, f_out = frac_bits
    gate_bits = min(10, f_in + f_weights)
    n_gates, n_outputs = weights_in.shape[:2]
    w_in = weights_in.astype(np.int64).reshape(n_gates, n_outputs, -1)
    w_out = weights_out.astype(np.int64).reshape(n_gates, n_outputs, -1)
    b = bias.astype(np.int64).reshape(n_gates, n_outputs) << (f_in + f_weights - f_bias)
    h, c, outputs = np.zeros(n_outputs, np.int64), np.zeros(n_outputs, np.int64), []
    for step in x.astype(np.int64).reshape(x.shape[0], -1):
        gates = rounded(w_in @ step + b, f_in + f_weights - gate_bits)
        gates = clamped(gates + rounded(w_out @ h, f_out + f_weights - gate_bits), 16)
        i, f, o = (looked_up(gates[k], SIGMOID, gate_bits) for k in (0, 2, 3))
        g = looked_up(gates[1], TANH, gate_bits)
        kept = clamped(rounded(c * f, 15), 16)
        fresh = clamped(rounded(g * i, 15), 16)
        exact = max(f_cell, 15)
        c = clamped(rounded((kept << (exact - f_cell)) + (fresh << (exact - 15)), exact - f_cell), 16)
        h = clamped(rounded(looked_up(c, TANH, f_cell) * o, 30 - f_out), 16)
        outputs.append(h)
    return np.array(outputs).reshape(-1, n_outputs, 1, 1), c.reshape(1, n_outputs, 1, 1)


# ---- networks -----------------------------------------------------------------------------------------------------


class Network:
    """The JSON and the arrays of one network."""

    def __init__(self, directory, name):
        self.directory, self.name = directory, name
        self.tensors, self.operations = {}, []
        os.makedirs(os.path.join(directory, name), exist_ok=True)

    def _save(self, file, values, dtype):
        kind = np.int8 if dtype == "fx8" else np.int16
        assert (values == values.astype(kind)).all(), file
        np.save(os.path.join(self.directory, self.name, file), values.astype(kind))
        return f"{self.name}/{file}"

    def given(self, name, values, dtype, frac_bits, file=None):
        path = file or self._save(f"{name}.npy", values, dtype)
        self.tensors[name] = {"shape": list(values.shape), "dtype": dtype, "frac_bits": frac_bits, "file": path}
        return values.astype(np.int64)

    def filled(self, name, shape, dtype, frac_bits, value):
        self.tensors[name] = {"shape": list(shape), "dtype": dtype, "frac_bits": frac_bits, "fill": value}

    def expected(self, name, values, dtype, frac_bits):
        path = self._save(f"{name}.npy", values, dtype)
        self.tensors[name] = {"shape": list(values.shape), "dtype": dtype, "frac_bits": frac_bits, "expect": path}
        return values

    def run(self, which, name, /, **members):
        before = members.pop("in_", None) or members.pop("in")
        self.operations.append({"run": which, "name": name, "in": before, **members})

    def finish(self, last):
        self.operations.append({"read": last, "file": f"{self.name}.{last}.npy"})
        rows = [f'    {json.dumps(k)}: {json.dumps(v)}' for k, v in self.tensors.items()]
        operations = ["    " + json.dumps(operation) for operation in self.operations]
        with open(os.path.join(self.directory, self.name + ".json"), "w", encoding="ascii") as file:
            file.write(f'{{\n  "name": {json.dumps(self.name)},\n  "rounding": "convergent",\n  "tensors": {{\n')
            file.write(",\n".join(rows) + '\n  },\n  "operations": [\n')
            file.write(",\n".join(operations) + "\n  ]\n}\n")


def digits(directory, dtype):
    """The demo's network as it is, with its own weights."""
    bits = {"fx8": 8, "fx16": 16}[dtype]
    network = Network(directory, f"digits_{dtype}")
    with open(os.path.join(DEMO, "model", "model.json"), encoding="ascii") as file:
        model = json.load(file)
    coming = model["input"]["frac_bits"]
    x = network.given("x", np.load(os.path.join(DEMO, "model", "digits.npy"))[:N_DIGITS].astype(np.int64), dtype, coming)
    before = "x"
    for layer in model["layers"]:
        name, kernel, frac_bits = layer["name"], layer["kernel"], layer["frac_bits"][dtype]
        params = {k: v if k == "relu" else [int(n) for n in v.split(",")] for k, v in layer["params"].items()}
        operands = {"in": before}
        if kernel != "maxpool":
            for role in ("weights", "bias"):
                path = os.path.join("..", "..", "demo", "model", f"{dtype}.{name}.{role}.npy")
                values = np.load(os.path.join(HERE, path))
                operands[role] = f"{name}.{role}"
                network.given(operands[role], values, dtype, frac_bits[role], path)
                operands[role + " values"] = values
        weights, bias = operands.pop("weights values", None), operands.pop("bias values", None)
        if kernel == "maxpool":
            x = maxpool(x, params["kernel"], params["stride"])
        else:
            formats = (coming, frac_bits["weights"], frac_bits["bias"], frac_bits["out"])
            function = conv2d if kernel == "conv2d" else fully_connected
            extra = {"padding": params["padding"]} if "padding" in params else {}
            x = function(x, weights, bias, bits, formats, relu=params.get("relu") == "gen", **extra)
        coming = frac_bits["out"]
        network.expected(name, x, dtype, coming)
        network.run(kernel, name, **operands, out=name, **params)
        before = name
    network.finish(before)


def picture(directory):
    """fx16 data, fx8 weights."""
    random = np.random.RandomState(SEED)
    network = Network(directory, "picture")
    x = network.given("x", random.randint(-2048, 2048, (2, 3, 16, 16)), "fx16", 11)
    weights = network.given("conv1.weights", random.randint(-60, 60, (3, 8, 5, 5)), "fx8", 8)
    bias = network.given("conv1.bias", random.randint(-100, 100, (1, 8, 1, 1)), "fx8", 7)
    x = network.expected("conv1", conv2d(x, weights, bias, 16, (11, 8, 7, 11), padding=(2, 2, 2, 2), relu=True), "fx16", 11)
    network.run("conv2d", "conv1", in_="x", weights="conv1.weights", bias="conv1.bias", out="conv1",
                padding=[2, 2, 2, 2], relu="gen")
    # Frameworks that round the size up pad at the bottom and at the right.
    x = network.expected("pool1", maxpool(x, (3, 3), (2, 2), (0, 1, 0, 1)), "fx16", 11)
    network.run("maxpool", "pool1", in_="conv1", out="pool1", kernel=[3, 3], stride=[2, 2], padding=[0, 1, 0, 1])
    weights = network.given("conv2.weights", random.randint(-40, 40, (8, 16, 3, 3)), "fx8", 8)
    bias = network.given("conv2.bias", random.randint(-100, 100, (1, 16, 1, 1)), "fx8", 7)
    x = network.expected("conv2", conv2d(x, weights, bias, 16, (11, 8, 7, 10), padding=(1, 1, 1, 1), relu=True), "fx16", 10)
    network.run("conv2d", "conv2", in_="pool1", weights="conv2.weights", bias="conv2.bias", out="conv2",
                padding=[1, 1, 1, 1], relu="gen")
    x = network.expected("pool2", avepool(x, (3, 3), (2, 2), 16, (0, 1, 0, 1)), "fx16", 10)
    network.run("avepool", "pool2", in_="conv2", out="pool2", kernel=[3, 3], stride=[2, 2], padding=[0, 1, 0, 1])
    weights = network.given("fc.weights", random.randint(-30, 30, (256, 10, 1, 1)), "fx8", 9)
    bias = network.given("fc.bias", random.randint(-100, 100, (1, 10, 1, 1)), "fx8", 7)
    x = network.expected("fc", fully_connected(x, weights, bias, 16, (10, 9, 7, 11)), "fx16", 11)
    network.run("fully_connected", "fc", in_="pool2", weights="fc.weights", bias="fc.bias", out="fc")
    network.expected("probabilities", softmax(x, 11), "fx16", 15)
    network.run("softmax", "softmax", in_="fc", out="probabilities", axis="c")
    network.finish("probabilities")


def motion(directory):
    """16 steps of 9 sensors, fx16 data, fx8 weights: a layer for each step, two LSTM layers, the last state's class."""
    random = np.random.RandomState(SEED + 1)
    network = Network(directory, "motion")
    x = network.given("x", random.randint(-4096, 4096, (16, 9, 1, 1)), "fx16", 11)
    weights = network.given("steps.weights", random.randint(-100, 100, (9, 16, 1, 1)), "fx8", 7)
    bias = network.given("steps.bias", random.randint(-60, 60, (1, 16, 1, 1)), "fx8", 7)
    x = network.expected("steps", fully_connected(x, weights, bias, 16, (11, 7, 7, 11), relu=True), "fx16", 11)
    network.run("fully_connected", "steps", in_="x", weights="steps.weights", bias="steps.bias", out="steps", relu="gen")
    coming, before = 11, "steps"
    for name, results in (("lstm1", "all"), ("lstm2", "last")):
        w_in = network.given(f"{name}.weights_in", random.randint(-90, 90, (4, 16, 1, 16)), "fx8", 8)
        w_out = network.given(f"{name}.weights_out", random.randint(-90, 90, (4, 16, 1, 16)), "fx8", 8)
        b = network.given(f"{name}.bias", random.randint(-60, 60, (4, 16, 1, 1)), "fx8", 6)
        network.filled(f"{name}.prev_out", (1, 16, 1, 1), "fx16", 14, 0)
        network.filled(f"{name}.cell_in", (1, 16, 1, 1), "fx16", 12, 0)
        h, c = lstm(x, w_in, w_out, b, (coming, 8, 6, 12, 14))
        x = network.expected(name, h if results == "all" else h[-1:], "fx16", 14)
        network.expected(f"{name}.cell_out", c, "fx16", 12)
        network.run("lstm_cell", name, in_=before, prev_out=f"{name}.prev_out", weights_in=f"{name}.weights_in",
                    weights_out=f"{name}.weights_out", bias=f"{name}.bias", cell_in=f"{name}.cell_in", out=name,
                    cell_out=f"{name}.cell_out", results=results, act="tanh")
        coming, before = 14, name
    weights = network.given("fc.weights", random.randint(-100, 100, (16, 6, 1, 1)), "fx8", 7)
    bias = network.given("fc.bias", random.randint(-60, 60, (1, 6, 1, 1)), "fx8", 7)
    x = network.expected("fc", fully_connected(x, weights, bias, 16, (14, 7, 7, 12)), "fx16", 12)
    network.run("fully_connected", "fc", in_="lstm2", weights="fc.weights", bias="fc.bias", out="fc")
    network.expected("probabilities", softmax(x, 12), "fx16", 15)
    network.run("softmax", "softmax", in_="fc", out="probabilities", axis="c")
    network.finish("probabilities")


def main(directory):
    digits(directory, "fx8")
    digits(directory, "fx16")
    picture(directory)
    motion(directory)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else HERE)
