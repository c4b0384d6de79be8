"""The functions of Python's `random` and of numpy that draw a number from the one generator of their module.

They do if they are given numbers alone; a size makes an array of numpy's.  What Python's draws of whole numbers give,
Dynamo itself makes inputs of.
"""

from __future__ import annotations

import ast

OF_RANDOM = frozenset(
    {
        *("betavariate", "expovariate", "gammavariate", "gauss", "lognormvariate", "normalvariate", "paretovariate"),
        *("random", "triangular", "uniform", "vonmisesvariate", "weibullvariate"),
    }
)
OF_NUMPY = frozenset(
    {
        *("beta", "chisquare", "exponential", "gamma", "laplace", "lognormal", "normal", "pareto", "rand", "randn"),
        *("randint", "random", "random_sample", "rayleigh", "standard_normal", "triangular", "uniform", "weibull"),
    }
)
DRAWING = frozenset({*(f"random.{name}" for name in OF_RANDOM), *(f"numpy.random.{name}" for name in OF_NUMPY)})


def is_draw(call: ast.Call, qualified: str) -> bool:
    """Is the call, of the function of that name, a draw, with arguments by position?"""
    is_plain = not call.keywords and not any(isinstance(argument, ast.Starred) for argument in call.args)
    return qualified in DRAWING and is_plain and len(call.args) < 4
