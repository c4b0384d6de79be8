"""Why a number is not known while Dynamo traces: codes and sentences, by the name of the rule."""

from __future__ import annotations

_VALUE = {
    "GM104-T01": "the number depends on data that is not known while tracing",
    "GM104-T02": "the number depends on an input; name it in GRAPHMEND_VALUES to compile once for each of its values",
    "GM104-T03": "the number depends on a tensor that the graph writes to in place",
    "GM104-T04": "the compiled code is saved, and a guard on a value cannot be; or a guard_filter_fn may drop it",
    "GM104-T05": "the frame has been compiled for four combinations of values already, or for two numbers, or changes "
    "the number itself",
    "GM104-T06": "what the compiled code took for granted of a size that the data decides did not hold in another call",
    "GM104-T07": "how often a `while` goes round depends on an input: the loop would be compiled anew for each number",
    "GM104-T08": "what the number decides could not be traced before, or a list is made of many pieces of such sizes",
    "GM104-T09": "numbers that were captured on the way here were given up, and are read as they were written",
}
REFUSALS = {"value": _VALUE}
