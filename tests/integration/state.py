"""A daemon with a state directory that is killed and started again."""

import contextlib
import mmap
import os
import shutil
import signal
import struct
import tempfile
import time
import unittest

from support import NPUMEMD, SECONDS, Daemon, pb, ref

# daemon/store/files/format.h: records of 32 bytes behind the journal's first page: a word that is 0 where it is free, the
# tensor's handle.
NOTES_OFF, NOTE_BYTES, NOTES = 4096, 32, 16
GEOMETRY = ("--npus", "8", "--npu-bytes", "65536")


def in_memory():
    """A folder whose files wait for no disk, where there is room for some states; else the usual one."""
    shared = "/dev/shm"
    return shared if os.access(shared, os.W_OK) and shutil.disk_usage(shared).free >= 4 << 30 else None


class StateTestCase(unittest.TestCase):
    options = GEOMETRY
    program = (NPUMEMD,)

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="npumem-state-", dir=in_memory())
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.state = os.path.join(self.directory, "state")
        self.daemon = None
        self.stack = None
        self.start()
        self.addCleanup(self.stop)

    def start(self, *options):
        self.stack = contextlib.ExitStack()
        self.daemon = Daemon(
            "--state-dir", self.state, *self.options, *options, directory=self.directory, program=self.program
        )
        self.stack.enter_context(self.daemon)

    def stop(self):
        if self.stack:
            self.stack.close()
        self.stack = None

    def kill(self):
        self.daemon.process.send_signal(signal.SIGKILL)
        self.daemon.process.wait()
        self.stop()

    def kill_when_it_writes(self, handle=None):
        """While the state has a note of a write under way, to that tensor. Its clients may still read what it has sent."""
        with open(os.path.join(self.state, "journal"), "rb") as file, mmap.mmap(
            file.fileno(), NOTES_OFF + NOTES * NOTE_BYTES, access=mmap.ACCESS_READ
        ) as journal:
            end = time.monotonic() + SECONDS
            while not self.stops_within_a_write(journal, handle):
                self.daemon.process.send_signal(signal.SIGCONT)
                assert time.monotonic() < end, "nothing is written"
        self.daemon.process.kill()
        self.daemon.process.wait()

    def stops_within_a_write(self, journal, handle):
        self.daemon.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.daemon.process.pid, os.WUNTRACED)
        notes = [struct.unpack_from("QQ", journal, at) for at in range(NOTES_OFF, len(journal), NOTE_BYTES)]
        return any(valid and handle in (None, of) for valid, of in notes)

    def restart(self, *options, terminate=False):
        """By SIGKILL, or by SIGTERM."""
        if terminate:
            self.daemon.end()  # before its clients are gone
            self.stop()
        else:
            self.kill()
        self.start(*options)

    def client(self, uid=None):
        return self.stack.enter_context(self.daemon.client(uid))

    def resume(self, token, uid=None):
        """A connection that goes on with the token's session."""
        client = self.client(uid)
        client.id = 1 << 20  # its requests are new ones
        client.call(resume=pb.ResumeRequest(token=token))
        return client

    def n_tensors(self):
        with self.daemon.client() as client:
            return client.stat().tensors

    def output(self):
        return self.daemon.output().decode()

    def refused(self, answer, status, *words):
        self.assertEqual(answer.status, status, answer)
        for word in words:
            self.assertIn(word, answer.message)


def token_of(client, linger=False):
    return client.call(resume=pb.ResumeRequest(linger=linger)).resumed.token


def look(client, geometry=(8, 65536)):
    """All that a daemon tells of what it has: tensors, sums, and every byte of local memory."""
    tensors = {t.handle: t for t in client.tensors()}
    stat = client.stat()
    sums = [stat.total, stat.data, stat.dummy, stat.padding, stat.empty, stat.free, stat.lent, stat.largest_free]
    memory = [
        client.call(dump=pb.DumpRequest(npu=npu, offset=0, bytes=geometry[1])).dump.data for npu in range(geometry[0])
    ]
    return tensors, sums, memory


def seal(tensor):
    return {"seal": pb.SealRequest(tensor=ref(tensor))}


def grant(tensor, uid, access):
    return {"grant": pb.GrantRequest(tensor=ref(tensor), uid=uid, access=access)}


def rename(tensor, name):
    return {"rename": pb.RenameRequest(tensor=ref(tensor), name=name)}


def view(name, base, start, end):
    request = pb.ViewRequest(name=name, tensor=ref(base))
    for dims, values in (("from", start), ("to", end)):
        for key, value in zip("nchw", values):
            setattr(getattr(request, dims), key, value)
    return {"view": request}
