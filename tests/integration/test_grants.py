"""Who may do what with whose tensors, over the socket: every call, asked as another uid."""

import os
import unittest

from support import Client, TestCase, dims, pb, run_as

ALICE, BOB = 12001, 12002


def ref(name):
    return pb.Ref(name=name)


def relu(source, out):
    return pb.RunRequest(
        kernel=pb.RELU,
        operands=[pb.Operand(role="in", tensor=ref(source)), pb.Operand(role="out", tensor=ref(out))],
    )


def view(base, name):
    return pb.ViewRequest(name=name, tensor=ref(base), to=dims(1, 4, 1, 16))


# One request of every kind that names a tensor, about TENSOR; and what it needs.
CALLS = {
    "view": lambda t: pb.ViewRequest(name="v", tensor=ref(t), to=dims(1, 4, 1, 16)),
    "free": lambda t: pb.FreeRequest(tensors=[ref(t)]),
    "open": lambda t: pb.OpenRequest(tensor=ref(t)),
    "seal": lambda t: pb.SealRequest(tensor=ref(t)),
    "rename": lambda t: pb.RenameRequest(tensor=ref(t), name="stolen"),
    "grant": lambda t: pb.GrantRequest(tensor=ref(t), uid=BOB, access=pb.ACCESS_WRITE),
    "write": lambda t: pb.WriteRequest(tensor=ref(t), data=b"x" * 128),
    "read": lambda t: pb.ReadRequest(tensor=ref(t)),
    "fill": lambda t: pb.FillRequest(tensor=ref(t), integer=1),
    "copy": lambda t: pb.CopyRequest(destination=ref(t), source=ref("mine")),
    "run": lambda t: relu("mine", t),
    "submit": lambda t: pb.SubmitRequest(operations=[pb.Operation(fill=pb.FillRequest(tensor=ref(t), integer=1))]),
    "dry_run": lambda t: pb.SubmitRequest(operations=[pb.Operation(fill=pb.FillRequest(tensor=ref(t), integer=1))]),
}
# Calls that name no tensor of others; what they show is looked at below.
ABOUT_NONE = {
    "info", "stat", "dump", "compact", "plan", "alloc", "list", "share", "unshare", "keep",
}


