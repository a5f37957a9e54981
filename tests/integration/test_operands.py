"""How many operands and parameters a call may have: the limit is taken, one more is refused and changes nothing."""

import unittest

from support import TestCase, pb

OPERANDS_MAX, PARAMS_MAX = 40, 40


class Operands(TestCase):
    def concat(self, client, n):
        """One of n operands, of which one is the output."""
        source = client.alloc("", (1, 1, 1, 16))
        client.write(source.handle, bytes(range(16)))
        out = client.alloc("", (1, n - 1, 1, 16))
        operands = [pb.Operand(role=f"in{i}", tensor=pb.Ref(handle=source.handle)) for i in range(n - 1)]
        operands.append(pb.Operand(role="out", tensor=pb.Ref(handle=out.handle)))
        axis = pb.Param(key=pb.PARAM_AXIS, values=[3])  # c
        return pb.RunRequest(kernel=pb.CONCAT, operands=operands, params=[axis]), out

    def both_ways(self, client, run):
        submit = pb.SubmitRequest(operations=[pb.Operation(run=run)])
        return [client.ask(run=run), client.ask(submit=submit)]

    def test_operands_at_the_limit(self):
        client = self.client()
        run, out = self.concat(client, OPERANDS_MAX)
        for answer in self.both_ways(client, run):
            self.assertEqual(answer.status, pb.OK, answer)
        self.assertEqual(client.read(out.handle), bytes(range(16)) * (OPERANDS_MAX - 1))

    def test_operands_above_it(self):
        client = self.client()
        for n in (OPERANDS_MAX + 1, 1000):
            run, out = self.concat(client, n)
            for answer in self.both_ways(client, run):
                self.assertEqual(answer.status, pb.INVALID, answer)
                self.assertIn(f"{n} operands, and at most {OPERANDS_MAX}", answer.message)
            answer = client.ask(read=pb.ReadRequest(tensor=pb.Ref(handle=out.handle)))
            self.assertEqual(answer.status, pb.FAILED_PRECONDITION)  # never written

    def test_parameters(self):
        client = self.client()
        for n, words in ((PARAMS_MAX, "kernel concat: parameter axis is given twice"), (PARAMS_MAX + 1, f"{PARAMS_MAX + 1} parameters, and at most {PARAMS_MAX}")):
            run, _ = self.concat(client, 3)
            run.params.extend([run.params[0]] * (n - 1))
            for answer in self.both_ways(client, run):
                self.assertEqual(answer.status, pb.INVALID)
                self.assertIn(words, answer.message)


if __name__ == "__main__":
    unittest.main()
