"""Functions and methods of torch that take sizes and positions as numbers of Python, as data.

A tensor of one element that is given for such a number is read, which breaks the graph.
"""

from __future__ import annotations

ALL = -1
# By function of torch or torch.nn.functional: the positions of its arguments that are such numbers, ALL for all.
FUNCTIONS: dict[str, tuple[int, ...]] = {
    "arange": (ALL,),
    "chunk": (1,),
    "empty": (ALL,),
    "eye": (ALL,),
    "full": (0,),
    "interpolate": (1,),
    "linspace": (2,),
    "narrow": (1, 2, 3),
    "ones": (ALL,),
    "pad": (1,),
    "rand": (ALL,),
    "randn": (ALL,),
    "reshape": (1,),
    "roll": (1,),
    "split": (1,),
    "zeros": (ALL,),
}
# The same of methods of Tensor; their positions do not count the tensor itself.
METHODS: dict[str, tuple[int, ...]] = {
    "chunk": (0,),
    "expand": (ALL,),
    "narrow": (0, 1, 2),
    "new_empty": (ALL,),
    "new_ones": (ALL,),
    "new_zeros": (ALL,),
    "repeat": (ALL,),
    "reshape": (ALL,),
    "roll": (0,),
    "split": (0,),
    "unflatten": (1,),
    "view": (ALL,),
}
KEYWORDS = frozenset({"pad", "size", "steps"})  # the same by name
# What nobody but the caller can tell the type of is asked for these alone: they are few, and take sizes and no more.
ASKED = frozenset({"arange", "linspace", "narrow", "new_zeros", "pad", "view"})
# These also of what an annotation says is a number, which is often said of a tensor of one.
ALWAYS_ASKED = frozenset({"arange", "interpolate"})
