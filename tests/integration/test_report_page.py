"""The report's page in a browser: clicked, slid and read, on the demo's digits and on a record of 10,000 requests."""

import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

from browser import PROGRAM, Browser
from state import StateTestCase, token_of
from support import Endless, alloc, copy, dims, fill, free, pb, ref, wait_for
import test_report

BUILD = os.environ["NPUMEM_BUILD"]
DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "demo", "run.sh")


# The words of the page whose contrast with their ground is below what WCAG 2 asks of small text.
UNREADABLE = r"""(() => {
    const parts = text => text.match(/[\d.]+/g).map(Number);
    const linear = value => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    const luminance = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
    const ground = one => {
        const colour = parts(getComputedStyle(one).backgroundColor);
        return colour.length < 4 || colour[3] > 0.99 ? colour : one.parentElement ? ground(one.parentElement) : [255, 255, 255];
    };
    return [...document.querySelectorAll("body *")].filter(one => {
        if (one.offsetParent === null || ![...one.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()))
            return false;
        const two = [parts(getComputedStyle(one).color), ground(one)].map(luminance).sort((a, b) => b - a);
        return (two[0] + 0.05) / (two[1] + 0.05) < 4.5;
    }).map(one => one.innerText);
})()"""


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        self.browser.errors.clear()

    def tearDown(self):
        self.assertEqual(self.browser.errors, [])

    def number_of(self, tab):
        return int(re.search(r"\d+$", self.browser.text(f"[data-tab={tab}]"))[0])

    def rows(self):
        return self.browser.run("[...document.querySelectorAll('#list tbody tr')].map(row => row.innerText)")


