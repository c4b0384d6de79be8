"""Branches and guards that are mended do what the statement does, executed without torch, and with a tracer that is played."""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Callable, Iterator
from types import CodeType, SimpleNamespace
from typing import Any

import pytest
from rewritten import RULES, sites

from graphmend_hook import runtime
from graphmend_hook.diagnostics import Outcome
from graphmend_hook.rewrite import rewrite
from graphmend_hook.source.templates import OWN

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
        taken = 0 if test else 1
        owners = [(each, dict(vars(each))) for each in arguments if hasattr(each, "__dict__")]
        results: list[Any] = [None, None]
        try:
            for side in (1 - taken, taken):
                for owner, attributes in owners:
                    vars(owner).update(attributes)  # what the other side has stored is taken back
                results[side] = sides[side](done[side], *arguments)
        except (AttributeError, IndexError):  # GM102-T05
            return None
        if effects is not None:
            effects.extend(done[taken])
            return results[1 - taken] if results[taken] is None else results[taken]
        for _, _kind, delivery, target, values in done[taken]:
            delivery(target, values)
        assert results[taken] is not None, "a side that raises leaves its exception"
        return results[taken]

    def stores(self) -> None: ...

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

    def begin_operand(self, left: Any) -> bool:
        return self.undecided(left)

    def operand(self, is_open: bool, value: Any) -> Any:
        return value

    def compare(self, name: str, left: Any, right: Any, numbers: Any) -> Any:
        return getattr(operator, name)(left, right)

    number = one_value = plain = settle = in_turn = staticmethod(lambda value: value)
    spared = staticmethod(lambda test, raises: None)

    def equal(self, left: Any, right: Any) -> Any:
        return Scalar(left.value == right.value)

    def current(self, owner: Any, name: str) -> Any:
        return getattr(owner, name)

    unrelated = current

    def item_in_side(self, container: Any, key: Any) -> Any:
        return container[key]

    def begun(self) -> int:
        return 0

    def judged(self, start: int, value: Any) -> Any:
        return value

    def grown(self, name: str, left: Any, right: Any) -> Any:
        return getattr(operator, name)(left, right)

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


def test_functions_of_ours_are_named_after_the_function_they_stand_in() -> None:
    _, mended = both("guard")
    inner = [c for c in functions(mended)["f"].co_consts if isinstance(c, CodeType)]
    assert len(inner) == 2
    deliveries = [c for c in inner[0].co_consts if isinstance(c, CodeType)]
    assert [code.co_name for code in [*inner, *deliveries]] == ["f", "f", "f"]
    if sys.version_info >= (3, 11):
        assert [code.co_qualname for code in [*inner, *deliveries]] == ["f", "f", "f"]
