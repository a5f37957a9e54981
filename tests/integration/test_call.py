"""npumemctl call: every request of the wire as JSON. Python's protobuf writes the questions and reads the answers, by its
own JSON mapping, and asks the same itself."""

import json
import os
import subprocess
import unittest

from google.protobuf import json_format

from support import NPUMEMCTL, SECONDS, TestCase, dims, pb



def ref(name):
    return pb.Ref(name=name)


def spec(**members):
    return pb.Spec(dtype=pb.FX8, frac_bits=4, shape=dims(1, 4, 2, 3), **members)


FILL = pb.FillRequest(tensor=ref("x"), integer=-3)
SUM = pb.NumericSum(x=pb.NumericFormat(integer_bits=3, frac_bits=4), n=34)
# In this order: each, and what is the same whoever asks.
QUESTIONS = {
    "info": (pb.InfoRequest(features=2**64 - 1), "info.npu_bytes"),
    "alloc": (pb.AllocRequest(tensors=[pb.Allocation(name=name, spec=spec()) for name in "xy"]), None),
    "write": (pb.WriteRequest(tensor=ref("x"), first=2, data=bytes(range(200, 222))), "done.macs"),
    "fill": (FILL, "done.macs"),
    "read": (pb.ReadRequest(tensor=ref("x")), "done.data"),
    "copy": (pb.CopyRequest(destination=ref("y"), source=ref("x")), "done.macs"),
    "run": (
        pb.RunRequest(
            kernel=pb.RELU,
            operands=[pb.Operand(role="in", tensor=ref("x")), pb.Operand(role="out", tensor=ref("y"))],
            params=[pb.Param(key=pb.PARAM_RELU, values=[2])],
        ),
        "done.saturated",
    ),
    "submit": (
        pb.SubmitRequest(operations=[pb.Operation(fill=FILL), pb.Operation(read=pb.ReadRequest(tensor=ref("x")))]), None,
    ),
    "dry_run": (pb.SubmitRequest(operations=[pb.Operation(fill=FILL)]), None),
    "view": (pb.ViewRequest(name="v", tensor=ref("x"), to=dims(1, 2, 2, 3)), None),
    "open": (pb.OpenRequest(tensor=ref("x")), "tensor"),
    "rename": (pb.RenameRequest(tensor=ref("y"), name="z"), None),
    "grant": (pb.GrantRequest(tensor=ref("x"), uid=2**32 - 2, access=pb.ACCESS_WRITE), "tensor"),
    "seal": (pb.SealRequest(tensor=ref("x")), "tensor"),
    "list": (pb.ListRequest(), "list"),
    "free": (pb.FreeRequest(tensors=[ref("z")]), None),
    "stat": (pb.StatRequest(details=True), "stat.data"),
    "dump": (pb.DumpRequest(npu=0, offset=0, bytes=64), "dump"),
    "compact": (pb.CompactRequest(dry_run=True), "compacted"),
    "plan": (pb.PlanRequest(spec=spec(start_npu=0)), "plan"),
    "numeric": (pb.NumericRequest(sum=SUM), "numeric"),
    "subscribe": (pb.SubscribeRequest(kinds=["freed", "moved"]), "subscribed"),
    "cancel": (pb.CancelRequest(request_id=2**63), "cancelled"),
    "unshare": (pb.UnshareRequest(segment=7), None),
    "share": (pb.ShareRequest(), None),
    "keep": (pb.KeepRequest(list=5, operations=[pb.Operation(fill=pb.FillRequest(tensor=pb.Ref(handle=1), integer=1))]), "kept.list"),
    "unkeep": (pb.UnkeepRequest(list=7), None),
    "resume": (pb.ResumeRequest(), None),
    "snapshot": (pb.SnapshotRequest(), None),
    "record": (pb.RecordRequest(action=pb.RECORD_HASH), "recorded"),
    "shutdown": (pb.ShutdownRequest(), "shutting_down"),
}
# What cannot be answered well this way: there is no segment, and no descriptor comes.
REFUSED = {"unshare": "NOT_FOUND", "unkeep": "NOT_FOUND", "share": "INVALID", "snapshot": "FAILED_PRECONDITION"}


def member(message, path):
    for name in path.split("."):
        message = getattr(message, name)
    return message


