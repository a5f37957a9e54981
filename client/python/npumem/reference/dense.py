"""Matrix products, and the recurrent cells that are made of them."""

from __future__ import annotations

from typing import Optional, Sequence

import numpy as np

from .convolutions import finished
from .integers import RANGES, Array, Counts, accumulated, accumulator_bits, clipped, outside, rounded, saturated, times
from .tables import function_of, unit_frac_bits
from .tensor import (
    Format,
    Tensor,
    made,
    need,
    need_same_format,
    need_same_type,
    need_shape,
    need_weights,
)


def product(
    data: Tensor, weights: Tensor, bias: Optional[Tensor], out: Format, relu: str, rounding: str, counts: Counts
) -> Tensor:
    """[N,K,…] by [K,M,1,1]: out [N,M,1,1]."""
    rows = data.values.reshape(data.values.shape[0], -1)
    terms, outputs = rows.shape[1], weights.values.shape[1]
    need_weights(data, weights, bias, out, terms)
    need_shape("weights", weights, (terms, outputs, 1, 1))
    if bias is not None:
        need_shape("bias", bias, (1, outputs, 1, 1))
    sums = rows @ weights.values[:, :, 0, 0]
    counts.macs += rows.size * outputs
    return finished(sums[:, :, None, None], data, weights, bias, out, relu, rounding, counts)


def fully_connected(
    in_: Tensor, weights: Tensor, bias: Optional[Tensor] = None, *, out: Format, relu: str = "none", rounding: str,
    counts: Counts,
) -> Tensor:  # fmt: skip
    """Fully connected layer.

        total[n,m] = sum over k of in[n,k] * weights[k,m] + bias[m] * 2^(f_in + f_weights - f_bias)
        out[n,m]   = relu(saturate(round(wrap(total) / 2^(f_in + f_weights - f_out))))

    in is flattened: k = (c*H + h)*W + w.

    Tensors
        in       [N,C,H,W], fx8 or fx16; K = C*H*W
        weights  matrix K x M, of in's type; or fx8 with fx16 data
        bias     [1,M,1,1], of weights' type; may be left out
        out      matrix N x M, of in's type, any frac_bits
    Parameters
        relu  none, gen, 1 or 6 (RELU); none if not given
    Refused
        shapes that are not these
        a bias with more frac_bits than in and weights together
        more than 2^32 products for one output
    Counts
        saturated  outputs that saturation changed; a change by relu= does not count
        wrapped    totals, bias included, that are outside the accumulator
        macs       N * K * M
    Source
        Arithmetic chapter, as conv2d. embARC MLI, releases 1.1 and 2.0, which keep weights [M,K] or [K,M].
    Example
        >>> x = fx16([[[[1, 2], [3, 4]]]], 8)
        >>> w = fx8([[1, 0], [0, 1], [1, 0], [0, -100]], 4)
        >>> run("fully_connected", in_=x, weights=w, bias=fx8([1, 2], 12), out=Format("fx16", 10), relu="gen")
        out fx16, frac_bits 10 [1, 2, 1, 1]: [1, 0]
        saturated 0, wrapped 0, divided_by_zero 0, macs 8
    """
    return product(in_, weights, bias, out, relu, rounding, counts)


def matmul(
    left: Tensor, right: Tensor, bias: Optional[Tensor] = None, *, out: Format, relu: str = "none", rounding: str,
    counts: Counts,
) -> Tensor:  # fmt: skip
    """Product of two matrices.

        total[r,m] = sum over k of left[r,k] * right[k,m] + bias[m] * 2^(f_left + f_right - f_bias)
        out[r,m]   = relu(saturate(round(wrap(total) / 2^(f_left + f_right - f_out))))

    Tensors
        left   matrix R x K, fx8 or fx16
        right  matrix K x M, of left's type; or fx8 with fx16 data
        bias   [1,M,1,1], of right's type; may be left out
        out    matrix R x M, of left's type, any frac_bits
    Parameters
        relu  none, gen, 1 or 6 (RELU); none if not given
    Refused
        shapes that are not these
        a bias with more frac_bits than left and right together
        more than 2^32 products for one output
    Counts
        saturated  outputs that saturation changed; a change by relu= does not count
        wrapped    totals, bias included, that are outside the accumulator
        macs       R * K * M
    Source
        npumem's own, by the rules of fully_connected.
    Example
        >>> run("matmul", left=fx8([[1, 2], [3, 4]], 2), right=fx8([[5], [6]], 1), out=Format("fx8", 1))
        out fx8, frac_bits 1 [2, 1, 1, 1]: [4, 10]
        saturated 0, wrapped 0, divided_by_zero 0, macs 4
    """
    need_shape("left", left, (*left.values.shape[:2], 1, 1))
    return product(left, right, bias, out, relu, rounding, counts)


