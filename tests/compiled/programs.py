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
from dataclasses import dataclass, field
from random import Random
from typing import Any

PRELUDE = """
import logging
import warnings

import numpy as np
import torch

logger = logging.getLogger("random_programs")
TALLY = 0


class GuardError(Exception):
    def __init__(self, message, code=7):
        super().__init__(message, code)
        self.code = code

    def __str__(self):
        return f"{self.args[0]} [{self.code}]"


def positive(t):
    return t.sum() > 0


def within(t, n):
    if n > 2:
        return False
    return (t.abs() < n + 1).all()


def double(t):
    return t * 2


def pick(t):
    if t.sum() > 0:
        return t * 2
    return t - 1


def clamped(t):
    if t.is_floating_point() and (torch.isinf(t).any() or torch.isnan(t).any()):
        t = torch.clamp(t, min=-100, max=100)
    return t


def check(t, limit=50):
    if t.abs().max() > limit:
        raise ValueError(f"over {limit}: {t.abs().max()}")


def checked(t):
    check(t)
    return t + 1


def noisy(t):
    if positive(t):
        logger.warning("log positive")
        return t
    logger.warning("log negative %d", t.dim())
    return t.abs()
"""

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
BOOLEANS = [
    *["$p and $p", "$p or $p", "not $p", "$p and n > 2", "n > 1 and $p", "flag and $p", "flag is None or $p"],
    *["0 < $s < 10", "-3 < $s <= $k", "n > 1 or $p", "(n > 1) & $p", "$p | $p", "~$p", "$p ^ $p"],
    *["not ($p and not $p)", "$p and flag and n", "$p and $p or $p", "n < 3 and ($p or not flag)"],
]
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


# --- the spices ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spice:
    """What one hazard adds to the grammar; `train` and `floating` say that it is about gradients, about floats."""

    statements: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    tensors: list[str] = field(default_factory=list)
    train: bool = False
    floating: bool = False


