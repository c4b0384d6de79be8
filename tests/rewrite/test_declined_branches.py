"""Branches and guards that are declined, each with its code."""

from __future__ import annotations

import pytest
from rewritten import codes, method, sites

from graphmend_hook.diagnostics import CODES, Outcome
from graphmend_hook.rules.base import Declined

# --- what is declined ---

DECLINED = {
    "GM102-R01": ["if 0 < x.max().item() < n < 3:\n    x = x + 1\nreturn x"],
    "GM102-R02": [
        "if x.any():\n    x = (k := n)\nreturn x",
        "if x.any():\n    x = super().unknown(x)\nreturn x",
        "if x.any():\n    x = [(k := i) for i in n]\nreturn x",
    ],
    "GM102-R03": [
        "if type(n) is str: k = 1\nif x.any():\n    x = x + k\nreturn x",
        "for k in n: pass\nif x.any():\n    x = x + k\nreturn x",
        "if x.any():\n    x = x + k\nk = 1\nreturn x",
        "if x.max() > 1:\n    if not hasattr(self, 'lazy'):\n        self.lazy = k\n    x = n\nk = 1\nreturn x",
    ],
    "GM102-R04": [
        "if x.max() > 1:\n    if not hasattr(self, 'lazy'):\n        self.lazy = n\n    x = n\nreturn self.lazy",
    ],
    "GM102-R05": ["if x.any():\n    k = 1\nreturn k", "if x.any():\n    k = 1\nelse:\n    x = 2\nwhile n:\n    n = k"],
    "GM102-R06": [
        "while n:\n    if x.any():\n        return n\nreturn x",
        "with torch.no_grad():\n    if x.any():\n        return n\nreturn x",
        "try:\n    if x.any():\n        return n\nfinally:\n    n = 1\nreturn x",
    ],
    "GM102-R07": [
        "if x.any():\n" + "    x = x + 1\n" * 61 + "return x",
        "if x.any() and x.all() and x.max() and x.min() and x.sum() and x.mean():\n    x = n\nreturn x",
    ],
    "GM102-R08": [
        "while n:\n    if x.any():\n        break\nreturn x",
        "if x.any():\n    try: x = x + 1\n    finally: pass\nreturn x",
        "if x.any():\n    for i in n:\n        if i: return x\nreturn x",
        "if x.any():\n    for i in n: del x\nreturn x",
        "for k in n:\n    if x.any():\n        with n: break\nreturn x",
        "if x.any():\n    for k in n: x = k\ndef g(): return x\nreturn x",
        "if x.any():\n    del n\nreturn x",
        "if x.any():\n    def g(): ...\nreturn x",
        "if x.any():\n    import os\nreturn x",
        "if x.any():\n    n, *k = x\nreturn x",
        "if x.any():\n    n @= x\nreturn n",
    ],
    "GM102-R09": ["if x.any():\n    x = x + 1\n    print(*n)\nreturn x"],
    "GM102-R10": ["if x.any():\n    x = x + 1\nyield x"],
    "GM102-R11": [
        "if x.any():\n    x = x + 1\nreturn locals()",
        "if x.any():\n    x = x + 1\nreturn sys._getframe()",
        "x = 1 if x.any() else 2\nreturn eval('x')",
    ],
    "GM102-R13": ["if x.any():\n    x = n\nelse:\n    x = x + 1\n    raise\nreturn x"],
    "GM102-R14": ["if x.any():\n    x = n\n    if n is None:\n        raise ValueError(k := 1)\nreturn x"],
    "GM102-R15": ["if x.any():\n    x = n\n    raise ValueError\nelse:\n    raise KeyError"],
    "GM102-R16": [
        "try:\n    if x.any():\n        x = n\n        raise ValueError\nexcept ValueError:\n    pass\nreturn x",
        "try:\n    if x.any():\n        x = n\n        print(n)\nexcept AssertionError:\n    pass\nreturn x",
    ],
    "GM102-R17": ["if x.any():\n    x = x is n\nreturn x"],
    "GM102-R18": ["return (1 if x.any() else 2) + (3 if x.all() else 4)"],
    "GM102-R19": [
        "while x.any():\n    x = x - 1\n    if n is None:\n        x = n\nreturn x",
        "while x.any():\n    x = x - 1\nelse:\n    x = n\nreturn x",
        "while x.any():\n    x = x - 1\n    k = x\nreturn k",
        "while x.any():\n    n(x)\nreturn x",
        "while x.any() or n:\n    x = x - 1\nreturn x",
        "if type(n) is str: k = 1\nwhile x.any():\n    x = x - k\nreturn x",
        "def look(): return x\nwhile x.any():\n    x = x - 1\nreturn x",
        "while x.any():\n    x = [x for _ in n]\nreturn x",
    ],
    "GM103-R01": ["if 0 < x.max().item() < n < 3:\n    raise ValueError", "assert 0 < x.max().item() < n < 3"],
    "GM103-R02": [
        "if x.any() and (k := n):\n    raise ValueError",
        "assert x.any() or (k := n)",
    ],
    "GM103-R03": [
        "if type(n) is str: k = 1\ntorch._check(bool(x.any()), lambda: k)",
    ],
    "GM103-R07": ["if x.any() and x.all() and x.max() and x.min() and x.sum() and x.mean():\n    raise ValueError"],
    "GM103-R10": ["if x.any():\n    raise ValueError\nyield x", "assert x.any()\nyield x"],
    "GM103-R11": ["if x.any():\n    raise ValueError\nreturn vars()", "torch._check(bool(x.any()))\nreturn dir()"],
    "GM103-R13": ["if x.any():\n    raise"],
    "GM103-R14": [
        "if x.any():\n    if n is None:\n        raise ValueError(k := 1)",
    ],
    "GM103-R15": ["if x.any():\n    raise ValueError\nelse:\n    raise KeyError"],
    "GM103-R16": [
        "try:\n    if x.any():\n        raise ValueError\nexcept ValueError:\n    pass",
        "try:\n    with n:\n        if x.any():\n            raise AssertionError\nexcept AssertionError:\n    pass",
        "try:\n    torch._check(bool(x.any()))\nexcept RuntimeError:\n    pass",
    ],
    "GM103-R19": ["torch._check(*x)", "torch._check(**n)", "torch._check_with(ValueError)"],
}
# These need more than a body.
WHOLE = {
    "GM100-R01": ["def f(x):\n    if x.any():  # graphmend: off\n        x = x + 1\n    return x\n"],
    "GM102-R10": ["async def f(x):\n    if x.any():\n        x = x + 1\n    return x\n"],
    "GM102-R12": [
        "import numba\n@numba.njit(cache=True)\ndef f(x):\n    if x.any():\n        x = x + 1\n    return x\n",
        "import triton\n@triton.jit\ndef f(x):\n    def g():\n        return 1 if x.any() else 2\n",
    ],
    "GM103-R12": ["from numba import njit\n@njit\ndef f(x):\n    assert x.any()\n"],
}


