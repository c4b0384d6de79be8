"""What the rules for data-dependent statements share: the evidence, and the obligations on the function around one."""

from __future__ import annotations

from .. import tensor_ops
from ..analysis.scopes import Function, ModuleScope, Place
from ..analysis.taint import Evidence, Operations
from ..diagnostics import Refusal
from .known_calls import FOREIGN_COMPILERS
from .operators import TORCH

OPERATIONS = Operations(
    tensors=tensor_ops.TENSOR_RESULT,
    predicates=tensor_ops.PREDICATES,
    reads=tensor_ops.REDUCTIONS_TO_PYTHON,
    modules=(TORCH,),
    strangers=("math.", "numpy.", "np.", "tf.", "tensorflow.", "jax.", "jnp."),
)


def evidence(function: Function, scope: ModuleScope) -> Evidence:
    """What speaks for the values of `function` being tensor data."""
    return scope.evidence(function, OPERATIONS)


def compiled_elsewhere(place: Place, scope: ModuleScope) -> bool:
    """Does a decorator of another compiler read the function's code?"""
    for function in place.function.lineage():
        for decorator in function.node.decorator_list:
            maker = getattr(decorator, "func", decorator)
            if scope.imports.qualified(maker).partition(".")[0] in FOREIGN_COMPILERS:
                return True
    return False


def unsuitable(place: Place, scope: ModuleScope, code: str) -> Refusal | None:
    """The refusal, under the rule's `code`, if nothing data-dependent in the function can be rewritten."""
    function = place.function
    if function.is_async or function.is_generator:
        return Refusal(f"{code}-R10", "the function is a coroutine or a generator")
    if function.reads_its_frame:
        return Refusal(f"{code}-R11", "the function reads its own frame (locals, exec, eval, frame objects)")
    if compiled_elsewhere(place, scope):
        return Refusal(f"{code}-R12", "another compiler compiles the function")
    return None
