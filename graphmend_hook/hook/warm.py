"""Mending modules ahead of time, in parallel processes, so that a later import finds them in the cache."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from ..diagnostics import GraphmendError
from ..product.report.ledger import Ledger, ModuleRecord, Status
from ..settings.config import Settings
from .mender import Mender

_CHUNK = 8
_mender: Mender | None = None  # of this process


def warm(modules: Mapping[str, str], settings: Settings, jobs: int) -> Iterator[ModuleRecord]:
    """Put an entry for each of `modules` (names by path) into the cache; results come in their order.

    Raises GraphmendError where the cache cannot be written.
    """
    _start(settings)  # the directory is made, and looked at, once
    jobs = min(jobs, -(-len(modules) // _CHUNK))
    if jobs <= 1:
        yield from map(_warm, modules.items())
        return
    context = multiprocessing.get_context("spawn")  # a fork would copy the thread of a progress bar
    with ProcessPoolExecutor(jobs, context, _start, (settings,)) as pool:
        try:
            yield from pool.map(_warm, modules.items(), chunksize=_CHUNK)
        finally:
            pool.shutdown(cancel_futures=True)


def _start(settings: Settings) -> None:
    global _mender
    _mender = Mender(settings, Ledger())
    _mender.cache.writable = True  # images often set PYTHONDONTWRITEBYTECODE; here writing is what was asked for
    if _mender.cache.directory is None:
        raise GraphmendError(_mender.cache.problem)


def _warm(item: tuple[str, str]) -> ModuleRecord:
    assert _mender is not None
    path, name = item
    try:
        result, cached = _mender.result(path, Path(path).read_bytes())
    except Exception as error:
        return ModuleRecord(name, path, Status.FAILED, why=f"{type(error).__name__}: {error}")
    if _mender.cache.problem:
        raise GraphmendError(_mender.cache.problem)
    return ModuleRecord(name, path, Status.UNCHANGED if result.code is None else Status.MENDED, cached=cached)
