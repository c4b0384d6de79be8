"""What the schemas of torch's operations do not say, by name, as data: what may fail, gradients, cost.

What they do say, writes, random numbers and aliases, `engine.facts.operations` reads there. A name stands for the
function of torch, that of torch.nn.functional and the method of Tensor alike. No argument called `out`, `inplace` or
`alpha` is covered, nor are complex, quantized and sparse tensors. What is said here is measured by
`tests/compiled/test_tensor_ops.py`, and against the schemas by `tests/compiled/test_operations.py`.
"""

from __future__ import annotations

import functools
from typing import NamedTuple


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Values of Python that follow from type and shape alone.
_OF_TYPES = _names("broadcast_shapes finfo iinfo promote_types")
_OF_TENSORS = _names(
    "dim element_size is_complex is_contiguous is_floating_point is_tensor ndimension nelement numel result_type size"
)
METADATA = _OF_TYPES | _OF_TENSORS

# Made from values of Python alone, and made after the type or the shape of a tensor.
_MADE = _names("arange as_tensor eye full ones tensor zeros")
_MADE_LIKE = _names("full_like new_full new_ones new_tensor new_zeros ones_like zeros_like")

# These may give an alias of what they are called on.
VIEWS = _names(
    "atleast_1d atleast_2d atleast_3d bfloat16 bool broadcast_to byte char chunk contiguous detach diagonal double "
    "expand expand_as flatten float half int long moveaxis movedim narrow permute positive ravel reshape reshape_as "
    "select short split split_with_sizes squeeze swapaxes swapdims t tensor_split to transpose type_as unbind "
    "unflatten unsqueeze view view_as"
)
_COPIES = _names("cat clone concat concatenate flip hstack pad repeat roll stack tile tril triu vstack")

_COMPARISONS = _names("eq ge greater greater_equal gt isclose isin le less less_equal lt ne not_equal")
_QUESTIONS = _names("all any isfinite isinf isnan isneginf isposinf logical_not")
_LOGIC = _names("logical_and logical_or logical_xor")
_BITWISE = _names("bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor")

# Their gradient is selected, copied or summed, never multiplied by something that the values decide.
_FLAT = _names(
    "abs absolute add argmax argmin bitwise_not ceil clamp clamp_max clamp_min clip count_nonzero cumsum diff floor "
    "fmax fmin frac hardsigmoid leaky_relu masked_fill max maximum mean min minimum nan_to_num nansum neg negative "
    "relu relu6 round sgn sign signbit sub subtract sum trunc where"
)
# Their gradient is multiplied by values: a zero that meets inf or nan there becomes nan.
# (amax and amin divide it among equals, and nan equals nothing; nanmean divides it by a count that may be zero.)
_STEEP = _names(
    "acos addcdiv addcmul amax amin aminmax asin atan atan2 copysign cos cosh cumprod elu erf erfc exp exp2 expm1 "
    "float_power gelu hardswish lerp log log10 log1p log2 log_softmax logaddexp logit logsigmoid logsumexp mish mul "
    "multiply nanmean normalize pow prod reciprocal rsqrt selu sigmoid silu sin sinh softmax softplus sqrt square tan "
    "tanh true_divide xlogy"
)

# Each has a gradient for every operand, saves none of them for it, and has no other kernel where it is asked for one.
LINEAR_KEEPING_NOTHING = (VIEWS - {"type_as"}) | _names("add cat clone getitem mean neg pad stack sub sum")
# So it is with the first operand of these, if no other has more dimensions, but that the others are saved.
LINEAR = _names("conv1d conv2d conv3d linear matmul mul")

# They write statistics of what they are given to operands, whose numbers their gradient does not rest on then.
KEEPING_STATISTICS = _names("batch_norm instance_norm")

# With a zero gradient from above they add zeros or nothing to the gradients below, whatever the values.
# Zeros are not nothing where there was no gradient (None becomes zeros) or a negative zero (-0.0 becomes 0.0).
SMOOTH = METADATA | _MADE | _MADE_LIKE | VIEWS | _COPIES | _COMPARISONS | _QUESTIONS | _LOGIC | _BITWISE | _FLAT

