"""The place that Dynamo has come to: what a question may ask about it."""

from __future__ import annotations

import contextlib
import dis
import inspect
import itertools
import logging
import sys
import traceback
from collections.abc import Iterable, Iterator
from functools import cached_property
from types import CodeType, FrameType
from typing import Any

import torch
from torch._guards import TracingContext

from ...source import covered
from ..attempt.compilation import Compilation, NotTracingError, compilation_of
from ..attempt.refusals import NOWHERE, Place
from .own_code import OWN_FILES
from .variables import is_unread

log = logging.getLogger("graphmend_hook.trace")
_CALLS = frozenset({"CALL", "CALL_FUNCTION"})
_PLAIN_LOADS = frozenset({"LOAD_CONST", "LOAD_DEREF", "LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"})
SourceLine = tuple[str, int]  # a file and a line of the program
UNOBSERVED_CONTEXTS: set[type] = set()  # classes of context managers that catch nothing, and lead no effect elsewhere


class Trace:
    """One attempt of Dynamo to trace a frame, at the instruction that it has come to."""

    def __init__(self, translator: Any) -> None:
        self.translator = translator  # of the innermost frame
        self.output = translator.output
        self.compilation: Compilation = compilation_of(self.output)

    @property
    def graph(self) -> torch.fx.Graph:
        """The graph that operations are added to: the body of a higher-order operator inside of one."""
        graph: torch.fx.Graph = self.output.current_tracer.graph
        return graph

    @property
    def is_in_a_body(self) -> bool:
        """Is the body of a higher-order operator being traced?"""
        return self.output.current_tracer.parent is not None

    def frames(self) -> Iterator[Any]:
        """Dynamo's translators of the traced frames, the innermost first."""
        frame = self.translator
        while frame is not None:
            yield frame
            frame = frame.parent

    def frames_outside(self) -> Iterator[Any]:
        """Those of them that trace code of the program, and not of this package."""
        return (frame for frame in self.frames() if frame.f_code.co_filename not in OWN_FILES)

    def contexts(self) -> Iterator[Any]:
        """The context managers that are open in the traced frames: on their stacks are the exits of some.

        None for a block of which more cannot be told: of a function that is inlined Dynamo notes that there is one.
        """
        for frame in self.frames():
            exits = [item.ctx for item in frame.stack if type(item).__name__ == "WithExitFunctionVariable"]
            blocks = [block.with_context for block in getattr(frame, "block_stack", ())]
            yield from (*exits, *filter(None, blocks), *[None] * (blocks.count(None) - len(exits)))

    @property
    def is_in_a_context(self) -> bool:
        """Is one open?  It ends before the end of the graph, and its mode with it."""
        return next(self.contexts(), self) is not self

    @property
    def is_in_an_unknown_context(self) -> bool:
        """Is one of the program's open that may catch an exception?  What else one does the trace sees."""
        from torch._dynamo.variables.ctx_manager import GenericContextWrappingVariable

        unknown = (each for each in self.contexts() if isinstance(each, GenericContextWrappingVariable))
        return any(type(each.cm_obj) not in UNOBSERVED_CONTEXTS and self._may_catch(each) for each in unknown)

    def _may_catch(self, context: Any) -> bool:
        """May its ``__exit__`` give something that is true, or a handler stand around the ``yield`` that it is?"""
        kind = type(context.cm_obj)
        if kind is contextlib._GeneratorContextManager:
            made_of = self.output.side_effects.store_attr_mutations.get(context, {}).get("gen")
            code = getattr(made_of, "code", None)
            return not isinstance(code, CodeType) or has_handlers(code)
        code = getattr(getattr(kind, "__exit__", None), "__code__", None)
        return code is None or not gives_nothing(code)

    @cached_property
    def _frame(self) -> Any:
        """The program's; None where a function of ours is compiled by itself, after a break."""
        return next(self.frames_outside(), None)

    @property
    def code(self) -> CodeType | None:
        """That of the program's function that is being traced."""
        return None if self._frame is None else self._frame.f_code

    @cached_property
    def line(self) -> SourceLine | None:
        """Where the program is."""
        return None if self._frame is None else (self._frame.f_code.co_filename, self._frame.lineno)

    @property
    def place(self) -> Place:
        """Where the program is, for the report."""
        return NOWHERE if self.line is None or self.code is None else (*self.line, self.code.co_name)


def trace_at(translator: Any) -> Trace | None:
    """The trace that goes on there; None where it is over."""
    try:
        compilation_of(translator.output)
    except NotTracingError:
        return None
    return Trace(translator)


