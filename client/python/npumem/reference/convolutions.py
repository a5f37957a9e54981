"""Convolutions and pools: windows that slide over H and W."""

from __future__ import annotations

from typing import NamedTuple, Optional

import numpy as np

from .integers import Array, Counts, accumulated, accumulator_bits, clipped, divided, rounded, saturated, times
from .tensor import (
    PARAMETER_MAX,
    Format,
    Tensor,
    made,
    need,
    need_fixed,
    need_range,
    need_same_type,
    need_shape,
    need_weights,
)

Pair = tuple[int, int]
Sides = tuple[int, int, int, int]


class Axis(NamedTuple):
    """A window along H or along W."""

    size: int  # of the input
    kernel: int
    stride: int
    dilation: int
    before: int  # padding
    after: int
    out: int  # outputs

    def at(self, tap: int) -> tuple[Array, Array]:
        """The outputs for which a tap is on the input, and where there: padded taps are left out."""
        outputs = np.arange(self.out)
        inputs = outputs * self.stride + tap * self.dilation - self.before
        valid = (inputs >= 0) & (inputs < self.size)
        return outputs[valid], inputs[valid]

    def seen(self, out: int, before: int = 0, after: int = 0) -> range:
        """The points under the window of an output, on the input and so much around it."""
        first = out * self.stride - self.before
        past = max(-before - first + self.dilation - 1, 0) // self.dilation
        end = min(first + self.kernel * self.dilation, self.size + after)
        return range(first + past * self.dilation, end, self.dilation)


def axes(
    h_w: Pair, kernel: Pair, stride: Pair, padding: Sides, dilation: Pair, scattered: Optional[Pair] = None
) -> list[Axis]:
    """Both axes, checked, with their numbers of outputs; `scattered`: of a transposed convolution its output_padding."""
    result = []
    for i in range(2):
        size, k, s, d, before, after = h_w[i], kernel[i], stride[i], dilation[i], *padding[2 * i : 2 * i + 2]
        for name, value in (("kernel", k), ("stride", s), ("dilation", d)):
            need_range(name, value, 1, PARAMETER_MAX)
        reach = (k - 1) * d + 1
        for side in (before, after):
            need_range("padding", side, 0, min(reach - 1, PARAMETER_MAX))
        out = (size + before + after - reach) // s + 1
        if scattered is not None:
            need_range("output_padding", scattered[i], 0, PARAMETER_MAX)
            out = (size - 1) * s + k - before - after + scattered[i]
        need(out >= 1, "there would be no output")
        result.append(Axis(size, k, s, d, before, after, out))
    return result


def relu_limits(relu: str, dtype: str, frac_bits: int) -> Pair:
    """The limits of relu=, kept in the container."""
    low, high = (-128, 127) if dtype == "fx8" else (-32768, 32767)
    one, six = 1 << frac_bits, 6 << frac_bits
    limits = {"none": (low, high), "gen": (0, high), "1": (-one, one), "6": (0, six)}[relu]
    return max(limits[0], low), min(limits[1], high)


def finished(
    sums: Array, x: Tensor, w: Tensor, bias: Optional[Tensor], out: Format, relu: str, rounding: str, counts: Counts
) -> Tensor:
    """From exact sums [N,M,…] to outputs: the bias, the accumulator, one rounding, one saturation, relu."""
    f = x.f + w.f
    if bias is not None:
        sums = sums + times(bias.values, f - bias.f)
    held = accumulated(sums, accumulator_bits(x.dtype), counts)
    y = saturated(rounded(held, f - out.f, rounding), out.dtype, counts)
    return made(clipped(y, *relu_limits(relu, out.dtype, out.f)), out)


def convolved(x: Array, w: Array, h: Axis, v: Axis, counts: Counts) -> Array:
    """sum over i, p, q of x[n, i, y*stride + p*dilation - top, …] * w[i, o, p, q]: [N,O,Ho,Wo], exactly."""
    sums = np.zeros((x.shape[0], w.shape[1], h.out, v.out), np.int64)
    for p in range(h.kernel):
        for q in range(v.kernel):
            (y_out, y_in), (x_out, x_in) = h.at(p), v.at(q)
            seen = x[:, :, y_in][:, :, :, x_in]
            at = np.ix_(np.arange(x.shape[0]), np.arange(w.shape[1]), y_out, x_out)
            sums[at] += np.einsum("niyx,io->noyx", seen, w[:, :, p, q], optimize=True)
            counts.macs += seen.size * w.shape[1]
    return sums


