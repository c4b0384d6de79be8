"""The names that rewritten code may call, each from where it is defined; `runtime` has them once torch is imported."""

from .engine.door.held_contexts import watch as _enter_held_contexts
from .engine.door.nested_kinds import watch as _flatten_kinds
from .engine.door.shapes_in_place import watch as _see_shapes
from .engine.epilogue.deferral import tracing
from .rules.defer.traced import defer, defer_as_shown, deferrable, deferrable_as_shown, get_logger
from .rules.defer.traced_kept import (
    append_now,
    extended_behind,
    holds_under_name,
    kept_behind,
    removed_behind,
    updated_behind,
)
from .rules.defer.traced_late import late, settled
from .rules.defer.traced_prints import watch as _hear_prints
from .rules.defer.traced_progress import watch as _see_progress
from .rules.defer.traced_texts import number_of
from .rules.grad.traced import is_trained_anyway
from .rules.shared.traced_calls import begun, judged
from .rules.shared.traced_conditions import (
    begin_operand,
    both,
    compiling,
    early,
    either,
    every,
    is_bool,
    negate,
    of_number,
    one_value,
    operand,
    tested,
    truth,
    undecided,
)
from .rules.shared.traced_reductions import close, contains, equal, truths, truths_of
from .rules.shared.traced_sides import harmless, is_of_module, watch
from .rules.shared.traced_speculated import (
    as_late,
    augmented,
    current,
    current_item,
    grown,
    inert,
    moved,
    not_late,
    plain,
    slice,
    stores,
    unheard,
    unrelated,
)
from .rules.sweep.traced import candidate_rows, candidates, rows_at, sweep, sweep_listed, sweep_mask, swept
from .rules.trap.traced import asserted, is_check, spared, tried
from .rules.trap.traced_jumps import watch as _guard_jumps
from .rules.value.traced import (
    answered,
    as_float,
    decide,
    decide_again,
    default_device,
    drawn,
    elements,
    groupby,
    in_turn,
    item,
    known,
    power,
    read,
    read_by,
    read_in_side,
    read_in_side_by,
    read_list,
    read_list_in_side,
    settle,
    size,
    sorted_items,
    tolist,
)
from .rules.value.traced_data_shapes import (
    counted,
    distinct,
    masked,
    nonzero,
    one_hot,
    operated,
    repeated,
    taken,
    written_to,
)
from .rules.value.traced_numbers import compare, count_selected, number
from .rules.value.traced_operators import as_operator
from .rules.value.traced_side_items import append_to, augment_item, item_in_side, write_by, write_item
from .rules.value.traced_twice import apart
from .rules.where.traced import (
    FLAG,
    UNBOUND,
    UNREAD,
    expect_step,
    may_leave,
    nested,
    nested_returned,
    never,
    select,
    select_returned,
    truth_like,
)
from .rules.where.traced_loops import copied, loop
from .rules.where.traced_tests import one_and_other, one_or_other
