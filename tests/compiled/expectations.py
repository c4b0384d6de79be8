"""Programs with branches and guards, and what is expected of each: equal to eager in one graph, or declined with a code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from observing import HERE, Counting, both
from outcomes import Outcome, differences, fresh, run

from graphmend_hook.diagnostics import Outcome as SiteOutcome
from graphmend_hook.engine.attempt import refusals
from graphmend_hook.engine.epilogue import queue
from graphmend_hook.rewrite import active_rules, rewrite
from graphmend_hook.settings.config import RULE_NAMES

Calls = tuple[tuple[Any, ...], ...]
# Since torch 2.15 Dynamo traces the look-up of a name that does not exist, as an exception.
FAILS_WHERE_IT_STANDS = {"GM102-T05", "GM102-T13"}


def t(*values: Any, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values[0] if len(values) == 1 else list(values), dtype=dtype)


def ids(*values: int) -> torch.Tensor:
    return torch.tensor(values)


UP, DOWN, BIG = t(1.0, 2.0, 3.0), t(-1.0, -2.0, -3.0), t(90.0, 2.0, 3.0)
SIGNS = ((UP,), (DOWN,))
PAIRS = ((UP, t(4.0, 5.0, 6.0)), (DOWN, t(4.0, 5.0, 6.0)))
TWOS = t(2.0, 2.0, 2.0, dtype=torch.float16)
HALF = ((t(1.0, 2.0, 3.0, dtype=torch.float16), TWOS), (t(60000.0, 2.0, -60000.0, dtype=torch.float16), TWOS))
# What guards let pass, refuse, and let pass again.
GUARDED = ((UP,), (DOWN,), (UP,))
SIZES = ((UP,), (BIG,), (DOWN,), (UP,))
COMPARED = ((UP, UP.clone()), (UP, DOWN), (UP, t(1.0, 2.0, float("nan"))), (UP, UP.clone()))
# What a layer of 8 is given: small numbers, large ones, and those of one sign.
SMALL = torch.linspace(-1.5, 1.5, 32).reshape(4, 8).sin()
BATCHES = ((SMALL,), (SMALL * 8,), (SMALL.abs() + 3,), (SMALL,), (SMALL * 8,))
INDICES = ((UP, ids(0, 2)), (UP, ids(0, 7)), (UP, ids(1, 1)))
# What fails while it is traced is an exception of the program's to a later torch.
FAILS = "GM102-T05" if torch.__version__ >= "2.14" else "GM102-T13"


@dataclass(frozen=True)
class Expectation:
    """inputs: called with each in turn.  declined: the code of the refusal, "" for one graph; train: when training.

    declined="-": it breaks as before, without a code.  exact: bit-equal on Inductor too.  inductor: worth the time of
    Inductor.  breaks: as it does without the hook.  raises: guards refuse some of the inputs; None where there are none.
    graphs: how many, if not one for each of the shapes of the inputs.  fullgraph: not so where a traced condition is a
    false value of Python: Dynamo refuses to trace a `raise` there.
    """

    inputs: Calls = SIGNS
    declined: str = ""
    train: str = ""
    exact: bool = False
    inductor: bool = False
    breaks: bool = True
    raises: bool | None = None
    graphs: int = 0
    fullgraph: bool = True


def register(expectations: dict[str, Expectation], **defaults: Any) -> Callable[..., Any]:
    """A decorator that says what is expected of a case."""

    def case(**expected: Any) -> Callable[[Any], Any]:
        def decorate(function: Any) -> Any:
            expected.setdefault("train", expected.get("declined", ""))
            expectations[function.__name__] = Expectation(**{**defaults, **expected})
            return function

        return decorate

    return case


class Cases:
    """The cases of some files: in `plain` and `mended` all that stands in them, in `expect` what is expected."""

    def __init__(self, *stems: str) -> None:
        self.plain, self.mended = SimpleNamespace(), SimpleNamespace()
        self.expect: dict[str, Expectation] = {}
        self.logger: dict[str, str] = {}
        self.declined: dict[str, set[str]] = {}
        for stem in stems:
            path, (plain, mended) = HERE / f"{stem}.py", both(stem)
            vars(self.plain).update(vars(plain))
            vars(self.mended).update(vars(mended))
            self.expect.update(plain.EXPECT)
            self.logger.update(dict.fromkeys(plain.EXPECT, stem))
            for site in rewrite(path.read_bytes(), str(path), active_rules(RULE_NAMES)).sites:
                if site.outcome is SiteOutcome.DECLINED:
                    self.declined.setdefault(site.function.split(".")[0], set()).add(site.code)

    def pair(self, name: str) -> tuple[Any, Any]:
        return fresh(getattr(self.plain, name)), fresh(getattr(self.mended, name))

    def run(self, name: str, call: Any, inputs: tuple[Any, ...], train: bool = False, owner: Any = None) -> Outcome:
        return run(call, inputs, train, self.logger[name], owner)

    def compare(self, name: str, backend: str, train: bool, helper: str = "") -> None:
        """Is it as it is expected?  helper: the function in which it is declined."""
        expect, (plain, mended) = self.expect[name], self.pair(name)
        declined = expect.train if train else expect.declined
        counting, failures = Counting(backend), 0
        refusals.seen.clear()
        fullgraph = expect.fullgraph and not declined
        compiled = torch.compile(mended, backend=counting, fullgraph=fullgraph, dynamic=False)
        for inputs in expect.inputs:
            expected = _named(self.run(name, plain, inputs, train, plain))
            got = _named(self.run(name, compiled, inputs, train, mended))
            assert not differences(got, expected, exact=expect.exact or backend != "inductor"), (inputs, backend, train)
            failures += bool(expected.error)
            if expected.error and expect.raises is not None:
                assert expected.places[-1] in got.places
                assert not fullgraph or any("graphmend_hook" in note for note in got.notes)
        assert expect.raises in (None, bool(failures)) or declined
        seen = {code for code, *_ in refusals.seen}
        if declined == "-":
            assert counting.graphs != 1 or not seen.isdisjoint(FAILS_WHERE_IT_STANDS)
        elif declined:
            assert declined in seen | self.declined.get(name, set()) | self.declined.get(helper, set())
            assert counting.graphs or not self.graphs_without_the_hook(name), "the frame is skipped because of the hook"
        else:
            shapes = {tuple(getattr(value, "shape", None) for value in inputs) for inputs in expect.inputs}
            assert not seen
            assert counting.graphs <= (expect.graphs or len(shapes))
        assert queue.graphmend_pending == []

    def graphs_without_the_hook(self, name: str) -> int:
        torch._dynamo.reset()
        counting = Counting("eager")
        self.run(name, torch.compile(self.pair(name)[0], backend=counting), self.expect[name].inputs[0])
        return counting.graphs

    def compare_uncompiled(self, name: str) -> None:
        plain, mended = self.pair(name)
        for inputs in self.expect[name].inputs:
            expected, got = (_named(self.run(name, call, inputs, True, call)) for call in (plain, mended))
            assert not differences(got, expected)
            assert (got.places, got.notes) == (expected.places, expected.notes)


def _named(outcome: Outcome) -> Outcome:
    """With the names of the classes of the mended module in place of the classes, which are twins of the plain ones."""
    if outcome.error:
        outcome.error = (outcome.error[0].__qualname__, *outcome.error[1:3], outcome.error[3].__name__)
    return outcome
