"""Sweeps in shards: every case in one, and their reports added up as one run would have said it."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CTL = os.path.join(os.environ["NPUMEM_BUILD"], "client", "ctl", "npumemctl")
VECTORS = os.path.join(SOURCE, "tests/conformance/vectors")
NETWORKS = [os.path.join(SOURCE, "tests/examples/networks", name) for name in ("picture.json", "digits_fx8.json")]
PLACEMENTS = ("--layouts", "all", "--start-npu", "0,5")


class Sweep(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="npumem-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def ctl(self, *words, code=0, says=""):
        done = subprocess.run([CTL, *words], capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.assertEqual(done.returncode, code, (words, done.stdout[-2000:], done.stderr))
        self.assertIn(says, done.stderr)
        return done.stdout

    def report(self, name, *words, code=0):
        text = self.ctl("--spawn", "--json", *words, code=code)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return json.loads(text)

    def shards(self, n, *words, code=0):
        return [self.report(f"{i}.json", *words, "--shard", f"{i}/{n}", code=code) for i in range(1, n + 1)]

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))

    def merged(self, *names, code=0, says=""):
        return json.loads(self.ctl("--json", "merge", *names, code=code, says=says))

    def assert_same(self, merged, one):
        """Whatever one run says, but how long it took and when."""

        def timeless(report):
            cases = [{k: v for k, v in case.items() if k != "seconds"} for case in report["cases"]]
            items = [(item["item"], item["name"]) for item in report["items"]]
            left = ("missing", "replaced", "left_out", "sweep", "cases", "items")
            return {k: v for k, v in report.items() if k not in left}, cases, items, report["sweep"]["id"]

        self.assertEqual(timeless(merged), timeless(one))
        self.assertEqual((merged["sweep"]["shard"], merged["sweep"]["shards"]), (1, 1))


class Conform(Sweep):
    def test_all_vectors_in_shards(self):
        one = self.report("one.json", "conform", VECTORS)
        self.assertEqual(one["passed"], len(one["items"]))
        self.assertGreater(one["passed"], 1300)
        self.assertTrue(all(item["seconds"] > 0 for item in one["items"]))
        parts = self.shards(4, "conform", VECTORS, "--costs", "one.json")
        ran = [item["item"] for part in parts for item in part["items"]]
        self.assertEqual(sorted(ran), list(range(one["passed"])))
        names = [f"{i}.json" for i in (3, 1, 4, 2)]
        self.assert_same(self.merged(*names), one)
        self.assertIn(f"{one['passed']} passed, 0 failed", self.ctl("merge", *names))
        # By what the report says: no shard is longer than it must be.
        seconds = {item["item"]: item["seconds"] for item in one["items"]}
        loads = [sum(seconds[item["item"]] for item in part["items"]) for part in parts]
        self.assertLessEqual(max(loads), sum(loads) / 4 + max(seconds.values()))

    def start(self, i, words):
        with open(self.path(f"{i}.json"), "w", encoding="utf-8") as out:
            return subprocess.Popen([CTL, "--json", "--socket", self.path(f"{i}.sock"), *words, "--shard", f"{i}/4"],
                                    stdout=out, stderr=subprocess.DEVNULL)

    def daemon(self, i):
        path = self.path(f"{i}.sock")
        daemon = subprocess.Popen([os.environ["NPUMEMD"], "--log", "error", "--socket", path])
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        self.ctl("--socket", path, "--reconnect", "60", "info")
        return daemon

    def test_tasks_and_a_daemon_that_die(self):
        """Four tasks on four devices; a task and a daemon are killed, and their shares run again."""
        words = ("conform", VECTORS, "--layouts", "all")
        one = self.report("one.json", *words)
        daemons = {i: self.daemon(i) for i in range(1, 5)}
        tasks = {i: self.start(i, words) for i in range(1, 5)}
        time.sleep(0.1)
        tasks[2].kill()
        daemons[3].kill()
        codes = {i: task.wait(240) for i, task in tasks.items()}
        self.assertEqual((codes[1], codes[4]), (0, 0))
        self.assertIn(codes[3], (0, 3))
        os.rename(self.path("2.json"), self.path("2-died.json"))
        os.rename(self.path("3.json"), self.path("3-died.json"))
        self.daemon(3)
        for i in (2, 3):
            self.assertEqual(self.start(i, words).wait(240), 0)
        names = ["1.json", "2-died.json", "2.json", "3.json", "3-died.json", "4.json"]
        merged = self.merged(*names)
        self.assert_same(merged, one)
        self.assertEqual(len(merged["replaced"]) + len(merged["left_out"]), 2)

    def test_the_same_shares_without_costs(self):
        relu = os.path.join(VECTORS, "relu.json")
        first, again = (self.report("s.json", "conform", relu, "--shard", "2/3") for _ in range(2))
        self.assertEqual([i["item"] for i in first["items"]], [i["item"] for i in again["items"]])
        self.assertEqual([i["item"] for i in first["items"]][:3], [1, 4, 7])
        text = self.ctl("--spawn", "conform", relu, "--shard", "2/3")
        self.assertIn(f"shard 2 of 3: {len(first['items'])} of {first['sweep']['items']} cases", text)
        # From another folder, by another path.
        os.mkdir(self.path("x"))
        shutil.copy(relu, self.path("x/relu.json"))
        moved = self.report("s.json", "conform", "x", "--shard", "2/3")
        self.assertEqual((moved["sweep"]["id"], moved["sweep"]["split"]), (first["sweep"]["id"], first["sweep"]["split"]))

    def test_more_shards_than_cases(self):
        with open(os.path.join(VECTORS, "relu.json"), encoding="utf-8") as file:
            vectors = json.load(file)
        vectors["cases"] = vectors["cases"][:2]
        self.write("two.json", vectors)
        one = self.report("one.json", "conform", "two.json")
        parts = self.shards(5, "conform", "two.json")
        self.assertEqual([part["passed"] for part in parts], [1, 1, 0, 0, 0])
        self.assert_same(self.merged(*(f"{i}.json" for i in range(1, 6))), one)

    def test_failures_are_added_up(self):
        with open(os.path.join(VECTORS, "relu.json"), encoding="utf-8") as file:
            vectors = json.load(file)
        for case in vectors["cases"][::5]:
            data = case["tensors"]["out"]["data"]
            data[0] = 0 if data[0] else 1
        self.write("bad.json", vectors)
        self.write("broken.json", "{")
        words = ("conform", "bad.json", "broken.json", os.path.join(VECTORS, "tanh.json"))
        one = self.report("one.json", *words, code=1)
        self.assertEqual(one["failed"], len(vectors["cases"][::5]) + 1)
        for i in range(1, 4):
            part = subprocess.run([CTL, "--spawn", "--json", *words, "--shard", f"{i}/3"], capture_output=True,
                                  text=True, timeout=60, cwd=self.folder)
            self.write(f"{i}.json", part.stdout)
        self.assert_same(self.merged("1.json", "2.json", "3.json", code=1, says=f"{one['failed']} failed"), one)
        told = self.ctl("merge", "3.json", "2.json", "1.json", code=1)
        self.assertEqual(told.count("FAIL"), one["failed"])
        self.assertIn(f"{one['passed']} passed, {one['failed']} failed", told)

    def test_texts_of_a_file_are_no_commands_to_a_terminal(self):
        name, kernel = "a\x1b]0;b\x07c\x9bd\u202ee\nf", "no\x1b[31m"
        self.write("one.json", {"family": "no", "format": 1, "cases": [{"name": name, "kernel": kernel, "tensors": {}}]})
        says = 'FAIL a?]0;b?c?d?e?f: there is no kernel "no?[31m"\n'
        self.assertIn(says, self.ctl("--spawn", "conform", "one.json", code=1))
        one = self.report("report.json", "conform", "one.json", code=1)
        self.assertEqual(one["cases"][0]["case"], name)
        self.assertIn(says, self.ctl("merge", "report.json", code=1))

    def test_without_a_daemon_nothing_is_known(self):
        """Neither that cases passed, nor that they failed: another code than both."""
        words = (("conform", os.path.join(VECTORS, "relu.json")), ("check", NETWORKS[0]))
        for word in words:
            text = self.ctl("--socket", self.path("none"), "--json", *word, code=3, says="cannot reach a daemon")
            self.assertEqual(json.loads(text)["error"]["status"], "UNAVAILABLE")
            socket = self.path("d.sock")
            daemon = subprocess.Popen([os.environ["NPUMEMD"], "--log", "error", "--socket", socket])
            try:
                self.ctl("--socket", socket, "--reconnect", "30", "info")
                # Until it has begun: then there is somebody whose daemon it is.
                asking = subprocess.Popen([CTL, "--socket", socket, "--json", *word, "--layouts", "all", "--start-npu", ",".join(map(str, range(64)))],
                                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=self.folder)  # fmt: skip
                while json.loads(self.ctl("--socket", socket, "--json", "stat"))["activity"]["kernels"] < 5:
                    self.assertIsNone(asking.poll())
            finally:
                daemon.kill()
                daemon.wait()
            text, _ = asking.communicate(timeout=60)
            self.assertEqual((asking.returncode, json.loads(text)["error"]["status"]), (3, "UNAVAILABLE"))
            self.write("lost.json", text)
        self.ctl("--socket", self.path("none"), "ls", code=1, says="cannot reach a daemon")

    def test_bad_options(self):
        relu = os.path.join(VECTORS, "relu.json")
        for text in ("0/2", "3/2", "2", "a/b", "1/-1", "1/5000", ""):
            self.ctl("--spawn", "conform", relu, "--shard", text, code=2, says="is not I/N")
        self.ctl("--spawn", "conform", relu, "--costs", "x.json", code=2, says="without --shard")
        self.ctl("--spawn", "conform", relu, "--shard", "1/2", "--costs", "x.json", code=1, says="x.json")
        self.write("x.json", {"items": [{"name": "relu.json:none", "seconds": 1}]})
        self.ctl("--spawn", "conform", relu, "--shard", "1/2", "--costs", "x.json", code=1, says="none of these")
        self.ctl("--spawn", "conform", "--record", self.folder, "relu", "--shard", "1/2", code=2, says="no meaning with --record")


class Merge(Sweep):
    def setUp(self):
        super().setUp()
        self.relu = os.path.join(VECTORS, "relu.json")
        self.parts = self.shards(3, "conform", self.relu)

    def test_missing_shards_are_named(self):
        merged = self.merged("2.json", code=1, says="shards 1, 3 of 3 have no report")
        self.assertEqual((merged["missing"], merged["passed"]), ([1, 3], self.parts[1]["passed"]))
        self.merged("2.json", "1.json", code=1, says="shard 3 of 3 has no report")

    def test_the_later_run_counts(self):
        later = dict(self.parts[1], passed=self.parts[1]["passed"] - 1, failed=1)
        later["sweep"] = dict(later["sweep"], run="0" * 16, time=later["sweep"]["time"] + 1)
        self.write("later.json", later)
        total = sum(part["passed"] for part in self.parts)
        for names in (("later.json", "2.json"), ("2.json", "later.json")):
            merged = self.merged("1.json", *names, "3.json", code=1, says="1 failed")
            self.assertEqual((merged["passed"], merged["failed"], merged["missing"]), (total - 1, 1, []))
            self.assertEqual(merged["replaced"], [{"file": "2.json", "by": "later.json", "shard": 2}])
            text = self.ctl("merge", "1.json", *names, "3.json", code=1)
            self.assertIn("shard 2: later.json replaces 2.json", text)
        # The same file twice, and three runs of one shard.
        merged = self.merged("1.json", "1.json", "2.json", "3.json")
        self.assertEqual((merged["passed"], len(merged["replaced"])), (total, 1))
        again = self.report("again.json", "conform", self.relu, "--shard", "2/3")
        self.assertNotEqual(again["sweep"]["run"], self.parts[1]["sweep"]["run"])
        again["sweep"]["time"] += 2
        self.write("again.json", again)
        merged = self.merged("1.json", "again.json", "later.json", "2.json", "3.json")
        self.assertEqual((merged["passed"], merged["failed"]), (total, 0))
        self.assertEqual({r["file"] for r in merged["replaced"]}, {"2.json", "later.json"})

    def test_runs_that_were_killed(self):
        self.write("empty.json", "")
        with open(self.path("2.json"), encoding="utf-8") as file:
            self.write("cut.json", file.read()[:500])
        self.write("error.json", {"error": {"status": "UNAVAILABLE", "message": "gone", "fields": {}}})
        merged = self.merged("1.json", "empty.json", "cut.json", "error.json", "3.json", code=1, says="shard 2 of 3")
        self.assertEqual([one["file"] for one in merged["left_out"]], ["empty.json", "cut.json", "error.json"])
        merged = self.merged("1.json", "empty.json", "2.json", "3.json")
        self.assertEqual(merged["passed"], sum(part["passed"] for part in self.parts))
        self.assertIn("left out: empty.json: it is not whole", self.ctl("merge", "1.json", "empty.json", "2.json", "3.json"))
        self.ctl("merge", "empty.json", code=1, says="empty.json is not a report: it is an empty file")

    def test_other_sweeps_are_refused(self):
        others = {
            "another sweep": [
                ("conform", os.path.join(VECTORS, "tanh.json"), "--shard", "2/3"),
                ("conform", self.relu, "--shard", "2/3", "--layouts", "compact"),
                ("conform", self.relu, "--shard", "2/3", "--only-known"),
                ("check", NETWORKS[0], "--shard", "2/3"),
            ],
            "one of 4 shards": [("conform", self.relu, "--shard", "2/4")],
            "one of 1 shards": [("conform", self.relu)],
        }
        for says, runs in others.items():
            for words in runs:
                self.report("other.json", *words)
                self.ctl("merge", "1.json", "other.json", "3.json", code=1, says=says.replace("1 shards", "1"))
        # The same cases on another device.
        text = self.ctl("--spawn=--npus 16", "--json", "conform", self.relu, "--shard", "2/3")
        self.write("other.json", text)
        self.ctl("merge", "1.json", "other.json", code=1, says="another sweep")
        # By other costs.
        items = [dict(item, seconds=1 + item["item"] % 4) for part in self.parts for item in part["items"]]
        self.write("costs.json", {"items": items})
        self.report("other.json", "conform", self.relu, "--shard", "2/3", "--costs", "costs.json")
        self.ctl("merge", "1.json", "other.json", code=1, says="other costs")

    def test_files_that_lie(self):
        good = self.parts[1]

        def changed(**members):
            return dict(good, **members)

        def sweep(**members):
            return dict(good, sweep=dict(good["sweep"], **members))

        for bad in (
            [], {}, changed(command="ls"), changed(command=1), changed(sweep=1), changed(items=None),
            changed(items=[1]), changed(items=[{"item": 10**9}]), changed(items=[{"item": -1}]), changed(cases=5),
            changed(passed=-1), changed(passed="1"), changed(passed=1.5), changed(runs=2**62), changed(placements=None),
            sweep(id="x"), sweep(id="g" * 16), sweep(run=""), sweep(split=5), sweep(shard=0), sweep(shard=4),
            sweep(shards=0), sweep(shards=10**6), sweep(items=-1), sweep(items=2), sweep(time="now"), sweep(time=None),
        ):
            self.write("bad.json", json.dumps(bad))
            self.ctl("merge", "1.json", "bad.json", "3.json", code=1, says="not a report of")
        self.write("bad.json", changed(items=self.parts[0]["items"]))
        self.ctl("merge", "1.json", "bad.json", "3.json", code=1, says="ran in two shards")
        self.write("bad.json", changed(items=good["items"][1:]))
        self.ctl("merge", "1.json", "bad.json", "3.json", code=1, says="ran in no shard")
        self.ctl("merge", "1.json", "nothing.json", code=1, says="nothing.json")
        self.ctl("merge", code=2, says="merge needs")


class Check(Sweep):
    def test_networks_in_shards(self):
        words = ("check", *NETWORKS, *PLACEMENTS)
        one = self.report("one.json", *words, "--junit", "one.xml")
        self.assertEqual((one["failed"], len(one["items"]), one["placements"]), (0, 16, 8))
        for i in (1, 2, 3):
            self.report(f"{i}.json", *words, "--shard", f"{i}/3", "--costs", "one.json", "--junit", f"{i}.xml")
        merged = self.merged("--junit", "all.xml", "1.xml", "2.json", "3.xml", "1.json", "2.xml", "3.json")
        self.assert_same(merged, one)

        def suites(name):
            root = xml.etree.ElementTree.parse(self.path(name)).getroot()
            return [(suite.attrib, [(c.get("classname"), c.get("name")) for c in suite]) for suite in root]

        self.assertEqual(suites("all.xml"), suites("one.xml"))
        # What was merged is a part, too: the only one.
        self.ctl("merge", "--junit", "again.xml", "all.xml")
        self.assertEqual(suites("again.xml"), suites("one.xml"))

    def test_junit_files_that_lack(self):
        for i in (1, 2):
            self.ctl("--spawn", "check", *NETWORKS, "--shard", f"{i}/2", "--junit", f"{i}.xml")
        with open(self.path("1.xml"), encoding="utf-8") as file:
            text = file.read()
        self.ctl("merge", "--junit", "all.xml", "1.xml", code=1, says="shard 2 of 2 has no JUnit file")
        self.ctl("merge", "1.xml", "2.xml", code=2, says="--junit OUT.xml")
        self.ctl("merge", "--junit", "/nonexistent/all.xml", "1.xml", "2.xml", code=1, says="/nonexistent/all.xml")
        for cut in ("", text[: len(text) // 2], text[:-3]):
            self.write("cut.xml", cut)
            self.assertIn("left out: cut.xml", self.ctl("merge", "--junit", "all.xml", "cut.xml", "1.xml", "2.xml"))
        comment = re.search("<!--.*-->", text)[0]
        for bad in (
            text.replace(comment, "<!-- -->"), text.replace("shard=1/2", "shard=3/2"),
            text.replace("shard=1/2", "shard=1/99999"), text.replace(' id="0"', ' id="7"'), text.replace(' id="0"', ""),
            text.replace("  <testsuite ", "  <properties/>\n  <testsuite ", 1), "<testsuites>\n</testsuites>\n",
        ):
            self.assertNotEqual(bad, text)
            self.write("bad.xml", bad)
            self.ctl("merge", "--junit", "all.xml", "bad.xml", "2.xml", code=1, says="not a JUnit file of check")
        self.write("bad.xml", text.replace("shard=1/2", "shard=2/2"))
        self.ctl("merge", "--junit", "all.xml", "1.xml", "bad.xml", code=1, says="ran in two shards")
        self.ctl("merge", "--junit", "all.xml", "nothing.xml", "2.xml", code=1, says="nothing.xml: No such file")
        os.mkdir(self.path("folder.xml"))
        self.ctl("merge", "--junit", "all.xml", "folder.xml", "2.xml", code=1, says="folder.xml is not a report: it is a directory")
        self.report("relu.json", "conform", os.path.join(VECTORS, "relu.json"), "--shard", "1/2")
        self.ctl("merge", "--junit", "all.xml", "relu.json", code=1, says="none of the files is a finished JUnit file")
        self.ctl("merge", "--junit", "all.xml", "relu.json", "1.xml", "2.xml", code=1, says="is of another sweep than relu.json")
        self.ctl("--spawn", "check", NETWORKS[0], "--shard", "1/2", "--junit", "other.xml")
        self.ctl("merge", "--junit", "all.xml", "other.xml", "2.xml", code=1, says="another sweep")

    def test_many_networks(self):
        """More than a session may share segments."""
        os.symlink(os.path.join(os.path.dirname(NETWORKS[0]), "picture"), self.path("picture"))
        names = [f"{i}.json" for i in range(100)]
        for name in names:
            shutil.copy(NETWORKS[0], self.path(name))
        text = self.ctl("--spawn", "check", *names, "--shard", "2/3")
        self.assertIn("shard 2 of 3: 33 of 100 placements", text)
        one = self.report("one.json", "check", *names)
        self.assertEqual((one["failed"], len(one["items"]), len({case["network"] for case in one["cases"]})), (0, 100, 100))

    def test_networks_that_are_bad_stop_all_shards(self):
        self.write("bad.json", "{")
        for i in (1, 2):
            self.ctl("--spawn", "check", NETWORKS[0], "bad.json", "--shard", f"{i}/2", code=1, says="bad.json")


class Replay(Sweep):
    def record(self, name, n):
        socket = self.path("d.sock")
        daemon = subprocess.Popen([os.environ["NPUMEMD"], "--log", "error", "--socket", socket])
        try:
            self.ctl("--socket", socket, "--reconnect", "30", "info")
            recorder = subprocess.Popen([CTL, "--socket", socket, "record", name], cwd=self.folder,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            try:
                self.wait_until_recorded(recorder)
                for i in range(n):
                    self.ctl("--socket", socket, "alloc", f"t{i}", "--shape", "1,8,1,16", "--dtype", "int8")
            finally:
                recorder.send_signal(2)
                recorder.communicate(timeout=60)
        finally:
            daemon.terminate()
            daemon.wait()

    def wait_until_recorded(self, recorder):
        self.assertTrue(recorder.stdout.readline())

    def test_records_in_shards(self):
        for name, n in (("a.rec", 1), ("b.rec", 4), ("c.rec", 2)):
            self.record(name, n)
        words = ("replay", "a.rec", "b.rec", "c.rec")

        def report(name, *more):
            text = self.ctl("--json", *words, *more)
            self.write(name, text)
            return json.loads(text)

        one = report("one.json")
        self.assertEqual((one["differences"], len(one["cases"])), (0, 3))
        self.assertGreaterEqual(one["requests"], 7)
        parts = [report(f"{i}.json", "--shard", f"{i}/2", "--costs", "one.json") for i in (1, 2)]
        self.assertEqual(sorted(c["record"] for part in parts for c in part["cases"]), ["a.rec", "b.rec", "c.rec"])
        self.assert_same(self.merged("1.json", "2.json"), one)
        # On a device that is too small they differ, and the first that does is told.
        words = (*words, "--npus", "1", "--npu-bytes", "128")
        told = subprocess.run([CTL, "--json", *words], capture_output=True, text=True, timeout=60, cwd=self.folder)
        self.assertEqual(told.returncode, 1)
        self.assertIn("a.rec: ", told.stderr)
        one = json.loads(told.stdout)
        self.assertGreater(one["differences"], 0)
        for i in (1, 2):
            part = subprocess.run([CTL, "--json", *words, "--shard", f"{i}/2"], capture_output=True, text=True,
                                  timeout=60, cwd=self.folder)
            self.write(f"{i}.json", part.stdout)
        self.assert_same(self.merged("1.json", "2.json", code=1, says="differences"), one)


if __name__ == "__main__":
    unittest.main()
