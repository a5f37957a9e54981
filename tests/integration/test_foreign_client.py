"""A client from the .proto file alone: Debian's python3-protobuf and a bare socket."""

import unittest

import numpy as np

from support import TestCase, pb


def conv2d(x, w, bias, stride, padding, shift):
    """[N,I,H,W] * [I,O,kh,kw], rounded half to even, saturated to int8."""
    top, bottom, left, right = padding
    x = np.pad(x.astype(np.int64), ((0, 0), (0, 0), (top, bottom), (left, right)))
    n, _, height, width = x.shape
    _, o, kh, kw = w.shape
    out = np.zeros((n, o, (height - kh) // stride[0] + 1, (width - kw) // stride[1] + 1), np.int64)
    for y in range(out.shape[2]):
        for z in range(out.shape[3]):
            part = x[:, :, y * stride[0] : y * stride[0] + kh, z * stride[1] : z * stride[1] + kw]
            out[:, :, y, z] = np.einsum("nihw,iohw->no", part, w.astype(np.int64))
    out += bias.astype(np.int64).reshape(1, -1, 1, 1)
    low = out >> shift
    rest = out - (low << shift)
    half = 1 << (shift - 1)
    out = low + ((rest > half) | ((rest == half) & (low & 1 == 1)))
    return np.clip(out, -128, 127).astype(np.int8)


class ForeignClient(TestCase):
    def run_conv2d(self, client, x, w, bias, stride, padding):
        handles = {}
        for role, array, frac_bits in (("in", x, 4), ("weights", w, 4), ("bias", bias, 8)):
            tensor = client.alloc(role, array.shape, pb.FX8, frac_bits)
            client.write(tensor.handle, array.tobytes())
            handles[role] = tensor.handle
        expected = conv2d(x, w, bias, stride, padding, 4)
        handles["out"] = client.alloc("out", expected.shape, pb.FX8, 4).handle
        run = pb.RunRequest(
            kernel=pb.CONV2D,
            operands=[pb.Operand(role=r, tensor=pb.Ref(handle=h)) for r, h in handles.items()],
            params=[
                pb.Param(key=pb.PARAM_STRIDE, values=stride),
                pb.Param(key=pb.PARAM_PADDING, values=padding),
            ],
        )
        return run, handles, expected

    def test_allocates_writes_runs_and_reads(self):
        client = self.client()
        info = client.call(info=pb.InfoRequest()).info
        self.assertEqual((info.n_npus, info.npu_bytes), (64, 524288))
        random = np.random.default_rng(1)
        x = random.integers(-128, 128, (2, 3, 9, 10), np.int8)
        w = random.integers(-60, 60, (3, 70, 3, 2), np.int8)  # more channels than NPUs
        bias = random.integers(-128, 128, (1, 70, 1, 1), np.int8)
        run, handles, expected = self.run_conv2d(client, x, w, bias, (1, 2), (1, 1, 0, 1))
        done = client.call(run=run).done
        self.assertEqual(done.wrapped, 0)
        self.assertGreater(done.saturated, 0)
        self.assertGreater(done.macs, 0)
        got = np.frombuffer(client.read(handles["out"]), np.int8).reshape(expected.shape)
        np.testing.assert_array_equal(got, expected)
        # The same from another connection, by name.
        other = self.client()
        opened = other.call(open=pb.OpenRequest(tensor=pb.Ref(name="out"))).tensor
        self.assertEqual(opened.handle, handles["out"])
        self.assertEqual(opened.state, "ok")
        self.assertEqual(other.read(opened.handle), expected.tobytes())

    def test_pipelines(self):
        client = self.client()
        tensor = client.alloc("x", (1, 64, 1, 64))
        requests = b""
        for i in range(1, 301):
            call = pb.FillRequest(tensor=pb.Ref(handle=tensor.handle), integer=i % 100)
            request = pb.Request(id=1000 + 2 * i, fill=call)
            read = pb.ReadRequest(tensor=pb.Ref(name="x"), first=i, count=3)
            for message in (request, pb.Request(id=1001 + 2 * i, read=read)):
                data = message.SerializeToString()
                requests += bytes([len(data)]) + data
        client.sock.sendall(requests)
        answers = {}
        for _ in range(600):
            response = client.receive()
            self.assertEqual(response.status, pb.OK, response)
            answers[response.id] = response
        for i in range(1, 301):
            self.assertEqual(answers[1001 + 2 * i].done.data, bytes([i % 100]) * 3)

    def test_submits_a_list(self):
        client = self.client()
        x = client.alloc("x", (1, 70, 2, 3), pb.FX16, 8)
        y = client.alloc("y", (1, 70, 2, 3), pb.FX16, 8)
        values = np.random.default_rng(2).integers(-(2**15), 2**15, 420, np.int16)
        ref = {n: pb.Ref(name=n) for n in "xy"}
        relu = pb.RunRequest(
            kernel=pb.RELU,
            operands=[pb.Operand(role="in", tensor=ref["x"]), pb.Operand(role="out", tensor=ref["y"])],
            params=[pb.Param(key=pb.PARAM_RELU, values=[4])],
        )
        submit = pb.SubmitRequest(
            operations=[
                pb.Operation(write=pb.WriteRequest(tensor=ref["x"], data=values.tobytes())),
                pb.Operation(run=relu),
                pb.Operation(read=pb.ReadRequest(tensor=ref["y"])),
            ]
        )
        done = client.call(submit=submit).submitted.done
        self.assertEqual(len(done), 3)
        np.testing.assert_array_equal(np.frombuffer(done[2].data, np.int16), np.clip(values, 0, 6 << 8))
        submit.operations[1].run.operands[0].tensor.name = "nobody"
        refused = client.ask(submit=submit)
        self.assertEqual(refused.status, pb.NOT_FOUND)
        self.assertEqual(len(refused.submitted.done), 0)
        self.assertIn("operation 1", refused.message)
        del x, y

    def test_large_payloads(self):
        client = self.client()
        tensor = client.alloc("big", (1, 64, 1, 200000))
        data = np.random.default_rng(3).integers(-128, 128, 64 * 200000, np.int8).tobytes()
        client.write(tensor.handle, data)
        self.assertEqual(client.read(tensor.handle), data)
        self.assertEqual(client.read(tensor.handle, 7654321, 99), data[7654321 : 7654321 + 99])


if __name__ == "__main__":
    unittest.main()
