"""What `soak` calls: a record, a guard, a number, a choice."""

import logging

logger = logging.getLogger("soak_module")


def says(x, who):
    y = x * 2
    logger.warning("caller %d has %s", who, y[0])
    return y + 1


def guards(x, who):
    if (x < 0).any():
        raise ValueError(f"negative: {x[0]}")
    return x + who


def reads(x, n):
    y = x * 2
    return y[: n.item()]


def chooses(x, who):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    logger.info("caller %d chose", who)
    return y
