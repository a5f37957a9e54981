"""Sessions that go on after a restart, by their token, and those that do not."""

import fcntl
import os
import unittest

from state import StateTestCase, grant, look, token_of
from support import Daemon, Endless, HungUp, Sharer, alloc, dims, fill, free, pb, read, ref, run, wait_for

OTHER = 1001
needs_root = unittest.skipIf(os.geteuid(), "root alone can be other uids")


def ask_resume(client, token, **more):
    return client.ask(resume=pb.ResumeRequest(token=token, **more))


class Beside(StateTestCase):
    options = ("--npu-bytes", str(4 << 20))

    @needs_root
    def test_it_goes_on_while_a_view_of_it_waits_for_another_user(self):
        """The answer is all that is left of the view's request, and nobody reads that any more."""
        owner, client = self.client(), self.client(OTHER)
        kernel = Endless(owner)
        owner.call(**grant("out", OTHER, pb.ACCESS_READ))
        token = token_of(client, linger=True)
        (sent,) = owner.post(kernel.call())
        owner.call(info=pb.InfoRequest())
        client.post({"view": pb.ViewRequest(tensor=ref(f"{os.geteuid()}:out"), to=dims(1, 64, 1, 8))})
        client.answers(client.post({"info": pb.InfoRequest()}))
        client.close()
        wait_for(lambda: ask_resume(self.client(OTHER), token, linger=True).status == pb.OK)
        owner.call(cancel=pb.CancelRequest(request_id=sent))


