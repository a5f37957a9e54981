"""A dry run refuses what the run would, in the same words, tells what it would cost, and changes nothing."""

import json
import os
import unittest

import npumem
import numpy as np
from state import StateTestCase
from support import Sharer, TestCase, alloc, copy, fill, free, pb, read, ref, run, submit, wait_for
from test_kept_lists import keep
from test_segments import memfd

OTHER = 1001
STRIDE = pb.Param(key=pb.PARAM_STRIDE, values=(2, 2))
KERNEL = pb.Param(key=pb.PARAM_KERNEL, values=(2, 2))
RELU = [pb.Param(key=pb.PARAM_RELU, values=[2])]


def dry(*calls, group=0):
    return {"dry_run": submit(*calls, group=group)["submit"]}


def figures(client):
    """All that a run would move."""
    stat = client.stat()
    return stat.data, stat.dummy, stat.padding, stat.empty, stat.packs, str(stat.activity)


class Refusals(TestCase):
    options = ("--npus", "4")

    def setUp(self):
        super().setUp()
        self.one = self.client()
        self.x = self.one.alloc("x", (1, 8, 8, 8), pb.FX8, frac_bits=4)
        self.y = self.one.alloc("y", (1, 8, 4, 4), pb.FX8, frac_bits=4)
        self.z = self.one.alloc("z", (1, 8, 8, 8), pb.FX16, frac_bits=4)
        for tensor in (self.x, self.y, self.z):
            self.one.call(**fill(tensor, 3))

    def pool(self, out, **members):
        return run(pb.MAXPOOL, [KERNEL, STRIDE], in_=self.x, out=out, **members)

    def assert_refused_alike(self, status, *calls, client=None, group=0, says=""):
        """First dry, so that what the run leaves does not count."""
        client = client or self.one
        before = figures(self.one)
        answer = client.ask(**dry(*calls, group=group))
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(figures(self.one), before)
        ran = client.ask(**submit(*calls, group=group))
        self.assertEqual((ran.status, ran.message, list(ran.fields)), (answer.status, answer.message, list(answer.fields)))
        self.assertEqual(len(answer.submitted.done), len(ran.submitted.done))
        self.assertIn(says, answer.message)
        return answer

    def test_shape_format_and_parameters(self):
        good = self.pool(self.y)
        for bad, says in (
            (self.pool(self.x), "out has H 8"),
            (self.pool(self.z), ""),
            (run(pb.MAXPOOL, [KERNEL, STRIDE], in_=self.x), "role out is missing"),
            (run(pb.MAXPOOL, [KERNEL, KERNEL], in_=self.x, out=self.y), "given twice"),
            (run(pb.MAXPOOL, [STRIDE], in_=self.x, out=self.y), "kernel"),
            (run(4711, [], in_=self.x, out=self.y), "4711"),
            (copy(self.x, self.y), "the destination is"),
            (copy(self.x, self.z), "fx16"),
            (fill(self.x, 300), "fill value 300"),
            (read(self.x, first=600, count=1), "elements"),
            ({"write": pb.WriteRequest(tensor=ref(self.x), data=bytes(513))}, ""),
        ):
            answer = self.assert_refused_alike(pb.INVALID, good, bad, good, says=says)
            self.assertIn("operation 1", answer.message)

    def test_tensors_that_are_not_there(self):
        self.assert_refused_alike(pb.NOT_FOUND, self.pool(self.y), fill("nobody", 1), says="nobody")
        self.one.call(**free("z"))
        self.assert_refused_alike(pb.NOT_FOUND, fill(self.z, 1))

    def test_its_label(self):
        answer = self.one.ask(dry_run=pb.SubmitRequest(operations=[
            pb.Operation(label="conv1", **run(pb.RELU, RELU, in_=self.x, out=self.z))]))  # fmt: skip
        self.assertEqual(answer.status, pb.INVALID)
        self.assertTrue(answer.message.startswith("operation 0 conv1 ("), answer.message)

    def test_in_place_and_in_part(self):
        view = self.one.call(view=pb.ViewRequest(tensor=ref(self.x), **{
            "from": pb.Dims(), "to": pb.Dims(n=1, c=8, h=4, w=8)})).tensor  # fmt: skip
        size = [pb.Param(key=pb.PARAM_KERNEL, values=(3, 3)), pb.Param(key=pb.PARAM_PADDING, values=(1, 1, 1, 1))]
        self.assert_refused_alike(pb.INVALID, run(pb.MAXPOOL, size, in_=self.x, out=self.x), says="in place")
        self.assert_refused_alike(pb.INVALID, copy(view, view), says="share bytes")
        self.assert_refused_alike(pb.INVALID, run(pb.MAXPOOL, [KERNEL, pb.Param(key=pb.PARAM_STRIDE, values=(2, 1))],
                                                  in_=self.x, out=view))  # fmt: skip

    def test_sealed_and_dma_only(self):
        spec = alloc("d", (1, 8, 4, 4), pb.FX8, frac_bits=4)
        spec["alloc"].tensors[0].dma_only = True
        self.one.call(**spec)
        self.assert_refused_alike(pb.FAILED_PRECONDITION, self.pool("d"), says="dma_only")
        self.one.call(seal=pb.SealRequest(tensor=ref(self.y)))
        self.assert_refused_alike(pb.FAILED_PRECONDITION, fill(self.x, 1), self.pool(self.y), says="sealed")
        self.assert_refused_alike(pb.FAILED_PRECONDITION, fill(self.y, 1), says="sealed")

    def test_groups_that_conflict(self):
        self.assert_refused_alike(pb.ABORTED, self.pool(self.y), fill(self.x, 1), group=1)
        self.assertEqual(self.one.ask(**dry(self.pool(self.y), fill(self.z, 1), group=1)).status, pb.OK)

    def test_room(self):
        """For the answer; of reads that a run could not answer either."""
        large = self.one.alloc("large", (1, 4, 512, 512), pb.INT8)
        self.one.call(**fill(large, 1))
        self.assert_refused_alike(pb.INVALID, *[read(large)] * 17, says="reply")
        self.assertEqual(self.one.ask(**dry(*[read(large)] * 15)).status, pb.OK)

    def test_segments(self):
        with Sharer(self.daemon.path) as client:
            segment = client.share(memfd(256))
            for other, says in ((segment, "256"), (segment + 1, "")):
                write = {"write": pb.WriteRequest(tensor=ref("x"), segment=other)}
                answer = client.ask(**dry(write))
                ran = client.ask(**submit(write))
                self.assertNotEqual(answer.status, pb.OK)
                self.assertEqual((ran.status, ran.message), (answer.status, answer.message))
                self.assertIn(says, answer.message)

    @unittest.skipIf(os.geteuid(), "root alone can be other uids")
    def test_rights(self):
        os.chmod(self.daemon.path, 0o666)
        other = self.client(OTHER)
        z = other.alloc("mine", (1, 8, 4, 4), pb.FX8, frac_bits=4)
        call = run(pb.MAXPOOL, [KERNEL, STRIDE], in_=self.x, out=z)
        self.assert_refused_alike(pb.NOT_FOUND, call, client=other)
        self.one.call(grant=pb.GrantRequest(tensor=ref(self.x), uid=OTHER, access=pb.ACCESS_READ))
        self.assertEqual(other.ask(**dry(call)).status, pb.OK)
        self.assert_refused_alike(pb.PERMISSION_DENIED, fill(self.x, 1), client=other)

    def test_limits(self):
        many = [fill(self.x, 1)] * 1025
        self.assert_refused_alike(pb.INVALID, *many, says="1025")
        self.assert_refused_alike(pb.INVALID, *many[:257], group=1, says="257")
        self.assertEqual(len(self.one.call(**dry(*many[:1024])).submitted.done), 1024)


