"""Recording a daemon and replaying the record on others."""

import fcntl
import itertools
import json
import mmap
import os
import re
import signal
import socket
import subprocess
import threading
import time
import unittest
import zlib

from support import (NPUMEMCTL, NPUMEMD, SECONDS, Client, Convolution, TestCase, alloc, dims, fill, frame, is_alive, pb, ref,
                     run_as, silenced, submit, wait_for)

ALICE, BOB = 12001, 12002


def read_record(path):
    """The entries of a file of records."""
    with open(path, "rb") as file:
        data = file.read()
    assert data[:16] == b"npumem record 2\n"
    entries, at = [], 16
    while at < len(data):
        n = shift = 0
        while True:
            byte = data[at]
            n |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        entries.append(pb.RecordEntry.FromString(data[at : at + n]))
        at += n
    return entries


def write_record(path, entries):
    with open(path, "wb") as file:
        file.write(b"npumem record 2\n" + b"".join(map(frame, entries)))


class Memory:
    """A memfd that a client shares."""

    def __init__(self, client, n, seals=0):
        self.fd = os.memfd_create("test", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        os.posix_fallocate(self.fd, 0, n)
        self.map = mmap.mmap(self.fd, n)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | seals)
        client.id += 1
        socket.send_fds(client.sock, [frame(pb.Request(id=client.id, share=pb.ShareRequest()))], [self.fd])
        answer = client.receive()
        assert answer.status == pb.OK, answer
        self.id = answer.shared.segment


class RecordCase(TestCase):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.daemon.directory, "record")

    def start(self):
        log = os.path.join(self.daemon.directory, "record.log")
        with open(log, "wb") as out:
            process = subprocess.Popen([NPUMEMCTL, "--socket", self.daemon.path, "record", self.file], stderr=out, stdout=out)
        self.addCleanup(process.kill)

        def text():
            with open(log) as file:
                return file.read()

        wait_for(lambda: "recording" in text() or process.poll() is not None)
        return process, text

    def stop(self, process):
        process.send_signal(signal.SIGINT)
        return process.wait(SECONDS)

    def replay(self, *options, file=None):
        done = subprocess.run([NPUMEMCTL, "--json", "replay", file or self.file, *options], capture_output=True, text=True,
                              timeout=4 * SECONDS, env={**os.environ, "NPUMEMD": NPUMEMD})
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    def work(self, client, name="x"):
        x = client.alloc(name, dtype=pb.FX8, frac_bits=4)
        y = client.alloc("", dtype=pb.FX8, frac_bits=4)
        client.write(x.handle, bytes(range(128)))
        run = pb.RunRequest(kernel=pb.ELTWISE_ADD)
        for role, tensor in (("in1", x), ("in2", x), ("out", y)):
            run.operands.add(role=role, tensor=pb.Ref(handle=tensor.handle))
        submit = pb.SubmitRequest(operations=[pb.Operation(run=run), pb.Operation(read=pb.ReadRequest(tensor=pb.Ref(handle=y.handle)))])
        client.call(submit=submit)
        client.read(y.handle, 3, 5)
        assert client.ask(read=pb.ReadRequest(tensor=pb.Ref(handle=77))).status == pb.NOT_FOUND
        client.call(free=pb.FreeRequest(tensors=[pb.Ref(handle=y.handle)]))

    def same(self, *options):
        code, result, error = self.replay(*options)
        self.assertEqual((code, result["differences"]), (0, 0), error)
        self.assertEqual((result["same_geometry"], result["npu"]), (not options, -1))
        return result

    def differs(self, *texts, options=()):
        code, result, error = self.replay(*options)
        self.assertEqual(code, 1)
        self.assertGreater(result["differences"], 0)
        for text in texts:
            self.assertIn(text, error)
        return result


