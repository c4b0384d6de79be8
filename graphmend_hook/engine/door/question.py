"""The door to the tracer: functions that run for real while Dynamo traces their calls, and give constants.

::

    @question(otherwise=False)
    def stores_plainly(trace: Trace, owner: Variable, attribute: str) -> bool: ...

    if stores_plainly(module, "weight"):  # traced code: `owner` is Dynamo's variable for `module`

A parameter that is annotated `Variable` takes Dynamo's variable for the argument; every other takes a constant.
What is asked outside of traces too has a second function, which answers there: ``@question(otherwise, elsewhere=...)``.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from torch.compiler import is_dynamo_compiling

from ..attempt import defects, graph_breaks
from ..attempt.compilation import NotTracingError
from . import counters, instruction_cache, missing_guards, trust
from .own_code import own_code
from .tracer import Trace, log
from .variables import Variable

P = ParamSpec("P")
T = TypeVar("T")


def is_answered(trace: Trace) -> bool:
    """Does the tracer do what is relied on, and has nothing of ours failed in this compilation?"""
    if not trace.is_in_a_body:  # a probe is a frame of its own
        trust.prove()
    return not trace.compilation.attempts.failed and trust.works(*trust.EVERYTHING)


class Question(Generic[T]):
    """What is asked of the tracer, and the answer where it cannot tell."""

    def __init__(self, function: Callable[..., T], otherwise: T) -> None:
        self._signature = inspect.signature(function)
        parameters = self._signature.parameters.values()
        self.name = function.__name__
        for position, parameter in enumerate(parameters):
            kind = parameter.annotation
            if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                raise TypeError(f"question {self.name}: {parameter} has to be a positional parameter")
            if not isinstance(kind, str) or (kind == "Trace") is not (position == 0):
                raise TypeError(
                    f"question {self.name}: the first parameter, and no other, is annotated Trace, not {kind!r}"
                )
        self._function, self._otherwise = function, otherwise
        self._as_variables = [parameter.annotation == "Variable" for parameter in parameters][1:]

    def answer(self, translator: Any, arguments: list[Variable], keywords: dict[str, Variable]) -> T:
        """The function's result, or `otherwise` where nothing is compiled any more, or it fails."""
        from torch._dynamo.exc import RestartAnalysis, Unsupported

        trace = None
        try:
            trace = Trace(translator)
            if not is_answered(trace):
                return self._otherwise
            graph_breaks.note(trace)
            bound = self._signature.bind(trace, *arguments, **keywords)
            _, *values = bound.args
            given = [
                value if as_variable else value.as_python_constant()
                for value, as_variable in zip(values, self._as_variables, strict=False)
            ]
            return self._function(trace, *given)
        except RestartAnalysis:  # an order to Dynamo, see `Compilation.without`
            raise
        except NotTracingError:  # the end of the trace is being judged
            return self._otherwise
        except Unsupported as error:  # Dynamo cannot make a variable for what it is about
            log.debug("%s cannot be told: %s", self.name, error)
            return self._otherwise
        except Exception as error:
            defects.report(f"the question {self.name!r} of the tracer", error)
            if trace is not None:
                trace.compilation.give_up()
            return self._otherwise


def question(
    otherwise: T, elsewhere: Callable[..., T] | None = None
) -> Callable[[Callable[Concatenate[Trace, P], T]], Callable[P, T]]:
    """Make a function a question that traced code asks by calling it, without the argument for `trace`.

    otherwise: the answer where this torch's tracer cannot tell.
    elsewhere: answers, given the same, where Dynamo does not trace; without it `otherwise` is the answer there too.

    Raises TypeError for a signature that is none of a question.
    """

    def mark(function: Callable[Concatenate[Trace, P], T]) -> Callable[P, T]:
        @functools.wraps(function)
        def ask(*args: P.args, **kwargs: P.kwargs) -> T:
            if is_dynamo_compiling():
                connect()  # from then on Dynamo hands the calls of this function to the question
                return otherwise
            return otherwise if elsewhere is None else elsewhere(*args, **kwargs)

        _questions.append((ask, Question(function, otherwise)))
        return ask

    return mark