def grouped(
    x: Tensor, w: Tensor, bias: Optional[Tensor], groups: int, out: Format, stride: Pair, padding: Sides,
    dilation: Pair, relu: str, rounding: str, counts: Counts,
) -> Tensor:  # fmt: skip
    """conv2d of each group of channels by itself."""
    (_, channels, *h_w), (inputs, outputs, *kernel) = x.values.shape, w.values.shape
    need_weights(x, w, bias, out, inputs * kernel[0] * kernel[1], True)
    need(channels % groups == 0 and outputs % groups == 0, f"channels do not divide into {groups} groups")
    need_shape("weights", w, (channels // groups, outputs, *kernel))
    if bias is not None:
        need_shape("bias", bias, (1, outputs, 1, 1))
    h, v = axes((h_w[0], h_w[1]), (kernel[0], kernel[1]), stride, padding, dilation)
    each_in, each_out = channels // groups, outputs // groups
    parts = []
    for g in range(groups):
        own = x.values[:, g * each_in : (g + 1) * each_in]
        parts.append(convolved(own, w.values[:, g * each_out : (g + 1) * each_out], h, v, counts))
    return finished(np.concatenate(parts, 1), x, w, bias, out, relu, rounding, counts)


def conv2d(
    in_: Tensor, weights: Tensor, bias: Optional[Tensor] = None, *, out: Format, stride: Pair = (1, 1),
    padding: Sides = (0, 0, 0, 0), dilation: Pair = (1, 1), relu: str = "none", rounding: str, counts: Counts,
) -> Tensor:  # fmt: skip
    """Two-dimensional convolution.

        a = y*stride_h + p*dilation_h - top;  b = x*stride_w + q*dilation_w - left
        total[n,o,y,x] = sum over i, p, q of in[n,i,a,b] * weights[i,o,p,q]
                         + bias[o] * 2^(f_in + f_weights - f_bias)
        out[n,o,y,x]   = relu(saturate(round(wrap(total) / 2^(f_in + f_weights - f_out))))

    The sum is exact. It is held in the accumulator (ACCUMULATORS), rounded once and saturated once; the limits of
    relu= apply to the saturated value. A tap outside the input is left out: the sum has
    the p and q with 0 <= a < H and 0 <= b < W.

    Tensors
        in       [N,I,H,W], fx8 or fx16
        weights  [I,O,kh,kw], of in's type; or fx8 with fx16 data
        bias     [1,O,1,1], of weights' type; may be left out
        out      [N,O,Ho,Wo], of in's type, or fx16; any frac_bits; Ho = floor((H + top + bottom - ((kh-1)*dilation_h + 1)) /
                 stride_h) + 1, Wo likewise
    Parameters
        stride    h,w in elements; 1,1 if not given; 1 to 2^31 - 1
        padding   top,bottom,left,right in elements; 0,0,0,0 if not given; 0 to (kh-1)*dilation_h or
                  (kw-1)*dilation_w
        dilation  h,w in elements, from one tap to the next; 1,1 if not given; 1 to 2^31 - 1
        relu      none, gen, 1 or 6 (RELU); none if not given
    Refused
        shapes that are not these; a window that is larger than in with its padding
        a bias with more frac_bits than in and weights together
        more than 2^32 products for one output
    Counts
        saturated  outputs that saturation changed; a change by relu= does not count
        wrapped    totals, bias included, that are outside the accumulator
        macs       products: one for each output, input channel and tap on the input
    Source
        Arithmetic chapter: "Bias for MAC-based Kernels", "Influence of Accumulator Bit Depth". embARC MLI,
        releases 1.1 and 2.0. Release 2.0 saturates the sum with the bias, and refuses f_out > f_in + f_weights; here
        the accumulator wraps, and out is shifted left.
    Example
        >>> x = fx8([[[[1, 2, 3], [4, 5, 6], [7, 8, 9]]]], 4)
        >>> w = fx8([[[[1, 0], [0, -1]]]], 2)
        >>> run("conv2d", in_=x, weights=w, bias=fx8([1], 3), out=Format("fx8", 5), padding=(1, 0, 1, 0))
        out fx8, frac_bits 5 [1, 1, 3, 3]: [4, 3, 2, 2, 2, 2, 0, 2, 2]
        saturated 0, wrapped 0, divided_by_zero 0, macs 25
    """
    return grouped(in_, weights, bias, 1, out, stride, padding, dilation, relu, rounding, counts)


def depthwise_conv2d(
    in_: Tensor, weights: Tensor, bias: Optional[Tensor] = None, *, out: Format, stride: Pair = (1, 1),
    padding: Sides = (0, 0, 0, 0), dilation: Pair = (1, 1), relu: str = "none", rounding: str, counts: Counts,
) -> Tensor:  # fmt: skip
    """Convolution of each channel by itself, with m outputs for each.

        a = y*stride_h + p*dilation_h - top;  b = x*stride_w + q*dilation_w - left
        total[n,c*m+j,y,x] = sum over p, q of in[n,c,a,b] * weights[0,c*m+j,p,q]
                             + bias[c*m+j] * 2^(f_in + f_weights - f_bias)
        out                = relu(saturate(round(wrap(total) / 2^(f_in + f_weights - f_out))))

    It is group_conv2d with as many groups as in has channels. A tap outside the input is left out.

    Tensors
        in       [N,C,H,W], fx8 or fx16
        weights  [1,C*m,kh,kw], of in's type; or fx8 with fx16 data
        bias     [1,C*m,1,1], of weights' type; may be left out
        out      [N,C*m,Ho,Wo], of in's type, or fx16; any frac_bits; Ho, Wo as conv2d
    Parameters
        stride    h,w in elements; 1,1 if not given; 1 to 2^31 - 1
        padding   top,bottom,left,right in elements; 0,0,0,0 if not given; 0 to (kh-1)*dilation_h or
                  (kw-1)*dilation_w
        dilation  h,w in elements, from one tap to the next; 1,1 if not given; 1 to 2^31 - 1
        relu      none, gen, 1 or 6 (RELU); none if not given
    Refused
        shapes that are not these; a window that is larger than in with its padding
        a bias with more frac_bits than in and weights together
    Counts
        saturated  outputs that saturation changed; a change by relu= does not count
        wrapped    totals, bias included, that are outside the accumulator
        macs       products: one for each output and tap on the input
    Source
        Arithmetic chapter, as conv2d. embARC MLI, release 2.0, which has m = 1 only.
    Example
        >>> x = fx8([[[[1, 2], [3, 4]], [[5, 6], [7, 8]]]], 4)
        >>> w = fx8([[[[1, 1]], [[2, 2]], [[1, -1]], [[-1, 1]]]], 0)
        >>> run("depthwise_conv2d", in_=x, weights=w, out=Format("fx8", 4))
        out fx8, frac_bits 4 [1, 4, 2, 1]: [3, 7, 6, 14, -1, -1, 1, 1]
        saturated 0, wrapped 0, divided_by_zero 0, macs 16
    """
    return grouped(in_, weights, bias, in_.values.shape[1], out, stride, padding, dilation, relu, rounding, counts)


def group_conv2d(
    in_: Tensor, weights: Tensor, bias: Optional[Tensor] = None, *, out: Format, stride: Pair = (1, 1),
    padding: Sides = (0, 0, 0, 0), dilation: Pair = (1, 1), relu: str = "none", groups: int = 1, rounding: str,
    counts: Counts,
) -> Tensor:  # fmt: skip
    """Convolution of groups of channels: output o is of group g = floor(o / (O/groups)).

        a = y*stride_h + p*dilation_h - top;  b = x*stride_w + q*dilation_w - left
        total[n,o,y,x] = sum over i, p, q of in[n, g*I/groups + i, a, b] * weights[i,o,p,q]
                         + bias[o] * 2^(f_in + f_weights - f_bias)
        out[n,o,y,x]   = relu(saturate(round(wrap(total) / 2^(f_in + f_weights - f_out))))

    i runs over the I/groups input channels of a group. A tap outside the input is left out.

    Tensors
        in       [N,I,H,W], fx8 or fx16
        weights  [I/groups,O,kh,kw], of in's type; or fx8 with fx16 data
        bias     [1,O,1,1], of weights' type; may be left out
        out      [N,O,Ho,Wo], of in's type, or fx16; any frac_bits; Ho, Wo as conv2d
    Parameters
        stride    h,w in elements; 1,1 if not given; 1 to 2^31 - 1
        padding   top,bottom,left,right in elements; 0,0,0,0 if not given; 0 to (kh-1)*dilation_h or
                  (kw-1)*dilation_w
        dilation  h,w in elements, from one tap to the next; 1,1 if not given; 1 to 2^31 - 1
        relu      none, gen, 1 or 6 (RELU); none if not given
        groups    a number; 1 if not given; 1 to 2^31 - 1; divides I and O
    Refused
        shapes that are not these; a window that is larger than in with its padding
        a bias with more frac_bits than in and weights together
        more than 2^32 products for one output
    Counts
        saturated  outputs that saturation changed; a change by relu= does not count
        wrapped    totals, bias included, that are outside the accumulator
        macs       products: one for each output, input channel of its group and tap on the input
    Source
        Arithmetic chapter, as conv2d. embARC MLI, release 2.0; release 1.1 has no groups.
    Example
        >>> x = fx8([[[[1]], [[2]], [[3]], [[4]]]], 0)
        >>> w = fx8([[[[1]], [[10]]], [[[1]], [[10]]]], 0)
        >>> run("group_conv2d", in_=x, weights=w, out=Format("fx8", 0), groups=2)
        out fx8, frac_bits 0 [1, 2, 1, 1]: [3, 70]
        saturated 0, wrapped 0, divided_by_zero 0, macs 4
    """
    need_range("groups", groups, 1, PARAMETER_MAX)
    return grouped(in_, weights, bias, groups, out, stride, padding, dilation, relu, rounding, counts)


def transpose_conv2d(
    in_: Tensor, weights: Tensor, bias: Optional[Tensor] = None, *, out: Format, stride: Pair = (1, 1),
    padding: Sides = (0, 0, 0, 0), output_padding: Pair = (0, 0), relu: str = "none", groups: int = 1, rounding: str,
    counts: Counts,
) -> Tensor:  # fmt: skip
    """Transposed convolution: each input, times the whole kernel, is added to the outputs around its own place.

        for each n, o, i, a, b, p, q, g = floor(o / (O/groups)):
            total[n, o, a*stride_h + p - top, b*stride_w + q - left] += in[n, g*I/groups + i, a, b] * weights[i,o,p,q]
        total[n,o,y,x] += bias[o] * 2^(f_in + f_weights - f_bias)
        out             = relu(saturate(round(wrap(total) / 2^(f_in + f_weights - f_out))))

    i runs over the I/groups input channels of group g. The kernel is not flipped. padding crops: a product whose place
    is outside out is left out; output_padding adds rows below and columns to the right. An output that no product
    reaches is the bias alone.

    Tensors
        in       [N,I,H,W], fx8 or fx16
        weights  [I/groups,O,kh,kw], of in's type; or fx8 with fx16 data
        bias     [1,O,1,1], of weights' type; may be left out
        out      [N,O,Ho,Wo], of in's type, or fx16; any frac_bits; Ho = (H-1)*stride_h + kh - top - bottom +
                 output_padding_h, Wo likewise
    Parameters
        stride          h,w in elements of out; 1,1 if not given; 1 to 2^31 - 1
        padding         top,bottom,left,right in elements of out; 0,0,0,0 if not given; 0 to kh - 1 or kw - 1
        output_padding  h,w in elements of out; 0,0 if not given; 0 to 2^31 - 1
        relu            none, gen, 1 or 6 (RELU); none if not given
        groups          a number; 1 if not given; 1 to 2^31 - 1; divides I and O
    Refused
        shapes that are not these; padding that leaves no output
        a bias with more frac_bits than in and weights together
        more than 2^32 products for one output
    Counts
        saturated  outputs that saturation changed; a change by relu= does not count
        wrapped    totals, bias included, that are outside the accumulator
        macs       products that are added to an output; cropped ones do not count
    Source
        Arithmetic chapter, as conv2d. embARC MLI, release 2.0.
    Example
        >>> x = fx8([[[[1, 2]]]], 0)
        >>> w = fx8([[[[1, 10, 100]]]], 0)
        >>> run("transpose_conv2d", in_=x, weights=w, out=Format("fx8", 0), stride=(1, 2), padding=(0, 0, 1, 0))
        out fx8, frac_bits 0 [1, 1, 1, 4]: [10, 102, 20, 127]
        saturated 1, wrapped 0, divided_by_zero 0, macs 5
    """
    need_range("groups", groups, 1, PARAMETER_MAX)
    (n, channels, *h_w), (inputs, outputs, *kernel) = in_.values.shape, weights.values.shape
    need_weights(in_, weights, bias, out, inputs * kernel[0] * kernel[1], True)
    need(channels % groups == 0 and outputs % groups == 0, f"channels do not divide into {groups} groups")
    need_shape("weights", weights, (channels // groups, outputs, *kernel))
    if bias is not None:
        need_shape("bias", bias, (1, outputs, 1, 1))
    h, v = axes((h_w[0], h_w[1]), (kernel[0], kernel[1]), stride, padding, (1, 1), output_padding)
    sums = np.zeros((n, outputs, h.out, v.out), np.int64)
    for p in range(kernel[0]):
        for q in range(kernel[1]):
            y, x = np.arange(h.size) * h.stride + p - h.before, np.arange(v.size) * v.stride + q - v.before
            y_in, x_in = (y >= 0) & (y < h.out), (x >= 0) & (x < v.out)
            seen = in_.values[:, :, y_in][:, :, :, x_in]
            seen = seen.reshape(n, groups, inputs, *seen.shape[2:])
            factors = weights.values[:, :, p, q].reshape(inputs, groups, outputs // groups)
            product = np.einsum("ngiyx,igo->ngoyx", seen, factors, optimize=True)
            at = np.ix_(np.arange(n), np.arange(outputs), y[y_in], x[x_in])
            sums[at] += product.reshape(n, outputs, *product.shape[3:])
            counts.macs += seen.size * (outputs // groups)
    return finished(sums, in_, weights, bias, out, relu, rounding, counts)


def pooled(in_: Tensor, out: Format, kernel: Pair, stride: Pair, padding: Sides, dilation: Pair) -> tuple[Axis, Axis]:
    """The checks of both pools."""
    need_fixed("in", in_)
    need_same_type("out", out, in_)
    h, v = axes((in_.values.shape[2], in_.values.shape[3]), kernel, stride, padding, dilation)
    for axis in (h, v):
        need_range("dilation", axis.dilation, 1, axis.size)
    return h, v


def under(in_: Tensor, h: Axis, v: Axis, y: int, x: int) -> Array:
    """The points of in under one window: [N,C,rows,columns]."""
    rows, columns = h.seen(y), v.seen(x)
    return in_.values[:, :, rows.start : rows.stop : rows.step, columns.start : columns.stop : columns.step]


def maxpool(
    in_: Tensor, *, out: Format, kernel: Pair, stride: Pair = (1, 1), padding: Sides = (0, 0, 0, 0),
    dilation: Pair = (1, 1), rounding: str, counts: Counts,
) -> Tensor:  # fmt: skip
    """Maximum over windows.

        a = y*stride_h + p*dilation_h - top;  b = x*stride_w + q*dilation_w - left
        most[n,c,y,x] = max over p, q of in[n,c,a,b]
        out[n,c,y,x]  = saturate(round(most / 2^(f_in - f_out)))

    Points outside the input are left out; every window has at least one point on it.

    Tensors
        in   [N,C,H,W], fx8 or fx16
        out  [N,C,Ho,Wo], of in's type, any frac_bits; Ho = floor((H + top + bottom - ((kernel_h-1)*dilation_h + 1)) /
             stride_h) + 1, Wo likewise
    Parameters
        kernel    h,w in elements; must be given; 1 to 2^31 - 1
        stride    h,w in elements; 1,1 if not given; 1 to 2^31 - 1
        padding   top,bottom,left,right in elements; 0,0,0,0 if not given; 0 to (kernel_h-1)*dilation_h or
                  (kernel_w-1)*dilation_w
        dilation  h,w in elements, from one point to the next; 1,1 if not given; 1 to in's extents H and W
    Refused
        shapes that are not these; a window that is larger than in with its padding
    Counts
        saturated  outputs that saturation changed: none where f_out = f_in
    Source
        embARC MLI, releases 1.1 and 2.0, which have f_out = f_in only.
    Example
        >>> x = fx8([[[[1, 2, 3], [4, 5, 6]]]], 4)
        >>> run("maxpool", in_=x, out=Format("fx8", 4), kernel=(2, 2), padding=(0, 0, 1, 0))
        out fx8, frac_bits 4 [1, 1, 1, 3]: [4, 5, 6]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    h, v = pooled(in_, out, kernel, stride, padding, dilation)
    most = np.zeros((*in_.values.shape[:2], h.out, v.out), np.int64)
    for y in range(h.out):
        for x in range(v.out):
            most[:, :, y, x] = under(in_, h, v, y, x).max(axis=(2, 3))
    return made(saturated(rounded(most, in_.f - out.f, rounding), out.dtype, counts), out)


def reciprocal(n: int) -> Pair:
    """1 / n is about m / 2^s: m has the 15 leading bits of 2^31 / n, the rest cut off."""
    m, s = (1 << 31) // n, 31
    while m < 1 << 31:
        m, s = m << 1, s + 1
    return m >> 17, s - 17


def avepool(
    in_: Tensor, *, out: Format, kernel: Pair, stride: Pair = (1, 1), padding: Sides = (0, 0, 0, 0),
    dilation: Pair = (1, 1), count_padding: Sides = (0, 0, 0, 0), exact: int = 0, rounding: str, counts: Counts,
) -> Tensor:  # fmt: skip
    """Mean over windows.

        a = y*stride_h + p*dilation_h - top;  b = x*stride_w + q*dilation_w - left
        total[n,c,y,x] = sum over p, q of in[n,c,a,b]
        exact=0: out   = saturate(round(wrap(total) * m / 2^(s + f_in - f_out)))
        exact=1: out   = saturate(round(wrap(total) * 2^(f_out - f_in) / k))

    k is the number of the window's points on the input and on the padding that count_padding selects. Points outside
    the input add nothing to the sum. m / 2^s is 1 / k or a little less: v = floor(2^31 / k) is shifted left by j bits,
    until bit 31 is set; m = floor(v * 2^j / 2^17), which has 15 bits; s = 14 + j. For k = 9, v = 238609294, j = 4, m =
    29127 and s = 18; for k = 1, m = 16384 and s = 14. So the result of exact=0 is nearer to 0 than that of exact=1, or
    equal. For k up to 2^17 they differ by at most one unit for fx8 and two units for fx16; for larger k they can differ
    by more. Example: 29 elements of 32767 give 32765 with exact=0 and 32767 with exact=1.

    Tensors
        in   [N,C,H,W], fx8 or fx16
        out  [N,C,Ho,Wo], of in's type, any frac_bits; Ho, Wo as maxpool
    Parameters
        kernel         h,w in elements; must be given; 1 to 2^31 - 1
        stride         h,w in elements; 1,1 if not given; 1 to 2^31 - 1
        padding        top,bottom,left,right in elements; 0,0,0,0 if not given; 0 to (kernel_h-1)*dilation_h or
                       (kernel_w-1)*dilation_w
        dilation       h,w in elements, from one point to the next; 1,1 if not given; 1 to in's extents H and W
        count_padding  top,bottom,left,right: the rows and columns of padding, counted from in outwards, whose points
                       count in k (count_include_pad of other libraries); 0,0,0,0 if not given; 0 to those of padding
        exact          0 or 1; 0 if not given
    Refused
        shapes that are not these; a window that is larger than in with its padding
        windows that count more than 2^30 points
    Counts
        saturated  outputs that saturation changed
        wrapped    totals that are outside the accumulator, possible only for windows of more than 2^24 points
    Source
        embARC MLI, releases 1.1 and 2.0, have exact=0; release 1.1 has f_out = f_in only. exact=1 is npumem's
        own.
    Example
        >>> x = fx8([[[[1, 2, 3], [4, 5, 6], [7, 8, 100]]]], 4)
        >>> run("avepool", in_=x, out=Format("fx8", 4), kernel=(3, 3), stride=(2, 2), padding=(1, 1, 1, 1))
        out fx8, frac_bits 4 [1, 1, 2, 2]: [3, 4, 6, 30]
        saturated 0, wrapped 0, divided_by_zero 0, macs 0
    """
    need_range("exact", exact, 0, 1)
    h, v = pooled(in_, out, kernel, stride, padding, dilation)
    points = 1
    for axis, (before, after) in zip((h, v), (count_padding[:2], count_padding[2:])):
        need_range("count_padding", before, 0, axis.before)
        need_range("count_padding", after, 0, axis.after)
        points *= min(axis.kernel, axis.size + before + after)
    need(points <= 2**30, f"a window counts {points} points")
    result = np.zeros((*in_.values.shape[:2], h.out, v.out), object)
    for y in range(h.out):
        for x in range(v.out):
            total = accumulated(under(in_, h, v, y, x).sum(axis=(2, 3)), accumulator_bits(in_.dtype), counts)
            k = len(h.seen(y, *count_padding[:2])) * len(v.seen(x, *count_padding[2:]))
            m, s = reciprocal(k)
            if exact:
                up, down = times(total, max(out.f - in_.f, 0)), k << max(in_.f - out.f, 0)
                result[:, :, y, x] = divided(up.astype(object), down, rounding)
            else:
                result[:, :, y, x] = rounded(total * m, s + in_.f - out.f, rounding)
    return made(saturated(result, out.dtype, counts), out)