# May be run though its side is not taken: no error, shape or value of Python that depends on data, no random number,
# nothing changed, no warning, and cheap. Left out for what one of their forms does: div (an error for integers with
# rounding_mode; the operator / is true_divide), norm (a decomposition with p="nuc"), std and var (a warning),
# lcm (kills the process for the least integer and -1), floor_divide, fmod and remainder (an error for integers).
SPECULABLE = SMOOTH | _STEEP

# How many of an operation's leading parameters, the receiver counted, may be tensors (cat: hold tensors); by default
# one. A tensor that stands for a number further on is read: arange(t) and view(t) have a shape that depends on data,
# masked_fill(x, mask, t) an error. `where` must have all three: with one it is nonzero.
OPERANDS = (
    dict.fromkeys(_OF_TYPES | _MADE, 0)
    | dict.fromkeys(_COMPARISONS | _LOGIC | _BITWISE, 2)
    | dict.fromkeys(
        _names(
            "add atan2 clamp_max clamp_min copysign expand_as float_power fmax fmin logaddexp masked_fill max maximum "
            "min minimum mul multiply pow reshape_as result_type sub subtract to true_divide type_as view_as xlogy"
        ),
        2,
    )
    | dict.fromkeys(_names("addcdiv addcmul clamp clip lerp where"), 3)
)

# Errors that do not depend on data, and yet come only when the graph runs: fake tensors do not raise them.
# (Nor do they for softmax over a dimension that is not there.)
# An operand that is not of a floating type:
FLOATING_ONLY = _names(
    "addcdiv frac gelu hardsigmoid hardswish lerp log_softmax logaddexp logsigmoid mish pow silu softmax softplus"
)
# A boolean operand, a tensor or True itself:
NO_BOOLEANS = _names(
    "abs absolute addcmul argmax argmin bitwise_left_shift bitwise_right_shift ceil clamp clamp_max clamp_min clip "
    "floor relu round sub subtract trunc"
)
# An operand of a floating type:
INTEGERS_ONLY = _BITWISE | {"bitwise_not"}
# An operand with no element (select: up to torch 2.12):
NOT_EMPTY = _names("max min select")
# A number that the type of the result cannot hold, such as -1e9 in float16:
FITTING = _names("clamp clamp_max clamp_min clip full full_like masked_fill new_full pad pow where")

# An operand that is not contiguous: the strides of the fake result are not those of the real one.
CONTIGUOUS_ONLY = _names("copysign float_power isin logsigmoid pow roll xlogy")
# An operand that requires a gradient: some of their forms have none, which an error says that comes with the gradient.
WITHOUT_GRADIENT = _names("floor_divide remainder")
_OF_OPERATORS = WITHOUT_GRADIENT  # they are made for an operator of Python alone, of two tensors


class Operation(NamedTuple):
    """What is known of an operation by its name; see the tables above.

    operands: how many of its leading parameters may be tensors.
    """

    operands: int
    is_smooth: bool
    needs_floats: bool
    refuses_booleans: bool
    needs_integers: bool
    needs_elements: bool
    numbers_must_fit: bool
    must_be_contiguous: bool
    is_without_gradient: bool


@functools.cache
def operation(name: str) -> Operation:
    """What the tables above say of the operation; of an operator of Python, of the operation that it is on tensors."""
    name = OPERATORS.get(name, name)
    tables = (FLOATING_ONLY, NO_BOOLEANS, INTEGERS_ONLY, NOT_EMPTY, FITTING, CONTIGUOUS_ONLY, WITHOUT_GRADIENT)
    return Operation(_operands(name), name in SMOOTH or name == "getitem", *(name in table for table in tables))


def _operands(name: str) -> int:
    return OPERANDS.get(name, 2 if name in _OF_OPERATORS else 1)


# In torch.nn.functional they take `inplace`, by position too.
INPLACE = _names("elu hardsigmoid hardswish leaky_relu mish relu relu6 selu silu")