def in_trace() -> bool:
    """Is Dynamo tracing the caller?  Asked by `torch.compiler`, it would compile a frame without operations, too."""
    return bool(is_dynamo_compiling())


def answers_for(function: Callable[..., Any], otherwise: T) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Let what the marked function says be the answer wherever traced code calls `function`, which eager runs as it is.

    Until the tracer is told of the questions it traces `function`, which has to give the same then.
    """

    def mark(answer: Callable[..., T]) -> Callable[..., T]:
        _questions.append((function, Question(answer, otherwise)))
        return answer

    return mark


_questions: list[tuple[Callable[..., Any], Question[Any]]] = []  # by the functions that stand for them


@answers_for(in_trace, otherwise=True)
def _in_trace(_trace: Trace) -> bool:
    return True


_watchers: list[Callable[[], None]] = []


def at_connection(watch: Callable[[], None]) -> Callable[[], None]:
    """Mark what is to run once Dynamo hands the calls of questions to them."""
    _watchers.append(watch)
    return watch


def announce() -> bool:
    """Let Dynamo hand the calls of all questions to them, if it has been imported; says whether that is settled.

    Where this torch makes its variables in another way nothing is asked, and nothing is mended: `connect` says so.
    """
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is None or getattr(dynamo.__spec__, "_initializing", False):
        return False
    try:
        _announce()
    except Exception as error:
        log.debug("the tracer cannot be told of our questions: %s", error)
    return True


def _announce() -> None:
    from torch._dynamo.variables.builder import VariableBuilder
    from torch._dynamo.variables.misc import LambdaVariable

    dispatch = VariableBuilder._id_dispatch()  # as `torch.compiler.substitute_in_graph` does
    for function, asked in _questions:
        dispatch[id(function)] = functools.partial(_variable_of, asked, LambdaVariable)
    _skip_own_frames()
    missing_guards.watch()
    counters.watch()
    instruction_cache.watch()
    for watch in _watchers:
        watch()


def _skip_own_frames() -> None:
    """Let Dynamo never compile a function of this package as a frame of its own; it inlines them all the same.

    It would where a frame that Dynamo has given up calls one in eager, or where a break lies in one.
    """
    from torch._dynamo.eval_frame import skip_code

    for code in own_code():
        skip_code(code)


def connect() -> None:
    """What `announce` does, where that was not done before; Dynamo calls this for real, while it traces a question.

    The trace starts anew, because Dynamo expects every attempt to take the path of the first.
    """
    try:
        from torch._dynamo.exc import UnspecializeRestartAnalysis

        _announce()
        begun = UnspecializeRestartAnalysis(restart_reason="graphmend_hook: its first trace in this process")
    except Exception as error:
        defects.report("the connection to the tracer", error)
        return
    raise begun


def _variable_of(asked: Question[Any], kind: Callable[..., Variable], builder: Any, _function: object) -> Variable:
    """What Dynamo's builder of variables makes of a question: one whose call is the answer; it needs no guard.

    kind: Dynamo's class of variables that are called so.
    """
    from torch._dynamo.variables.base import VariableTracker

    def answer(*args: Variable, **kwargs: Variable) -> Variable:
        innermost = builder.tx.output.current_tx
        given = asked.answer(innermost, [*args], kwargs)
        return given if isinstance(given, VariableTracker) else VariableTracker.build(innermost, given)

    return kind(answer, source=builder.source)


# What `torch.compiler.assume_constant_result` does, without the import of Dynamo that it takes.  Dynamo keeps the
# result as a global of the traced module under the name of the function's code, so the name is one that no module has.
connect._dynamo_marked_constant = True  # type: ignore[attr-defined]
connect.__code__ = connect.__code__.replace(co_name="_@graphmend_connect")


@question(otherwise=False)
def is_connected(_trace: Trace) -> bool:
    """Is the tracer there to be asked?  Its first answer shows, on other torches, what cannot be relied on."""
    return True