class Grants(TestCase):
    def as_uid(self, uid, function):
        """function(client) as another uid, whose assertions are ours."""

        def child():
            with Client(self.daemon.path) as client:
                function(client)
            return "well"

        self.assertEqual(run_as(uid, child), "well")

    def setUp(self):
        super().setUp()
        os.chmod(self.daemon.directory, 0o755)

        def prepare(client):
            client.alloc("x", dtype=pb.FX8, frac_bits=4)
            client.call(fill=pb.FillRequest(tensor=ref("x"), integer=3))

        self.as_uid(ALICE, prepare)

    def grant(self, access, uid=BOB):
        self.as_uid(
            ALICE, lambda client: client.call(grant=pb.GrantRequest(tensor=ref("x"), uid=uid, access=access))
        )

    def test_every_call_is_here(self):
        calls = {field.name for field in pb.Request.DESCRIPTOR.oneofs_by_name["call"].fields}
        self.assertEqual(calls - set(CALLS) - ABOUT_NONE - OTHERS, set())

    def test_what_is_not_granted_is_not_there(self):
        def bob(client):
            client.alloc("mine", dtype=pb.FX8, frac_bits=4)
            client.call(fill=pb.FillRequest(tensor=ref("mine"), integer=3))
            for name, call in CALLS.items():
                response = client.ask(**{name: call(f"{ALICE}:x")})
                assert response.status == pb.NOT_FOUND, (name, response)
                nobody = client.ask(**{name: call(f"{ALICE}:nobody")})
                assert response.message.replace(":x", ":nobody") == nobody.message, (name, response, nobody)
            assert client.names() == ["mine"]
            response = client.ask(dump=pb.DumpRequest(npu=0, offset=0, bytes=256))
            assert response.status == pb.PERMISSION_DENIED, response
            assert f"a tensor of uid {ALICE} (" in response.message and "x" not in [f.text for f in response.fields]
            spec = pb.Spec(dtype=pb.INT8, shape=dims(1, 8, 1, 16), address=0)
            response = client.ask(alloc=pb.AllocRequest(tensors=[pb.Allocation(spec=spec)]))
            assert response.status == pb.RESOURCE_EXHAUSTED, response
            assert f"a tensor of uid {ALICE}" in response.message, response

        self.as_uid(BOB, bob)

    def test_a_kept_list_has_no_more_rights_than_its_operations(self):
        with self.client() as root:
            x = root.call(open=pb.OpenRequest(tensor=ref(f"{ALICE}:x"))).tensor.handle

        def keep(client, number, handle):
            operation = pb.Operation(fill=pb.FillRequest(tensor=pb.Ref(handle=handle), integer=1))
            client.call(keep=pb.KeepRequest(list=number, operations=[operation]))

        def bob(client):
            keep(client, 1, x)
            keep(client, 2, client.alloc("mine", dtype=pb.FX8, frac_bits=4).handle)
            response = client.ask(submit=pb.SubmitRequest(list=1))
            assert response.status == pb.NOT_FOUND, response
            hers = pb.Change(operation=0, tensor=x)
            response = client.ask(submit=pb.SubmitRequest(list=2, changes=[hers]))
            assert response.status == pb.NOT_FOUND, response
            assert client.ask(submit=pb.SubmitRequest(list=2)).status == pb.OK

        self.as_uid(BOB, bob)

        def may_read(client):
            keep(client, 1, x)
            assert client.ask(submit=pb.SubmitRequest(list=1)).status == pb.PERMISSION_DENIED

        self.grant(pb.ACCESS_READ)
        self.as_uid(BOB, may_read)

    def test_reading(self):
        self.grant(pb.ACCESS_READ)

        def bob(client):
            client.alloc("mine", dtype=pb.FX8, frac_bits=4)
            client.call(fill=pb.FillRequest(tensor=ref("mine"), integer=9))
            x = f"{ALICE}:x"
            assert client.call(read=pb.ReadRequest(tensor=ref(x))).done.data == b"\3" * 128
            shown = client.call(open=pb.OpenRequest(tensor=ref(x))).tensor
            assert shown.uid == ALICE and not shown.grants
            client.call(copy=pb.CopyRequest(destination=ref("mine"), source=ref(x)))
            client.call(run=relu(x, "mine"))
            client.call(view=view(x, "part"))
            assert client.call(read=pb.ReadRequest(tensor=ref("part"))).done.data == b"\3" * 64
            for name in ("write", "fill", "copy", "run", "submit", "dry_run", "seal", "free", "rename", "grant"):
                response = client.ask(**{name: CALLS[name](x)})
                assert response.status == pb.PERMISSION_DENIED, (name, response)
                assert f"uid {BOB} may read {x}" in response.message, response
            # His view is his own, its bytes are not.
            response = client.ask(fill=pb.FillRequest(tensor=ref("part"), integer=1))
            assert response.status == pb.PERMISSION_DENIED, response
            client.call(free=pb.FreeRequest(tensors=[ref("part")]))
            assert client.names() == ["mine", "x"], client.names()

        self.as_uid(BOB, bob)

    def test_writing_and_taking_it_back(self):
        self.grant(pb.ACCESS_WRITE)
        x = f"{ALICE}:x"

        def writes(client):
            client.call(fill=pb.FillRequest(tensor=ref(x), integer=7))
            client.call(view=view(x, "part"))
            client.call(fill=pb.FillRequest(tensor=ref("part"), integer=8))
            for name in ("seal", "free", "rename", "grant"):
                assert client.ask(**{name: CALLS[name](x)}).status == pb.PERMISSION_DENIED, name

        def no_longer(client):
            assert client.ask(fill=pb.FillRequest(tensor=ref(x), integer=1)).status == pb.NOT_FOUND
            for call in (dict(fill=pb.FillRequest(tensor=ref("part"), integer=1)), dict(read=pb.ReadRequest(tensor=ref("part")))):
                assert client.ask(**call).status == pb.PERMISSION_DENIED, call
            seal = client.ask(seal=pb.SealRequest(tensor=ref("part")))
            assert seal.status == pb.INVALID and x not in seal.message and f"uid {ALICE}" in seal.message, seal
            client.call(free=pb.FreeRequest(tensors=[ref("part")]))

        def alice(client):
            assert client.call(read=pb.ReadRequest(tensor=ref("x"))).done.data == b"\x08" * 64 + b"\7" * 64
            assert [(g.uid, g.access) for g in client.call(open=pb.OpenRequest(tensor=ref("x"))).tensor.grants] == [
                (BOB, pb.ACCESS_WRITE)
            ]

        self.as_uid(BOB, writes)
        self.as_uid(ALICE, alice)
        self.grant(pb.ACCESS_NONE)
        self.as_uid(BOB, no_longer)

    def test_a_view_of_anothers_tensor_goes_with_it(self):
        self.grant(pb.ACCESS_READ)
        self.as_uid(BOB, lambda client: client.call(view=view(f"{ALICE}:x", "part")))
        self.as_uid(ALICE, lambda client: client.call(free=pb.FreeRequest(tensors=[ref("x")])))
        self.as_uid(BOB, lambda client: self.assertEqual(client.names(), []))

    def test_a_view_of_a_granted_view(self):
        """A view of one's own could not be read without a right to the root, so that it is not made."""

        def alice(client):
            client.call(view=view("x", "part"))
            client.call(grant=pb.GrantRequest(tensor=ref("part"), uid=BOB, access=pb.ACCESS_WRITE))

        def bob(client):
            assert client.call(read=pb.ReadRequest(tensor=ref(f"{ALICE}:part"))).done.data == b"\3" * 64
            response = client.ask(view=view(f"{ALICE}:part", "mine"))
            assert response.status == pb.PERMISSION_DENIED, response
            assert f"{ALICE}:part, and not its base, a tensor of uid {ALICE}" in response.message, response
            assert client.names() == ["part"], client.names()

        def bob_with_the_root(client):
            client.call(view=view(f"{ALICE}:part", "mine"))
            assert client.call(read=pb.ReadRequest(tensor=ref("mine"))).done.data == b"\3" * 64

        self.as_uid(ALICE, alice)
        self.as_uid(BOB, bob)
        self.grant(pb.ACCESS_READ)
        self.as_uid(BOB, bob_with_the_root)

    def test_a_view_says_nothing_of_bytes_that_may_not_be_read_any_more(self):
        def told(client):
            view_of_x = client.call(list=pb.ListRequest()).list.tensors[0]
            return view_of_x.state, view_of_x.unwritten_bytes

        self.grant(pb.ACCESS_READ)
        self.as_uid(BOB, lambda client: client.call(view=view(f"{ALICE}:x", "part")))
        self.as_uid(BOB, lambda client: self.assertEqual(told(client), ("ok", 0)))
        self.grant(pb.ACCESS_NONE)
        self.as_uid(BOB, lambda client: self.assertEqual(told(client), ("", 0)))
        for change in ({"rename": pb.RenameRequest(tensor=ref("part"), name="other")},
                       {"grant": pb.GrantRequest(tensor=ref("other"), uid=ALICE, access=pb.ACCESS_READ)}):
            self.as_uid(BOB, lambda client: self.assertEqual(client.call(**change).tensor.state, ""))
        self.grant(pb.ACCESS_READ)
        self.as_uid(BOB, lambda client: self.assertEqual(told(client), ("ok", 0)))

    def test_bad_grants(self):
        def alice(client):
            anonymous = client.alloc()
            for request, status, words in (
                (pb.GrantRequest(tensor=ref("x"), uid=BOB), pb.INVALID, "none, read or write"),
                (pb.GrantRequest(tensor=ref("x"), uid=BOB, access=9), pb.INVALID, "9"),
                (pb.GrantRequest(tensor=ref("x"), uid=ALICE, access=pb.ACCESS_READ), pb.INVALID, "owns x"),
                (pb.GrantRequest(tensor=pb.Ref(handle=anonymous.handle), uid=BOB, access=pb.ACCESS_READ), pb.INVALID, "without a name"),
                (pb.GrantRequest(uid=BOB, access=pb.ACCESS_READ), pb.INVALID, "not given"),
            ):
                response = client.ask(grant=request)
                assert response.status == status and words in response.message, response
            for uid in range(20000, 20016):
                client.call(grant=pb.GrantRequest(tensor=ref("x"), uid=uid, access=pb.ACCESS_READ))
            response = client.ask(grant=pb.GrantRequest(tensor=ref("x"), uid=20016, access=pb.ACCESS_READ))
            assert response.status == pb.RESOURCE_EXHAUSTED and "16 uids" in response.message, response
            client.call(grant=pb.GrantRequest(tensor=ref("x"), uid=20003, access=pb.ACCESS_NONE))
            client.call(grant=pb.GrantRequest(tensor=ref("x"), uid=20016, access=pb.ACCESS_WRITE))

        self.as_uid(ALICE, alice)

    def test_root_administers(self):
        with self.daemon.client() as client:
            client.call(seal=pb.SealRequest(tensor=ref(f"{ALICE}:x")))
            client.call(dump=pb.DumpRequest(npu=0, offset=0, bytes=256))
            client.call(free=pb.FreeRequest(tensors=[ref(f"{ALICE}:x")]))


# Calls of other files' tests, which name no tensor.
OTHERS = {"numeric", "cancel", "unkeep", "subscribe", "record", "shutdown", "snapshot", "resume"}

if __name__ == "__main__":
    unittest.main()
