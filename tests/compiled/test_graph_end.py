"""The declared order of the end of a graph, `engine/graph_end/order.py`: it is whole, and nothing runs out of it."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import graphmend_hook
from graphmend_hook.engine.graph_end.order import NEEDS, ORDER, Change, GraphEnd, Verdict, Wrapper

FILES = sorted(Path(graphmend_hook.__file__).parent.rglob("*.py"))
ASKING = {"judge": Verdict, "change": Change, "wrap_compiler": Wrapper}


def test_each_place_has_one_function() -> None:
    found: dict[Any, set[tuple[Path, str]]] = {}
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKING:
                place, function = node.args
                assert isinstance(place, ast.Attribute), ast.unparse(node)
                found.setdefault(ASKING[node.func.attr][place.attr], set()).add((file, ast.unparse(function)))
    assert found.keys() == {*ORDER}
    functions = {step: {name.rpartition(".")[2] for _, name in asked} for step, asked in found.items()}
    assert all(len(names) == 1 for names in functions.values()), functions


def test_nothing_else_looks_at_a_complete_graph_or_replaces_its_compiler() -> None:
    for what, where in (("register_finalizer", "compilation.py"), (".call_user_compiler = ", "order.py")):
        assert [file.name for file in FILES if what in file.read_text(encoding="utf-8")] == [where]


def test_what_a_step_needs_stands_before_it() -> None:
    for step, needs in NEEDS.items():
        assert all(ORDER.index(need) < ORDER.index(step) for need in needs), step


def end_of(**asked: Callable[..., Any]) -> tuple[GraphEnd, torch.fx.GraphModule, SimpleNamespace]:
    """The end of a graph with one operation; what is asked for is named by its place."""
    end = GraphEnd()
    for name, action in asked.items():
        end.ask(next(step for step in ORDER if step.name == name), action)
    return (
        end,
        torch.fx.symbolic_trace(lambda x: x.sin()),
        SimpleNamespace(call_user_compiler=lambda graph: [graph], export=False),
    )


def called(action: Callable[[None, Any], None], about: Any) -> bool:
    """Call a function as `Compilation.call` does under ``fullgraph=True``."""
    try:
        action(None, about)
    except ZeroDivisionError:
        return False
    return True


def take_out(_compilation: None, module: torch.fx.GraphModule) -> None:
    output = module.graph.output_node()
    output.args = (module.graph.find_nodes(op="placeholder")[0],)


def test_the_order_of_asking_is_of_no_matter() -> None:
    ran: list[str] = []

    def wraps(name: str) -> Callable[..., Any]:
        return lambda _compilation, _module, compiler: lambda graph: [*compiler(graph), name]

    def runs(step: Any) -> Callable[..., Any]:
        return wraps(step.name) if isinstance(step, Wrapper) else lambda *_: ran.append(step.name)

    asked = sorted(ORDER, key=lambda step: (step in NEEDS, step.name))
    asked.sort(key=lambda step: step in (Wrapper.GATES, Wrapper.COPIES))  # which need what needs something
    end, module, output = end_of(**{step.name: runs(step) for step in asked})
    end.run(module, output, called)
    assert ran == [step.name for step in (*Verdict, *Change)]
    assert output.call_user_compiler("graph") == ["graph", *(wrapper.name for wrapper in Wrapper)]


def test_a_verdict_that_changes_the_graph_is_a_defect() -> None:
    end, module, output = end_of(SHAPES=take_out)
    with pytest.raises(AssertionError, match="take_out changes the graph"):
        end.run(module, output, called)


def test_a_change_is_in_the_code_of_the_graph() -> None:
    end, module, output = end_of(USED=take_out)
    compiler = output.call_user_compiler
    end.run(module, output, called)
    assert module(torch.tensor(2.0)) == 2
    assert output.call_user_compiler is compiler


def test_nothing_is_changed_where_a_verdict_has_the_frame_traced_anew() -> None:
    def retreat(*_: Any) -> None:
        raise KeyboardInterrupt

    end, module, output = end_of(VALUES=retreat, USED=take_out)
    with pytest.raises(KeyboardInterrupt):
        end.run(module, output, called)
    assert module.graph.find_nodes(op="call_method", target="sin")


def test_a_change_is_not_made_where_what_it_needs_has_failed() -> None:
    end, module, output = end_of(UNDEFINED=lambda *_: 1 / 0, CONDITIONS=take_out)
    end.run(module, output, called)
    assert module(torch.tensor(0.0)) == 0
    assert module.graph.find_nodes(op="call_method", target="sin")


def test_what_a_change_needs_is_asked_for_with_it() -> None:
    with pytest.raises(AssertionError, match="CONDITIONS"):
        end_of(CONDITIONS=take_out)


def test_a_place_has_no_second_function() -> None:
    end, *_ = end_of(USED=take_out)
    end.ask(Change.USED, take_out)
    with pytest.raises(AssertionError, match="USED"):
        end.ask(Change.USED, print)