class Resumed(StateTestCase):
    def begin(self, client=None):
        """A session with a token, and an unnamed tensor full of 7."""
        client = client or self.client()
        token = token_of(client)
        tensor = client.alloc()
        client.call(**fill(tensor, 7))
        return client, token, tensor

    def test_it_has_its_tensors_and_its_number(self):
        client, token, tensor = self.begin()
        session = client.call(info=pb.InfoRequest()).info.session
        self.assertEqual(len(token), 16)
        self.assertEqual(token_of(client), token)
        for terminate in (False, True):
            self.restart(terminate=terminate)
            client = self.resume(token)
            self.assertEqual(client.call(info=pb.InfoRequest()).info.session, session)
            self.assertEqual(client.read(tensor.handle), bytes([7] * 128))
            self.assertEqual(token_of(client), token)
        # Nobody else sees them, and they go with it.
        self.assertEqual(self.n_tensors(), 1)
        self.refused(self.client().ask(**read(tensor)), pb.NOT_FOUND)
        client.close()
        wait_for(lambda: self.n_tensors() == 0)

    def test_what_is_refused(self):
        client, token, tensor = self.begin()
        # It has a connection that lives.
        busy = ask_resume(self.client(), token)
        self.refused(busy, pb.UNAVAILABLE, "has a connection")
        self.assertEqual(len(busy.fields), 0)  # and not that it goes down
        self.restart()
        for wrong in (bytes(16), token[:15], token + b"x", bytes([token[0] ^ 1]) + token[1:], token[:15] + bytes([token[15] ^ 128])):
            self.refused(ask_resume(self.client(), wrong), pb.NOT_FOUND)
        client = self.client()
        client.alloc()
        self.refused(ask_resume(client, token), pb.INVALID, "a session of its own")
        client = self.client()
        token_of(client)
        self.refused(ask_resume(client, token), pb.INVALID)
        client = self.resume(token)
        self.refused(ask_resume(self.client(), token), pb.UNAVAILABLE)
        self.assertEqual(client.read(tensor.handle), bytes([7] * 128))
        # Its end is for good.
        client.close()
        with self.client() as other:
            wait_for(lambda: other.ask(resume=pb.ResumeRequest(token=token)).status == pb.NOT_FOUND)

    def test_it_ends_when_nobody_comes(self):
        self.restart("--resume-seconds", "4")
        _, token, _ = self.begin()
        self.begin()
        client = self.client()
        client.call(**alloc("named"))
        self.restart("--resume-seconds", "4")
        client = self.client()
        client.call(subscribe=pb.SubscribeRequest(kinds=["client-gone"]))
        self.assertEqual(client.stat().tensors, 3)
        wait_for(lambda: self.n_tensors() == 1)
        self.refused(ask_resume(self.client(), token), pb.NOT_FOUND)
        client = self.client()
        wait_for(lambda: not any(any(npu) for npu in look(client)[2]))
        self.restart()
        self.assertIn("kept: 1 tensors, 0 views, and 0 sessions", self.output())

    def test_a_lingering_one_waits_for_its_client(self):
        self.restart("--resume-seconds", "5")
        client = self.client()
        token = token_of(client, linger=True)
        tensor = client.alloc()
        client.call(**fill(tensor, 7))
        for _ in range(3):
            client.close()
            client = self.client()
            wait_for(lambda: ask_resume(client, token).status != pb.UNAVAILABLE)
            self.assertEqual(client.read(tensor.handle), bytes([7] * 128))
        client.close()
        wait_for(lambda: self.n_tensors() == 0)
        self.refused(ask_resume(self.client(), token), pb.NOT_FOUND)

    def test_a_lingering_one_leaves_a_connection_that_is_cut(self):
        """Its client knows that first, and comes again while the daemon has the old one."""
        old = self.client()
        token = token_of(old, linger=True)
        tensor = old.alloc()
        old.call(**fill(tensor, 7))
        # Much that it does not read, as little as who is not there.
        old.post(*(read(tensor) for _ in range(2000)))
        new = self.client()
        self.refused(ask_resume(new, token), pb.UNAVAILABLE, "has a connection that has not ended")
        wait_for(lambda: ask_resume(new, token).status == pb.OK)
        with self.assertRaises(HungUp):
            while True:
                old.receive()
        self.assertEqual(self.n_tensors(), 1)

    def test_what_a_lingering_one_was_sent_may_be_lost(self):
        """Behind the socket, between two hosts. What was done is told again, and not done."""
        client = self.client()
        token = token_of(client, linger=True)
        x, y = (client.alloc(dtype=pb.FX8, frac_bits=4) for _ in "xy")
        client.call(**fill(y, 2))
        calls = fill(x, 5), run(pb.ELTWISE_ADD, in1=x.handle, in2=y.handle, out=x.handle)
        ids = client.post(*calls)
        client.answers(ids)
        client.close()
        client = self.client()
        wait_for(lambda: ask_resume(client, token).status == pb.OK)
        answers = client.pipeline(*(dict(call, id=number, again=True) for number, call in zip(ids, calls)))
        self.assertEqual([answer.status for answer in answers], [pb.OK, pb.OK], answers)
        self.assertEqual(set(client.read(x.handle)), {7})

    def test_one_that_is_there_is_told(self):
        old, new = self.client(), self.client()
        token = token_of(old, linger=True)
        ask_resume(new, token)
        told = old.receive()
        self.assertEqual((told.id, told.status), (0, pb.CANCELLED))
        with self.assertRaises(HungUp):
            old.receive()

    def test_one_too_many_is_in_the_log(self):
        self.restart("--limit", "sessions=2", "--resume-seconds", "60")
        watcher = self.client()
        for _ in range(3):
            wait_for(lambda: watcher.call(stat=pb.StatRequest(details=True)).stat.uids[0].sessions == 1)
            with self.daemon.client() as client:
                token_of(client, linger=True)
        wait_for(lambda: "ends with its connection, though it was to linger: 2 sessions" in self.output())

    def test_it_may_begin_to_linger_where_it_goes_on(self):
        """Also a token's session, which did not; and it goes on to where that is not said again."""
        client, token, tensor = self.begin()
        self.restart()
        client = self.client()
        client.id = 1 << 20
        client.call(resume=pb.ResumeRequest(token=token, linger=True))
        for _ in range(2):
            client.close()
            client = self.client()
            client.id = 1 << 20
            wait_for(lambda: ask_resume(client, token).status != pb.UNAVAILABLE)
            self.assertEqual(client.read(tensor.handle), bytes([7] * 128))

    def test_a_uid_at_its_limit_comes_back(self):
        self.restart("--limit", "sessions=3")
        begun = [self.begin()[1:] for _ in range(3)]
        self.restart("--limit", "sessions=3")
        for token, tensor in begun:
            self.assertEqual(self.resume(token).read(tensor.handle), bytes([7] * 128))

    def test_segments_are_shared_again_by_their_ids(self):
        memory = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        self.addCleanup(os.close, memory)
        os.write(memory, bytes(range(128)))
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        client = self.stack.enter_context(Sharer(self.daemon.path))
        token = token_of(client)
        tensor = client.alloc()
        client.share(memory)
        segment = client.share(memory)
        self.restart()
        client = self.stack.enter_context(Sharer(self.daemon.path))
        client.call(resume=pb.ResumeRequest(token=token))
        write = {"write": pb.WriteRequest(tensor=ref(tensor), segment=segment)}
        self.refused(client.ask(**write), pb.NOT_FOUND, "segment")
        client.send_fds([memory], share=pb.ShareRequest(segment=segment))
        self.assertEqual(client.receive().shared.segment, segment)
        client.call(**write)
        self.assertEqual(client.read(tensor.handle), bytes(range(128)))
        self.assertGreater(client.share(memory), segment)

    def test_many_wait_at_once(self):
        waiting = [self.begin()[1:] for _ in range(100)]
        for terminate in (False, True):
            self.restart(terminate=terminate)
            self.assertIn("and 100 sessions", self.output())
            for token, tensor in waiting[::2]:
                with self.resume(token) as client:
                    self.assertEqual(client.read(tensor.handle), bytes([7] * 128))
            wait_for(lambda: self.n_tensors() == 50)
            waiting = waiting[1::2] + [self.begin()[1:] for _ in range(50)]

    def test_a_daemon_without_a_state_gives_no_token(self):
        self.stop()
        with Daemon(directory=self.directory) as daemon, daemon.client() as client:
            self.assertEqual(token_of(client), b"")
            self.assertFalse(client.call(info=pb.InfoRequest()).info.features & pb.FEATURE_RESUME)
            self.refused(ask_resume(client, bytes(16)), pb.NOT_FOUND)
        self.start()