def rnn_dense(
    in_: Sequence[Tensor], weights: Sequence[Tensor], bias: Optional[Tensor] = None, *, out: Format, rounding: str,
    counts: Counts,
) -> Tensor:  # fmt: skip
    """Dense step of recurrent networks: several inputs, each with weights of its own.

        total_i[n,m] = sum over k of in_i[n,k] * weights_i[k,m]
        total_0[n,m] += bias[m] * 2^(f_in[0] + f_weights[0] - f_bias)
        out[n,m]     = saturate(sum over i of round(wrap(total_i) / 2^(f_in[i] + f_weights[i] - f_out)))

    Each input has an accumulator of its own, which is rounded by itself to out's format. The rounded sums are added
    exactly and saturated once.

    Tensors
        in0, in1, …            [N,Ki,1,1], fx8 or fx16, all of one type
        weights0, weights1, …  [Ki,M,1,1], as many as inputs, of in's type; or fx8 with fx16 data; all of one type
        bias                   [1,M,1,1], of weights' type; may be left out
        out                    [N,M,1,1], of in's type, any frac_bits
    Parameters
        none but rounding
    Refused
        shapes that are not these; another number of weights than of inputs
        a bias with more frac_bits than in0 and weights0 together
    Counts
        saturated  outputs that saturation changed
        wrapped    totals that are outside their accumulators: up to one for each output and input
        macs       N * M * (K0 + K1 + …)
    Source
        embARC MLI, release 2.0, which has fx16 data and N = 1 only.
    Example
        >>> x, w = fx16([[[[3]]]], 1), fx16([[[[1]]]], 0)
        >>> run("rnn_dense", in_=[x, x], weights=[w, w], out=Format("fx16", 0))
        out fx16, frac_bits 0 [1, 1, 1, 1]: [4]
        saturated 0, wrapped 0, divided_by_zero 0, macs 2
    """
    need(len(in_) == len(weights), f"there are {len(in_)} in, but {len(weights)} weights")
    batch, outputs = in_[0].values.shape[0], weights[0].values.shape[1]
    total = np.zeros((batch, outputs), object)
    if bias is not None:
        need_shape("bias", bias, (1, outputs, 1, 1))
    for i, (x, w) in enumerate(zip(in_, weights)):
        terms = x.values.shape[1]
        need_weights(x, w, bias if i == 0 else None, out, terms)
        need_same_type("weights", w, weights[0])
        need_shape("in", x, (batch, terms, 1, 1))
        need_shape("weights", w, (terms, outputs, 1, 1))
        sums = x.values[:, :, 0, 0] @ w.values[:, :, 0, 0]
        if bias is not None and i == 0:
            sums = sums + times(bias.values[0, :, 0, 0], x.f + w.f - bias.f)
        held = accumulated(sums, accumulator_bits(x.dtype), counts)
        total = total + rounded(held, x.f + w.f - out.f, rounding)
        counts.macs += batch * terms * outputs
    return made(saturated(total, out.dtype, counts)[:, :, None, None], out)


# ---- cells ----

ACTS = {"tanh": "tanh", "sigm": "sigmoid"}


