"""[Trap] against eager: the same exceptions, from the same places, with one graph; or declined for the reason given."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from expectations import Cases
from observing import Counting
from outcomes import differences, run

from graphmend_hook.engine.attempt import refusals
from graphmend_hook.engine.epilogue import queue
from graphmend_hook.rules.trap import traced

CASES = Cases("guard_cases", "guard_exception_cases", "guard_state_cases")
EXPECT, PLAIN, MENDED = CASES.expect, CASES.plain, CASES.mended
HELPERS = {"h22_in_a_generator": "produce"}


def compare(name: str, backend: str, train: bool) -> None:
    CASES.compare(name, backend, train, HELPERS.get(name, ""))


@pytest.mark.parametrize(
    ("backend", "train"), [("eager", False), ("aot_eager", True)], ids=["eager-inference", "aot_eager-training"]
)
@pytest.mark.parametrize("name", EXPECT)
def test_equal_to_eager(name: str, backend: str, train: bool) -> None:
    compare(name, backend, train)


@pytest.mark.parametrize("name", [name for name, expect in EXPECT.items() if expect.train != expect.declined])
@pytest.mark.slow
def test_what_is_declined_in_training_is_not_in_inference(name: str) -> None:
    compare(name, "aot_eager", False)


@pytest.mark.parametrize("name", [name for name, expect in EXPECT.items() if expect.inductor])
@pytest.mark.slow
def test_equal_to_eager_on_inductor(name: str) -> None:
    compare(name, "inductor", False)


@pytest.mark.parametrize("name", EXPECT)
def test_eager_is_untouched(name: str) -> None:
    CASES.compare_uncompiled(name)


@pytest.mark.parametrize("name", [name for name, expect in EXPECT.items() if not expect.declined])
@pytest.mark.slow
def test_the_hook_is_needed(name: str) -> None:
    """In one graph the original does not compile, or does not raise as it does in eager."""
    plain, _ = CASES.pair(name)
    compiled = torch.compile(plain, backend="eager", fullgraph=True)
    outcomes = [[CASES.run(name, call, inputs) for call in (compiled, plain)] for inputs in EXPECT[name].inputs]
    assert any(differences(*pair) for pair in outcomes)


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_a_message_is_made_only_when_the_guard_fails(backend: str) -> None:
    compiled = torch.compile(MENDED.h19_a_message_is_made_when_it_is_needed, backend=backend, fullgraph=True)
    MENDED.Text.asked = 0
    for _ in range(3):
        compiled(torch.ones(3))
    assert MENDED.Text.asked == 0
    with pytest.raises(ValueError, match="bad text"):
        compiled(-torch.ones(3))
    assert MENDED.Text.asked == 1


def test_the_cause_is_the_very_object() -> None:
    compiled = torch.compile(MENDED.h16_raise_from, backend="eager", fullgraph=True)
    with pytest.raises(ValueError) as caught:
        compiled(-torch.ones(3))
    assert caught.value.__cause__ is MENDED.CAUSE
    other = torch.compile(MENDED.h16_raise_from_a_new_one_and_none, backend="eager", fullgraph=True)
    with pytest.raises(ValueError) as caught:
        other(-torch.ones(3))
    assert isinstance(caught.value.__cause__, KeyError)


def test_attributes_of_an_exception_of_its_own() -> None:
    compiled = torch.compile(MENDED.h16_a_class_of_its_own, backend="aot_eager", fullgraph=True)
    with pytest.raises(MENDED.Odd) as caught:
        compiled(-torch.ones(3))
    assert caught.value.where == 3
    assert caught.value.__suppress_context__ is False


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_h18_the_state_when_a_guard_fails(backend: str) -> None:
    """H: what stands before the guard has been done, what stands after it not, though the graph has written both."""
    module = MENDED.Stateful()
    compiled = torch.compile(module, backend=backend, fullgraph=True)
    x, y = torch.ones(3), -torch.ones(3)
    compiled(x)
    assert (module.before, module.after) == (1, 1)
    assert x.tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(ValueError, match="negative"):
        compiled(y)
    assert (module.before, module.after) == (2, 1)
    assert (y.tolist(), y._version) == ([0.0, 0.0, 0.0], 1)
    compiled(x)
    assert (module.before, module.after) == (3, 2)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_h18_the_state_when_a_guard_fails_whatever_the_sizes_are(backend: str) -> None:
    """H: what the graph has written is put back, too, where the sizes are symbols."""
    compiled = torch.compile(MENDED.Stateful.forward, backend=backend, fullgraph=True, dynamic=True)
    for size in (3, 4, 5):
        module = MENDED.Stateful()
        x, y = torch.ones(size), -torch.ones(size)
        compiled(module, x)
        with pytest.raises(ValueError, match="negative"):
            compiled(module, y)
        assert (module.before, module.after) == (2, 1)
        assert (y.tolist(), y._version) == ([0.0] * size, 1)


def test_h60_what_python_stores_waits_for_the_guards_where_the_graph_has_written_much() -> None:
    """H: of large memory no copies are made in every call; what the graph has written there stays."""
    module = MENDED.Large()
    compiled = torch.compile(module, backend="eager", fullgraph=True)
    compiled(torch.ones(3))
    module.text = ""
    with pytest.raises(ValueError, match="negative"):
        compiled(-torch.ones(3))
    assert module.text == ""


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_guard_behind_what_is_stored_and_set_back_is_mended_while_nothing_else_was_there(backend: str) -> None:
    """As transformers 5 does around every `forward`; Dynamo does not guard on an attribute that is only stored."""
    plain, module = PLAIN.SetsBack(), MENDED.SetsBack()
    counting = Counting(backend)
    compiled = torch.compile(module, backend=counting)
    for factor, mode, graphs in ((1.0, "usual", 1), (-1.0, "usual", 1), (-1.0, "other", 2), (1.0, "other", 3)):
        for owner, call in ((plain, plain), (module, compiled)):
            owner.mode, owner.done = mode, False
            x = torch.full((3,), factor, requires_grad=True) * 1
            with pytest.raises(ValueError, match="negative") if factor < 0 else contextlib.nullcontext():
                call(x)
        assert (module.mode, module.done) == (plain.mode, plain.done)
        assert counting.graphs == graphs


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_h60_a_guard_between_stores_is_left_where_the_function_cannot_be_run_again(backend: str) -> None:
    """H: Dynamo keeps no value in between, so what was stored before the guard was lost or what is behind it was made."""
    module = MENDED.StoresAround()
    compiled = torch.compile(module, backend=backend)
    for factor, step in ((1.0, 2), (-1.0, 1), (1.0, 2), (-1.0, 1)):
        x = torch.full((3,), factor, requires_grad=True) * 1
        with pytest.raises(ValueError, match="negative") if factor < 0 else contextlib.nullcontext():
            compiled(x)
        assert module.step == step


def test_the_context_of_an_exception_is_that_of_eager() -> None:
    compiled = torch.compile(MENDED.if_raise, backend="eager")
    with pytest.raises(ValueError) as caught:
        compiled(-torch.ones(3))
    assert caught.value.__context__ is None
    handled = KeyError("handled")
    with pytest.raises(ValueError) as caught:
        try:
            raise handled
        finally:
            compiled(-torch.ones(3))
    assert caught.value.__context__ is handled


@pytest.mark.parametrize("name", ["simply", "in_a_helper", "of_a_number", "by_no_name"])
@pytest.mark.parametrize("fullgraph", [False, True])
def test_h57_a_guard_that_fails_in_the_first_calls(name: str, fullgraph: bool) -> None:
    """H: Dynamo gives up a frame for good that an exception leaves while it is traced."""
    if fullgraph and name == "by_no_name":
        pytest.skip("as without the hook: nothing says that it is a tensor before its value has decided")
    counting, filled, plain = Counting("eager"), MENDED.Filled(), PLAIN.Filled()
    compiled = torch.compile(getattr(filled, name), backend=counting, fullgraph=fullgraph)
    for number in range(6):
        before = counting.runs
        outcomes = [
            run(call, (torch.ones(3),), False, "guard_state_cases") for call in (compiled, getattr(plain, name))
        ]
        assert not differences(*outcomes), number
        assert counting.runs > before or number < 2
        for each in (filled, plain):
            each.filled += 1
    assert counting.graphs == 1


@pytest.mark.parametrize("name", ["here", "by_the_caller", "by_a_context"])
def test_h59_an_assert_that_is_left_in_a_try_ends_no_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """H: what Dynamo makes of it fails on the device, where nothing catches it; here the host is one."""
    monkeypatch.setattr(traced, "HOSTS", ())
    graphs: list[torch.fx.GraphModule] = []

    def backend(graph: torch.fx.GraphModule, _inputs: list[torch.Tensor]) -> Any:
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(getattr(MENDED.Caught, name), backend=backend)
    for x in (torch.ones(3), -torch.ones(3), torch.arange(3.0)):
        assert torch.equal(compiled(x), getattr(PLAIN.Caught, name)(x))
    assert not any("assert" in str(node.target) for graph in graphs for node in graph.graph.nodes)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_what_stands_between_half_precision_and_a_decision_is_done_once(backend: str) -> None:
    plain, mended = PLAIN.Normed(), MENDED.Normed()
    compiled = torch.compile(mended, backend=backend, fullgraph=True)
    for x in (torch.ones(3), torch.arange(3.0)):
        plain(x)
        compiled(x)
    for name, buffer in plain.named_buffers():
        torch.testing.assert_close(dict(mended.named_buffers())[name], buffer)


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_h22_in_a_branch_of_cond_it_is_as_without_the_hook(value: float) -> None:
    outcomes = []
    for module in (MENDED, PLAIN):
        compiled = torch.compile(module.h22_in_a_branch_of_cond, backend="eager")
        outcomes.append(run(compiled, (torch.full((3,), value),), False, "guard_cases"))
    assert (outcomes[0].error or [None])[0] is (outcomes[1].error or [None])[0]
    assert outcomes[0].error or not differences(*outcomes)
    assert "GM101-T06" in {code for code, *_ in refusals.seen}


def test_threads_each_raise_their_own() -> None:
    compiled = torch.compile(MENDED.h22_in_a_closure, backend="eager", fullgraph=True, dynamic=False)
    compiled(torch.ones(3))
    wrong: list[Any] = []

    def work(index: int) -> None:
        for number in range(200):
            sign = 1 if (number + index) % 3 else -1
            try:
                result = compiled(sign * torch.ones(3))
                if sign < 0 or not torch.equal(result, torch.full((3,), 2.0)):
                    wrong.append((index, number, "passed"))
            except ValueError:
                if sign > 0:
                    wrong.append((index, number, "raised"))

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@contextlib.contextmanager
def guards(mode: str) -> Iterator[None]:
    before, queue.guards = queue.guards, mode
    try:
        yield
    finally:
        queue.guards = before


def test_keep_leaves_guards_alone() -> None:
    counting = Counting("eager")
    with guards("keep"):
        compiled = torch.compile(MENDED.if_raise, backend=counting)
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 2.0))
        with pytest.raises(ValueError, match="negative") as caught:
            compiled(-torch.ones(3))
    assert not getattr(caught.value, "__notes__", ())
    assert {code for code, *_ in refusals.seen} == {"GM103-T01"}
    assert counting.graphs > 1


@pytest.mark.parametrize("name", ["if_raise", "h20_assert_with_a_text_made_of_the_shape", "not_torch_equal"])
@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_async_asserts_in_the_graph(backend: str, name: str) -> None:
    counting = Counting(backend)
    function, plain = getattr(MENDED, name), getattr(PLAIN, name)
    with guards("async"):
        compiled = torch.compile(function, backend=counting, fullgraph=True)
        for inputs in EXPECT[name].inputs:
            expected = CASES.run(name, plain, inputs)
            got = CASES.run(name, compiled, inputs)
            if expected.error:
                assert got.error is not None
                assert issubclass(got.error[0], RuntimeError)
            else:
                assert not differences(got, expected)
    assert counting.graphs == 1


@pytest.mark.slow
def test_h20_assert_under_the_optimising_interpreter(python: Any, write: Any) -> None:
    """Without asserts there is nothing to check, and what the assert would have read is not read."""
    write("app.py", ASSERTING)
    done = python("-O", "-c", RUN_ASSERTING, GRAPHMEND_MODULES="app")
    assert done.stdout.split() == ["2.0", "0.0", "1"], done.stderr


ASSERTING = """
import torch

def f(x):
    assert float(x.sum().item()) > 0, "not positive"
    assert x.sum() > 0
    return x + 1
"""
RUN_ASSERTING = """
import graphmend_hook, torch, app
graphs = []
def backend(graph, inputs):
    graphs.append(graph)
    return graph
f = torch.compile(app.f, backend=backend)
print(f(torch.ones(2))[0].item(), f(-torch.ones(2))[0].item(), len(graphs))
"""
