"""What is not granted is invisible, in every answer: each call of the protocol, asked by another uid beside a private
tensor, gives neither its name nor its bytes, handle or session; nor do events, pictures and the commands' texts. A new
call that names a tensor needs its questions here."""

import json
import os
import subprocess
import unittest

from support import Client, TestCase, dims, for_all_uids, pb, run_as

CLIENT = os.path.join(os.environ["NPUMEM_BUILD"], "client")
ALICE, BOB = 12001, 12002
SECRET, HIDDEN = "quetzalcoatl", "tlaloc"  # a named tensor; a view of it
DATA = bytes(range(101, 117)) * 8  # its 128 bytes
KINDS = ["allocated", "freed", "sealed", "renamed", "moved", "damaged", "refused", "low-space", "client-gone", "progress"]


def refs(handle):
    """Each way to speak of it."""
    return [pb.Ref(name=f"{ALICE}:{SECRET}"), pb.Ref(name=SECRET), pb.Ref(handle=handle), pb.Ref(name=f"{ALICE}:{HIDDEN}")]


def alloc(name="", address=None, shape=(1, 8, 1, 16), **members):
    spec = pb.Spec(dtype=pb.INT8, shape=dims(*shape))
    if address is not None:
        spec.address = address
    return pb.AllocRequest(tensors=[pb.Allocation(name=name, spec=spec, **members)])


def run(source, out):
    return pb.RunRequest(
        kernel=pb.PAD2D, operands=[pb.Operand(role="in", tensor=source), pb.Operand(role="out", tensor=out)]
    )


def operations(t):
    mine = pb.Ref(name="mine")
    return [
        pb.Operation(write=pb.WriteRequest(tensor=t, data=b"x" * 128)),
        pb.Operation(read=pb.ReadRequest(tensor=t)),
        pb.Operation(fill=pb.FillRequest(tensor=t, integer=1)),
        pb.Operation(copy=pb.CopyRequest(destination=mine, source=t)),
        pb.Operation(run=run(t, mine)),
        pb.Operation(run=run(mine, t)),
    ]


def names_tensors(message, seen=()):
    """Whether a Ref is a member of a message, or of a message in it."""
    members = [field.message_type for field in message.fields if field.message_type and field.message_type not in seen]
    return pb.Ref.DESCRIPTOR in members or any(names_tensors(member, (*seen, message)) for member in members)


MINE = pb.Operation(copy=pb.CopyRequest(destination=pb.Ref(name="mine"), source=pb.Ref(name="mine")))

# Of each call, requests about a tensor (by a Ref), or beside it. A call that is not here is asked without members.
QUESTIONS = {
    "stat": lambda t: [pb.StatRequest(), pb.StatRequest(details=True)],
    "dump": lambda t: [pb.DumpRequest(npu=n, offset=0, bytes=b) for n in (0, 5, 9) for b in (1, 128, 4096)],
    "compact": lambda t: [pb.CompactRequest(dry_run=True), pb.CompactRequest()],
    "plan": lambda t: [pb.PlanRequest(spec=alloc(address=0).tensors[0].spec)],
    "alloc": lambda t: [
        alloc(SECRET.upper()),
        alloc(address=0),
        alloc("over", 0, reuse=pb.IF_SAFE, dma_only=True),
        alloc("over", 0, (1, 1, 1, 16), reuse=pb.UNCHECKED),
        alloc("vast", None, (1, 64, 512, 1024)),
    ],
    "view": lambda t: [pb.ViewRequest(name="v", tensor=t, to=dims(1, 4, 1, 16))],
    "free": lambda t: [pb.FreeRequest(tensors=[t]), pb.FreeRequest(tensors=[pb.Ref(name="mine"), t])],
    "open": lambda t: [pb.OpenRequest(tensor=t)],
    "seal": lambda t: [pb.SealRequest(tensor=t)],
    "rename": lambda t: [pb.RenameRequest(tensor=t, name="stolen")],
    "grant": lambda t: [pb.GrantRequest(tensor=t, uid=BOB, access=pb.ACCESS_WRITE)],
    "list": lambda t: [pb.ListRequest(), pb.ListRequest(after=1), pb.ListRequest(limit=1)],
    "write": lambda t: [operations(t)[0].write],
    "read": lambda t: [operations(t)[1].read],
    "fill": lambda t: [operations(t)[2].fill],
    "copy": lambda t: [operations(t)[3].copy, pb.CopyRequest(destination=t, source=pb.Ref(name="mine"))],
    "run": lambda t: [operations(t)[4].run, operations(t)[5].run],
    "submit": lambda t: [pb.SubmitRequest(operations=[o]) for o in operations(t)]
    + [pb.SubmitRequest(operations=[pb.Operation(group=1, fill=operations(t)[2].fill), pb.Operation(group=1, run=run(t, t))])],
    "dry_run": lambda t: [pb.SubmitRequest(operations=[o]) for o in operations(t)],
    "keep": lambda t: [pb.KeepRequest(list=i, operations=[o]) for i, o in enumerate([*operations(t), MINE], 1)],
    "submit of a kept list": lambda t: [pb.SubmitRequest(list=i) for i in range(1, 8)]
    + [pb.SubmitRequest(list=7, changes=[pb.Change(operation=0, role=role, tensor=t.handle)]) for role in ("", "source")],
    "unkeep": lambda t: [pb.UnkeepRequest(list=i) for i in range(1, 8)],
    "subscribe": lambda t: [pb.SubscribeRequest(kinds=KINDS)],
    "cancel": lambda t: [pb.CancelRequest(request_id=i) for i in range(1, 9)],
    "unshare": lambda t: [pb.UnshareRequest(segment=i) for i in range(4)],
    "record": lambda t: [pb.RecordRequest(action=a) for a in range(5)],
    "snapshot": lambda t: [pb.SnapshotRequest(snapshot=i) for i in range(3)],
    "resume": lambda t: [pb.ResumeRequest(), pb.ResumeRequest(token=bytes(16))],
}


