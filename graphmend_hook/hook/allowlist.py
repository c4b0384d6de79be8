"""Which modules are to be mended: by dotted prefix, by glob, by their file, or by the directory it lies in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache

from ..settings.syntax import is_directory_pattern, is_unmendable

_INSTALLED = {"site-packages", "dist-packages"}
# Modules that no compiled function reaches: to look through them takes time, and mends nothing that is traced.
PASSED_OVER = (
    # transformers: texts to tokens, files to models, entries of registries, documentation, the hub
    "transformers.commands",
    "transformers.convert_*",
    "transformers.data",
    "transformers.dynamic_module_utils",
    "transformers.feature_extraction_*",
    "transformers.hf_argparser",
    "transformers.integrations.ggml",
    "transformers.modeling_gguf_pytorch_utils",
    "transformers.models.*.convert_*",
    "transformers.models.*.feature_extraction_*",
    "transformers.models.*.processing_*",
    "transformers.models.*.tokenization_*",
    "transformers.models.auto",
    "transformers.processing_utils",
    "transformers.quantizers",
    "transformers.tokenization_*",
    "transformers.training_args*",
    "transformers.utils.args_doc",
    "transformers.utils.auto_docstring",
    "transformers.utils.chat_template_utils",
    "transformers.utils.doc",
    "transformers.utils.hub",
    "transformers.utils.quantization_config",
)


class PatternSet:
    """A set of module patterns; a dotted pattern means that module and everything below it."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.prefixes: set[str] = set()
        self.directories: set[str] = set()  # and single files; each with a separator at its end
        globs = []
        for pattern in patterns:
            if is_directory_pattern(pattern):
                self.directories |= _spellings(os.path.expanduser(pattern))
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
        """Is `file` one of the files, or below a directory, and not in a package directory (a venv, say) inside it?"""
        if not self.directories:
            return False
        folder, name = os.path.split(file)
        return any(
            place.startswith(directory) and _INSTALLED.isdisjoint(place[len(directory) :].split(os.sep))
            for place in (spelling + name + os.sep for spelling in _spellings(folder))
            for directory in self.directories
        )

    def may_hold(self, path: Sequence[str] | None) -> bool:
        """Could a directory pattern match the file of a module that is looked for in `path`?

        path: the package's ``__path__``, None for a top-level module, which an editable install may have anywhere.
        """
        if path is None or not self.directories:
            return bool(self.directories)
        return any(
            place.startswith(directory) or directory.startswith(place)
            for entry in path
            for place in _spellings(entry)
            for directory in self.directories
        )


class Allowlist:
    """`modules` less `deny`, less what must never be mended."""

    def __init__(self, modules: Iterable[str], deny: Iterable[str] = ()) -> None:
        self._allow = PatternSet(modules)
        self._deny = PatternSet(deny)
        self._passed_over = PatternSet(PASSED_OVER)
        self.also: set[str] = set()  # modules that were mended late, and are to be mended when they are imported anew

    def may_cover(self, fullname: str, path: Sequence[str] | None) -> bool:
        """By name alone, before any finder is asked: False means "certainly not ours"."""
        if is_unmendable(fullname) or self._deny.matches_name(fullname):
            return False
        return self._allow.matches_name(fullname) or fullname in self.also or self._allow.may_hold(path)

    def covers(self, fullname: str, file: str) -> bool:
        """Is the module `fullname`, to be loaded from `file`, ours?"""
        if is_unmendable(fullname) or self._deny.matches_name(fullname):
            return False
        if self._deny.matches_file(file):
            return False
        return self._allow.matches_name(fullname) or fullname in self.also or self._allow.matches_file(file)

    def passes_over(self, fullname: str) -> bool:
        """Is the module, which is covered, one that no compiled function reaches, and is not named itself?"""
        return fullname not in self._allow.prefixes and self._passed_over.matches_name(fullname)


def _spellings(directory: str) -> frozenset[str]:
    """The absolute path of `directory`, and the one without symbolic links, with a separator at the end."""
    return _spellings_of_absolute(os.path.abspath(directory))


@cache
def _spellings_of_absolute(directory: str) -> frozenset[str]:
    return frozenset(os.path.join(path, "") for path in (directory, os.path.realpath(directory)))


def _glob_to_regex(pattern: str) -> str:
    """A regex in which ``*`` never crosses a dot; what lies below a match matches too.

    A last segment ``*`` also takes the package itself: ``pkg.models.*`` reads as "all of pkg.models".
    """
    dotted = re.escape(pattern.removesuffix(".*")).replace(r"\*", "[^.]*").replace(r"\?", "[^.]")
    return rf"(?:{dotted}(?:\..*)?)"
