"""What has no name can carry a label: refusals, events, stat and pictures use it, and it finds nothing."""

import json
import os
import subprocess
import unittest

import npumem
from state import StateTestCase
from support import NPUMEMCTL, SECONDS, Client, TestCase, dims, fill, pb, read, run_as

OTHER = 12001
FILL = pb.FillRequest(tensor=pb.Ref(handle=1), integer=1)


def labelled(label, name="", shape=(1, 8, 1, 16)):
    return pb.Allocation(spec=pb.Spec(dtype=pb.INT8, shape=dims(*shape)), name=name, label=label)


class Labels(TestCase):
    def setUp(self):
        super().setUp()
        self.one = self.client()

    def alloc(self, label, client=None, **more):
        return (client or self.one).call(alloc=pb.AllocRequest(tensors=[labelled(label, **more)])).allocated.tensors[0]

    def test_it_is_told(self):
        for label in ("x", "conv1/Conv:0 {a}", "l" * 63):
            tensor = self.alloc(label)
            self.assertEqual((tensor.label, tensor.name), (label, ""))
            again = self.one.call(open=pb.OpenRequest(tensor=pb.Ref(handle=tensor.handle))).tensor
            self.assertEqual(again.label, label)
            answer = self.one.ask(read=pb.ReadRequest(tensor=pb.Ref(handle=tensor.handle)))
            self.assertEqual(answer.status, pb.FAILED_PRECONDITION)
            self.assertIn(f"{label} #{tensor.handle} has bytes that were never written", answer.message)
        self.assertEqual(self.one.ask(open=pb.OpenRequest(tensor=pb.Ref(name="x"))).status, pb.NOT_FOUND)
        view = self.one.call(view=pb.ViewRequest(tensor=pb.Ref(handle=tensor.handle), to=dims(1, 4, 1, 16), label="half")).tensor
        self.assertEqual((view.label, view.base_name), ("half", f"{label} #{tensor.handle}"))

    def test_bad_ones(self):
        before = self.one.tensors()
        for label, says in (("l" * 64, "a label of 64 bytes: at most 63"), ("a\nb", "byte 2 of a label is 0x0a"),
                            ("ä", "byte 1 of a label is 0xc3"), ("\x7f", "is 0x7f")):  # fmt: skip
            answer = self.one.ask(alloc=pb.AllocRequest(tensors=[labelled("good"), labelled(label)]))
            self.assertEqual(answer.status, pb.INVALID, answer)
            self.assertIn(says, answer.message)
            self.assertEqual([f.number for f in answer.fields if f.key == "tensor_index"], [1])
            for bad in (dict(operations=[pb.Operation(label=label, fill=FILL)]), dict(label=label)):
                answer = self.one.ask(submit=pb.SubmitRequest(**bad))
                self.assertEqual(answer.status, pb.INVALID, answer)
                self.assertIn(says, answer.message)
            for bad in (dict(operations=[pb.Operation(label=label, fill=FILL)]), dict(operations=[pb.Operation(fill=FILL)], label=label)):
                answer = self.one.ask(keep=pb.KeepRequest(list=1, **bad))
                self.assertEqual(answer.status, pb.INVALID, answer)
                self.assertIn(says, answer.message)
        answer = self.one.ask(alloc=pb.AllocRequest(tensors=[labelled("label", name="name")]))
        self.assertEqual((answer.status, answer.message), (pb.INVALID, "name has a name, and a label is for one without"))
        self.assertEqual(self.one.tensors(), before)

    def test_of_an_operation(self):
        x = self.alloc("x")
        operations = [pb.Operation(label="first", **fill(x, 1)), pb.Operation(label="second", **read(self.alloc("y")))]
        for request in (dict(operations=operations), dict(list=1)):
            answer = self.one.ask(submit=pb.SubmitRequest(**request))
            self.assertEqual(answer.status, pb.FAILED_PRECONDITION)
            self.assertRegex(answer.message, r"^operation 1 second \(read y #\d+\): y #\d+ has bytes that were never written")
            self.assertEqual([f.text for f in answer.fields if f.key == "label"], ["second"])
            if "list" not in request:
                self.one.call(keep=pb.KeepRequest(list=1, operations=operations, label="net"))

    def test_another_uid_does_not_see_it(self):
        os.chmod(self.daemon.directory, 0o755)
        handle = self.alloc("quetzalcoatl").handle

        def other():
            with Client(self.daemon.path) as client:
                answers = [client.ask(open=pb.OpenRequest(tensor=pb.Ref(handle=handle))), client.ask(list=pb.ListRequest()),
                           client.ask(stat=pb.StatRequest(details=True)), client.ask(dump=pb.DumpRequest(npu=0, bytes=128)),
                           client.ask(alloc=pb.AllocRequest(tensors=[pb.Allocation(spec=pb.Spec(dtype=pb.INT8, shape=dims(1, 8, 1, 16), address=0))]))]  # fmt: skip
            return [str(answer) for answer in answers if "quetzalcoatl" in str(answer)]

        self.assertEqual(run_as(OTHER, other), "[]")

    def test_what_a_user_reads(self):
        network = {"tensors": {"images": {"shape": [1, 8, 1, 16], "dtype": "fx8", "frac_bits": 4},
                               "out/1": {"shape": [1, 8, 1, 16], "dtype": "fx8", "frac_bits": 4}},
                   "operations": [{"run": "relu", "in": "images", "out": "out/1", "name": "act:1"}]}  # fmt: skip
        path = os.path.join(self.daemon.directory, "net.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(network, file)
        done = subprocess.run([NPUMEMCTL, "--socket", self.daemon.path, "submit", path], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("act:1", done.stderr)
        self.assertRegex(done.stderr, r"images #\d+ has bytes that were never written")
        self.alloc("tlaloc")
        told = subprocess.run([NPUMEMCTL, "--socket", self.daemon.path, "ls"], capture_output=True, text=True, check=True).stdout
        self.assertIn("(tlaloc)", told)


class Kept(StateTestCase):
    def test_a_daemon_that_comes_back_knows_it(self):
        with npumem.connect(self.daemon.path, timeout=SECONDS) as dev:
            tensors = [dev.alloc(shape=(1, 8, 1, 16), dtype="int8", label=label) for label in ("l" * 63, "x", "")]
            self.restart()
            self.assertEqual([dev.open(tensor.handle).label for tensor in tensors], ["l" * 63, "x", ""])


if __name__ == "__main__":
    unittest.main()
