"""[Value] against eager where the data decides sizes: masks, counts of rows, and forms in which numbers are handed on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from observing import Counting, on
from programs import BACKENDS, Compiled, Programs, assert_same, outcome

from graphmend_hook.engine.attempt import refusals
from graphmend_hook.engine.epilogue import queue, rollback

FILE = Programs("value_cases")
X = torch.arange(32.0).reshape(8, 4) - 15.5


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    return lambda *names: monkeypatch.setattr(queue, "values", names)


MASK = torch.ones(8, 16, dtype=torch.long)
MASK[6:] = 0
COUNTS = torch.tensor([1, 0, 2, 3, 1, 0, 0, 2])
FORMS = {
    "rows_by_size": (X, torch.tensor([[8, 6], [4, 8]])),
    "called_longer_than": (X,),
    "arranged_by_a_tensor": (X, torch.tensor([[1, 4, 6]])),
    "resized_by_tensors": (X, torch.tensor([[4, 6], [8, 3]])),
    "parted": (X, torch.tensor([3, 3, 4, 7, 8, 6, 9, 1, 5])),
    "windows": (X, torch.tensor([5, 3])),
    "repeated_list": (X, torch.tensor([5, 2, 7])),
    "fractions": (X, MASK),
    "tested_with_numpy": (X, 5),
    "any_of_a_mask": (X.repeat(3, 1), torch.tensor([0, 1, 7])),
    "sized": (X, torch.tensor([1, 1])),
    "counted_off": (X, torch.tensor([0, 1, 2, 2])),
}
ON_INDUCTOR = ("rows_by_size", "parted", "windows", "fractions", "sized", "counted_off")


@pytest.mark.parametrize(("name", "backend"), on(FORMS, ON_INDUCTOR))
def test_forms_in_which_numbers_are_handed_on(name: str, backend: str) -> None:
    given = FORMS[name]
    compiled = Compiled(FILE, name, backend, fullgraph=backend != "eager")  # with it, torch captures sizes by itself
    assert compiled(*given) == compiled(given[0] * 1, *given[1:]) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_counts_of_rows(backend: str) -> None:
    """H: the sum of the counts is no number of rows, where a single count is of all of them.

    Not under ``fullgraph=True``, where torch captures the size by itself.
    """
    assert Compiled(FILE, "repeated", backend)(X, COUNTS) == 1
    torch._dynamo.reset()
    assert Compiled(FILE, "repeated", backend)(X, COUNTS[2:3]) == 1


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.slow
def test_the_forms_break_without_the_hook(name: str) -> None:
    counting = Counting("eager")
    torch.compile(FILE.pair(name)[0], backend=counting, dynamic=False)(*FORMS[name])
    assert counting.graphs != 1


@pytest.mark.parametrize(
    "name", ["rows_by_size", "arranged_by_a_tensor", "resized_by_tensors", "repeated_list", "parted", "fractions"]
)
def test_the_forms_with_other_values(name: str, named: Callable[..., None]) -> None:
    """Of a second value, whatever becomes of it; of one that is named, one graph more."""
    first, second = FORMS[name][1], FORMS[name][1].clone()
    if name == "fractions":
        second[4:] = 0
    elif name == "parted":
        second[:2] = 2
    else:
        second[0] //= 2
    for names in ((), ("*",)):
        named(*names)
        torch._dynamo.reset()
        compiled = Compiled(FILE, name)
        assert compiled(X, first) == 1
        graphs = compiled(X, second)
        compiled(X, first)
        assert not names or graphs == compiled.counting.graphs == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_added_to_the_rows_of_a_mask(backend: str) -> None:
    compiled = Compiled(FILE, "increased", backend)
    x = X.repeat(200, 1)  # so many rows that no mask of them is known
    some = x.sum(-1) > 0
    for mask in (some, ~some, some & False, some | True):
        assert compiled(x, x / 9, mask) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_mask_of_what_a_mask_has_selected(backend: str) -> None:
    """H: a size that nobody knows is not asked for."""
    compiled = Compiled(FILE, "masked_rows_again", backend)
    for shift in (0, 9, -9, 40, -40):
        assert compiled(X + shift, X[:, 0] > -3) == 1


def test_a_whole_number_that_is_written_to_later(named: Callable[..., None]) -> None:
    """H: the guard would look at what was written, and take 4 for 6."""
    named("*")
    compiled = Compiled(FILE, "fractions_of_what_is_written_later")
    for count in (6, 4, 6):
        mask = MASK.clone()
        mask[count:] = 0
        compiled(X, mask)


def test_no_setting_is_left_on_where_what_is_captured_fails() -> None:
    """H: Dynamo's settings are switched on for one operation; the order to trace anew must not keep them on."""
    x = torch.randn(2000)
    kinds = set()
    for function in FILE.pair("fails_under_capture"):
        with pytest.raises((IndexError, torch._dynamo.exc.TorchRuntimeError), match="too many indices") as caught:
            torch.compile(function, backend="eager")(x)
        kinds.add(caught.type)
        assert not torch._dynamo.config.capture_dynamic_output_shape_ops
        assert not torch._dynamo.config.capture_scalar_outputs
    assert len(kinds) == 1  # the second, with and without the hook, in torch 2.12


