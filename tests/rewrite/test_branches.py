"""[Where] and [Trap] as rewriters: what they look at, what they decline and why, what they emit, and that eager stays.

No torch here: objects of our own stand for tensors, and for the runtime where tracing is played.
"""

from __future__ import annotations

import ast
import builtins
import operator
import re
import sys
import textwrap
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

import pytest
from called_names import CALLED

from graphmend_hook import runtime
from graphmend_hook.diagnostics import CODES, Outcome, Site
from graphmend_hook.rewrite import active_rules, rewrite, rewrite_tree
from graphmend_hook.rules.base import Declined
from graphmend_hook.settings.config import Settings
from graphmend_hook.source.scopes import ModuleScope
from graphmend_hook.source.taint import Taint
from graphmend_hook.source.templates import OWN, RUNTIME

RULES = active_rules(("defer", "trap", "where"))
NO, OPEN, MAYBE, YES = Taint.NO, Taint.OPEN, Taint.MAYBE, Taint.YES


def module(text: str) -> str:
    """`text`, dedented, after ``import torch`` on a line of its own."""
    return "import torch\n" + textwrap.dedent(text).strip("\n") + "\n"


def sites(text: str, rules: Any = RULES) -> list[Site]:
    return list(rewrite(text.encode(), "module.py", rules).sites)


def codes(text: str, rules: Any = RULES) -> list[str]:
    """The code of every site, "mended" for those that are."""
    return [site.code if site.outcome is Outcome.DECLINED else f"{site.rule} mended" for site in sites(text, rules)]


# --- which tests are candidates ---

# The body of ``def f(self, x, y: torch.Tensor, n: int)``, whose first `if` or conditional is asked about.
TESTS = {
    "if x > 0: pass": OPEN,
    "if not (n and x == n): pass": OPEN,
    "if x.begin < 3: pass": OPEN,
    "z = unknown(y)\nif z > 1: pass": OPEN,
    "z, w = unknown(y)\nif w > 1: pass": OPEN,
    "for z in zip(x, x): w = z[0]\nif w > n: pass": OPEN,
    "z = unknown(n)\nif z > 1: pass": OPEN,
    "if x == 'name': pass": NO,
    "if x == (1, 2): pass": NO,
    "if x != None: pass": NO,
    "if x == y.dtype: pass": NO,
    "if x == torch.float16: pass": NO,
    "if x is n: pass": NO,
    "if n in x: pass": OPEN,
    "if n not in x.begin: pass": OPEN,
    "if 'name' in x: pass": NO,
    "if x in (1, 2): pass": NO,
    "if n in x.shape: pass": NO,
    "if n in kwargs: pass": NO,
    "if any(x == n): pass": OPEN,
    "if any(n > 1 for n in x): pass": NO,
    "if all(y > n): pass": YES,
    "if len(x) > n: pass": OPEN,
    "if x.shape[0] > n: pass": OPEN,
    "if x.config.begin > 0: pass": NO,
    "if self.config.begin > 0: pass": NO,
    "num_x = unknown(y)\nif num_x > 0: pass": NO,
    "if x: pass": NO,
    "if n: pass": NO,
    "if x is None: pass": NO,
    "if y is not None: pass": NO,
    "if n in y: pass": YES,
    "if not isinstance(y, int): pass": NO,
    "if y.shape[0] > 1: pass": NO,
    "if y.dtype == torch.float16: pass": NO,
    "if y.size(0) > 1: pass": NO,
    "if len(y) > 1: pass": NO,
    "if y.dim() == 2: pass": NO,
    "if self.training: pass": NO,
    "if x.numel() == 0: pass": NO,
    "if x[1:].numel() == 0: pass": NO,
    "if torch.is_grad_enabled(): pass": NO,
    "if x.unknown(): pass": NO,
    "if unknown(y): pass": NO,
    "if y: pass": YES,
    "if y > 0: pass": YES,
    "if not y: pass": YES,
    "if -y[0] == n: pass": YES,
    "if n and y: pass": YES,
    "if 0 < n < y: pass": YES,
    "if x.any(): pass": YES,
    "if x.isnan().any(): pass": YES,
    "if x.item() > 3: pass": YES,
    "if torch.any(x): pass": YES,
    "if torch.equal(x, n): pass": YES,
    "if torch.nn.functional.softmax(x): pass": YES,
    "if bool(torch.max(x)): pass": YES,
    "if max(n, y) > 1: pass": YES,
    "if int(y) == 1: pass": YES,
    "if y.sum(): pass": YES,
    "if x.max().max(): pass": YES,
    "if x.sum(): pass": MAYBE,
    "if x.max() > n: pass": MAYBE,
    "if n == 0 or x.max() > n: pass": MAYBE,
    "if x[n].numel() > 0: pass": MAYBE,
    "if x[x > 0].size(): pass": MAYBE,
    "z = x.any()\nif z: pass": YES,
    "z, k = x.any(), n\nif k: pass": NO,
    "z, k = x.any(), n\nif z: pass": YES,
    "z: bool = y > 0\nif z: pass": YES,
    "z = n\nz += y\nif z: pass": YES,
    "z = x.max()\nk = z * 2\nif k: pass": MAYBE,
    "if n:\n    z = y\nelse:\n    z = n\nif z: pass": YES,
    "while n:\n    k = z\n    z = y\nif k: pass": YES,
    "if (z := x.any()) and n: pass": YES,
    "if (z := y) is not None and z: pass": YES,
    "n = z if (z := y) else 0": YES,
    "n = 1 if x.any() else 0": YES,
    "n = 1 if x > 0 else 0": OPEN,
    "if helper(x): pass": MAYBE,
    "if plain_helper(x): pass": NO,
    "if self.method(x): pass": MAYBE,
    "if self.plain_method(x): pass": NO,
    "if other.method(x): pass": NO,
    "if again(x): pass": NO,
    "if through(x): pass": MAYBE,
    "y = n\nif y: pass": YES,  # what a name is bound to elsewhere counts; the traced value has the last word
}
HELPERS = """\
def helper(x):
    if x: return None
    return (x > 0).any()
def plain_helper(x):
    return x.shape
def again(x):
    return again(x)
def through(x):
    return helper(x)
"""


