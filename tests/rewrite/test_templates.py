"""Templates are parsed once: what `fill` gives is a copy that may be changed, placed where the statement stands."""

from __future__ import annotations

import ast

from graphmend_hook.source.names import walk
from graphmend_hook.source.templates import OWN, Template, expression

AT = ast.parse("\n\nfoo()\n").body[0]


def test_fill_gives_fresh_nodes() -> None:
    template = Template("f(A, [B])\npass")
    hole = ast.Name("x", ast.Load())
    first = template.fill(AT, A=hole)
    second = template.fill(AT, A=hole)
    shared = {id(node) for statement in first for node in walk(statement)} & {
        id(node) for statement in second for node in walk(statement)
    }
    assert shared == {id(hole)}


def test_a_changed_copy_leaves_the_template_alone() -> None:
    call = expression("GM.known(NAME)", AT, NAME=ast.Constant("add"))
    assert isinstance(call, ast.Call)
    call.args.append(ast.Constant(1))
    again = expression("GM.known(NAME)", AT, NAME=ast.Constant("add"))
    assert isinstance(again, ast.Call)
    assert len(again.args) == 1


def test_every_node_stands_where_the_statement_does() -> None:
    for statement in Template("if A:\n    pass\nelse:\n    f(lambda TARGET: 1, k=2)").fill(AT):
        for node in walk(statement):
            if "lineno" in node._attributes:
                assert (node.lineno, node.end_lineno, node.col_offset) == (3, 3, 0), ast.dump(node)  # type: ignore[attr-defined]


def test_a_statement_hole_takes_no_statement_at_all() -> None:
    filled = Template("if A:\n    B\n    f()").fill(AT, B=[])
    assert ast.unparse(filled[0]) == "if A:\n    f()"


def test_a_list_of_names_is_spelled_as_its_place_asks() -> None:
    filled = Template("def f(EFFECTS, NAMES):\n    return (NAMES,)").fill(AT, NAMES=["a", "TEST"])
    assert ast.unparse(filled[0]) == f"def f({OWN}effects, a, TEST):\n    return (a, TEST)"
