"""A run that passes its check cannot end the daemon, whatever its shapes: windows that dwarf their input are not for
the micro-kernels, and what a run costs is asked before it is known which way it takes."""

import random
import struct
import unittest

from support import TestCase, pb, run

PADDED = {pb.PARAM_DILATION: (18, 18), pb.PARAM_PADDING: (18, 18, 18, 18)}
ACROSS = {pb.PARAM_DILATION: (4, 4), pb.PARAM_PADDING: (0, 0, 12, 12)}


class DwarfingWindows(TestCase):
    def convolution(self, kernel, shape, weights, params):
        """Its output, of as many elements as the input, has the sum of the one or two taps that meet the input."""
        client = self.client()
        run = pb.RunRequest(kernel=kernel)
        for role, of in (("in", shape), ("weights", weights), ("out", (1, weights[1], *shape[2:]))):
            tensor = client.alloc("", shape=of, dtype=pb.FX8, frac_bits=0)
            run.operands.add(role=role, tensor=pb.Ref(handle=tensor.handle))
            if role != "out":
                client.call(fill=pb.FillRequest(tensor=pb.Ref(handle=tensor.handle), integer=1))
        for key, values in params.items():
            run.params.add(key=key, values=values)
        return client, run

    def assert_sums(self, kernel, shape, weights, params, sums):
        client, run = self.convolution(kernel, shape, weights, params)
        out = pb.ReadRequest(tensor=run.operands[2].tensor)
        operations = [pb.Operation(run=run), pb.Operation(read=out)]
        client.call(run=run)
        self.assertEqual(set(client.call(read=out).done.data), sums)
        answer = client.call(submit=pb.SubmitRequest(operations=operations))
        self.assertEqual(set(answer.submitted.done[1].data), sums)
        self.assert_alive()

    def test_padding_and_dilation_as_large_as_the_input(self):
        # Every other tap lies in the padding.
        self.assert_sums(pb.CONV2D, (1, 64, 16, 16), (64, 64, 3, 3), PADDED, {64})

    def test_a_kernel_across_a_row(self):
        self.assert_sums(pb.CONV2D, (1, 2, 1, 7), (2, 2, 1, 7), ACROSS, {2 * 2, 2 * 1})

    def test_in_groups(self):
        run = {**ACROSS, pb.PARAM_GROUPS: (2,)}
        self.assert_sums(pb.GROUP_CONV2D, (1, 4, 1, 7), (2, 4, 1, 7), run, {2 * 2, 2 * 1})

    def test_by_channel(self):
        self.assert_sums(pb.DEPTHWISE_CONV2D, (1, 4, 1, 7), (1, 4, 1, 7), ACROSS, {2, 1})


class ManyResidues(TestCase):
    """Taps that lie on more than 64 residues of the stride, over several rows."""

    def convolve(self, n, kernel, stride, before, after):
        """Of 2 inputs of 4 rows of n, 3 outputs of 2 rows of taps."""
        generator = random.Random(n + kernel + stride)
        padded = n + before + after
        out_w = (padded - kernel) // stride + 1
        shapes = {"in": (1, 2, 4, n), "weights": (2, 3, 2, kernel), "out": (1, 3, 3, out_w)}
        client = self.client()
        tensors = {role: client.alloc("", of, pb.FX16, frac_bits=0) for role, of in shapes.items()}
        data = [generator.randint(-3, 3) for _ in range(8 * n)]
        taps = [generator.randint(-3, 3) for _ in range(12 * kernel)]
        client.write(tensors["in"].handle, struct.pack(f"<{len(data)}h", *data))
        client.write(tensors["weights"].handle, struct.pack(f"<{len(taps)}h", *taps))
        params = {pb.PARAM_STRIDE: (1, stride), pb.PARAM_PADDING: (0, 0, before, after)}
        params = [pb.Param(key=key, values=values) for key, values in params.items()]
        client.call(**run(pb.CONV2D, params, **tensors))
        rows = [[0] * before + data[i * n : (i + 1) * n] + [0] * after for i in range(8)]
        wanted = [
            sum(
                rows[4 * i + y + v][x * stride + u] * taps[((3 * i + o) * 2 + v) * kernel + u]
                for i in range(2)
                for v in range(2)
                for u in range(kernel)
            )
            for o in range(3)
            for y in range(3)
            for x in range(out_w)
        ]
        got = client.read(tensors["out"].handle)
        self.assertEqual(list(struct.unpack(f"<{len(wanted)}h", got)), wanted, (n, kernel, stride, before, after))

    def test_their_sums(self):
        for stride in 65, 70, 101, 128:
            for kernel in 66, 100, 200:
                for before, after in (0, 0), (35, 35), (64, 0), (0, 64), (1, 63):
                    self.convolve(400, kernel, stride, before, after)


class ManyResiduesWithoutVectors(ManyResidues):
    options = ("--isa", "scalar")


class DwarfingWindowsWithoutVectors(DwarfingWindows):
    options = ("--isa", "scalar")


if __name__ == "__main__":
    unittest.main()
