"""What `faults` has mended where it exists already, and where it is loaded by its place."""

from __future__ import annotations

import logging

logger = logging.getLogger("faulty_module.plugin")


def halved(x):
    logger.info("halved %s", tuple(x.shape))
    if (x > 100).any():
        raise ValueError("too much")
    return x / 2
