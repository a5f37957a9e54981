"""SIGTERM: what runs is finished and answered, and who does not read holds up nobody for long."""

import os
import signal
import socket
import subprocess
import threading
import time
import unittest

from support import NPUMEMD, SECONDS, Client, Convolution, Daemon, TestCase, alloc, fill, is_alive, pb, read, wait_for

CUT_OFF = 2  # seconds, after which a kernel is not to be cut off


class Shutdown(TestCase):
    # Nobody is dropped for what it would be dropped for at any other time.
    options = ("--npu-bytes", str(16 << 20), "--drain-seconds", "3600", "--stop-seconds", "3600")

    def test_a_kernel_is_finished_however_long_it_takes(self):
        seconds, took = CUT_OFF, 0
        while took < CUT_OFF:  # it was rather shorter than it was to be
            seconds *= 1.5
            took = self.finished_after(seconds)

    def finished_after(self, seconds):
        """How long a daemon went on with a kernel of about so many seconds."""
        with Daemon(*self.options) as daemon, daemon.client() as client:
            (sent,) = client.post(Convolution(client, seconds).call())
            client.call(info=pb.InfoRequest())  # so that it has begun
            before = time.monotonic()
            daemon.process.send_signal(signal.SIGTERM)
            (answer,) = client.answers([sent])
            took = time.monotonic() - before
            self.assertEqual((answer.status, answer.HasField("done")), (pb.OK, True), answer.message)
            self.assertEqual(daemon.process.wait(SECONDS), 0)
            self.assertNotIn(b"do not read", daemon.output())
            return took

    def test_who_does_not_read_is_not_waited_for(self):
        client = self.client()
        client.alloc("x", (1, 64, 1, 128 << 10))
        client.call(**fill("x", 1))
        client.post(read("x"))
        client.sock.recv(1, socket.MSG_PEEK)
        self.daemon.process.send_signal(signal.SIGTERM)
        self.daemon.process.wait(SECONDS)

    def test_what_waits_for_room_is_answered(self):
        client = self.client()
        client.alloc("x", (1, 64, 1, 16 << 20))
        ids = client.post(alloc("y", wait_ms=60000))
        client.answers(client.post({"info": pb.InfoRequest()}))
        self.daemon.process.send_signal(signal.SIGTERM)
        self.assertNotEqual(client.answers(ids)[0].status, pb.OK)
        self.daemon.process.wait(SECONDS / 2)  # rather than until its deadline


class Private(unittest.TestCase):
    """A daemon of one client."""

    def start(self):
        """In a thread, which has ended then."""
        ours, theirs = socket.socketpair()
        started = []

        def thread():
            started.append(subprocess.Popen([NPUMEMD, "--fd", str(theirs.fileno())], pass_fds=[theirs.fileno()],
                                            stderr=subprocess.DEVNULL))  # fmt: skip
            client.stat()

        client = Client(sock=ours)
        runner = threading.Thread(target=thread)
        runner.start()
        runner.join()
        theirs.close()
        return client, started[0]

    def test_it_lives_on_when_the_thread_that_opened_it_ends(self):
        client, process = self.start()
        try:
            time.sleep(0.2)
            with client:
                client.alloc("x")
                self.assertEqual(client.names(), ["x"])
            self.assertEqual(process.wait(SECONDS), 0)
        finally:
            process.kill()
            process.wait()

    def test_it_ends_with_the_process_that_opened_it(self):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            _, process = self.start()
            os.write(writer, str(process.pid).encode())
            signal.pause()
        pid = int(os.read(reader, 20))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)
        wait_for(lambda: not is_alive(pid))


if __name__ == "__main__":
    unittest.main()
