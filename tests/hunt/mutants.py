"""Functions of installed libraries, with statements of the grammar among their own.

A function is taken if it can be called with tensors like `x` and `y`, with numbers, or with its defaults: a few ways are
tried, and those that return the same twice are kept.  A program is then the function, with one to three statements more, and a call.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from random import Random
from types import FunctionType
from typing import Any

import torch

from .grammar import Program, Writer
from .spices import SPICES

# What a parameter may be given, by its annotation; a parameter without any is taken for a tensor.
TENSORS = [
    "x",
    "y",
    "x.float()",
    "x.reshape(-1)",
    "x.unsqueeze(0)",
    "x > 0",
    "y.long()",
    "x.sum()",
    "torch.ones(3, 4) * x.sum()",
]
TENSORS += ["torch.arange(8.0).reshape(2, 4) + y.sum()", "torch.ones(1, 2, 4, 4) * y.sum()", "(x > 0).long()"]
GIVEN = {"int": ["2", "1", "n"], "float": ["0.5", "2.0"], "bool": ["True", "False"], "str": ["'mean'", "'none'"]}
TRIES = 60  # ways to call a function
KEPT = 4


@dataclass(frozen=True)
class Function:
    """A function of a library: its module, its text, and calls of it that return."""

    module: str
    text: str
    tensors: tuple[str, ...]  # the parameters that are tensors
    calls: tuple[str, ...]


def functions(patterns: Sequence[str]) -> list[Function]:
    """Those of the modules with these names; ``M.*``: those in package M."""
    return [function for pattern in patterns for name in _modules(pattern) for function in _of_module(name)]


def _modules(pattern: str) -> Iterator[str]:
    root = ".".join(itertools.takewhile(str.isidentifier, pattern.split(".")))
    if root == pattern:
        yield pattern
    else:
        package = importlib.import_module(root)
        names = (module.name for module in pkgutil.walk_packages(package.__path__, f"{root}.", onerror=lambda _: None))
        yield from (name for name in names if fnmatch(name, pattern))


def _of_module(name: str) -> Iterator[Function]:
    try:
        module = importlib.import_module(name)
    except Exception:  # it wants what is not installed
        return
    for value in list(vars(module).values()):
        if isinstance(value, FunctionType) and value.__module__ == name and value.__closure__ is None:
            found = _of_function(value)
            if found is not None:
                yield found


def _of_function(function: FunctionType) -> Function | None:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    (definition,) = tree.body if len(tree.body) == 1 else (None,)
    if not isinstance(definition, ast.FunctionDef) or definition.name != function.__name__:
        return None
    if any(
        isinstance(node, ast.Yield | ast.YieldFrom | ast.Await | ast.Global | ast.Nonlocal) for node in ast.walk(tree)
    ):
        return None
    required = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    ]
    if not required or any(parameter.kind is parameter.VAR_POSITIONAL for parameter in required):
        return None
    tensors = tuple(parameter.name for parameter in required if _choices(parameter) is TENSORS)
    calls = tuple(itertools.islice(_calls(function, required), KEPT)) if tensors else ()
    if not calls:
        return None
    definition.decorator_list, definition.returns, definition.name = [], None, "real"
    arguments = definition.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = None
    return Function(function.__module__, ast.unparse(definition), tensors, calls)


def _choices(parameter: inspect.Parameter) -> list[str] | None:
    """What may be given for it; None: nothing is known."""
    if parameter.annotation is parameter.empty:
        return TENSORS
    written = parameter.annotation if isinstance(parameter.annotation, str) else _name(parameter.annotation)
    return TENSORS if "Tensor" in written else GIVEN.get(written)


def _name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def _calls(function: FunctionType, required: Sequence[inspect.Parameter]) -> Iterator[str]:
    """Calls that return, and return the same when they are made again."""
    choices = [_choices(parameter) for parameter in required]
    if None in choices:
        return
    rng = Random(function.__qualname__)
    tried = set()
    for _ in range(TRIES):
        given = ", ".join(
            f"{parameter.name}={rng.choice(chosen or [])}"
            if parameter.kind is parameter.KEYWORD_ONLY
            else rng.choice(chosen or [])
            for parameter, chosen in zip(required, choices)
        )
        if given in tried:
            continue
        tried.add(given)
        kept: list[Any] = []  # while the second is made: it has other addresses then
        seen = [_returned(function, given, kept) for _ in range(2)]
        if seen[0] is not None and seen[0] == seen[1]:
            yield f"real({given})"


def _returned(function: FunctionType, given: str, kept: list[Any]) -> Any:
    """What it returns, described, or None if it raises; what it was given is added to `kept`."""
    from .checking import Seen

    def real(*arguments: Any, **named: Any) -> Any:
        kept.append((arguments, named))
        return function(*arguments, **named)

    torch.manual_seed(0)
    names = {"real": real, "torch": torch, "n": 2, "x": torch.rand(2, 3), "y": torch.rand(2, 3)}
    try:
        return Seen(0.0).describe(eval(f"real({given})", names))
    except Exception:
        return None


def programs_of(known: Sequence[Function], seed: int, size: int) -> list[Program]:
    """Programs of functions of one module, which share its names."""
    rng = Random(seed)
    module = rng.choice(sorted({function.module for function in known}))
    there = [function for function in known if function.module == module]
    return [_mutant(rng.choice(there), seed + index) for index in range(size)]


def _mutant(function: Function, seed: int) -> Program:
    rng = Random(seed)
    names = rng.sample(sorted(SPICES), rng.choice([0, 1, 1, 2]))
    writer = Writer(rng, [SPICES[name] for name in names], floating=True)
    writer.bound["$t"] = list(function.tensors)
    tree = ast.parse(function.text)
    (definition,) = tree.body
    assert isinstance(definition, ast.FunctionDef)
    for _ in range(rng.choice([1, 1, 2, 3])):
        block = rng.choice(list(_blocks(definition)))
        statements = ast.parse("\n".join(writer.statement(depth=rng.choice([0, 0, 1])))).body
        place = rng.randint(0, max(0, len(block) - 1))
        block[place:place] = statements
        writer.bound["$t"] = list(function.tensors)  # what it binds may not be bound elsewhere
        writer.bound["$p"], writer.bound["$v"] = [], []
    body = [definition, *ast.parse(f"return {rng.choice(function.calls)}", mode="exec").body]
    whole = ast.parse("def f(self, x, y, n, flag):\n    pass")
    whole.body[0].body = body  # type: ignore[attr-defined]
    return Program(
        ast.unparse(ast.fix_missing_locations(whole)) + "\n",
        library=function.module,
        shape=rng.choice([(2, 3), (2, 3), (4,)]),
        other_shape=(2, 3),
        n=2,
        train=rng.random() < 0.3,
        module=rng.random() < 0.7,
        seed=seed,
    )


def _blocks(definition: ast.FunctionDef) -> Iterator[list[ast.stmt]]:
    """The lists of statements in it, those of its own functions left out."""
    for node in ast.walk(definition):
        if node is definition or not isinstance(node, ast.FunctionDef | ast.ClassDef):
            blocks = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
            yield from (
                block for block in blocks if isinstance(block, list) and block and isinstance(block[0], ast.stmt)
            )
