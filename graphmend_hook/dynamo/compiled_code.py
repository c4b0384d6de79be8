"""What Dynamo has compiled already: how its code is known, and how it is dropped."""

from __future__ import annotations

import re
import sys

# The name of what runs behind a graph break: in front of it a class may stand, in it the function that broke.
RESUMED = re.compile(r"(.*\.)?torch_dynamo_resume_in_(.+)_at_\d+")


def drop_compiled_code() -> None:
    """Let every function be traced anew at its next call: some may have inlined one whose code has changed since.

    Nothing else of Dynamo's state is lost, and nothing happens where it was never imported.
    """
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset_code_caches()