def asked(text: str) -> Taint:
    """The taint of the first test in the last function of `text`."""
    tree = ast.parse(text)
    scope = ModuleScope(tree, text.encode())
    function = list(scope.functions.values())[-1]
    tests = [node for node in ast.walk(function.node) if isinstance(node, (ast.If, ast.IfExp))]
    return scope.evidence(function).of_test(max(tests, key=lambda node: node.lineno).test)


@pytest.mark.parametrize("body", TESTS)
def test_what_speaks_for_tensor_data(body: str) -> None:
    method = "def method(self, x):\n    return torch.isnan(x)\ndef plain_method(self, x):\n    return 1\n"
    inside = method + "def f(self, x, y: torch.Tensor, n: int):\n" + textwrap.indent(body, "    ")
    text = f"import torch\n{HELPERS}class A:\n" + textwrap.indent(inside, "    ") + "\n"
    assert asked(text) is TESTS[body]
    last = [site for site in sites(text) if site.function == "A.f" and site.line == text.count("\n")]
    assert bool(last) is (TESTS[body] is not NO)


IMPORTED = {
    "import torch as th\ndef f(x):\n    if th.isnan(x): pass\n": YES,
    "from torch import isnan as n\ndef f(x):\n    if n(x): pass\n": YES,
    "from torch import isnan\ndef f(x):\n    if isnan(x): pass\n": YES,
    "import torch.nn.functional as F\ndef f(x):\n    if F.softmax(x, 1)[0] > 1: pass\n": YES,
    "from torch.nn import functional as F\ndef f(x):\n    if F.relu(x): pass\n": YES,
    "from torch import nn\ndef f(x):\n    if nn.functional.relu(x): pass\n": YES,
    "def f(x):\n    import torch as th\n    if th.max(x): pass\n": YES,
    "from math import isnan\ndef f(x):\n    if isnan(x): pass\n": NO,
    "import numpy as torch\ndef f(x):\n    if torch.max(x): pass\n": NO,
    "import math\ndef f(x):\n    if math.isnan(x): pass\n": NO,
    "def f(x):\n    if isnan(x): pass\n": NO,
    "from .torch import isnan\ndef f(x):\n    if isnan(x): pass\n": NO,
    "def f(x: 'torch.Tensor'):\n    if x: pass\n": YES,
    "def f(x: torch.Tensor | None = None):\n    if x: pass\n": YES,
    "def f(x: 'Optional[torch.LongTensor]'):\n    if x: pass\n": YES,
    "def f(*, x: Optional[Tensor] = None):\n    if x: pass\n": YES,
    "def f(x: Tensor, /):\n    if x: pass\n": YES,
    "def f(x: list[torch.Tensor]):\n    if x: pass\n": NO,
    "def f(x: TensorDict):\n    if x: pass\n": NO,
    "def f(x: torch.Tensor):\n    def g(x):\n        if x: pass\n": NO,
    "def f(x):\n    def g():\n        if x.isnan(): pass\n": YES,
    "def f(bool, x: torch.Tensor):\n    if bool(x): pass\n": YES,
}


@pytest.mark.parametrize("text", IMPORTED)
def test_imports_annotations_and_shadowed_names(text: str) -> None:
    assert asked("import typing, torch\n" + text) is IMPORTED[text]


@pytest.mark.parametrize("name", ["len", "abs", "max"])
@pytest.mark.parametrize(
    "binding", ["def {0}(x): ...", "{0} = n", "from n import {0}", "class {0}: ...", "import n as {0}"]
)
def test_a_builtin_that_the_function_binds_is_none(name: str, binding: str) -> None:
    body = f"{binding.format(name)}\nif x.any():\n    x = {name}(x)\nreturn x"
    assert codes(method(body)) == ["GM102-R02"]


def test_a_masked_write_after_an_early_return() -> None:
    """It is the last statement of a side, but not of one that is assigned."""
    assert codes(method("if x.any():\n    return x\nx[n] = 1")) == ["GM102-R08"]


def test_a_module_without_torch_is_not_parsed() -> None:
    assert codes("def f(x):\n    if x.any():\n        x = 1\n    assert x.any()\n    return x\n") == []


# --- what is declined ---

