"""RNN, GRU and LSTM in floats, by the formulas of ONNX with the default activations."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from ..model import Array, Node


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


class Layer:
    """The inputs of a recurrent node, with sequences first: x [T,B,K], states [D,B,M]."""

    def __init__(self, node: Node, n_gates: int, inputs: tuple[Optional[Array], ...]) -> None:
        given = list(inputs) + [None] * (8 - len(inputs))
        x, w, r, b, lengths, h, c, p = given[:8]
        assert x is not None and w is not None and r is not None
        self.batch_first = bool(node.get("layout", 0))
        self.x = x.transpose(1, 0, 2) if self.batch_first else x
        self.w, self.r, self.peepholes = w, r, p
        self.n_directions, self.n_hidden = w.shape[0], r.shape[2]
        n_batch = self.x.shape[1]
        self.b = b if b is not None else np.zeros((self.n_directions, 2 * n_gates * self.n_hidden), np.float32)
        self.lengths = [self.x.shape[0]] * n_batch if lengths is None else [int(n) for n in lengths]
        self.h, self.c = self.state(h, n_batch), self.state(c, n_batch)
        self.way = node.get("direction", "forward")

    def state(self, given: Optional[Array], n_batch: int) -> Array:
        if given is None:
            return np.zeros((self.n_directions, n_batch, self.n_hidden), np.float32)
        return given.transpose(1, 0, 2) if self.batch_first else given

    def is_backward(self, direction: int) -> bool:
        return self.way == "reverse" or direction == 1

    def run(self, step: Any) -> tuple[Array, Array, Array]:
        """Y [T,D,B,M], Y_h and Y_c [D,B,M] of a step(direction, x, h, c) -> (h, c)."""
        y = np.zeros((self.x.shape[0], self.n_directions, self.x.shape[1], self.n_hidden), np.float32)
        y_h, y_c = self.h.astype(np.float32).copy(), self.c.astype(np.float32).copy()
        for d in range(self.n_directions):
            for i, length in enumerate(self.lengths):
                h, c, steps = self.h[d, i], self.c[d, i], range(length)
                for t in reversed(steps) if self.is_backward(d) else steps:
                    h, c = step(d, self.x[t, i], h, c)
                    y[t, d, i] = h
                y_h[d, i], y_c[d, i] = h, c
        if self.batch_first:
            return y.transpose(2, 0, 1, 3), y_h.transpose(1, 0, 2), y_c.transpose(1, 0, 2)
        return y, y_h, y_c


def rnn(node: Node, *inputs: Optional[Array]) -> tuple[Array, Array]:
    layer = Layer(node, 1, inputs)
    m = layer.n_hidden

    def step(d: int, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        return np.tanh(layer.w[d] @ x + layer.r[d] @ h + layer.b[d, :m] + layer.b[d, m:]), c

    return layer.run(step)[:2]


def gru(node: Node, *inputs: Optional[Array]) -> tuple[Array, Array]:
    layer = Layer(node, 3, inputs)
    m, late = layer.n_hidden, bool(node.get("linear_before_reset", 0))

    def step(d: int, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        own, state = layer.w[d] @ x + layer.b[d, : 3 * m], layer.b[d, 3 * m :]
        z = sigmoid(own[:m] + layer.r[d, :m] @ h + state[:m])
        r = sigmoid(own[m : 2 * m] + layer.r[d, m : 2 * m] @ h + state[m : 2 * m])
        last = layer.r[d, 2 * m :]
        n = np.tanh(own[2 * m :] + (r * (last @ h + state[2 * m :]) if late else last @ (r * h) + state[2 * m :]))
        return (1 - z) * n + z * h, c

    return layer.run(step)[:2]


def lstm(node: Node, *inputs: Optional[Array]) -> tuple[Array, Array, Array]:
    layer = Layer(node, 4, inputs)
    m = layer.n_hidden
    p = layer.peepholes if layer.peepholes is not None else np.zeros((layer.n_directions, 3 * m), np.float32)

    def step(d: int, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        s = layer.w[d] @ x + layer.r[d] @ h + layer.b[d, : 4 * m] + layer.b[d, 4 * m :]
        i, f = sigmoid(s[:m] + p[d, :m] * c), sigmoid(s[2 * m : 3 * m] + p[d, 2 * m :] * c)
        c = f * c + i * np.tanh(s[3 * m :])
        return sigmoid(s[m : 2 * m] + p[d, m : 2 * m] * c) * np.tanh(c), c

    return layer.run(step)


EVALUATE: dict[str, Any] = {"GRU": gru, "LSTM": lstm, "RNN": rnn}
