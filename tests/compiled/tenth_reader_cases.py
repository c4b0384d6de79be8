"""Programs of the tenth to twelfth reader, by which mended code could be told from eager; the test has their inputs."""

import logging

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from torch import nn

silent = logging.getLogger("tenth_reader.silent")
silent.setLevel(logging.ERROR)
seen = []
logger = logging.getLogger("tenth_reader")


def case_test_of_or(x):
    if (x > 0) or len(x) > 0:
        x = x + 1
    return x


def case_test_of_and(x, debug=False):
    if torch.isnan(x) and debug:
        raise ValueError("nan")
    return x * 2


def case_test_of_assert(x):
    assert (x > 0) or len(x) > 0
    return x


def case_kept_operand_is_written_to(x, y):
    p = x.detach() * 2
    z = y
    if x[0] > 0:
        z = y * p
    p.add_(1)
    return z


def case_twice_in_an_operation(x, y):
    """The gradient of `y` is a sum of three, which the order decides."""
    z = y
    if x[0] > 0:
        z = y.atan2(y)
    return y, z


def case_test_of_chain(x):
    assert 0 < x[0] < 5, "chain"
    return x + 1


def case_test_of_chain_or(x):
    assert x.sum() > 9 or 0 < x[0] <= x[1], "chain"
    return x + 1


def case_text_of_a_number(x, n):
    assert n > 0, f"{n:04d}"
    return x


def case_text_of_a_number_or(x, n):
    assert x.sum() > 100 or n > 0, f"{n}"
    return x + 1


def case_test_of_expression(x):
    return x * 2 if ((x > 0) or True) else x  # noqa: SIM222


def case_test_of_meta(x):
    if torch.zeros(1, device="meta") > 0 or True:
        x = x + 1
    return x


def case_test_of_empty(x):
    if torch.zeros(0) or True:
        x = x + 1
    return x


def case_test_of_vmap(x):
    def g(a):
        if a.sum() > 3 or len(a) > 0:
            a = a + 1
        return a

    return torch.vmap(g)(x)


def case_test_of_counted(x):
    if torch.nonzero(x) or len(x) > 0:
        x = x * 2
    return x


def case_told_setitem(x, w):
    h = torch.zeros_like(x).requires_grad_()
    z = torch.zeros(3)
    z[0] = h[0]
    return z, h * w


def case_told_setitem_input(x, w):
    h = torch.zeros_like(x).requires_grad_()
    x[0] = (h + 1)[0]
    return x * w


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2


class Draws(Doubled):
    @staticmethod
    def backward(ctx, g):
        torch.rand(1)
        seen.append(1)
        return g


class Logs(Doubled):
    @staticmethod
    def backward(ctx, g):
        logger.warning("backward")
        return g


class Never(Doubled):
    @staticmethod
    def backward(ctx, g):
        raise ValueError("never")


def told_and_given_to(function, x, w):
    h = x * 1
    h.requires_grad = True
    return function.apply(h) * w


def case_told_backward(x, w):
    return told_and_given_to(Draws, x, w)


def case_told_backward_logs(x, w):
    return told_and_given_to(Logs, x, w)


def case_told_backward_raises(x, w):
    return told_and_given_to(Never, x, w)


def case_told_sdpa(x, w):
    q = x * w
    m = torch.full((1, 1, 17, 17), 0.3).requires_grad_()
    return F.scaled_dot_product_attention(q, q, q, attn_mask=m)


def case_told_matmul(x, w):
    h = x[0, :, 1] + 0
    h.requires_grad = True
    return torch.matmul((x * w).transpose(1, 2), h)


def case_told_bce(x, w):
    h = torch.ones_like(x).requires_grad_()
    return F.binary_cross_entropy(w.sigmoid(), x.sigmoid(), weight=h)


def case_told_igamma(x, w):
    h = torch.ones_like(x).requires_grad_()
    return torch.igamma(h, w)


def case_told_saved(x, w):
    h = torch.ones_like(x).requires_grad_()
    v = w * 1
    y = h * v
    with torch.no_grad():
        v.add_(1)
    return y


def case_told_flag(x, w, flag=1):
    h = torch.zeros(3, requires_grad=flag)
    return h * w


def case_told_dropout(x, w):
    with torch.no_grad():
        h = torch.ones_like(x).requires_grad_()
        b = F.dropout(h, 0.5, training=False)
    return b, w * 2


def case_unused_setitem(x, i):
    z = torch.zeros(3)
    z[i] = 1
    if z.sum() > 1 or len(x) > 0:
        x = x * 2
    return x


def case_unused_scattered(x, i):
    z = torch.zeros(3)
    z.scatter_(0, i, 1.0)
    if z.sum() > 1:
        pass
    return x + 1


