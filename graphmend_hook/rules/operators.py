"""Operators by the names that the module `operator` has for them."""

from __future__ import annotations

import ast

ARITHMETIC: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "truediv",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.BitAnd: "and_",
    ast.BitOr: "or_",
    ast.BitXor: "xor",
    ast.Invert: "invert",
    ast.USub: "neg",
    ast.UAdd: "pos",
}
COMPARISONS: dict[type[ast.AST], str] = {
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
}
TORCH = "torch."  # how a name of the tensor library begins
