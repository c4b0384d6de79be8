"""Texts of numbers that are symbols while they are traced, as in ``self.logged[f"loss_{k}"]``.

Dynamo (2.12 to 2.15) knows an integer that is a key by its value, which it guards, but not a text with one in it: that
equals no key that is there, so a lookup misses, and what it stores takes the place of what was stored.  A text by a
format (``f"{x:.1f}"``) it takes for the number itself behind the graph.  In mended code a number in a key has its
value, and a text is a text.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from .question import at_connection
from .tracer import covered_trace_at
from .variables import Variable, is_unread

_Text = tuple[str, list[Variable], dict[str, Variable]]  # what `str.format` takes


@at_connection
@functools.cache
def watch() -> None:
    """Stand where Dynamo makes keys of variables and texts of numbers, from now on."""
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase
    from torch._dynamo.variables.hashable import HashableTracker

    HashableTracker.__init__ = _with_values(HashableTracker.__init__)
    InstructionTranslatorBase._format_value = _as_text(InstructionTranslatorBase._format_value)


def _with_values(otherwise: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(otherwise)
    def make_key(key: Any, variable: Variable) -> None:
        otherwise(key, _with_its_numbers(variable))

    return make_key


def _as_text(otherwise: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(otherwise)
    def format_value(translator: Any, form: Variable, flags: int) -> None:
        converts = flags & 3  # ``!s``, ``!r``, ``!a``: the format is that of a text
        number = _number(translator.stack[-1]) if not converts and covered_trace_at(translator) else None
        if number is None:
            otherwise(translator, form, flags)
        else:
            translator.pop()
            translator.push(_formatted_by(form, number))

    return format_value


def _number(value: Variable) -> Variable | None:
    """The number that is a symbol, if that is what the value turns out to be."""
    from torch._dynamo.variables.tensor import SymNodeVariable

    if is_unread(value) and value.peek_type() not in (int, float):
        return None
    known = value.realize()
    return known if isinstance(known, SymNodeVariable) else None


def _formatted_by(form: Variable, number: Variable) -> Variable:
    """The text that stands for itself, and not for the number of which it is made."""
    from torch._dynamo.symbolic_convert import InstructionTranslator
    from torch._dynamo.variables.lazy import LazySymNodeFormatString, LazyVariableTracker

    if spec := form.as_python_constant():  # Dynamo applies it to the number's text: ``f"{1.5:.1f}"`` fails there
        return _formatted("{:" + spec + "}", [number], {})
    value = LazySymNodeFormatString(number, form)
    return LazyVariableTracker.create(value, source=None, tx=InstructionTranslator.current_tx())


def _formatted(text: str, listed: list[Variable], named: dict[str, Variable]) -> Variable:
    from torch._dynamo.symbolic_convert import InstructionTranslator
    from torch._dynamo.variables.misc import StringFormatVariable

    create = StringFormatVariable.create
    takes_translator = "tx" in inspect.signature(create).parameters  # since torch 2.15
    made: Variable = create(*[InstructionTranslator.current_tx()] * takes_translator, text, listed, named)
    return made


def _with_its_numbers(variable: Variable) -> Variable:
    """The key with the values of the symbols that its texts show; raises Unsupported for a text that shows a tensor."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    if _shows_symbols(variable) and covered_trace_at(InstructionTranslator.current_tx()):
        return _specialized(variable)
    return variable


def _text(variable: Variable) -> _Text | None:
    """A text that Dynamo formats later, as what `str.format` takes; None for anything else."""
    from torch._dynamo.variables.lazy import LazySymNodeFormatString
    from torch._dynamo.variables.misc import StringFormatVariable

    if is_unread(variable):
        value = variable.original_value()
        if not isinstance(value, LazySymNodeFormatString):
            return None
        return value.fmt_var.as_python_constant(), [value.sym_node_var], {}
    known = variable.realize()
    if not isinstance(known, StringFormatVariable):
        return None
    return known.format_string, known.sym_args, known.sym_kwargs


def _items(variable: Variable) -> list[Variable]:
    """Those of a tuple, which may be texts."""
    from torch._dynamo.variables.lists import TupleVariable

    known: Any = None if is_unread(variable) else variable.realize()
    return known.items if type(known) is TupleVariable else []


def _shows_symbols(variable: Variable) -> bool:
    return _text(variable) is not None or any(map(_shows_symbols, _items(variable)))


def _specialized(variable: Variable) -> Variable:
    from torch._dynamo.exc import Unsupported
    from torch._dynamo.utils import specialize_symnode
    from torch._dynamo.variables.lists import TupleVariable

    if is_unread(variable) and _text(variable) is not None:
        variable = variable.realize()  # a text of the number's text: Dynamo looks at the number, if it can
        if variable.is_python_constant():
            return variable
    if (text := _text(variable)) is not None:
        form, listed, named = text
        values = {name: specialize_symnode(value) for name, value in named.items()}
        made = _formatted(form, [*map(specialize_symnode, listed)], values)
        if not made.is_python_constant():
            raise Unsupported("a key whose text shows what is known after the graph")
        return made
    return TupleVariable([*map(_specialized, items)]) if (items := _items(variable)) else variable
