"""System memory: a foreign client shares a memfd, and no payload byte crosses the socket."""

import ctypes
import fcntl
import mmap
import os
import socket
import struct
import tempfile
import unittest

from support import Sharer, TestCase, dims, fill, frame, long_alloc, pb, wait_for

SHRINK = fcntl.F_SEAL_SHRINK


def memfd(n, seals=SHRINK):
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    if n:
        os.posix_fallocate(fd, 0, n)
    if seals:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def punch(fd, n):
    keep_size, punch_hole = 1, 2
    if ctypes.CDLL(None, use_errno=True).fallocate(fd, keep_size | punch_hole, ctypes.c_long(0), ctypes.c_long(n)):
        raise OSError(ctypes.get_errno(), "fallocate")


def renew(fd, n):
    punch(fd, n)
    os.posix_fallocate(fd, 0, n)


class Segments(TestCase):
    def client(self):
        client = self.stack.enter_context(Sharer(self.daemon.path))
        client.stat()  # so that its socket is counted
        return client

    def fds(self):
        return len(os.listdir(f"/proc/{self.daemon.process.pid}/fd"))

    def maps(self):
        with open(f"/proc/{self.daemon.process.pid}/maps", encoding="ascii") as maps:
            return sum("memfd:" in line for line in maps)

    def refused(self, response, status, *words):
        self.assertEqual(response.status, status, response)
        for word in words:
            self.assertIn(word, response.message)

    def memory(self, n, seals=SHRINK):
        fd = memfd(n, seals)
        self.addCleanup(os.close, fd)
        memory = mmap.mmap(fd, n)
        self.addCleanup(memory.close)
        return fd, memory

    def test_strides_that_make_no_sense(self):
        """The figure whose "H stride and C stride both make no sense", with and without them."""
        client = self.client()
        fd, memory = self.memory(4096)
        segment = client.share(fd)
        values = struct.pack("<60I", *range(1000, 1060))
        memory[:240] = values
        for c, h in ((0, 0), (5, 999)):
            tensor = client.alloc(
                shape=(2, 3, 1, 10), dtype=pb.INT32, layout=pb.STRIDED, stride=dims(120, c, h, 2), start_npu=1
            )
            self.assertEqual(tensor.place.bytes_per_npu, 556)
            ref = pb.Ref(handle=tensor.handle)
            for system in (-1, 0, 1, (1 << 62) - 1):
                stride = pb.Dims(n=30, c=10, h=system, w=1)
                client.call(write=pb.WriteRequest(tensor=ref, segment=segment, segment_stride=stride))
                self.assertEqual(client.read(tensor.handle), values)
                dump = pb.DumpRequest(npu=3, offset=tensor.place.offset + 480, bytes=4)
                self.assertEqual(client.call(dump=dump).dump.data, struct.pack("<I", 1000 + 50))
                memory[1024:1264] = bytes(240)
                client.call(
                    read=pb.ReadRequest(tensor=ref, segment=segment, segment_offset=1024, segment_stride=stride)
                )
                self.assertEqual(memory[1024:1264], values)

    def test_both_ways_with_strides_on_both_sides(self):
        client = self.client()
        fd, memory = self.memory(4096)
        segment = client.share(fd)
        # [2,3,2,4] int16 with gaps in local memory; in the segment each row of 4 has a gap of 1, each channel of 2.
        stride = pb.Dims(n=36, c=12, h=5, w=1)
        tensor = client.alloc(
            shape=(2, 3, 2, 4), dtype=pb.INT16, layout=pb.STRIDED, stride=dims(100, 40, 10, 2), start_npu=62
        )
        values = {}
        for n in range(2):
            for c in range(3):
                for h in range(2):
                    for w in range(4):
                        at = 64 + 2 * (n * 36 + c * 12 + h * 5 + w)
                        value = n * 1000 + c * 100 + h * 10 + w
                        values[at] = value
                        struct.pack_into("<h", memory, at, value)
        ref = pb.Ref(handle=tensor.handle)
        client.call(write=pb.WriteRequest(tensor=ref, segment=segment, segment_offset=64, segment_stride=stride))
        expected = [n * 1000 + c * 100 + h * 10 + w for n in range(2) for c in range(3) for h in range(2) for w in range(4)]
        self.assertEqual(client.read(tensor.handle), struct.pack("<48h", *expected))
        memory[:] = b"\xee" * 4096
        response = client.call(
            read=pb.ReadRequest(tensor=ref, segment=segment, segment_offset=64, segment_stride=stride)
        )
        self.assertEqual(response.done.data, b"")
        for at in range(0, 4096, 2):
            self.assertEqual(struct.unpack_from("<h", memory, at)[0], values.get(at, struct.unpack("<h", b"\xee\xee")[0]))

    def test_continuous_parts(self):
        client = self.client()
        fd, memory = self.memory(1 << 20)
        segment = client.share(fd)
        tensor = client.alloc(shape=(1, 64, 16, 16))
        memory[: 64 * 256] = bytes(i * 7 % 251 for i in range(64 * 256))
        ref = pb.Ref(handle=tensor.handle)
        client.call(write=pb.WriteRequest(tensor=ref, segment=segment))
        client.call(read=pb.ReadRequest(tensor=ref, first=100, count=1000, segment=segment, segment_offset=65536))
        self.assertEqual(memory[65536 : 65536 + 1000], memory[100:1100])

    def test_pages_that_come_and_go(self):
        """Large transfers, the same again, and again when the client has taken its pages away and made new ones."""
        client = self.client()
        n = 4 * 256 * 28 * 28
        fd, memory = self.memory(4 * n)
        segment = client.share(fd)
        tensor = pb.Ref(handle=client.alloc(shape=(4, 256, 28, 28), dtype=pb.INT32).handle)
        for turn in range(4):
            memory[:] = struct.pack(f"<{n}I", *range(turn, n + turn))
            client.call(write=pb.WriteRequest(tensor=tensor, segment=segment))
            renew(fd, 4 * n)
            client.call(read=pb.ReadRequest(tensor=tensor, segment=segment))
            self.assertEqual(memory[:], struct.pack(f"<{n}I", *range(turn, n + turn)))
            renew(fd, 4 * n)
            client.call(write=pb.WriteRequest(tensor=tensor, segment=segment))
            client.call(read=pb.ReadRequest(tensor=tensor, segment=segment))
            self.assertEqual(memory[:], bytes(4 * n))
        self.assert_alive()

    def test_a_group_runs_and_a_conflicting_one_is_refused(self):
        client = self.client()
        fd, memory = self.memory(1 << 16)
        segment = client.share(fd)
        x, y, z = (client.alloc(n, (1, 8, 8, 8), pb.FX8, 4).handle for n in "xyz")
        memory[:512] = bytes(range(256)) * 2
        ref = lambda handle: pb.Ref(handle=handle)
        write = lambda handle: pb.WriteRequest(tensor=ref(handle), segment=segment)
        relu = lambda source, out: pb.RunRequest(
            kernel=pb.RELU,
            operands=[pb.Operand(role="in", tensor=ref(source)), pb.Operand(role="out", tensor=ref(out))],
            params=[pb.Param(key=pb.PARAM_RELU, values=[2])],
        )
        op = pb.Operation
        done = client.call(
            submit=pb.SubmitRequest(
                operations=[
                    op(write=write(x)),
                    op(group=1, run=relu(x, y)),
                    op(group=1, write=write(z)),
                    op(read=pb.ReadRequest(tensor=ref(y), segment=segment, segment_offset=4096)),
                ]
            )
        ).submitted.done
        self.assertEqual(len(done), 4)
        self.assertEqual(memory[4096 : 4096 + 256], bytes(v if v < 128 else 0 for v in range(256)))
        before = client.read(z)
        response = client.ask(
            submit=pb.SubmitRequest(operations=[op(group=1, run=relu(x, y)), op(group=1, write=write(y))])
        )
        self.refused(response, pb.ABORTED, "operations 0 (run relu out=y) and 1 (write y)", "NPU 0, bytes")
        self.assertEqual({f.key: f.number for f in response.fields if f.key in ("first", "second")}, {"first": 0, "second": 1})
        self.assertEqual(client.read(z), before)

    def test_what_cannot_be_shared_is_refused(self):
        client = self.client()
        before = self.fds(), self.maps()
        self.refused(client.ask(share=pb.ShareRequest()), pb.INVALID, "no fd came")
        with tempfile.TemporaryFile() as file:
            file.write(b"x" * 4096)
            file.flush()
            self.refused(client.ask_share(file.fileno()), pb.INVALID, "not a memfd")
        for fds in (os.pipe(), [s.detach() for s in socket.socketpair()]):
            for fd in fds:
                self.refused(client.ask_share(fd), pb.INVALID, "not a memfd")
                os.close(fd)
        for n, seals, words in ((4096, 0, "F_SEAL_SHRINK"), (4096, fcntl.F_SEAL_GROW, "F_SEAL_SHRINK"), (0, SHRINK, "0 bytes")):
            fd = memfd(n, seals)
            self.refused(client.ask_share(fd), pb.INVALID, words)
            os.close(fd)
        fd = memfd(0, 0)
        os.ftruncate(fd, 1 << 40)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SHRINK)
        self.refused(client.ask_share(fd), pb.RESOURCE_EXHAUSTED)
        os.close(fd)
        wait_for(lambda: (self.fds(), self.maps()) == before)
        self.assert_alive()

    def test_an_id_may_be_chosen_that_is_free(self):
        client = self.client()
        tensor = client.alloc(shape=(1, 8, 1, 16))
        fds = [memfd(4096) for _ in range(2)]
        os.pwrite(fds[0], bytes(range(128)), 0)
        os.pwrite(fds[1], bytes(128), 0)
        n_fds = self.fds()
        client.send_fds(fds[:1], share=pb.ShareRequest(segment=5))
        self.assertEqual(client.receive().shared.segment, 5)
        before = n_fds, self.maps()  # a thread closes the descriptor
        client.send_fds(fds[1:], share=pb.ShareRequest(segment=5))
        self.refused(client.receive(), pb.INVALID, "shares a segment 5 already")
        wait_for(lambda: (self.fds(), self.maps()) == before)
        client.call(write=pb.WriteRequest(tensor=pb.Ref(handle=tensor.handle), segment=5))
        self.assertEqual(client.read(tensor.handle), bytes(range(128)))
        # What was refused is nobody's next one.
        self.refused(client.ask(share=pb.ShareRequest()), pb.INVALID, "no fd came")
        self.assertEqual(client.share(fds[1]), 6)
        for fd in fds:
            os.close(fd)

    def test_fds_that_nobody_asked_for_are_closed(self):
        client = self.client()
        fd = memfd(4096)
        before = self.fds()
        client.send_fds([fd] * 2, stat=pb.StatRequest())
        client.receive()
        wait_for(lambda: self.fds() == before)
        # Two with one frame: the first is taken, the second is nobody's.
        self.assertEqual(client.ask_share(fd, fd).status, pb.OK)
        wait_for(lambda: self.fds() == before)
        self.refused(client.ask(share=pb.ShareRequest()), pb.INVALID, "no fd came")
        os.close(fd)

    def test_bounds(self):
        client = self.client()
        fd, _ = self.memory(4096)
        segment = client.share(fd)
        tensor = client.alloc(shape=(1, 8, 4, 32))  # 1024 bytes
        ref = pb.Ref(handle=tensor.handle)
        huge = (1 << 62) - 1
        for members in (
            dict(segment_offset=4096 - 1023),
            dict(segment_offset=4097),
            dict(segment_offset=(1 << 64) - 1),
            dict(segment_stride=pb.Dims(n=1, c=580, h=32, w=1)),
            dict(segment_stride=pb.Dims(n=1, c=huge, h=huge, w=huge)),
            dict(segment_stride=pb.Dims(n=1, c=-128, h=32, w=1)),
            dict(first=1, segment_stride=pb.Dims(n=1, c=128, h=32, w=1)),
            dict(count=-1),
            dict(count=1025),
            dict(first=-1),
            dict(segment=segment + 1),
        ):
            for call in ("write", "read"):
                message = pb.WriteRequest if call == "write" else pb.ReadRequest
                request = message(**{"tensor": ref, "segment": segment, **members})
                response = client.ask(**{call: request})
                self.assertIn(response.status, (pb.INVALID, pb.NOT_FOUND), (call, members))
                self.assertTrue(response.message)
        zero = pb.Dims(n=0, c=0, h=0, w=0)
        client.call(write=pb.WriteRequest(tensor=ref, segment=segment, segment_stride=zero))  # one byte for all
        self.refused(
            client.ask(read=pb.ReadRequest(tensor=ref, segment=segment, segment_stride=zero)), pb.INVALID, "stride of 0"
        )
        self.refused(
            client.ask(write=pb.WriteRequest(tensor=ref, segment=segment, data=b"x")), pb.INVALID, "not both"
        )
        stranger = self.client()
        theirs = stranger.alloc(shape=(1, 8, 4, 32))
        self.refused(
            stranger.ask(write=pb.WriteRequest(tensor=pb.Ref(handle=theirs.handle), segment=segment)), pb.NOT_FOUND
        )

    def test_a_source_only(self):
        client = self.client()
        fd = memfd(4096, SHRINK | fcntl.F_SEAL_WRITE)
        segment = client.share(fd)
        tensor = client.alloc(shape=(1, 8, 4, 32))
        ref = pb.Ref(handle=tensor.handle)
        client.call(write=pb.WriteRequest(tensor=ref, segment=segment))
        self.refused(client.ask(read=pb.ReadRequest(tensor=ref, segment=segment)), pb.INVALID, "sealed against writing")
        os.close(fd)

    def test_it_cannot_be_cut_and_goes_with_its_session(self):
        before = self.maps()
        client = self.client()
        fd, memory = self.memory(8192)
        segment = client.share(fd)
        memory.close()
        with self.assertRaises(PermissionError):
            os.ftruncate(fd, 4096)
        self.assertEqual(self.maps(), before + 1)
        client.call(unshare=pb.UnshareRequest(segment=segment))
        wait_for(lambda: self.maps() == before)
        self.refused(client.ask(unshare=pb.UnshareRequest(segment=segment)), pb.NOT_FOUND)
        client.share(fd)
        client.close()
        wait_for(lambda: self.maps() == before)

    def test_unshare_waits_for_what_was_asked_before(self):
        client = self.client()
        fd, memory = self.memory(16 << 20)
        segment = client.share(fd)
        tensor = client.alloc(shape=(1, 64, 512, 256))
        memory[:] = b"\x05" * (16 << 20)
        for _ in range(10):
            client.send(write=pb.WriteRequest(tensor=pb.Ref(handle=tensor.handle), segment=segment, count=64 * 512 * 256))
        client.send(unshare=pb.UnshareRequest(segment=segment))
        responses = [client.receive() for _ in range(11)]
        self.assertEqual([r.status for r in responses], [pb.OK] * 11)
        self.assertEqual(responses[-1].id, client.id)
        # And a client that dies in the middle leaves nothing.
        segment = client.share(fd)
        for _ in range(10):
            client.send(write=pb.WriteRequest(tensor=pb.Ref(handle=tensor.handle), segment=segment))
        client.close()
        wait_for(lambda: self.maps() == self.assert_alive().tensors == 0)

    def test_what_is_sent_behind_a_share_finds_it(self):
        """A thread maps it meanwhile."""
        client = self.client()
        tensor = client.alloc(shape=(1, 8, 1, 16))
        fd, memory = self.memory(4096)
        for turn in range(20):
            memory[:128] = bytes([turn]) * 128
            write = pb.WriteRequest(tensor=pb.Ref(handle=tensor.handle), segment=7)
            behind = [{"write": write}, {"unshare": pb.UnshareRequest(segment=7)}]
            frames = [frame(pb.Request(id=i, **call)) for i, call in enumerate([{"share": pb.ShareRequest(segment=7)}, *behind], 1)]
            socket.send_fds(client.sock, [b"".join(frames)], [fd])
            answers = [client.receive() for _ in frames]
            self.assertEqual({answer.status for answer in answers}, {pb.OK}, answers)
            client.id = len(frames)
            self.assertEqual(client.read(tensor.handle), bytes([turn]) * 128)

    def test_an_unshare_that_waits_beside_a_share_of_the_same_id(self):
        """The share is taken when it comes: the unshare may run while a thread maps the new segment."""
        clients = [self.client() for _ in range(6)]
        before, fd = self.fds(), memfd(4096)
        self.addCleanup(os.close, fd)
        unshare = frame(pb.Request(id=2, unshare=pb.UnshareRequest(segment=7)))
        share = frame(pb.Request(id=3, share=pb.ShareRequest(segment=7)))
        for i, client in enumerate(clients):
            client.call(**long_alloc(f"x{i}", 3000))
        for turn in range(150):
            infos = [frame(pb.Request(id=5, info=pb.InfoRequest()))] * (turn % 50)
            for i, client in enumerate(clients):
                client.sock.sendall(frame(pb.Request(id=1, **fill(f"x{i}", 1))) + unshare + b"".join(infos))
                socket.send_fds(client.sock, [share], [fd])
            for client in clients:
                statuses = {}
                for _ in range(3 + len(infos)):
                    answer = client.receive()
                    statuses[answer.id] = answer.status
                self.assertEqual(statuses[1], pb.OK)
                self.assertLessEqual({statuses[2], statuses[3]}, {pb.OK, pb.NOT_FOUND, pb.INVALID})
        for client in clients:
            client.close()
        wait_for(lambda: self.fds() == before - len(clients) and not self.maps())

    def test_what_is_too_large_is_never_mapped(self):
        """Address space is in no account, so that what is refused must take none."""

        def peak():
            with open(f"/proc/{self.daemon.process.pid}/status", encoding="ascii") as status:
                return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmPeak"))

        before, size = peak(), 1 << 45
        fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        self.addCleanup(os.close, fd)
        os.ftruncate(fd, size)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        with Sharer(self.daemon.path) as sharer:
            answer = sharer.ask_share(fd)
            self.assertEqual(answer.status, pb.RESOURCE_EXHAUSTED, answer)
            self.assertIn(f"{size} bytes more of system memory", answer.message)
        self.assertLess(peak() - before, size)

    def test_too_many(self):
        client = self.client()
        fd = memfd(4096)
        for _ in range(64):
            client.share(fd)
        self.refused(client.ask_share(fd), pb.RESOURCE_EXHAUSTED, "64 segments")
        os.close(fd)


if __name__ == "__main__":
    unittest.main()
