"""What traced code reads of Python's state where Dynamo has no guard for it.

Dynamo is watched from the moment it is imported: what is read before the first mended statement of a frame counts too.
Each translator of Dynamo's keeps the reads of its frame; `skipped_frames` says which of them have to be seen to.
"""

from __future__ import annotations

import abc
import copy
import dis
import enum
import functools
import os
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..attempt import defects
from ..attempt.compilation import begin_as_remembered
from .own_code import OWN_FILES
from .variables import Variable, is_unread, kinds_in, type_of

_KEPT = "graphmend_reads"  # the attribute of a translator with its reads, and of Dynamo's `OutputGraph`
_TWICE = "graphmend_twice"  # that of an `OutputGraph`: other sources of an object, by the one that its variable has
BREAKS = "graphmend_breaks"  # that of a translator in which a break was freed: would Dynamo leave its frame to eager?
LEFT = "graphmend_left"  # that of an `OutputGraph`: the codes of which Dynamo would have left a frame to eager before
_OWN_WAYS = frozenset({"__getattr__", "__hash__"})  # methods that Dynamo traces, but not at the times when they run
_WITHOUT_GUARDS = frozenset({"UserFunctionVariable", "PythonModuleVariable", "SkipFunctionVariable"})
UNWRAPS = "getattr_and_trace"  # of `torch._dynamo.polyfills`: calls what a wrapper in C wraps
# Python's own modules look for keys in what Dynamo guards, or in what the trace has made (`copy.deepcopy`).
_LIBRARY = ("<frozen ", copy.__file__)
_MAPPING_GET = ("mapping_get", os.path.join(*torch.__path__, "_dynamo", "polyfills", "__init__.py"))  # of `Mapping.get`
_MUTABLE = (list, dict, set, tuple, bytearray)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_KNOWN_WAYS = frozenset({torch.nn.Module.__getattr__.__code__.co_filename, enum.__file__})  # they look at nothing else


@dataclass(frozen=True)
class Read:
    """What is read, of the objects at the sources.

    fact: gives what is read, of `given` and the objects; None: no guard can tell it.
    """

    what: str
    sources: tuple[Any, ...] = ()
    fact: Callable[..., Any] | None = None
    given: tuple[Any, ...] = ()


def reads_of(owner: Any) -> dict[Read, None]:
    """Those of the frame that a translator traces; of an `OutputGraph` those of frames that would be left to eager."""
    known: dict[Read, None] = vars(owner).setdefault(_KEPT, {})
    return known


def sources_of(output: Any, source: Any) -> list[Any]:
    """Those at which the trace has found the object that it has found at this one."""
    return [source, *vars(output).get(_TWICE, {}).get(source, ())]


@functools.cache
def watch() -> None:
    """Stand where Dynamo answers, from now on; what another torch has elsewhere is not seen."""
    from torch._dynamo.symbolic_convert import InliningInstructionTranslator, InstructionTranslatorBase
    from torch._dynamo.symbolic_convert import compare_op_handlers as handlers
    from torch._dynamo.variables import builder, builtin, dicts, object_protocol, user_defined
    from torch._dynamo.variables.hashable import HashableTracker

    for name in ("is", "is not", "==", "!="):
        handlers[name] = _after(_compared_by, handlers[name])
    kinds = ("BuiltinVariable", "GetAttrBuiltinVariable", "HasAttrBuiltinVariable")  # since 2.13 of its own each
    objects = (user_defined.UserDefinedObjectVariable, user_defined.UserDefinedClassVariable)
    places: tuple[tuple[Any, str, Callable[..., None]], ...] = (
        (object_protocol, "vt_identity_compare", _same),
        (builtin, "vt_identity_compare", _same),
        (HashableTracker, "__init__", _hashed),
        (dicts.ConstDictVariable, "call_method", _looked_up),
        (objects[0], "generic_getattr", _read),
        *((kind, "get_source_by_walking_mro", _read_of_class) for kind in objects),
        (builder, "make_dupe_guard", _met_again),
        (InstructionTranslatorBase, "load_builtin_from_argval", _builtin),
    )
    for owner, name, look in places:
        if hasattr(owner, name):
            setattr(owner, name, _after(look, getattr(owner, name)))
    for owner in filter(None, (getattr(builtin, kind, None) for kind in kinds)):
        owner.call_function = _then(_called, owner.call_function)
    for kind in _subclasses(InstructionTranslatorBase):
        for code in (dis.opmap["GET_LEN"], dis.opmap["MATCH_KEYS"]):  # of a ``match`` statement
            kind.dispatch_table[code] = _after(_matched, kind.dispatch_table[code])
    InstructionTranslatorBase.exception_handler = _catching(InstructionTranslatorBase.exception_handler)
    InliningInstructionTranslator.inline_call_ = _inlining(InliningInstructionTranslator.inline_call_)


