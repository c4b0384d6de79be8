"""[Value] against eager: equal to the bit with every value, in one graph where the number is known, guarded by it."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from observing import HERE, Counting, import_file, import_mended

from graphmend_hook.engine.attempt import refusals
from graphmend_hook.engine.epilogue import queue
from graphmend_hook.engine.numbers import capture

PATH = HERE / "value_cases.py"
PLAIN = import_file(PATH, "value_cases_plain")
MENDED = import_mended(PATH, "value_cases_mended")
X = torch.arange(32.0).reshape(8, 4) - 15.5
BACKENDS = ["eager", "aot_eager", "inductor"]


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    return lambda *names: monkeypatch.setattr(queue, "values", names)


def pair(name: str) -> tuple[Any, Any]:
    """The case as it is, and mended; a module with the same parameters."""
    plain, mended = getattr(PLAIN, name), getattr(MENDED, name)
    if not isinstance(plain, type):
        return plain, mended
    torch.manual_seed(0)
    plain, mended = plain().eval(), mended().eval()
    mended.load_state_dict(plain.state_dict())
    return plain, mended


def assert_same(found: Any, expected: Any) -> None:
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
    elif isinstance(expected, (tuple, list)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert found == expected


class Compiled:
    """A case, compiled; each call is compared with the case as it is, in eager, on inputs of its own."""

    def __init__(self, name: str, backend: str = "eager", **options: Any) -> None:
        self.plain, self.mended = pair(name)
        self.counting = Counting(backend)
        self.call = torch.compile(self.mended, backend=self.counting, dynamic=False, **options)

    def __call__(self, *inputs: Any) -> int:
        """The number of graphs so far."""
        own = copy.deepcopy(inputs)
        with torch.no_grad():
            torch.manual_seed(1)
            expected = self.plain(*inputs)
            torch.manual_seed(1)
            assert_same(self.call(*own), expected)
        assert_same(own, inputs)
        return self.counting.graphs


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["made_of_a_shape", "made_of_a_list", "kinds", "in_comprehensions", "transposed"])
def test_what_is_made_of_numbers_is_known(name: str, backend: str) -> None:
    compiled = Compiled(name, backend, fullgraph=backend != "eager")
    assert compiled(X) == 1
    assert compiled(X + 1) == 1
    assert not refusals.seen


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("first", [0, 1, 3])
def test_a_size_that_is_squeezed_is_read(first: int, backend: str) -> None:
    """H: PyTorch takes for granted that a size which the data decides is not 1, and asserts nothing."""
    compiled = Compiled("squeezed", backend)
    for count in (first, 1, 0, 2, 1):
        compiled(torch.tensor([[1.0, 2.0]] * count + [[-1.0, 2.0]] * 2))


@pytest.mark.parametrize("name", ["made_of_a_shape", "made_of_a_list", "transposed", "Padding", "Steered", "counted"])
def test_the_case_breaks_without_the_hook(name: str) -> None:
    counting = Counting("eager")
    plain, _ = pair(name)
    inputs = (X[None, :, :3].reshape(1, 3, 8),) if name == "Padding" else (X,)
    with torch.no_grad():
        torch.compile(plain, backend=counting, dynamic=False)(*inputs)
    assert counting.graphs != 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_buffers_are_known_and_guarded(backend: str) -> None:
    compiled = Compiled("Padding", backend)
    x = X.reshape(1, 4, 8)
    assert compiled(x) == compiled(x + 1) == 1
    for module in (compiled.plain, compiled.mended):
        module.stride.fill_(2)
    assert compiled(x) == 2
    for module in (compiled.plain, compiled.mended):
        module.stride = torch.nn.Buffer(torch.tensor(4))
    assert compiled(x) == 2  # the first value again


def test_a_buffer_that_changes_at_every_call_becomes_a_symbol() -> None:
    compiled = Compiled("Padding")
    graphs = []
    for stride in range(2, 12):
        for module in (compiled.plain, compiled.mended):
            module.stride.fill_(stride)
        graphs.append(compiled(X.reshape(1, 4, 8)))
    assert graphs == [1, 2, 3, 3, 3, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_buffer_decides(backend: str) -> None:
    compiled = Compiled("Steered", backend)
    assert compiled(X) == 1
    for module in (compiled.plain, compiled.mended):
        module.probs[1] = 1.0
    assert compiled(X) == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_first_value_of_a_small_input_is_known(backend: str) -> None:
    compiled = Compiled("Grid", backend)
    grid = torch.tensor([[2, 4], [4, 2]])
    assert compiled(X, grid) == compiled(X * 2, grid) == 1
    for count in range(1, 8):  # of the others, symbols
        assert compiled(X, torch.tensor([[count, 2], [8 - count, 2]])) == 2


def test_a_named_input_has_four_values(named: Callable[..., None]) -> None:
    named("gr?d")
    compiled = Compiled("Grid")
    grids = [torch.tensor([[n, 2], [8 - n, 2]]) for n in range(1, 7)]
    assert [compiled(X, grid) for grid in grids[:4]] == [1, 2, 3, 4]
    assert [compiled(X, grid) for grid in grids[:4]] == [4] * 4
    assert [compiled(X, grid) for grid in grids] == [4, 4, 4, 4, 5, 5]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ["written_to", "written_through_a_view", "written_after", "written_by_a_mask"])
def test_what_is_written_to_a_tensor_counts(name: str, backend: str) -> None:
    compiled = Compiled(name, backend)
    assert compiled(X) == compiled(X + 1) == 1


@pytest.mark.parametrize(("name", "code"), [("random_count", "GM104-T01"), ("written_elsewhere", "GM104-T03")])
def test_not_everything_is_known(name: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "begin", lambda tensor: False)
    compiled = Compiled(name)
    compiled(X)
    compiled(X + 1)
    assert code in {code for code, *_ in refusals.seen}


def test_an_input_that_was_written_to() -> None:
    compiled = Compiled("written_input")
    for count in (1, 1, 3, 2):
        compiled(X, torch.tensor(count))


@pytest.mark.parametrize("size", [4, 4000])
def test_a_loop_of_as_many_steps_as_the_data_says(size: int) -> None:
    """It is captured as without the hook, at each call: not unrolled for a number of steps."""
    ran = []
    for module in (PLAIN, MENDED):
        torch._dynamo.reset()
        counting, each = Counting("eager"), []
        compiled = torch.compile(module.settles, backend=counting, dynamic=False)
        for call in range(12):
            x = torch.linspace(0, 2.0 ** (call % 6 + 1), size)
            assert_same(compiled(x.clone()), PLAIN.settles(x))
            each.append((counting.graphs, counting.runs))
        ran.append(each)
    assert ran[0] == ran[1]


def test_a_loop_of_known_length_is_unrolled() -> None:
    compiled = Compiled("counts_down", fullgraph=True)
    assert compiled(X, 2) == 1


@pytest.mark.parametrize("name", ["puts_by_a_truth", "takes_by_a_truth"])
def test_a_mask_without_a_dimension(name: str) -> None:
    breaks = []
    for module in (PLAIN, MENDED):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        compiled = torch.compile(getattr(module, name), backend="eager", dynamic=False)
        for value in (3.0, -3.0):
            x, c = torch.tensor(value), torch.tensor(1.0)
            assert_same(compiled(x, c), getattr(PLAIN, name)(x, c))
        breaks.append(sum(torch._dynamo.utils.counters["graph_break"].values()))
    assert breaks[0] > breaks[1] == 0


WRITTEN = ["decided_by_a_written_input", "decided_by_a_written_mask", "decided_by_a_written_copy"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", WRITTEN)
def test_a_branch_on_an_input_that_was_written_to(name: str, backend: str) -> None:
    """Guarded is what the branch sees, and not what the frame is given."""
    compiled = Compiled(name, backend)
    for scale in (1.0, 1.6, 1.0, 1.6, 2.0):
        compiled(X, torch.full((4,), scale), torch.ones(4))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_alias_of_an_input_that_was_written_to(backend: str) -> None:
    _, mended = pair("written_alias")
    compiled = torch.compile(mended, backend=backend, dynamic=False)
    for first in (1, 1, 3):
        count = torch.tensor([first])
        assert compiled(X, count, count.view(1, 1)).shape[0] == first + 2
        assert count.item() == first + 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_the_data_decides_becomes_a_symbol(backend: str) -> None:
    compiled = Compiled("counted", backend)
    assert compiled(X) == 1
    assert compiled(-X) == compiled(X + 100) == compiled(X - 100) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_frame_that_is_given_no_tensor(backend: str) -> None:
    compiled = Compiled("drawn", backend)
    if backend == "inductor":  # which draws other numbers than eager
        assert torch.compile(compiled.mended, fullgraph=True)(8).shape[1] == 4
    else:
        assert compiled(8) == compiled(8) == 1
    assert not refusals.seen


def test_a_test_of_a_symbol_is_decided_by_an_example() -> None:
    compiled = Compiled("counted_and_tested")
    plain = Counting("eager")
    call = torch.compile(compiled.plain, backend=plain, dynamic=False)
    for x in (X, -X, X + 100, X):
        call(x)
        compiled(x)
    assert (compiled.counting.graphs, plain.graphs) == (1, 3)
    assert not torch._dynamo.config.capture_scalar_outputs


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_flag_of_a_big_input_has_two_values(backend: str) -> None:
    compiled = Compiled("decided_by_a_flag", backend)
    mask = torch.zeros(1, 4096, dtype=torch.long)
    assert compiled(X, mask) == compiled(X + 1, mask) == 1
    masked = mask.clone()
    masked[0, 77] = 1
    assert compiled(X, masked) == 2
    assert compiled(X, mask) == compiled(X, masked) == 2


def test_a_filter_of_guards() -> None:
    """What rests on a guard that the program's filter may drop is not done: the flag is read as it was written."""
    options = {"guard_filter_fn": lambda guards: [bool(guard.name) for guard in guards]}
    compiled = Compiled("decided_by_a_flag", options=options)
    mask = torch.zeros(1, 4096, dtype=torch.long)
    for value in (mask, mask + 1, mask):
        compiled(X, value)
    assert refusals.seen


