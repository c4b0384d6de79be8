"""Known side effects that are calls for their effect alone, as data: `defer.traced` decides on the objects."""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Functions that show their caller by a keyword alone, whatever they are given by position.
WITHOUT_LEVEL = frozenset(
    {"print", "builtins.print"}
    | {f"logging.{level}" for level in ("debug", "info", "warning", "error", "critical", "log")}
)

# Functions, by the name they are imported under; those below the line are of libraries (`traced_library_loggers`).
FUNCTIONS = frozenset(
    {"warnings.warn"}
    | WITHOUT_LEVEL
    # ---
    | {f"absl.logging.{name}" for name in ("debug", "info", "warning", "error", "log", "log_if", "vlog")}
    | {f"absl.logging.{name}" for name in ("log_first_n", "log_every_n")}
    | {f"tqdm.{module}tqdm.write" for module in ("", "auto.", "std.")}
    | {f"torchmetrics.utilities.{module}rank_zero_{kind}" for module in ("", "prints.") for kind in ("info", "warn")}
)

# Functions that look a logger up, which is the same for ever, or made of nothing but the arguments.
LOOKUPS = frozenset({"logging.getLogger", "structlog.get_logger", "structlog.stdlib.get_logger"})

# Clocks that are no numbers; those of `time` are read before and behind the graph.
CLOCKS = frozenset({"datetime.datetime.now"})

# Methods of torch.nn.Module that store what they are given.
MODULE_METHODS = frozenset({"register_buffer", "register_parameter"})

# Methods of loggers that do nothing where the logger is off at their level.
LEVELS = frozenset({"debug", "info", "warning", "error", "critical"})

# Methods of loggers; those below the line are what libraries add to logging.Logger
# (transformers, diffusers, accelerate, vLLM), or have on loggers of their own (loguru).
LOGGER_METHODS = frozenset(
    LEVELS
    | {"warn", "fatal", "log"}
    # ---
    | {"debug_once", "info_once", "warning_once", "error_once", "warning_advice"}
    | {"trace", "success"}
)

# Functions that fill a new tensor, and draw no numbers for it.
FILLING = frozenset({f"torch.{name}" for name in ("full", "full_like", "ones", "ones_like", "zeros", "zeros_like")})

# Keywords that make a call depend on the frame, the exception or the stream of its moment.
FRAME_KEYWORDS = frozenset(
    {"stacklevel", "exc_info", "stack_info", "source", "skip_file_prefixes"}
    # ---
    | {"use_call_stack", "in_order"}  # absl; accelerate, where processes wait for each other
)

# Decorators that compile a function themselves, from its bytecode or source: what they cannot read breaks them.
FOREIGN_COMPILERS = frozenset({"numba", "taichi", "warp", "triton", "cupyx", "pyximport", "tvm"})

# Functions and methods, by their bare name, that change none of their arguments.
QUIET_CALLS = _names(
    """
    abs all any bool cpu detach device dict dim dtype float format get getattr id int isinstance item items
    join keys len list lower max mean median min nelement norm numel numpy range repr round set size sorted
    std storage_offset str stride strip sum tolist tuple type upper values var zip
    """
)
