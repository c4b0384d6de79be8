"""Counts the calls of what `torch.compile` made, in this process, each when it has ended."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any


class _Depth(threading.local):
    """How deep this thread is inside of such calls: one that another one makes is a part of that."""

    value = 0


def call_after_each(then: Callable[[], None]) -> None:
    """Call `then` from now on after each call of what is compiled from now on; what it raises, the call raises.

    Not after a call that fails: its exception goes on.
    """
    from torch._dynamo.eval_frame import OptimizeContext

    depth, make = _Depth(), OptimizeContext.__init__

    def enter() -> Callable[[], None]:
        depth.value += 1
        before = sys.exc_info()[1]

        def leave() -> None:
            depth.value -= 1
            if depth.value == 0 and sys.exc_info()[1] is before:
                then()

        return leave

    def made(context: Any, *args: Any, **kwargs: Any) -> None:
        make(context, *args, **kwargs)
        context.enter_exit_hooks.append(enter)  # the last one: what it raises keeps none from ending

    OptimizeContext.__init__ = made