class Gates:
    """The sums of a cell's gates in one format: [G,M] of an input [K] and a state [M]."""

    def __init__(
        self, x: Tensor, weights_in: Tensor, weights_out: Tensor, bias: Optional[Tensor], f: int, rounding: str,
        counts: Counts,
    ) -> None:  # fmt: skip
        self.x, self.bias, self.f, self.rounding, self.counts = x, bias, f, rounding, counts
        self.weights = (weights_in, weights_out)
        self.bits = accumulator_bits(x.dtype)

    def bias_values(self, gates: slice) -> Array:
        if self.bias is None:
            return np.zeros((1, 1), np.int64)
        return times(self.bias.values[gates, :, 0, 0], self.x.f + self.weights[0].f - self.bias.f)

    def products(self, gates: slice, x: Array, h: Array) -> tuple[Array, Array]:
        parts = [w.values[gates, :, 0, :] @ v for w, v in zip(self.weights, (x, h))]
        self.counts.macs += parts[0].size * (x.size + h.size)
        return parts[0], parts[1]

    def each_rounded(self, x: Array, h: Array, f_h: int, gates: slice = slice(None)) -> Array:
        """Rules of release 2.0: an accumulator each for input and state, each rounded by itself."""
        of_x, of_h = self.products(gates, x, h)
        held_x = accumulated(of_x + self.bias_values(gates), self.bits, self.counts)
        held_h = accumulated(of_h, self.bits, self.counts)
        s_x = rounded(held_x, self.x.f + self.weights[0].f - self.f, self.rounding)
        s_h = rounded(held_h, f_h + self.weights[1].f - self.f, self.rounding)
        return saturated(s_x + s_h, self.x.dtype)

    def rescaled(self, x: Array, h: Array, f_h: int, saturations: Counts) -> Array:
        """Rules of release 1.1: one accumulator, which changes its format between the two sums."""
        of_x, of_h = self.products(slice(None), x, h)
        first = of_x + self.bias_values(slice(None))
        held = accumulated(first, self.bits, Counts())
        between = self.x.f - f_h
        held = rounded(held, between, self.rounding) if self.bits == 32 or between < 0 else held >> min(between, 63)
        second = held + of_h
        out_of_range = accumulated(first, self.bits, Counts()) != first
        held = accumulated(second, self.bits, Counts())
        self.counts.wrapped += int(np.count_nonzero(out_of_range | (held != second)))
        return saturated(rounded(held, f_h + self.weights[1].f - self.f, self.rounding), self.x.dtype, saturations)


def check_cell(
    gates: int, x: Tensor, prev_out: Tensor, weights: Sequence[Tensor], bias: Optional[Tensor], out: Format
) -> None:
    """Types and shapes. Of one weights tensor (release 1.1) its columns are in's and then the state's."""
    steps, inputs = x.values.shape[:2]
    outputs = prev_out.values.shape[1]
    need_weights(x, weights[0], bias, out, max(inputs, outputs))
    need_same_type("prev_out", prev_out, x)
    need_same_type("weights_out", weights[-1], weights[0])
    need_shape("in", x, (steps, inputs, 1, 1))
    need_shape("prev_out", prev_out, (1, outputs, 1, 1))
    columns = [inputs, outputs] if len(weights) == 2 else [inputs + outputs]
    for w, n in zip(weights, columns):
        need_shape("weights", w, (gates, outputs, 1, n))
    if bias is not None:
        need_shape("bias", bias, (gates, outputs, 1, 1))


def split(weights: Tensor, inputs: int) -> tuple[Tensor, Tensor]:
    """weights [G,M,1,K+M] as those of in and those of the state."""
    parts = [weights.values[..., :inputs], weights.values[..., inputs:]]
    w_in, w_out = (Tensor(weights.dtype, weights.frac_bits, None, part) for part in parts)
    return w_in, w_out


def multiplied(a: Array, b: Array, shift: int, dtype: str, rounding: str, counts: Optional[Counts] = None) -> Array:
    return saturated(rounded(a * b, shift, rounding), dtype, counts)


def added(a: Array, f_a: int, b: Array, f_b: int, f: int, dtype: str, rounding: str, counts: Optional[Counts]) -> Array:
    """a + b, both brought to the larger number of frac_bits, added, and rounded to f."""
    most = max(f_a, f_b)
    return saturated(rounded(times(a, most - f_a) + times(b, most - f_b), most - f, rounding), dtype, counts)


def results_of(states: list[Array], keeps_all: bool, out: Format) -> Tensor:
    kept = states if keeps_all else states[-1:]
    return made(np.array(kept, np.int64)[:, :, None, None], out)


def lstm_weights(
    weights_in: Optional[Tensor], weights_out: Optional[Tensor], weights: Optional[Tensor], old: bool,
    mode: Optional[str], direction: Optional[str], results: Optional[str],
) -> list[Tensor]:  # fmt: skip
    """The weights that the rules take. Weights and parameters of the other rules are refused."""
    given = [weights] if old else [weights_in, weights_out]
    others = (weights_in, weights_out, direction, results) if old else (weights, mode)
    need(all(other is None for other in others), "that is of the other rules")
    need(all(one is not None for one in given), "the rules' weights are missing")
    return [one for one in given if one is not None]