class Record(RecordCase):
    def record(self):
        process, text = self.start()
        first = self.daemon.client()
        self.work(first)
        second = self.daemon.client()
        self.work(second, "y")
        first.close()
        # Pages are where they are on each device.
        second.call(list=pb.ListRequest(limit=1))
        second.call(list=pb.ListRequest(after=1))
        self.assertEqual(self.stop(process), 0, text())
        second.close()

    def test_the_same_again_on_any_geometry(self):
        self.record()
        for options in ((), ("--npus", "8", "--npu-bytes", "8192"), ("--chip", "sg2380")):
            code, result, error = self.replay(*options)
            self.assertEqual((code, result["differences"], result["requests"]), (0, 0, 16), error)

    def test_a_difference_is_named(self):
        self.record()
        code, result, error = self.replay("--npus", "1", "--npu-bytes", "128")
        self.assertEqual(code, 1)
        self.assertGreater(result["differences"], 0)
        self.assertRegex(error, r"request 1 \(session \d+, uid \d+, pid \d+\): answered INVALID, and OK in the record")
        # That is who asked it.
        asked = read_record(self.file)[1]
        self.assertEqual(
            (asked.number, asked.session, asked.uid, asked.pid),
            (1, result["session"], os.getuid(), os.getpid()),
        )
        self.assertEqual((result["uid"], result["pid"]), (os.getuid(), os.getpid()))
        with open(self.file, "rb") as file:
            record = file.read()
        # Another value is written: what is read differs, and the data in the end.
        self.assertEqual(record.count(bytes(range(128))), 2)
        with open(self.file, "wb") as file:
            file.write(record.replace(bytes(range(128)), bytes([9] + list(range(1, 128))), 1))
        code, result, error = self.replay()
        self.assertEqual(code, 1)
        self.assertEqual(result["differences"], 3, error)
        self.assertIn(f"request 4 (session {asked.session}, uid {asked.uid}, pid {asked.pid}): the data or", error)

    def test_the_end_is_compared_too(self):
        self.record()
        entries = read_record(self.file)
        end = entries[-1].end
        self.assertEqual(len(end.local), 64)
        # What is left lies on NPUs 0 to 7.
        self.assertEqual(len(set(end.local)), 9)
        self.assertEqual(len(set(end.local[8:])), 1)
        end.local[5] ^= 1
        write_record(self.file, entries)
        result = self.differs("the local memory of NPU 5 is the first that differs")
        self.assertEqual((result["differences"], result["first"], result["npu"]), (1, 0, 5))
        # On another geometry there is nothing to compare it with.
        self.same("--npus", "32")
        end.hash ^= 1
        write_record(self.file, entries)
        self.assertEqual(self.differs("the data of the tensors in the end")["differences"], 2)
        self.assertEqual(self.differs("the data of the tensors", options=("--npus", "32"))["differences"], 1)

    def test_checksums_are_those_of_the_dump(self):
        client = self.client()
        sums = client.call(record=pb.RecordRequest(action=pb.RECORD_HASH)).recorded
        self.assertEqual(list(sums.local), [zlib.crc32(bytes(512 << 10))] * 64)
        x = client.alloc("x", (1, 64, 1, 1000))
        client.write(x.handle, bytes(i * 7 & 0xFF for i in range(64000)))
        after = client.call(record=pb.RecordRequest(action=pb.RECORD_HASH)).recorded
        self.assertNotEqual(after.hash, sums.hash)
        for npu in (0, 63):
            dump = client.call(dump=pb.DumpRequest(npu=npu, offset=0, bytes=512 << 10)).dump.data
            self.assertEqual(after.local[npu], zlib.crc32(dump))
        client.call(free=pb.FreeRequest(tensors=[pb.Ref(handle=x.handle)]))
        self.assertEqual(client.call(record=pb.RecordRequest(action=pb.RECORD_HASH)).recorded, sums)

    def test_bad_files(self):
        self.record()
        with open(self.file, "rb") as file:
            record = file.read()
        third = read_record(self.file)
        third[3].number += 1
        late = b"npumem record 2\n" + b"".join(map(frame, third))
        for bad, why in (
            (record[:20], "entry 0, at byte 16: it is cut off"),
            (b"", "not a recording"), (b"garbage" * 9, "not a recording"), (record.replace(b"record 2", b"record 1", 1), "version 1"),
            (record + b"x", "behind its end"), (record[:16] + b"\xff" * 64, "entry 0, at byte 16: garbage"),
            (record[:16] + b"\x03\xff\xff\xff", "garbage"), (late, "entry 3, at byte"),
        ):
            with open(self.file, "wb") as file:
                file.write(bad)
            code, _, error = self.replay()
            self.assertEqual(code, 1)
            self.assertIn(why, error)
        self.assertEqual(self.replay(file="/nowhere")[0], 1)

    def test_a_recorder_that_is_killed_leaves_what_is_whole(self):
        """And its numbers are those of a recording that ended."""
        self.record()
        with open(self.file, "rb") as file:
            record = file.read()
        entries = read_record(self.file)
        ends, byte = [], 16
        for entry in entries[:-1]:
            byte += len(frame(entry))
            if not entry.part:
                ends.append(byte)
        for n, (cut, entry) in itertools.product((0, 1), ((ends[-1], len(ends) - 1), (ends[2], 2), (ends[0], 0))):
            with open(self.file, "wb") as file:
                file.write(record[: cut + n])
            code, result, error = self.replay()
            self.assertEqual((code, result["differences"], result["cases"][0]["cut_at_byte"]), (0, 0, cut), error)
            out = os.path.join(self.daemon.directory, "out")
            done = subprocess.run([NPUMEMCTL, "--json", "trace", self.file, out], capture_output=True, text=True, check=True)
            told = json.loads(done.stdout)
            self.assertEqual((told["entries"], told["cut_at_byte"]), (entry, cut))
            done = subprocess.run([NPUMEMCTL, "report", self.file, out], capture_output=True, text=True, check=True)
            self.assertIn(f"was cut: it ends after entry {entry}, at byte {cut}; what followed is missing", done.stderr)
            self.assertIn(f": {entry} entr", done.stdout)

    def test_all_commands_count_the_same(self):
        """Also of a request that is in several entries of the file: parts are no entries."""
        process, text = self.start()
        client = self.client()
        x = client.alloc("x", (1, 64, 256, 256), dtype=pb.INT8)
        memory = Memory(client, 4 << 20)
        client.call(write=pb.WriteRequest(tensor=pb.Ref(handle=x.handle), segment=memory.id))
        self.assertEqual(self.stop(process), 0, text())
        self.assertTrue(any(entry.part for entry in read_record(self.file)))
        done = subprocess.run([NPUMEMCTL, "trace", self.file, "/dev/null"], capture_output=True, text=True, check=True)
        entries = re.search(r"(\d+) entries", done.stdout)[1]
        self.assertIn(f"\n{entries} entries\n", text())

    @unittest.skipUnless(os.getuid() == 0, "needs other uids")
    def test_several_uids(self):
        process, text = self.start()

        def alice():
            with Client(self.daemon.path) as client:
                self.work(client)
                client.call(grant=pb.GrantRequest(tensor=pb.Ref(name="x"), uid=BOB, access=pb.ACCESS_READ))
            return "well"

        def bob():
            with Client(self.daemon.path) as client:
                self.work(client)
                client.call(read=pb.ReadRequest(tensor=pb.Ref(name=f"{ALICE}:x")))
                fill = pb.FillRequest(tensor=pb.Ref(name=f"{ALICE}:x"), integer=1)
                assert client.ask(fill=fill).status == pb.PERMISSION_DENIED
            return "well"

        self.assertEqual(run_as(ALICE, alice), "well")
        self.assertEqual(run_as(BOB, bob), "well")
        self.assertEqual(self.stop(process), 0, text())
        self.same("--npus", "16")
        self.same()

    def test_a_change_whose_answer_waits(self):
        """The answer of a change of a view waits for a list that writes the view's bytes, and the list for a kernel. A
        request that uses the change is answered first: it is behind the change in the record."""

        def view(base, name, first, end):
            request = pb.ViewRequest(tensor=ref(base), name=name, to=dims(1, 8, end, 16))
            getattr(request, "from").h = first
            return {"view": request}

        worker, writer, user = (self.client() for _ in range(3))
        process, text = self.start()
        kernel = Convolution(worker, 0.5)
        user.call(**alloc("r", (1, 8, 2, 16)))
        user.call(**fill("r", 1))
        for name, end in ("row", 1), ("old", 2):
            user.call(**view("r", name, 0, end))
        run = worker.post(kernel.call())
        worker.answers(worker.post({"info": pb.InfoRequest()}))
        waits = writer.post(submit(fill("out", 1), fill("row", 7)))
        writer.answers(writer.post({"info": pb.InfoRequest()}))
        rename = pb.RenameRequest(tensor=ref("old"), name="new")
        changes = user.post(view("r", "made", 0, 2), {"rename": rename})
        user.answers(user.post(view("made", "part", 1, 2), alloc("old")))
        self.assertFalse(set(user.early).intersection(changes))
        worker.answers(run)
        writer.answers(waits)
        self.assertEqual([answer.status for answer in user.answers(changes)], [pb.OK] * 2)
        self.assertEqual(self.stop(process), 0, text())
        self.same()

    def test_lists_that_were_refused(self):
        """Half-way, or because a change of a kept list is wrong: then nothing ran."""
        client = self.client()
        process, text = self.start()
        x, y = client.alloc("x"), client.alloc("y")
        part = submit(fill(x, 1), fill(x, 2), {"read": pb.ReadRequest(tensor=ref(y))})
        answer = client.ask(**part)
        self.assertEqual((answer.status, len(answer.submitted.done)), (pb.FAILED_PRECONDITION, 2), answer)
        client.call(keep=pb.KeepRequest(list=1, operations=part["submit"].operations))
        self.assertEqual(client.ask(submit=pb.SubmitRequest(list=1)).status, pb.FAILED_PRECONDITION)
        wrong = pb.SubmitRequest(list=1, changes=[pb.Change(operation=9)])
        self.assertEqual(client.ask(submit=wrong).status, pb.INVALID)
        client.call(**fill(y, 3))
        self.assertEqual(self.stop(process), 0, text())
        self.same()

    @unittest.skipUnless(os.getuid() == 0, "needs other uids")
    def test_a_refusal_for_one_that_waits(self):
        """A replay has nobody who waits."""
        waits, other = self.client(ALICE), self.client(BOB)
        process, text = self.start()
        room = other.stat().largest_free
        keeps = other.alloc("keeps", (1, 64, 1, room // 2), layout=pb.COMPACT)
        sent = waits.post(alloc("large", (1, 64, 1, room * 3 // 4), layout=pb.COMPACT, wait_ms=60000))
        waits.answers(waits.post({"info": pb.InfoRequest()}))
        small = alloc("small", (1, 64, 1, room // 4), layout=pb.COMPACT)

        def is_refused():
            """In every second window of 2 s."""
            answer = other.ask(**small)
            if answer.status == pb.OK:
                other.call(free=pb.FreeRequest(tensors=[ref("small")]))
            return answer.status == pb.RESOURCE_EXHAUSTED

        wait_for(is_refused)
        other.call(free=pb.FreeRequest(tensors=[ref(keeps)]))
        self.assertEqual([answer.status for answer in waits.answers(sent)], [pb.OK])
        self.assertEqual(self.stop(process), 0, text())
        self.same()

    def test_several_clients_at_once(self):
        process, text = self.start()
        keeper = self.client()
        shared = keeper.alloc("shared", (1, 64, 32, 32), dtype=pb.FX8, frac_bits=4)
        keeper.call(fill=pb.FillRequest(tensor=pb.Ref(name="shared"), integer=3))

        def busy(me):
            with Client(self.daemon.path) as client:
                sent = []
                memory = Memory(client, 65536)
                memory.map[:] = bytes((i * me) & 0x7F for i in range(65536))
                for i in range(6):
                    x = client.alloc("" if i % 2 else f"mine.{me}.{i}", (1, 64, 32, 32), dtype=pb.FX8, frac_bits=4)
                    ref = pb.Ref(handle=x.handle)
                    sent.append(client.send(write=pb.WriteRequest(tensor=ref, segment=memory.id)))
                    run = pb.RunRequest(kernel=pb.ELTWISE_MAX)
                    for role, tensor in (("in1", x), ("in2", shared), ("out", x if i % 3 else shared)):
                        run.operands.add(role=role, tensor=pb.Ref(handle=tensor.handle))
                    sent.append(client.send(run=run))
                    sent.append(client.send(read=pb.ReadRequest(tensor=ref, first=me * 100, count=500)))
                    sent.append(client.send(read=pb.ReadRequest(tensor=ref, segment=memory.id)))
                    if i % 4 == 3:
                        sent.append(client.send(free=pb.FreeRequest(tensors=[ref])))
                    while sent:
                        answer = client.receive()
                        assert answer.status == pb.OK, answer
                        sent.remove(answer.id)

        threads = [threading.Thread(target=busy, args=(i,)) for i in range(1, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.stop(process), 0, text())
        self.same()
        self.same("--npus", "8", "--npu-bytes", "1048576")

    def test_nobody_else_connects(self):
        def listening():
            with open("/proc/net/unix", errors="replace") as file:
                rows = [line.split() for line in file]
            return {row[7] for row in rows if len(row) > 7 and row[3] == "00010000"}

        def connect():
            found = []
            for name in names:
                with socket.socket(socket.AF_UNIX) as sock:
                    try:
                        sock.connect("\0" + name[1:] if name[0] == "@" else name)
                        found.append(name)
                    except OSError:
                        pass
            return found

        self.record()
        stand_in, started = (os.path.join(self.daemon.directory, name) for name in ("npumemd", "started"))
        with open(stand_in, "w") as file:
            file.write(f"#!/bin/sh\ntouch {started}\nexec sleep 60\n")
        os.chmod(stand_in, 0o755)
        before = listening()
        process = subprocess.Popen([NPUMEMCTL, "replay", self.file], env={**os.environ, "NPUMEMD": stand_in})
        self.addCleanup(process.kill)
        wait_for(lambda: os.path.exists(started))
        names = listening() - before
        self.assertTrue(names)
        self.assertEqual(run_as(ALICE, connect), "[]")
        process.kill()
        process.wait()

    def test_the_second_interrupt_ends_it_in_any_case(self):
        process, _ = self.start()
        with silenced(self.daemon.process):
            time.sleep(0.1)  # it asks
            process.send_signal(signal.SIGINT)
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(SECONDS), -signal.SIGINT)

    def test_nothing_stays_behind(self):
        self.record()
        directory = os.path.join(self.daemon.directory, "tmp")  # /tmp is other tests', too
        os.mkdir(directory)
        stand_in = os.path.join(self.daemon.directory, "npumemd")
        pid_file = os.path.join(self.daemon.directory, "pid")
        with open(stand_in, "w") as file:
            file.write(f"#!/bin/sh\necho $$ > {pid_file}.new && mv {pid_file}.new {pid_file}\nexec sleep 60\n")
        os.chmod(stand_in, 0o755)
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            process = subprocess.Popen([NPUMEMCTL, "replay", self.file], env={**os.environ, "NPUMEMD": stand_in, "TMPDIR": directory})
            wait_for(lambda: os.path.exists(pid_file))
            with open(pid_file) as file:
                daemon = int(file.read())
            os.unlink(pid_file)
            process.send_signal(number)
            self.assertEqual(process.wait(SECONDS), -number)
            wait_for(lambda: not is_alive(daemon))  # pylint: disable=cell-var-from-loop
        self.assertEqual(os.listdir(directory), [])
        with open(stand_in, "w") as file:
            file.write("#!/bin/sh\nexit 1\n")
        done = subprocess.run([NPUMEMCTL, "replay", self.file], env={**os.environ, "NPUMEMD": stand_in},
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (1, "npumemctl: the daemon to replay on did not start\n"))


class SystemMemory(RecordCase):
    """What clients share is in no request, and in the record all the same."""

    def record(self, early=False):
        client = self.client()
        if early:
            memory = Memory(client, 1 << 20)
        process, text = self.start()
        if not early:
            memory = Memory(client, 1 << 20)
        source = Memory(client, 4096, fcntl.F_SEAL_FUTURE_WRITE if hasattr(fcntl, "F_SEAL_FUTURE_WRITE") else 0x10)
        memory.map[:] = bytes((i * 31 >> 3) & 0xFF for i in range(1 << 20))
        source.map[:] = bytes(range(256)) * 16
        x = client.alloc("x", (2, 3, 5, 7), dtype=pb.INT16)
        y = client.alloc("y", (2, 3, 5, 7), dtype=pb.INT16)
        rx, ry = pb.Ref(handle=x.handle), pb.Ref(handle=y.handle)
        stride = dims(400, 100, 14, 2)
        # Whole, in part, spread out, by broadcast, and from memory that can only be read.
        client.call(write=pb.WriteRequest(tensor=rx, segment=memory.id, segment_offset=64, segment_stride=stride))
        client.call(write=pb.WriteRequest(tensor=rx, segment=source.id, segment_offset=2, first=11, count=50))
        client.call(write=pb.WriteRequest(tensor=ry, segment=memory.id, segment_stride=dims(0, 0, 7, 1)))
        refused = client.ask(read=pb.ReadRequest(tensor=rx, segment=source.id))
        assert refused.status == pb.INVALID, refused
        client.call(read=pb.ReadRequest(tensor=rx, segment=memory.id, segment_offset=9000, segment_stride=stride))
        client.call(read=pb.ReadRequest(tensor=rx, segment=memory.id, segment_offset=20000, first=3, count=100))
        # The bytes of the second write are those that the read before it put where the first write took its own.
        ops = [pb.Operation(write=pb.WriteRequest(tensor=rx, segment=memory.id, segment_offset=30000)),
               pb.Operation(read=pb.ReadRequest(tensor=ry, segment=memory.id, segment_offset=30000)),
               pb.Operation(write=pb.WriteRequest(tensor=ry, segment=memory.id, segment_offset=30000)),
               pb.Operation(fill=pb.FillRequest(tensor=ry, integer=7)),
               pb.Operation(read=pb.ReadRequest(tensor=ry, segment=memory.id, segment_offset=30000)),
               pb.Operation(read=pb.ReadRequest(tensor=rx, segment=memory.id, segment_offset=40000))]
        client.call(submit=pb.SubmitRequest(operations=ops))
        client.call(read=pb.ReadRequest(tensor=rx))
        assert client.ask(unshare=pb.UnshareRequest(segment=99)).status == pb.NOT_FOUND
        client.call(unshare=pb.UnshareRequest(segment=memory.id))
        assert client.ask(write=pb.WriteRequest(tensor=rx, segment=memory.id)).status == pb.NOT_FOUND
        memory.map[:] = bytes(1 << 20)
        self.assertEqual(self.stop(process), 0, text())

    def test_the_same_again_on_any_geometry(self):
        for early in (False, True):
            self.file = os.path.join(self.daemon.directory, f"record-{early}")
            self.record(early)
            self.same()
            self.same("--npus", "5", "--npu-bytes", "4096")
            self.client().call(free=pb.FreeRequest(tensors=[pb.Ref(name="x"), pb.Ref(name="y")]))

    def test_a_difference_is_named(self):
        self.record()
        entries = read_record(self.file)
        reads = [e for e in entries if e.transfer.is_read]
        self.assertEqual(len(reads), 5)
        submit = reads[-1]
        self.assertEqual(submit.transfer.operation, 5)
        submit.transfer.crc32 ^= 1
        write_record(self.file, entries)
        result = self.differs(
            f"request {submit.number} (session", "): the data that operation 5 delivered to system memory differ"
        )
        self.assertEqual(result["differences"], 1)
        submit.transfer.crc32 ^= 1
        # Another value is written: the first read that meets it is named.
        writes = [e for e in entries if e.HasField("transfer") and not e.transfer.is_read]
        data = bytearray(writes[0].transfer.data)
        data[0] ^= 1
        writes[0].transfer.data = bytes(data)
        write_record(self.file, entries)
        self.differs(f"request {reads[0].number} (session", "): the data that operation 0 delivered")

    def test_damaged_transfers_are_refused(self):
        self.record()
        for number, (why, damage) in enumerate((
            ("extents or strides", lambda t: setattr(t, "element_bytes", 3)),
            ("extents or strides", lambda t: setattr(t.extent, "n", -1)),
            ("extents or strides", lambda t: setattr(t.stride, "n", (1 << 63) - 1)),
            ("extents or strides", lambda t: setattr(t, "offset", (1 << 64) - 1)),
            ("are missing", lambda t: setattr(t, "first", 2)),
            ("are missing", lambda t: setattr(t, "data", t.data[:-2])),
            ("whole elements", lambda t: setattr(t, "data", t.data[:-1])),
            ("whole elements", lambda t: setattr(t, "data", t.data + b"xx")),
        )):
            entries = read_record(self.file)
            transfer = next(e.transfer for e in entries if e.HasField("transfer"))
            damage(transfer)
            good = self.file
            self.file = good + str(number)
            write_record(self.file, entries)
            code, _, error = self.replay()
            self.file = good
            self.assertEqual(code, 1)
            self.assertIn(why, error)
            self.assertIn("entry ", error)
        # One that is outside of its segment changes nothing but the data.
        entries = read_record(self.file)
        next(e.transfer for e in entries if e.HasField("transfer")).offset = 1 << 40
        write_record(self.file, entries)
        self.differs("request")

    def test_more_than_a_frame_at_once(self):
        process, text = self.start()
        client = self.client()
        n = 20 << 20
        memory = Memory(client, n)
        memory.map[:] = bytes(range(251)) * (n // 251) + bytes(n % 251)
        x = client.alloc("x", (1, 64, 640, 512), dtype=pb.INT8)
        ref = pb.Ref(handle=x.handle)
        client.call(write=pb.WriteRequest(tensor=ref, segment=memory.id))
        client.call(read=pb.ReadRequest(tensor=ref, segment=memory.id))
        # A request as long as a frame can be, and an answer of the same size.
        inline = client.read(x.handle, 0, 15 << 20)
        client.write(x.handle, inline[::-1], 1 << 20)
        self.assertEqual(self.stop(process), 0, text())
        self.assertLess(max(e.ByteSize() for e in read_record(self.file)), 300 << 10)
        self.same()
        self.same("--npus", "32", "--npu-bytes", "1048576")


if __name__ == "__main__":
    unittest.main()
