"""Several nodes that make each element of one element of one value, as one node: a table does them at once.

    Gelu as exporters write it: Div, Erf, Add, Mul, Mul    ->  Function
    x * relu6(x + 3) / 6                               ->  Function
    x * sigmoid(x), log(1 + e^x), 1 / sqrt(x + c), …       ->  Function

Invariant: a Function has one input and one output of one shape; its attributes have the nodes and their constants."""

from __future__ import annotations

from .floats.functions import FUNCTIONS
from .model import Graph, Node

TABLES = {*FUNCTIONS, "Pow", "Sigmoid", "Tanh"}  # one of these makes a table worth it
BESIDE = {"Abs", "Add", "Clip", "Div", "LeakyRelu", "Max", "Min", "Mul", "Neg", "Relu", "Sub"}


def roots_of(graph: Graph) -> dict[str, str]:
    """By value: the value of which alone it is made, element by element."""
    roots: dict[str, str] = {}
    for node in graph.nodes:
        moving = {roots.get(name, name) for name in node.inputs if name and name not in graph.constants}
        fixed = [graph.constants[name] for name in node.inputs if name in graph.constants]
        if node.op in TABLES | BESIDE and len(moving) == 1 and all(value.size == 1 for value in fixed):
            root = moving.pop()
            if graph.shapes[root] == graph.shapes[node.outputs[0]]:
                roots[node.outputs[0]] = root
    return roots


def between(graph: Graph, root: str, name: str) -> list[Node]:
    """The nodes from the root to a value, in order."""
    wanted, found = {name}, []
    for node in reversed(graph.nodes):
        if node.outputs[0] in wanted and node.outputs[0] != root:
            found.append(node)
            wanted.update(node.inputs)
    return found[::-1]


def multiplies_itself(graph: Graph, nodes: list[Node]) -> bool:
    """x * relu6(x + 3) / 6, in any order: three nodes or more, and a product of two values that the root makes."""
    return len(nodes) > 2 and any(node.op == "Mul" and not graph.constants.keys() & set(node.inputs) for node in nodes)


def fold(graph: Graph) -> None:
    """Makes a Function of each such value that others than its neighbours use. What is left unused stays in place."""
    roots, made = roots_of(graph), {}
    for name, root in roots.items():
        outside = any(roots.get(user.outputs[0]) != root for user in graph.users(name))
        nodes = between(graph, root, name) if outside or name in graph.outputs else []
        if len(nodes) < 2 or not (any(node.op in TABLES for node in nodes) or multiplies_itself(graph, nodes)):
            continue
        constants = {n: graph.constants[n] for node in nodes for n in node.inputs if n in graph.constants}
        last = nodes[-1]
        made[name] = Node("Function", last.name, [root], [name], {"nodes": nodes, "constants": constants}, last.opset)
    graph.nodes = [made.get(node.outputs[0], node) for node in graph.nodes]