class Nothing(TestCase):
    options = ("--npus", "4", "--allow-unchecked-reuse")

    def test_changes(self):
        one, follower = self.client(), self.client()
        x, y = (one.alloc(name, (1, 8, 8, 8), pb.FX8, frac_bits=4) for name in "xy")
        one.call(**fill(x, 3))
        follower.call(subscribe=pb.SubscribeRequest(kinds=["freed", "damaged"]))
        before = figures(one)
        write = {"write": pb.WriteRequest(tensor=ref(x), data=bytes(512))}
        answer = one.call(**dry(write, run(pb.RELU, RELU, in_=x, out=y), read(x), fill(x, 9), copy(y, x)))
        self.assertEqual(figures(one), before)
        self.assertEqual(one.read(x.handle), bytes([3] * 512))
        # y was never written still.
        self.assertEqual(one.ask(**read(y)).status, pb.FAILED_PRECONDITION)
        for place, done in enumerate(answer.submitted.done):
            self.assertEqual((done.operation, done.data, done.saturated, done.macs), (place, b"", 0, 0))
            self.assertTrue(done.HasField("costs"))
        one.call(**free(y))
        event = follower.receive().event
        self.assertEqual((event.kind, event.name), ("freed", "y"))

    def test_of_the_tensors_that_it_would_damage(self):
        """In the empty bytes of a tensor that a kernel writes lies another one's data."""
        one = self.client()
        tall = one.alloc("tall", (1, 1, 1, 256))  # NPU 0 only: the others' bytes are empty
        spec = pb.Spec(dtype=pb.INT8, shape=pb.Dims(n=1, c=1, h=1, w=256), start_npu=1)
        spec.address = one.call(info=pb.InfoRequest()).info.npu_bytes + tall.place.offset
        guest = one.call(alloc=pb.AllocRequest(tensors=[pb.Allocation(name="guest", spec=spec, reuse=pb.UNCHECKED)]))
        source = one.alloc("source", (1, 1, 1, 256))
        for name in ("guest", "source"):
            one.call(**fill(name, 1))
        before = figures(one)
        call = run(pb.PAD2D, in_=source, out=tall)
        self.assertEqual(one.ask(**dry(call)).status, pb.OK)
        self.assertEqual(figures(one), before)
        self.assertEqual(one.read(guest.allocated.tensors[0].handle), bytes([1] * 256))
        self.assertEqual(one.call(**submit(call)).submitted.done[0].destroyed[0].name, "guest")
        one.call(seal=pb.SealRequest(tensor=ref("guest")))
        one.call(seal=pb.SealRequest(tensor=ref(source)))
        answer, ran = one.ask(**dry(call)), one.ask(**submit(call))
        self.assertEqual((answer.status, answer.message), (ran.status, ran.message))

    def test_of_bytes_is_known(self):
        """What was never written the run alone sees, as an earlier operation of the list may write it."""
        one = self.client()
        x, y = (one.alloc(name, (1, 8, 8, 8), pb.FX8, frac_bits=4) for name in "xy")
        call = run(pb.RELU, RELU, in_=x, out=y)
        self.assertEqual(one.ask(**dry(fill(x, 1), call)).status, pb.OK)
        self.assertEqual(one.ask(**dry(call)).status, pb.OK)
        self.assertEqual(one.ask(**submit(call)).status, pb.FAILED_PRECONDITION)

    def test_of_a_kept_list(self):
        one = self.client()
        x, y, z = (one.alloc(name, (1, 8, 8, 8), pb.FX8, frac_bits=4) for name in "xyz")
        wrong = one.alloc("w", (1, 8, 8, 9), pb.FX8, frac_bits=4)
        one.call(**fill(x, 3))
        one.call(**keep(1, run(pb.RELU, RELU, in_=x, out=y), read(y)))

        def go(**change):
            changes = [pb.Change(operation=0, role="out", **change)] if change else []
            return one.ask(dry_run=pb.SubmitRequest(list=1, changes=changes))

        self.assertEqual(len(go().submitted.done), 2)
        self.assertEqual(go(tensor=z.handle).status, pb.OK)
        self.assertEqual(go(tensor=wrong.handle).status, pb.INVALID)
        self.assertEqual(one.ask(dry_run=pb.SubmitRequest(list=2)).status, pb.NOT_FOUND)
        self.assertEqual(one.ask(**read(y)).status, pb.FAILED_PRECONDITION)

    def test_of_an_empty_list(self):
        self.assertEqual(len(self.client().call(dry_run=pb.SubmitRequest()).submitted.done), 0)


