"""What several rules say of a statement that is left as it was written: one record, with the code of each rule."""

from __future__ import annotations

from ...diagnostics import of_rules

CHAINED = of_rules(
    "GM102-R01",
    "GM103-R01",
    sentence="what stands in the middle of chained comparisons is no ``.item()``",
    remedy="Leave `.item()` out of the middle of the chained comparison: the tensor itself compares alike.",
    because="comparisons are chained, and what stands in the middle is read by `.item()`",
)
NOT_SPECULABLE = of_rules(
    "GM102-R02",
    "GM103-R02",
    sentence="a side binds no name in an expression, and does not look at the function around it",
    remedy="Give the expression a line before the branch (`most = x.max()`, and not `(most := x.max())`).",
    because="a side has an expression that may only be evaluated if the side is taken: `:=`, `super()`; or it calls what may read a name that the side has assigned to, and other functions see",
)
MAY_BE_UNBOUND = of_rules(
    "GM102-R03",
    "GM103-R03",
    sentence="what a side reads is bound",
    remedy="Bind the name before the branch, also where it is read on one side only.",
    because="a side reads a name that may be unbound",
)
OTHER_NAME = of_rules(
    "GM102-R04",
    sentence="an attribute that a side creates when it is first needed is used there alone, and not assigned to once more",
    remedy="Create the attribute in `__init__`, or before the branch.",
    because="an attribute that a side creates when it is first needed is looked at elsewhere, assigned to once more, or its owner is rebound",
)
BOUND_ON_ONE_SIDE = of_rules(
    "GM102-R05",
    sentence="what is given away later is bound on both sides, or before",
    remedy="Bind the name on both sides, or before the branch.",
    because="a name is bound on one side only, and returned, handed on or stored later",
)
LEAVES_EARLY = of_rules(
    "GM102-R06",
    sentence="a ``return`` is not inside a ``while``, a ``with`` or a ``try``, and what follows it is a side too; a side that returns or raises binds nothing that other functions can see",
    remedy="Move the `return` out of the `while`, `with` or `try`: keep the value in a name, and return that after it; bind what other functions see before the branch.",
    because="an early return inside a `while`, a `with` or a `try`; a side that returns or raises, and binds a name that another function can see (`nonlocal`, `global`, read by a lambda)",
)
TOO_BIG = of_rules(
    "GM102-R07",
    "GM103-R07",
    sentence="the sides are small",
    remedy="Make the sides small: put what does not depend on the test in front of the branch, or after it; join no more than five tests by `and` or `or`, and tensors by `&` or `|`.",
    because="the sides are long, or the test joins many tensors",
)
OTHER_STATEMENT = of_rules(
    "GM102-R08",
    sentence="the sides assign to names and attributes, call, return, raise, log, branch, or loop; and all exits of a loop that data ends are alike",
    remedy="Give what the side computes to names, and do the rest after the branch: `try`, `del` and definitions are not taken; leave a loop by `break`, or by `return`, and not by both.",
    because="a side contains another statement: `try`, `del`, a definition; or a loop that data ends is left by `break` and by `return`",
)
EFFECT_IN_SIDE = of_rules(
    "GM102-R09",
    sentence="what a side logs could be deferred",
    remedy="Make the log on the side one that [Defer] takes, or move it behind the branch; its own code says what is in the way.",
    because="what a side logs could not be deferred anywhere, or may show one of its callers",
)
SUSPENDS = of_rules(
    "GM102-R10",
    "GM103-R10",
    "GM105-R10",
    "GM106-R10",
    sentence="the function is no coroutine or generator",
    remedy="Move the statement into a plain function, which the coroutine or generator calls.",
    because="the function is a coroutine or a generator",
)
READS_FRAME = of_rules(
    "GM102-R11",
    "GM103-R11",
    "GM105-R11",
    "GM106-R11",
    sentence="the function does not read its own frame",
    remedy="Leave `locals()`, `sys._getframe`, `exec` and their like out of the function, or move the statement into another.",
    because="the function reads its own frame: `locals()`, `exec`, `eval`, frame objects",
)
OTHER_COMPILER = of_rules(
    "GM101-R05",
    "GM102-R12",
    "GM103-R12",
    "GM104-R12",
    "GM105-R12",
    "GM106-R12",
    sentence="no other compiler compiles the function",
    remedy="Compile the function by torch.compile alone: numba, triton and their like read its text by themselves.",
    because="another compiler compiles the function (numba, triton, taichi, ...)",
)
BARE_RAISE = of_rules(
    "GM102-R13",
    "GM103-R13",
    sentence="what a side raises is written out: no bare ``raise``",
    remedy="Raise outside the `except`, and write out what is raised: `raise ValueError(...)`, and not `raise` alone.",
    because="a bare `raise`",
)
NOT_RAISED_LATER = of_rules(
    "GM102-R14",
    "GM103-R14",
    sentence="an exception is built from values that can be read ahead of time",
    remedy="Build the message of names, attributes, shapes and tensors; compute the rest in a line before.",
    because="the exception's expression assigns, suspends, or reads an attribute of a class of the module, or calls what may have changed by the end of the graph; and its side does not always raise",
)
BOTH_RAISE = of_rules(
    "GM102-R15",
    "GM103-R15",
    sentence="a side falls through",
    remedy="Let each exception have an `if` of its own, so that one side of each goes on.",
    because="both sides raise",
)
LOOKED_AT = of_rules(
    "GM102-R17",
    sentence="a side does not compare by identity (`is`)",
    remedy="Compare before the branch: `same = y is x`, and in the side `if same:`.",
    because="a side compares by identity (`is`)",
)
