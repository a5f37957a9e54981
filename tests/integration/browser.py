"""Headless Chromium by its debugging pipe: descriptors 3 and 4, JSON messages that end with a zero byte."""

import json
import os
import shutil
import signal
import subprocess
import tempfile

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome"))), None)


class Browser:
    def __init__(self, width=1200, height=900):
        self.profile = tempfile.mkdtemp(prefix="npumem-browser-")
        to_read, self.to = os.pipe()
        self.of, of_write = os.pipe()

        def descriptors():
            first, second = os.dup(to_read), os.dup(of_write)  # neither is 3 or 4 by now
            os.dup2(first, 3)
            os.dup2(second, 4)

        # Without a sandbox of its own: the page is ours, and root has none.
        self.process = subprocess.Popen(
            [PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
             f"--user-data-dir={self.profile}", f"--window-size={width},{height}", "--remote-debugging-pipe"],
            preexec_fn=descriptors, close_fds=False, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL, start_new_session=True)
        os.close(to_read)
        os.close(of_write)
        self.id, self.left, self.errors, self.session = 0, b"", [], None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.ask("Runtime.enable")
        self.ask("Page.enable")

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.to)
        os.close(self.of)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self):
        while b"\0" not in self.left:
            got = os.read(self.of, 1 << 16)
            if not got:
                raise RuntimeError("the browser ended")
            self.left += got
        message, _, self.left = self.left.partition(b"\0")
        return json.loads(message)

    def ask(self, method, **params):
        self.id += 1
        message = {"id": self.id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            got = self.receive()
            if got.get("method") == "Runtime.exceptionThrown":
                self.errors.append(got["params"])
            if got.get("id") == self.id:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                return got["result"]

    def run(self, script):
        got = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(f"{script}: {got['exceptionDetails']}")
        return got["result"].get("value")

    def open(self, path, fragment=""):
        """Until it is all there."""
        self.ask("Page.navigate", url="about:blank")
        self.ask("Page.navigate", url=f"file://{path}#{fragment}")
        self.run("new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))")

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)}).innerText")

    def click(self, selector, across=0.5, down=0.5):
        """With the mouse, in the middle of it or where it is said."""
        x, y = self.run(f"(() => {{ const one = document.querySelector({json.dumps(selector)}); one.scrollIntoView({{block: 'center'}});"
                        f" const box = one.getBoundingClientRect();"
                        f" return [box.left + box.width * {across}, box.top + box.height * {down}]; }})()")
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def type(self, selector, text):
        self.click(selector)
        self.ask("Input.insertText", text=text)
        self.settle()

    def settle(self):
        self.run("new Promise(done => setTimeout(done, 30))")
