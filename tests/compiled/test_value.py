"""[Value] against eager: equal to the bit with every value, in one graph where the number is known, guarded by it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from observing import Counting, on
from programs import BACKENDS, Compiled, Programs, assert_same

from graphmend_hook.engine.attempt import refusals
from graphmend_hook.engine.epilogue import queue
from graphmend_hook.engine.numbers import capture

FILE = Programs("value_cases")
X = torch.arange(32.0).reshape(8, 4) - 15.5


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    return lambda *names: monkeypatch.setattr(queue, "values", names)


MADE_OF_NUMBERS = ("made_of_a_shape", "made_of_a_list", "kinds", "in_comprehensions", "transposed")


@pytest.mark.parametrize(("name", "backend"), on(MADE_OF_NUMBERS, ("made_of_a_list", "transposed")))
def test_what_is_made_of_numbers_is_known(name: str, backend: str) -> None:
    compiled = Compiled(FILE, name, backend, fullgraph=backend != "eager")
    assert compiled(X) == 1
    assert compiled(X + 1) == 1
    assert not refusals.seen


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("first", [0, 1, 3])
def test_a_size_that_is_squeezed_is_read(first: int, backend: str) -> None:
    """H: PyTorch takes for granted that a size which the data decides is not 1, and asserts nothing."""
    compiled = Compiled(FILE, "squeezed", backend)
    for count in (first, 1, 0, 2, 1):
        compiled(torch.tensor([[1.0, 2.0]] * count + [[-1.0, 2.0]] * 2))


@pytest.mark.parametrize("name", ["made_of_a_shape", "made_of_a_list", "transposed", "Padding", "Steered", "counted"])
def test_the_case_breaks_without_the_hook(name: str) -> None:
    counting = Counting("eager")
    plain, _ = FILE.pair(name)
    inputs = (X[None, :, :3].reshape(1, 3, 8),) if name == "Padding" else (X,)
    with torch.no_grad():
        torch.compile(plain, backend=counting, dynamic=False)(*inputs)
    assert counting.graphs != 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_buffers_are_known_and_guarded(backend: str) -> None:
    compiled = Compiled(FILE, "Padding", backend)
    x = X.reshape(1, 4, 8)
    assert compiled(x) == compiled(x + 1) == 1
    for module in (compiled.plain, compiled.mended):
        module.stride.fill_(2)
    assert compiled(x) == 2
    for module in (compiled.plain, compiled.mended):
        module.stride = torch.nn.Buffer(torch.tensor(4))
    assert compiled(x) == 2  # the first value again


def test_a_buffer_that_changes_at_every_call_becomes_a_symbol() -> None:
    compiled = Compiled(FILE, "Padding")
    graphs = []
    for stride in range(2, 12):
        for module in (compiled.plain, compiled.mended):
            module.stride.fill_(stride)
        graphs.append(compiled(X.reshape(1, 4, 8)))
    assert graphs == [1, 2, 3, 3, 3, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_buffer_decides(backend: str) -> None:
    compiled = Compiled(FILE, "Steered", backend)
    assert compiled(X) == 1
    for module in (compiled.plain, compiled.mended):
        module.probs[1] = 1.0
    assert compiled(X) == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_first_value_of_a_small_input_is_known(backend: str) -> None:
    compiled = Compiled(FILE, "Grid", backend)
    grid = torch.tensor([[2, 4], [4, 2]])
    assert compiled(X, grid) == compiled(X * 2, grid) == 1
    for count in range(1, 8):  # of the others, symbols
        assert compiled(X, torch.tensor([[count, 2], [8 - count, 2]])) == 2


def test_a_named_input_has_four_values(named: Callable[..., None]) -> None:
    named("gr?d")
    compiled = Compiled(FILE, "Grid")
    grids = [torch.tensor([[n, 2], [8 - n, 2]]) for n in range(1, 7)]
    assert [compiled(X, grid) for grid in grids[:4]] == [1, 2, 3, 4]
    assert [compiled(X, grid) for grid in grids[:4]] == [4] * 4
    assert [compiled(X, grid) for grid in grids] == [4, 4, 4, 4, 5, 5]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ["written_to", "written_through_a_view", "written_after", "written_by_a_mask"])
def test_what_is_written_to_a_tensor_counts(name: str, backend: str) -> None:
    compiled = Compiled(FILE, name, backend)
    assert compiled(X) == compiled(X + 1) == 1


@pytest.mark.parametrize(("name", "code"), [("random_count", "GM104-T01"), ("written_elsewhere", "GM104-T03")])
def test_not_everything_is_known(name: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "begin", lambda tensor: False)
    compiled = Compiled(FILE, name)
    compiled(X)
    compiled(X + 1)
    assert code in {code for code, *_ in refusals.seen}


def test_an_input_that_was_written_to() -> None:
    compiled = Compiled(FILE, "written_input")
    for count in (1, 1, 3, 2):
        compiled(X, torch.tensor(count))


@pytest.mark.parametrize("size", [4, 4000])
def test_a_loop_of_as_many_steps_as_the_data_says(size: int) -> None:
    """It is captured as one operation: not unrolled for a number of steps, nor compiled for each."""
    counting = Counting("eager")
    compiled = torch.compile(FILE.mended.settles, backend=counting, dynamic=False, fullgraph=True)
    for call in range(12):
        x = torch.linspace(0, 2.0 ** (call % 6 + 1), size)
        assert_same(compiled(x.clone()), FILE.plain.settles(x))
        assert (counting.graphs, counting.runs) == (1, call + 1)


def test_a_loop_of_known_length_is_unrolled() -> None:
    compiled = Compiled(FILE, "counts_down", fullgraph=True)
    assert compiled(X, 2) == 1


@pytest.mark.parametrize("name", ["puts_by_a_truth", "takes_by_a_truth"])
def test_a_mask_without_a_dimension(name: str) -> None:
    breaks = []
    for module in (FILE.plain, FILE.mended):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        compiled = torch.compile(getattr(module, name), backend="eager", dynamic=False)
        for value in (3.0, -3.0):
            x, c = torch.tensor(value), torch.tensor(1.0)
            assert_same(compiled(x, c), getattr(FILE.plain, name)(x, c))
        breaks.append(sum(torch._dynamo.utils.counters["graph_break"].values()))
    assert breaks[0] > breaks[1] == 0


WRITTEN = ["decided_by_a_written_input", "decided_by_a_written_mask", "decided_by_a_written_copy"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", WRITTEN)
def test_a_branch_on_an_input_that_was_written_to(name: str, backend: str) -> None:
    """Guarded is what the branch sees, and not what the frame is given."""
    compiled = Compiled(FILE, name, backend)
    for scale in (1.0, 1.6, 1.0, 1.6, 2.0):
        compiled(X, torch.full((4,), scale), torch.ones(4))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_alias_of_an_input_that_was_written_to(backend: str) -> None:
    _, mended = FILE.pair("written_alias")
    compiled = torch.compile(mended, backend=backend, dynamic=False)
    for first in (1, 1, 3):
        count = torch.tensor([first])
        assert compiled(X, count, count.view(1, 1)).shape[0] == first + 2
        assert count.item() == first + 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_the_data_decides_becomes_a_symbol(backend: str) -> None:
    compiled = Compiled(FILE, "counted", backend)
    assert compiled(X) == 1
    assert compiled(-X) == compiled(X + 100) == compiled(X - 100) == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_frame_that_is_given_no_tensor(backend: str) -> None:
    compiled = Compiled(FILE, "drawn", backend)
    if backend == "inductor":  # which draws other numbers than eager
        assert torch.compile(compiled.mended, fullgraph=True)(8).shape[1] == 4
    else:
        assert compiled(8) == compiled(8) == 1
    assert not refusals.seen


def test_a_test_of_a_symbol_is_decided_by_an_example() -> None:
    compiled = Compiled(FILE, "counted_and_tested")
    plain = Counting("eager")
    call = torch.compile(compiled.plain, backend=plain, dynamic=False)
    for x in (X, -X, X + 100, X):
        call(x)
        compiled(x)
    assert (compiled.counting.graphs, plain.graphs) == (1, 3)
    assert not torch._dynamo.config.capture_scalar_outputs


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_flag_of_a_big_input_has_two_values(backend: str) -> None:
    compiled = Compiled(FILE, "decided_by_a_flag", backend)
    mask = torch.zeros(1, 4096, dtype=torch.long)
    assert compiled(X, mask) == compiled(X + 1, mask) == 1
    masked = mask.clone()
    masked[0, 77] = 1
    assert compiled(X, masked) == 2
    assert compiled(X, mask) == compiled(X, masked) == 2


def test_a_filter_of_guards() -> None:
    """What rests on a guard that the program's filter may drop is not done: the flag is read as it was written."""
    options = {"guard_filter_fn": lambda guards: [bool(guard.name) for guard in guards]}
    compiled = Compiled(FILE, "decided_by_a_flag", options=options)
    mask = torch.zeros(1, 4096, dtype=torch.long)
    for value in (mask, mask + 1, mask):
        compiled(X, value)
    assert refusals.seen


