"""Branches and guards under everything that is not a plain torch.compile: other tracers, transforms, modes, export."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest
import torch
from expectations import DOWN, UP, Cases
from observing import Counting
from outcomes import differences, fresh, run, same
from torch.fx.experimental.proxy_tensor import make_fx

CASES = Cases(
    *("branch_cases", "branch_attribute_cases", "branch_gradient_cases", "branch_effect_cases", "guard_cases"),
    "guard_exception_cases",
    "export_cases",
)
PLAIN, MENDED, EXPECT = CASES.plain, CASES.mended, CASES.expect
BRANCHES = (
    "if_else",
    "without_else",
    "an_early_return",
    "a_conditional_expression",
    "and_or_not",
    "a_predicate_from_a_helper",
    "attributes_on_self",
    "h1_the_untaken_side_has_a_singular_gradient",
    "h2_a_parameter_of_one_side",
    "a_log_in_a_side_is_delivered_if_taken",
    "a_side_that_raises",
)
GUARDS = (
    "if_raise",
    "h20_assert_with_a_constant",
    "h20_assert_with_a_text_made_of_the_shape",
    "torch_check",
    "torch_check_tensor_all",
    "bool_of_a_tensor",
    "h22_in_submodules",
)
NAMES = (*BRANCHES, *GUARDS)


def jit_trace(call: Any, x: torch.Tensor) -> Any:
    return torch.jit.trace(call, (torch.ones(3),), check_trace=False)(x)


def symbolic_trace(call: Any, x: torch.Tensor) -> Any:
    return torch.fx.symbolic_trace(call)(x)


def traced_by_make_fx(call: Any, x: torch.Tensor) -> Any:
    return make_fx(call)(x)(x)


def traced_by_make_fx_with_fakes(call: Any, x: torch.Tensor) -> Any:
    return make_fx(call, tracing_mode="symbolic")(x)(x)


def vmap(call: Any, x: torch.Tensor) -> Any:
    return torch.func.vmap(call)(torch.stack([x, x]))


def grad(call: Any, x: torch.Tensor) -> Any:
    return torch.func.grad(lambda y: call(y).sum())(x)


def jvp(call: Any, x: torch.Tensor) -> Any:
    return torch.func.jvp(call, (x,), (torch.ones(3),))


def autocast(call: Any, x: torch.Tensor) -> Any:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return call(x)


def inference_mode(call: Any, x: torch.Tensor) -> Any:
    with torch.inference_mode():
        return call(x).clone()


def force_eager(call: Any, x: torch.Tensor) -> Any:
    with torch.compiler.set_stance("force_eager"):
        return torch.compile(call, backend="eager")(x)


def in_a_backend(call: Any, x: torch.Tensor) -> Any:
    """In eager, by what compiles a graph: `torch.compiler.is_compiling` is true there."""
    return while_compiling(lambda: call(x))


def in_a_thread_while_another_compiles(call: Any, x: torch.Tensor) -> Any:
    with ThreadPoolExecutor(1) as thread:
        return while_compiling(lambda: thread.submit(call, x).result())


def in_a_thread_while_another_exports(call: Any, x: torch.Tensor) -> Any:
    class Module(torch.nn.Module):
        def forward(self, y: torch.Tensor) -> torch.Tensor:
            calls.append(thread.submit(call, x))
            wait(calls)
            return y + 1

    calls: list[Future[Any]] = []
    with ThreadPoolExecutor(1) as thread:
        torch.export.export(Module(), (torch.ones(2),), strict=False)
    return calls[0].result()


def while_compiling(do: Callable[[], Any]) -> Any:
    def backend(graph: Any, _inputs: Any) -> Any:
        try:
            called.set_result(do())
        except Exception as error:
            called.set_exception(error)
        return graph.forward

    called: Future[Any] = Future()
    torch._dynamo.reset()  # not yet compiled for as many backends as it may be
    torch.compile(lambda y: y + 1, backend=backend)(torch.ones(2))
    if not called.done():
        pytest.fail("nothing was compiled, so nothing was called")
    return called.result()


def outcome(use: Any, module: Any, name: str, x: torch.Tensor, prepare: Any = lambda call: call) -> Any:
    call = fresh(getattr(module, name))
    prepared = prepare(call)
    return run(lambda y: use(prepared, y), (x,), False, CASES.logger[name], call)


TRACERS = [
    jit_trace,
    symbolic_trace,
    traced_by_make_fx,
    traced_by_make_fx_with_fakes,
    vmap,
    grad,
    jvp,
    autocast,
    inference_mode,
    force_eager,
]
MEANWHILE = [in_a_backend, in_a_thread_while_another_compiles, in_a_thread_while_another_exports]


@pytest.mark.parametrize("x", [UP, DOWN], ids=["up", "down"])
@pytest.mark.parametrize("use", TRACERS, ids=lambda use: use.__name__)
@pytest.mark.filterwarnings("ignore")
def test_as_without_the_hook(use: Any, x: torch.Tensor) -> None:
    for name in NAMES:
        expected, got = outcome(use, PLAIN, name, x), outcome(use, MENDED, name, x)
        if expected.error:
            assert got.error, name
            assert got.error[0] is expected.error[0], name
        else:
            assert not differences(got, expected), name


@pytest.mark.parametrize("use", MEANWHILE, ids=lambda use: use.__name__)
@pytest.mark.filterwarnings("ignore")
def test_in_eager_while_something_is_compiled(use: Any) -> None:
    """H: a right operand was evaluated twice, with a property in it."""
    for name in (*NAMES, "a_property_counts_in_a_right_operand"):
        inputs = EXPECT[name].inputs
        for given in [values for values in inputs if len(values) == 1]:
            expected, got = outcome(use, PLAIN, name, *given), outcome(use, MENDED, name, *given)
            assert got.error == expected.error, name
            assert not differences(got, expected), name


@pytest.mark.parametrize("x", [UP, DOWN], ids=["up", "down"])
@pytest.mark.parametrize("use", [vmap, grad, autocast, inference_mode], ids=lambda use: use.__name__)
@pytest.mark.filterwarnings("ignore")
def test_compiled_as_without_the_hook(use: Any, x: torch.Tensor) -> None:
    """The transform or the mode is around the compiled function."""

    def prepare(call: Any) -> Any:
        return torch.compile(call, backend="aot_eager")

    for name in ("if_else", "an_early_return", "if_raise"):
        torch._dynamo.reset()
        expected = outcome(use, PLAIN, name, x, prepare)
        torch._dynamo.reset()
        got = outcome(use, MENDED, name, x, prepare)
        if expected.error:
            assert got.error, name
            assert got.error[0] is expected.error[0], name
        else:
            assert not differences(got, expected), name


class Exported(torch.nn.Module):
    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> Any:
        y = self.module.if_else(x) + self.module.an_early_return(x)
        y = y + self.module.nested(x) + self.module.a_conditional_expression(x) + self.module.and_or_not(x)
        y = y + self.module.a_predicate_by_item_is_compared_as_python_does(x)
        z = self.module.torch_check_tensor_all(y + 100)
        z = z + self.module.h20_assert_with_a_text_made_of_the_shape(y + 100)
        return z + self.module.if_raise(y + 100)


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "non-strict"])
@pytest.mark.filterwarnings("ignore")
def test_export(strict: bool) -> None:
    with pytest.raises(Exception):  # noqa: B017  whatever the export says of a data-dependent branch
        torch.export.export(Exported(PLAIN), (UP,), strict=strict)
    program = torch.export.export(Exported(MENDED), (UP,), strict=strict)
    exported = program.module()
    for x in (UP, DOWN, UP * 9, -DOWN):
        assert same(exported(x), Exported(PLAIN)(x))
    failing = torch.full((3,), -500.0)
    with pytest.raises((ValueError, RuntimeError)):
        Exported(PLAIN)(failing)
    with pytest.raises(RuntimeError):
        exported(failing)


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "non-strict"])
@pytest.mark.parametrize(
    "name", ["if_raise", "if_not_raise", "not_torch_equal", "torch_check_tensor_all", "elif_raise"]
)
@pytest.mark.filterwarnings("ignore")
def test_export_of_one_guard(name: str, strict: bool) -> None:
    class Module(torch.nn.Module):
        def forward(self, *inputs: torch.Tensor) -> Any:
            return getattr(MENDED, name)(*inputs)

    inputs = EXPECT[name].inputs
    exported = torch.export.export(Module(), inputs[0], strict=strict).module()
    for given in inputs:
        expected = run(getattr(PLAIN, name), given, False, "guard_cases")
        if expected.error:
            with pytest.raises(RuntimeError):
                exported(*given)
        else:
            assert same(exported(*given), expected.value)


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "non-strict"])
@pytest.mark.filterwarnings("ignore")
def test_export_of_a_module_that_trains(strict: bool) -> None:
    module = MENDED.h2_a_parameter_of_one_side()
    with torch.no_grad():
        exported = torch.export.export(module, (UP,), strict=strict).module()
        for x in (UP, DOWN):
            assert same(exported(x), PLAIN.h2_a_parameter_of_one_side()(x))


@pytest.mark.parametrize("name", ["counts", "asks_a_property", "has_a_method_of_that_name", "pops", "appends"])
@pytest.mark.filterwarnings("ignore")
def test_a_non_strict_export_runs_no_code_of_the_program_in_a_side(name: str) -> None:
    """Nobody could take back what it stores, and the graph would be right for one side alone."""
    module = getattr(MENDED, f"export_{name}")()
    with pytest.raises(Exception):  # noqa: B017  as without the hook: a data-dependent branch
        torch.export.export(module, (UP,), strict=False)
    assert (module.calls, module.seen, module.table) == (0, [], {"a": 1})


@pytest.mark.filterwarnings("ignore")
def test_a_side_that_only_computes_is_exported() -> None:
    before = sys.getprofile()
    exported = torch.export.export(MENDED.export_computes(), (UP,), strict=False).module()
    assert sys.getprofile() is before
    for x in (UP, DOWN):
        assert same(exported(x), PLAIN.export_computes()(x))


@pytest.mark.parametrize("backend", ["eager", "inductor"])
def test_sizes_that_vary(backend: str) -> None:
    """With dynamic=True: one graph for all of them, and no refusal."""

    def both(module: Any) -> Any:
        def call(x: torch.Tensor) -> torch.Tensor:
            y = module.if_else(x) + module.an_early_return(x)
            return y + module.h20_assert_with_a_text_made_of_the_shape(x + 50)

        return call

    counting = Counting(backend)
    compiled = torch.compile(both(MENDED), backend=counting, fullgraph=True, dynamic=True)
    for size in (3, 5, 7, 9):
        for value in (1.0, -1.0, -100.0):
            x = torch.full((size,), value)
            expected, got = (run(call, (x,), False, "branch_cases") for call in (both(PLAIN), compiled))
            assert not differences(got, expected, exact=backend == "eager")
    assert counting.graphs == 1


def test_sizes_that_turn_out_to_vary() -> None:
    counting = Counting("eager")
    compiled = torch.compile(MENDED.torch_check, backend=counting, fullgraph=True)
    for size in (3, 5, 7, 9):
        for value in (1.0, -1.0):
            x = torch.full((size,), value)
            plain = PLAIN.torch_check
            expected, got = (run(call, (x,), False, "guard_cases") for call in (plain, compiled))
            assert not differences(got, expected)
    assert counting.graphs == 2
