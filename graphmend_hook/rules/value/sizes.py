"""Functions and methods of torch that take sizes and positions as numbers of Python, as data.

A tensor of one element that is given for such a number is read: a break, or a size that is not known.
`tests/compiled/test_operations.py` compares the tables with the schemas, and has the reason for each that is left out.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

EVERY = -1
# By function of torch or torch.nn.functional: the positions of its arguments that are such numbers, EVERY for all.
FUNCTIONS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("arange", "empty", "eye", "ones", "rand", "randn", "zeros"), (EVERY,)),
    **dict.fromkeys(("chunk", "interpolate", "kthvalue", "pad", "reshape", "roll", "split"), (1,)),
    **dict.fromkeys(("tile", "topk", "tril", "triu"), (1,)),
    **dict.fromkeys(("linspace", "select", "unflatten"), (2,)),
    "full": (0,),
    "full_like": (1,),
    "narrow": (1, 2, 3),
}
# By method of Tensor; the tensor itself is not counted.
METHODS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("expand", "new_empty", "new_ones", "new_zeros", "repeat", "reshape"), (EVERY,)),
    **dict.fromkeys(("sum_to_size", "tile", "view"), (EVERY,)),
    **dict.fromkeys(("chunk", "kthvalue", "roll", "split", "topk"), (0,)),
    **dict.fromkeys(("tril", "tril_", "triu", "triu_"), (0,)),
    **dict.fromkeys(("select", "unflatten"), (1,)),
    "narrow": (0, 1, 2),
    "new_full": (0, 1),
}
_KEYWORDS = frozenset(  # of those functions and methods
    {
        *("diagonal", "dims", "end", "fill_value", "index", "k", "length", "m", "n", "pad", "repeats", "shape"),
        *("shifts", "size", "sizes", "split_size", "split_size_or_sections", "start", "steps"),
    }
)
# They take a tensor without dimensions, and no other; the rest takes any of one whole number.
_SCALARS = frozenset({"arange", "chunk", "full_like", "linspace", "narrow", "new_full"})
# What nobody but the caller can tell the type of is asked for these alone: they are few, and take sizes and no more.
TAKE_NOTHING_ELSE = frozenset({"arange", "linspace", "narrow", "new_zeros", "pad", "view"})
# They read the number that they fill with: asked whatever it is called.
_FILLING = frozenset({"full_like", "new_full"})
# These also of what an annotation says is a number, which is often said of a tensor of one.
_ALWAYS_ASKED = frozenset({"arange", "interpolate"})


def arguments_of(call: ast.Call, name: str, of_torch: bool) -> Iterator[ast.expr]:
    """The arguments of a call of that function or method that stand for sizes or positions."""
    positions = (FUNCTIONS if of_torch else METHODS).get(name, ())
    for position, argument in enumerate(call.args):
        if position in positions or EVERY in positions:
            yield argument
    for keyword in call.keywords if positions else ():
        if keyword.arg in _KEYWORDS:
            yield keyword.value


def place_of(name: str) -> str:
    """Which tensors the function takes for a number: see `value.traced.known`."""
    return "scalar" if name in _SCALARS else "size"


def is_always_asked(name: str, argument: ast.expr) -> bool:
    """Is a name, or a tuple of names, a question whatever is known of it?"""
    if name in _FILLING:
        return isinstance(argument, (ast.Name, ast.Subscript))
    parts = argument.elts if isinstance(argument, ast.Tuple) else [argument]
    return name in _ALWAYS_ASKED and all(isinstance(part, ast.Name) for part in parts)
