"""Each refusal has a remedy of its own, and the examples do what they promise."""

from __future__ import annotations

import argparse
import copy
import importlib
import inspect
import shlex
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import graphmend_hook
from graphmend_hook.cli import main
from graphmend_hook.diagnostics import Code
from graphmend_hook.product.commands import examples
from graphmend_hook.product.commands.rules import codes
from graphmend_hook.rewrite import active_rules, rewrite
from graphmend_hook.rules.codes import TOLD
from graphmend_hook.settings.config import RULE_NAMES, SETTINGS
from graphmend_hook.settings.options import add_settings, given

RULES = active_rules(RULE_NAMES)
OF_RULES = [code for code in codes().values() if code.rule]
EXAMPLES = {code.code: example for code in OF_RULES if (example := examples.example_of(code.code))}
HEAD = """\
import contextlib
import functools
import io
import logging
import sys
import datetime
import time
import warnings

import numpy as np
import torch
import torch.utils.checkpoint

logger = logging.getLogger(__name__)
"""
# Where there is no program of one file, compiled as it stands, that is mended by what the remedy says.
WITHOUT_EXAMPLE = {
    "GM101-T09": "the way to compile, or the version of torch, is to be another one",
    "GM102-T12": "it is about sizes that the caller has marked",
    "GM102-T13": "what ends a graph is declined while rewriting where it is written out",
    "GM104-T04": "the way to compile is to be another one",
    "GM104-T09": "it says where to look; what is in the way there has a code of its own",
}
# Functions that are not compiled: their callers are to read the clock.
OUTSIDE = {"timed"}
# Refused under `fullgraph=True` alone.
OF_ONE_GRAPH = {"GM101-T12"}
# The program as it was raises in eager: with more elements than one, or what is not bound or handed in.
RAISES = {"GM102-T01"}
RAISES_ON_THE_OTHER_SIDE = {"GM102-R05", "GM102-T05"}
# Its caller is torch's own code, and the test's in eager.
SHOWS_ITS_CALLER = "GM101-T15"


def inputs_of(code: str) -> list[tuple[Any, ...]]:
    """What `f` is called with, one call after the other; it takes as many as it has parameters."""
    import torch

    def trained(*shape: int) -> Any:
        return torch.ones(*shape, requires_grad=True)

    def counts(*numbers: int) -> list[tuple[Any, ...]]:
        return [(torch.ones(3), torch.tensor([number])) for number in numbers]

    rows = torch.tensor([[1.0, 3, 2, 0], [9, 1, 1, 2], [3, 2, 5, 1]])
    table: list[tuple[Any, ...]] = [(torch.ones(3), {})]
    one: list[tuple[Any, ...]] = [(trained(3),)]
    by_code = {
        **dict.fromkeys(("GM101-R03", "GM101-T10", "GM102-R08", "GM102-R13", "GM102-R16"), table),
        **dict.fromkeys(("GM103-R13", "GM103-R16"), table),
        **dict.fromkeys(("GM101-T02", "GM101-T14", "GM102-T06", "GM102-T10"), one),
        "GM105-T02": [(rows, trained(4))],
        "GM105-T03": [(rows, torch.arange(80.0))],
        "GM104-T02": counts(1, 2),
        "GM104-T03": counts(2),
        "GM104-T05": counts(1, 2, 3, 4, 5),
        "GM104-T06": [(torch.arange(12.0).reshape(3, 4), torch.full((2000,), count)) for count in (1, 3, 1, 3)],
        "GM104-T08": [(torch.arange(24.0).reshape(2, 12),)],
    }
    by_rule: dict[str, list[tuple[Any, ...]]] = {
        "GM105": [(rows, rows.argmax(1), torch.zeros(3, 4))],
        "GM106": [(torch.ones(3, 3), trained(3, 3))],
    }
    return by_code.get(code) or by_rule.get(code[:5]) or [(torch.ones(3), torch.tensor(2))]


@pytest.mark.parametrize("code", OF_RULES, ids=lambda code: code.code)
def test_every_refusal_has_one(code: Code) -> None:
    assert code.remedy.endswith(".")
    assert code.remedy[0].isupper()


def test_none_is_said_twice() -> None:
    own = [code.remedy for code in OF_RULES if "-T" in code.code]
    assert len({*own}) == len(own)


def test_every_refusal_has_an_example() -> None:
    assert {*EXAMPLES, *WITHOUT_EXAMPLE} == {code.code for code in OF_RULES}
    assert EXAMPLES.keys().isdisjoint(WITHOUT_EXAMPLE)
    files = {file.stem for file in Path(examples.__file__).parent.glob("*.py")}
    assert files == {*EXAMPLES, "__init__"}, "each is of a code"


@pytest.mark.parametrize("code", [code for code in EXAMPLES if "-R" in code])
def test_it_is_declined_while_rewriting(code: str) -> None:
    before = rewrite(f"{HEAD}{EXAMPLES[code].before}".encode(), "before.py", RULES)
    assert code in {site.code for site in before.sites}


@pytest.mark.parametrize("code", EXAMPLES)
def test_nothing_is_declined_that_follows_it(code: str) -> None:
    after = rewrite(f"{HEAD}{EXAMPLES[code].after}".encode(), "after.py", RULES)
    assert {site.code for site in after.sites if site.function not in OUTSIDE} <= {""}


def runner(module: Any) -> Callable[..., Any]:
    """What is compiled: of a coroutine, which Dynamo does not trace, the part that it calls."""
    f = module.f
    if inspect.iscoroutinefunction(f):
        part: Callable[..., Any] = module.part
        return part
    return (lambda *given: list(f(*given))) if inspect.isgeneratorfunction(f) else f