@pytest.mark.parametrize(("code", "body"), [(code, body) for code, bodies in DECLINED.items() for body in bodies])
def test_declined_with_its_code(code: str, body: str) -> None:
    found = [site for site in sites(method(body)) if site.rule != "defer"]
    assert [(site.outcome, site.code) for site in found] == [(Outcome.DECLINED, code)]
    assert found[0].reason
    assert "{" not in found[0].reason.replace("{n}", "")  # no placeholder that was not filled


# The trace decides about these, not their text.
LEFT_TO_THE_TRACE = [
    "if x.any():\n    self.a = x\n    x = unknown(x)\nreturn x",
    "if x.any():\n    self.a = x\n    return n\nreturn x",
    "for i in n:\n    if x.any():\n        break\nelse:\n    x = n\nreturn x",
    "if x.any():\n    x = x + 1\nx += 1\nreturn x",
    "if x.any():\n    x = x + 1\nk, m = x.view(-1), n\nk += 1\nreturn x",
    "if x.any():\n    x = x + 1\nfor k in (n, x):\n    k += 1\nreturn x",
    "if x.any():\n    x = x + 1\nk = x if n else n\nk += 1\nreturn x",
    "if x.any():\n    x = x + 1\nk = n or x\nk += 1\nreturn x",
    "if x.any():\n    x = x + 1\nk = helper(n, x)\nk += 1\nreturn x",
    "for i in x:\n    if x.any():\n        return i\nreturn x",
    "with torch.no_grad():\n    if x.any():\n        return n\n    return x",
    "try:\n    if x.any():\n        return n\n    return x\nfinally:\n    n = 1",
    "for i in n:\n    if x.any():\n        break\nreturn x",
    "if x.any():\n    for i in n: x = x + 1\nreturn x",
    "if x.any():\n    with torch.no_grad(): x = x + 1\nreturn x",
    "if x.any():\n    n += 1\nreturn n",
    "if x.any():\n    assert n\n    x = n\nreturn x",
    "if x.any():\n    unknown(x)\nreturn x",
    "if x.any():\n    n.get_logger().warning('a')",
    "if x.any():\n    x = unknown(x)\nreturn x",
    "if x.any():\n    x = x.unknown()\nreturn x",
    "if x.any():\n    x = torch.randn(3)\nreturn x",
    "if x.any():\n    x = torch.add(x, x, out=x)\nreturn x",
    "if x.any():\n    x = torch.add(*x)\nreturn x",
    "if x.any():\n    x = torch.where(x)\nreturn x",
    "if x.any():\n    x = torch.nn.functional.relu(x, True)\nreturn x",
    "if x.any():\n    x = x @ x\nreturn x",
    "if x.any():\n    x = x.clone().add_(1)\nreturn x",
    "if x.any() and unknown(n):\n    x = n\nreturn x",
    "x = unknown(x) if x.any() else x\nreturn x",
    "if x.any():\n    return unknown(x)\nreturn x",
    "if x.any():\n    return x\nreturn unknown(x)",
    "if x.any() and unknown(n):\n    raise ValueError",
    "assert x.any() or unknown(n)",
    "while x.any():\n    x = x - n\nreturn x",
    "while x.any():\n    x = x - 1\n    self.a = x\nreturn x",
    "while x.any() and n < 3:\n    n += 1\n    k = x + n\n    x = k\nreturn x",
    "if x.any():\n    n = x.add_(1)\nreturn n",
    "if x.any():\n    x[n] = 1\n    n = x\nreturn x",
    "if x.any():\n    if n:\n        x[n] = 1\nreturn x",
    "if x.any():\n    n['k'] = x\nreturn x",
    "if x.any():\n    self.a['k'] = x\nreturn x",
]


@pytest.mark.parametrize("body", LEFT_TO_THE_TRACE)
def test_left_to_the_trace(body: str) -> None:
    assert {site.outcome for site in sites(method(body))} == {Outcome.MENDED}


@pytest.mark.parametrize(("code", "text"), [(code, text) for code, texts in WHOLE.items() for text in texts])
def test_declined_for_the_function_around_it(code: str, text: str) -> None:
    assert codes("import torch\n" + text) == [code]


def test_every_code_has_a_case() -> None:
    known = {code for code in CODES if code.startswith(("GM102-R", "GM103-R"))}
    assert known | {"GM100-R01"} == set(DECLINED) | set(WHOLE)


def test_a_rule_without_a_code_of_its_own_gives_that_of_another() -> None:
    declined = Declined(("GM102-R01", "GM103-R01"), "why")
    assert [declined.refusal(rule).code for rule in ("GM102", "GM103", "GM105")] == [
        "GM102-R01",
        "GM103-R01",
        "GM102-R01",
    ]