class Costs(TestCase):
    options = ("--npus", "4")

    def test_of_each_kind(self):
        one = self.client()
        x = one.alloc("x", (1, 8, 8, 8), pb.FX8, frac_bits=4)
        y = one.alloc("y", (1, 8, 8, 8), pb.FX8, frac_bits=4, layout=pb.COMPACT)
        out = one.alloc("out", (1, 2, 6, 6), pb.FX16, frac_bits=4)
        answer = one.call(**dry(
            {"write": pb.WriteRequest(tensor=ref(x), data=bytes(100), first=12)}, read(x, 500, 12), fill(x, 1), copy(y, x), read(out)))  # fmt: skip
        rows = [(c.macs, c.dma_bytes, c.read_bytes, c.written_bytes, c.npus, c.lanes)
                for c in (done.costs for done in answer.submitted.done)]  # fmt: skip
        self.assertEqual(rows[0], (0, 100, 0, 100, 4, 0))
        self.assertEqual(rows[1], (0, 12, 12, 0, 4, 0))
        self.assertEqual(rows[2], (0, 512, 0, 512, 4, 0))
        self.assertEqual(rows[3], (0, 512, 512, 512, 4, 0))
        self.assertEqual(rows[4], (0, 144, 144, 0, 2, 0))

    def test_macs_are_those_of_the_run(self):
        one = self.client()
        x = one.alloc("x", (1, 8, 9, 7), pb.FX8, frac_bits=4)
        w = one.alloc("w", (8, 3, 3, 2), pb.FX8, frac_bits=4)
        out = one.alloc("out", (1, 3, 5, 4), pb.FX8, frac_bits=4)
        params = [pb.Param(key=pb.PARAM_PADDING, values=(1, 1, 1, 1)), pb.Param(key=pb.PARAM_STRIDE, values=(2, 2))]
        for tensor in (x, w):
            one.call(**fill(tensor, 1))
        call = run(pb.CONV2D, params, in_=x, weights=w, out=out)
        costs = one.call(**dry(call)).submitted.done[0].costs
        ran = one.call(**submit(call)).submitted.done[0]
        self.assertEqual(costs.macs, ran.macs)
        self.assertLess(costs.macs, 3 * 8 * 5 * 4 * 6)
        self.assertEqual((costs.read_bytes, costs.written_bytes, costs.npus), (8 * 63 + 3 * 8 * 6, 60, 3))


