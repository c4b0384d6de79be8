"""Progress bars around what is traced: ``for layer in tqdm(self.layers)``, ``with tqdm(total=3) as bar``.

The loop goes over what the bar was given; the bar is made and moved behind the graph, step by step, in the order of the
other effects.  So it shows every step, and the time of none: a graph has no moments inside of it.

Dynamo inlines the functions that are given a list `shown`.  It holds what makes the bar, and from the delivery on the
bar, what that goes over, and its iterator; it is None where the bar shows nothing.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ...engine.attempt.attempt import Feature, Lifetime
from ...engine.attempt.compilation import Compilation, compilation_of
from ...engine.door.question import at_connection, is_answered, question
from ...engine.door.tracer import UNOBSERVED_CONTEXTS, Trace, covered_trace_at
from ...engine.door.variables import Variable, is_unread, tuple_of, type_of
from ...engine.epilogue import deferral
from ...source import covered
from ...source.progress_bars import OF_RANGE, SHOWING, TQDM, TRACK
from ...source.templates import DONE, ITEM_AT_HAND
from .codes import NEEDS_ITS_BREAKS, UNKNOWN_CALL
from .traced import leave, record, refusal_here

_BARS = Feature("progress bars are shown behind the graph", Lifetime.CODE)


@at_connection
@functools.cache
def watch() -> None:
    """Stand where Dynamo calls a class, or a function, of the program, from now on."""
    from torch._dynamo.variables.builtin import BuiltinVariable
    from torch._dynamo.variables.functions import SkipFunctionVariable, UserFunctionVariable
    from torch._dynamo.variables.user_defined import UserDefinedClassVariable

    _let(UserDefinedClassVariable, "value", _is_bar, _bar)
    _let(UserFunctionVariable, "fn", lambda function: function is _loaded(*TRACK), _steps_of)
    _let(SkipFunctionVariable, "value", _is_of_range, _bar_of_range)
    _look_at_types(BuiltinVariable)


def _look_at_types(kind: Any) -> None:
    """Stand where Dynamo answers ``type(bar)``, which is not that of the bar behind the graph."""
    otherwise = kind.call_type

    @functools.wraps(otherwise)
    def call_type(builtin: Any, translator: Any, asked: Variable) -> Any:
        if not is_unread(asked) and type_of(asked) in UNOBSERVED_CONTEXTS:
            compilation = compilation_of(translator.output)
            if not compilation.of(_Bars).is_making:  # as Dynamo does to make one
                _without(compilation, "the type of a progress bar is asked for")
        return otherwise(builtin, translator, asked)

    kind.call_type = call_type


def _loaded(module: str, name: str) -> Any:
    """What the module has by that name, if it has been imported; else an object that nobody else has."""
    return getattr(sys.modules.get(module), name, _BARS)


def _is_bar(kind: Any) -> bool:
    """Is it a class of tqdm's own?  One that a program derives from it may do anything."""
    base = _loaded(*TQDM)
    return base is not _BARS and issubclass(kind, base) and _is_of_tqdm(kind)


def _is_of_range(function: Any) -> bool:
    """Is it one of tqdm's that make a bar for a range?"""
    return getattr(function, "__name__", "") in OF_RANGE and _is_of_tqdm(function)


def _is_of_tqdm(called: Any) -> bool:
    return isinstance(called.__module__, str) and called.__module__.partition(".")[0] == TQDM[0].partition(".")[0]


def _let(kind: Any, holder: str, is_such: Callable[[Any], bool], made_of: Callable[..., Variable]) -> None:
    """holder: the attribute of such a variable that is what it calls."""
    otherwise = kind.call_function

    @functools.wraps(otherwise)
    def call_function(called: Any, translator: Any, args: Sequence[Variable], options: dict[str, Variable]) -> Any:
        trace = covered_trace_at(translator) if is_such(getattr(called, holder)) else None
        made = None
        if trace is not None and _may_wait(trace):
            made = made_of(_Call(trace, getattr(called, holder), args, options))
        return otherwise(called, translator, args, options) if made is None else made

    kind.call_function = call_function


def _may_wait(trace: Trace) -> bool:
    is_on = any(covered.is_under("defer", frame.f_code, frame.f_globals) for frame in trace.frames())
    return is_on and is_answered(trace) and trace.compilation.allows(_BARS)


@dataclass
class _Bars:
    """Those of an attempt.

    followed: the lists of those that move only as long as data has not ended their loops.
    is_making: is one being made for the trace?
    """

    followed: list[Variable] = field(default_factory=list)
    is_making: bool = False


