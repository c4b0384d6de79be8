"""What [Value] says of a number that is not known; another code is the engine's (`engine.attempt.refusals`)."""

from __future__ import annotations

from ...diagnostics import code

UNKNOWN_DATA = code(
    "GM104-T01",
    sentence="the number depends on data that is not known while tracing",
    remedy="Read the number around the compiled call and hand it in, or compute with the tensor.",
    because="the number depends on data that is not known: weights, big activations, random numbers, an operation that is not in the table",
)
OF_AN_INPUT = code(
    "GM104-T02",
    sentence="the number depends on an input; name it in GRAPHMEND_VALUES to compile once for each of its values",
    remedy="Name the input by `--values NAME` (GRAPHMEND_VALUES, install(values=...)) if it takes few values.",
    because="the number depends on an input that has had another value; `GRAPHMEND_VALUES` names it",
)
WRITTEN_IN_PLACE = code(
    "GM104-T03",
    sentence="the number depends on a tensor that the graph writes to in place",
    remedy="Compute with the tensor in the place of the number, or write to a copy.",
    because="the graph writes to the tensor in place, or an operation that the rule does not know may have written to it, or to an alias",
)
NO_GUARD = code(
    "GM104-T04",
    sentence="the compiled code is saved, and a guard on a value cannot be; or a guard_filter_fn may drop it",
    remedy="Compile without saving the code, and without a `guard_filter_fn` that may drop guards on values.",
    because="the code is exported or saved, the input cannot be reached by a guard, or a `guard_filter_fn` may drop the guard",
)
TOO_MANY_VALUES = code(
    "GM104-T05",
    sentence="the frame has been compiled for four combinations of values already, or for two numbers, or changes the number itself",
    remedy="Compute with the tensor in the place of the number, or read the number around the compiled call: it takes more than four values.",
)
SIZE_OTHERWISE = code(
    "GM104-T06",
    sentence="what the compiled code took for granted of a size that the data decides did not hold in another call",
    remedy="Pad what the data makes small, or read the number around the compiled call.",
    because="what the graph took for granted of a captured size did not hold in another call (GM009)",
)
WHILE_OF_AN_INPUT = code(
    "GM104-T07",
    sentence="how often a `while` goes round depends on an input: the loop would be compiled anew for each number",
    remedy="Give the loop a number of steps that the shape or a constant decides.",
    because="the test of a `while` depends on an input that nobody has named: the loop would be compiled anew for each number of steps",
)
NOT_TRACED = code(
    "GM104-T08",
    sentence="what the number decides could not be traced before, or a list is made of many pieces of such sizes",
    remedy="Take all pieces at once (`x[mask]`), split by sizes that are known (`tensor_split`, padding), or split around the compiled call.",
)
DRAWN = code(
    "GM104-T10",
    sentence="a number that Python or numpy draws, or that a clock shows, is asked for while tracing, an operation of another library may draw as well, or a clock is read between operations",
    remedy="Draw by `torch.rand(())`, or around the compiled call, and hand the number in; read clocks before and behind it.",
    because="a draw of `random` or `numpy.random` has arguments that are no known numbers, its number is asked for while tracing, the function is another one, or an operation of another library in the graph may draw as well; or a clock is read between operations of the graph a second time",
)
