"""What one call compiles in this process: how many graphs, and where they break."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from ..report.text import counted
from .join import SCHEMA, Break, breaks_of
from .observe import Observer
from .verdicts import Verdicts, Ways


@dataclass(frozen=True)
class Explained:
    """What Dynamo made of one call, as it runs in this process, with the hook if that is installed.

    result: what the call gave.  graphs: how many.  breaks: where it stopped, with what the hook says of it.
    """

    result: Any
    graphs: int
    breaks: tuple[Break, ...]

    def as_dict(self) -> dict[str, Any]:
        """For machines: `graphs`, and `breaks` as in the JSON of ``graphmend explain`` (docs/explain.md)."""
        breaks = [{**asdict(each), "key": each.key} for each in self.breaks]
        return {"schema": SCHEMA, "graphs": self.graphs, "breaks": breaks}

    def __str__(self) -> str:
        lines = [f"{counted(self.graphs, 'graph')} and {counted(len(self.breaks), 'graph break')}"]
        for found in self.breaks:
            lines += [
                f"  {found.file}:{found.line} in {found.function}: {found.text}",
                f"    Dynamo: {found.headline}",
                *(f"    from {file}:{line} in {function}" for file, line, function in _innermost(found)),
                f"    graphmend: {found.code}{found.code and ' '}{found.said}",
            ]
            if found.advice:
                lines.append(f"    -> {found.advice}")
        return "\n".join(lines)

    __repr__ = __str__


def _innermost(found: Break) -> list[tuple[str, int, str]]:
    """The frames that called the function of the break, each once."""
    return list(dict.fromkeys(caller.stack[-1] for caller in found.callers))


def explained(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], backend: Any, ways: Ways
) -> Explained:
    """Compile `function`, unless that has been done, call it once, and say what became of it.

    ways: how settings are given where this is called.

    Everything that was compiled before in this process is forgotten, before and after: Dynamo counts recompilations.
    What the call raises passes through.
    """
    import torch

    observer = Observer()
    is_compiled = hasattr(function, "_torchdynamo_orig_callable") or hasattr(function, "_orig_mod")
    torch.compiler.reset()
    try:
        with observer.attached():
            result = (function if is_compiled else torch.compile(function, backend=backend))(*args, **kwargs)
    finally:
        torch.compiler.reset()
    seen = observer.as_json()
    verdicts = Verdicts(seen["report"], ways)
    return Explained(result, observer.count, tuple(breaks_of([], seen["breaks"], verdicts)))