def test_floats_in_autocast_are_not_known() -> None:
    compiled = Compiled(FILE, "decided_in_autocast")
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
    compiled = Compiled(FILE, "decided_by_a_flag")
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
    compiled = Compiled(FILE, "joined_with_an_item", backend, fullgraph=True)
    x, ones, some = X[:2], torch.ones(2, 4), torch.tensor([[1.0, 1, 1, 1], [0, 1, 1, 1]])
    assert compiled(x, ones, torch.arange(4)) == 1
    assert compiled(x, some, torch.arange(4)) == 2
    assert compiled(x, ones, torch.arange(4)) == 2
    assert compiled(x, None, [0, 1]) == 3


def test_a_length_that_is_a_last_position() -> None:
    compiled = Compiled(FILE, "up_to_the_last_position", fullgraph=True)
    assert compiled(X, torch.arange(4)) == 1
    assert compiled(X, [0, 1, 2]) == 2


def test_a_branch_whose_sides_cannot_be_merged_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the rule is switched off: then the branch breaks the graph, as it did."""
    for specialise in (True, False):
        monkeypatch.setattr(queue, "specialise", specialise)
        torch._dynamo.reset()
        compiled = Compiled(FILE, "Unmergeable")
        assert (compiled(X) == 1) == specialise
        for value in (2, 0, 2):
            for module in (compiled.plain, compiled.mended):
                module.flag.fill_(value)
            compiled(X)


def test_start_up_imports_nothing_that_torch_does_without() -> None:
    program = (
        "import torch, sys; import graphmend_hook.runtime as runtime; print(runtime.connected, 'sympy' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["True", "False"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_test_of_a_constant_and_a_float_that_varies(backend: str) -> None:
    compiled = Compiled(FILE, "decided_by_a_float", backend, dynamic=None)
    for sign in (1.0, -1.0, 2.0, -2.5, 3.0, -0.5):
        compiled(X, sign)


def test_a_number_of_a_tensor_whose_expression_calls_a_name_of_dynamo() -> None:
    compiled = Compiled(FILE, "ByDevice", fullgraph=True)
    assert compiled(X) == 1
    for module in (compiled.plain, compiled.mended):
        module.counts[torch.device("cpu")].fill_(1)
    assert compiled(X) == 2