def needed(f: Any, calls: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Of each call a copy, with as many arguments as `f` needs."""
    parameters = inspect.signature(getattr(f, "forward", f)).parameters.values()
    kept = [each for each in parameters if each.default is each.empty and each.kind is not each.VAR_KEYWORD]
    for call in calls:
        yield copy.deepcopy(call[: len(kept)])


@pytest.fixture
def numba(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands for the package, which compiles what is no tensor."""
    monkeypatch.setitem(sys.modules, "numba", types.SimpleNamespace(njit=lambda function: function))


def in_eager(text: str, calls: list[tuple[Any, ...]]) -> list[Any]:
    """What each call gives, or the text of what it raises."""
    module = types.ModuleType("in_eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(f"{HEAD}{text}", vars(module))
        return [outcome(module.f, call) for call in needed(module.f, calls)]


def outcome(f: Any, call: tuple[Any, ...]) -> Any:
    try:
        result = f(*call)
        if inspect.iscoroutine(result):
            result.send(None)
        return [*result] if inspect.isgenerator(result) else result
    except StopIteration as ended:
        return ended.value
    except (ValueError, TypeError, KeyError, AssertionError) as error:
        return repr(error)


def negated(call: tuple[Any, ...]) -> tuple[Any, ...]:
    return -call[0].detach(), *call[1:]


@pytest.mark.usefixtures("numba")
@pytest.mark.parametrize("code", EXAMPLES)
def test_both_give_the_same_in_eager(code: str) -> None:
    torch = pytest.importorskip("torch")
    calls = inputs_of(code) if code not in RAISES else [(torch.ones(1),)]
    if code not in RAISES_ON_THE_OTHER_SIDE:
        calls += [negated(call) for call in calls]
    before, after = (in_eager(text, calls) for text in (EXAMPLES[code].before, EXAMPLES[code].after))
    texts = [[found for found in each if isinstance(found, str)] for each in (before, after)]
    assert texts[0] == texts[1]
    results = [[found for found in each if not isinstance(found, str)] for each in (before, after)]
    assert results[0], "it gives nothing"
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=0, equal_nan=True)


@dataclass
class Traced:
    """What became of a program.  calls: how many were made; error: what one raised instead of ending."""

    calls: int
    graphs: int
    breaks: list[Any]
    codes: set[str]
    error: Exception | None


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch, write: Any) -> Callable[..., Traced]:
    torch = pytest.importorskip("torch")
    from graphmend_hook.engine.attempt import refusals
    from graphmend_hook.product.explain.observe import Observer
    from graphmend_hook.testing import assert_same_as_eager

    monkeypatch.syspath_prepend(write("__init__.py", "").parent)

    def trace(code: str, text: str, flags: str, name: str, unlike_eager: bool = False) -> Traced:
        """Compile the program, and compare it with eager where no call raises."""
        parser = argparse.ArgumentParser()
        add_settings(parser, SETTINGS)
        settings: dict[str, Any] = given(parser.parse_args(shlex.split(flags)))
        if code[:5] not in ("GM104", "GM105"):
            settings["rules"] = "-value"  # it takes the truth of an input at first, and there is no break to see
        write(f"{name}.py", HEAD + text)
        observer, error = Observer(), None
        with warnings.catch_warnings(), graphmend_hook.install(name, **settings):
            warnings.resetwarnings()
            warnings.simplefilter("ignore")
            module = importlib.import_module(name)
            f, calls = runner(module), [*needed(module.f, inputs_of(code))]
            torch.compiler.reset()
            monkeypatch.setattr(refusals, "seen", {})
            with observer.attached():
                compiled = torch.compile(f, backend="eager", fullgraph=code in OF_ONE_GRAPH)
                try:
                    for call in copy.deepcopy(calls):
                        compiled(*call)
                except Exception as raised:
                    error = raised
            found = {seen for seen, *_ in refusals.seen}
            torch.compiler.reset()
            for call in calls if error is None and not unlike_eager else ():
                assert_same_as_eager(f, *call)
        return Traced(len(calls), observer.count, observer.as_json()["breaks"], found, error)

    return trace


@pytest.mark.parametrize("code", [code for code in EXAMPLES if "-T" in code])
def test_it_is_declined_while_tracing(code: str, traced: Callable[..., Traced]) -> None:
    example = EXAMPLES[code]
    name = f"{code}_before".replace("-", "_")
    found = traced(code, example.before, example.flags_before, name, unlike_eager=code == SHOWS_ITS_CALLER)
    assert code in found.codes
    assert bool(found.breaks or found.error) == (code not in TOLD)


@pytest.mark.parametrize("code", EXAMPLES)
def test_following_it_helps(code: str, traced: Callable[..., Traced]) -> None:
    """One graph, or one for each value of a number, with nothing left."""
    example = EXAMPLES[code]
    found = traced(code, example.after, example.flags_after, f"{code}_after".replace("-", "_"))
    assert found.error is None
    assert found.codes == set()
    assert found.breaks == []
    assert 1 <= found.graphs <= (found.calls if "--values" in example.flags_after else 1)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("GM104-T02", ("is mended with `--values n`",)),
        ("GM104-T05", ("With `--values n`:", "becomes")),
        ("GM103-T01", ("With `--guards keep`:", "is mended without `--guards keep`")),
        ("GM102-R05", ("becomes",)),
    ],
)
def test_the_flag_is_shown(code: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", code]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in shown if line.strip().startswith(("With `", "becomes", "is mended"))] == [*words]
    assert all(f"  {line}".rstrip() in shown for line in EXAMPLES[code].after.splitlines())
