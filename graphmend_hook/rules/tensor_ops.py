"""The operations of torch that a side not taken may run, and what is known of each, as data.

A name stands for the function of torch, that of torch.nn.functional and the method of Tensor alike. No argument called
`out`, `inplace` or `alpha` is covered, nor are complex, quantized and sparse tensors. What is said here is measured by
`tests/compiled/test_tensor_ops.py`.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Values of Python that follow from type and shape alone.
_OF_TYPES = _names("broadcast_shapes finfo iinfo promote_types")
_OF_TENSORS = _names(
    "dim element_size is_complex is_contiguous is_floating_point is_tensor ndimension nelement numel result_type size"
)
METADATA = _OF_TYPES | _OF_TENSORS

# Made from values of Python alone, and made after the type or the shape of a tensor.
_MADE = _names("arange eye full ones tensor zeros")
_MADE_LIKE = _names("full_like new_full new_ones new_tensor new_zeros ones_like zeros_like")

# These may give an alias of what they are called on.
VIEWS = _names(
    "atleast_1d atleast_2d atleast_3d bfloat16 bool broadcast_to byte char chunk contiguous detach diagonal double "
    "expand expand_as flatten float half int long moveaxis movedim narrow permute positive ravel reshape reshape_as "
    "select short split split_with_sizes squeeze swapaxes swapdims t to transpose type_as unbind unflatten unsqueeze "
    "view view_as"
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
# An operand with no element:
NOT_EMPTY = _names("max min")
# A number that the type of the result cannot hold, such as -1e9 in float16:
FITTING = _names("clamp clamp_max clamp_min clip full full_like masked_fill new_full pad pow where")

# In torch.nn.functional they take `inplace`, by position too.
INPLACE = _names("elu hardsigmoid hardswish leaky_relu mish relu relu6 selu silu")

# A call of one says that its result is a tensor that somebody tests.
PREDICATES = _COMPARISONS | _QUESTIONS | _LOGIC

# They give a value of Python that the data decides.
REDUCTIONS_TO_PYTHON = _names("allclose equal is_nonzero item tolist")

# Functions of torch and of torch.nn.functional and methods of Tensor that give a tensor, or some; those that people
# write in models, without names that much else has too.
TENSOR_RESULT = _names(
    "abs acos adaptive_avg_pool1d adaptive_avg_pool2d addcdiv addcmul addmm all amax amin any arange argmax argmin "
    "argsort as_strided as_tensor asin atan atan2 avg_pool1d avg_pool2d baddbmm batch_norm bernoulli "
    "binary_cross_entropy binary_cross_entropy_with_logits bincount bitwise_and bitwise_not bitwise_or bitwise_xor bmm "
    "bool broadcast_to bucketize cat cdist ceil chunk clamp clamp_ clamp_max clamp_min clip clone concat contiguous "
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d copy_ cos cosine_similarity count_nonzero cpu "
    "cross_entropy cuda cummax cumprod cumsum detach diag diag_embed diagonal div div_ double dropout einsum elu "
    "embedding empty empty_like eq erf exp expand expand_as expm1 eye fill_ flatten flip float float_power floor "
    "floor_divide fmod from_numpy full full_like gather ge gelu glu grid_sample group_norm gt half hardswish hardtanh "
    "hstack huber_loss index_add index_fill index_select instance_norm int interpolate isclose isfinite isin isinf "
    "isnan kl_div l1_loss layer_norm le leaky_relu lerp linear linspace log log10 log1p log2 log_softmax logaddexp "
    "logical_and logical_not logical_or logical_xor logit logsigmoid logsumexp long lt masked_fill masked_fill_ "
    "masked_scatter masked_select matmul max max_pool1d max_pool2d maximum mean median meshgrid min minimum mish mm "
    "movedim mse_loss mul mul_ multinomial nan_to_num nanmean narrow ne neg new_full new_ones new_tensor new_zeros "
    "nll_loss nonzero norm normalize one_hot ones ones_like outer pad pairwise_distance permute pixel_shuffle pow prod "
    "quantile rand rand_like randn randn_like randperm reciprocal relu relu6 remainder repeat repeat_interleave "
    "reshape rms_norm roll rsqrt scaled_dot_product_attention scatter scatter_add searchsorted selu sigmoid sign silu "
    "sin smooth_l1_loss softmax softplus sqrt square squeeze stack std sub sub_ sum take_along_dim tan tanh tensor "
    "tensordot tile to topk transpose tril triu trunc type_as unbind unflatten unfold unique unsqueeze var view "
    "view_as view_as_complex view_as_real vstack where zero_ zeros zeros_like"
)