def test_floats_in_autocast_are_not_known() -> None:
    compiled = Compiled("decided_in_autocast")
    for _ in range(2):
        compiled(X, torch.full((3,), 1.3))
    compiled(X, torch.full((3,), 1.5))


class _Counting(torch.utils._python_dispatch.TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls += 1
        return func(*args, **(kwargs or {}))


def test_no_mode_sees_the_guards(named: Callable[..., None]) -> None:
    """The operations of a guard are none of the program's."""
    compiled = Compiled("decided_by_a_flag")
    mask = torch.zeros(1, 4096, dtype=torch.long)
    compiled(X, mask)
    with torch.device("cpu"):
        assert compiled(X, mask) == 2  # Dynamo's own guard on modes
    with _Counting() as counting:
        compiled.plain(X, mask)
    plain, counting.calls = counting.calls, 0
    with counting:
        compiled.call(X, mask)
    assert counting.calls <= plain


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_test_that_joins_an_item_of_what_may_be_a_tensor(backend: str) -> None:
    compiled = Compiled("joined_with_an_item", backend, fullgraph=True)
    x, ones, some = X[:2], torch.ones(2, 4), torch.tensor([[1.0, 1, 1, 1], [0, 1, 1, 1]])
    assert compiled(x, ones, torch.arange(4)) == 1
    assert compiled(x, some, torch.arange(4)) == 2
    assert compiled(x, ones, torch.arange(4)) == 2
    assert compiled(x, None, [0, 1]) == 3


def test_a_length_that_is_a_last_position() -> None:
    compiled = Compiled("up_to_the_last_position", fullgraph=True)
    assert compiled(X, torch.arange(4)) == 1
    assert compiled(X, [0, 1, 2]) == 2


def test_a_branch_whose_sides_cannot_be_merged_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the rule is switched off: then the branch breaks the graph, as it did."""
    for specialise in (True, False):
        monkeypatch.setattr(queue, "specialise", specialise)
        torch._dynamo.reset()
        compiled = Compiled("Unmergeable")
        assert (compiled(X) == 1) == specialise
        for value in (2, 0, 2):
            for module in (compiled.plain, compiled.mended):
                module.flag.fill_(value)
            compiled(X)


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


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FORMS)
def test_forms_in_which_numbers_are_handed_on(name: str, backend: str) -> None:
    given = FORMS[name]
    compiled = Compiled(name, backend, fullgraph=backend != "eager")  # with it, torch captures sizes by itself
    assert compiled(*given) == compiled(given[0] * 1, *given[1:]) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_counts_of_rows(backend: str) -> None:
    """H: the sum of the counts is no number of rows, where a single count is of all of them.

    Not under ``fullgraph=True``, where torch captures the size by itself.
    """
    assert Compiled("repeated", backend)(X, COUNTS) == 1
    torch._dynamo.reset()
    assert Compiled("repeated", backend)(X, COUNTS[2:3]) == 1


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.slow
def test_the_forms_break_without_the_hook(name: str) -> None:
    counting = Counting("eager")
    torch.compile(pair(name)[0], backend=counting, dynamic=False)(*FORMS[name])
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
        compiled = Compiled(name)
        assert compiled(X, first) == 1
        graphs = compiled(X, second)
        compiled(X, first)
        assert not names or graphs == compiled.counting.graphs == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_added_to_the_rows_of_a_mask(backend: str) -> None:
    compiled = Compiled("increased", backend)
    x = X.repeat(200, 1)  # so many rows that no mask of them is known
    some = x.sum(-1) > 0
    for mask in (some, ~some, some & False, some | True):
        assert compiled(x, x / 9, mask) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_mask_of_what_a_mask_has_selected(backend: str) -> None:
    """H: a size that nobody knows is not asked for."""
    compiled = Compiled("masked_rows_again", backend)
    for shift in (0, 9, -9, 40, -40):
        assert compiled(X + shift, X[:, 0] > -3) == 1


def test_a_whole_number_that_is_written_to_later(named: Callable[..., None]) -> None:
    """H: the guard would look at what was written, and take 4 for 6."""
    named("*")
    compiled = Compiled("fractions_of_what_is_written_later")
    for count in (6, 4, 6):
        mask = MASK.clone()
        mask[count:] = 0
        compiled(X, mask)


def test_no_setting_is_left_on_where_what_is_captured_fails() -> None:
    """H: Dynamo's settings are switched on for one operation; the order to trace anew must not keep them on."""
    x = torch.randn(2000)
    kinds = set()
    for function in pair("fails_under_capture"):
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
    compiled = Compiled(name, backend)
    compiled(*first)
    graphs = compiled(*second)
    errors = []
    for call in (compiled.plain, compiled.call):
        with pytest.raises(Exception) as caught, torch.no_grad():
            call(*copy.deepcopy(bad))
        errors.append((caught.type, caught.value.args, str(caught.value)))
    assert errors[1] == errors[0]
    assert compiled(*first) == graphs


def outcome(call: Callable[..., Any], *inputs: Any) -> Any:
    try:
        return call(*inputs)
    except Exception as error:
        # Since torch 2.15 Dynamo adds where the operation stands, if it fails while traced, without the hook too.
        return type(error), str(error).partition("\n\nfrom user code:")[0]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])  # Inductor fails while compiling, without the hook too