# Rows of three experts, the last of which is never hit, as a loop over them begins.
EXPERTS = (
    "w$i = $t.reshape(-1).float()\nhit$i = torch.stack([w$i > 0, w$i < 0, w$i > 900])\nout$i = torch.zeros_like(w$i)\n"
)
SPICES = {
    "dtype": Spice(
        [
            "if $q:\n    $z = $e\nelse:\n    $z = $t.double()",
            "if $q:\n    $o = $t.to(torch.float16)",
            "$z = $t if $p else $t.long()",
            "$z = $t.half() if $p else $t",
            "if $p:\n    $z = $t > 0\nelse:\n    $z = $t",
        ],
    ),
    "shape": Spice(
        [
            "if $p:\n    $z = $t\nelse:\n    $z = $t.sum(-1, keepdim=True)",
            "if $p:\n    $o = $t.unsqueeze(0)",
            "$z = $t if $p else $t.sum()",
            "$z = $t.reshape(-1) if $p else $t",
            "$z = $t if $p else torch.stack([$t, $t], -1)[..., 0]",
            "$z = $t.expand(2, *$t.shape) if $q else $t",
            "$z = $t if $p else $t.reshape(-1)[:1]",
        ],
    ),
    "scalar": Spice(
        [
            "if $p:\n    $v = 1.5\nelse:\n    $v = 2.5\n$z = $t * $v",
            "if $p:\n    $v = 1\nelse:\n    $v = 2.5\n$z = $t * $v",
            "$v = 3 if $p else 3",
            "$v = 0\nif $p:\n    $v = $s",
            "$v = 0\nif $p:\n    $v += 1\nfor i in range($v):\n    $o = $e",
            "mode$i = 'a' if $p else 'b'\nif mode$i == 'a':\n    $o = $e",
            "found$i = False\nif $p:\n    found$i = True\nif found$i:\n    $B",
            "$v = None\nif $p:\n    $v = $e\nif $v is not None:\n    $z = $t + $v",
            "$v = -0.0 if $p else 0.0",
            "$v = torch.float32 if $p else torch.float64\n$z = $t.to($v)",
        ],
        tests=["True", "1 if $p else 0"],
    ),
    "one_side": Spice(
        [
            "if $q:\n    w$i = $e\n$z = w$i + 1",
            "$g = $p\nif $g:\n    w$i = $e\nif $g:\n    $z = w$i * 2",
            "if $p:\n    w$i = $e\nelse:\n    u$i = $e\nif $p:\n    $z = u$i",
            "for i in range(n):\n    if $p:\n        w$i = $e\n$z = w$i + 1",
            "if $p:\n    w$i = $e\ntry:\n    $z = w$i\nexcept UnboundLocalError:\n    $z = $e",
            "if $p:\n    w$i = $e\n    $o = w$i + $t",
        ],
    ),
    "attribute": Spice(
        [
            "self.s = $e",
            "if $p:\n    self.s = $e",
            "if $q:\n    self.last = $e\nelse:\n    self.last = $e",
            "if $p:\n    self.k += 1",
            "if $p:\n    self.last = $t\n    $o = self.last * 2",
            "if $p and self.cache is None:\n    self.cache = $e",
            "self.tag = 'a' if $p else 'b'",
            "if $G:\n    self.k = 9\n    raise ValueError(f'guard $i {self.k}')\nself.k = 5",
            "self.s = self.s + 1\nif $G:\n    raise ValueError('guard $i')\nself.s = self.s * 2",
            "$v = self.s\nif $p:\n    self.s = $e\n$z = $v + self.s",
        ],
        tests=["hasattr(self, 'last')", "self.cache is not None and (self.cache > 0).all()", "self.s.sum() > 0"],
        tensors=["$t + self.s", "self.s"],
    ),
    "container": Spice(
        [
            "$v = {'k': $t}\nif $p:\n    $v['k'] = $e\n$z = $v['k']",
            "$v = [$t]\nif $p:\n    $v.append($e)\n$z = $v[-1]",
            "if $p:\n    self.items.append($t)",
            "$v = ($t, $t)\nif $p:\n    $v = $v[::-1]\n$z = $v[0]",
            "$v = ($t, $e) if $p else ($e, $t)",
            "$v = [$t] * 2 if $p else [$t]",
            "$v = {'k': 1}\nif $p:\n    $v = {'k': 2, 'l': $t}",
            "if $p:\n    self.table['k'] = $e",
        ],
        tests=["len(self.items) > 0"],
    ),
    "inplace": Spice(
        [
            "$o.add_(1)",
            "$o += 1",
            "$o *= $t",
            "if $q:\n    $o.add_(1)\nelse:\n    $o.sub_(1)",
            "if $q:\n    $o += 1",
            "if $q:\n    $z = $t\nelse:\n    $z = $e\n$z.add_(1)",
            "$z = $t if $q else $t\n$z.mul_(2)",
            "$o.reshape(-1)[0] = 0",
            "if $p:\n    $o.reshape(-1)[0] = 0",
            "$o[$t > 0] = 0",
            "$o.zero_()",
            "self.s.add_(1)",
            "if $p:\n    self.s.copy_($t)",
            "$z = $t\nif $p:\n    $z = $z + 1\n$z -= 1",
            "$v = $t.reshape(-1)\nif $p:\n    $o = $e\n$o.add_(1)",
            "logger.warning('value %s', $t)\n$o.add_(1)",
            "if $G:\n    raise ValueError(f'guard $i {$t.sum()}')\n$o.add_(1)",
            "$g = $p\n$o.neg_()\nif $g:\n    $z = $e",
        ],
    ),
    "rng": Spice(
        [
            "if $q:\n    $o = $o + torch.rand_like($t.float())",
            "$z = $t + torch.rand($t.shape) if $p else $t",
            "if torch.rand([]) < 0.5:\n    $o = $e",
            "if $p:\n    $o = self.drop($t.float())\nelse:\n    $o = $t.float()",
            "if $p and torch.rand(()) > 0.5:\n    $o = $e",
            "if $p:\n    torch.manual_seed(1)\n$z = $t + torch.rand(1)",
            "if $p:\n    $o = $t + torch.randn($t.shape).to($t.dtype)\nelse:\n    $o = $e",
        ],
        tensors=["torch.rand_like($t.float())"],
    ),
    "draws": Spice(
        [
            "d$i = np.random.uniform(0, 1)\nskip$i = flag and (d$i < 0.5)\nif not skip$i:\n    $o = $e",
            "for i in range(n):\n    d$i = np.random.rand()\n    if n > 2 and d$i >= 0.5:\n        continue\n    $o = $e",
            "d$i = np.random.normal($k)\n$B\nif self.training and d$i > 0.5:\n    $o = $e",
            "if $q:\n    d$i = np.random.uniform()\n    $o = $e if flag and d$i <= 0.5 else $t",
            "d$i = np.random.uniform()\nif $G:\n    raise ValueError('guard $i')\nif flag and d$i < 0.3:\n    $o = $e",
            "d$i = np.random.uniform()\nif $p and d$i < 0.5:\n    $o = $e",
            "d$i = np.random.randint(5)\nlogger.info('log $i')\n$z = $t * np.random.rand() if flag and d$i > 2 else $e",
            "d$i = np.random.uniform()\nself.k = d$i < 0.5",
        ],
    ),
    "raising": Spice(
        [
            "if $q:\n    $z = $t + $t.reshape(-1)[n]\nelse:\n    $z = $e",
            "if $p:\n    $z = $t // $t.long()\nelse:\n    $z = $e",
            "if $p:\n    $z = $t.view(7)\nelse:\n    $z = $e",
            "if $p:\n    $z = self.missing\nelse:\n    $z = $e",
            "if self.cache is not None and $p:\n    $z = self.cache + $t",
            "if $p:\n    $o = self.cache + $t",
            "if n < $t.numel() and $p:\n    $z = $t.reshape(-1)[n] + $t",
            "$z = $t.reshape(-1)[$t.long().abs().max()] + $t if $p else $t",
            "if $p:\n    $z = torch.linalg.cholesky($t.float() * -torch.eye(2))",
            "if $p:\n    $o = $t + {}['k']",
            "$z = $t + (4 // n if $p else 1)",
            "if $p:\n    $z = torch.cat([$t, $t])\nelse:\n    $z = torch.cat([$t, $t.unsqueeze(0)])",
        ],
        tests=["$p and $t.reshape(-1)[n] > 0", "n < $t.numel() and $t.reshape(-1)[n] > 0"],
    ),
    "singular": Spice(
        [
            "if ($t > 0).all():\n    $z = $t.log()\nelse:\n    $z = $e",
            "$z = $t.sqrt() if ($t >= 0).all() else $t",
            "if $p:\n    $z = $t / $t",
            "if $q:\n    $z = $t.log()\nelse:\n    $z = $t.sqrt()",
            "if $s != 0:\n    $o = $t / $s",
            "$z = $t if $p else $t.norm() + $t",
            "if $p:\n    $o = $t.pow(-0.5)",
            "if ($t > 0).all():\n    $o = $e\n    $z = double($t).log()\nelse:\n    $z = $o",
        ],
        tensors=["1 / $t", "$t.log()", "$t.acos()", "$t.atan2($t)", "$t.std() + $t"],
        train=True,
        floating=True,
    ),
    "alias": Spice(
        [
            "$z = $t",
            "if $p:\n    $z = $t\nelse:\n    $z = $t.clone()",
            "$z = x if $p else y",
            "if $z is x:\n    $o = $e",
            "$z = $t if $p else $t\nif $z is $t:\n    $o = $e",
            "$z = $t[...]",
            "$z = $t.detach() if $p else $t",
            "$v = [$t, $t]\nif $p:\n    $o = $v[0]",
            "if $p:\n    $z = x.view(-1)\nelse:\n    $z = x.view(-1)",
            "if $p:\n    x, y = y, x",
        ],
        tests=["$t is $t", "$t is not x", "x is y"],
    ),
    "predicate": Spice(
        [
            "if $t > 0:\n    $z = $e\nelse:\n    $z = $e",
            "if $t.reshape(-1)[:1] > 0:\n    $z = $e\nelse:\n    $z = $e",
            "if $s:\n    $o = $e",
            "if $t.any():\n    $o = $e",
            "$z = $t if $s else $e",
            "if $t.reshape(-1)[:0] > 0:\n    $o = $e",
            "$g = $t.sum() * 0\nif $g:\n    $o = $e\nelse:\n    $o = $o + 1",
            "if $t.reshape(-1)[:1]:\n    raise ValueError('guard $i')",
            "assert $t > -99",
            "if self.k and $s:\n    $o = $e",
            "if $t.sum(-1, keepdim=True) > 0 and $p:\n    $o = $e",
        ],
        tests=["$s", "$t.sum().bool()", "$t.long().sum()", "$t.any()", "not $s", "$k", "$k and $s", "$t.shape"],
    ),
    "boolean": Spice(
        [
            "$v = $p and $p",
            "$v = $p or $t",
            "$v = not $p\nif $v:\n    $o = $e",
            "$g = $p and flag\nif $g:\n    $o = $e",
            "if $p is True:\n    $o = $e",
            "if all([$p, $p]):\n    $o = $e",
            "$v = bool($p)",
            "$v = max($s, $s)\n$z = $t - $v",
            "if ($p) == flag:\n    $o = $e",
            "$z = ($t if $p else $t) + ($t if $p else $t)",
            "$z = torch.relu($t if $p else -$t)",
        ],
        tests=[*BOOLEANS, "any([$p, $p])", "0 < $s < $s < 10", "$p and (flag or $p) and not $p", "$p != $p"],
    ),
    "item": Spice(
        [
            "$v = $s.item()",
            "$z = $t * float($s)",
            "if $s.item() > 0:\n    $z = $e\nelse:\n    $z = $e",
            "if $s.item() > 100:\n    raise ValueError(f'guard $i {$s.item()}')",
            "assert $s.item() < 90, 'guard $i'",
            "$v = int($t.gt(0).sum())\n$z = $t + $v",
            "$v = $t.tolist()",
        ],
        tests=["$s.item() > 0", "float($s) < 3", "bool($p)", "$p.item()", "int($t.gt(0).sum()) % 2 == 0"],
    ),
    "numbers": Spice(
        [
            "$v = int(($t > 0).sum())\n$z = $t.reshape(-1)[:$v]",
            "$v = $t.long().abs().sum() % 3\nfor i in range($v):\n    $o = $o + i",
            "$z = torch.arange(($t > 0).sum()) + $s",
            "$v = torch.unique($t)\n$z = $t + $v.shape[0]",
            "$v = torch.unique_consecutive($t.reshape(-1), return_counts=True)\n$z = $v[0] * $v[1]",
            "sizes$i = torch.tensor([n, 1])\n$z = torch.zeros(sizes$i[0], sizes$i[1]) + $s",
            "$z = $t.repeat_interleave(torch.tensor(2))",
            "$z = $t.reshape(-1).nonzero() + 1",
            "$v = [float(u) for u in $t.reshape(-1)]",
            "$v = any($t.reshape(-1))\nif $v:\n    $o = $e",
            "for count in torch.tensor([n, 2]):\n    $o = $o + count\n    $z = $t.reshape(-1)[: count // 2]",
        ],
        tests=["$s.item() > n", "int($s) % 2", "len($t.unique()) > 1"],
    ),
    "masks": Spice(
        [
            "m$i = $o > 0\nw$i = $e\n$o[m$i] = w$i[m$i]",
            "m$i = $o > 0\nw$i = $e\n$o[m$i] += w$i[m$i]",
            "m$i = $o < 1\nw$i = $e\n$o[~m$i] -= w$i[~m$i]",
            "w$i = $o[...]\nm$i = w$i > 0\n$o[m$i] = w$i[m$i]\n$z = w$i",
            "m$i = $t > 0\n$z = $t + $t[m$i].sum()",
            "m$i = $o > 0\n$o[m$i] += $o[m$i] * 2",
            "m$i = $o > 0\n$o[m$i] *= 2",
            "m$i = $t != 0\n$z = torch.cat([$t[m$i], $t[~m$i]])",
            "w$i = $t.reshape(-1)\nw$i = w$i[w$i > 0]\n$z = w$i[w$i < 2] * 2",
        ],
        train=True,
    ),
    "experts": Spice(
        [
            EXPERTS + "for e in range(3):\n    (rows,) = torch.where(hit$i[e])\n    if rows.shape[0] == 0:\n"
            "        continue\n    state = w$i[rows] * 2\n    out$i.index_add_(0, rows, state)\n$z = out$i",
            EXPERTS + "for e in range(3):\n    (rows,) = torch.where(hit$i[e])\n    if rows.numel() > 0:\n"
            "        state = pick(w$i[rows])\n        out$i.index_add_(0, rows, state)\n$z = out$i",
            EXPERTS + "for e in range(3):\n    (rows,) = torch.where(hit$i[e])\n    if rows.numel() > 0:\n"
            "        state = noisy(w$i[rows])\n        out$i.index_add_(0, rows, state)\n$z = out$i",
            EXPERTS + "hits$i = hit$i.any(-1).nonzero()\nfor e in hits$i:\n    (rows,) = torch.where(hit$i[e[0]])\n"
            "    state = w$i[rows] + $s\n    out$i.index_add_(0, rows, state)\n$z = out$i",
            EXPERTS + "hits$i = hit$i.any(-1).nonzero(as_tuple=True)[0].tolist()\n$B\nfor e in hits$i:\n"
            "    (rows,) = torch.where(hit$i[e])\n    state = w$i[rows] / 2\n"
            "    out$i.index_add_(0, rows, state)\n$z = out$i + state",
            EXPERTS + "hits$i = hit$i.any(-1).nonzero()\nfor e in hits$i:\n    e = e[0]\n    if e == n:\n"
            "        continue\n    (rows,) = torch.where(hit$i[e])\n    state = checked(w$i[rows])\n"
            "    out$i.index_add_(0, rows, state)\n$z = out$i",
        ],
    ),
    "messages": Spice(
        [
            "if $G:\n    raise ValueError(f'guard $i {$s} of {$t.shape}')",
            "if $q:\n    raise GuardError('guard $i', $i)",
            "if $G:\n    raise GuardError(f'guard $i {$s}')",
            "if $G:\n    raise ValueError('guard $i %s and %d' % ($s, n))",
            "if $G:\n    raise RuntimeError('guard $i {}'.format($t.sum()))",
            "if $G:\n    raise ValueError('guard $i') from None",
            "if $G:\n    raise ValueError('guard $i') from KeyError($i)",
            "if $G:\n    raise NotImplementedError",
            "if $G:\n    raise IndexError(n, $i)",
            "if $G:\n    logger.error('log $i')\n    raise ValueError('guard $i')",
            "if $G:\n    message = f'guard $i {$s}'\n    raise ValueError(message)",
            "assert $C",
            "assert $C, 'guard $i'",
            "assert $C, f'guard $i {$s}'",
            "assert $p or n >= 0, GuardError('guard $i')",
            "if $G:\n    raise StopIteration('guard $i')",
            "if not $C:\n    raise ValueError('guard $i')\nelse:\n    $o = $e",
            "if $G:\n    raise ValueError('guard $i')\nelif $p:\n    $o = $e",
            "if $p:\n    if $G:\n        raise ValueError('guard $i')\n    $o = $e",
            "for i in range(n):\n    if $G:\n        raise ValueError(f'guard {i}')\n    $o = $o + i",
            "if $p:\n    assert $C, 'guard $i'\n    $o = $e",
            "check($t)",
        ],
        tensors=["checked($t)"],
    ),
    "guarded": Spice(
        [
            "if $t.numel() <= n:\n    raise IndexError('guard $i')\n$z = $t.reshape(-1)[n] + $t",
            "at = $t.long().abs().sum() % 6\nif at >= $t.numel():\n    raise IndexError(f'guard $i {at}')\n"
            "$z = $t.reshape(-1)[at] + $t",
            "if ($t.long() == 0).any():\n    raise ZeroDivisionError('guard $i')\n$z = $t.long() // $t.long()",
            "assert ($t.long() != 0).all(), 'guard $i'\n$z = 7 // $t.long()",
            "if $t.numel() == 0 or $t.max() > 50:\n    raise ValueError('guard $i')",
            "if ($t <= 0).any():\n    raise ValueError('guard $i')\n$z = $t.log()",
            "if $G:\n    raise ValueError('guard $i')\n$v = int($t.gt(0).sum())",
            "$g = ($t.long() == 0).any()\nif $g:\n    $z = $e\nelse:\n    $z = 6 // $t.long()",
        ],
    ),
    "try": Spice(
        [
            "try:\n    $B\n    if $p:\n        raise ValueError('guard $i')\nexcept ValueError as error:\n"
            "    logger.warning('caught %s', error)\n    $o = $e",
            "try:\n    $B\nfinally:\n    logger.info('log $i')\n    $o = $e",
            "try:\n    $z = $e\n    assert $p\nexcept (AssertionError, RuntimeError):\n    $z = $e",
            "try:\n    check($t, 1)\nexcept ValueError:\n    $o = $e",
            "try:\n    logger.info('log $i')\n    check($t)\nexcept Exception:\n    $o = $e",
            "try:\n    if $p:\n        $o = $e\nexcept KeyError:\n    pass",
            "try:\n    if $G:\n        raise KeyError('guard $i')\n    $z = $e\nexcept ValueError:\n    $z = $t\n"
            "else:\n    $o = $e",
            "try:\n    if $p:\n        return $t\n    $o = $e\nfinally:\n    self.k += 1",
        ],
    ),
    "loop": Spice(
        [
            "for i in range(n):\n    if $p:\n        continue\n    $o = $e",
            "for i in range(n):\n    if $p:\n        break\n    $o = $e\nelse:\n    $o = $e",
            "for part in ($t, $t):\n    if part.sum() > 0:\n        $o = $o + part",
            "i = 0\nwhile i < n and $p:\n    i += 1\n    $o = $e",
            "for i in range(n):\n    if $p:\n        return $r\n    $o = $e",
            "for i in range(n):\n    $B\n    if $q:\n        continue\n    $B",
            "for i, part in enumerate([$t, $t]):\n    $o = $o + part if $p else $o\n    logger.info('log %d', i)",
        ],
    ),
    "walrus": Spice(
        [
            "if (w := $s) > 0:\n    $z = $t + w\nelse:\n    $z = $t - w",
            "$z = (w := $e) + w",
            "if (w := $p) and n:\n    $o = $e\n$v = w",
            "$z = (w := $t * 2) if $p else $t",
            "if n > 2 and (w := $s) > 0:\n    $o = $o + w",
        ],
        tests=["(w := $s) > 0", "(w := $s) > 0 and w < 5"],
    ),
    "helper": Spice(
        ["check($t)", "$z = noisy($t)", "if $p:\n    $z = pick($t)\nelse:\n    $z = noisy($t)", "$z = clamped($t)"],
        tests=["positive($t)", "within($t, n)", "positive($t) and within($t, n)", "not within($t, $k)"],
        tensors=["pick($t)", "checked($t)", "noisy($t)", "clamped($t)"],
    ),
    "context": Spice(
        [
            "with torch.no_grad():\n    $B",
            "if $p:\n    with torch.no_grad():\n        $o = $e",
            "with torch.no_grad():\n    if $p:\n        $z = $e\n    else:\n        $z = $e",
            "with torch.enable_grad():\n    if $G:\n        raise ValueError('guard $i')",
        ],
        train=True,
    ),
    "closure": Spice(
        [
            "g = lambda u: u + $o\nif $p:\n    $o = $e\n$z = g($t)",
            "def inner$i(u):\n    return u * 2 + $t\n\n$z = inner$i($t)",
            "$z = sum([$t * j for j in range(2)])",
            "$z = [u for u in ($t, $t) if u is not None][0]",
            "def inner$i(u):\n    if $p:\n        return $t\n    return u\n\n$z = inner$i($t)",
            "def inner$i(u):\n    assert (u < 60).all(), 'guard $i'\n    return u\n\n$z = inner$i($t)",
            "$v = [j for j in range(n) if $p]",
        ],
    ),
    "scope": Spice(
        [
            "if $p:\n    TALLY += 1",
            "TALLY += 1\nif $G:\n    raise ValueError(f'guard {TALLY}')",
            "if $p:\n    $z = $e\nelse:\n    $z = $e\n$v = sorted(locals())",
            "w$i = $e\nif $p:\n    del w$i",
            "$z: torch.Tensor = $t if $p else $e",
            "if $p:\n    import math\n\n    $o = $o * math.floor(2.5)",
        ],
    ),
    "parameter": Spice(
        [
            "if $p:\n    $z = $t * self.w\nelse:\n    $z = $e",
            "weight = self.w if $p else self.v\n$z = $t * weight",
            "$z = $t * self.w if $p else $t * self.v",
            "if $p:\n    $o = $o + self.v",
            "weight = self.w if $p else self.v\n$v = type(weight).__name__",
            "if $p:\n    $z = $t.detach() * 2\nelse:\n    $z = $t * self.w",
        ],
        train=True,
        floating=True,
    ),
    "optional": Spice(
        [
            "mask = $p if flag else None\nif mask is not None and mask:\n    $o = $e",
            "mask = None\nif $p:\n    mask = $e\n$v = mask",
            "$z = $t if flag is None else ($t if $p else $e)",
            "if flag is not None and $p:\n    return $r",
            "if $p:\n    return",
            "if $p:\n    return None, $t\n$o = $e",
        ],
    ),
    "equal": Spice(
        ["if not torch.equal($t, $t):\n    raise ValueError('guard $i')", "assert not torch.equal($t, $e)"],
        tests=[
            *["torch.equal($t, $t)", "not torch.equal($t, $t)", "$t.equal($t)", "torch.is_nonzero($s)"],
            *["torch.any($t > 0)", "torch.all($t == $t)", "$t.isnan().any()", "torch.allclose($t, $t)"],
            *["torch.is_tensor($t)", "torch.isclose($t, $t).all()", "torch.logical_and($p, $p)", "$t.eq($t).all()"],
        ],
    ),
    "effects": Spice(
        [
            "logger.warning('value %s', $s)",
            "logger.info(f'value {$t.shape} sum {$s}')",
            "print('log $i', n)",
            "print('value', $s)",
            "if $p:\n    logger.warning('log $i')\n    $o = $e\nelse:\n    print('log $i')",
            "if $p:\n    print('value', $t)\n$z = $e",
            "warnings.warn('log $i')",
            "if $G:\n    logger.error('log $i')\n    $o = $e",
            "if $p:\n    $o = $e\n    logger.info('value %s', $o)",
            "logger.warning('log $i')\nif $G:\n    raise ValueError('guard $i')\nlogger.warning('log after $i')",
            "for i in range(n):\n    if $p:\n        logger.info('log %d', i)\n    $o = $e",
        ],
        tensors=["noisy($t)"],
    ),
}


