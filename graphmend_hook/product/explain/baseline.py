"""The breaks that a project knows of, with how often each is met: a file that may only shrink."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...diagnostics import ConfigError
from .join import Break

SCHEMA = 2
Counts = Mapping[str, float]


@dataclass(frozen=True)
class Comparison:
    """A run beside a baseline.

    new: the breaks of which there are more than are known; more: by key, how many more.
    fixed: by key, how many are known and are there no more; infinite where the baseline has no counts.
    """

    new: tuple[Break, ...]
    more: Mapping[str, int]
    fixed: Counts


def counts(breaks: Iterable[Break]) -> Counter[str]:
    """How often each break is met with the hook, by the key that names it."""
    found: Counter[str] = Counter()
    for each in breaks:
        found[each.key] += each.times[1]
    return found


def read(file: str) -> Counts:
    """The counts in `file`; a baseline of schema 1 has none, and knows each of its breaks any number of times.

    Raises ConfigError.
    """
    try:
        document = json.loads(Path(file).read_text(encoding="utf-8"))
        known = document["breaks"]
        if document["schema"] == 1:
            return dict.fromkeys(map(str, known), math.inf)
        if document["schema"] == SCHEMA:
            return {str(key): int(count) for key, count in known.items()}
        why = f"{file} has schema {document['schema']}, which this version does not know"
    except OSError as error:
        why = f"cannot read {file}: {error.strerror}; make it with --update-baseline"
    except (ValueError, KeyError, TypeError, AttributeError):
        why = f"{file} is not a baseline; make it anew with --update-baseline"
    raise ConfigError(f"--baseline: {why}")


def write(file: str, breaks: Iterable[Break]) -> None:
    document = {"schema": SCHEMA, "breaks": dict(sorted(counts(breaks).items()))}
    Path(file).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def compare(known: Counts, breaks: Iterable[Break]) -> Comparison:
    remaining = tuple(breaks)
    now = counts(remaining)
    more = {key: int(count - known.get(key, 0)) for key, count in now.items() if count > known.get(key, 0)}
    fixed = {
        key: count - now[key]
        for key, count in known.items()
        if now[key] < count and (now[key] == 0 or not math.isinf(count))
    }
    return Comparison(tuple(each for each in remaining if each.key in more), more, fixed)
