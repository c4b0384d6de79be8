"""Property: a rewritten program does what the original does, on the path of eager and on the path of tracing.

No torch here: `runtime.tracing` is made to answer, and a deferred call is made at once.
"""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphmend_hook import runtime
from graphmend_hook.diagnostics import Outcome
from graphmend_hook.rewrite import active_rules, rewrite

RULES = active_rules(("defer",))
PRELUDE = """
import logging, sys, warnings
logger = logging.getLogger("property")
events = []
def tick(value):
    events.insert(len(events), ("tick", value))
    return value
class Box:
    log = logger
box = Box()
"""
LEAVES = ["1", "'s'", "x", "tick(2)", "tick('t')", "[x, 1]", "(w := 3)", "x if x else 'none'", "len('abc')", "None"]
FORMS = [
    "print({0}, {1})",
    "print({0}, sep={1!s} if False else '-', end='|', file=sys.stderr)",
    "logger.warning('%s and %r', {0}, {1})",
    "logger.warning('%s and %r' % ({0}, {1}))",
    'logger.error(f"{{{0}}} and {{{1}!r:>12}}")',
    'logger.info("{{}} {{k}}".format({0}, k={1}))',
    'box.log.debug("a" + f"{{{0}}}" + "b%s" % ({1},))',
    "logging.getLogger('property').critical({0})",
    'warnings.warn(f"{{{0}!s}}")',
    "warnings.warn(str({1}), DeprecationWarning)",
    "logger.log(30, {0}, extra={{'k': {1}}})",
    "print()",
]

leaf = st.sampled_from(LEAVES)
effect = st.builds(lambda form, a, b: form.format(a, b), st.sampled_from(FORMS), leaf, leaf)


def indent(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def block_of(statement: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    return st.lists(statement, min_size=1, max_size=3).map(lambda parts: [line for part in parts for line in part])


def compound(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    block = block_of(inner)
    return st.one_of(
        st.builds(lambda a, b: ["if x:", *indent(a), "else:", *indent(b)], block, block),
        st.builds(lambda a: ["for x in range(2):", *indent(a)], block),
        st.builds(lambda a, b: ["try:", *indent(a), "finally:", *indent(b)], block, block),
        st.builds(lambda a, b: ["try:", *indent(a), "except ValueError:", *indent(b)], block, block),
        st.builds(lambda a: ["with warnings.catch_warnings():", *indent(a)], block),
        st.builds(lambda a: ["def inner(x):", *indent(a), "inner(x)"], block),
    )


simple = st.one_of(
    effect.map(lambda text: [text]),
    st.just(["x = tick(x)"]),
    st.just(["if x == 1: raise ValueError(x)"]),
)
programs = block_of(st.recursive(simple, compound, max_leaves=6))


class Handler(logging.Handler):
    def __init__(self, events: list[Any]) -> None:
        super().__init__()
        self.events = events

    def emit(self, record: logging.LogRecord) -> None:
        extra = record.__dict__.get("k")
        self.events.append((record.levelname, record.getMessage(), extra, record.lineno, record.funcName))


class Stream(io.TextIOBase):
    def __init__(self, events: list[Any], name: str) -> None:
        self.events, self.name_ = events, name

    def write(self, text: str) -> int:
        self.events.append((self.name_, text))
        return len(text)


def run(code: Any, argument: int) -> tuple[Any, list[Any]]:
    """Execute the module and call ``f(argument)``; what it gave or raised and where, and every event in order."""
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(code, namespace)
    events = namespace["events"]
    handler = Handler(events)
    logger = namespace["logger"]
    logger.handlers[:], logger.propagate = [handler], False
    logger.setLevel(logging.DEBUG)
    streams = contextlib.ExitStack()
    streams.enter_context(contextlib.redirect_stdout(Stream(events, "out")))
    streams.enter_context(contextlib.redirect_stderr(Stream(events, "err")))
    with streams, warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda m, c, f, line, *_: events.append((c.__name__, str(m), f, line))  # type: ignore
        try:
            outcome: Any = ("returned", namespace["f"](argument))
        except Exception as error:
            frames: list[Any] = []
            traceback = error.__traceback__
            while traceback is not None:
                frame = (traceback.tb_frame.f_code.co_name, traceback.tb_lineno)
                # A deferred call adds a frame that shows the place of the statement again.
                if traceback.tb_frame.f_code.co_filename == "program.py" and frames[-1:] != [frame]:
                    frames.append(frame)
                traceback = traceback.tb_next
            outcome = ("raised", type(error), str(error), frames)
    return outcome, events


def source_of(body: list[str]) -> bytes:
    return (PRELUDE + "\n".join(["def f(x):", *indent(body), "    return x, events[-1:]", ""])).encode()


@pytest.mark.parametrize("arm", ["eager", "tracing and deferred", "tracing and declined"])
@settings(max_examples=150, deadline=None)
@given(body=programs, argument=st.integers(0, 2))
def test_same_results_effects_and_exceptions(arm: str, body: list[str], argument: int) -> None:
    source = source_of(body)
    original = compile(source, "program.py", "exec")
    result = rewrite(source, "program.py", RULES)
    mended = result.code or original
    saved = dict(vars(runtime))
    try:
        runtime.tracing = lambda: arm != "eager"
        runtime.deferrable = runtime.deferrable_as_shown = lambda *given: arm == "tracing and deferred"
        runtime.defer = runtime.defer_as_shown = lambda delivery, target, _, values, *shown: delivery(target, values)
        runtime.late, runtime.settled = (lambda *given: None), (lambda values: values)
        runtime.number_of = lambda value: value
        runtime.get_logger = lambda function, *args: function(*args)
        assert run(mended, argument) == run(original, argument)
    finally:
        vars(runtime).clear()
        vars(runtime).update(saved)


@settings(max_examples=50, deadline=None)
@given(body=programs)
def test_every_effect_is_accounted_for(body: list[str]) -> None:
    """Each statement that is an effect is a site, mended or declined with a code and a sentence."""
    result = rewrite(source_of(body), "program.py", RULES)
    effects = sum(line.strip().startswith(("print(", "logger.", "box.", "logging.", "warnings.warn(")) for line in body)
    assert len(result.sites) == effects
    for site in result.sites:
        assert site.outcome is Outcome.MENDED or (site.code.startswith("GM1") and site.reason)


def test_the_property_can_fail() -> None:
    source = source_of(["print(tick(1))"])
    original, mended = compile(source, "program.py", "exec"), rewrite(source, "program.py", RULES).code
    saved = dict(vars(runtime))
    try:
        runtime.tracing, runtime.deferrable = (lambda: True), (lambda target, method, values: values and False)
        assert run(mended, 0) == run(original, 0)
        runtime.tracing = lambda: sys.stdout.write("an effect of ours") > 0
        assert run(mended, 0) != run(original, 0)
    finally:
        vars(runtime).clear()
        vars(runtime).update(saved)