class Invisible(TestCase):
    options = ("--allow-unchecked-reuse",)

    def setUp(self):
        super().setUp()
        if os.getuid():
            self.skipTest("needs root")
        os.chmod(self.daemon.directory, 0o755)
        self.alice(self.prepare)

    def as_uid(self, uid, function):
        def child():
            with Client(self.daemon.path) as client:
                return json.dumps(function(client))

        return json.loads(run_as(uid, child))

    def alice(self, function):
        return self.as_uid(ALICE, function)

    def prepare(self, client):
        tensor = client.alloc(SECRET, (1, 8, 1, 16))
        client.write(tensor.handle, DATA)
        view = pb.ViewRequest(name=HIDDEN, tensor=pb.Ref(name=SECRET), to=dims(1, 4, 1, 16))
        client.call(view=view)
        self.handle = tensor.handle
        return None

    def leaks(self, what):
        """What of the secret is in some bytes."""
        return [s for s in (SECRET.encode(), HIDDEN.encode(), DATA[:12]) if s in what]

    def test_every_call(self):
        methods = {field.name: field.message_type for field in pb.Request.DESCRIPTOR.oneofs_by_name["call"].fields}
        lacking = [name for name in methods if name not in QUESTIONS and names_tensors(methods[name])]
        self.assertEqual(lacking, [], "calls without a question")
        handle = self.alice(lambda client: client.call(open=pb.OpenRequest(tensor=pb.Ref(name=SECRET))).tensor.handle)

        def bob(client):
            wrong = []
            mine = client.alloc("mine", (1, 8, 1, 16))
            client.write(mine.handle, b"m" * 128)
            for name in (*QUESTIONS, *(name for name in methods if name not in QUESTIONS)):
                for ref in refs(handle):
                    for question in QUESTIONS[name](ref) if name in QUESTIONS else [getattr(pb, methods[name].name)()]:
                        sent = client.send(**{name.split()[0]: question})
                        while (answer := client.receive()).id != sent:
                            if self.leaks(answer.SerializeToString()):
                                wrong.append(f"an event after {name}: {answer}")
                        # What was asked for by its name may be said again, where nothing is known of it.
                        said = answer.SerializeToString().replace(f"there is no tensor {ref.name}".encode(), b"")
                        if self.leaks(said) or f'handle: {handle}\n' in str(answer):
                            wrong.append(f"{name}: {question} answered {answer}")
            return wrong

        self.assertEqual(self.as_uid(BOB, bob), [])
        # And nothing of it has changed.
        data = self.alice(lambda client: client.call(read=pb.ReadRequest(tensor=pb.Ref(name=SECRET))).done.data.hex())
        self.assertEqual(data, DATA.hex())

    def test_a_handle_that_is_there_looks_like_one_that_is_not(self):
        handle = self.alice(lambda client: client.call(open=pb.OpenRequest(tensor=pb.Ref(name=SECRET))).tensor.handle)

        def bob(client):
            client.alloc("mine", (1, 8, 1, 16))
            wrong = []
            for name in ("view", "free", "open", "seal", "rename", "grant", "write", "read", "fill", "copy", "run"):
                for there, nowhere in zip(*(QUESTIONS[name](pb.Ref(handle=h)) for h in (handle, handle + 77))):
                    a, b = client.ask(**{name: there}), client.ask(**{name: nowhere})
                    if a.status != b.status or a.message.replace(str(handle), str(handle + 77)) != b.message:
                        wrong.append(f"{name}: {a} against {b}")
            return wrong

        self.assertEqual(self.as_uid(BOB, bob), [])

    def test_events(self):
        reader, writer = os.pipe()
        ready, is_ready = os.pipe()
        done, is_done = os.pipe()

        def bob(client):
            client.call(subscribe=pb.SubscribeRequest(kinds=KINDS))
            os.write(is_ready, b"1")
            os.read(done, 1)
            mine = client.alloc("mine").handle
            events = [client.receive().event]
            while events[-1].handle != mine:
                events.append(client.receive().event)
            return [str(event) for event in events[:-1]]

        child = os.fork()
        if not child:
            os.write(writer, json.dumps(self.as_uid(BOB, bob)).encode())
            os._exit(0)
        os.close(writer)
        os.read(ready, 1)

        def alice(client):
            for name in (SECRET + "2", SECRET + "3"):
                tensor = client.alloc(name, (1, 8, 1, 16))
                client.write(tensor.handle, DATA)
            client.call(rename=pb.RenameRequest(tensor=pb.Ref(name=SECRET + "2"), name=HIDDEN + "2"))
            client.call(rename=pb.RenameRequest(tensor=pb.Ref(name=HIDDEN + "2"), name=SECRET + "2"))
            client.call(seal=pb.SealRequest(tensor=pb.Ref(name=SECRET + "3")))
            client.ask(fill=pb.FillRequest(tensor=pb.Ref(name=SECRET + "3"), integer=1))
            client.call(free=pb.FreeRequest(tensors=[pb.Ref(name=SECRET + "2")]))
            client.call(compact=pb.CompactRequest())

        self.alice(alice)
        os.write(is_done, b"1")
        with open(reader, "rb") as answer:
            events = json.load(answer)
        os.waitpid(child, 0)
        for fd in (ready, is_ready, done, is_done):
            os.close(fd)
        self.assertEqual(events, [])

    def test_what_npumemctl_shows(self):
        directory = for_all_uids(*(os.path.join(CLIENT, name) for name in ("ctl/npumemctl", "lib/libnpumem.so.0")))
        svg = os.path.join("/tmp", f"npumem-invisible-{os.getpid()}.svg")
        commands = [["ls"], ["map"], ["map", "--svg", svg], ["stat"], ["stat", "--prometheus"], ["show", f"{ALICE}:{SECRET}"],
                    ["map", f"{ALICE}:{SECRET}"], ["dump", "0", "0", "64"], ["info"], ["compact", "--dry-run"]]  # fmt: skip
        picture = b""
        for command in commands:
            for json_flag in ([], ["--json"])[: 1 if "--prometheus" in command else 2]:
                result = subprocess.run(
                    [os.path.join(directory, "npumemctl"), "--socket", self.daemon.path, *json_flag, *command],
                    user=BOB, group=BOB, extra_groups=[], capture_output=True, check=False, cwd="/",
                    env=dict(os.environ, LD_LIBRARY_PATH=directory),
                )  # fmt: skip
                said = (result.stdout + result.stderr).replace(f"there is no tensor {ALICE}:{SECRET}".encode(), b"")
                self.assertEqual(self.leaks(said), [], (command, said))
                self.assertNotIn(result.returncode, (2, -11, -6), (command, result))
        if os.path.exists(svg):
            with open(svg, "rb") as file:
                picture = file.read()
            os.unlink(svg)
        self.assertIn(b"<svg", picture)
        self.assertEqual(self.leaks(picture), [])


if __name__ == "__main__":
    unittest.main()
