"""RNN, GRU and LSTM: a cell kernel for each direction and each sequence of the batch, as a kernel has one sequence. A GRU
that resets late has no cell: each of its steps is several operations."""

from __future__ import annotations

from typing import Optional

import numpy as np

from .. import moves
from ..floats.recurrent import gru
from ..formats import best, bias_frac, weight_frac
from ..lowering import Lowering, NoKernel, row
from ..model import Array, Node
from ..network import Held

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
ORDER = {"RNN": [0], "GRU": [0, 1, 2], "LSTM": [0, 3, 2, 1]}  # the kernel's gates among those of ONNX (LSTM: i o f c)
DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
DATA = "fx16"  # the only type that all cells have
UNIT = 15  # frac_bits of a state, which is between -1 and 1


class Cell:
    """One recurrent node: its constants in the kernel's order, and its shapes (steps T, batch B, input K, hidden M)."""

    def __init__(self, low: Lowering, node: Node) -> None:
        self.low, self.node, self.kind = low, node, node.op
        given = [name.lower() for name in node.get("activations", [])]
        if given and given != [name.lower() for name in DEFAULTS[node.op]] * (len(given) // len(DEFAULTS[node.op])):
            raise NoKernel(f"its activations are {', '.join(given)}, and the kernel has the default ones")
        if node.get("clip") is not None:
            raise NoKernel("it clips its gates, and the kernel does not")
        if node.op == "LSTM" and node.input(7) and low.parameter(node, 7, "peepholes").any():
            raise NoKernel("it has peepholes, and lstm_cell has none")
        self.batch_first = bool(node.get("layout", 0))
        shape = low.shape(node.inputs[0])
        self.n_steps, self.n_batch = (shape[1], shape[0]) if self.batch_first else (shape[0], shape[1])
        self.w, self.r = low.parameter(node, 1, "weights"), low.parameter(node, 2, "weights")
        self.n_directions, self.n_hidden = self.w.shape[0], self.r.shape[2]
        self.b = low.parameter(node, 3, "bias") if node.input(3) else None
        lengths = low.parameter(node, 4, "sequence lengths") if node.input(4) else None
        self.lengths = [self.n_steps] * self.n_batch if lengths is None else [int(n) for n in lengths]
        if 0 in self.lengths:
            raise NoKernel("a sequence has no step")

    def backward(self, d: int) -> bool:
        return self.node.get("direction", "forward") == "reverse" or d == 1

    def gates(self, values: Array) -> Array:
        """[gates * M, …] as [gates, M, …] in the kernel's order."""
        n = GATES[self.kind]
        return values.reshape(n, self.n_hidden, *values.shape[1:])[ORDER[self.kind]]

    def bias(self, d: int) -> Optional[Array]:
        if self.b is None:
            return None
        m = GATES[self.kind] * self.n_hidden
        return self.gates(self.b[d, :m] + self.b[d, m:])

    def state(self, index: int, d: int, b: int, frac: int) -> Held:
        """The state before the first step of a sequence, [1,M,1,1]; in fewer frac_bits where it is larger."""
        low, m = self.low, self.n_hidden
        name = self.node.input(index)
        if not name:
            return low.net.constant(np.zeros(m), (1, m, 1, 1), DATA, frac)
        at = b * self.n_directions + d if self.batch_first else d * self.n_batch + b
        v = low.constant(name)
        if v is not None:
            frac = min(frac, best(v, DATA, "max"))
            return low.net.constant(v.reshape(-1, m)[at], (1, m, 1, 1), DATA, frac)
        frac = min(frac, low.formats.frac(name, DATA))
        x = low.value(name, (self.n_directions * self.n_batch, m, 1, 1), DATA, frac)
        return low.net.slice(x, (at, 0, 0, 0), (at + 1, m, 1, 1))

    def cell_frac(self) -> int:
        """The frac_bits of an LSTM's cell: of the samples where the model gives it out, else for -8 to 8."""
        name = self.node.outputs[2] if len(self.node.outputs) > 2 else ""
        return self.low.formats.frac(name, DATA) - 1 if name else 12


@row("RNN", "GRU", "LSTM")
def recurrent(low: Lowering, node: Node) -> dict[str, Held]:
    cell = Cell(low, node)
    net, m, k = low.net, cell.n_hidden, low.shape(node.inputs[0])[2]
    x = low.of(node)
    x = low.value(node.inputs[0], x.shape, DATA)
    if not cell.batch_first:  # sequences one behind the other
        x = moves.swapped(net, x, 1, cell.n_steps, cell.n_batch, k)
    x = moves.reshaped(net, x, (cell.n_batch * cell.n_steps, k, 1, 1))
    states, cells = [], []
    whole = net.tensor((cell.n_directions * cell.n_batch * cell.n_steps, m, 1, 1), DATA, UNIT)
    if any(length < cell.n_steps for length in cell.lengths):
        net.fill(whole, 0)
    for d in range(cell.n_directions):
        for b in range(cell.n_batch):
            at, length = (d * cell.n_batch + b) * cell.n_steps, cell.lengths[b]
            own = net.slice(x, (b * cell.n_steps, 0, 0, 0), (b * cell.n_steps + length, k, 1, 1))
            part = net.slice(whole, (at, 0, 0, 0), (at + length, m, 1, 1))
            y = net.tensor(part.shape, DATA, UNIT) if cell.backward(d) else part
            last = one(low, cell, d, b, own, y)
            if cell.backward(d):  # it has the state after its last step, which is the first of the sequence, last
                net.copy(part, moves.picked(net, y, list(range(length))[::-1], 0))
            states.append(net.slice(y, (length - 1, 0, 0, 0), (length, m, 1, 1)))
            cells += [last] if last else []
    made: dict[str, Held] = {}
    for name, kind in zip(node.outputs, ("y", "h", "c")):
        if name and kind == "y":
            made[name] = ordered(low, cell, whole)
        elif name:
            made[name] = of_states(low, cell, states if kind == "h" else cells)
    return made


def one(low: Lowering, cell: Cell, d: int, b: int, x: Held, y: Held) -> Optional[Held]:
    """One sequence in one direction: the states in y, in the order in which they are made. Returns an LSTM's last cell."""
    net, m, k = low.net, cell.n_hidden, x.shape[1]
    if cell.kind == "GRU" and cell.node.get("linear_before_reset", 0):
        reset_late(low, cell, d, b, x, y)
        return None
    w, r, bias = cell.gates(cell.w[d]), cell.gates(cell.r[d]), cell.bias(d)
    dtype = low.formats.policy.weights(cell.node)
    n = GATES[cell.kind]
    if cell.kind == "RNN":
        both = np.concatenate([w, r], 2)
        # The kernel shifts the sum of the inputs to the state's frac_bits before it adds that of the states.
        up = max(0, UNIT - x.frac)
        summed = np.concatenate([w * 2.0**up, r], 2).reshape(m, -1)
        flat = None if bias is None else bias.reshape(-1)
        frac = weight_frac(both.reshape(m, -1), flat, DATA, x.frac + up, dtype, "max", summed)
        xs = moves.picked(net, x, list(range(x.shape[0]))[::-1], 0) if cell.backward(d) else x
        net.run(
            "basic_rnn_cell", in_=xs, prev_out=cell.state(5, d, b, UNIT), act="tanh",
            weights=net.constant(both.reshape(1, m, 1, k + m), (1, m, 1, k + m), dtype, frac),
            bias=gate_bias(low, bias, (1, m, 1, 1), dtype, frac + x.frac), out=y,
        )  # fmt: skip
        return None
    parts = ((w, None if bias is None else bias.reshape(-1)), (r, None))
    fracs = [weight_frac(v.reshape(n * m, -1), b_, DATA, x.frac, dtype, "max") for v, b_ in parts]
    weights_in = net.constant(w.reshape(n, m, 1, k), (n, m, 1, k), dtype, fracs[0])
    weights_out = net.constant(r.reshape(n, m, 1, m), (n, m, 1, m), dtype, fracs[1])
    shared = {
        "in_": x, "prev_out": cell.state(5, d, b, UNIT), "weights_in": weights_in, "weights_out": weights_out,
        "bias": gate_bias(low, bias, (n, m, 1, 1), dtype, fracs[0] + x.frac), "out": y,
        "direction": "backward" if cell.backward(d) else None,
    }  # fmt: skip
    if cell.kind == "GRU":
        net.run("gru_cell", **shared)
        return None
    before = cell.state(6, d, b, cell.cell_frac())
    last = net.tensor((1, m, 1, 1), DATA, before.frac)
    net.run("lstm_cell", **shared, cell_in=before, cell_out=last, act="tanh")
    return last


class Late:
    """The weights of a GRU with linear_before_reset, and the largest values that the samples give.

    inputs, states  the products for the gates z, r, n: of all inputs, and of any state"""

    def __init__(self, low: Lowering, cell: Cell, d: int) -> None:
        m = cell.n_hidden
        b = np.zeros(6 * m, np.float32) if cell.b is None else cell.b[d]
        self.w, self.r = cell.w[d].T, cell.r[d].T
        self.w_bias = b[: 3 * m] + np.concatenate([b[3 * m : 5 * m], np.zeros(m, np.float32)])
        self.r_bias = np.concatenate([np.zeros(2 * m, np.float32), b[5 * m :]])
        inputs, states = [], []
        for i, x in enumerate(low.seen(cell.node.inputs[0])):
            given = [low.seen(name)[i if len(low.seen(name)) > 1 else 0] if name else None for name in cell.node.inputs]
            inputs.append(x.reshape(-1, x.shape[2]) @ self.w + self.w_bias)
            known = [np.ones((1, m))] if len(given) > 5 and given[5] is not None else []  # a state is within -1 to 1
            known.append(np.moveaxis(gru(cell.node, *given)[0], -1, 0).reshape(m, -1).T)
            states.append(np.concatenate(known) @ self.r + self.r_bias)
        self.inputs, self.states = np.concatenate(inputs), np.concatenate(states)


def product(low: Lowering, cell: Cell, x: Held, w: Array, bias: Array, frac: int) -> Held:
    """x [R,K,1,1] times w [K,M], plus bias."""
    dtype = low.formats.policy.weights(cell.node)
    w_frac = weight_frac(np.ascontiguousarray(w.T), bias, DATA, x.frac, dtype, "max")
    y = low.net.tensor((x.shape[0], w.shape[1], 1, 1), DATA, frac)
    weights = low.net.constant(w, (*w.shape, 1, 1), dtype, w_frac)
    added = gate_bias(low, bias, (1, bias.size, 1, 1), dtype, w_frac + x.frac)
    return low.kernel("matmul", y, left=x, right=weights, bias=added)


def reset_late(low: Lowering, cell: Cell, d: int, b: int, x: Held, y: Held) -> None:
    """A GRU with linear_before_reset, as PyTorch has it: gru_cell resets the state first, so each step is several
    operations. z, r = sigmoid(inputs + states); n = tanh(input + r * state); h = n + z * (h - n)."""
    net, m, length = low.net, cell.n_hidden, x.shape[0]
    late = Late(low, cell, d)
    inputs = product(low, cell, x, late.w, late.w_bias, low.range_frac(late.inputs, DATA))
    states_frac = low.range_frac(late.states, DATA)
    both = low.range_frac(np.array([np.abs(late.inputs).max() + np.abs(late.states).max()]), DATA)
    h = cell.state(5, d, b, UNIT)

    def channels(v: Held, row: int, first: int, n: int) -> Held:
        return net.slice(v, (row, first, 0, 0), (row + 1, first + n, 1, 1))

    def made(kernel: str, n: int, frac: int, **given: Held) -> Held:
        return low.kernel(kernel, net.tensor((1, n, 1, 1), DATA, frac), **given)

    for at in range(length):
        t = length - 1 - at if cell.backward(d) else at
        states = product(low, cell, h, late.r, late.r_bias, states_frac)
        sums = made("eltwise_add", 2 * m, both, in1=channels(inputs, t, 0, 2 * m), in2=channels(states, 0, 0, 2 * m))
        gates = made("sigmoid", 2 * m, UNIT, in_=sums)
        kept = made("eltwise_mul", m, states_frac, in1=channels(gates, 0, m, m), in2=channels(states, 0, 2 * m, m))
        new = made("tanh", m, UNIT, in_=made("eltwise_add", m, both, in1=channels(inputs, t, 2 * m, m), in2=kept))
        change = made("eltwise_sub", m, UNIT - 1, in1=h, in2=new)
        part = made("eltwise_mul", m, UNIT - 1, in1=channels(gates, 0, 0, m), in2=change)
        h = low.kernel("eltwise_add", net.slice(y, (at, 0, 0, 0), (at + 1, m, 1, 1)), in1=new, in2=part)


def gate_bias(low: Lowering, bias: Optional[Array], shape: tuple[int, ...], dtype: str, most: int) -> Optional[Held]:
    if bias is None:
        return None
    return low.net.constant(bias, shape, dtype, min(bias_frac(bias, dtype, most), best(bias, dtype)))


def ordered(low: Lowering, cell: Cell, whole: Held) -> Held:
    """[D, B, T, M] as Y: [T, D, B, M], or with layout 1 [B, T, D, M]."""
    d, b, t, m = cell.n_directions, cell.n_batch, cell.n_steps, cell.n_hidden
    if cell.batch_first:
        return moves.swapped(low.net, whole, 1, d, b * t, m) if d > 1 else whole
    return moves.swapped(low.net, whole, 1, d * b, t, m)


def of_states(low: Lowering, cell: Cell, states: list[Held]) -> Held:
    """[D, B, M], or with layout 1 [B, D, M]."""
    x = moves.joined(low.net, states, 0)
    if cell.batch_first and cell.n_directions > 1:
        return moves.swapped(low.net, x, 1, cell.n_directions, cell.n_batch, cell.n_hidden)
    return x