class Call(TestCase):
    options = ("--npus", "4", "--npu-bytes", "8192", "--banks", "8")

    def run_ctl(self, *words, stdin=None):
        return subprocess.run(
            [NPUMEMCTL, "--socket", self.daemon.path, *words], capture_output=True, timeout=SECONDS, input=stdin, text=True,
            stdin=subprocess.DEVNULL if stdin is None else None,
        )

    def call(self, method, message):
        """The answer, and what a refusal's object says."""
        text = json_format.MessageToJson(message, preserving_proto_field_name=True)
        result = self.run_ctl("--json", "call", method, text)
        if result.returncode:
            return None, json.loads(result.stdout)["error"]
        return json_format.Parse(result.stdout, pb.Response()), None

    def refused(self, text, field, says, *words):
        result = self.run_ctl("--json", "call", *words, text)
        self.assertEqual(result.returncode, 1, result)
        error = json.loads(result.stdout)["error"]
        self.assertEqual((error["status"], error["fields"]["field"]), ("INVALID", field), error)
        self.assertIn(says, error["message"])

    def test_every_request(self):
        methods = [field.name for field in pb.Request.DESCRIPTOR.oneofs_by_name["call"].fields]
        self.assertEqual(set(methods) - set(QUESTIONS), set(), "requests without a question")
        self.assertEqual(self.run_ctl("call", "--list").stdout.split(), sorted(methods, key=lambda name: (
            pb.Request.DESCRIPTOR.fields_by_name[name].number)))
        client = self.client()
        for method, (question, same) in QUESTIONS.items():
            with self.subTest(method):
                answer, error = self.call(method, question)
                if method in REFUSED:
                    self.assertEqual(error["status"], REFUSED[method])
                    continue
                self.assertIsNone(error)
                self.assertTrue(answer.WhichOneof("result"))
                if same and method != "shutdown":
                    asked = client.call(**{method: question})
                    self.assertEqual(member(answer, same), member(asked, same))
        self.daemon.process.wait(SECONDS)

    def test_what_it_does(self):
        alloc = self.call("alloc", QUESTIONS["alloc"][0])[0].allocated
        self.assertEqual([tensor.name for tensor in alloc.tensors], ["x", "y"])
        data = self.call("submit", QUESTIONS["submit"][0])[0].submitted.done[1].data
        self.assertEqual(data, bytes([253]) * 24)
        renamed = self.call("rename", pb.RenameRequest(tensor=pb.Ref(handle=alloc.tensors[1].handle), name="z"))[0]
        self.assertEqual(renamed.tensor.name, "z")
        self.assertEqual(self.call("free", QUESTIONS["free"][0])[0].freed.tensors, 1)

    def test_a_large_write(self):
        self.client().alloc("x", (1, 4, 8, 1000), dtype=pb.UINT8)
        data = os.urandom(8000)
        request = pb.WriteRequest(tensor=ref("x"), data=data)
        text = json_format.MessageToJson(request, preserving_proto_field_name=True)
        self.assertEqual(self.run_ctl("call", "write", "-", stdin=text).returncode, 0)
        answer, _ = self.call("read", pb.ReadRequest(tensor=ref("x"), count=8000))
        self.assertEqual(answer.done.data, data)

    def test_a_submit_that_is_refused_tells_what_ran(self):
        self.client().alloc("x")
        fill = '{"fill": {"tensor": {"name": "x"}, "integer": 1}}'
        result = self.run_ctl("call", "submit", '{"operations": [%s, {"fill": {"tensor": {"name": "x"}, "integer": 1000}}]}' % fill)
        self.assertEqual(result.returncode, 1)
        self.assertEqual(len(json.loads(result.stdout)["submitted"]["done"]), 1)
        self.assertIn("1000", result.stderr)

    def test_what_is_no_message(self):
        good = '{"tensors": [{"name": "x", "spec": {"shape": {"n": %s}}}]}'
        self.refused(good % '"x"', "tensors[0].spec.shape.n", "an integer is expected", "alloc")
        self.refused(good % "1.5", "tensors[0].spec.shape.n", "an integer is expected", "alloc")
        self.refused(good % '"9223372036854775808"', "tensors[0].spec.shape.n", "is not", "alloc")
        self.refused(good % "9223372036854775808", "", "too big integer", "alloc")
        self.refused('{"tensors": {}}', "tensors", "a list is expected", "alloc")
        self.refused('{"tensors": [{"nam": "x"}]}', "tensors[0]", "there are: spec, name, reuse", "alloc")
        self.refused('{"tensor": {"name": "x"}, "integer": 1, "real": 1}', "real", "beside integer", "fill")
        self.refused('{"data": "A"}', "data", "base64", "write")
        self.refused('{"details": 1}', "details", "true or false is expected", "info")
        self.refused('{"kernel": "CONV3D"}', "kernel", "not one of KERNEL_UNSPECIFIED, CONV2D", "run")
        self.refused("{", "", "the request: byte 1: string or '}' expected", "info")
        self.refused("[]", "", "the request: an object is expected", "info")
        self.refused("{} {}", "", "end of file expected", "info")
        for words, says in (((), "needs a method"), (("aloc",), 'did you mean "alloc"'), (("info", "{}", "{}"), "call")):
            result = self.run_ctl("call", *words)
            self.assertEqual(result.returncode, 2, result)
            self.assertIn(says, result.stderr)
        # A refusal of the daemon.
        answer, error = self.call("open", pb.OpenRequest(tensor=ref("none")))
        self.assertEqual((answer, error["status"]), (None, "NOT_FOUND"))


if __name__ == "__main__":
    unittest.main()