class _Call:
    """The call of a bar: of `called`, for the items of an iterable, with the other arguments."""

    def __init__(self, trace: Trace, called: Any, args: Sequence[Variable], options: dict[str, Variable]) -> None:
        self._trace, self.called, self._args, self._options = trace, called, args, options
        self.shown: Variable = None
        self.items: Variable = None

    def inlined(self, function: object, *given: object) -> Variable:
        """What the traced function gives; given: variables, or constants."""
        return self._variable(function).call_function(self._trace.translator, [*map(self._variable, given)], {})

    def _variable(self, value: object) -> Variable:
        from torch._dynamo.variables.base import VariableTracker

        if isinstance(value, VariableTracker):
            return value
        if value is self.called:
            return deferral.constant_of(self._trace, value, "graphmend_progress")
        return VariableTracker.build(self._trace.translator, value)

    def stand_in(self) -> Variable:
        """A bar for the trace."""
        made = deferral.constant_of(self._trace, _stand_in(self.called), "graphmend_progress")
        bars = self._trace.compilation.of(_Bars)
        bars.is_making = True
        try:
            bar = made.call_function(self._trace.translator, [self.shown, self.items], {})
        finally:
            bars.is_making = False
        kind: Any = type(bar)
        bar.__class__ = _kind_of_bar(kind)
        return bar

    def of_range(self) -> _Call:
        """That which a function makes of its arguments, for what `range` makes of them."""
        names = self.called.__code__.co_names
        kind = next(found for found in map(self.called.__globals__.get, names) if isinstance(found, type))
        return _Call(self._trace, kind, [self.inlined(range, *self._args)], self._options)

    def begins(self) -> bool:
        """Let the bar be made behind the graph; False where it is to be made as it was written."""
        first, *others = _parameters(self.called)
        if len(self._args) > 1 + len(others) or not {first, *others} >= self._options.keys():
            return False
        given = {**dict(zip((first, *others), self._args, strict=False)), **self._options}
        self.items = given.pop(first, None) or self._variable(None)
        self.shown = self.inlined(_begun, self.called, self.items, (*given,), tuple_of([*given.values()]))
        return not (self.shown.is_python_constant() and self.shown.as_python_constant() is False)


def _parameters(called: Any) -> list[str]:
    """The names of what it can be given; tqdm's own classes take what the first of them does."""
    if not isinstance(called, type):
        return [*inspect.signature(called).parameters]
    _self, *names = inspect.signature(_loaded(*TQDM).__init__).parameters
    return [name for name in names if name != "kwargs"]


def _bar(call: _Call) -> Variable:
    return call.stand_in() if call.begins() else None


def _steps_of(call: _Call) -> Variable:
    return call.inlined(_steps, call.shown, call.items) if call.begins() else None


def _bar_of_range(call: _Call) -> Variable:
    return _bar(call.of_range())


def _begun(called: Any, items: Any, names: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    """Traced: let the bar be made behind the graph, and give the list of it; False where it cannot be."""
    if "disable" in names and values[names.index("disable")] is True:
        return None
    if not deferral.tracing() or _is_refused(names, values):
        return False
    shown = [called]
    leave(_make, shown, (items is not None, len(items) if _has_length(items) else None, names, *values))
    return shown


@question(otherwise=False)
def _has_length(_trace: Trace, items: Variable) -> bool:
    return hasattr(type_of(items), "__len__")


def _is_refused(names: tuple[str, ...], values: tuple[Any, ...]) -> bool:
    """May the bar be another one at the end of the graph?  Where it writes to, it is given as it is.

    names: of the last values.
    """
    first = len(values) - len(names)
    shown = [value for place, value in enumerate(values) if place < first or names[place - first] != "file"]
    why = refusal_here(False, tuple(shown), silent=False, is_shown=True)
    if why:
        record(why)
    return why != ""


def _steps(shown: Any, items: Any) -> Iterator[Any]:
    """Traced: the items, with a step of the bar for each, as long as data has not ended the loop."""
    if shown is not None:
        leave(_go_over, shown, ())
    for item in items:
        if shown is not None:
            _leave_unless(_is_done(shown), _step, shown)
        yield item
    if shown is not None:
        _leave_unless(_is_done(shown), _end, shown)


def _leave_unless(is_done: Any, delivery: Callable[..., None], shown: Any) -> None:
    leave(delivery, shown, (), None if is_done is False else ~is_done)


@question(otherwise=False)
def _is_done(trace: Trace, shown: Variable) -> Any:
    """Has data ended the loop over the steps?  False where it cannot; else a tensor (), or what the trace knows."""
    loop = next(trace.frames_outside())
    names = loop.instructions[loop.instruction_pointer].argval
    found = names[0] if isinstance(names, tuple) else names
    if not isinstance(found, str) or not found.startswith(ITEM_AT_HAND):
        return False
    trace.compilation.of(_Bars).followed.append(shown.realize())
    return loop.symbolic_locals[found.replace(ITEM_AT_HAND, DONE)]


def stepped(trace: Trace, bar: Variable) -> Variable:
    """What the bar goes over that stands there, if it stops where data ends the loop; None of anything else."""
    bar = bar.realize()
    if type_of(bar) not in UNOBSERVED_CONTEXTS:
        return None
    shown, items = (trace.output.side_effects.load_attr(bar, name).realize() for name in ("_shown", "_stepped"))
    is_none = shown.is_python_constant() and shown.as_python_constant() is None
    return items if is_none or any(each is shown for each in trace.compilation.of(_Bars).followed) else None


class _Bar:
    """Traced in the place of a bar of tqdm's, which exists behind the graph; what nothing is known of ends that."""

    def __init__(self, shown: Any, items: Any) -> None:
        object.__setattr__(self, "_shown", shown)
        object.__setattr__(self, "_stepped", items)
        object.__setattr__(self, "_kept_inside", _kept_inside())

    def __iter__(self) -> Iterator[Any]:
        return _steps(self._shown, self._stepped)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_raised: object) -> None:
        if self._shown is not None:  # a bar that is not closed in the end closes itself
            leave(_call, self._shown, ("close", ()))

    def __getattr__(self, name: str) -> Any:
        _give_up(UNKNOWN_CALL)

    def __setattr__(self, name: str, value: object) -> None:
        _give_up(UNKNOWN_CALL)

    def __bool__(self) -> bool:
        _give_up(UNKNOWN_CALL)
        return True

    def __len__(self) -> int:
        if not _has_length(self._stepped):
            _give_up(UNKNOWN_CALL)
        return len(self._stepped)

    def __del__(self) -> None: ...