class Digits(Page):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        done = subprocess.run([DEMO, BUILD, cls.directory.name], capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        cls.page = os.path.join(cls.directory.name, "report.html")
        assert cls.page in done.stdout, "the demo does not say where its report is"

    def test_what_it_opens_with(self):
        browser = self.browser
        browser.open(self.page)
        self.assertRegex(browser.text("#about"), r"64 NPUs of 512 KiB, .* 36 tensors, 0 refusals in [\d.]+ m?s")
        self.assertRegex(browser.text("#peak"), r"peak 75\.5 KiB of 512 KiB per NPU \(14\.7 %\) at .*, made by request \d+ of session \d+")
        self.assertIn("36 tensors:", browser.text("#there"))
        self.assertEqual(self.number_of("tensors"), 36)
        self.assertGreater(self.number_of("operations"), 200)

    def test_all_of_it_can_be_read(self):
        try:
            for scheme in ("light", "dark"):
                self.browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                self.browser.open(self.page)
                for tab in ("operations", "graph", "tensors", "late", "refusals", "clients"):
                    self.browser.click(f"[data-tab={tab}]")
                    self.assertEqual(self.browser.run(UNREADABLE), [], (scheme, tab))
                self.browser.run("document.querySelector('#about').style.color = '#888'")
                self.assertEqual(len(self.browser.run(UNREADABLE)), scheme == "light")
        finally:
            self.browser.ask("Emulation.setEmulatedMedia", features=[])

    def test_sliding_and_clicking(self):
        browser = self.browser
        browser.open(self.page)
        browser.click("#slider", across=0)
        self.assertIn("before the first request", browser.text("#now"))
        self.assertIn("0 tensors:", browser.text("#there"))
        browser.click("#forth")
        self.assertIn("request 1 · alloc", browser.text("#now"))
        self.assertIn("12 tensors:", browser.text("#there"))
        browser.click("#chart")
        self.assertRegex(browser.text("#there"), r"^(12|18|24|30|36) tensors:")
        browser.click("#chart", across=0.999)
        self.assertIn("12 tensors:", browser.text("#there"))
        browser.click("#map g rect:last-child")
        self.assertIn("Tensor digits.", browser.text("#detail h2"))
        self.assertEqual(browser.run("document.querySelectorAll('#map g.picked').length"), 1)

    def test_axes_have_units(self):
        browser = self.browser
        browser.open(self.page)
        ticks = "[...document.querySelectorAll('%s .tick.%s')].map(one => one.textContent)"
        times, amounts = (browser.run(ticks % (":has(> #chart)", axis)) for axis in "xy")
        self.assertTrue(all(re.fullmatch(r"\d+(\.\d+)? (ns|µs|ms|s)", text) for text in times), times)
        self.assertEqual(sorted(amounts), ["0 B", "32 KiB", "64 KiB"])
        self.assertEqual(set(browser.run(ticks % ("#map", "x"))), {"NPU 0", "16", "32", "48", "63"})
        self.assertEqual(set(browser.run(ticks % ("#map", "y"))), {"0 B", "16 KiB", "32 KiB", "48 KiB", "64 KiB"})

    def test_graph(self):
        browser = self.browser
        browser.open(self.page)
        browser.click("[data-tab=graph]")
        self.assertEqual(self.number_of("graph"), self.number_of("operations"))
        self.assertEqual(browser.run("document.querySelectorAll('.graph .node').length"), 120)
        self.assertIn("operations 1 to 120 of", browser.text(".graph p"))
        browser.run("[...document.querySelectorAll('.graph p a')].find(one => one.textContent === 'later').click()")
        browser.settle()
        self.assertIn("operations 121 to", browser.text(".graph p"))
        # One list: its arrows join a layer to the next one, and say what they are.
        browser.open(self.page, "tab=operations&q=fully_connected")
        request = re.search(r"request (\d+)", self.rows()[0])[1]
        browser.open(self.page, f"tab=graph&q={request}")
        tops = browser.run("Object.fromEntries([...document.querySelectorAll('.graph .node')].map(one => ["
                           "one.querySelector('text').textContent.split(' ')[0], Number(one.querySelector('rect').getAttribute('y'))]))")  # fmt: skip
        order = [one for one in ("write", "conv2d", "maxpool", "fully_connected", "read") if one in tops]
        self.assertIn("fully_connected", order)
        self.assertEqual([tops[one] for one in order], sorted(tops[one] for one in order))
        titles = browser.run("[...document.querySelectorAll('.graph .arrow title')].map(one => one.textContent)")
        self.assertTrue(titles and all(re.fullmatch(r".+: fx(8|16) Q\.-?\d+ \d+×\d+×\d+×\d+", title) for title in titles), titles)
        browser.run("document.querySelector('.graph .node.kernel').dispatchEvent(new MouseEvent('click'))")
        browser.settle()
        self.assertIn(f"request {request}", browser.text("#detail h2"))
        self.assertEqual(browser.run("document.querySelectorAll('.graph .picked').length"), 1)

    def test_links(self):
        browser = self.browser
        browser.open(self.page, "tab=tensors&q=conv2.weights+fx8")
        self.assertEqual(len(self.rows()), 1)
        browser.click("#list a")
        self.assertEqual(browser.text("#detail h2"), "Tensor digits.fx8.conv2.weights")
        text = browser.text("#detail")
        for part in ("compact fx8 Q.5 8×16×3×3", "1152 data", "NPU 0, offset 16", "times: write (request", "still there"):
            self.assertIn(part, text)
        browser.run("[...document.querySelectorAll('#detail a')].find(a => a.textContent.startsWith('conv2d')).click()")
        browser.settle()
        text = browser.text("#detail")
        self.assertTrue(text.startswith("conv2d, request"))
        for part in ("queue", "kernel", "weights=digits.fx8.conv2.weights", "multiply-adds", "waited for"):
            self.assertIn(part, text)
        browser.run("[...document.querySelectorAll('#detail a')].find(a => a.textContent.startsWith('request')).click()")
        browser.settle()
        self.assertRegex(browser.text("#detail h2"), r"Request \d+: submit")
        browser.run("history.back()")
        browser.settle()
        self.assertTrue(browser.text("#detail").startswith("conv2d, request"))

    def test_lists_and_search(self):
        browser = self.browser
        browser.open(self.page)
        browser.click("[data-tab=clients]")
        self.assertGreaterEqual(len(self.rows()), 5)
        browser.click("[data-tab=operations]")
        browser.type("#search", "maxpool in=anonymous")
        self.assertTrue(self.rows() and all("maxpool" in row for row in self.rows()))
        browser.type("#search", " nothinglikethat")
        self.assertEqual(self.rows(), [])

    def test_light_dark_and_narrow(self):
        browser = self.browser
        grounds = []
        for scheme in ("light", "dark"):
            browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
            browser.open(self.page)
            grounds.append(browser.run("getComputedStyle(document.body).backgroundColor"))
        self.assertEqual(grounds, ["rgb(255, 255, 255)", "rgb(21, 24, 28)"])
        browser.ask("Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=False)
        self.addCleanup(browser.ask, "Emulation.clearDeviceMetricsOverride")
        browser.open(self.page)
        self.assertLessEqual(browser.run("document.documentElement.scrollWidth"), 360)


class Made(Page, test_report.Report):
    """Pages of records that are made here."""

    def setUp(self):
        Page.setUp(self)
        test_report.Report.setUp(self)

    def test_texts_of_clients_are_texts(self):
        self.record()
        self.report(self.file, self.page)
        self.browser.open(self.page, "request=5")
        self.assertIn("</script><b>x", self.browser.text("#detail"))
        self.assertEqual(self.browser.run("document.querySelectorAll('#detail b').length"), 0)
        self.browser.click("[data-tab=refusals]")
        self.assertIn("NOT_FOUND", self.browser.text("#list"))
        self.browser.click("#list a")
        self.assertIn("Request 5: free", self.browser.text("#detail h2"))

    def test_lives_with_moves_and_refusals_where_they_happened(self):
        process, text = self.start("record", self.file)
        with self.daemon.client() as client:
            client.call(**alloc("a"))
            client.call(**alloc("b", (1, 40, 8, 8), start_npu=60))
            client.call(**free("a"))
            self.assertEqual(client.ask(**alloc("b")).status, pb.ALREADY_EXISTS)
            client.call(compact=pb.CompactRequest())
            handle = client.call(open=pb.OpenRequest(tensor=ref("b"))).tensor.place.offset
        self.stop(process, text)
        self.report(self.file, self.page)
        browser = self.browser
        browser.open(self.page, "tensor=1&at=2")
        self.assertEqual(handle, 0)
        self.assertIn("NPU 60, offset 128, moved to NPU 60, offset 0", browser.text("#detail"))
        self.assertIn("never", browser.text("#detail"))
        heights = "[...document.querySelectorAll('#map g')].map(g => g.lastChild.getAttribute('y'))"
        self.assertEqual(len(browser.run(heights)), 2)
        # Data on NPUs 60 to 63 and 0 to 35, as two boxes upon the one of all that is reserved.
        self.assertEqual(browser.run("document.querySelectorAll('#map g.picked rect').length"), 3)
        browser.open(self.page, "tensor=1&at=4&tab=refusals")
        self.assertNotEqual(browser.run(heights), ["0"])
        self.assertEqual(browser.run("document.querySelectorAll('#chart .refused').length"), 1)
        self.assertIn("alloc ALREADY_EXISTS", browser.text("#now"))
        self.assertEqual(len(self.rows()), 1)
        browser.click("#forth")
        self.assertEqual(browser.run(heights), ["0"])

    def test_a_graph_of_parts(self):
        """What two views of a tensor were given comes from both writers, and no more from who wrote all of it before."""
        process, text = self.start("record", self.file)
        with self.daemon.client() as client:
            for name in ("whole", "out"):
                client.call(**alloc(name, (1, 8, 1, 16)))
            for i, name in enumerate(("low", "high")):
                client.call(view=pb.ViewRequest(name=name, tensor=ref("whole"), **{"from": dims(0, 4 * i, 0, 0)}, to=dims(1, 4 * i + 4, 1, 16)))
            for names in (["whole", "out"], ["whole", "low", "high"]):
                for name in names:
                    client.call(**fill(name, 1))
            client.call(**copy("out", "whole"))
        self.stop(process, text)
        self.report(self.file, self.page)
        self.browser.open(self.page, "tab=graph")
        self.assertEqual(self.browser.run("operations.at(-1).sources.map(({from}) => from.tensors[0][3])"), ["whole", "low", "high"])
        self.assertEqual(self.browser.run("operations.slice(0, -1).map(one => one.sources.length)"), [0] * 5)
        self.assertEqual(self.browser.run("document.querySelectorAll('.graph .arrow').length"), 3)
        self.browser.open(self.page, "tab=graph&q=nothinglikethat")
        self.assertIn("operations 0 to 0 of 0", self.browser.text(".graph p"))
        self.browser.open(self.page, "tab=graph&from=99999999")
        self.assertEqual(self.browser.run("document.querySelectorAll('.graph .node').length"), 6)

    def test_ten_thousand_requests(self):
        process, text = self.start("record", self.file)
        with self.daemon.client() as client:
            client.alloc("kept", (1, 64, 8, 8))
            kept = pb.Ref(name="kept")
            client.call(fill=pb.FillRequest(tensor=kept, integer=1))
            for n in range(2500):
                one, spec = pb.Ref(name=f"t{n}"), pb.Spec(dtype=pb.INT8, shape=dims(1, 64, 8, 8))
                client.pipeline({"alloc": pb.AllocRequest(tensors=[pb.Allocation(name=one.name, spec=spec)])},
                                {"fill": pb.FillRequest(tensor=one, integer=n % 100)},
                                {"copy": pb.CopyRequest(destination=kept, source=one)},
                                {"free": pb.FreeRequest(tensors=[one])})
        self.stop(process, text)
        self.report(self.file, self.page)
        started = time.monotonic()
        self.browser.open(self.page)
        took = time.monotonic() - started
        self.assertRegex(self.browser.text("#about"), r"1000\d requests .* 500\d operations, 2501 tensors")
        self.assertEqual(len(self.rows()), 300)
        print(f"10,000 requests: {os.path.getsize(self.page) >> 10} KiB, opened in {took:.2f} s", file=sys.stderr)
        self.browser.type("#search", "t1234")
        self.assertEqual(len(self.rows()), 2)
        self.browser.click("[data-tab=late]")
        self.assertEqual(self.number_of("late"), 0)


class Recovered(Page, StateTestCase):
    """Of a daemon that was killed while it wrote, with sessions that come back and one that does not."""

    options = ("--npus", "64", "--npu-bytes", str(4 << 20))

    def setUp(self):
        Page.setUp(self)
        StateTestCase.setUp(self)
        self.file = os.path.join(self.directory, "record")
        self.page = os.path.join(self.directory, "page.html")

    def kill_in_the_middle(self):
        tokens = []
        clients = [self.client() for _ in range(2)]
        for i, client in enumerate(clients):
            tokens.append(token_of(client))
            client.call(**fill(client.alloc("", (1, 64, 1, 1 << (i + 10))), i))
        clients[0].call(**alloc("kept"))
        endless = Endless(clients[0])
        clients[0].send(**endless.call())
        self.kill_when_it_writes()
        self.stop()
        self.start("--resume-seconds", "5")
        return tokens

    def record(self, *command):
        tokens = self.kill_in_the_middle()
        process, text = test_report.Report.start(self, *command)
        client = self.resume(tokens[0])
        client.call(**fill("kept", 1))
        wait_for(lambda: client.stat().sessions == 2 and self.n_tensors() == 5)  # the recorder's own, and this one
        client.call(**free("kept"))
        test_report.Report.stop(self, process, text)

    def look(self):
        browser = self.browser
        browser.open(self.page)
        text = browser.text("#recovery")
        for part in ("before this record from a state that was not closed", "6 tensors and 0 views came back, 1 of them without",
                     "0 lost", "2 sessions waited", "1 came back, 1 expired, 0 wait still"):
            self.assertIn(part, text)
        marks = [browser.run(f"document.querySelectorAll('#chart .{kind}').length") for kind in ("recovered", "resumed", "expired")]
        self.assertEqual(marks, [1, 1, 1])
        browser.click("[data-tab=recovery]")
        rows = self.rows()
        self.assertEqual(self.number_of("recovery"), len(rows))
        for part in (r"lost: data of 1 tensors that were written when it ended: out", r"kept: 6 tensors", r"out\tDATA_LOST",
                     r"session \d+\tcame back\t\+", r"session \d+\texpired\t\+.*tensors without names ended"):
            self.assertTrue(any(re.search(part, row) for row in rows), (part, rows))
        # What was there is in the pictures from the beginning, and what ends with its session goes.
        browser.open(self.page, "at=1")
        self.assertIn("6 tensors:", browser.text("#there"))
        self.assertEqual(browser.run("document.querySelectorAll('#map g').length"), 6)
        browser.open(self.page, "at=1000")
        self.assertIn("4 tensors:", browser.text("#there"))
        browser.open(self.page, "tab=tensors&q=out")
        self.assertIn("before", self.rows()[0])
        browser.click("#list a")
        self.assertRegex(browser.text("#detail"), r"before the record[\s\S]*DATA_LOST")

    def test_live(self):
        self.record("report", "--live", self.page)
        self.look()
        try:
            for scheme in ("light", "dark"):
                self.browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
                self.browser.open(self.page, "tab=recovery")
                self.assertEqual(self.browser.run(UNREADABLE), [], scheme)
        finally:
            self.browser.ask("Emulation.setEmulatedMedia", features=[])

    def test_a_record_with_a_snapshot(self):
        self.record("record", "--snapshot", os.path.join(self.directory, "copy"), self.file)
        test_report.Report.report(self, self.file, self.page)
        self.look()

    def test_without_one_nothing_is_said(self):
        process, text = test_report.Report.start(self, "report", "--live", self.page)
        self.client().call(**alloc("a"))
        test_report.Report.stop(self, process, text)
        self.browser.open(self.page)
        hidden = "['#recovery', '[data-tab=recovery]'].every(one => getComputedStyle(document.querySelector(one)).display === 'none')"
        self.assertTrue(self.browser.run(hidden))


# The records' own tests run without a browser.
for inherited in [name for name in dir(test_report.Report) if name.startswith("test_")]:
    setattr(Made, inherited, None)

if __name__ == "__main__":
    if not PROGRAM:
        print("SKIPPED: there is no chromium, so that the report's page was looked at by nobody", file=sys.stderr)
        sys.exit(77)
    unittest.main()
