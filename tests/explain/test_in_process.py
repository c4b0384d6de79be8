"""`graphmend_hook.explain(f)(...)`: graphs, breaks and callers of one call, and Dynamo as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import graphmend_hook
from graphmend_hook.product.explain import together
from graphmend_hook.product.explain.observe import Observer
from graphmend_hook.product.explain.verdicts import COMMAND_LINE, NOTEBOOK, PROGRAM, PYTEST, Verdicts, Ways
from graphmend_hook.testing import assert_single_graph


def helper(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return x + 1


def twice(x: torch.Tensor) -> torch.Tensor:
    y = helper(x) * 2
    return helper(y)


def test_breaks_with_their_callers() -> None:
    found = graphmend_hook.explain(twice)(torch.ones(2))
    assert torch.equal(found.result, torch.tensor([5.0, 5.0]))
    assert found.graphs == 2  # nothing is computed before the first break
    (each,) = found.breaks
    assert (Path(each.file).name, each.text) == ("test_in_process.py", "torch._dynamo.graph_break()")
    first = twice.__code__.co_firstlineno + 1
    assert {caller.stack[-1][1:] for caller in each.callers} == {(first, "twice"), (first + 1, "twice")}
    text = str(found)
    assert text.startswith("2 graphs and 1 graph break\n")
    assert f"    from {__file__}:{first} in twice\n" in text
    assert json.loads(json.dumps(found.as_dict()))["breaks"][0]["callers"][0]["times"] >= 1


def test_the_names_of_backends() -> None:
    def mine(module: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
        return module

    observer = Observer()
    with observer.attached():
        for backend in ("eager", "aot_eager", mine):
            torch.compiler.reset()
            torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    torch.compiler.reset()
    assert observer.as_json()["backends"] == ["eager", "aot_eager", "mine"]


def test_of_what_is_compiled_already() -> None:
    graphs = []
    compiled = torch.compile(lambda x: x + 1, backend=lambda graph, _: graphs.append(graph) or graph.forward)
    assert graphmend_hook.explain(compiled)(torch.ones(2)).graphs == len(graphs) == 1


def test_nothing_is_left_behind() -> None:
    from torch._dynamo import convert_frame, output_graph

    def state() -> list[object]:
        classes = (output_graph.OutputGraph, torch._dynamo.symbolic_convert.InstructionTranslator)
        return [dict(vars(each)) for each in classes] + [list(convert_frame._bytecode_hooks.values())]

    assert_single_graph(lambda x: x + 1, torch.ones(2))
    before = state()
    graphmend_hook.explain(twice)(torch.ones(2))
    with pytest.raises(ZeroDivisionError):
        graphmend_hook.explain(lambda x: x / (1 // 0))(torch.ones(2))
    assert state() == before


def test_advice_can_be_copied_into_a_program() -> None:
    advice = graphmend_hook.explain(twice)(torch.ones(2)).breaks[0].advice
    assert advice.startswith("add it: graphmend_hook.install('")


@pytest.mark.parametrize("ways", [COMMAND_LINE, PYTEST, PROGRAM, NOTEBOOK])
def test_advice_names_what_exists_where_the_program_is_run(ways: Ways) -> None:
    hook = {"modules": ["transformers"], "values": ["grid_*"]}
    verdicts = Verdicts({"processes": [{"hooks": [hook]}], "modules": [], "traced": []}, ways)
    assert (verdicts.flag("lib"), verdicts.values_flag("n", "grid_*")) == {
        COMMAND_LINE: ("--modules=transformers,lib", "--values='grid_*,n'"),
        PYTEST: ("pytest --graphmend=transformers,lib", "pytest --graphmend-values='grid_*,n'"),
        PROGRAM: ("graphmend_hook.install('transformers,lib')", "graphmend_hook.install(..., values='grid_*,n')"),
        NOTEBOOK: (
            "graphmend_hook.install('transformers,lib')",
            "%env GRAPHMEND_VALUES='grid_*,n', then %reload_ext graphmend_hook, and run the cells again",
        ),
    }[ways]


def test_a_library_is_proposed_with_what_belongs_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(together.TOGETHER, "lib", ("json", "not_installed_here", "email"))
    verdicts = Verdicts(
        {"processes": [{"hooks": [{"modules": ["a", "json"], "values": []}]}], "modules": [], "traced": []}
    )
    assert verdicts.flag("lib") == "--modules=a,json,lib,email"
    assert verdicts.flag("lib.part") == "--modules=a,json,lib.part"


def test_the_table_of_the_docs_is_that_of_the_package() -> None:
    text = (Path(__file__).parents[2] / "docs" / "explain.md").read_text(encoding="utf-8")
    for library, others in together.TOGETHER.items():
        assert f"| {library} | {', '.join(others)} |" in text