def check_lstm(
    x: Tensor, prev_out: Tensor, cell_in: Tensor, cell_out: Format, old: bool, mode: Optional[str]
) -> None:
    need(old or x.dtype == "fx16", "rules=mli2_0 has no rule for fx8")
    need(mode != "one_to_one" or x.values.shape[0] == 1, "mode=one_to_one takes one step")
    need_same_type("cell_in", cell_in, x)
    need_same_format("cell_out", cell_out, cell_in)
    need_shape("cell_in", cell_in, prev_out.values.shape)


def lstm_cell(
    in_: Tensor, prev_out: Tensor, weights_in: Optional[Tensor] = None, weights_out: Optional[Tensor] = None,
    weights: Optional[Tensor] = None, bias: Optional[Tensor] = None, *, cell_in: Tensor, out: Format,
    cell_out: Format, direction: Optional[str] = None, results: Optional[str] = None, act: str,
    lut: Optional[str] = None, mode: Optional[str] = None, rules: str = "mli2_0", rounding: str, counts: Counts,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """LSTM layer over a sequence. Gates i (input), g (candidate), f (forget), o (output), in this order.

        for each step t, with x = in[t], h the state and c the cell of the step before:
        rules=mli2_0, gates in f_gate = min(10, f_in + f_weights_in) frac_bits:
            s[k,m] = saturate(round(wrap(weights_in[k,m] . x + bias[k,m] * 2^(f_in + f_weights_in - f_bias))
                                    / 2^(f_in + f_weights_in - f_gate))
                              + round(wrap(weights_out[k,m] . h) / 2^(f_h + f_weights_out - f_gate)))
            i, f, o = sigmoid(s[0]), sigmoid(s[2]), sigmoid(s[3]);  g = tanh(s[1])             (Q.15)
            kept = saturate(round(c * f / 2^15));  new = saturate(round(g * i / 2^15))
            c    = saturate(round((kept * 2^(w - f_c) + new * 2^(w - 15)) / 2^(w - f_c))),  w = max(f_c, 15)
            h    = saturate(round(act(c) * o / 2^(f_act + 15 - f_out)))
        rules=mli1_1, gates in f_gate = 4 frac_bits for fx8 and 12 for fx16, u = 7 and 15:
            a      = wrap(weights[k,m,:K] . x + bias[k,m] * 2^(f_in + f_weights - f_bias))
            s[k,m] = saturate(round(wrap(bring(a) + weights[k,m,K:] . h) / 2^(f_h + f_weights - f_gate)))
            i, g, f, o as above, in Q.u
            c      = saturate(round((round(i * g / 2^(u - f_c)) + f * c) / 2^u))
            h      = saturate(round(act(c) * o / 2^(f_act + u - f_out)))

    a . b is the sum of the products of the elements at the same place. weights[k,m] are the elements [k,m,0,:], and
    weights[k,m,:K] the first K of them. bring(a) = round(a / 2^(f_in - f_h)) for fx8, floor(a / 2^(f_in - f_h)) for
    fx16. f_h is prev_out's frac_bits for the first step and out's for all later ones. f_c is that of cell_in and
    cell_out. act=tanh and act=sigm take c through the table (f_act = 15 or 7); act=none takes c itself (f_act = f_c).

    Tensors
        in           [T,K,1,1], a row for each step; fx16, with rules=mli1_1 also fx8
        prev_out     [1,M,1,1], of in's type: the state before the first step
        weights_in   [4,M,1,K], of in's type; or fx8 with fx16 data (rules=mli2_0)
        weights_out  [4,M,1,M], of weights_in's type (rules=mli2_0)
        weights      [4,M,1,K+M], of in's type; or fx8 with fx16 data (rules=mli1_1, instead of the two)
        bias         [4,M,1,1], of the weights' type; may be left out
        cell_in      [1,M,1,1], of in's type: the cell before the first step
        out          [T,M,1,1], the state after each step in the order in which they are made; or [1,M,1,1], after the
                     last; of in's type, any frac_bits
        cell_out     [1,M,1,1], of cell_in's type and frac_bits: the cell after the last step
    Parameters
        direction  forward or backward: backward takes the steps from the last to the first; forward if not given;
                   rules=mli2_0 only
        results    all or last: which steps out has; with last out is [1,M,1,1]; all if not given; rules=mli2_0 only
        act        none, tanh or sigm; must be given
        lut        mli2_0 or mli1_1: the set of tables; that of rules if not given
        mode       batch_to_batch (all steps), batch_to_last (the last: out is [1,M,1,1]) or one_to_one (T = 1);
                   batch_to_batch if not given; rules=mli1_1 only
        rules      mli2_0 or mli1_1; mli2_0 if not given
    Refused
        shapes that are not these; fx8 data with rules=mli2_0
        weights, mode with rules=mli2_0; weights_in, weights_out, direction, results with rules=mli1_1
        a bias with more frac_bits than in and the weights of in together
    Counts
        saturated  elements of c and elements of h that saturation changed, in all steps, also in steps that out does
                   not have; gates and products inside a step do not count
        wrapped    accumulators that are out of range. rules=mli2_0: each gate and element has one for in and one for
                   the state. rules=mli1_1: each gate and element has one, and counts once if it is out of range before
                   bring(), at the end, or at both
        macs       T * 4 * M * (K + M)
    Source
        embARC MLI: release 2.0 (rules=mli2_0), release 1.1 (rules=mli1_1).
    Example
        >>> x, h, c = fx16([[[[1000]]]], 12), fx16([[[[500]]]], 15), fx16([[[[2000]]]], 12)
        >>> w = fx16(np.full((4, 1, 1, 1), 8192), 14)
        >>> run("lstm_cell", in_=x, prev_out=h, weights_in=w, weights_out=w, cell_in=c, out=Format("fx16", 15),
        ...     cell_out=Format("fx16", 12), act="tanh")
        out fx16, frac_bits 15 [1, 1, 1, 1]: [5538]
        cell_out fx16, frac_bits 12 [1, 1, 1, 1]: [1347]
        saturated 0, wrapped 0, divided_by_zero 0, macs 8
    """
    old, dtype, unit, table = rules == "mli1_1", in_.dtype, unit_frac_bits(in_.dtype), lut or rules
    given = lstm_weights(weights_in, weights_out, weights, old, mode, direction, results)
    check_cell(4, in_, prev_out, given, bias, out)
    check_lstm(in_, prev_out, cell_in, cell_out, old, mode)
    w_in, w_out = split(given[0], in_.values.shape[1]) if old else (given[0], given[1])
    f_gate, f_c = unit - 3 if old else min(10, in_.f + w_in.f), cell_in.f
    gates = Gates(in_, w_in, w_out, bias, f_gate, rounding, counts)
    c, h, f_h, states = cell_in.values.reshape(-1), prev_out.values.reshape(-1), prev_out.f, []
    for x in in_.values[:: -1 if direction == "backward" else 1, :, 0, 0]:
        s = gates.rescaled(x, h, f_h, Counts()) if old else gates.each_rounded(x, h, f_h)
        i, f, o = (function_of(s[k], "sigmoid", table, dtype, f_gate, rounding) for k in (0, 2, 3))
        g = function_of(s[1], "tanh", table, dtype, f_gate, rounding)
        if old:
            c = saturated(rounded(rounded(i * g, unit - f_c, rounding) + f * c, unit, rounding), dtype, counts)
        else:
            kept, new = multiplied(c, f, 15, dtype, rounding), multiplied(g, i, 15, dtype, rounding)
            c = added(kept, f_c, new, 15, f_c, dtype, rounding, counts)
        y, f_y = c, f_c
        if act != "none":
            y, f_y = function_of(c, ACTS[act], table, dtype, f_c, rounding), unit
        h, f_h = multiplied(y, o, f_y + unit - out.f, dtype, rounding, counts), out.f
        states.append(h)
    keeps_all = mode in (None, "batch_to_batch") and results in (None, "all")
    return results_of(states, keeps_all, out), made(c[None, :, None, None], cell_out)


def gru_cell(
    in_: Tensor, prev_out: Tensor, weights_in: Tensor, weights_out: Tensor, bias: Optional[Tensor] = None, *,
    out: Format, direction: str = "forward", results: str = "all", lut: str = "mli2_0", rounding: str, counts: Counts,
) -> Tensor:  # fmt: skip
    """GRU layer over a sequence. Gates z (update), r (reset), n (new), in this order.

        for each step t, with x = in[t] and h the state of the step before; gates in
        f_gate = min(11, f_in + f_weights_in) frac_bits:
            s(k, v)[m] = saturate(round(wrap(weights_in[k,m] . x + bias[k,m] * 2^(f_in + f_weights_in - f_bias))
                                        / 2^(f_in + f_weights_in - f_gate))
                                  + round(wrap(weights_out[k,m] . v) / 2^(f_h + f_weights_out - f_gate)))
            z, r  = sigmoid(s(0, h)), sigmoid(s(1, h))                                          (Q.15)
            n     = tanh(s(2, saturate(round(r * h / 2^15))))                                   (Q.15)
            kept  = saturate(round(h * z / 2^15))                                               (f_h)
            new   = saturate(round(n * (32767 - z) / 2^(30 - f_out)))                           (f_out)
            h     = saturate(round((new * 2^(w - f_out) + kept * 2^(w - f_h)) / 2^(w - f_out))),  w = max(f_out, f_h)

    a . b is the sum of the products of the elements at the same place. weights_in[k,m] are the elements [k,m,0,:]. f_h
    is prev_out's frac_bits for the first step and out's for all later ones. sigmoid and tanh are the kernels of these
    names, of integers with f_gate frac_bits. 1.0 is 32767, the largest fx16.

    Tensors
        in           [T,K,1,1], fx16, a row for each step
        prev_out     [1,M,1,1], fx16: the state before the first step
        weights_in   [3,M,1,K], fx16 or fx8
        weights_out  [3,M,1,M], of weights_in's type
        bias         [3,M,1,1], of weights_in's type; may be left out
        out          [T,M,1,1], the state after each step in the order in which they are made; or [1,M,1,1], after the
                     last; fx16, any frac_bits
    Parameters
        direction  forward or backward: backward takes the steps from the last to the first; forward if not given
        results    all or last: which steps out has; with last out is [1,M,1,1]; all if not given
        lut        mli2_0 or mli1_1: the set of tables; mli2_0 if not given
    Refused
        shapes that are not these; fx8 data
        a bias with more frac_bits than in and weights_in together
    Counts
        saturated  elements of the state, in all steps, for which saturation changed new or h; an element counts once
                   in a step, and kept, gates and r * h do not count
        wrapped    accumulators that are out of range; each gate and element has one for in and one for the state
        macs       T * 3 * M * (K + M)
    Source
        embARC MLI, release 2.0.
    Example
        >>> x, h = fx16([[[[1000]]]], 12), fx16([[[[500]]]], 15)
        >>> w = fx16(np.full((3, 1, 1, 1), 8192), 14)
        >>> run("gru_cell", in_=x, prev_out=h, weights_in=w, weights_out=w, out=Format("fx16", 15))
        out fx16, frac_bits 15 [1, 1, 1, 1]: [2186]
        saturated 0, wrapped 0, divided_by_zero 0, macs 6
    """
    check_cell(3, in_, prev_out, [weights_in, weights_out], bias, out)
    need(in_.dtype == "fx16", "fx8 has no rule")
    f_gate = min(11, in_.f + weights_in.f)
    gates = Gates(in_, weights_in, weights_out, bias, f_gate, rounding, counts)
    h, f_h, states = prev_out.values.reshape(-1), prev_out.f, []
    low, high = RANGES["fx16"]
    for x in in_.values[:: -1 if direction == "backward" else 1, :, 0, 0]:
        z, r = (function_of(s, "sigmoid", lut, "fx16", f_gate, rounding)
                for s in gates.each_rounded(x, h, f_h, slice(0, 2)))  # fmt: skip
        reset = multiplied(r, h, 15, "fx16", rounding)
        n = function_of(gates.each_rounded(x, reset, f_h, slice(2, 3))[0], "tanh", lut, "fx16", f_gate, rounding)
        kept = multiplied(h, z, 15, "fx16", rounding)
        exact_new = rounded(n * (high - z), 30 - out.f, rounding)
        new = clipped(exact_new, low, high)
        most = max(out.f, f_h)
        exact = rounded(times(new, most - out.f) + times(kept, most - f_h), most - out.f, rounding)
        counts.saturated += int(np.count_nonzero(outside(exact_new, low, high) | outside(exact, low, high)))
        h, f_h = clipped(exact, low, high), out.f
        states.append(h)
    return results_of(states, results == "all", out)


def basic_rnn_cell(
    in_: Tensor, prev_out: Tensor, weights: Tensor, bias: Optional[Tensor] = None, *, out: Format,
    mode: str = "batch_to_batch", act: str, lut: str = "mli1_1", rounding: str, counts: Counts,
) -> Tensor:  # fmt: skip
    """Plain recurrent layer over a sequence.

        for each step t, with x = in[t] and h the state of the step before:
            a    = wrap(weights[m,:K] . x + bias[m] * 2^(f_in + f_weights - f_bias))
            s[m] = saturate(round(wrap(bring(a) + weights[m,K:] . h) / 2^(f_h + f_weights - f_gate)))
            h    = act(s)

    a . b is the sum of the products of the elements at the same place. weights[m,:K] are the first K of the elements
    [0,m,0,:]. bring(a) = round(a / 2^(f_in - f_h)) for fx8, floor(a / 2^(f_in - f_h)) for fx16. f_h is prev_out's
    frac_bits for the first step and out's for all later ones. act=none has f_gate = f_out and takes s itself; act=tanh
    and act=sigm have f_gate = 4 for fx8 and 12 for fx16, and take s through the table as the kernels tanh and sigmoid
    do, which gives 7 or 15 frac_bits.

    mode=one_to_one makes G outputs of the same in and prev_out: out[g] is h made with weights[g] and bias[g].

    Tensors
        in        [T,K,1,1], fx8 or fx16, a row for each step
        prev_out  [1,M,1,1], of in's type: the state before the first step
        weights   [1,M,1,K+M], of in's type; or fx8 with fx16 data; mode=one_to_one also [G,M,1,K+M]
        bias      [1,M,1,1], of the weights' type; mode=one_to_one also [G,M,1,1]; may be left out
        out       [T,M,1,1], the state after each step; [1,M,1,1], after the last; mode=one_to_one [G,M,1,1], a row for
                  each gate; of in's type; any frac_bits, with act=tanh or sigm 7 (fx8) or 15 (fx16)
    Parameters
        mode  batch_to_batch (all steps), batch_to_last (the last) or one_to_one (T = 1); batch_to_batch if not given
        act   none, tanh or sigm; must be given
        lut   mli2_0 or mli1_1: the set of tables; mli1_1 if not given
    Refused
        shapes that are not these
        a bias with more frac_bits than in and weights together
        out with other frac_bits than the table's, where act is tanh or sigm
    Counts
        saturated  elements of the state that saturation changed, in all steps: with act=none those of s, with tanh
                   and sigm those of the table's result
        wrapped    accumulators that are out of range; each element has one in a step, and counts once if it is out of
                   range before bring(), at the end, or at both
        macs       T * G * M * (K + M); G = 1 without mode=one_to_one
    Source
        embARC MLI, release 1.1.
    Example
        >>> x, h = fx8([[[[16]]]], 4), fx8([[[[64]]]], 7)
        >>> w = fx8([[[[64, 32]]]], 6)
        >>> run("basic_rnn_cell", in_=x, prev_out=h, weights=w, out=Format("fx8", 7), act="tanh")
        out fx8, frac_bits 7 [1, 1, 1, 1]: [109]
        saturated 0, wrapped 0, divided_by_zero 0, macs 2
    """
    stacked, inputs = mode == "one_to_one", in_.values.shape[1]
    n_gates = weights.values.shape[0] if stacked else 1
    check_cell(n_gates, in_, prev_out, [weights], bias, out)
    unit = unit_frac_bits(in_.dtype)
    need(not stacked or in_.values.shape[0] == 1, "mode=one_to_one takes one step")
    need(act == "none" or out.f == unit, f"out has {out.f} frac_bits, but must have {unit}")
    f_gate = out.f if act == "none" else unit - 3
    gates = Gates(in_, *split(weights, inputs), bias, f_gate, rounding, counts)
    h, f_h, states = prev_out.values.reshape(-1), prev_out.f, []
    for x in in_.values[:, :, 0, 0]:
        s = gates.rescaled(x, h, f_h, counts if act == "none" else Counts())
        if act != "none":
            s = function_of(s, ACTS[act], lut, in_.dtype, f_gate, rounding, counts)
        states.append(s)
        h, f_h = s[0], out.f
    kept = states if mode == "batch_to_batch" else states[-1:]
    return made(np.concatenate(kept)[:, :, None, None], out)
