"""Which tests are candidates: what speaks for the data of a tensor, and what against it."""

from __future__ import annotations

import ast
import textwrap

import pytest
from rewritten import RULES, codes, method, sites

from graphmend_hook.rewrite import rewrite_tree
from graphmend_hook.source.scopes import ModuleScope
from graphmend_hook.source.taint import Taint, evidence_of

NO, OPEN, MAYBE, YES = Taint.NO, Taint.OPEN, Taint.MAYBE, Taint.YES
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
    "if any(n > 1 for n in x): pass": OPEN,
    "if all(y > n): pass": YES,
    "if len(x) > n: pass": OPEN,
    "if x.shape[0] > n: pass": OPEN,
    "if x.config.begin > 0: pass": NO,
    "if self.config.begin > 0: pass": NO,
    "num_x = unknown(y)\nif num_x > 0: pass": OPEN,
    "if x: pass": OPEN,
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
    "if unknown(y): pass": OPEN,
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
    "if other.method(x): pass": OPEN,
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
    return evidence_of(function, scope).of_test(max(tests, key=lambda node: node.lineno).test)


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
    "from math import isnan\ndef f(x):\n    if isnan(x): pass\n": OPEN,
    "import numpy as torch\ndef f(x):\n    if torch.max(x): pass\n": NO,
    "import math\ndef f(x):\n    if math.isnan(x): pass\n": OPEN,
    "def f(x):\n    if isnan(x): pass\n": OPEN,
    "from .torch import isnan\ndef f(x):\n    if isnan(x): pass\n": OPEN,
    "def f(x: 'torch.Tensor'):\n    if x: pass\n": YES,
    "def f(x: torch.Tensor | None = None):\n    if x: pass\n": YES,
    "def f(x: 'Optional[torch.LongTensor]'):\n    if x: pass\n": YES,
    "def f(*, x: Optional[Tensor] = None):\n    if x: pass\n": YES,
    "def f(x: Tensor, /):\n    if x: pass\n": YES,
    "def f(x: list[torch.Tensor]):\n    if x: pass\n": NO,
    "def f(x: TensorDict):\n    if x: pass\n": NO,
    "def f(x: torch.Tensor):\n    def g(x):\n        if x: pass\n": OPEN,
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
    text = method(body)
    tree = ast.parse(text)
    rewrite_tree(tree, text.encode(), RULES)
    assert f".begun(), {name}(x))" in ast.unparse(tree)  # its argument may be a tensor


def test_a_module_without_torch_is_not_parsed() -> None:
    assert codes("def f(x):\n    if x.any():\n        x = 1\n    assert x.any()\n    return x\n") == []
