"""Random programs ``def f(self, x, y, n, flag)`` out of a small grammar that meets the hazards of the rules.

A program is drawn in two steps, so that one hazard does not make the rules decline the whole function: first a few
*spices* (one hazard each), then statements out of the plain grammar and of those spices alone.  The grammar is text with
holes, filled from the left:

    $t $s $p      a tensor like x, a 0-d tensor, a 0-d bool tensor: a name that is bound, sometimes an expression
    $e $k $q $r   an expression that gives such a tensor, a number, a test of an `if`, what a `return` gives
    $G $C         a test that is rarely true (a guard), one that is nearly always true (an assertion)
    $z $o $g $v   a name to assign: any tensor's, a bound tensor's, a predicate's, any value's; the same in a statement
    $i            a number that no other statement has
    $B            a block of statements, on a line of its own
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from .spices import BOOLEANS, SPICES, Spice

PRELUDE = Path(__file__).with_name("prelude.py").read_text(encoding="utf-8")

# --- the plain grammar -----------------------------------------------------------------------------------------------

TENSORS = [
    *["$t * 2", "$t + 1", "$t + $t", "$t - $t", "$t * $t", "-$t", "$t.abs()", "torch.relu($t)", "$t.clamp(-2, 2)"],
    *["$t.clone()", "torch.where($t > 0, $t, $t)", "$t * $k", "torch.zeros_like($t)", "double($t)", "$t.flip(-1)"],
    *["$t * $p", "$t - $s", "$t + self.s"],
]
FLOATS = ["$t.sin()", "torch.sigmoid($t)", "$t / 2", "$t.softmax(-1)", "$t * 0.5", "$t.exp()", "$t * self.w"]
SCALARS = ["$t.sum()", "$t.abs().sum()", "$t.max()", "$t.float().mean()", "($t > 0).sum()", "$t.min()"]
PREDICATES = [
    *["$t.sum() > 0", "$t.sum() < 0", "($t > 0).all()", "($t > 1).any()", "$s > $s", "$s <= 1", "$t.ne(0).any()"],
    *["torch.isnan($t).any()", "torch.isfinite($t).all()", "($t == $t).all()", "$s >= $k"],
]
NUMBERS = ["n", "n + 1", "2", "self.k", "$t.dim()"]
TESTS = ["n > 2", "flag", "not flag", "n % 2 == 0", "flag is None", "$t.dim() == 1", "self.k > 1", "self.training"]
TESTS += ["$t.dtype == torch.float16", "isinstance(flag, str)", "n > $t.numel()", "$t.is_floating_point()"]
GUARDS = [
    *["torch.isnan($t).any()", "not torch.isfinite($t).all()", "$t.sum() > 100", "$t.abs().max() > 50", "$s < -40"],
    *["($t > 60).any() and n >= 0", "not ($t == $t).all()", "$t.isinf().any() or $t.isnan().any()"],
]
CHECKS = ["torch.isfinite($t).all()", "$s < 100", "n >= 0", "($t < 60).all()", "$t.shape == x.shape", "$p or flag"]
CHECKS += ["not $t.isnan().any()", "n < 100 and $s < 100"]
RETURNS = ["$t", "$e", "$t, $t", "$t, n", "$s", "{'a': $t, 'b': $t}", "[$t]"]
FLAT = [
    *["$z = $e"] * 4,
    *["$o = $o + $t", "$g = $p", "$z = $t if $q else $e", "$o = $e if $p else $o", "$z = $e\n$g = $p"],
    *["if $q:\n    $z = $e\nelse:\n    $z = $e"] * 4,
    *["if $q:\n    $o = $e"] * 4,
    *["if $p:\n    $z = $e\nelif $q:\n    $z = $e\nelse:\n    $z = $e"] * 2,
    *["if $q:\n    raise ValueError('guard $i')", "if $G:\n    raise ValueError('guard $i')", "if $q:\n    return $r"],
    *["logger.warning('log $i')", "if $p:\n    logger.warning('log $i')\n    $o = $e"],
    *["if $q:\n    $o = $e\n    $z = $e\nelse:\n    $z = $o", "for i in range(n):\n    if $p:\n        $o = $o + i"],
    *["if $p:\n    return $e\nelse:\n    $z = $e", "if $q:\n    pass\nelse:\n    $o = $e"],
]
COMPOUND = [
    *["if $q:\n    $B\nelse:\n    $B", "if $q:\n    $B"] * 3,
    *["if $p:\n    $B\nelif $q:\n    $B\nelse:\n    $B", "for i in range(n):\n    $B", "for i in range(2):\n    $B"],
]

LONG = 6  # lines; after that many, no further statement is begun

# --- one program -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """The text of `f` and what it is called with; `repr` can be pasted into ``kept_programs.py``.

    dtype, shape: of x; other, other_shape: of y.  train: x, y and the parameters of `self` want gradients.
    leaf: x and y are leaves, which cannot be changed in place.  module: `self` is a Module, not a plain object.
    vary: the third call has another n and another size.  library: a module whose names `f` finds beside the others.
    """

    source: str
    dtype: str = "float32"
    other: str = "float32"
    shape: tuple[int, ...] = (4,)
    other_shape: tuple[int, ...] = (4,)
    n: int = 2
    flag: Any = True
    train: bool = False
    leaf: bool = False
    module: bool = True
    vary: bool = False
    library: str = ""
    seed: int = 0


class Writer:
    """Fills the holes of the grammar; knows which names are bound at the place it has reached."""

    def __init__(self, rng: Random, spices: list[Spice], floating: bool) -> None:
        self.rng = rng
        self.plain_tensors = TENSORS + (FLOATS if floating else [])
        self.spiced_tensors = [text for spice in spices for text in spice.tensors]
        self.spiced_tests = [text for spice in spices for text in spice.tests]
        self.spiced_statements = [text for spice in spices for text in spice.statements]
        self.bound = {"$t": ["x", "y"], "$p": [], "$v": []}
        self.number = 0

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def either(self, plain: list[str], spiced: list[str], share: float) -> str:
        return self.rng.choice(spiced if spiced and self.chance(share) else plain)

    def block(self, depth: int, length: int) -> list[str]:
        return [line for _ in range(length) for line in self.statement(depth)]

    def statement(self, depth: int) -> list[str]:
        texts = COMPOUND if depth and self.chance(0.25) else FLAT
        text = self.either(texts, self.spiced_statements, 0.4)
        if not depth and "$B" in text:
            text = self.rng.choice(FLAT)
        return self.expand(text, depth)

    def expand(self, text: str, depth: int) -> list[str]:
        self.number += 1
        fixed = {"$i": str(self.number)}
        lines, after_blocks = [], []
        for line in text.split("\n"):
            indent = line[: len(line) - len(line.lstrip())]
            if line.lstrip() != "$B":
                lines.append(indent + self.fill(line.lstrip(), fixed))
                continue
            before = {hole: list(names) for hole, names in self.bound.items()}
            lines += [indent + inner for inner in self.block(depth - 1, self.rng.randint(1, 2))]
            after_blocks.append(self.bound)
            self.bound = before
        if "else:" in text and text.startswith("if"):  # bound on every side
            for hole in self.bound if after_blocks else ():
                on_every_side = set.intersection(*(set(after[hole]) for after in after_blocks))
                self.bound[hole] += sorted(on_every_side - set(self.bound[hole]))
        for target, hole in (("$z", "$t"), ("$g", "$p"), ("$v", "$v")):
            if target in fixed and fixed[target] not in self.bound[hole]:
                self.bound[hole].append(fixed[target])
        return lines

    def fill(self, text: str, fixed: dict[str, str], nested: int = 0) -> str:
        return re.sub(r"\$\w", lambda match: self.hole(match[0], fixed, nested), text)

    def hole(self, hole: str, fixed: dict[str, str], nested: int) -> str:
        if hole in ("$i", "$z", "$o", "$g", "$v"):
            if hole not in fixed:
                fixed[hole] = self.target(hole)
            return fixed[hole]
        if hole in ("$t", "$p") and self.bound[hole] and (nested > 1 or self.chance(0.8 if hole == "$t" else 0.25)):
            return self.rng.choice(self.bound[hole])
        simple = {"$s": SCALARS, "$k": NUMBERS, "$p": PREDICATES, "$G": GUARDS, "$C": CHECKS, "$r": RETURNS}
        if hole == "$q":
            text = self.either(
                [self.rng.choice([*PREDICATES, "$p"]), self.rng.choice([*PREDICATES, *BOOLEANS, *TESTS])],
                self.spiced_tests,
                0.4,
            )
        elif hole in ("$e", "$t"):
            text = self.either(self.plain_tensors, self.spiced_tensors, 0.3)
        else:
            text = self.rng.choice(simple[hole])
        return f"({self.fill(text, fixed, nested + 1)})"

    def target(self, hole: str) -> str:
        if hole == "$o":
            return self.rng.choice(self.bound["$t"])
        if hole == "$z":
            return self.rng.choice(self.bound["$t"]) if self.chance(0.4) else self.rng.choice("abc")
        return f"ok{self.number}" if hole == "$g" else f"v{self.number}"


def program_of(seed: int, only: Sequence[str] = ()) -> Program:
    """The program of `seed`: the same on every machine and every version of Python that is supported.

    only: the hazards that it may have, of which it has at least one; by default all, or none.
    """
    rng = Random(seed)
    many = rng.choice([0, 1, 1, 1, 2, 2, 3])
    names = rng.sample(sorted(only), min(max(many, 1), len(only))) if only else rng.sample(sorted(SPICES), many)
    spices = [SPICES[name] for name in names]
    must_float = any(spice.floating for spice in spices)
    dtype = rng.choice(["float32"] * 6 + ["float16", "float64"] + ["bfloat16", "int64", "int64"] * (not must_float))
    other = dtype if rng.random() < 0.85 else rng.choice(["float32", "float64", "int64", "float16"])
    shape = rng.choice([(4,)] * 7 + [(2, 3)] * 5 + [()] * 4 + [(1,)] * 2 + [(0,)])
    other_shape = shape if rng.random() < 0.85 else rng.choice([(), (1,), (4,)])
    train = dtype != "int64" and rng.random() < (0.8 if any(spice.train for spice in spices) else 0.25)
    writer = Writer(rng, spices, dtype != "int64")
    lines = ["global TALLY"] if {"scope", "properties", "changed"} & {*names} else []
    for _ in range(rng.choice([1, 2, 2, 3, 3, 4])):
        if len(lines) < LONG:
            lines += writer.statement(depth=rng.choice([0, 1, 1, 2]))
    results = [*writer.bound["$t"], *writer.bound["$p"], *writer.bound["$v"]]
    if rng.random() < 0.3:
        results = rng.sample(results, 1)
    lines.append("return " + ", ".join(results))
    text = "\n".join(["def f(self, x, y, n, flag):", *("    " + line for line in lines)])
    return Program(
        ast.unparse(ast.parse(text)) + "\n",  # without the parentheses that nobody needs
        dtype=dtype,
        other=other,
        shape=shape,
        other_shape=other_shape,
        n=rng.choice([0, 1, 2, 2, 3, 5]),
        flag=rng.choice([True, True, False, None, "s"]),
        train=train,
        leaf=train and rng.random() < 0.5,
        module=rng.random() < 0.7,
        vary=rng.random() < 0.1,
        seed=seed,
    )


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        program = program_of(int(argument))
        print(program.source, program, sep="\n")
