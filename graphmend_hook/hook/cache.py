"""Transformed bytecode on disk: one file a module, never the stock pyc, and any damage is only a miss.

A file is found by the module's path and the fingerprint of everything that decides the result, and holds the digest of
the source it was made from.  A negative entry says that the rules find nothing to mend in that source.

    magic (4)  digest of all that follows (16)  digest of the source (16)  payload: marshal of (code or None, sites)
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import marshal
import os
import re
import sys
import threading
import time
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from types import CodeType

from ..diagnostics import Site, notice
from ..rewrite import Rewritten
from ..rules.base import Rule
from ..runtime import ABI
from ..version import __version__
from .claims import Claims

log = logging.getLogger("graphmend_hook.cache")
_MAGIC = b"GMC2"
_DIGEST = 16
_KEPT = 60 * 24 * 3600  # seconds for which the entries of a fingerprint outlive the last one that was added
_CHECKED = len(_MAGIC) + _DIGEST  # where the part begins that the first digest is of
_PACKAGE = Path(__file__).resolve().parent.parent
_REWRITER = (
    *("rewrite.py", "diagnostics.py", "hook/cache.py"),
    *("source/*.py", "rules/*.py", "rules/*/*.py"),
)


def fingerprint(rules: tuple[Rule, ...]) -> str:
    """A short name for everything but source and path that decides what the rewriter makes of a module.

    The files of the rewriter count by size and time, so that an edited checkout does not need a new version number.
    """
    parts = [__version__, str(ABI), sys.implementation.cache_tag or sys.version, importlib.util.MAGIC_NUMBER.hex()]
    parts += [f"-O{sys.flags.optimize}", *(f"{rule.name}-{rule.version}" for rule in rules)]
    for name in _REWRITER:
        for file in sorted(_PACKAGE.glob(name)):  # none where this package was imported from a zip file
            if not file.name.startswith("traced"):
                state = file.stat()
                parts.append(f"{file.name}:{state.st_size}:{state.st_mtime_ns}")
    return _digest("\0".join(parts).encode()).hex()[:16]


class Cache:
    """Reads and writes entries below one directory; a directory that cannot be trusted is not used at all.

    directory: where entries live; None chooses a directory of this user's (platformdirs).
    writable: are entries written?  At first as python says of bytecode in general.
    problem: why nothing is read, or nothing more is written; "" while all is well.
    distrusted: is that so because others could write to the directory?
    """

    def __init__(self, directory: Path | None, rules: tuple[Rule, ...]) -> None:
        self.problem = ""
        self.distrusted = False
        self._fingerprint = fingerprint(rules)
        self._root = directory and directory.absolute()
        self._claims = Claims()
        self.writable = not sys.dont_write_bytecode

    def get(self, path: str, source: bytes) -> Rewritten | None:
        """The entry for the module at `path` with text `source`; None, and a trace, for any kind of miss."""
        if self.directory is None:
            return None
        try:
            with open(self._file(path), "rb") as stream:
                data = stream.read()
        except OSError as error:
            log.debug("miss %s: %s", path, error.strerror)
            return None
        return _decode(data, source, path)

    def put(self, path: str, source: bytes, result: Rewritten) -> None:
        """Store `result`: written to a file of its own, then renamed, so that no reader sees a part of it."""
        if self.directory is None or not self.writable:
            return
        checked = _digest(source) + marshal.dumps((result.code, tuple(map(tuple, result.sites))))
        data = _MAGIC + _digest(checked) + checked
        file = self._file(path)
        try:
            descriptor, temporary = new_file(self.directory)
            try:
                with open(descriptor, "wb") as stream:
                    stream.write(data)
                os.replace(temporary, file)
            except BaseException:
                os.unlink(temporary)
                raise
        except OSError as error:
            self.problem = f"cannot write {file}: {error}"
            log.info("%s", self.problem)
            self.writable = False

    def claim(self, path: str) -> AbstractContextManager[None]:
        """What stands around the rewriting of what `get` has missed: by now another process may have made it."""
        return self._claims.claim(self._file(path)) if self.directory and self.writable else nullcontext()

    def _file(self, path: str) -> str:
        stem = os.path.basename(path)[:40].removesuffix(".py")  # for people; short enough for any file system
        return os.path.join(str(self.directory), f"{stem}.{_digest(path.encode(errors='surrogateescape')).hex()}.gmc")

    @cached_property
    def directory(self) -> Path | None:
        """Where this process's entries live, None where there is no directory that can be used."""
        root = self._root
        try:
            root = cache_root(root)
            directory = root / self._fingerprint
            if self.writable:
                root.parent.mkdir(parents=True, exist_ok=True)
            is_new = self.writable and not directory.exists()
            for place in (root, directory):
                if self.writable:
                    place.mkdir(mode=0o700, exist_ok=True)
                why = distrust(place)
                if why:
                    self.problem = unused(place, why)
                    self.distrusted = True
                    log.warning("%s", self.problem)
                    return None
        except (OSError, RuntimeError) as error:  # no home directory, a read-only file system, a file in the way
            is_missing = isinstance(error, FileNotFoundError) and not self.writable
            self.problem = _unwritten(root) if is_missing else unused(root, error)
            is_wrong = self._root is not None and self._root.is_file()
            log.log(logging.WARNING if is_wrong else logging.INFO, "%s", self.problem)
            return None
        if not self.writable:
            self.problem = _unwritten(root)
            log.info("%s", self.problem)
        if is_new:
            _forget_old_fingerprints(root)
        return directory


