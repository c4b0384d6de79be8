"""`graphmend_hook.testing`: what its assertions let pass, and the text with which they fail."""

from __future__ import annotations

import logging
import random
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import graphmend_hook
from graphmend_hook.engine.attempt import refusals
from graphmend_hook.product.explain.verdicts import Verdicts
from graphmend_hook.product.report.ledger import Ledger, ModuleRecord, Status, as_json, ledger
from graphmend_hook.product.report.sources import statement_at
from graphmend_hook.testing import assert_same_as_eager, assert_single_graph

log = logging.getLogger(__name__)
X = torch.tensor([1.0, -2.0])


def plain(x, scale=2):
    return x * scale


def breaking(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2


def calling(x):
    return breaking(x) + 1


def looping(x):
    for _ in range(2):
        x = x + 1
        torch._dynamo.graph_break()
    return x


@torch.compiler.disable
def disabled(x):
    return x + 1


def ending_in_a_break(x):
    y = x * 2
    return disabled(y)


def test_one_graph_gives_the_result():
    assert torch.equal(assert_single_graph(plain, X, scale=3), X * 3)
    assert torch.equal(assert_single_graph(torch.nn.ReLU(), X, backend="aot_eager"), X.relu())


def test_function_may_be_asserted_more_often_than_dynamo_recompiles():
    for _ in range(torch._dynamo.config.recompile_limit + 2):
        assert_single_graph(plain, X)


def test_what_was_compiled_before_does_not_count():
    def varied(x):
        return x + 1

    torch._dynamo.reset()
    for size in range(2, torch._dynamo.config.recompile_limit + 4):  # from some call on Dynamo leaves it to eager
        torch.compile(varied, backend="eager", dynamic=False)(torch.ones(size))
    assert_single_graph(varied, X)


def test_backend_may_be_a_callable():
    seen = []

    def backend(graph, inputs):
        seen.append(graph)
        return graph.forward

    assert_single_graph(plain, X, backend=backend)
    assert len(seen) == 1


def line_of(function: Any, text: str) -> int:
    """The number of the line with `text` in `function`."""
    lines = Path(function.__code__.co_filename).read_text(encoding="utf-8").splitlines()
    first = function.__code__.co_firstlineno
    return next(number for number in range(first, len(lines)) if text in lines[number - 1])


def failure(function: Any, *args: Any) -> list[str]:
    with pytest.raises(AssertionError) as caught:
        assert_single_graph(function, *args)
    return str(caught.value).splitlines()


@pytest.mark.parametrize(("function", "graphs"), [(breaking, 2), (calling, 3)])
def test_breaks_are_told_once_with_line_reason_and_verdict(function, graphs):
    first, place, dynamo, *callers, said, advice = failure(function, X)
    assert len(callers) == (function is calling)
    assert all(caller.endswith("in calling") for caller in callers)
    assert first == f"expected one graph and no graph break, got {graphs} graphs and 1 graph break"
    line = line_of(breaking, "graph_break()")
    assert place == f"  {__file__}:{line} in breaking: torch._dynamo.graph_break()"
    assert dynamo.startswith("    Dynamo: Call to `torch._dynamo.graph_break()`: User-inserted graph break")
    assert said == "    graphmend: test_assertions is not among the modules that are mended"
    flag = advice.removeprefix("    -> add it: pytest --graphmend=")
    assert flag.strip("'").split(",")[-1] == "test_assertions"  # after what other tests of this process have set


def test_frame_that_is_left_to_eager_is_told():
    first, place, *_ = failure(looping, X)
    assert first == "expected one graph and no graph break, got 0 graphs and 1 graph break"
    assert place == f"  {__file__}:{line_of(looping, 'graph_break()')} in looping: torch._dynamo.graph_break()"


def test_a_single_graph_with_a_break_beside_it_is_not_enough():
    first, place, *_ = failure(ending_in_a_break, X)
    assert first == "expected one graph and no graph break, got 1 graph and 1 graph break"
    assert place.endswith("in ending_in_a_break: return disabled(y)")


def test_no_graph_at_all_is_told():
    assert failure(lambda x: 1, X) == [
        "expected one graph and no graph break, got 0 graphs and 0 graph breaks",
        "  Dynamo traced no tensor operation: is the function disabled for torch.compile?",
    ]


def test_exception_of_the_call_passes_through():
    def raising(x):
        raise KeyError("key")

    with pytest.raises(KeyError, match="key"):
        assert_single_graph(raising, X)


MENDABLE = """
import logging
import sys
import torch
log = logging.getLogger(__name__)

class Thing:
    pass

THING = Thing()

def declined(x):
    log.warning("a",
                stack_info=True)
    return x + 1

def refused(x):
    print(THING)
    return x + 1

def unknown(x):
    torch._dynamo.graph_break()
    return x + 1

def mended(x):
    log.warning("a")
    return x + 1
"""


@pytest.fixture
def mendable(write, fresh_imports, tmp_path):
    write("mendable.py", MENDABLE)
    modules = dict(ledger.modules)
    graphmend_hook.install("mendable", cache_dir=tmp_path / "cache")
    import mendable

    yield mendable
    ledger.modules = modules
    refusals.seen.clear()


@pytest.mark.parametrize(
    ("function", "said", "advice"),
    [
        ("declined", "GM101-R", "graphmend rules GM101-R"),
        (
            "refused",
            "GM101-T04 left in place while tracing: an argument is an object whose text may change",
            "graphmend rules GM101-T04",
        ),
        ("unknown", "no rule is about this kind of statement", "PyTorch's hint: "),
    ],
)
def test_what_the_tool_says_about_a_break(function, said, advice, mendable):
    lines = failure(getattr(mendable, function), X)
    assert lines[3].startswith(f"    graphmend: {said}")
    assert lines[4].startswith(f"    -> {advice}")


def said_of(own: Ledger, path: str, line: int) -> str:
    site = path, statement_at(path, line).line
    return Verdicts(as_json(own)).of(site, [(path, line, "f")], "a reason").said


def test_verdict_is_that_of_the_statement_around_the_line(mendable):
    first = line_of(mendable.declined, 'log.warning("a",')
    said = said_of(ledger, mendable.__file__, first)
    assert said.startswith("declined: ")
    assert said_of(ledger, mendable.__file__, first + 1) == said
    assert said_of(ledger, mendable.__file__, first + 2) == "no rule is about this kind of statement"
    mended = line_of(mendable.mended, "log.warning")
    assert said_of(ledger, mendable.__file__, mended) == (
        "the statement is rewritten, and Dynamo stops at it for another reason"
    )


def test_mended_function_is_one_graph(mendable):
    assert torch.equal(assert_single_graph(mendable.mended, X), X + 1)


@pytest.mark.parametrize(
    ("status", "why", "said"),
    [
        (Status.NOT_ELIGIBLE, "loaded by Zip", "m runs as it is, not eligible: loaded by Zip"),
        (Status.TOO_EARLY, "", "m was imported before the hook was installed, and runs as it is"),
        (Status.FAILED, "KeyError()", "m runs as it is, failed: KeyError()"),
    ],
)
def test_verdict_on_a_module_that_was_not_mended(status, why, said):
    own = Ledger()
    own.add(ModuleRecord("m", __file__, status, why=why))
    assert said_of(own, __file__, 1) == said


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        self.seen += 1
        log.warning("call")
        warnings.warn("careful", stacklevel=1)
        print("text")
        return {"y": torch.nn.functional.dropout(x * self.seen, 0.5) + random.random()}


def test_what_is_the_same_passes_and_leaves_nothing_behind():
    module, x = Counter(), X.clone()
    random_states = torch.get_rng_state(), random.getstate()
    assert assert_same_as_eager(module, x, calls=3) is None
    assert module.seen == 0
    assert torch.equal(torch.get_rng_state(), random_states[0])
    assert random.getstate() == random_states[1]


def test_once_methods_speak_in_both_arms():
    import functools

    def once(logger, message):
        logger.warning(message)

    logging.Logger.once_of_the_tests = functools.lru_cache(once)
    try:
        assert_same_as_eager(lambda x: (log.once_of_the_tests("only once"), x + 1)[1], X)
    finally:
        del logging.Logger.once_of_the_tests


class Opaque:
    def __init__(self, value) -> None:
        self.value, self.itself = value, self


@dataclass
class Result:
    values: list = field(default_factory=list)


class Buffer(torch.nn.Module):
    def __init__(self, step=0.0) -> None:
        super().__init__()
        self.step = step
        self.register_buffer("b", torch.zeros(1))

    def forward(self, x):
        self.b += self.step
        return x + 1


def writes(x):
    x.add_(1)
    return x.new_zeros(1)


def raises(error):
    def function(x):
        raise error

    return function


def logs(x):
    log.warning("eager only")
    return x + 1


def warns(x):
    warnings.warn("eager only", stacklevel=1)
    return x + 1


def prints(x):
    print("eager only")
    return x + 1


def plus_one(x):
    return x + 1


# What eager does, what the compiled one does instead, and how the text begins.
DIFFERENT = {
    "value": (plus_one, lambda x: x + 1.0000001, "output: Tensor-likes are not equal!"),
    "sign of zero": (lambda x: x * 0.0, lambda x: x * -0.0, "output: zeros differ in sign"),
    "dtype": (plus_one, lambda x: x.double() + 1, "output: The values for attribute 'dtype' do not match"),
    "number": (lambda x: (x, 2), lambda x: (x, 1), "output[1]:\n    compiled: 1\n    eager: 2"),
    "structure": (lambda x: (x,), lambda x: [x], "output structure:"),
    "type of a leaf": (lambda x: 1.0, lambda x: 1, "output type:\n    compiled: int\n    eager: float"),
    "object": (Opaque, lambda x: Opaque(x + 1), "output['value']: Tensor-likes are not equal!"),
    "dataclass": (lambda x: Result(), lambda x: Result([1]), "output:\n    compiled: Result(values=[1])"),
    "argument": (lambda x: x.new_zeros(1), writes, "inputs[0][0]: Tensor-likes are not equal!"),
    "exception args": (
        raises(ValueError("a", 1)),
        raises(ValueError("b", 1)),
        "exception args[0]:\n    compiled: 'b'\n    eager: 'a'",
    ),
    "exception type": (
        raises(ValueError("a")),
        raises(KeyError("a")),
        "exception:\n    compiled: KeyError('a')\n    eager: ValueError('a')",
    ),
    "exception": (plus_one, raises(KeyError("a")), "exception:\n    compiled: KeyError('a')\n    eager: None"),
    "log": (logs, plus_one, "effects:\n    compiled: none\n    eager:\n      log WARNING eager only "),
    "warning": (warns, plus_one, "effects:\n    compiled: none\n    eager:\n      warning UserWarning eager only "),
    "print": (prints, plus_one, "effects:\n    compiled: none\n    eager:\n      print eager only\n"),
}


@pytest.fixture
def compiles_to(monkeypatch):
    """Let `torch.compile` give another function."""
    return lambda function: monkeypatch.setattr(torch, "compile", lambda _function, backend: function)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_told(name, compiles_to):
    eager, compiled, text = DIFFERENT[name]
    compiles_to(compiled)
    with pytest.raises(AssertionError) as caught:
        assert_same_as_eager(eager, X.clone())
    assert str(caught.value).startswith(f"compiled and eager differ\n  call 1: {text}")


def test_state_of_the_module_is_compared(monkeypatch):
    def miscompiled(module, backend):
        module.step = 1.0
        return module

    monkeypatch.setattr(torch, "compile", miscompiled)
    with pytest.raises(AssertionError, match=r"call 1: state\['b'\]: Tensor-likes are not equal!"):
        assert_same_as_eager(Buffer(), X)


def test_difference_of_a_later_call_is_told_with_its_number(compiles_to):
    calls = []

    def later(x):
        calls.append(x)
        return x + len(calls)

    compiles_to(later)
    assert_same_as_eager(plus_one, X)
    calls.clear()
    with pytest.raises(AssertionError, match=r"^compiled and eager differ\n  call 2: output"):
        assert_same_as_eager(plus_one, X, calls=2)


def test_tolerances_are_those_of_torch_testing(compiles_to):
    compiles_to(lambda x: x + 1.0001)
    assert_same_as_eager(plus_one, X, atol=1e-3)
    assert_same_as_eager(plus_one, X, rtol=1e-3)
    with pytest.raises(AssertionError, match="not close"):
        assert_same_as_eager(plus_one, X, atol=1e-5)


def test_nan_and_exceptions_that_are_the_same_pass():
    assert_same_as_eager(lambda x: (x * float("nan"), float("nan")), X)
    assert_same_as_eager(lambda x: {}[x.shape[0]], X)
    assert_same_as_eager(raises(ValueError(X, "text")), X)


def test_importing_the_module_imports_no_torch(python):
    done = python("-c", "import sys, graphmend_hook.testing; print('torch' in sys.modules)")
    assert done.stdout == "False\n", done.stderr