LONG = 6  # lines; after that many, no further statement is begun

# --- one program -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Program:
    """The text of `f` and what it is called with; `repr` can be pasted into ``kept_programs.py``.

    dtype, shape: of x; other, other_shape: of y.  train: x, y and the parameters of `self` want gradients.
    leaf: x and y are leaves, which cannot be changed in place.  module: `self` is a Module, not a plain object.
    vary: the third call has another n and another size.
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
    seed: int = 0


class _Writer:
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


def program_of(seed: int) -> Program:
    """The program of `seed`: the same on every machine and every version of Python that is supported."""
    rng = Random(seed)
    names = rng.sample(sorted(SPICES), rng.choice([0, 1, 1, 1, 2, 2, 3]))
    spices = [SPICES[name] for name in names]
    must_float = any(spice.floating for spice in spices)
    dtype = rng.choice(["float32"] * 6 + ["float16", "float64"] + ["bfloat16", "int64", "int64"] * (not must_float))
    other = dtype if rng.random() < 0.85 else rng.choice(["float32", "float64", "int64", "float16"])
    shape = rng.choice([(4,)] * 7 + [(2, 3)] * 5 + [()] * 4 + [(1,)] * 2 + [(0,)])
    other_shape = shape if rng.random() < 0.85 else rng.choice([(), (1,), (4,)])
    train = dtype != "int64" and rng.random() < (0.8 if any(spice.train for spice in spices) else 0.25)
    writer = _Writer(rng, spices, dtype != "int64")
    lines = ["global TALLY"] if "scope" in names else []
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
