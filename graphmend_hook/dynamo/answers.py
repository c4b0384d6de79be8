"""What Dynamo makes of a question's function: a variable whose call is the answer.  Imports Dynamo."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from torch._dynamo.variables.base import VariableTracker
from torch._dynamo.variables.builder import VariableBuilder

if TYPE_CHECKING:
    from .question import Question


class QuestionVariable(VariableTracker):  # type: ignore[misc]
    """Stands for a question in the trace."""

    _nonvar_fields = {"question", *VariableTracker._nonvar_fields}

    def __init__(self, question: Question[Any], **options: Any) -> None:
        super().__init__(**options)
        self.question = question

    def python_type(self) -> type:
        return FunctionType

    def call_function(self, tx: Any, args: Any, kwargs: Any) -> VariableTracker:
        answer = self.question.answer(tx.output.current_tx, list(args), dict(kwargs))
        return answer if isinstance(answer, VariableTracker) else VariableTracker.build(tx, answer)


def register(questions: Iterable[tuple[Callable[..., Any], Question[Any]]]) -> None:
    """Let Dynamo make such variables of the functions, as `torch.compiler.substitute_in_graph` does of its own."""
    dispatch = VariableBuilder._id_dispatch()
    for function, question in questions:
        dispatch[id(function)] = functools.partial(_variable_of, question)


def _variable_of(question: Question[Any], builder: Any, _function: object) -> QuestionVariable:
    """What Dynamo's builder of variables makes of a question; it needs no guard."""
    return QuestionVariable(question, source=builder.source)
