"""Each refusal has a remedy of its own, and the examples do what they promise."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

import graphmend_hook
from graphmend_hook.commands.remedies import EXAMPLES, EXAMPLES_TRACED, REMEDIES, Example, remedy
from graphmend_hook.commands.rules import codes
from graphmend_hook.config import RULE_NAMES
from graphmend_hook.rewrite import active_rules, rewrite

RULES = active_rules(RULE_NAMES)
OF_RULES = [code for code in codes().values() if code.rule]
HEAD = b"import functools\nimport logging\nimport torch\nlogger = logging.getLogger(__name__)\n"


@pytest.mark.parametrize("code", [code.code for code in OF_RULES])
def test_every_refusal_has_one(code: str) -> None:
    text = remedy(code)
    assert text.endswith(".")
    assert text[0].isupper()


def test_none_is_left_over_or_said_twice() -> None:
    used = {code.code if code.code in REMEDIES else code.code.partition("-")[2] for code in OF_RULES}
    assert used == {*REMEDIES}
    own = [text for key, text in REMEDIES.items() if "-T" in key]
    assert len({*own}) == len(own)


@pytest.mark.parametrize("code", [code for code in EXAMPLES if code not in EXAMPLES_TRACED])
def test_following_it_helps(code: str) -> None:
    before = rewrite(HEAD + EXAMPLES[code].before.encode(), "before.py", RULES)
    assert code in {site.code for site in before.sites}
    after = rewrite(HEAD + EXAMPLES[code].after.encode(), "after.py", RULES)
    assert after.mended == 1
    assert {site.code for site in after.sites} == {""}


@pytest.mark.parametrize("code", EXAMPLES_TRACED)
def test_following_it_helps_while_tracing(code: str, monkeypatch: pytest.MonkeyPatch, write: Any) -> None:
    """The one breaks, with that code; the other is one graph with nothing left, and both compute what eager does."""
    torch = pytest.importorskip("torch")
    from graphmend_hook.dynamo import refusals
    from graphmend_hook.testing import assert_same_as_eager, assert_single_graph

    def codes_of(text: str, name: str, check: Callable[..., Any]) -> set[str]:
        monkeypatch.setattr(refusals, "seen", {})
        write(f"{name}.py", HEAD.decode() + text)
        # [Value] takes the truth of an input at first, and there is no break to see.
        with graphmend_hook.install(name, rules=None if code.startswith("GM104") else "-value"):
            f = importlib.import_module(name).f
            inputs = (torch.ones(3), torch.tensor(2))[: f.__code__.co_argcount]
            assert_same_as_eager(f, *inputs)
            check(f, *inputs)
        return {seen for seen, *_ in refusals.seen}

    monkeypatch.syspath_prepend(write("__init__.py", "").parent)
    example: Example = EXAMPLES[code]
    name = code.replace("-", "_")

    def breaks(f: Callable[..., Any], *inputs: Any) -> None:
        with pytest.raises(AssertionError, match="graph break"):
            assert_single_graph(f, *inputs)

    assert code in codes_of(example.before, f"{name}_before", breaks)
    assert codes_of(example.after, f"{name}_after", assert_single_graph) == set()
