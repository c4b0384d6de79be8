"""A tensor that a function of autograd is given twice, which Dynamo does not trace: the second time, a view of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...engine.attempt.attempt import STATEMENT
from ...engine.attempt.compilation import Compilation
from ...engine.attempt.restart import expect_success_of
from ...engine.door.question import question
from ...engine.door.tracer import SourceLine, Trace
from ...engine.door.variables import Variable
from ...engine.epilogue.deferral import is_transformed
from ...engine.facts.object_identity import before_questions
from ..shared.traced_operations import is_tensor
from ..shared.traced_selection import stands_for_both
from ..shared.traced_sides import is_harmful
from .traced import is_asked


def apart(owner: Any, tensor: Any) -> Any:
    """`tensor`, the second time that ``owner.apply(tensor, tensor)`` has it, or a view where nobody can tell the two.

    With a gradient it stays: how those of the two add up is for autograd to say.  So it does where it is written to
    later: autograd misses that in a function of Dynamo's.
    """
    if not (is_asked(tensor) and is_tensor(tensor)) or tensor.requires_grad or tensor.is_complex():
        return tensor
    if is_transformed() or not _may_be_viewed(owner):
        return tensor
    view = tensor.view_as(tensor)
    return view if stands_for_both(view, tensor, tensor) else tensor


@dataclass
class _Viewed:
    """The lines where an attempt has made such a view."""

    lines: list[SourceLine | None] = field(default_factory=list)


@question(otherwise=False)
def _may_be_viewed(trace: Trace, owner: Variable) -> bool:
    if is_harmful(trace) or trace.is_in_a_body:
        return False
    if type(owner.realize()).__name__ != "AutogradFunctionVariable":
        return False
    trace.compilation.of(_Viewed).lines.append(trace.line)
    before_questions(trace.compilation, _judge_question)
    expect_success_of(trace.compilation)
    return True


def _judge_question(compilation: Compilation, _tensors: list[Variable]) -> None:
    """Whichever tensors are asked for, as inside the function, where these two have names of their own."""
    reason = "the program asks which object a tensor is, behind one that is given twice"
    compilation.without(*map(STATEMENT.at, compilation.of(_Viewed).lines), reason=reason)