def case_unused_out(x, i):
    z = torch.zeros(1)
    torch.gather(x, 0, i, out=z)
    if z.sum() > 1 or True:
        x = x * 2
    return x


def case_unused_count(x, i):
    z = torch.zeros(3)
    z[torch.arange(3) < i] = torch.ones(2)
    if z.sum() > 5 or len(x) > 0:
        x = x + 1
    return x


def case_unused_silent_list(x, i):
    silent.debug("%s", [x[i]])
    return x * 2


def case_unused_silent_dict(x, i):
    silent.debug("%(a)s", {"a": x[i]})
    return x * 2


def case_unused_silent_written(x, i):
    y = x.clone()
    y[i] = 0
    silent.debug("%s", y)
    return x * 2


def case_unused_tuple_draw(x):
    y, _ = torch.nn.functional.fractional_max_pool2d(torch.ones(1, 1, 6, 6), 2, output_size=(2, 2), return_indices=True)
    if y.sum() > 300 or len(x) > 0:
        x = x + 1
    return x + torch.rand(3)


def case_unused_tuple_fails(x, m):
    _, s, _ = torch.linalg.svd(m)
    if s.max() > 300:
        pass
    return x + 1


class DrawsInTheForwardPass(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        if torch.rand(2).sum() > 3 or len(x) > 0:
            x = x * 2
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * 6


def case_unused_function_draws(x):
    return DrawsInTheForwardPass.apply(x) + torch.rand(3)


class DrawsB(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        if torch.rand(2).sum() > 3 or len(g) > 0:
            g = g * 2
        return g * torch.rand(3)


def case_unused_backward_draws(x):
    return DrawsB.apply(x)


class DrawsForNothing(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, g):
        g = g * torch.rand(3)
        torch.rand(2)
        return g


def case_unused_backward_draws_for_nothing(x):
    x = DrawsForNothing.apply(x)
    if x.sum() > 0:
        x = x + 1
    return x


class Index(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, i):
        if x[i].sum() > 3 or len(x) > 0:
            x = x * 2
        return x * 3

    @staticmethod
    def backward(ctx, g):
        return g * 6, None


def case_unused_function_index(x, i):
    return Index.apply(x, i)


def case_unused_checkpoint_draws(x):
    def g(x):
        silent.debug("%s", torch.rand(2))
        return x * 2

    return torch.utils.checkpoint.checkpoint(g, x, use_reentrant=False) + torch.rand(3)


def case_unused_checkpoint_index(x, i):
    def g(x, i):
        if x[i].sum() > 3 or len(x) > 0:
            x = x + 1
        return x * 2

    return torch.utils.checkpoint.checkpoint(g, x, i, use_reentrant=False)


def case_unused_func_grad_draws(x):
    def g(x):
        if torch.rand(2).sum() > 3 or len(x) > 0:
            x = x * 2
        return (x * 3).sum()

    return torch.func.grad(g)(x) + torch.rand(3)


def case_unused_func_grad_index(x, i):
    def g(x):
        if x[i].sum() > 3 or len(x) > 0:
            x = x * 2
        return (x * 3).sum()

    return torch.func.grad(g)(x)


def case_unused_float8(x, i):
    silent.debug("%s", x.to(torch.float8_e4m3fn)[i])
    return x + 1


class Dirty(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        b.add_(1)
        ctx.mark_dirty(b)
        return b, a * c

    @staticmethod
    def backward(ctx, g, h):
        return None, None, h


def case_twice_dirty(x, w):
    return Dirty.apply(x, x, w)


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        ctx.save_for_backward(a, b)
        return a * b * c

    @staticmethod
    def backward(ctx, h):
        a, b = ctx.saved_tensors
        return None, None, h * a * b


def case_twice_complex(x, w):
    return Product.apply(x, x, w)


class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, c):
        return c * 2

    @staticmethod
    def backward(ctx, h):
        return None, h


def case_twice_wrong(x, w):
    return Wrong.apply(x, x, w)


def case_unused_item_of_what_fails(x, i):
    silent.debug("%s", x.gather(0, i)[0])
    return x * 2


def case_unused_item_of_an_item(x, i):
    silent.debug("%s", x[i][0])
    return x * 2


def case_unused_item_in_a_test(x, i):
    if x.gather(0, i)[0] or len(x) > 0:
        x = x + 1
    return x


def case_unused_item_in_a_test2(x, i):
    if x[i][0] or len(x) > 0:
        x = x + 1
    return x


def case_unused_item_in_a_test3(x, i):
    if x[i] or len(x) > 0:
        x = x + 1
    return x


def case_written_and_given(x, y):
    h = x * 2
    h.requires_grad = True
    if x.sum() > 100:
        return x, y
    x.mul_(2)
    return x, y * h


def case_written_and_told(x, y):
    h = x * 2
    h.requires_grad = True
    x.mul_(2)
    return y * h


def case_written_behind_a_branch(x, y):
    h = x * 2
    if x.sum() > 100:
        h = h + 1
    x.mul_(2)
    return y * h


def case_written_as_a_view(x, y):
    h = x * 2
    if x.sum() > 100:
        print("a")
    x.view(3).mul_(2)
    return y * h


def case_written_behind_a_record(x, y):
    h = x * 2
    logger.warning("a %s", x.shape)
    x.view(3).mul_(2)
    return y * h


def case_written_twice(x, y):
    h = x[1:] * 2
    g = x.exp()
    logger.warning("a %s", x.shape)
    x.mul_(2)
    k = x.sin()
    x.add_(1)
    return y[1:] * h + (y * g)[:2] + (y * k).sum()


class Counted(nn.Module):
    def __init__(s):
        super().__init__()
        s.register_buffer("n", torch.ones(3))

    def forward(s, x, y):
        h = s.n * 2
        logger.warning("a")
        s.n.add_(1)
        return y * h


class Mixed(nn.Module):
    def __init__(s):
        super().__init__()
        s.register_buffer("n", torch.rand(3, 3))

    def forward(s, x, y):
        a = s.n.t()[:2].reshape(-1)[:3]
        b = (a * 2).relu()
        logger.warning("a")
        s.n.copy_(s.n * 0.5 + 1)
        c = s.n.sum(0)
        s.n.mul_(2)
        return (y * b).sin() * c


def checkpointed(function, *operands):
    return torch.utils.checkpoint.checkpoint(function, *operands, use_reentrant=False)


def case_written_under_a_checkpoint(x, y):
    h = checkpointed(torch.cos, x)
    logger.warning("a")
    x.mul_(2)
    return y * h


class Cosine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        h = x.cos()
        ctx.save_for_backward(h)
        return y * h

    @staticmethod
    def backward(ctx, g):
        return None, g * ctx.saved_tensors[0]


def case_written_under_a_function(x, y):
    h = Cosine.apply(x + 1, y)
    logger.warning("a")
    x.mul_(2)
    return h


def case_told_without_a_graph(x, w):
    x.requires_grad_()


def case_told_before_a_break(x, w):
    x.requires_grad_()
    torch._dynamo.graph_break()
    return x * w


def case_told_and_given(x, w):
    x.requires_grad = True
    return x


def case_unused_but_for_its_type(x, i):
    drawn = torch.rand(3)
    logger.warning("a")
    return x.type_as(drawn) + torch.rand(3)


def case_unused_but_for_its_shape(x, i):
    drawn = torch.rand(3)
    if x.sum() > 100:
        raise ValueError(f"{x}")
    return x.expand_as(drawn) + torch.rand(3)


def case_unused_but_for_where_it_is(x, i):
    z = x[i]
    if z.sum() > 100 or len(x) == 3:
        x = x + 1
    return x.to(z)


def case_unused_as_it_is_overwritten(x, i):
    x.add_(torch.rand(3))
    logger.warning("a")
    torch.ones(3, out=x)
    return torch.rand(3)


def case_unused_of_a_branch(x, i):
    drawn = torch.cond(x.sum() > 1, lambda x: x * torch.rand(3), lambda x: x * 2, (x,))
    silent.info("a %s", drawn.sum() > 1)
    return x + torch.rand(3)


@torch.compiler.allow_in_graph
def draws(x):
    return x * torch.rand(3)


def case_unused_of_an_unknown_function(x, i):
    silent.info("a %s", draws(x).sum())
    return x + torch.rand(3)


def case_unused_of_a_checkpoint(x, i):
    silent.info("a %s", checkpointed(lambda x, i: x[i], x, i).sum())
    return x + 1


def case_unused_by_a_transform(x, i):
    silent.info("a %s", torch.vmap(lambda x, i: x[i], in_dims=(0, None))(x[None], i))
    return x + torch.rand(3)


def case_unused_without_a_kernel(x, i):
    if (torch.zeros(4, dtype=torch.uint16)[0] > 9) or len(x) > 0:
        x = x + 1
    return x


def case_test_of_not(x):
    if not (x > 0):
        x = x + 1
    return x


class Counts:
    """An object whose truth is counted."""

    def __init__(self, truth):
        self.truth = truth

    def __bool__(self):
        seen.append(1)
        return self.truth


yes, no = Counts(True), Counts(False)


def case_test_of_what_counts(x):
    if (x[0] > 0 and yes) or x is None:
        x = x * 3
    y = x * (2 if (no or x[0] > 0) and yes else 3)
    assert (no and x[1] > 0) or yes
    return y if not ((x[0] < 0 or no) and x is None) else x