# Methods that write to what they are called on, and change nothing else; without the last letter they make another one.
WRITTEN_BY_METHODS = _names(
    "add_ addcdiv_ addcmul_ clamp_ clamp_max_ clamp_min_ div_ index_add_ index_copy_ index_fill_ "
    "index_put_ lerp_ masked_fill_ masked_scatter_ mul_ scatter_ scatter_add_ sub_"
)

# A call of one says that its result is a tensor that somebody tests.
PREDICATES = _COMPARISONS | _QUESTIONS | _LOGIC

# They give a value of Python that the data decides.
REDUCTIONS_TO_PYTHON = _names("allclose equal is_nonzero item tolist")

# Functions of torch and of torch.nn.functional and methods of Tensor that give a tensor, or some; those that people
# write in models, without names that much else has too.
_USUAL_ELSEWHERE = _names("add byte char diff negative positive round select short split subtract t")
_RARE = _names(
    "absolute aminmax atleast_1d atleast_2d atleast_3d bfloat16 bitwise_left_shift bitwise_right_shift concatenate "
    "copysign cosh erfc exp2 fmax fmin frac greater greater_equal hardsigmoid isneginf isposinf less less_equal "
    "moveaxis multiply nansum not_equal ravel reshape_as sgn signbit sinh split_with_sizes swapaxes swapdims "
    "tensor_split true_divide xlogy"
)
TENSOR_RESULT = (SPECULABLE - METADATA - _USUAL_ELSEWHERE - _RARE) | _names(
    "adaptive_avg_pool1d adaptive_avg_pool2d addmm argsort as_strided avg_pool1d avg_pool2d baddbmm "
    "batch_norm bernoulli binary_cross_entropy binary_cross_entropy_with_logits bincount bmm bucketize cdist clamp_ "
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d copy_ cosine_similarity cpu cross_entropy cuda cummax "
    "diag diag_embed div div_ dropout einsum embedding empty empty_like fill_ floor_divide fmod from_numpy gather glu "
    "grid_sample group_norm hardtanh huber_loss index_add index_fill index_select instance_norm interpolate kl_div "
    "l1_loss layer_norm linear linspace masked_fill_ masked_scatter masked_select matmul max_pool1d max_pool2d median "
    "meshgrid mm mse_loss mul_ multinomial nll_loss nonzero norm one_hot outer pairwise_distance pixel_shuffle "
    "quantile rand rand_like randint randn randn_like randperm remainder repeat_interleave rms_norm "
    "scaled_dot_product_attention scatter scatter_add searchsorted smooth_l1_loss std sub_ take_along_dim tensordot "
    "topk unfold uniform_ unique var view_as_complex view_as_real zero_"
)

# Operators of Python by the operation that they are on tensors, where the names differ.
OPERATORS = {
    "and_": "bitwise_and",
    "floordiv": "floor_divide",
    "inv": "bitwise_not",
    "invert": "bitwise_not",
    "lshift": "bitwise_left_shift",
    "mod": "remainder",
    "or_": "bitwise_or",
    "pos": "positive",
    "rshift": "bitwise_right_shift",
    "truediv": "true_divide",
    "xor": "bitwise_xor",
}


def of_operator(name: str) -> str:
    """The operation that a method of a tensor is for an operator of Python (``__radd__``); another's name as it is."""
    if not (name.startswith("__") and name.endswith("__")):
        return name
    plain = name.strip("_")
    known = OPERATORS.get(plain, plain)
    reflected = OPERATORS.get(plain[1:], plain[1:])
    return reflected if plain.startswith("r") and known not in SPECULABLE else known


# Cheap: about as much work as there are elements. Where they neither write nor draw, [Value] runs them while tracing.
CHEAP = SMOOTH | _names(
    "amax amin argsort broadcast_tensors bucketize cpu cumprod div floor_divide gather getitem index_select "
    "interpolate linspace meshgrid mul multiply nonzero outer pow prod remainder repeat_interleave scalar_tensor "
    "searchsorted sort sqrt true_divide type unfold unique_consecutive BoolTensor FloatTensor IntTensor LongTensor"
)
# Those whose name with `_` at its end writes to the first operand what follows from all of them.
CHEAP_IN_PLACE = CHEAP | _names("copy fill zero")

