"""What Dynamo has compiled already: how its code is known, and how it is dropped."""

from __future__ import annotations

import re
import sys
import threading
from types import CodeType

from ...diagnostics import say_once

# The name of what runs behind a graph break: in front of it a class may stand, in it the function that broke.
RESUMED = re.compile(r"(.*\.)?torch_dynamo_resume_in_(.+)_at_\d+")


def is_generated(code: CodeType) -> bool:
    """Has Dynamo made it?  Its functions have the file, and mostly the name, of those that they were compiled from."""
    made = sys.modules.get("torch._dynamo.convert_frame")
    return RESUMED.fullmatch(code.co_name) is not None or (made is not None and code in made.output_codes)


def drop_compiled_code() -> None:
    """Let every function be traced anew at its next call: some may have inlined one whose code has changed since.

    Nothing else of Dynamo's state is lost, and nothing happens where nothing was compiled.  Dynamo frees what it drops
    at once, also where another thread is running it: the process may end then, so that is said.
    """
    made = sys.modules.get("torch._dynamo.convert_frame")
    if made is None or not any(code() for code in made.input_codes.seen):
        return
    if threading.active_count() > 1:
        say_once("GM019")
    sys.modules["torch._dynamo"].reset_code_caches()