def _subclasses(kind: type) -> list[Any]:
    below: list[type] = kind.__subclasses__()
    return [kind, *(each for inner in below for each in _subclasses(inner))]


def _after(look: Callable[..., None], answer: Callable[..., Any]) -> Callable[..., Any]:
    """What does as `answer`, a function of Dynamo's, but first calls `look` with the arguments."""

    @functools.wraps(answer)
    def look_and_answer(*given: Any, **named: Any) -> Any:
        _try(look, *given, **named)
        return answer(*given, **named)

    return look_and_answer


def _then(look: Callable[..., None], answer: Callable[..., Any]) -> Callable[..., Any]:
    """The same, but calls `look` when the answer is known: the trace has looked at by then what it looks at."""

    @functools.wraps(answer)
    def answer_and_look(*given: Any, **named: Any) -> Any:
        try:
            return answer(*given, **named)
        finally:
            _try(look, *given, **named)

    return answer_and_look


def _try(look: Callable[..., None], *given: Any, **named: Any) -> None:
    try:
        look(*given, **named)
    except Exception as error:
        defects.report(f"{look.__name__} of what traced code reads", error)


def _catching(answer: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(answer)
    def answer_and_look(translator: Any, exception: Any) -> Any:
        is_raised = translator.current_instruction.opname in ("RAISE_VARARGS", "RERAISE")
        found = answer(translator, exception)  # which returns if there is a handler
        _try(_caught, translator, exception, is_raised)
        return found

    return answer_and_look


def _inlining(inline: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(inline)
    def inline_and_look(translator: Any) -> Any:
        _try(_inlined, translator)
        last = _last_operation(translator)
        try:
            return inline(translator)
        finally:
            _try(_hand_on, translator, _last_operation(translator) is not last)

    return inline_and_look


def _last_operation(translator: Any) -> Any:
    node = translator.output.current_tracer.graph._root.prev
    return node if node.op.startswith("call") else None


def _hand_on(translator: Any, has_operations: bool) -> None:
    """Give the reads to whoever decides what becomes of them, now that the frame has been traced.

    What a frame calls that a break has left to eager is compiled by itself, if it has an operation for the graph.
    """
    reads, is_left = reads_of(translator), getattr(translator, BREAKS, None)
    if is_left:
        reads_of(translator.output).update(reads)
    elif is_left is None and (not has_operations or translator.parent.f_code.co_filename in OWN_FILES):
        reads_of(translator.parent).update(reads)
    reads.clear()


def _add(
    what: str,
    *variables: Variable,
    fact: Callable[..., Any] | None = None,
    given: tuple[Any, ...] = (),
    of: Any = None,
) -> None:
    sources = tuple(variable.source for variable in variables if variable.source is not None)
    if sources or not variables:
        begin_as_remembered((of or _current()).output)
        reads_of(of or _current())[Read(what, sources, fact, given)] = None


def _current() -> Any:
    from torch._dynamo.symbolic_convert import InstructionTranslator

    return InstructionTranslator.current_tx().output.current_tx


def _caught(translator: Any, exception: Any, is_raised: bool) -> None:
    """A handler of the program goes on after an exception that an operation of Python's has raised."""
    from torch._dynamo.exc import ObservedUserStopIteration

    code = translator.f_code
    if code.co_filename.startswith(_LIBRARY):
        return
    if (code.co_name, code.co_filename) == _MAPPING_GET and _is_missing_in_environment(translator):
        return
    exception.graphmend_is_raised = is_raised or hasattr(exception, "graphmend_is_raised")
    if not (isinstance(exception, ObservedUserStopIteration) or exception.graphmend_is_raised):
        _add(f"{type(exception).__name__} is caught", of=translator)


def _is_missing_in_environment(translator: Any) -> bool:
    """Has ``os.environ.get(name)`` found nothing?  Then that is guarded, which Dynamo does not."""
    owner, name = (translator.symbolic_locals.get(local) for local in ("obj", "key"))
    if owner is None or owner.source is None or type_of(owner) is not type(os.environ):
        return False
    if name is None or not name.is_python_constant():
        return False
    _add("a variable of the environment", owner, fact=_has_variable, given=(name.as_python_constant(),), of=translator)
    return True


def _has_variable(name: str, environment: Any) -> bool:
    return name in environment


def _matched(translator: Any, _instruction: Any) -> None:
    _add("a container is matched", of=translator)


def _inlined(translator: Any) -> None:
    """A function is called: by which name its class has it, and what a module calls before and after."""
    code = translator.f_code
    begin_as_remembered(translator.output)
    if code in vars(translator.output).get(LEFT, ()):
        setattr(translator, BREAKS, True)
    if code.co_filename in OWN_FILES:
        return
    if code.co_name in _OWN_WAYS and code.co_filename not in _KNOWN_WAYS:
        _add(f"{code.co_name} of its own", of=translator)
    if translator.parent.f_code.co_name == UNWRAPS and "wrapper_obj" in translator.parent.symbolic_locals:
        _add("a result that may be remembered", of=translator)
    first = translator.symbolic_locals.get(code.co_varnames[0]) if code.co_argcount else None
    if first is None or is_unread(first):
        return
    owner = first.realize()
    value = _object_of(owner)
    kind = value if isinstance(value, type) else type(value)
    if isinstance(value, torch.nn.Module):
        _add("hooks", owner, fact=_hooks, of=translator.parent)
        _add("hooks of all modules", fact=_hooks_of_all, of=translator.parent)
    if _defined(kind, code.co_name) is not None:
        _add("a method", fact=_defined, given=(kind, code.co_name), of=translator.parent)


def _object_of(variable: Variable) -> Any:
    """The object that Dynamo keeps for the variable; None where it keeps none, as for a list of objects."""
    try:
        return getattr(variable, "value", None)
    except NotImplementedError:
        return None


def _constant_of(variable: Variable) -> list[Any]:
    """The constant of Python that it is, in a list; none where it is no constant, as a number that is a symbol."""
    try:
        return [variable.as_python_constant()]
    except NotImplementedError:
        return []


def _hooks(module: torch.nn.Module) -> list[int]:
    return [len(getattr(module, name)) for name in _HOOKS]


def _hooks_of_all() -> list[int]:
    return [len(getattr(torch.nn.modules.module, f"_global{name}")) for name in _HOOKS]


def _defined(kind: type, name: str) -> Any:
    """What a class has under the name."""
    return next((vars(each)[name] for each in kind.__mro__ if name in vars(each)), None)


def _same(left: Variable, right: Variable) -> None:
    if _is_object(left) and _is_object(right):
        _add("which objects are the same", left, right, fact=which_are_the_same)


def which_are_the_same(*objects: Any) -> list[int]:
    """For each object the place of the first that is it; asked of all of a frame together."""
    first: dict[int, int] = {}
    return [first.setdefault(id(each), place) for place, each in enumerate(objects)]


def _compared_by(_translator: Any, operands: list[Variable], *_: Any) -> None:
    kinds = {None if is_unread(operand) else type(operand.realize()).__name__ for operand in operands}
    if kinds == {"UserMethodVariable"}:
        _add("a method of an object is compared")  # Dynamo looks at the function only
    elif kinds == {"TensorVariable"}:
        _same(*operands)


def _called(function: Variable, _translator: Any, operands: Any, *_: Any, **_named: Any) -> None:
    asked = getattr(function, "fn", None) or getattr(function, "_fn", None)
    if asked in _ASKED and operands:
        owner, *named = operands[:2]  # a number that nothing has looked at stays one
        values = [value for each in named if not is_unread(each) for value in _constant_of(each)]
        if asked in _OF_KINDS or not is_unread(owner):
            _ASKED[asked](owner if is_unread(owner) else owner.realize(), *values)


def _asked_for_an_attribute(owner: Variable, *named: Any) -> None:
    if type(owner).__name__ in _WITHOUT_GUARDS and named:  # else its name is not known before the graph has run
        _add("an attribute", owner, fact=_has, given=(named[0],))


def _deleted(owner: Variable, name: str) -> None:
    value = _object_of(owner)
    if isinstance(value, torch.nn.Module) and not _has(name, value):
        _add("what is not there is deleted")  # Dynamo goes on
    _add("an attribute", owner, fact=_has, given=(name,))


def _asked_for_its_kind(owner: Variable, *kinds: Any) -> None:
    """With `isinstance` or `issubclass`: what a metaclass says."""
    value = _object_of(owner) if not is_unread(owner) else None
    value = value if isinstance(value, type) else type_of(owner)
    for kind in kinds_in(kinds):
        if isinstance(kind, abc.ABCMeta):
            _add("a kind of object", fact=issubclass, given=(value, kind))
        elif type(kind) is not type and not type(kind).__module__.startswith("torch."):
            _add("a metaclass of its own")


def _asked_if_callable(owner: Variable, *_: Any) -> None:
    if type(owner).__name__ == "UserDefinedObjectVariable":
        _add("whether an object can be called")


def _listed(owner: Variable, *_: Any) -> None:
    _add("which attributes there are", owner, fact=dir)


_ASKED: dict[Any, Callable[..., None]] = {
    **{getattr: _asked_for_an_attribute, hasattr: _asked_for_an_attribute, delattr: _deleted},
    **{isinstance: _asked_for_its_kind, issubclass: _asked_for_its_kind, callable: _asked_if_callable, dir: _listed},
}


_OF_KINDS = (isinstance, issubclass)


def _has(name: str, owner: Any) -> bool:
    """Has it an attribute of that name?  No code of the program runs."""
    if any(name in vars(kind) for kind in type(owner).__mro__) or name in getattr(owner, "__dict__", ()):
        return True
    stores = ("_parameters", "_buffers", "_modules") if isinstance(owner, torch.nn.Module) else ()
    return any(name in getattr(owner, store) for store in stores)


def _hashed(_tracker: Any, variable: Variable) -> None:
    for part in _parts(variable):
        if type(part).__name__ == "WeakRefVariable":
            _add("a weak reference is a key")
        elif _is_object(part):
            if isinstance(getattr(type(_object_of(part)), "__eq__", None), types.FunctionType):
                _add("__eq__ of its own")
            _add("which objects are the same", part, fact=which_are_the_same)


def _parts(variable: Variable) -> list[Variable]:
    if is_unread(variable):
        return []
    variable = variable.realize()
    if type(variable).__name__ == "TupleVariable":
        return [part for item in variable.items for part in _parts(item)]
    return [variable]


def _looked_up(owner: Variable, _translator: Any, _name: str, operands: Any, *_: Any, **_named: Any) -> None:
    if operands and any(map(_is_object, _parts(operands[0]))):
        _add("keys", owner, fact=_identities)


def _identities(container: Any) -> list[int]:
    return [*map(id, container)]


def _read(owner: Variable, _translator: Any, name: str) -> None:
    if name == "__dict__":
        _add("which attributes there are", owner, fact=_names)


def _names(owner: Any) -> list[str]:
    return [*vars(owner)]


def _read_of_class(owner: Variable, _translator: Any, name: str) -> None:
    kind = owner.value if isinstance(owner.value, type) else type(owner.value)
    _add("an attribute of a class", fact=_defined, given=(kind, name))


def _builtin(translator: Any, name: str) -> None:
    _add("a builtin", fact=_is_global, given=(_Globals(translator.f_globals), name), of=translator)


@dataclass(frozen=True, eq=False)
class _Globals:
    names: dict[str, Any]


def _is_global(of: _Globals, name: str) -> bool:
    return name in of.names


def _met_again(source: Any, first: Any) -> None:
    if first is not None and first != source:
        others = vars(_current().output).setdefault(_TWICE, {}).setdefault(first, [])
        if source not in others:
            others.append(source)


def _is_object(variable: Variable) -> bool:
    """Is it an object that a source leads to, and whose identity Dynamo does not guard?"""
    if is_unread(variable):
        return False
    variable = variable.realize()
    if variable.source is None:
        return False
    return not variable.is_python_constant() or isinstance(variable.as_python_constant(), _MUTABLE)