# They do not fail on a tensor of no rows, nor warn: what may be done to rows that a mask selects, whether or not there
# is one.  Measured with gradients: `tests/compiled/test_operations.py`.
TOTAL = _names(
    "abs absolute add all any bitwise_and bitwise_not bitwise_or bitwise_xor bool broadcast_to cat chunk clamp "
    "clamp_max clamp_min clip clone contiguous cos count_nonzero cumsum detach div divide double dropout eq exp "
    "expand expand_as flatten flip float ge gelu getitem gt half hstack huber_loss index_select int isfinite isinf "
    "isnan l1_loss layer_norm le leaky_relu linear log logical_and logical_not logical_or logical_xor long lt "
    "masked_fill matmul maximum mean minimum mm movedim mse_loss mul multiply ne neg negative norm normalize "
    "ones_like permute pow relu repeat reshape rms_norm rsqrt scaled_dot_product_attention sigmoid sign silu sin "
    "smooth_l1_loss softmax softplus split sqrt square squeeze stack sub subtract sum swapaxes t tanh tile to "
    "transpose true_divide type type_as unsqueeze view vstack where zeros_like"
)
# The same on floats of four bytes or eight: others have no kernel on each device.
TOTAL_OF_FLOATS = _names(
    "acos acosh addcdiv addcmul addmm argsort asin asinh atan atan2 atanh baddbmm bilinear "
    "binary_cross_entropy_with_logits bmm cdist ceil celu copysign cosh cosine_embedding_loss cosine_similarity "
    "cummax cummin cumprod deg2rad diff digamma dot einsum elu erf erfc erfinv exp2 expm1 fliplr flipud floor fmax "
    "fmin fmod frac hardshrink hardsigmoid hardswish hardtanh hinge_embedding_loss hypot inner lerp lgamma log10 "
    "log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logit logsigmoid logsumexp margin_ranking_loss mish "
    "msort mv nan_to_num nanmean nansum outer pairwise_distance prelu prod rad2deg reciprocal relu6 remainder roll "
    "round selu sinc sinh soft_margin_loss softshrink softsign sort tan tanhshrink threshold trace tril "
    "triplet_margin_loss triu trunc xlogy"
)
NORMS = _names("norm normalize")
OF_A_DIMENSION = _names("log_softmax softmax")  # which warn unless one is named

# Of `STEADY`, the factorisations and what is made of them: there are none but in single and double precision.
OF_WIDE_FLOATS = _names(
    "cholesky_solve det linalg_cholesky_ex linalg_det linalg_inv_ex linalg_ldl_factor_ex linalg_lu_factor_ex "
    "linalg_qr linalg_slogdet linalg_solve_triangular"
)

# On tensors of floats that are not empty, and traced without an error, no data makes them fail; nor do they warn. They
# are no part of `SPECULABLE`, since what they cost is for the sizes to say.
SPREADS = _names("std std_mean var var_mean")  # of two elements or more
STEADY = (
    SPREADS
    | OF_WIDE_FLOATS
    | _names(
        "_safe_softmax "
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d addbmm "
        "addmm addr affine_grid argsort avg_pool1d avg_pool2d baddbmm batch_norm bilinear "
        "binary_cross_entropy_with_logits bmm celu channel_shuffle column_stack conv1d conv2d conv3d conv_transpose1d "
        "conv_transpose2d conv_transpose3d cosine_embedding_loss cosine_similarity cross cummax cummin "
        "cumulative_trapezoid deg2rad diag diag_embed diagflat digamma dist dot dropout dstack einsum erfinv fliplr "
        "flipud fold ger glu grid_sample group_norm gru_cell hardshrink hardtanh hinge_embedding_loss huber_loss "
        "hypot i0 inner instance_norm interpolate kl_div kron l1_loss layer_norm ldexp lgamma linear logaddexp2 "
        "logcumsumexp lstm_cell margin_ranking_loss matmul matrix_exp max_pool1d max_pool2d max_pool3d median mm mode "
        "mse_loss msort multi_dot mv nanmedian norm outer pairwise_distance pixel_shuffle pixel_unshuffle "
        "poisson_nll_loss prelu rad2deg rms_norm rnn_relu_cell rnn_tanh_cell rot90 scaled_dot_product_attention sinc "
        "smooth_l1_loss softmin softshrink softsign sort tanhshrink tensordot threshold topk trace trapezoid "
        "triplet_margin_loss unfold vdot vecdot vector_norm"
    )
)

