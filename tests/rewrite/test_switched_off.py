"""Rules that comments and settings switch off, and what later versions of Python write."""

from __future__ import annotations

import sys

import pytest
from rewritten import RULES, codes

from graphmend_hook.rewrite import active_rules, rewrite
from graphmend_hook.settings.config import Settings

# --- switching off ---

BOTH = """\
import torch
def f(x):{0}
    if x.any():{1}
        x = x + 1{2}
    assert x.all(){3}
    return x
"""
OFF = {
    ("", "", "", ""): ["where mended", "trap mended"],
    ("  # graphmend: off", "", "", ""): ["GM100-R01", "GM100-R01"],
    ("  # graphmend: off[where]", "", "", ""): ["GM100-R01", "trap mended"],
    ("  # graphmend: off[trap]", "", "", ""): ["where mended", "GM100-R01"],
    ("  # graphmend: off[trap, where]", "", "", ""): ["GM100-R01", "GM100-R01"],
    ("  # graphmend: off[defer]", "", "", ""): ["where mended", "trap mended"],
    ("", "  # graphmend: off", "", ""): ["GM100-R01", "trap mended"],
    ("", "", "  # graphmend: off[where]", ""): ["GM100-R01", "trap mended"],
    ("", "", "", "  # graphmend: off[trap]"): ["where mended", "GM100-R01"],
    ("", "", "", "  # graphmend: off[where]"): ["where mended", "trap mended"],
}


@pytest.mark.parametrize("comments", OFF)
def test_comments_switch_rules_off(comments: tuple[str, ...]) -> None:
    assert codes(BOTH.format(*comments)) == OFF[comments]


def test_a_comment_at_the_top_holds_for_the_module() -> None:
    assert codes("# graphmend: off[where]\n" + BOTH.format("", "", "", "")) == ["GM100-R01", "trap mended"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ["where mended", "trap mended"]),
        ("where", ["where mended"]),
        ("trap", ["trap mended"]),
        ("defer", []),
        ("where,trap", ["where mended", "trap mended"]),
    ],
)
def test_settings_choose_the_rules(value: str, expected: list[str]) -> None:
    rules = active_rules(Settings.from_env({"GRAPHMEND_RULES": value}).rules)
    assert codes(BOTH.format("", "", "", ""), rules) == expected


# --- the interpreters ---


@pytest.mark.skipif(sys.version_info < (3, 11), reason="except* is of Python 3.11")
def test_exception_groups_are_handlers() -> None:
    text = "import torch\ndef f(x, n):\n    try:\n        torch._check(bool(x.any()))\n    except* ValueError:\n        n = 1\n    return x\n"
    assert codes(text) == ["GM103-R16"]
    text = "import torch\ndef f(x):\n    try:\n        if x.any():\n            return 1\n    except* ValueError:\n        pass\n    return 2\n"
    assert codes(text) == ["GM102-R06"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are of Python 3.12")
def test_type_parameters() -> None:
    text = "import torch\ndef f[T](x: T) -> T:\n    type A = T\n    if x.any():\n        x = x + 1\n    return x\n"
    assert codes(text) == ["where mended"]
    assert rewrite(text.encode(), "m.py", RULES).code is not None