LONG = torch.arange(8000.0).reshape(2000, 4)  # with so many rows that no mask of them is known
# Two calls that go well, after which no more than their sizes is known, and one that does not.
FAILING: dict[str, tuple[tuple[Any, ...], ...]] = {
    "writes_as_many": tuple((LONG, LONG[:, 0] < bound, X[:4]) for bound in (13, 14, 20)),
    "reshapes_what_is_selected": tuple((LONG, LONG[:, 0] < bound, 4) for bound in (9, 10, 5)),
    "checks_what_is_selected": tuple((LONG, LONG[:, 0] < bound) for bound in (9, 10, 5)),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FAILING)
def test_what_fails_on_a_size_has_its_own_exception(name: str, backend: str) -> None:
    """H: the graph asserts sizes before it does anything, in words of its own."""
    first, second, bad = FAILING[name]
    compiled = Compiled(FILE, name, backend)
    compiled(*first)
    graphs = compiled(*second)
    errors = []
    for call in (compiled.plain, compiled.call):
        with pytest.raises(Exception) as caught, torch.no_grad():
            call(*copy.deepcopy(bad))
        errors.append((caught.type, caught.value.args, str(caught.value)))
    assert errors[1] == errors[0]
    assert compiled(*first) == graphs


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])  # Inductor fails while compiling, without the hook too
@pytest.mark.parametrize("shapes", [((4, 4), (4, 4)), ((4, 4), (5, 4)), ((5, 5), (4, 4)), ((4, 4), (2, 1))])
@pytest.mark.parametrize("name", ["selects_under_a_mask_that_does_not_fit", "writes_under_a_mask_that_does_not_fit"])
def test_a_mask_that_does_not_fit(name: str, shapes: tuple[tuple[int, ...], ...], backend: str) -> None:
    """H: the places that a small mask selects exist, though the mask has another length."""
    plain, mended = FILE.pair(name)
    inputs = [*map(torch.ones, shapes), torch.tensor([True, False, True, False])]
    expected, found = (outcome(call, *inputs) for call in (plain, torch.compile(mended, backend=backend)))
    assert_same(found, expected)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["counts_off_what_is_expanded", "draws_and_adds_what_is_selected"])
