"""A value that Python chooses behind the graph: whatever the program does with it gives what eager gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from observing import import_file, import_mended

VALUES = {"text": ("'large'", "'small'"), "whole": ("2", "1"), "float": ("2.5", "0.5"), "flag": ("True", "False")}
# What a program may do with the value `v`, beside the tensor `x`.
LOOKS = (
    *(
        "len(v)",
        "[*v]",
        "v[0]",
        "'l' in v",
        "v + 'x'",
        "v * 2",
        "2 * v",
        "v % 3",
        "'%s' % v",
        "'{}'.format(v)",
        "f'{v}'",
    ),
    *("str(v)", "repr(v)", "hash(v)", "v == 'large'", "v < 'm'", "v.upper()", "int(v)", "float(v)", "bool(v)", "-v"),
    *("abs(v)", "~v", "v // 2", "divmod(v, 2)", "v ** 2", "v & 1", "v << 1", "round(v)", "isinstance(v, str)"),
    *("type(v).__name__", "v is None", "{v: 1}", "max(v, v)", "sum([v])", "sorted([v])", "list(map(str, [v]))"),
    *("''.join([v])", "[*range(v)]", "[0] * v", "x[:v]", "x * v", "x + v", "x[v]", "torch.full((2,), v)"),
    *("x.clamp(max=v)", "x ** v", "torch.tensor(v)", "v if v else 0", "not v", "v or 1", "getattr(v, 'real')"),
    *("v.is_integer()", "hasattr(v, 'upper')", "chr(v)", "bin(v)", "complex(v)", "any([v])", "x.view(-1)[v:]"),
    *("dict(a=v)", "(v,) < (2,)", "[v] == [2]", "{v} == {2}", "callable(v)", "x.repeat(v, 1)", "x.softmax(v)"),
    *("x.sum(dim=v)", "torch.nn.functional.dropout(x, v, False)", "math.exp(v)", "x.new_zeros(v)", "min(v, 1)"),
)
X = torch.arange(12.0).reshape(4, 3) - 2
PROGRAM = """
import math
import torch

def look(x):
    v = {left} if x.sum() > 0 else {right}
    try:
        found = {look}
    except (TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        found = type(error)
    return x + 1, found
"""


def _result(function: Callable[..., Any], x: torch.Tensor) -> Any:
    try:
        return function(x)[1]
    except Exception as error:  # where the program would have caught one, Dynamo may end with one of its own
        return type(error)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("kind", VALUES)
def test_it_is_as_in_eager(kind: str, look: str, tmp_path: Path) -> None:
    left, right = VALUES[kind]
    path = tmp_path / "look_at_it.py"
    path.write_text(PROGRAM.format(left=left, right=right, look=look), encoding="utf-8")
    plain, mended = import_file(path, "look_at_it").look, import_mended(path, "look_at_it_mended").look
    compiled = torch.compile(mended, backend="eager", dynamic=False)
    for x in (X, -X, X):
        expected, found = _result(plain, x), _result(compiled, x)
        if isinstance(expected, torch.Tensor):
            torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
        elif isinstance(expected, type):
            assert isinstance(found, type)
        else:
            assert (type(found), found) == (type(expected), expected)