def new_file(directory: Path) -> tuple[int, str]:
    """A file of this thread's own, which only this user can read, open to be written, and its path."""
    # As tempfile has it, which would be imported at each start of python, with what finds random names.
    name = f".{os.getpid()}-{threading.get_ident()}-{time.time_ns()}.tmp"
    path = os.path.join(directory, name)
    binary = getattr(os, "O_BINARY", 0)  # on Windows
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | binary, 0o600), path


def unused(directory: object, why: object) -> str:
    """The notice that the cache in `directory` is neither read nor written."""
    remedy = "set GRAPHMEND_CACHE_DIR to a directory that only you can write to"
    return notice("GM003", directory=directory, use="used", why=why, remedy=remedy)


def _unwritten(directory: object) -> str:
    why = "PYTHONDONTWRITEBYTECODE or -B says that python writes no bytecode"
    remedy = "unset it, or fill the cache by `graphmend cache warm`, which writes all the same"
    return notice("GM003", directory=directory, use="written to", why=why, remedy=remedy)


def cache_root(directory: Path | None) -> Path:
    """`directory`, or that of this user; RuntimeError for a user without a home directory."""
    if directory is not None:
        return directory.absolute()
    directory = _plain_root()
    if directory is not None:
        return directory
    from platformdirs import user_cache_path

    directory = user_cache_path("graphmend_hook", appauthor=False)
    if not directory.is_absolute():
        raise RuntimeError("this user has no home directory")
    return directory


def _plain_root() -> Path | None:
    """What platformdirs answers on Linux where the environment says it, else None: its import takes milliseconds."""
    if sys.platform == "linux" and not hasattr(sys, "getandroidapilevel") and "ANDROID_ROOT" not in os.environ:
        for name, below in (("XDG_CACHE_HOME", ""), ("HOME", ".cache")):
            base = os.environ.get(name, "")
            if os.path.isabs(base):
                return Path(base, below, "graphmend_hook")
    return None


def distrust(directory: Path) -> str:
    """Why cached bytecode in `directory` must not be run: it is code, so only its owner may have written it.

    Raises OSError if there is no such directory.
    """
    state = directory.stat()
    if not hasattr(os, "geteuid"):
        return ""
    if state.st_uid != os.geteuid():
        return f"it belongs to user {state.st_uid}, not to {os.geteuid()}"
    if state.st_mode & 0o022:
        return "others may write to it"
    return ""


def _forget_old_fingerprints(root: Path) -> None:
    """Remove the entries of other versions, Pythons and rules that nobody has added to for long: each is but a miss."""
    with contextlib.suppress(OSError):
        for folder in root.iterdir():
            is_ours = re.fullmatch(r"[0-9a-f]{16}", folder.name) and not folder.is_symlink()
            if is_ours and folder.stat().st_mtime < time.time() - _KEPT:
                import shutil  # seldom needed, and never inside of an import: a cache is opened before

                shutil.rmtree(folder, ignore_errors=True)


def _decode(data: bytes, source: bytes, path: str) -> Rewritten | None:
    checked = memoryview(data)[_CHECKED:]
    if data[: len(_MAGIC)] != _MAGIC:
        log.debug("miss %s: not an entry", path)
    elif data[len(_MAGIC) : _CHECKED] != _digest(checked):
        log.debug("miss %s: damaged", path)
    elif checked[:_DIGEST] != _digest(source):
        log.debug("miss %s: made from another source", path)
    else:
        code, sites = marshal.loads(checked[_DIGEST:])
        if code is None or (isinstance(code, CodeType) and code.co_filename == path):
            return Rewritten(code, tuple(Site(*site) for site in sites))
        log.debug("miss %s: made for %s", path, code.co_filename)
    return None


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()
