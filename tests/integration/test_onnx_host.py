"""npumem-import --host and --activations: steps on the host between two lists, and floats of another framework."""

import json
import os
import subprocess
import unittest

# Before onnx: where it is missing, the test ends as skipped.
from onnx_models import NPUMEMCTL, Folder, model, picture, random

import npumem
import npumem.onnx
import numpy as np
from onnx import helper
from npumem.onnx import floats, run
from npumem.onnx.formats import noise_db
from npumem.onnx.model import read


class Host(Folder):
    def converted(self, made, x, *words):
        """The report and network.json of the folder that the command writes."""
        self.save(made)
        done = self.program("npumem.onnx", "m.onnx", "--samples", self.samples(x), "--out", "net", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        with open(self.at("net", "network.json")) as network, open(self.at("net", "report.txt")) as report:
            return done.stdout, json.load(network), report.read()

    def results(self, x):
        done = self.program("npumem.onnx.run", "net/network.json", "--samples", self.samples(x), "--out", "results")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return {name[:-4]: np.load(self.at("results", name)) for name in os.listdir(self.at("results"))}

    def test_between_two_lists(self):
        """Conv, then Hardmax and a Greater on the host, then Conv of what they give; ArgMax is a kernel's."""
        w = {"w": random(1, 4, 3, 1, 1), "v": random(2, 5, 4, 1, 1), "t": np.float32([0.5])}
        nodes = [("Conv", ["x", "w"], ["a"], {}), ("Hardmax", ["a"], ["b"], {"axis": 1}),
                 ("Greater", ["b", "t"], ["c"], {}), ("Cast", ["c"], ["d"], {"to": 1}), ("Conv", ["d", "v"], ["e"], {}),
                 ("Relu", ["e"], ["y"], {}), ("ArgMax", ["a"], ["i"], {"axis": 1, "keepdims": 0})]  # fmt: skip
        made = model(nodes, {"x": [1, 3, 6, 6]}, {"y": [1, 5, 6, 6], "i": None}, w)
        made.graph.output[1].type.tensor_type.elem_type = 7
        x = random(3, 4, 1, 3, 6, 6)
        said, network, report = self.converted(made, x, "--host")
        steps = [one for one in network["operations"] if "host" in one]
        self.assertEqual([one["host"] for one in steps], ["Hardmax", "Greater"])
        self.assertEqual([len(one["writes"]) for one in steps], [0, 1])  # Greater's alone goes to a kernel
        self.assertIn("npumem.onnx.run net/network.json", said)
        turns = report.split("take turns:\n\n")[1].split("\n\n")[0].split("\n")
        self.assertEqual([line.split()[0] for line in turns], ["device", "HOST", "HOST", "device"])
        self.assertIn('Hardmax "Hardmax_1": reads a, gives b; no kernel does Hardmax', turns[1])
        got, graph = self.results(x), read(self.at("m.onnx"))
        want = [floats.run(graph, {"x": one}) for one in x]
        self.assertTrue(np.array_equal(got["i"], np.concatenate([one["i"] for one in want])))
        self.assertGreater(noise_db(np.concatenate([one["y"] for one in want]), got["y"]), 55)

    def test_ids_of_tokens(self):
        """int64 into a Gather: the host looks them up, also larger ones than the samples have, and a kernel multiplies."""
        made = model([("Gather", ["table", "ids"], ["e"], {}), ("MatMul", ["e", "w"], ["y"], {})], {"ids": [1, 8]}, {"y": None},
                     {"table": np.tile(random(1, 8, 16), (500, 1)), "w": random(2, 16, 4)})  # fmt: skip
        made.graph.input[0].type.tensor_type.elem_type = 7
        few = np.array([np.random.default_rng(i).permutation(8) for i in range(3)])
        many = few + 8 * np.arange(476, 500).reshape(3, 8)
        self.converted(made, few, "--host")
        got, graph = self.results(many), read(self.at("m.onnx"))
        want = np.concatenate([floats.run(graph, {"ids": one[None]})["y"] for one in many])
        self.assertGreater(noise_db(want, got["y"]), 50)

    def test_a_shape_that_depends_on_the_data(self):
        """Boxes of a head, and which of them stay, at the end: on the host, exactly."""
        scores = {"w": random(1, 8, 6), "s": np.array([1, 1, 8], np.int64), "box": np.abs(random(2, 1, 8, 4)),
                  "n": np.array([8], np.int64), "iou": np.float32([0.2]), "least": np.float32([0.1])}  # fmt: skip
        made = model(
            [("MatMul", ["x", "m"], ["a"], {}), ("Reshape", ["a", "s"], ["p"], {}),
             ("NonMaxSuppression", ["box", "p", "n", "iou", "least"], ["y"], {})],
            {"x": [1, 6]}, {"y": None}, {**scores, "m": scores.pop("w").T.copy()},
        )  # fmt: skip
        made.graph.output[0].type.tensor_type.elem_type = 7
        x = random(5, 6, 1, 6)
        x[1] = 0  # of equal scores others stay
        self.converted(made, x, "--host")
        self.assertIn("y.5", self.results(x))
        imported = npumem.onnx.load(self.at("m.onnx"), x, host=True)
        shapes = set()
        whole, graph = imported.network.document(), read(self.at("m.onnx"))
        with npumem.spawn("--npu-bytes", "1M") as dev:
            with run.Session(dev, whole, imported.report, imported.network.arrays.__getitem__) as session:
                for one in x:
                    want = floats.run(graph, {"x": one})["y"]
                    self.assertEqual(session.run({"x": one})["y"].tolist(), want.tolist())
                    shapes.add(want.shape)
            self.assertEqual(dev.tensors(), [])
        self.assertGreater(len(shapes), 1, shapes)
        made.graph.node.append(helper.make_node("Identity", ["y"], ["z"]))  # in front of an output: integers as they are
        made.graph.output[0].name = "z"
        self.save(made)
        with npumem.spawn("--npu-bytes", "1M") as dev:
            imported = npumem.onnx.load(self.at("m.onnx"), x[:1], host=True)
            with run.Session(dev, imported.network.document(), imported.report, imported.network.arrays.__getitem__) as session:
                self.assertEqual(session.run({"x": x[0]})["z"].dtype, np.int64)

    def test_activations(self):
        """Layers are compared with the arrays of an .npz; what was folded into others is left out."""
        made, x = picture(), random(0, 3, 3, 16, 16)
        self.save(made)
        runs = [floats.run(read(self.at("m.onnx")), {"x": one[None]}) for one in x]
        given = {name: np.concatenate([one[name] for one in runs]) for name in ("c1", "r1", "h3", "g", "y")}
        given["h3"] += 1.0
        np.savez(self.at("acts.npz"), **given)
        said, _, report = self.converted(made, x, "--activations", "acts.npz")
        self.assertIn("activations of 4 values are compared, 1 were folded into others", said)
        self.assertRegex(said, r"NumPy agrees to -?[0-9.]+ dB or better \(the least: h3\)")
        self.assertTrue(np.array_equal(np.load(self.at("net/expect/h3.npy")), given["h3"][:, None]))
        check = [NPUMEMCTL, "--spawn", "check", self.at("net/network.json"), "--min-snr", "30"]
        done = subprocess.run(check, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stdout)  # h3 alone is not what the file says
        np.savez(self.at("acts.npz"), **{name: given[name] for name in ("r1", "g", "y")})
        self.assertEqual(self.program("npumem.onnx", "m.onnx", "--samples", "x.npy", "--out", "two", "--activations", "acts.npz").returncode, 0)  # fmt: skip
        done = subprocess.run([*check[:3], self.at("two/network.json"), *check[4:]], capture_output=True, text=True, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_activations_that_do_not_fit(self):
        self.save(picture())
        words = ("--samples", self.samples(random(0, 3, 3, 16, 16)), "--activations", "a.npz")
        for given, says in (
            ({"none": np.zeros((3, 10))}, "the model has no value none"),
            ({"g": np.zeros((2, 10))}, "g has 2 samples, and --samples has 3"),
            ({"g": np.zeros((3, 11))}, "samples of g are [3, 11], but the input is [1, 10]"),
            ({"g": np.full((3, 10), np.nan)}, "have an infinity or a NaN"),
            ({"c1": np.zeros((3, 8, 16, 16))}, "none of its arrays is a value that is left after folding"),
        ):
            np.savez(self.at("a.npz"), **given)
            self.assert_refused(says, words=words)
        np.savez(self.at("a.npz"), g=np.zeros((3, 10)))
        self.assert_refused("equalizing scales the values", words=(*words, "--equalize"))
        np.save(self.at("a.npz.npy"), np.zeros(3))
        self.assert_refused("it is an .npz", words=(*words[:3], "a.npz.npy"))
        self.assert_refused("No such file", words=(*words[:3], "other.npz"))

    def test_refusals(self):
        self.save(model([("Hardmax", ["x"], ["y"], {})], {"x": [1, 4]}, {"y": None}))
        x = self.samples(random(0, 3, 1, 4))
        self.assert_refused('node "Hardmax_0" (Hardmax): no kernel does Hardmax; ', "--host", words=("--samples", x))
        self.save(model([("Bernoulli", ["x"], ["y"], {})], {"x": [1, 4]}, {"y": None}, opset=15))
        self.assert_refused("no kernel does Bernoulli, and no rule for it", words=("--samples", x, "--host"))
        self.converted(model([("Hardmax", ["x"], ["y"], {})], {"x": [1, 4]}, {"y": None}), random(0, 3, 1, 4), "--host")
        for command in (["submit"], ["check"], ["plan"]):
            words = [NPUMEMCTL, *(["--spawn"] if command != ["plan"] else []), *command, self.at("net/network.json")]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("host Hardmax: it runs on the host, between two lists", done.stderr)


if __name__ == "__main__":
    unittest.main()