def is_covered(frame: Any) -> bool:
    """Is it code of a module that is to be mended, whether or not there was a statement to rewrite?"""
    return covered.is_covered(frame.f_code, frame.f_globals)


def covered_trace_at(translator: Any) -> Trace | None:
    """`trace_at`, where one of its frames is covered; None in other code, which stays as it is in stock."""
    trace = trace_at(translator)
    return trace if trace is not None and any(map(is_covered, trace.frames())) else None


def is_under(trace: Trace, rule: str) -> bool:
    """Is the rule on in the module whose code is being traced, all of it?"""
    frame = next(trace.frames_outside(), None)
    return frame is not None and covered.is_under(rule, frame.f_code, frame.f_globals)


def place_of(error: BaseException) -> Place | None:
    """Where the program was when the error ended its trace; of an order to begin anew, in the outermost frame."""
    from torch._dynamo.symbolic_convert import InstructionTranslatorBase

    translators = [frame.f_locals.get("self") for frame, _line in traceback.walk_tb(error.__traceback__)]
    places = [
        (translator.f_code.co_filename, translator.lineno or 0, translator.f_code.co_name)
        for translator in translators
        if isinstance(translator, InstructionTranslatorBase) and translator.f_code.co_filename not in OWN_FILES
    ]
    return places[-1] if places else None


def traced_code(compilation: Compilation) -> set[CodeType]:
    """The program's functions that the attempt has traced, that of the frame among them."""
    inlined = TracingContext.get_traced_code() or ()
    return {compilation.code, *(code for code in inlined if code.co_filename not in OWN_FILES)}


def is_in_covered_code() -> bool:
    """Has the trace come to a function of a module that is to be mended?"""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    return is_covered(InstructionTranslator.current_tx().output.current_tx)