def _method(name: str) -> Callable[..., Any]:
    def show(self: _Bar, *args: Any, **options: Any) -> Any:
        _show(self, name, args, options)
        return self._kept_inside  # of a step, say, whether it has been shown

    return show


for _name in SHOWING:
    setattr(_Bar, _name, _method(_name))


@functools.cache
def _stand_in(kind: type) -> type:
    """The class of what stands for such a bar: to Dynamo it is one."""
    made = type(kind.__name__, (_Bar, kind), {"__new__": object.__new__})
    UNOBSERVED_CONTEXTS.add(made)
    return made


def _without(compilation: Compilation, reason: str) -> NoReturn:
    """Trace the frame anew, with bars as they were written."""
    compilation.without(_BARS.at(code=NEEDS_ITS_BREAKS), reason=reason)


def _show(bar: Any, method: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Traced: let the method be called behind the graph."""
    if bar._shown is None:
        return
    values, names = (*args, *options.values()), (*options,)
    if _is_refused(names, values):
        _give_up(NEEDS_ITS_BREAKS)
    leave(_call, bar._shown, (method, names, *values))


@question(otherwise=None)
def _give_up(trace: Trace, why: str) -> None:
    record(why)
    _without(trace.compilation, "a progress bar is not only shown")


@functools.cache
def _kind_of_bar(kind: Hashable) -> Any:
    """Dynamo's class for objects of the program, but for what tells the class of one."""

    class BarVariable(kind):  # type: ignore[misc, valid-type]
        """A bar in the trace."""

        def var_getattr(self, translator: Any, name: str) -> Any:
            if name == "__class__":
                _without(compilation_of(translator.output), "the type of a progress bar is asked for")
            return super().var_getattr(translator, name)

    return BarVariable


@question(otherwise=None)
def _kept_inside(trace: Trace) -> Any:
    return _kind_of_kept()(trace.compilation)


@functools.cache
def _kind_of_kept() -> Any:
    """`KeptInsideVariable`, whose base is Dynamo's; it takes seconds to import."""
    from torch._dynamo.variables.base import VariableTracker

    class KeptInsideVariable(VariableTracker):  # type: ignore[misc]
        """What must not leave the trace: where it would, or is asked for anything, bars are as they were written."""

        _nonvar_fields = {"compilation", *VariableTracker._nonvar_fields}

        def __init__(self, compilation: Compilation, **more: Any) -> None:
            super().__init__(**more)
            self.compilation = compilation

        def reconstruct(self, _codegen: Any) -> None:
            _without(self.compilation, "a progress bar is given away")

    return KeptInsideVariable


class _Steps:
    """What a bar goes over behind the graph: as many items as the traced loop has taken."""

    is_over = False

    def __iter__(self) -> Iterator[None]:
        while not self.is_over:
            yield None


class _KnownSteps(_Steps):
    def __init__(self, length: int) -> None:
        self._length = length

    def __len__(self) -> int:
        return self._length


def _make(shown: list[Any], given: tuple[Any, ...]) -> None:
    has_items, length, names, *values = given
    items = _Steps() if length is None else _KnownSteps(length)
    bar = shown[0](items if has_items else None, **dict(zip(names, values, strict=True)))
    shown[:] = [bar, items]


def _go_over(shown: list[Any], _given: object) -> None:
    shown[1].is_over = False
    shown[2:] = [iter(shown[0])]


def _step(shown: list[Any], _given: object) -> None:
    next(shown[2])


def _end(shown: list[Any], _given: object) -> None:
    shown[1].is_over = True
    next(shown[2], None)


def _call(shown: list[Any], given: tuple[Any, ...]) -> None:
    method, names, *values = given
    count = len(values) - len(names)
    getattr(shown[0], method)(*values[:count], **dict(zip(names, values[count:], strict=True)))