def test_what_is_taken_for_granted_of_a_size_need_not_hold(
    name: str, backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    """H: a size that may be 1 is broadcast, where the graph asserts that it is not: a program that ran would fail."""
    compiled = Compiled(FILE, name, backend)
    with torch._inductor.config.patch(fallback_random=True):
        graphs = [compiled(X, torch.full((2000,), count)) for count in (1, 3) * 5]
    if backend != "aot_eager":  # which leaves the assertion out
        assert "GM009" in caplog.text
        assert "GM104-T06" in {code for code, *_ in refusals.seen}
    assert graphs[-1] == graphs[-2]


@pytest.mark.parametrize("most", [1 << 20, 0])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_a_graph_writes_to_its_inputs_is_undone_where_it_fails(
    backend: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H: it cannot be run twice.  Where a copy of an input costs too much, nothing is taken for granted."""
    monkeypatch.setattr(rollback, "most_copied", lambda device: most)
    compiled = Compiled(FILE, "writes_to_what_came_in", backend)
    graphs = compiled(LONG.clone(), LONG[:, 0] < 9, 4)
    assert graphs == 1 if most else graphs > 1
    x = LONG.clone()
    with pytest.raises(RuntimeError, match="is invalid for input of size 8"), torch.no_grad():
        compiled.call(x, LONG[:, 0] < 5, 4)
    assert torch.equal(x, LONG + 1)


def test_places_are_laid_out_as_torch_does() -> None:
    """H: known places are stacked; `view` tells."""
    plain, mended = FILE.pair("places_of_a_mask")
    mask = torch.eye(3, dtype=torch.bool)
    found, expected = (call(X, mask)[0] for call in (torch.compile(mended, backend="eager"), plain))
    assert torch.equal(found, expected)
    assert found.stride() == expected.stride()


@pytest.mark.slow
def test_a_size_that_a_backend_compares_with_one(caplog: pytest.LogCaptureFixture) -> None:
    """Inductor compares sizes of a product with 1: it is taken for granted that they are not, and asserted."""
    compiled = Compiled(FILE, "multiplied_by_as_many_rows", "inductor")
    runs = {}
    for count in (3, 4, 5, 1, 6, 0):
        found = compiled(X, torch.full((2000,), count))
        runs[count] = (found, "GM009" in caplog.text)
    assert runs[5] == (runs[4][0], False)  # one graph for the value of the first call, one for all others
    assert runs[1] == (runs[4][0], True)
    assert runs[6][0] > runs[1][0]
    assert "GM104-T09" in {code for code, *_ in refusals.seen}  # once more without, which Inductor does not compile


@pytest.mark.slow
def test_a_size_that_a_backend_compares_with_one_in_a_single_graph() -> None:
    """There is nothing to fall back to but eager, each time."""
    compiled = Compiled(FILE, "multiplied_by_as_many_rows", "inductor", fullgraph=True)
    assert [compiled(X, torch.full((2000,), count)) for count in (4, 5, 1, 6, 0)][1:] == [3, 3, 3, 3]


@pytest.mark.slow
def test_only_the_number_that_a_backend_fails_on_is_read_as_it_was_written() -> None:
    compiled = Compiled(FILE, "convolved_as_many_rows", "inductor")
    for rows in (4, 5, 6, 7):
        compiled.counting.runs = 0
        compiled(X, torch.full((2000,), rows))
    assert compiled.counting.runs == 2


@pytest.mark.slow
def test_a_backward_pass_that_a_backend_cannot_lower_captures_less() -> None:
    """H: AOTAutograd keeps that failure to itself until the backward pass runs, too late to begin anew.

    PyTorch 2.13 does not lower the gradient of a slice whose end may be below zero, for all that Inductor knows.
    """
    plain, mended = FILE.pair("cut_off_where_the_data_says")
    compiled = torch.compile(mended, dynamic=False)
    for sign in (1, -1, 0):
        gradients = []
        for function in (plain, compiled):
            x = X.clone().requires_grad_()
            function(x, X * sign).square().sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients)


def test_a_break_inside_the_runtime_is_no_question(caplog: pytest.LogCaptureFixture) -> None:
    """What is compiled by itself, behind the break, runs without a tracer that could be asked."""
    compiled = Compiled(FILE, "moves_under_a_mask_without_dimensions")
    compiled(X)
    compiled(-X)
    assert "cannot be told" not in caplog.text


MASKS = [X > 0, X > 100, X < 100, (X > 0)[:, 0]]


@pytest.mark.parametrize("name", ["moved", "moved_in_the_callers_tensor"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_mask_moves(name: str, backend: str) -> None:
    """H: of some elements, of none, of all, of rows."""
    compiled = Compiled(FILE, name, backend, fullgraph=backend == "eager")
    for mask in MASKS:
        compiled(X.clone(), X.flip(0) * 9, mask)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_as_inductor_rounds_it(dtype: torch.dtype) -> None:
    """H: a kernel computes in float32 and rounds at its end; a rewrite may not move that end.

    Stock Inductor with PyTorch's own capture makes one graph of the program as it is.
    """
    inputs = (X.to(dtype) / 7, X.flip(0).to(dtype) / 3, X > 0)
    for name in ("moved", "increased"):
        plain, mended = FILE.pair(name)
        found = torch.compile(mended, backend="inductor", dynamic=False)(*copy.deepcopy(inputs))
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
            expected = torch.compile(plain, backend="inductor", dynamic=False)(*copy.deepcopy(inputs))
        assert_same(found, expected)


@pytest.mark.parametrize("name", ["pieces", "pieces_of_parts"])
def test_what_cannot_be_decided_on_is_not_tried_again_and_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """H: each attempt traces all that stands before the decision, in the frame and in the frames of its parts."""
    made, make = [0], torch.fx.Graph.create_node

    def counted(*args: Any, **kwargs: Any) -> Any:
        made[0] += 1
        return make(*args, **kwargs)

    Compiled(FILE, "counted")(X)  # the first trace of a process also asks what this torch does
    compiled = Compiled(FILE, name)
    plain = Counting("eager")
    call = torch.compile(compiled.plain, backend=plain, dynamic=False)
    monkeypatch.setattr(torch.fx.Graph, "create_node", counted)
    call(X)
    stock, made[0] = made[0], 0
    compiled(X)
    assert made[0] <= 3 * stock + 100, (made[0], stock)
    assert compiled.counting.graphs <= plain.graphs


def test_what_was_given_up_is_told_with_the_line_that_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    Compiled(FILE, "counted")(X)  # the first trace of a process also asks what this torch does
    monkeypatch.setattr(refusals, "seen", {})
    Compiled(FILE, "pieces_of_parts")(X)
    Compiled(FILE, "squeezed_one_after_the_other")(X)
    given_up = {
        (line, function): why for (code, _file, line, function), why in refusals.seen.items() if code == "GM104-T09"
    }
    for function, why in (
        ("pieces", "Unsupported after something was mended; attempts given up: 1"),
        ("squeezed_piece", "a size that the data decides is squeezed; attempts given up: 1"),
    ):
        line = FILE.pair(function)[0].__code__.co_firstlineno
        assert any(name == function and number > line and why == told for (number, name), told in given_up.items())