def compiling_frame() -> FrameType | None:
    """The frame of Dynamo's that calls this trace and then the bytecode hooks; None in other ways to compile."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_compile_inner":
        frame = frame.f_back
    return frame


def is_caught(trace: Trace) -> bool:
    """Is there an ``except`` around the statement in any traced frame?  It could not catch what a delivery raises.

    So too where an exception is being handled, which would be the context of another one, and what `exc_info` gives.
    """
    return len(trace.translator.exn_vt_stack) > 0 or any(map(_in_try, trace.frames_outside()))


def gives_for_nothing(trace: Trace, parts: set[CodeType]) -> bool:
    """Is the innermost function of the program called by a statement of its own, ``check(x)``, which drops the result?

    It is a global of the caller's, and its arguments are names and constants: so nothing else is called there.
    parts: code of ours that calls a part of a function, such as the side of a branch, as a function of its own.
    """
    frame = next(each for each in trace.frames_outside() if each.parent is None or each.parent.f_code not in parts)
    caller = frame.parent
    if caller is None:
        return False
    behind = caller.instruction_pointer
    call, then = caller.instructions[behind - 1 : behind + 1]
    if call is not caller.current_instruction or call.opname not in _CALLS or then.opname != "POP_TOP":
        return False
    before = [each for each in caller.instructions[: behind - 1] if each.opname != "PRECALL"]
    arguments, callee = before[len(before) - call.arg :], before[len(before) - call.arg - 1]
    function = caller.f_globals.get(callee.argval) if callee.opname == "LOAD_GLOBAL" else None
    is_plain = all(argument.opname in _PLAIN_LOADS for argument in arguments)
    return is_plain and getattr(function, "__code__", None) is frame.f_code


def is_in_finally(trace: Trace) -> bool:
    """Is the statement, or a traced call that it stands in, part of a ``finally`` that runs without an exception?"""
    return any(map(_in_finally, trace.frames_outside()))


def is_told_of_failures(trace: Trace) -> bool:
    """May traced code do something else, around the statement, where an exception leaves it?

    A ``finally`` may that reads what its ``try`` has assigned, or raises, and a hook of a module that is called always.
    """
    return any(_in_telling_try(frame) or _has_last_hook(frame) for frame in trace.frames_outside())


def _has_last_hook(frame: Any) -> bool:
    """Is it the call of a module with a forward hook that is registered with ``always_call=True``?"""
    owner = frame.symbolic_locals.get("self")
    module = None if owner is None or is_unread(owner) else getattr(owner.realize(), "value", None)
    every = torch.nn.modules.module._global_forward_hooks_always_called
    return isinstance(module, torch.nn.Module) and bool(every or module._forward_hooks_always_called)


def _in_try(frame: Any) -> bool:
    return _has_plain_block(frame) or any(_catches(names) for names, _ in _handlers(frame))


def _in_telling_try(frame: Any) -> bool:
    return _has_plain_block(frame) or any(_tells(frame, target, names) for names, target in _handlers(frame))


def _has_plain_block(frame: Any) -> bool:
    """Is a block open that is no `with`?  Up to Python 3.10 that is all that can be told of a ``try``."""
    return sys.version_info < (3, 11) and any(block.with_context is None for block in frame.block_stack)


def _handlers(frame: Any) -> Iterator[tuple[list[str], Any]]:
    """The handlers that an exception would come to, but those of a `with`: their operations, and where they begin."""
    for target in _targets(frame.current_instruction):
        names = [item.opname for item in _handler(frame, target)]
        if names[:1] == ["PUSH_EXC_INFO"] and "WITH_EXCEPT_START" not in names:
            yield names, target


def _targets(instruction: Any) -> Iterator[Any]:
    """Where the handlers begin that an exception of the instruction would come to, one after the other."""
    entry, seen = instruction.exn_tab_entry, set()
    while entry is not None and id(entry.target) not in seen:
        seen.add(id(entry.target))
        yield entry.target
        entry = entry.target.exn_tab_entry  # the handler of a `with` or a `finally` stands in the block around it


def _handler(frame: Any, target: Any) -> list[Any]:
    """Its instructions, up to where the exception goes on."""
    return list(itertools.takewhile(lambda item: item.opname != "RERAISE", frame.instructions[frame.indexof[target] :]))


def _catches(names: list[str]) -> bool:
    """May an exception end in the handler?  It goes on from a ``finally``, unless a ``return`` is in there."""
    bare = names[1:2] == ["POP_TOP"]
    return bare or not {"CHECK_EXC_MATCH", "CHECK_EG_MATCH", "POP_EXCEPT"}.isdisjoint(names)


def has_handlers(code: CodeType) -> bool:
    """May an exception end in the code, other than in a `with`?"""
    names = [each.opname for each in dis.get_instructions(code)]
    if sys.version_info < (3, 11):  # a ``finally`` begins alike there
        return "SETUP_FINALLY" in names
    begun = (names[place:] for place, each in enumerate(names) if each == "PUSH_EXC_INFO")
    handlers = [[*itertools.takewhile(lambda each: each != "RERAISE", handler)] for handler in begun]
    return any("WITH_EXCEPT_START" not in handler and _catches(handler) for handler in handlers)


def gives_nothing(code: CodeType) -> bool:
    """Does the function give None, or False, wherever it returns?"""
    before = None
    for each in dis.get_instructions(code):
        if each.opname == "RETURN_VALUE" and (each.is_jump_target or not _loads_nothing(before)):
            return False  # ``return self.swallows or None`` jumps there
        if each.opname == "RETURN_CONST" and each.argval:
            return False
        before = each
    return not code.co_flags & inspect.CO_GENERATOR


def _loads_nothing(instruction: Any) -> bool:
    return instruction is not None and instruction.opname == "LOAD_CONST" and not instruction.argval


def _tells(frame: Any, target: Any, names: list[str]) -> bool:
    """Does the handler raise, or read a name or an attribute to which its block assigns?"""
    block = [item for item in frame.instructions if any(other is target for other in _targets(item))]
    return "RAISE_VARARGS" in names or not _named("STORE", block).isdisjoint(_named("LOAD", _handler(frame, target)))


def _named(kind: str, instructions: Iterable[Any]) -> set[Any]:
    """What operations of that kind name; those of Python 3.13 may name two."""
    found: set[Any] = set()
    for item in instructions:
        if item.opname.startswith(kind):
            found.update(item.argval if isinstance(item.argval, tuple) else (item.argval,))
    return found


def _in_finally(frame: Any) -> bool:
    # Python compiles a `finally` twice, from the same place: in order, and as a handler.
    at = frame.current_instruction.positions
    if at is None:
        return False
    entries = [item.exn_tab_entry for item in frame.instructions if item.exn_tab_entry is not None]
    for target in {id(entry.target): entry.target for entry in entries}.values():
        handler = frame.instructions[frame.indexof[target] :]
        names = [instruction.opname for instruction in handler]
        last = names.index("POP_EXCEPT") if "POP_EXCEPT" in names else len(names)
        if names[0] == "PUSH_EXC_INFO" and any(instruction.positions == at for instruction in handler[:last]):
            return frame.current_instruction not in handler[:last]
    return False
