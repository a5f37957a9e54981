"""What a client passes is closed by threads that may be lost: nobody else waits for it, and the daemon ends when it is
told to. Each attack is another uid's."""

import contextlib
import ctypes
import fcntl
import mmap
import os
import resource
import signal
import socket
import struct
import tempfile
import time
import unittest

from hostile import FuseFile, Lingerers, give, libc, send_fds
from support import (
    FAULTS,
    SECONDS,
    SLOWER,
    Client,
    HungUp,
    Sharer,
    TestCase,
    as_uid,
    beside,
    encode_length,
    fill,
    frame,
    pb,
    ref,
    rss_bytes,
    wait_for,
)

ALICE, BOB = 12001, 12002
MIB = 1 << 20
ATTEMPTS = 8  # a busy machine may disturb any one
MOST_SECONDS, WORST_SECONDS = 0.02, 0.1
DETAILS = {"stat": pb.StatRequest(details=True)}


class Victim:
    """A child of another uid that asks info and fill over and over, and writes down how long they take."""

    def __init__(self, path):
        self.reader, writer = os.pipe()
        self.data = b""
        self.file = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
        self.child = os.fork()
        if self.child == 0:
            try:
                os.setgid(BOB)
                os.setuid(BOB)
                self._run(path, writer)
            finally:
                os._exit(1)
        os.close(writer)
        os.read(self.reader, 1)  # it has begun
        time.sleep(0.3)
        self.begin = time.monotonic()

    def _run(self, path, writer):
        with Client(path) as client:
            tensor = client.alloc()
            os.write(writer, b"x")
            number = 0
            while True:
                number += 1
                before = time.monotonic()
                client.call(**fill(tensor, 1) if number % 2 else {"info": pb.InfoRequest()})
                os.write(self.file.fileno(), struct.pack("<dd", before, time.monotonic()))
                time.sleep(0.0005)

    def end(self):
        if self.child:
            os.kill(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            os.close(self.reader)
        self.child = 0
        if not self.file.closed:
            self.file.seek(0)
            self.data = self.file.read()
            self.file.close()

    def times(self):
        """Sorted durations before the attack and since. A request that has no answer yet counts as well."""
        now = time.monotonic()
        self.end()
        pairs = list(struct.iter_unpack("<dd", self.data[: len(self.data) // 16 * 16]))
        alone = sorted(after - before for before, after in pairs if after <= self.begin)
        beside = [after - before for before, after in pairs if after > self.begin]
        last = pairs[-1][1] if pairs else self.begin
        return alone, sorted(beside + [now - last])


def part(times, of_100):
    return times[min(len(times) - 1, len(times) * of_100 // 100)]


def is_unharmed(ratio, late, worst):
    return ratio < 3 and late < MOST_SECONDS and worst < WORST_SECONDS


class Closing(TestCase):
    """`attack` has prepared all it needs; the victim is measured while it acts, and for half a second more."""

    SECONDS = 0.5

    @contextlib.contextmanager
    def stopped(self):
        """For a moment, so that the test closes its descriptors before the daemon does."""
        self.daemon.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.daemon.process.send_signal(signal.SIGCONT)

    def attempt(self, attack, victim=None):
        victim = victim or Victim(self.daemon.path)
        try:
            attack()
            time.sleep(self.SECONDS)
        finally:
            alone, beside = victim.times()
        return part(beside, 50) / part(alone, 50), part(beside, 99), beside[-1]

    def assert_unharmed(self, attack):
        found = []
        for _ in range(ATTEMPTS):
            found.append(self.attempt(attack))
            # A loop that waits for a close does so each time.
            if is_unharmed(*map(min, zip(*found))):
                return
        self.fail(f"p50 x alone, p99 and worst in seconds: {found}")


class LingeringCase(Closing):
    def setUp(self):
        super().setUp()
        self.lingerers = self.stack.enter_context(Lingerers())

    def assert_closed(self, before):
        wait_for(lambda: self.n_fds() <= before)


class Lingering(LingeringCase):
    def test_one_that_comes_with_a_byte(self):
        before = self.n_fds()

        def attack():
            with self.daemon.client(ALICE) as client:
                give(client.sock, [self.lingerers.make()])
                with contextlib.suppress(HungUp, ConnectionError, TimeoutError):
                    client.sock.settimeout(0.2)
                    client.receive()

        self.assert_unharmed(attack)
        self.assert_closed(before)

    def test_one_that_is_shared(self):
        client = self.client(ALICE)

        def attack():
            lingerer = self.lingerers.make()
            with self.stopped():
                give(client.sock, [lingerer], data=frame(pb.Request(id=1, share=pb.ShareRequest())))
            answer = client.receive()
            self.assertEqual(answer.status, pb.INVALID)

        self.assert_unharmed(attack)

    def test_more_than_a_request_takes(self):
        before = self.n_fds()

        def attack():
            for n in (3, 100):
                with self.daemon.client(ALICE) as client:
                    give(client.sock, self.lingerers.make_many(n))
                    with contextlib.suppress(ConnectionError):
                        self.assertIn("file descriptors", client.receive().message)

        self.assert_unharmed(attack)
        self.assert_closed(before)

    def test_out_of_band(self):
        """The kernel drops such a byte, and what came with it, in the call that reads the next one."""

        def attack():
            with self.daemon.client(ALICE) as client:
                lingerer = self.lingerers.make()
                with self.stopped():
                    give(client.sock, [lingerer], data=b"x", flags=socket.MSG_OOB)
                client.sock.sendall(frame(pb.Request(id=1, info=pb.InfoRequest())))
                time.sleep(0.1)

        self.assert_unharmed(attack)

    def test_many(self):
        before = self.n_fds()

        def attack():
            with contextlib.ExitStack() as stack:
                for _ in range(100):
                    client = stack.enter_context(self.daemon.client(ALICE))
                    give(client.sock, [self.lingerers.make(), self.lingerers.make()])

        self.assert_unharmed(attack)
        self.assert_closed(before)

    def test_in_the_queue_of_a_client_that_hangs_up(self):
        """It does not read its replies, so the daemon does not read what it sends."""

        def attack():
            with self.daemon.client(ALICE) as client:
                client.alloc("", (1, 64, 1, 4096))
                tensor = client.alloc("", (1, 64, 1, 4096 * 4))
                client.call(**fill(tensor, 1))
                for _ in range(40):
                    client.send(read=pb.ReadRequest(tensor=ref(tensor)))
                time.sleep(0.2)
                give(client.sock, self.lingerers.make_many(3))
                time.sleep(0.1)

        self.assert_unharmed(attack)

    def test_in_the_queue_of_one_that_is_in_a_queue(self):
        def attack():
            pairs = [socket.socketpair() for _ in range(3)]
            give(pairs[0][0], [self.lingerers.make()])
            for inner, outer in zip(pairs, pairs[1:]):
                give(outer[0], inner)
            with self.daemon.client(ALICE) as client:
                give(client.sock, pairs[-1])
                time.sleep(0.1)

        self.assert_unharmed(attack)


class TurnedAway(LingeringCase):
    options = ("--limit-uid", f"{ALICE}:sessions=1")

    def test_one_that_is_turned_away(self):
        first = self.client(ALICE)
        first.stat()

        def attack():
            for _ in range(3):
                lingerer = self.lingerers.make()
                with self.stopped():
                    client = self.daemon.client(ALICE)
                    give(client.sock, [lingerer])
                client.close()

        self.assert_unharmed(attack)


class TurnedAwayInNumbers(Closing):
    """The daemon unmaps a user's gigabyte while that user's connections, of which it may have no more, come and go."""

    options = ("--npu-bytes", str(MIB), "--limit-uid", f"{ALICE}:sessions=2")
    BYTES = 1 << 30
    SECONDS = 2
    MOST_FDS = 2000  # beside busy neighbours 650 were seen; if none was closed, it would be 16,000 a second

    def setUp(self):
        super().setUp()
        self.watcher = self.client()
        self.idle = self.client(ALICE)
        self.idle.stat()

    def share(self):
        with as_uid(ALICE):
            sharer = self.stack.enter_context(Sharer(self.daemon.path))
        fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        os.posix_fallocate(fd, 0, self.BYTES)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
        segment = sharer.share(fd)
        os.close(fd)
        return sharer, segment

    def connect(self):
        while True:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as one:
                one.settimeout(2)
                one.connect(self.daemon.path)
                one.sendall(b"x")

    def test_they_count_for_nobody_else(self):
        fds, sessions = 0, 0
        sharer, segment = self.share()
        with beside(ALICE, self.connect), beside(ALICE, self.connect):
            sharer.post({"unshare": pb.UnshareRequest(segment=segment)})
            end = time.monotonic() + self.SECONDS
            while time.monotonic() < end:
                fds = max(fds, self.n_fds())
                stat = self.watcher.call(**DETAILS).stat
                sessions = max([sessions, *(user.sessions for user in stat.uids if user.uid == ALICE)])
                with self.daemon.client(BOB) as newcomer:
                    newcomer.call(info=pb.InfoRequest())
        self.assertLessEqual(sessions, 2)
        self.assertLess(fds, self.MOST_FDS)


class NoRoom(LingeringCase):
    """Where this process may have no more descriptors the kernel drops those that come."""

    preexec = staticmethod(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (48, 48)))

    def test_none_is_left(self):
        clients = [self.client(ALICE) for _ in range(12)]
        for client in clients:
            client.call(info=pb.InfoRequest())

        def attack():
            client = clients.pop()
            give(client.sock, self.lingerers.make_many(40))
            with contextlib.suppress(ConnectionError, HungUp):
                client.receive()

        self.assert_unharmed(attack)

    def test_there_is_room_for_one(self):
        sharer = self.stack.enter_context(Sharer(self.daemon.path))
        sharer.stat()
        before = self.n_fds()
        for _ in range(40):
            fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, 4096)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
            segment = sharer.share(fd)
            os.close(fd)
            sharer.call(unshare=pb.UnshareRequest(segment=segment))
            self.assert_closed(before)  # on a thread


class Ending(LingeringCase):
    def setUp(self):
        super().setUp()
        self.victim = self.client(BOB)
        self.victim.stat()

    def test_sigterm_while_they_linger(self):
        client, backlog = self.client(ALICE), self.daemon.client(ALICE)
        give(client.sock, self.lingerers.make_many(3))
        # Those that are not accepted yet, too.
        self.daemon.process.send_signal(signal.SIGSTOP)
        late = [self.daemon.client(ALICE) for _ in range(3)]
        for one in [backlog, *late]:
            give(one.sock, [self.lingerers.make()])
            one.close()
        self.victim.close()
        self.daemon.process.send_signal(signal.SIGTERM)
        self.daemon.process.send_signal(signal.SIGCONT)
        self.daemon.process.wait(SECONDS)  # rather than a week
        self.assertFalse(os.path.exists(self.daemon.path))


class Memory(Closing):
    """By the processor time of the loop."""

    options = ("--npu-bytes", str(MIB))
    BYTES = 512 * MIB

    def setUp(self):
        super().setUp()
        self.watcher = self.client()
        with as_uid(ALICE):
            self.sharer = self.stack.enter_context(Sharer(self.daemon.path))
        self.sharer.stat()

    def memfd(self, n=BYTES, seals=fcntl.F_SEAL_SHRINK):
        fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        os.posix_fallocate(fd, 0, n)
        if seals:
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
        return fd

    def longest_ms(self, act):
        self.watcher.call(stat=pb.StatRequest(reset=True))
        act()
        self.watcher.call(info=pb.InfoRequest())
        return self.watcher.call(**DETAILS).stat.loop.longest_cpu_ns / 1e6 / FAULTS

    def assert_short(self, act, most=5):
        found = []
        while len(found) < ATTEMPTS and (not found or min(found) >= most):
            found.append(self.longest_ms(act))
        self.assertLess(min(found), most, found)

    def share(self, fd):
        """The daemon has the last reference."""
        with self.stopped():
            self.sharer.send_fds([fd], share=pb.ShareRequest())
            os.close(fd)
        return self.sharer.receive()

    def test_the_last_reference_by_unshare(self):
        def act():
            segment = self.share(self.memfd()).shared.segment
            self.sharer.call(unshare=pb.UnshareRequest(segment=segment))

        self.assert_short(act)

    def test_the_last_reference_by_a_refusal(self):
        self.assert_short(lambda: self.assertEqual(self.share(self.memfd(seals=0)).status, pb.INVALID))

    def test_the_last_reference_by_a_hang_up(self):
        def act():
            sharer = Sharer(self.daemon.path)
            fd = self.memfd()
            sharer.share(fd)
            os.close(fd)
            sharer.close()
            time.sleep(0.5)

        self.assert_short(act)

    def test_holes_in_memory_that_was_used(self):
        """A page fault waits until the whole hole is punched."""
        segment_fd = self.memfd()
        self.addCleanup(os.close, segment_fd)
        segment = self.sharer.share(segment_fd)
        tensor = self.sharer.alloc("", (1, 64, 1, 1024))
        write = {"write": pb.WriteRequest(tensor=ref(tensor), segment=segment)}
        keep_size, punch_hole = 1, 2

        def punch():
            while True:
                os.posix_fallocate(segment_fd, 0, self.BYTES)
                libc.fallocate(segment_fd, keep_size | punch_hole, ctypes.c_long(0), ctypes.c_long(self.BYTES))

        def attack():
            with beside(ALICE, punch):
                end = time.monotonic() + 1.5
                while time.monotonic() < end:
                    self.sharer.call(**write)

        found = []
        while len(found) < ATTEMPTS and (not found or min(found) >= 20):
            self.watcher.call(stat=pb.StatRequest(reset=True))
            attack()
            found.append(self.watcher.call(**DETAILS).stat.loop.longest_ns / 1e6)
        self.assertLess(min(found), 20, f"the longest turns in ms, with what they wait: {found}")


class VeryManyMappings(Closing):
    """While a hole is punched into a memfd, the kernel keeps a lock of all its mappings, for which mmap and munmap
    of the daemon wait."""

    options = ("--npu-bytes", str(MIB), "--compact-percent", "50")
    N_PROCESSES, N_MAPPINGS, PAGE = 6, 50000, 4096

    def setUp(self):
        super().setUp()
        self.victim = self.client(BOB)
        with as_uid(ALICE):
            self.sharer = self.stack.enter_context(Sharer(self.daemon.path))
        self.memfd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        self.addCleanup(os.close, self.memfd)
        os.posix_fallocate(self.memfd, 0, MIB)
        fcntl.fcntl(self.memfd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)

    @contextlib.contextmanager
    def mapped(self):
        reader, writer = os.pipe()
        length, zero = ctypes.c_size_t(2 * self.PAGE), ctypes.c_void_p(0)

        def keep_mapped():
            for i in range(self.N_MAPPINGS):
                offset = ctypes.c_long(i % 2 * 2 * self.PAGE)  # neighbours do not become one
                libc.mmap(zero, length, mmap.PROT_READ, mmap.MAP_SHARED, self.memfd, offset)
            os.write(writer, b"1")
            signal.pause()

        with contextlib.ExitStack() as stack:
            for _ in range(self.N_PROCESSES):
                stack.enter_context(beside(ALICE, keep_mapped))
            for _ in range(self.N_PROCESSES):
                os.read(reader, 1)
            yield
        os.close(reader)
        os.close(writer)

    def punch(self):
        keep_size, punch_hole = 1, 2
        while True:
            libc.fallocate(self.memfd, keep_size | punch_hole, ctypes.c_long(0), ctypes.c_long(4 * self.PAGE))

    def share(self):
        """Whether it was shared, and is no more."""
        response = self.sharer.ask_share(self.memfd)
        if response.status != pb.OK:
            self.assertEqual(response.status, pb.RESOURCE_EXHAUSTED)
            self.assertIn(f"mappings of shared memory of uid {ALICE} may stop others for 50 %", response.message)
            self.assertGreater({field.key: field.number for field in response.fields}["retry_ms"], 0)
            return False
        self.sharer.call(unshare=pb.UnshareRequest(segment=response.shared.segment))
        return True

    def test_many_at_once_are_paid_for_one_by_one(self):
        """Shares that have arrived before the first of them was mapped."""
        end = time.monotonic() + 30
        statuses = []
        with self.mapped(), beside(ALICE, self.punch):
            while not {pb.OK, pb.RESOURCE_EXHAUSTED} <= set(statuses):
                self.assertLess(time.monotonic(), end, "all of them are mapped, or none")
                sent = [self.sharer.send_fds([self.memfd], share=pb.ShareRequest()) for _ in range(20)]
                answers = self.sharer.answers(sent)
                statuses = [answer.status for answer in answers]
                if pb.OK not in statuses:
                    time.sleep(0.3)  # until it has paid, and the descriptors are closed
                for answer in answers:
                    if answer.status == pb.OK:
                        self.sharer.call(unshare=pb.UnshareRequest(segment=answer.shared.segment))
        refused = next(answer for answer in answers if answer.status != pb.OK)
        self.assertIn("mappings of shared memory", refused.message)

    def test_who_stops_others_pays(self):
        end = time.monotonic() + 30
        with self.mapped(), beside(ALICE, self.punch):
            while self.share():
                self.assertLess(time.monotonic(), end, "nothing was ever refused")
            with as_uid(BOB):
                other = self.stack.enter_context(Sharer(self.daemon.path))
            fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
            os.posix_fallocate(fd, 0, MIB)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
            other.share(fd)
            os.close(fd)
        wait_for(self.share, 60)


class HangingUp(Closing):
    """All connections of a user end at once, and the daemon holds most of what it may for them."""

    FRAME_BYTES = 16 * MIB - 1

    def setUp(self):
        super().setUp()
        self.watcher = self.client()

    def longest_ms(self, prepare):
        n_sessions = self.watcher.stat().sessions
        with contextlib.ExitStack() as clients:
            prepare(clients)
            time.sleep(0.5)
            self.watcher.call(stat=pb.StatRequest(reset=True))
            with self.stopped():
                clients.close()
        wait_for(lambda: self.watcher.stat().sessions == n_sessions)
        return self.watcher.call(**DETAILS).stat.loop.longest_cpu_ns / 1e6 / FAULTS

    def assert_short(self, prepare, most=5):
        found = []
        while len(found) < ATTEMPTS and (not found or min(found) >= most):
            found.append(self.longest_ms(prepare))
        self.assertLess(min(found), most, found)
        # Some is kept for other requests, and by the address sanitizer of each attempt.
        most_held = 128 * MIB if SLOWER == 1 else 512 * MIB
        wait_for(lambda: rss_bytes(self.daemon.process.pid) < most_held)

    def test_with_most_of_a_long_frame_each(self):
        head = encode_length(self.FRAME_BYTES)

        def prepare(clients):
            for _ in range(15):
                client = clients.enter_context(self.daemon.client(ALICE))
                client.sock.sendall(head + bytes(self.FRAME_BYTES - 4096))

        self.assert_short(prepare)

    def test_with_unread_replies_each(self):
        for row in (96, 1024):
            with self.subTest(row):

                maker = self.client(ALICE)
                maker.call(**fill(maker.alloc(f"of_{row}", (1, 64, 16, row)), 1))
                read = pb.ReadRequest(tensor=ref(f"of_{row}"))
                reads = b"".join(frame(pb.Request(id=n + 1, read=read)) for n in range(1024 // row + 2))

                def prepare(clients, reads=reads):
                    for _ in range(240):
                        clients.enter_context(self.daemon.client(ALICE)).sock.sendall(reads)

                self.assert_short(prepare)


class Fuse(Closing):
    """No signal ends the close of a FUSE file whose server does not answer."""

    def setUp(self):
        super().setUp()
        # It has no copy of the descriptor, which would keep it at its end.
        self.victim = Victim(self.daemon.path)
        try:
            self.file = self.stack.enter_context(FuseFile())
        except OSError as problem:
            self.victim.end()
            self.skipTest(f"no FUSE here, so this was NOT checked: {problem}")
        # It ends before the daemon is waited for.
        self.stack.callback(self.file.stop)

    def test_it_costs_one_thread_and_the_right_to_pass_more(self):
        def attack():
            with self.daemon.client(ALICE) as client:
                with contextlib.suppress(ConnectionError):
                    send_fds(client.sock, [self.file.fd] * 20)
                time.sleep(0.1)

        found = [self.attempt(attack, self.victim)]
        while not is_unharmed(*map(min, zip(*found))) and len(found) < ATTEMPTS:
            self.begin_again()
            found.append(self.attempt(attack, self.victim))
        self.assertTrue(is_unharmed(*map(min, zip(*found))), found)
        wait_for(lambda: b"does not return" in self.daemon.output())
        # It goes on without descriptors, and its connections end as they do without.
        for _ in range(300):
            with self.daemon.client(ALICE) as client:
                client.call(info=pb.InfoRequest())
        with self.daemon.client(ALICE) as client:
            send_fds(client.sock, [self.file.fd])
            answer = client.receive()
            self.assertEqual((answer.id, answer.status), (0, pb.RESOURCE_EXHAUSTED), answer)
        with self.daemon.client(BOB) as client:
            send_fds(client.sock, [os.memfd_create("x")], frame(pb.Request(id=1, share=pb.ShareRequest())))
            self.assertEqual(client.receive().status, pb.INVALID)
        self.file.stop()
        wait_for(lambda: b"has returned" in self.daemon.output())

    def begin_again(self):
        """With another daemon, whose threads are all there."""
        self.stack.pop_all().close()
        self.setUp()

    def tearDown(self):
        self.victim.end()

    def test_statfs_is_not_asked(self):
        client = self.client(ALICE)
        send_fds(client.sock, [self.file.fd], frame(pb.Request(id=1, share=pb.ShareRequest())))
        self.assertEqual(client.receive().status, pb.INVALID)

    def test_sigterm_closes_what_others_need(self):
        """The kernel does not let such a process go, but another daemon can begin."""
        with self.daemon.client(ALICE) as client:
            send_fds(client.sock, [self.file.fd] * 3)
            time.sleep(0.2)
        bob = self.client(BOB)
        bob.call(info=pb.InfoRequest())
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(bob.sock.recv(1), b"")
        wait_for(lambda: b"stopped" in self.daemon.output())
        self.assertFalse(os.path.exists(self.daemon.path))
        self.assertFalse(os.path.exists(self.daemon.path + ".lock"))
        self.file.stop()
        self.daemon.process.wait(SECONDS)


if __name__ == "__main__":
    unittest.main()
