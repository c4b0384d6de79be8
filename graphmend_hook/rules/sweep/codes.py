"""What [Sweep] says of a loop that is not swept."""

from __future__ import annotations

from ...diagnostics import code, of_rules

STEP_CONTAINS_MORE = of_rules(
    "GM105-R01",
    sentence="the step only assigns names, and adds at an index at its end",
    remedy="Let the step compute from its rows and end with one `index_add_` or assignment at the index.",
    because="the step contains something else than assignments to names, under an `if` perhaps, and one at an index at its end",
)
READ_AFTER_STEP = of_rules(
    "GM105-R02",
    sentence="what the step assigns is not read after it",
    remedy="Do not read after the loop what one of its steps has bound.",
    because="a name that the step assigns is read after it: eager leaves it as the last expert that was hit left it; or a list of hits is used elsewhere",
)
STEP_DOES_MORE = code(
    "GM105-T01",
    sentence="a step of the loop does more than compute from its rows, or could fail on none",
    remedy="Let the step compute from its rows alone, by operations that work on no rows.",
)
GRADIENTS_UNKNOWN = code(
    "GM105-T02",
    sentence="which gradients a step without rows leaves as None cannot be told apart",
    remedy="Give one result of one loop, with something between two loops (`x = x + experts(x)`), and leave out questions about `requires_grad`, hooks, and writes to the inputs.",
)
TOO_MANY_STEPS = code(
    "GM105-T03",
    sentence="the loop has too many steps to make all of them",
    remedy="Use fewer steps than 64, or a grouped product of matrices in the place of the loop.",
    because="there are more than 64 steps in one trace: the graph would have to hold them all",
)