DECLINED = {
    "GM102-R01": ["if 0 < x.max().item() < n < 3:\n    x = x + 1\nreturn x"],
    "GM102-R02": [
        "if x.any():\n    n.get_logger().warning('a')",
        "if x.any():\n    x = unknown(x)\nreturn x",
        "if x.any():\n    x = x.unknown()\nreturn x",
        "if x.any():\n    x = torch.randn(3)\nreturn x",
        "if x.any():\n    x = torch.add(x, x, out=x)\nreturn x",
        "if x.any():\n    x = torch.add(*x)\nreturn x",
        "if x.any():\n    x = torch.where(x)\nreturn x",
        "if x.any():\n    x = torch.nn.functional.relu(x, True)\nreturn x",
        "if x.any():\n    x = [i for i in n]\nreturn x",
        "if x.any():\n    x = x @ x\nreturn x",
        "if x.any():\n    x = (k := n)\nreturn x",
        "if x.any():\n    x = f'{n}'\nreturn x",
        "if x.any():\n    x = 0 < n < 3\nreturn x",
        "if x.any():\n    unknown(x)\nreturn x",
        "if x.any() and unknown(n):\n    x = n\nreturn x",
        "x = unknown(x) if x.any() else x\nreturn x",
        "if x.any():\n    return unknown(x)\nreturn x",
        "if x.any():\n    return x\nreturn unknown(x)",
    ],
    "GM102-R03": [
        "if n: k = 1\nif x.any():\n    x = x + k\nreturn x",
        "for k in n: pass\nif x.any():\n    x = x + k\nreturn x",
        "if x.any():\n    x = x + k\nk = 1\nreturn x",
        "if x.max() > 1:\n    if not hasattr(self, 'lazy'):\n        self.lazy = k\n    x = n\nk = 1\nreturn x",
    ],
    "GM102-R04": [
        "if x.any():\n    self.a = x\n    x = n.a\nreturn x",
        "if x.any():\n    self.a = x\n    x = getattr(self, 'a')\nreturn x",
        "if x.any():\n    self.a = x\n    self = n\nreturn x",
        "if x.any():\n    self.a = n.a = x\nreturn x",
        "if x.max() > 1:\n    if not hasattr(self, 'lazy'):\n        self.lazy = n\n    x = n\nreturn self.lazy",
    ],
    "GM102-R05": ["if x.any():\n    k = 1\nreturn k", "if x.any():\n    k = 1\nelse:\n    x = 2\nwhile n:\n    n = k"],
    "GM102-R06": [
        "for i in x:\n    if x.any():\n        return i\nreturn x",
        "with torch.no_grad():\n    if x.any():\n        return n\n    return x",
        "try:\n    if x.any():\n        return n\n    return x\nfinally:\n    n = 1",
        "if x.any():\n    self.a = x\n    return n\nreturn x",
    ],
    "GM102-R07": [
        "if x.any():\n" + "    x = x + 1\n" * 61 + "return x",
        "if x.any() and x.all() and x.max() and x.min() and x.sum() and x.mean():\n    x = n\nreturn x",
    ],
    "GM102-R08": [
        "if x.any():\n    for i in n: x = x + 1\nreturn x",
        "if x.any():\n    with torch.no_grad(): x = x + 1\nreturn x",
        "if x.any():\n    try: x = x + 1\n    finally: pass\nreturn x",
        "if x.any():\n    del n\nreturn x",
        "for i in n:\n    if x.any():\n        break\nreturn x",
        "if x.any():\n    def g(): ...\nreturn x",
        "if x.any():\n    import os\nreturn x",
        "if x.any():\n    n, *k = x\nreturn x",
        "if x.any():\n    x[n] = 1\n    n = x\nreturn x",
        "if x.any():\n    if n:\n        x[n] = 1\nreturn x",
        "if x.any():\n    n.a.b = 1\nreturn x",
        "if x.any():\n    n['k'] = x\nreturn x",
        "if x.any():\n    self.a['k'] = x\nreturn x",
        "if x.any():\n    n += 1\nreturn n",
        "if x.any():\n    assert n\n    x = n\nreturn x",
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
    "GM102-R14": ["if x.any():\n    x = n\n    if n:\n        raise ValueError(k := 1)\nreturn x"],
    "GM102-R15": ["if x.any():\n    x = n\n    raise ValueError\nelse:\n    raise KeyError"],
    "GM102-R16": [
        "try:\n    if x.any():\n        x = n\n        raise ValueError\nexcept ValueError:\n    pass\nreturn x",
        "try:\n    if x.any():\n        x = n\n        print(n)\nexcept AssertionError:\n    pass\nreturn x",
    ],
    "GM102-R17": [
        "if x.any():\n    x = x + 1\nx.add_(1)\nreturn x",
        "if x.any():\n    x = x + 1\nx += 1\nreturn x",
        "if x.any():\n    x = x + 1\nx[0] = 1\nreturn x",
        "if x.any():\n    x = x + 1\nk = x\nk.zero_()\nreturn x",
        "if x.any():\n    x = x + 1\nreturn x is n",
        "if x.any():\n    x = x + 1\ntorch.add(n, 1, out=x)\nreturn x",
        "for i in n:\n    x.add_(1)\n    if x.any():\n        x = x + 1\nreturn x",
        "if x.any():\n    x = x is n\nreturn x",
        "n = x if x.any() else n\nn.add_(1)\nreturn n",
        "if x.any():\n    x = x + 1\nx.reshape(-1)[0] = 1\nreturn x",
        "if x.any():\n    x = x + 1\nk = x.T\nk[0] = 1\nreturn x",
        "if x.any():\n    x = x + 1\nk, m = x.view(-1), n\nk += 1\nreturn x",
        "if x.any():\n    x = x + 1\nk, *m = x\nm[0] += 1\nreturn x",
        "if x.any():\n    x = x + 1\nfor k in (n, x):\n    k += 1\nreturn x",
        "if x.any():\n    x = x + 1\nk = x if n else n\nk += 1\nreturn x",
        "if x.any():\n    x = x + 1\nk = n or x\nk += 1\nreturn x",
        "if x.any():\n    x = x + 1\nk = helper(n, x)\nk += 1\nreturn x",
        "if x.any():\n    x = x + 1\ntorch.squeeze(x).add_(1)\nreturn x",
        "if x.any():\n    x = x + 1\ntorch.relu_(x)\nreturn x",
    ],
    "GM102-R18": ["return (1 if x.any() else 2) + (3 if x.all() else 4)"],
    "GM103-R01": ["if 0 < x.max().item() < n < 3:\n    raise ValueError", "assert 0 < x.max().item() < n < 3"],
    "GM103-R02": [
        "if x.any() and unknown(n):\n    raise ValueError",
        "if x.any():\n    if unknown(n): raise ValueError",
        "assert x.any() or unknown(n)",
    ],
    "GM103-R03": [
        "if n: k = 1\ntorch._check(bool(x.any()), lambda: k)",
    ],
    "GM103-R07": ["if x.any() and x.all() and x.max() and x.min() and x.sum() and x.mean():\n    raise ValueError"],
    "GM103-R10": ["if x.any():\n    raise ValueError\nyield x", "assert x.any()\nyield x"],
    "GM103-R11": ["if x.any():\n    raise ValueError\nreturn vars()", "torch._check(bool(x.any()))\nreturn dir()"],
    "GM103-R13": ["if x.any():\n    raise"],
    "GM103-R14": [
        "if x.any():\n    if n:\n        raise ValueError(k := 1)",
    ],
    "GM103-R15": ["if x.any():\n    raise ValueError\nelse:\n    raise KeyError"],
    "GM103-R16": [
        "try:\n    if x.any():\n        raise ValueError\nexcept ValueError:\n    pass",
        "try:\n    with n:\n        if x.any():\n            raise AssertionError\nexcept AssertionError:\n    pass",
        "try:\n    torch._check(bool(x.any()))\nexcept RuntimeError:\n    pass",
    ],
    "GM103-R19": ["torch._check(*x)", "torch._check(**n)", "torch._check_with(ValueError)"],
}
# What a function that is run again as it was written raises by itself.
RAISED_AGAIN = [
    "assert x.any(), unknown(x)",
    "if n: k = 1\nassert x.any(), k",
    "if x.any():\n    raise ValueError(k := 1)",
    "if x.any():\n    raise super().error(1)",
    "if x.any():\n    raise ValueError(variable)",
    "if x.any():\n    raise ValueError(unknown(x))",
    "if x.any():\n    raise ValueError(reads_variable())",
    "if n: k = 1\nif x.any():\n    raise ValueError(k)",
    "if x.any():\n    k = unknown(x)\n    raise ValueError(k)",
    "if x.any():\n    for k in x: unknown(k)\n    raise ValueError",
    "if x.any():\n    x = unknown(x)\nelse:\n    raise ValueError",
    "if x.any():\n    if unknown(x):\n        raise KeyError\n    else:\n        raise ValueError\nreturn x",
]
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
PRELUDE = (
    "variable = 1\ndef reads_variable():\n    return variable\ndef sets():\n    global variable\n    variable = 2\n"
)


def method(body: str) -> str:
    """A module with a method of that body."""
    text = "def f(self, x, n):\n" + textwrap.indent(body, "    ")
    return f"import sys, torch\n{PRELUDE}class A:\n" + textwrap.indent(text, "    ") + "\n"


@pytest.mark.parametrize(("code", "body"), [(code, body) for code, bodies in DECLINED.items() for body in bodies])
def test_declined_with_its_code(code: str, body: str) -> None:
    found = [site for site in sites(method(body)) if site.rule != "defer"]
    assert [(site.outcome, site.code) for site in found] == [(Outcome.DECLINED, code)]
    assert found[0].reason
    assert "{" not in found[0].reason.replace("{n}", "")  # no placeholder that was not filled


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


# --- what is mended, and executed ---

# Modules with a function `f`, which takes a scalar `x` that stands for a tensor, and a number `n`.
MENDED = {
    "if": "def f(x: torch.Tensor, n):\n    if x > n:\n        x = x + 1\n        k = x\n    else:\n        k = -x\n    return x, k\n",
    "no else": "def f(x: torch.Tensor, n):\n    if torch.isnan(x) or x.abs() > 2:\n        x = torch.clamp(x, min=-2, max=2)\n    return x\n",
    "elif": "def f(x: torch.Tensor, n):\n    if x > 1:\n        k = 1\n    elif x < 0:\n        k = 1\n    elif n:\n        k = 1\n    else:\n        k = 1\n    return k, x\n",
    "nested": "def f(x: torch.Tensor, n):\n    k = x\n    if x > 0:\n        k = x + 1\n        if x > 2:\n            k = k * 2\n        elif n > 1:\n            k = k - n\n    return k\n",
    "tuples": "def f(x: torch.Tensor, n):\n    k, (y, z) = n, (x, x)\n    if x.any():\n        k, (y, z) = n, (z + 1, y)\n    return k, y, z\n",
    "return": "def f(x: torch.Tensor, n):\n    if x > 1:\n        return x + 1\n    return x - 1\n",
    "several returns": "def f(x: torch.Tensor, n):\n    if x > 3:\n        return x\n    y = x * 2\n    if y < 0:\n        return y\n    elif n:\n        return y + n\n    return y - 1\n",
    "return or not": "def f(x: torch.Tensor, n):\n    if x > 1:\n        if n:\n            return x + n\n        x = x + 1\n    y = x\n    return y\n",
    "no value": "def f(x: torch.Tensor, n):\n    if x > 1:\n        return\n    return\n",
    "conditional": "def f(x: torch.Tensor, n):\n    y = x + (x + 1 if x > n else x - 1) * 2\n    return y\n",
    "returned conditional": "def f(x: torch.Tensor, n):\n    return [x * 2 if x.any() and n else x]\n",
    "conditional with a walrus": "def f(x: torch.Tensor, n):\n    y = -x if (z := x + 1).any() else x\n    return y, z\n",
    "attribute": "class A:\n    a = 1\ndef f(x: torch.Tensor, n):\n    self = A()\n    self.a = x\n    if x > 1:\n        self.a = self.a + 1\n        self.a = self.a * x\n    return self.a\n",
    "and or not": "def f(x: torch.Tensor, n):\n    k = n\n    if not (x > 1 and (n or not x < 3)) or n == 2 and x.any():\n        k = n\n        x = -x\n    return k, x\n",
    "chain": "def f(x: torch.Tensor, n):\n    if 0 < x <= n:\n        x = x + 1\n    if n < 1 < 2 and x.any():\n        x = -x\n    return x\n",
    "reads": "def f(x: torch.Tensor, n):\n    k = x\n    if bool(x.item() > n):\n        k = x + 1\n    if torch.equal(x, k) or x > 1:\n        k = k + 1\n    return k\n",
    "loop": "def f(x: torch.Tensor, n):\n    for i in range(n):\n        if x > i:\n            x = x + i\n            continue_ = x\n        else:\n            continue_ = x\n    return x\n",
    "while and with": "def f(x: torch.Tensor, n):\n    while n > 0:\n        with torch.no_grad():\n            if x.any():\n                x = x - 1\n        n -= 1\n    return x\n",
    "in a handler": "def f(x: torch.Tensor, n):\n    try:\n        y = 1 // n\n    except ZeroDivisionError as error:\n        if x.any():\n            x = x + 1\n    finally:\n        if x > 1:\n            x = x + 2\n    return x\n",
    "match": "def f(x: torch.Tensor, n):\n    match n:\n        case 1:\n            if x.any():\n                x = x + 1\n        case 2 | 3 if x > 0:\n            x = -x if x > 1 else x\n    return x\n",
    "comprehension and lambda": "def f(x: torch.Tensor, n):\n    k = [i for i in range(n)]\n    g = lambda k: x\n    if x > 1:\n        n = n * 1\n        k = k + k\n    else:\n        k = k + k\n    return k, g(k), n\n",
    "elif that raises": "def f(x: torch.Tensor, n):\n    if x > 2:\n        x = x + 1\n    elif x < 0:\n        raise ValueError(x)\n    else:\n        x = x * n\n    return x\n",
    "a generator expression reads late": "def f(x: torch.Tensor, n):\n    g = (x + i for i in range(2))\n    if x.any():\n        x = x + n\n    return list(g)\n",
    "break through finally": "def f(x: torch.Tensor, n):\n    for i in range(2):\n        try:\n            if i == n:\n                break\n        finally:\n            if x.any():\n                x = x + 1\n        x = n\n    return x\n",
    "closures": "def f(x: torch.Tensor, n):\n    k = 1\n    def g(y: torch.Tensor):\n        nonlocal k\n        k += 1\n        if y > k:\n            y = y + k + n\n        return lambda: y\n    if x > 1:\n        x = x + k\n    return g(x)(), k\n",
    "shared call": "def f(x: torch.Tensor, n):\n    self = torch.nn.Module()\n    if x > 1:\n        y = x + 1\n        self.register_buffer('k', y, persistent=n)\n    else:\n        self.register_buffer('k', x, persistent=n)\n    return self.k\n",
    "guard": "def f(x: torch.Tensor, n):\n    if x.max() >= n:\n        raise ValueError(f'{x.max()} of {n}', x)\n    return x\n",
    "guards": "def f(x: torch.Tensor, n):\n    if x > 3:\n        raise ValueError(n)\n    elif x < 0:\n        if n:\n            raise KeyError(x, n) from None\n    else:\n        pass\n    return x\n",
    "guard else": "def f(x: torch.Tensor, n):\n    if not x > n:\n        pass\n    else:\n        raise ValueError\n    return x\n",
    "guard in a side": "def f(x: torch.Tensor, n):\n    if x > 1:\n        x = x + 1\n        if x > n:\n            raise ValueError(f'too {x}')\n        elif x.any():\n            pass\n        else:\n            raise KeyError(n)\n    return x\n",
    "raising side": "def f(x: torch.Tensor, n):\n    if x > 1:\n        y = x + 1\n        raise ValueError(y, n)\n    else:\n        x = n\n    return x\n",
    "raise or return": "def f(x: torch.Tensor, n):\n    if x > 2:\n        return x\n    if x < 0:\n        raise ValueError(x)\n    return -x\n",
    "assert": "def f(x: torch.Tensor, n):\n    assert x > 1\n    assert (x < 4 and n), f'{x} {n}'\n    return x\n",
    "check": "def f(x: torch.Tensor, n):\n    torch._check(bool(x > 1), lambda: f'got {n}')\n    torch._check_with(ValueError, x.item() < 4)\n    return x\n",
    "number": "def f(x: torch.Tensor, n):\n    k = x.max().item()\n    if k > 3:\n        raise ValueError(f'{k}')\n    assert k >= n - 2 and not k == 7, k\n",
    "log in a side": "def f(x: torch.Tensor, n):\n    if x > 1:\n        x = x + 1\n        print(f'big {n}', x)\n    else:\n        warnings.warn('small')\n    return x\n",
    "lines": "def f(x: torch.Tensor, n):\n    if (\n        x > 1\n    ):\n        x = (\n            x +\n            n\n        )\n    return x.fail\n",
    "failing side": "def f(x: torch.Tensor, n):\n    if x > 1:\n        x = x.shape[n]\n    else:\n        x = x.shape\n    return x\n",
    "failing test": "def f(x: torch.Tensor, n):\n    if n.any() and x > 1:\n        x = x + 1\n    return x\n",
    "masked write": "def f(x: torch.Tensor, n):\n    y = {n: x}\n    if x > 1:\n        n = n + 0\n        y[n] = x + 1\n    return y, n\n",
    "lazy": "class A: pass\nmake = A\nself = A()\ndef f(x: torch.Tensor, n):\n    if x > 1:\n        if not hasattr(self, 'lazy'):\n            self.lazy = make()\n        x = x + 1\n    return x\n",
}


class Scalar:
    """Stands for a tensor of one element."""

    shape = (3, 4)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __repr__(self) -> str:
        return f"Scalar({self.value!r})"

    def item(self) -> Any:
        return self.value

    def __invert__(self) -> Scalar:
        return Scalar(not self.value)

    def __neg__(self) -> Scalar:
        return Scalar(-self.value)

    def abs(self) -> Scalar:
        return Scalar(abs(self.value))

    def any(self) -> Scalar:
        return Scalar(bool(self.value))

    all = any

    def max(self) -> Scalar:
        return Scalar(self.value)

    def equal(self, other: Scalar) -> bool:
        return bool(self.value == other.value)


def _operator(name: str) -> Callable[[Scalar, Any], Scalar]:
    function = getattr(operator, name)
    return lambda self, other: Scalar(function(self.value, other.value if isinstance(other, Scalar) else other))


for _name in ("add", "sub", "mul", "gt", "ge", "lt", "le"):
    setattr(Scalar, f"__{_name}__", _operator(_name))


def _clamp(x: Scalar, *, min: Any, max: Any) -> Scalar:
    return Scalar(builtins.max(min, builtins.min(max, x.value)))


class _NoGrad:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def _check_with(kind: type[Exception], condition: Any, message: Any = None) -> None:
    if not isinstance(condition, bool):
        raise TypeError("a check takes a bool")
    if not condition:
        raise kind(message() if message else "no")


TORCH = SimpleNamespace(
    Tensor=Scalar,
    isnan=lambda x: Scalar(x.value != x.value),
    clamp=_clamp,
    equal=lambda a, b: a.value == b.value,
    no_grad=_NoGrad,
    _check=lambda condition, message: _check_with(RuntimeError, bool(condition), message),
    _check_with=_check_with,
)


def namespace(code: CodeType) -> dict[str, Any]:
    """The module's names after `code` ran with our torch."""

    def import_(name: str, *rest: Any) -> Any:
        return known[name] if name in known else __import__(name, *rest)

    known = {"torch": TORCH, "warnings": SimpleNamespace(warn=lambda text: print("warned", text))}

    names: dict[str, Any] = {"__name__": "m", "__builtins__": {**vars(builtins), "__import__": import_}}
    exec(code, names)
    return names


def call(code: CodeType, *arguments: Any) -> tuple[Any, ...]:
    """What ``f(*arguments)`` of the module gives or raises; then the lines of its frames, as in a traceback."""
    try:
        return ("returned", repr(namespace(code)["f"](*arguments)), [])
    except Exception as error:
        lines, traceback = [], error.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == "m.py":
                lines.append((traceback.tb_frame.f_code.co_name, traceback.tb_lineno))
            traceback = traceback.tb_next
        return (type(error), repr(error.args), lines)


ARGUMENTS = [(Scalar(x), n) for x in (-1, 0, 1, 2, 5) for n in (0, 1, 2)]


def both(title: str) -> tuple[CodeType, CodeType]:
    text = "import torch, warnings\n" + MENDED[title]
    mended = rewrite(text.encode(), "m.py", RULES)
    assert mended.code is not None
    return compile(text, "m.py", "exec", dont_inherit=True), mended.code


@pytest.mark.parametrize("title", MENDED)
def test_mended(title: str) -> None:
    found = sites("import torch, warnings\n" + MENDED[title])
    assert found
    assert [(site.code, site.reason, site.line) for site in found if site.outcome is not Outcome.MENDED] == []


@pytest.fixture
def eager() -> Iterator[None]:
    """Nothing is traced, whatever other tests have imported."""
    saved = dict(vars(runtime))
    runtime.compiling = runtime.tracing = lambda: False
    yield
    vars(runtime).clear()
    vars(runtime).update(saved)


@pytest.mark.parametrize("title", MENDED)
def test_eager_is_untouched(title: str, eager: None, capsys: Any) -> None:
    original, mended = both(title)
    for arguments in ARGUMENTS:
        expected = call(original, *arguments), capsys.readouterr()
        assert (call(mended, *arguments), capsys.readouterr()) == expected


def functions(code: CodeType) -> dict[str, CodeType]:
    """The user's functions below `code`, by path; two of one name are one."""
    found = {}
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and not _is_ours(constant, code):
            found[constant.co_name] = constant
            found |= {f"{constant.co_name}.{name}": inner for name, inner in functions(constant).items()}
    return found


def _is_ours(code: CodeType, outer: CodeType) -> bool:
    arguments = code.co_varnames[: code.co_argcount]
    return any(argument.startswith(OWN) for argument in arguments) or code.co_name == "<lambda>"


@pytest.mark.parametrize("title", MENDED)
def test_the_variables_of_a_function_stay_what_they_were(title: str) -> None:
    original, mended = (functions(code) for code in both(title))
    assert original.keys() == mended.keys()
    for name, code in original.items():
        for kind in ("co_varnames", "co_cellvars", "co_freevars"):
            ours = [spelling for spelling in getattr(mended[name], kind) if not spelling.startswith(OWN)]
            assert sorted(ours) == sorted(getattr(code, kind)), (name, kind)
        assert code.co_firstlineno == mended[name].co_firstlineno
        assert code.co_argcount == mended[name].co_argcount
        assert code.co_flags == mended[name].co_flags


# --- tracing, played ---


class Tracing:
    """Functions in the runtime's place: scalars are undecided, both sides are evaluated, and what counts is done."""

    def __init__(self, undecided: bool) -> None:
        self._undecided = undecided

    def names(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in dir(self) if not name.startswith("_") and name != "names"}
        return own | {"compiling": lambda: True, "tracing": lambda: False, "slice": slice}

    def undecided(self, test: object) -> bool:
        return self._undecided and isinstance(test, Scalar)

    def select(self, test: Scalar, sides: Any, arguments: Any, effects: Any) -> Any:
        done: tuple[list[Any], list[Any]] = ([], [])
        try:
            results = [side(found, *arguments) for side, found in zip(sides, done)]
        except (AttributeError, IndexError):  # GM102-T05
            return None
        taken = 0 if test else 1
        if effects is not None:
            effects.extend(done[taken])
            return results[1 - taken] if results[taken] is None else results[taken]
        for _, kind, delivery, target, values in done[taken]:
            if kind == "=":
                target[values[0]] = values[1]
            else:
                delivery(target, values)
        assert results[taken] is not None, "a side that raises leaves its exception"
        return results[taken]

    def is_other(self, value: Any, current: Any) -> bool:
        return value is not current

    def nested(self, test: Any, sides: Any, arguments: Any, effects: Any) -> Any:
        if not self.undecided(test):
            return sides[0 if test else 1](effects, *arguments)
        outcome = self.select(test, sides, arguments, effects)
        if outcome is None:
            raise IndexError
        return outcome

    select_returned, nested_returned = select, nested

    def negate(self, test: Any) -> Any:
        return ~test if self.undecided(test) else not test

    def both(self, left: Any, right: Any) -> Any:
        return Scalar(bool(left and right))

    def either(self, left: Any, right: Any) -> Any:
        return Scalar(bool(left or right))

    def early(self, join: Any, left: Any, right: Any, arguments: Any) -> Any:
        return join(left, right(*arguments))

    def compare(self, name: str, left: Any, right: Any, numbers: Any) -> Any:
        return getattr(operator, name)(left, right)

    number = one_value = plain = settle = staticmethod(lambda value: value)
    spared = staticmethod(lambda test, raises: None)

    def equal(self, left: Any, right: Any) -> Any:
        return Scalar(left.value == right.value)

    def attribute(self, owner: Any, name: str) -> Any:
        return getattr(owner, name)

    current = unrelated = attribute

    def item_of(self, container: Any, key: Any) -> Any:
        return container[key]

    def operate(self, name: str, *operands: Any) -> Any:
        return getattr(operator, name)(*operands)

    def attempt(self, name: str, function: Any, *arguments: Any, **options: Any) -> Any:
        return function(*arguments, **options)

    def attempt_method(self, name: str, receiver: Any, *arguments: Any, **options: Any) -> Any:
        return getattr(receiver, name)(*arguments, **options)

    def asserted(self, value: Any, _reads: bool) -> Any:
        return value

    def is_check(self, function: Any) -> bool:
        return True

    def is_bool(self, test: Any) -> bool:
        return True

    def watch(self, owner: object, attribute: str) -> bool:
        return True

    def harmless(self) -> None: ...

    def unheard(self, raised: object) -> None: ...

    def is_of_module(self, owner: object, method: str) -> bool:
        return True


@pytest.mark.parametrize("undecided", [True, False])
@pytest.mark.parametrize("title", MENDED)
def test_the_emitted_sides_do_what_the_statement_does(title: str, undecided: bool, capsys: Any) -> None:
    original, mended = both(title)
    saved = dict(vars(runtime))
    try:
        vars(runtime).update(Tracing(undecided).names())
        for arguments in ARGUMENTS:
            expected, printed = call(original, *arguments), capsys.readouterr()
            found = call(mended, *arguments)
            assert found[:2] == expected[:2], arguments
            assert capsys.readouterr() == printed
            assert found[2][-1:] == expected[2][-1:], "the line that raises"
    finally:
        vars(runtime).clear()
        vars(runtime).update(saved)


# --- the form ---

FORMS = {
    "if": (
        """
        def f(x):
            if x.any():
                x = x + 1
            return x
        """,
        """
        def f(x):
            if GM.compiling():
                TEST = x.any()
                OUTCOME = None
                if GM.undecided(TEST):
                    def THEN(EFFECTS, x):
                        x = GM.operate('add', x, 1)
                        return (x,)
                    def ELSE(EFFECTS, x):
                        return (x,)
                    OUTCOME = GM.select(TEST, (THEN, ELSE), (x,), None)
                if OUTCOME is not None:
                    x = OUTCOME[0]
                elif GM.settle(TEST):
                    x = x + 1
            elif x.any():
                x = x + 1
            return x
        """,
    ),
    "early return": (
        """
        def f(x):
            if x.any():
                return x.abs()
            y = torch.relu(x)
            return y
        """,
        """
        def f(x):
            if GM.compiling():
                TEST = x.any()
                OUTCOME = None
                if GM.undecided(TEST):
                    def THEN(EFFECTS, x):
                        return (GM.attempt_method('abs', x),)
                    def ELSE(EFFECTS, x):
                        y = GM.attempt('relu', torch.relu, x)
                        return (y,)
                    OUTCOME = GM.select_returned(TEST, (THEN, ELSE), (x,), None)
                if OUTCOME is not None:
                    return OUTCOME[0]
                elif GM.settle(TEST):
                    return x.abs()
            elif x.any():
                return x.abs()
            y = torch.relu(x)
            return y
        """,
    ),
    "conditional": (
        """
        def f(x):
            y = g(x, -x if x.any() else x)
            return y
        """,
        """
        def f(x):
            if GM.compiling():
                def THEN(EFFECTS, x):
                    return (GM.operate('neg', x),)
                def ELSE(EFFECTS, x):
                    return (x,)
                y = g(x, OUTCOME[0] if GM.undecided((TEST := x.any())) and
                    (OUTCOME := GM.select(TEST, (THEN, ELSE), (x,), None)) is not None else -x if GM.settle(TEST) else x)
            else:
                y = g(x, -x if x.any() else x)
            return y
        """,
    ),
    "guard": (
        """
        def f(x, n):
            if x.max() >= n:
                raise ValueError(f'{x.max()} of {n}')
        """,
        """
        def f(x, n):
            if GM.compiling():
                TEST = x.max() >= n
                OUTCOME = None
                if GM.undecided(TEST):
                    def THEN(EFFECTS, n, x):
                        def DELIVERY(TARGET, VALUES):
                            raise ValueError(f'{VALUES[0].max()} of {VALUES[1]}')
                        EFFECTS.append((None, None, DELIVERY, "raise ValueError(f'{x.max()} of {n}')", (x, n)))
                        return None
                    def ELSE(EFFECTS, n, x):
                        return ()
                    OUTCOME = GM.select(TEST, (THEN, ELSE), (n, x), None)
                if OUTCOME is not None:
                    pass
                elif TEST if (SPARED := GM.spared(TEST, True)) is None else SPARED:
                    raise ValueError(f'{x.max()} of {n}')
            elif x.max() >= n:
                raise ValueError(f'{x.max()} of {n}')
        """,
    ),
    "assert": (
        """
        def f(x, n):
            assert x.any(), n.name
        """,
        """
        def f(x, n):
            if GM.compiling():
                TEST = x.any()
                OUTCOME = None
                if GM.undecided(TEST):
                    def THEN(EFFECTS, n):
                        return ()
                    def ELSE(EFFECTS, n):
                        def DELIVERY(TARGET, VALUES):
                            assert False, VALUES[0]
                        EFFECTS.append((None, None, DELIVERY, 'assert False, n.name', (GM.attribute(n, 'name'),)))
                        return None
                    OUTCOME = GM.select(TEST, (THEN, ELSE), (n,), None)
                if OUTCOME is not None:
                    pass
                elif GM.undecided(TEST):
                    if GM.spared(TEST, False) is None:
                        assert GM.asserted(TEST, False), n.name
                elif not TEST:
                    assert False, n.name
            else:
                assert x.any(), n.name
        """,
    ),
    "check": (
        """
        def f(x):
            torch._check(bool(x.any()), lambda: 'm')
        """,
        """
        def f(x):
            if GM.compiling():
                TEST = x.any()
                OUTCOME = None
                if GM.undecided(TEST) and GM.is_check(torch._check) and GM.is_bool(TEST):
                    def THEN(EFFECTS):
                        return ()
                    def ELSE(EFFECTS):
                        def DELIVERY(TARGET, VALUES):
                            torch._check(False, lambda: 'm')
                        EFFECTS.append((None, None, DELIVERY, "torch._check(False, lambda: 'm')", ()))
                        return None
                    OUTCOME = GM.select(TEST, (THEN, ELSE), (), None)
                if OUTCOME is not None:
                    pass
                else:
                    torch._check(bool(TEST), lambda: 'm')
            else:
                torch._check(bool(x.any()), lambda: 'm')
        """,
    ),
    "check of every element": (
        """
        def f(x):
            torch_compilable_check(x.any(), 'm')
        """,
        """
        def f(x):
            if GM.compiling():
                TEST = x.any()
                OUTCOME = None
                if GM.undecided(TEST) and GM.is_check(torch_compilable_check):
                    def THEN(EFFECTS):
                        return ()
                    def ELSE(EFFECTS):
                        def DELIVERY(TARGET, VALUES):
                            torch_compilable_check(False, 'm')
                        EFFECTS.append((None, None, DELIVERY, "torch_compilable_check(False, 'm')", ()))
                        return None
                    OUTCOME = GM.select(GM.every(TEST), (THEN, ELSE), (), None)
                if OUTCOME is not None:
                    pass
                else:
                    torch_compilable_check(TEST, 'm')
            else:
                torch_compilable_check(x.any(), 'm')
        """,
    ),
    "lazy attribute": (
        """
        def f(self, x):
            if torch.max(x) > 3:
                if not hasattr(self, 'z'):
                    self.z = make(x)
                x = x.neg()
            return x
        """,
        """
        def f(self, x):
            if GM.compiling():
                TEST = torch.max(x) > 3
                OUTCOME = None
                if GM.undecided(TEST):
                    LAZY0 = None
                    if hasattr(self, 'z'):
                        LAZY0 = self.z
                    elif GM.watch(self, 'z'):
                        LAZY0 = make(x)
                        GM.harmless()
                    def THEN(EFFECTS, LAZY0, self, x):
                        if not hasattr(self, 'z'):
                            def DELIVERY(TARGET, VALUES):
                                TARGET.z = VALUES[0]
                            EFFECTS.append((None, '.', DELIVERY, self, (LAZY0,)))
                        x = GM.attempt_method('neg', x)
                        return (x,)
                    def ELSE(EFFECTS, LAZY0, self, x):
                        return (x,)
                    OUTCOME = GM.select(TEST, (THEN, ELSE), (LAZY0, self, x), None)
                if OUTCOME is not None:
                    x = OUTCOME[0]
                elif GM.settle(TEST):
                    if not hasattr(self, 'z'):
                        self.z = make(x)
                    x = x.neg()
            elif torch.max(x) > 3:
                if not hasattr(self, 'z'):
                    self.z = make(x)
                x = x.neg()
            return x
        """,
    ),
}


def spelled(text: str) -> str:
    """The statements of `text` after the imports."""
    tree = ast.parse(text)
    tree.body = [node for node in tree.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    return ast.unparse(tree).replace("lambda :", "lambda:")  # as Python 3.10 to 3.12 spell it


@pytest.mark.parametrize("body", RAISED_AGAIN)
def test_a_side_that_raises_is_spared_whatever_it_does(body: str) -> None:
    text = method(body)
    found = [site for site in sites(text) if site.rule == "trap"]
    assert [site.outcome for site in found] == [Outcome.MENDED]


@pytest.mark.parametrize("title", FORMS)
def test_the_form_that_is_emitted(title: str) -> None:
    source, expected = FORMS[title]
    tree = ast.parse(module(source))
    found = rewrite_tree(tree, module(source).encode(), RULES)
    assert {change.site.outcome for change in found} == {Outcome.MENDED}
    text = re.sub(rf"{OWN}([a-z]+)", lambda match: match[1].upper(), ast.unparse(tree)).replace(RUNTIME, "GM")
    assert spelled(text) == spelled(textwrap.dedent(expected))


def test_what_is_inside_is_mended_and_the_original_stays() -> None:
    text = module(
        """
        def f(x):
            if x.any():
                print("any")
                if x.all():
                    x = x + 1
            return x
        """
    )
    tree = ast.parse(text)
    original = ast.unparse(tree.body[1].body[0])  # type: ignore[attr-defined]
    found = rewrite_tree(tree, text.encode(), active_rules(("defer", "where")))
    assert [change.site.rule for change in found if change.emitted] == ["where", "defer", "where"]
    outer = found[0].emitted[0]
    assert isinstance(outer, ast.If)
    assert ast.unparse(outer.orelse) == original
    traced = ast.unparse(outer.body)
    assert traced.count("GM.defer(".replace("GM", RUNTIME)) == 1, "where the sides are not joined"
    assert traced.count("GM.select(".replace("GM", RUNTIME)) == 2
    assert ast.unparse(tree.body[-1]).count(original.partition("\n")[0]) == 1


# --- the runtime has what is called ---

PACKAGE = Path(runtime.__file__).parent


def defined_in(file: Path) -> set[str]:
    names = set()
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            stored = [name for target in node.targets for name in ast.walk(target)]
            names |= {name.id for name in stored if isinstance(name, ast.Name)}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def test_rules_call_only_what_the_runtime_has() -> None:
    called = set()
    for file in [*(PACKAGE / "rules").rglob("*.py"), PACKAGE / "source" / "templates.py"]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                called |= set(re.findall(r"\bGM\.(\w+)", node.value))
    assert called - CALLED == {"sys"}, "the package itself has that"
    assert "sys" in defined_in(Path(runtime.__file__))
    assert CALLED - called == set(), "nothing is there for nobody"


def test_what_is_there_before_torch_is_called_too() -> None:
    assert {"tracing", "compiling"} <= CALLED
    assert {"tracing", "compiling", "connect"} <= defined_in(Path(runtime.__file__))
    assert isinstance(runtime, types.ModuleType)


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
    text = "import torch\ndef f(x):\n    try:\n        if x.any():\n            return 1\n        return 2\n    except* ValueError:\n        pass\n"
    assert codes(text) == ["GM102-R06"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are of Python 3.12")
def test_type_parameters() -> None:
    text = "import torch\ndef f[T](x: T) -> T:\n    type A = T\n    if x.any():\n        x = x + 1\n    return x\n"
    assert codes(text) == ["where mended"]
    assert rewrite(text.encode(), "m.py", RULES).code is not None


def test_functions_of_ours_are_named_after_the_function_they_stand_in() -> None:
    _, mended = both("guard")
    inner = [c for c in functions(mended)["f"].co_consts if isinstance(c, CodeType)]
    assert len(inner) == 2
    deliveries = [c for c in inner[0].co_consts if isinstance(c, CodeType)]
    assert [code.co_name for code in [*inner, *deliveries]] == ["f", "f", "f"]
    if sys.version_info >= (3, 11):
        assert [code.co_qualname for code in [*inner, *deliveries]] == ["f", "f", "f"]
