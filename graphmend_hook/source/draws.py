"""Functions of Python's `random` and of numpy that draw a number from the one generator of their module; and clocks.

They draw if they are given numbers alone; a size makes an array of numpy's (`OF_ARRAYS`).  What Python's draws of whole
numbers give, Dynamo itself makes inputs of.
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
# Of numpy, what may draw an array.
OF_ARRAYS = OF_NUMPY | {"binomial", "choice", "dirichlet", "multinomial", "permutation", "poisson"}
_CLOCKS = ("time", "perf_counter", "monotonic", "process_time", "thread_time")
CLOCKS = frozenset(f"time.{name}{unit}" for name in _CLOCKS for unit in ("", "_ns"))
DRAWING = frozenset({*(f"random.{name}" for name in OF_RANDOM), *(f"numpy.random.{name}" for name in OF_NUMPY)})


def is_draw(call: ast.Call, qualified: str) -> bool:
    """Is the call, of the function of that name, a draw, with arguments by position, or does it read a clock?"""
    is_plain = not call.keywords and not any(isinstance(argument, ast.Starred) for argument in call.args)
    if qualified in CLOCKS:
        return is_plain and not call.args
    return qualified in DRAWING and is_plain and len(call.args) < 4
