"""Each refusal has a remedy of its own, and the examples do what they promise."""

from __future__ import annotations

import pytest

from graphmend_hook.commands.remedies import EXAMPLES, REMEDIES, remedy
from graphmend_hook.commands.rules import codes
from graphmend_hook.config import RULE_NAMES
from graphmend_hook.rewrite import active_rules, rewrite

RULES = active_rules(RULE_NAMES)
OF_RULES = [code for code in codes().values() if code.rule]
HEAD = b"import logging\nimport torch\nlogger = logging.getLogger(__name__)\n"


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


@pytest.mark.parametrize("code", EXAMPLES)
def test_following_it_helps(code: str) -> None:
    before = rewrite(HEAD + EXAMPLES[code].before.encode(), "before.py", RULES)
    assert code in {site.code for site in before.sites}
    after = rewrite(HEAD + EXAMPLES[code].after.encode(), "after.py", RULES)
    assert after.mended == 1
    assert {site.code for site in after.sites} == {""}
