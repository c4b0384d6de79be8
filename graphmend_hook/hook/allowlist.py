"""Which modules are to be mended: by dotted prefix, by glob, or by the directory their file lies in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from ..config import UNMENDABLE, is_directory_pattern

_INSTALLED = {"site-packages", "dist-packages"}


class PatternSet:
    """A set of module patterns; a dotted pattern means that module and everything below it."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.prefixes: set[str] = set()
        self.directories: tuple[str, ...] = ()
        globs = []
        for pattern in patterns:
            if is_directory_pattern(pattern):
                given = os.path.abspath(os.path.expanduser(pattern))
                self.directories += tuple({given, os.path.realpath(given)})
            elif "*" in pattern or "?" in pattern:
                globs.append(_glob_to_regex(pattern))
            else:
                self.prefixes.add(pattern)
        self._glob = re.compile("|".join(globs)) if globs else None
        self._tops = {prefix.partition(".")[0] for prefix in self.prefixes}

    def matches_name(self, fullname: str) -> bool:
        if fullname.partition(".")[0] in self._tops:
            prefix = fullname
            while prefix:
                if prefix in self.prefixes:
                    return True
                prefix = prefix.rpartition(".")[0]
        return self._glob is not None and self._glob.fullmatch(fullname) is not None

    def matches_file(self, file: str) -> bool:
        """Is `file` below one of the directories, and not in a package directory (a venv, say) inside it?"""
        for directory in self.directories:
            if file.startswith(directory + os.sep):
                return _INSTALLED.isdisjoint(file[len(directory) :].split(os.sep))
        return False

    def may_hold(self, fullname: str, path: Sequence[str] | None) -> bool:
        """Could a directory pattern match the module's file?  Two `stat` calls a directory at most."""
        name = fullname.rpartition(".")[2]
        for directory in self.directories:
            if path is not None:
                if any(entry.startswith(directory) for entry in path):
                    return True
            elif os.path.isfile(os.path.join(directory, name + ".py")) or os.path.isdir(os.path.join(directory, name)):
                return True
        return False


class Allowlist:
    """`modules` less `deny`, less what must never be mended."""

    def __init__(self, modules: Iterable[str], deny: Iterable[str] = ()) -> None:
        self._allow = PatternSet(modules)
        self._deny = PatternSet(deny)

    def may_cover(self, fullname: str, path: Sequence[str] | None) -> bool:
        """By name alone, before any finder is asked: False means "certainly not ours"."""
        if fullname.partition(".")[0] in UNMENDABLE or self._deny.matches_name(fullname):
            return False
        return self._allow.matches_name(fullname) or self._allow.may_hold(fullname, path)

    def covers(self, fullname: str, file: str) -> bool:
        """Is the module `fullname`, to be loaded from `file`, ours?"""
        if fullname.partition(".")[0] in UNMENDABLE or self._deny.matches_name(fullname):
            return False
        if self._deny.matches_file(file):
            return False
        return self._allow.matches_name(fullname) or self._allow.matches_file(file)


def _glob_to_regex(pattern: str) -> str:
    """Segment by segment, so that ``*`` never crosses a dot; what lies below a match matches too.

    A last segment ``*`` also takes the package itself: ``pkg.models.*`` reads as "all of pkg.models".
    """
    segments = pattern.split(".")
    below = len(segments) > 1 and segments[-1] == "*"
    if below:
        segments.pop()
    dotted = r"\.".join(_segment_to_regex(segment) for segment in segments)
    return rf"(?:{dotted}(?:\..*)?)"


def _segment_to_regex(segment: str) -> str:
    wildcards = {"*": "[^.]*", "?": "[^.]"}
    return "".join(wildcards.get(char, re.escape(char)) for char in segment)
