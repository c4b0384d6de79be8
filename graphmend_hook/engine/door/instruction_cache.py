"""What Dynamo keeps of a code object: its instructions, and with them the code of the functions that it makes.

Dynamo keeps it by code object.  Two of them are equal where two files have the same text, and what the functions of one
log would be said to come from the other.
"""

from __future__ import annotations

import functools
from types import CodeType
from typing import Any


def watch() -> None:
    """Let Dynamo keep it by file, too, from now on; where another torch has that elsewhere, nothing changes."""
    from torch._dynamo import bytecode_transformation

    cached: Any = getattr(bytecode_transformation, "_cached_cleaned_instructions", None)
    if not hasattr(cached, "cache_parameters"):
        return

    def of_file(code: CodeType, _file: str, safe: bool) -> Any:
        return cached.__wrapped__(code, safe)

    kept = functools.lru_cache(cached.cache_parameters()["maxsize"])(of_file)

    def of_code(code: CodeType, safe: bool = False) -> Any:
        return kept(code, code.co_filename, safe)

    bytecode_transformation._cached_cleaned_instructions = of_code