@pytest.mark.parametrize("shapes", [((4, 4), (4, 4)), ((4, 4), (5, 4)), ((5, 5), (4, 4)), ((4, 4), (2, 1))])
@pytest.mark.parametrize("name", ["selects_under_a_mask_that_does_not_fit", "writes_under_a_mask_that_does_not_fit"])
def test_a_mask_that_does_not_fit(name: str, shapes: tuple[tuple[int, ...], ...], backend: str) -> None:
    """H: the places that a small mask selects exist, though the mask has another length."""
    plain, mended = pair(name)
    inputs = [*map(torch.ones, shapes), torch.tensor([True, False, True, False])]
    expected, found = (outcome(call, *inputs) for call in (plain, torch.compile(mended, backend=backend)))
    assert_same(found, expected)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["counts_off_what_is_expanded", "draws_and_adds_what_is_selected"])
def test_what_is_taken_for_granted_of_a_size_need_not_hold(
    name: str, backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    """H: a size that may be 1 is broadcast, where the graph asserts that it is not: a program that ran would fail."""
    compiled = Compiled(name, backend)
    with torch._inductor.config.patch(fallback_random=True):
        graphs = [compiled(X, torch.full((2000,), count)) for count in (1, 3) * 5]
    if backend != "aot_eager":  # which leaves the assertion out
        assert "GM009" in caplog.text
        assert "GM104-T06" in {code for code, *_ in refusals.seen}
    assert graphs[-1] == graphs[-2]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_graph_that_writes_to_its_inputs_takes_nothing_for_granted(backend: str) -> None:
    """H: it cannot be run twice."""
    compiled = Compiled("writes_to_what_came_in", backend)
    assert compiled(LONG.clone(), LONG[:, 0] < 9, 4) > 1
    x = LONG.clone()
    with pytest.raises(RuntimeError, match="is invalid for input of size 8"), torch.no_grad():
        compiled.call(x, LONG[:, 0] < 5, 4)
    assert torch.equal(x, LONG + 1)


def test_places_are_laid_out_as_torch_does() -> None:
    """H: known places are stacked; `view` tells."""
    plain, mended = pair("places_of_a_mask")
    mask = torch.eye(3, dtype=torch.bool)
    found, expected = (call(X, mask)[0] for call in (torch.compile(mended, backend="eager"), plain))
    assert torch.equal(found, expected)
    assert found.stride() == expected.stride()


@pytest.mark.slow
def test_a_size_that_a_backend_compares_with_one(caplog: pytest.LogCaptureFixture) -> None:
    """Inductor compares sizes of a product with 1: it is taken for granted that they are not, and asserted."""
    compiled = Compiled("multiplied_by_as_many_rows", "inductor")
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
    compiled = Compiled("multiplied_by_as_many_rows", "inductor", fullgraph=True)
    assert [compiled(X, torch.full((2000,), count)) for count in (4, 5, 1, 6, 0)][1:] == [3, 3, 3, 3]


@pytest.mark.slow
def test_only_the_number_that_a_backend_fails_on_is_read_as_it_was_written() -> None:
    compiled = Compiled("convolved_as_many_rows", "inductor")
    for rows in (4, 5, 6, 7):
        compiled.counting.runs = 0
        compiled(X, torch.full((2000,), rows))
    assert compiled.counting.runs == 2


@pytest.mark.slow
def test_a_backward_pass_that_a_backend_cannot_lower_captures_less() -> None:
    """H: AOTAutograd keeps that failure to itself until the backward pass runs, too late to begin anew.

    PyTorch 2.13 does not lower the gradient of a slice whose end may be below zero, for all that Inductor knows.
    """
    plain, mended = pair("cut_off_where_the_data_says")
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
    compiled = Compiled("moves_under_a_mask_without_dimensions")
    compiled(X)
    compiled(-X)
    assert "cannot be told" not in caplog.text


MASKS = [X > 0, X > 100, X < 100, (X > 0)[:, 0]]


@pytest.mark.parametrize("name", ["moved", "moved_in_the_callers_tensor"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_mask_moves(name: str, backend: str) -> None:
    """H: of some elements, of none, of all, of rows."""
    compiled = Compiled(name, backend, fullgraph=backend == "eager")
    for mask in MASKS:
        compiled(X.clone(), X.flip(0) * 9, mask)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_rounded_as_inductor_rounds_it(dtype: torch.dtype) -> None:
    """H: a kernel computes in float32 and rounds at its end; a rewrite may not move that end.

    Stock Inductor with PyTorch's own capture makes one graph of the program as it is.
    """
    inputs = (X.to(dtype) / 7, X.flip(0).to(dtype) / 3, X > 0)
    for name in ("moved", "increased"):
        plain, mended = pair(name)
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

    Compiled("counted")(X)  # the first trace of a process also asks what this torch does
    compiled = Compiled(name)
    plain = Counting("eager")
    call = torch.compile(compiled.plain, backend=plain, dynamic=False)
    monkeypatch.setattr(torch.fx.Graph, "create_node", counted)
    call(X)
    stock, made[0] = made[0], 0
    compiled(X)
    assert made[0] <= 3 * stock + 100, (made[0], stock)
    assert compiled.counting.graphs <= plain.graphs


def test_what_was_given_up_is_told_with_the_line_that_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    Compiled("counted")(X)  # the first trace of a process also asks what this torch does
    monkeypatch.setattr(refusals, "seen", {})
    Compiled("pieces_of_parts")(X)
    Compiled("squeezed_one_after_the_other")(X)
    given_up = {
        (line, function): why for (code, _file, line, function), why in refusals.seen.items() if code == "GM104-T09"
    }
    for function, why in (
        ("pieces", "Unsupported after something was mended; attempts given up: 1"),
        ("squeezed_piece", "a size that the data decides is squeezed; attempts given up: 1"),
    ):
        line = pair(function)[0].__code__.co_firstlineno
        assert any(name == function and number > line and why == told for (number, name), told in given_up.items())


def test_start_up_imports_nothing_that_torch_does_without() -> None:
    program = (
        "import torch, sys; import graphmend_hook.runtime as runtime; print(runtime.connected, 'sympy' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["True", "False"]
