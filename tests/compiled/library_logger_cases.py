"""Loggers that are no `logging.Logger`: adapters, and those of libraries where they are there.

Imported twice, as they are and mended.  ``LIBRARY`` says, for each case, which library it takes.
"""

from __future__ import annotations

import importlib.util
import logging
from typing import Any

import torch

logger = logging.getLogger("library_logger_cases")
LIBRARY: dict[str, str] = {}


def has(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def case(library: str) -> Any:
    def register(function: Any) -> Any:
        if has(library):
            LIBRARY[function.__name__] = library
        return function

    return register


# --- adapters --------------------------------------------------------------------------------------------------------

adapter = logging.LoggerAdapter(logger, {"who": "me"})
changing = logging.LoggerAdapter(logger, {"layer": 0})
showing_an_object = logging.LoggerAdapter(logger, {"shown": changing})
around_another = logging.LoggerAdapter(adapter, {"who": "you"})


class Upper(logging.LoggerAdapter):  # type: ignore[type-arg]
    def process(self, msg: Any, kwargs: Any) -> Any:
        return str(msg).upper(), kwargs


class Owner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.log = logging.LoggerAdapter(logger, {"layer": 1})

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.log.info("in %s", x.shape)
        warn_of_caller("here")
        return x * 2


OWNER = Owner()
upper = Upper(logger, {})


def warn_of_caller(text: str) -> None:
    adapter.warning(text, stacklevel=2)


@case("logging")
def an_adapter(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    adapter.info("hello %s", y)
    y.add_(1)
    adapter.log(35, f"at level {y.dim()}")
    return OWNER(y)


DECLINED: dict[str, set[str]] = {}


def declined(*codes: str) -> Any:
    def register(function: Any) -> Any:
        DECLINED[function.__name__] = {*codes}
        return function

    return register


@declined("GM101-T01")
def an_adapter_with_a_method_of_its_own(x: torch.Tensor) -> torch.Tensor:
    upper.info("hello")
    return x + 1


@declined("GM101-T18")
def an_adapter_around_another(x: torch.Tensor) -> torch.Tensor:
    around_another.info("hello")
    return x + 1


@declined("GM101-T18")
def an_adapter_that_shows_an_object(x: torch.Tensor) -> torch.Tensor:
    showing_an_object.info("hello")
    return x + 1


@declined("GM101-T18")
def an_adapter_that_changes_later(x: torch.Tensor) -> torch.Tensor:
    changing.info("before")
    changing.extra["layer"] += 1
    return x + 1


def with_a_changing_adapter(x: torch.Tensor) -> torch.Tensor:
    changing.info("now")
    return x + 1


# --- libraries -------------------------------------------------------------------------------------------------------

if has("loguru"):
    from loguru import logger as of_loguru

    bound = of_loguru.bind(layer=1)
if has("absl"):
    from absl import logging as of_absl
if has("structlog"):
    import structlog

    of_structlog = structlog.get_logger()
    bound_by_structlog = structlog.get_logger().bind(layer=1)
if has("accelerate"):
    from accelerate.logging import get_logger
    from accelerate.state import PartialState

    PartialState()
    of_accelerate = get_logger("library_logger_cases")
if has("tqdm"):
    from tqdm import tqdm
    from tqdm.auto import tqdm as auto_tqdm


@case("loguru")
def with_loguru(x: torch.Tensor) -> torch.Tensor:
    y = x.clone()
    of_loguru.info("hello {} {k}", y, k=1)
    y.add_(1)
    bound.success(f"after {y.shape}")
    of_loguru.log("WARNING", "at level")
    return y


@case("absl")
def with_absl(x: torch.Tensor) -> torch.Tensor:
    of_absl.info("hello %s", x)
    of_absl.log_if(of_absl.WARNING, "if %d", x.dim() == 1, 5)
    of_absl.log_first_n(of_absl.WARNING, "first %d", 2, 7)
    return x + 1


@case("structlog")
def with_structlog(x: torch.Tensor) -> torch.Tensor:
    of_structlog.info("hello", shape=tuple(x.shape))
    bound_by_structlog.warning("bound", x=x.sum())
    structlog.get_logger().error("looked up")
    log = structlog.get_logger(__name__)
    log.error("and kept")
    return x + 1


@case("accelerate")
def with_accelerate(x: torch.Tensor) -> torch.Tensor:
    of_accelerate.info("hello %s", x)
    of_accelerate.warning("on all", main_process_only=False)
    return x + 1


@case("tqdm")
def with_tqdm(x: torch.Tensor) -> torch.Tensor:
    tqdm.write("hello")
    auto_tqdm.write(f"{x.shape}", end="!\n")
    return x + 1