class Python(TestCase):
    def test_batches(self):
        device = npumem.connect(self.daemon.path)
        self.addCleanup(device.close)
        x, y = (device.alloc(shape=(1, 8, 8, 8), dtype="fx8", frac_bits=4) for _ in range(2))
        x.write(np.ones((1, 8, 8, 8), np.int8))
        with device.submit(dry_run=True) as batch:
            batch.run("relu", in_=x, out=y, relu="gen")
            result = batch.read(y)
        self.assertEqual(batch.done[1].costs, npumem.Costs(0, 512, 512, 0, 8, 0))
        self.assertEqual(batch.done[0].costs.read_bytes, 512)
        with self.assertRaises(ValueError):
            result.value  # pylint: disable=pointless-statement
        with self.assertRaises(npumem.Refused) as caught:
            with device.submit(dry_run=True) as batch:
                batch.fill(x, 1)
                batch.run("maxpool", in_=x, out=y, kernel=(2, 2))
        self.assertEqual(len(caught.exception.done), 1)
        with self.assertRaises(npumem.Refused):
            y.read()


class Network(TestCase):
    """plan checks on a private daemon of its geometry, submit --dry-run on the device."""

    def told(self, network, *words, **expected):
        return json.loads(self.ctl(*words, "--json", text=json.dumps(network), **expected))

    X = {"alloc": "x", "shape": [1, 8, 8, 8], "dtype": "fx8", "frac_bits": 4, "fill": 1}
    Y = X | {"alloc": "y"}
    W = {"alloc": "w", "shape": [8, 8, 3, 3], "dtype": "fx8", "frac_bits": 4, "fill": 1}
    CONV = {"run": "conv2d", "name": "conv1", "in": "x", "weights": "w", "out": "y", "padding": [1, 1, 1, 1]}
    PLAN, DRY = ("plan", "-"), ("submit", "-", "--dry-run")

    def test_what_the_run_refuses(self):
        client = self.client()
        for network, says in (
            ([self.X, self.W, self.CONV | {"out": "x"}], "operation 3 conv1, run conv2d: kernel conv2d cannot work in place"),
            ([self.X, self.Y, self.W, self.CONV | {"padding": [0, 0, 0, 0]}], "operation 4 conv1, run conv2d: out has H 8"),
            ([self.X, {"seal": "x"}, {"fill": "x", "value": 1}], "operation 3, fill x: "),
            ([self.X, self.Y, {"parallel": [{"run": "relu", "relu": "gen", "in": "x", "out": "y"}, {"fill": "x", "value": 2}]}], "3"),
        ):
            for words in (self.PLAN, self.DRY):
                told = self.told(network, *words, code=1, says=says)
                self.assertEqual((told["fits"], told["checked"]), (False, True))
                self.assertNotIn("it fits", self.ctl(*words, text=json.dumps(network), code=1, says=says))
            self.ctl("submit", "-", text=json.dumps(network), code=1, says=says)
            wait_for(lambda: not client.names())  # the device notices the end of npumemctl after its parent

    def test_nothing_stays(self):
        client = self.client()
        network = [self.X | {"keep": True}, self.Y, self.W, self.CONV, {"read": "y", "file": "y.npy"}, {"free": ["y"]}]
        before = str(client.stat().activity)
        self.assertTrue(self.told(network, *self.DRY)["fits"])
        wait_for(lambda: not client.names())
        self.assertEqual(str(client.stat().activity), before)
        self.assertFalse(os.path.exists(os.path.join(self.daemon.directory, "y.npy")))
        client.alloc("x")
        self.told(network, *self.DRY, code=1, says="the device has a tensor of this name")
        self.ctl("submit", "-", text=json.dumps(network), code=1, says="x")
        self.told([self.X | {"alloc": "\u00e4", "keep": True}], *self.DRY, code=1, says="printable ASCII")

    def test_room_that_others_have(self):
        """submit's, and not plan's, which is of the device when nothing else is on it."""
        client = self.client()
        large = self.X | {"shape": [1, 64, 512, 512]}
        size = client.call(info=pb.InfoRequest()).info.npu_bytes
        client.alloc("most", (1, 64, 1, size - 4096))
        network = [large]
        self.assertTrue(self.told(network, *self.PLAN)["fits"])
        self.assertFalse(self.told(network, *self.DRY, code=1, says="operation 1, alloc x: ")["fits"])

    def test_tensors_of_the_device(self):
        """What they cost the device says; they are not sealed and not freed."""
        client = self.client()
        client.alloc("x", (1, 8, 8, 8), pb.FX8, frac_bits=4)
        client.call(**fill("x", 1))
        network = [{"open": "x"}, self.Y, self.W, self.CONV, {"seal": "x"}, {"copy": "y", "from": "x"}, {"free": ["x"]}]
        told = self.told(network, *self.DRY)
        costs = {one["operation"]: one["costs"] for one in told["operations"]}
        self.assertTrue(told["sums_complete"])
        self.assertEqual((costs["4"]["macs"], costs["6"]["local_read_bytes"]), (8 * 8 * 22 * 22, 512))
        wait_for(lambda: client.names() == ["x"])
        client.call(**fill("x", 2))
        told = self.told(network, *self.PLAN)
        self.assertEqual((told["checked"], told["sums_complete"]), (False, False))
        self.ctl(*self.PLAN, text=json.dumps(network), says="not checked by a daemon: it opens tensors of a device")

    def test_large_arrays(self):
        """Of those a run moves pieces; a dry run has no file."""
        np.save(os.path.join(self.daemon.directory, "x.npy"), np.zeros((1, 64, 300, 300), np.int8))
        network = [{key: value for key, value in self.X.items() if key != "fill"} | {"shape": [1, 64, 300, 300], "file": "x.npy"},
                   {"read": "x", "file": "again.npy"}]  # fmt: skip
        self.assertTrue(self.told(network, *self.DRY)["fits"])
        self.assertFalse(os.path.exists(os.path.join(self.daemon.directory, "again.npy")))

    def test_without_a_daemon(self):
        network = json.dumps([self.X])
        says = "not checked by a daemon: cannot start a private daemon"
        self.assertIn("it fits", self.ctl(*self.PLAN, text=network, says=says, NPUMEMD="/nonexistent"))

    def test_options_of_a_private_daemon_count(self):
        guest = {"alloc": "g", "shape": [1, 1, 1, 16], "dtype": "int8", "start_npu": 1, "reuse": "unchecked"}
        self.told([guest], *self.PLAN, code=1, says="--allow-unchecked-reuse")
        self.ctl("--spawn=--allow-unchecked-reuse", *self.PLAN, text=json.dumps([guest]), says="it fits")


class State(StateTestCase):
    def test_nothing_is_kept(self):
        """With a state the daemon notes what an operation is about to write; of a dry run nothing."""
        one = self.client()
        x = one.alloc("x", (1, 8, 8, 8), pb.FX8, frac_bits=4)
        one.call(**fill(x, 3))
        one.call(**dry(fill(x, 9), read(x)))
        self.restart()
        one = self.client()
        self.assertEqual(one.call(**read("x")).done.data, bytes([3] * 512))


if __name__ == "__main__":
    unittest.main()