class Stopping(StateTestCase):
    def test_what_was_answered_is_kept_and_the_rest_can_be_asked_again(self):
        client = self.client()
        token = token_of(client)
        calls = [alloc(f"t{i}") for i in range(50)] + [fill(f"t{i}", i) for i in range(50)]
        ids = client.post(*calls)
        client.answers(ids[:1])
        self.daemon.process.terminate()
        answered = {ids[0]}
        with self.assertRaises((HungUp, ConnectionResetError)):
            while True:
                answer = client.receive()
                self.assertEqual(answer.status, pb.OK)
                answered.add(answer.id)
        self.daemon.process.wait(60)
        self.stop()
        self.start()
        client = self.resume(token)
        self.assertLessEqual({f"t{i}" for i in range(50) if ids[i] in answered}, set(client.names()))
        rest = [dict(call, id=i, again=True) for i, call in zip(ids, calls) if i not in answered]
        self.assertTrue(all(answer.status == pb.OK for answer in client.pipeline(*rest)))
        self.assertEqual(len(client.tensors()), 50)
        for i in range(50):
            self.assertEqual(client.call(**read(f"t{i}")).done.data, bytes([i] * 128))

    def test_a_shutdown_request_keeps_sessions_too(self):
        client = self.client()
        token = token_of(client)
        tensor = client.alloc()
        self.client().call(shutdown=pb.ShutdownRequest())
        self.daemon.process.wait(60)
        self.stop()
        self.start()
        self.assertEqual([t.handle for t in self.resume(token).tensors()], [tensor.handle])

    def test_freed_while_it_ends(self):
        client = self.client()
        token = token_of(client)
        tensors = [client.alloc() for _ in range(20)]
        *_, last = client.post(*[free(tensor) for tensor in tensors[::2]], {"info": pb.InfoRequest()})
        client.answers([last])  # so that all of them have arrived
        self.restart(terminate=True)
        self.assertEqual([t.handle for t in self.resume(token).tensors()], [t.handle for t in tensors[1::2]])


if __name__ == "__main__":
    unittest.main()
