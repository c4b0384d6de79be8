"""How often what is behind a break may be compiled anew, where Dynamo would have left the whole frame to eager.

A freed break in a loop has the frame compiled, where without us it runs in eager.  If the frame breaks at another
statement all the same, Dynamo compiles a function of what is behind that one, too, with guards on what the program
holds there, such as the floats of a list.  Without us there are no such guards, and no compilations.  So the frame and
those functions are left to eager, as they would have been, after the second time that any of them is compiled anew.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NoReturn

from torch._guards import CompileContext

from ..door.question import at_connection
from . import defects, refusals, skipped_frames
from .compilation import memory_of
from .refusals import COMPILED_AGAIN

_MOST = 2  # compilations of a frame, and of functions behind its breaks, for which Dynamo had code already


@dataclass
class _Anew:
    """What a frame remembers: the compilations of it, and of what runs behind its breaks, for which code was there."""

    compilations: set[Any] = field(default_factory=set)
    breaks: bool = False


@at_connection
@functools.cache
def watch() -> None:
    """Stand where Dynamo begins to trace a frame, from now on."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    InstructionTranslator.run = _counting(InstructionTranslator.run)


def _counting(run: Any) -> Any:
    @functools.wraps(run)
    def count_and_run(translator: Any) -> Any:
        try:
            is_spent = not (translator.one_graph or translator.export) and _is_spent(translator.f_code)
        except Exception as error:
            defects.report("what is compiled anew", error)
            is_spent = False
        if is_spent:
            translator.step = _skip  # Dynamo cleans up behind what an instruction raises
        return run(translator)

    return count_and_run


def _skip() -> NoReturn:
    from torch._dynamo.exc import SkipFrame

    raise SkipFrame("graphmend_hook: compiled anew too often, in a frame that is left to eager")


def _is_spent(code: CodeType) -> bool:
    """Has the frame that the code belongs to been compiled anew too often, this time included?"""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    original = _original_of(code)
    if not skipped_frames.was_left(original):
        return False
    anew = memory_of(original).of(_Anew)
    anew.breaks |= original is not code
    if _debug_get_cache_entry_list(code):
        anew.compilations.add(CompileContext.current_compile_id())
    is_spent = anew.breaks and len(anew.compilations) > _MOST
    if is_spent:
        refusals.record(COMPILED_AGAIN, place=(original.co_filename, code.co_firstlineno, original.co_name))
    return is_spent


def _original_of(code: CodeType) -> CodeType:
    """The code of the program's that breaks, of a function that Dynamo has made of what is behind the break."""
    from torch._dynamo.resume_execution import ContinueExecutionCache

    made = ContinueExecutionCache.generated_code_metadata.get(code)
    return code if made is None else made.code