# They warn unless this argument is given, by its name; of `kl_div` by another than the default.
WARNING = {"affine_grid": "align_corners", "cross": "dim", "grid_sample": "align_corners", "kl_div": "reduction"}
WARNING |= {"softmin": "dim"}

# They store what they are given, and compute nothing.
STORING = _names("copy fill setitem zero")

# What they give rests on the numbers of all their operands, as it does where elements are taken one by one, or reduced.
LOOKING = _names(
    "addmm baddbmm bmm cat cdist concat conv1d conv2d conv3d cumsum dropout einsum embedding gather getitem group_norm "
    "index_select layer_norm linear log_softmax matmul mm pad repeat roll scaled_dot_product_attention softmax sort "
    "stack tile topk tril triu where"
)

# They may give numbers of their operands as they are, some though they compute (a power of one, a rounded integer).
MOVING = VIEWS | _COPIES | _names("ceil copy dropout fill floor getitem pow round setitem trunc")
COMPUTING = (SPECULABLE | LOOKING | KEEPING_STATISTICS | _names("index_select gather take_along_dim")) - MOVING

# The data makes none of them fail, nor the want of any.
HARMLESS = SPECULABLE | TOTAL | TOTAL_OF_FLOATS

# What fails where a whole number that a tensor holds is no place in the first operand.
INDEXED = _names("embedding gather getitem index_select one_hot repeat_interleave take take_along_dim")

# They fail on shapes alone, whatever the types are.
OF_SHAPES = _names("broadcast_tensors")
# By the position and the name of the operand whose numbers they may fail on, and on nothing else: classes, and places.
FAILS_ON_NUMBERS = {
    **{"cross_entropy": (1, "target"), "nll_loss": (1, "target"), "embedding": (0, "input"), "one_hot": (0, "tensor")},
    **dict.fromkeys(("gather", "index_select", "scatter", "scatter_add"), (2, "index")),
}
# They fail on some square matrices, their first operands, and on nothing else where the shapes fit.
FAILS_ON_MATRICES = _names("cholesky inverse linalg_cholesky linalg_inv linalg_solve")

# Classes of tensors whose operations do what they do on plain tensors, and may talk to other processes.
DISTRIBUTED = frozenset({"torch.distributed.tensor.DTensor"})
# Methods and functions of theirs: they give what their first operand holds, elsewhere or in another form.
OF_DISTRIBUTED = _names("from_local full_tensor redistribute to_local")

# Functions and operators of numpy, as Dynamo has them on tensors, that give to the bit what torch gives.
NUMPY = _names(
    "abs add all and_ any array ceil eq floor floor_divide floordiv ge gt lcm le lt maximum minimum mod mul "
    "multiply ne neg or_ pow power prod remainder sqrt sub subtract truediv"
)

# Attributes and methods of a tensor that are about the object or its memory, and not about its elements.
OF_THE_OBJECT = frozenset(
    {
        *("grad", "grad_fn", "is_leaf", "output_nr", "retains_grad", "_base", "_version", "_is_view"),
        *("register_hook", "register_post_accumulate_grad_hook", "retain_grad"),
        *("as_strided", "data_ptr", "storage", "storage_offset", "untyped_storage", "__dict__"),
    }
)
