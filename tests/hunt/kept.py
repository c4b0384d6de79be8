"""Programs that are always run: tricky ones written by hand, and those with which a random run once found a fault.

A failure of ``test_random_programs.py`` prints its `Program`, reduced, to be added here.
"""

from __future__ import annotations

from .grammar import Program

KEPT = {
    "the clamp of half precision": Program(
        """\
def f(self, x, y, n, flag):
    a = x * y
    if a.dtype == torch.float16 and (torch.isinf(a).any() or torch.isnan(a).any()):
        clamp_value = torch.finfo(a.dtype).max - 1000
        a = torch.clamp(a, min=-clamp_value, max=clamp_value)
    return a
""",
        dtype="float16",
        other="float16",
    ),
    "the gradient of the untaken side is not a number": Program(
        """\
def f(self, x, y, n, flag):
    if (x > 0).all():
        a = x.log()
    else:
        a = x * 2
    return a, y.sqrt() if (y >= 0).all() else y
""",
        train=True,
    ),
    "a parameter of the untaken side has no gradient": Program(
        """\
def f(self, x, y, n, flag):
    a = x * self.w if x.sum() > 0 else x * self.v
    if y.sum() > 0:
        a = a + y
    return a
""",
        train=True,
    ),
    "the result of a branch is changed in place": Program(
        """\
def f(self, x, y, n, flag):
    if x.sum() > 0:
        a = x
    else:
        a = y.clone()
    a.add_(1)
    return a, a is x
""",
    ),
    "a copy stays a copy": Program(
        """\
def f(self, x, y, n, flag):
    a = x.clone()
    if y.sum() > 0:
        a = x * 2
    return a
""",
    ),
    "a default that one side replaces": Program(
        """\
def f(self, x, y, n, flag):
    scale = 1
    best = None
    if x.sum() > 0:
        scale = 2.5
        best = x * 2
    return x * scale, scale, best
""",
    ),
    "unbound unless taken": Program(
        """\
def f(self, x, y, n, flag):
    if x.sum() > 0:
        a = x * 2
    y = y + 1
    return a + y
""",
    ),
    "the generator moves on one side only": Program(
        """\
def f(self, x, y, n, flag):
    a = x + torch.rand(x.shape) if x.sum() > 0 else x
    if y.sum() > 0:
        a = self.drop(a)
    return a
""",
    ),
    "a guard protects an index": Program(
        """\
def f(self, x, y, n, flag):
    at = x.long().abs().sum() % 6
    if at >= y.numel():
        raise IndexError(f"no place {at} in {y.numel()}")
    return y[at] + x
""",
    ),
    "the right operand is valid only where the left one is true": Program(
        """\
def f(self, x, y, n, flag):
    if self.cache is not None and (self.cache > 0).all():
        x = x + self.cache
    if x.numel() > n and x[n] > 0 and 0 < y.sum() < 5:
        x = x - y
    return x
""",
        n=4,
    ),
    "state on both ends of a guard": Program(
        """\
def f(self, x, y, n, flag):
    self.s = self.s + 1
    if not torch.isfinite(x).all():
        raise GuardError(f"bad {x.sum()} {self.k}")
    self.k += 1
    logger.warning("log %s", self.s.sum())
    assert torch.isfinite(y).all(), f"y {y.sum()}"
    return self.s
""",
    ),
    "a guard in a loop, in a helper and in a branch": Program(
        """\
def f(self, x, y, n, flag):
    for i in range(n):
        if x.max() > 50:
            raise ValueError(f"round {i}")
        x = checked(x) * 2
        if y.sum() > 0:
            check(y)
            logger.info("log %d", i)
        else:
            y = pick(y)
    return x, y
""",
    ),
    "more than one element, none, and numbers as predicates": Program(
        """\
def f(self, x, y, n, flag):
    if x.sum():
        x = x + 1
    if x[:1]:
        x = x + 2
    if self.k and x[0] * 0:
        x = x + 4
    try:
        if x > 0:
            x = x + 8
    except RuntimeError as error:
        logger.warning("caught %s", error)
    return x
""",
    ),
    "minus zero and one side of another layout": Program(
        """\
def f(self, x, y, n, flag):
    a = -x * 0 if x.sum() > 0 else x * 0
    if y.sum() > 0:
        a = torch.stack([a, a], -1)[..., 0]
    return a
""",
        shape=(2, 3),
        other_shape=(2, 3),
    ),
    "found: a selected input is changed in place": Program(
        """\
def f(self, x, y, n, flag):
    a = x if y.any() else y
    a.mul_(2)
""",
        shape=(),
        other_shape=(),
        seed=2240,
    ),
    "found: a guard without arguments protects a division": Program(
        """\
def f(self, x, y, n, flag):
    if (y.long() == 0).any():
        raise ZeroDivisionError
    return x.long() // y.long()
""",
        seed=1192,
    ),
    "found: a guard before an operation that cannot be traced": Program(
        """\
def f(self, x, y, n, flag):
    if (x <= 0).any():
        raise ValueError
    x = y * self.w
""",
        other_shape=(1,),
        vary=True,
        seed=327628283,
    ),
    "found: an effect in a finally follows a failed assert": Program(
        """\
def f(self, x, y, n, flag):
    try:
        assert (x == x * n).all()
        if y.sum() < 0:
            pass
        else:
            pass
    finally:
        logger.info("log 1")
""",
        seed=309765520,
    ),
    "an effect in a finally follows a failed guard": Program(
        """\
def f(self, x, y, n, flag):
    try:
        if (x == x * n).all():
            return x
        if (y > 0).all():
            raise ValueError(n)
    finally:
        logger.info("log 1")
    return y
""",
    ),
    "found: an assert is caught": Program(
        """\
def f(self, x, y, n, flag):
    for i in range(n):
        try:
            assert y.sum() <= 1
        except (AssertionError, RuntimeError):
            pass
        if x.reshape(-1)[:1]:
            pass
""",
        seed=2162,
    ),
    "found: without gradients, a tensor that requires them is selected": Program(
        """\
def f(self, x, y, n, flag):
    with torch.no_grad():
        if (x > 1).any():
            x = y - y.sum()
    return x, y
""",
        train=True,
        seed=1000151,
    ),
    "without gradients, both tensors require them": Program(
        """\
def f(self, x, y, n, flag):
    with torch.no_grad():
        if (x > 1).any():
            x = y
    return x, y
""",
        train=True,
    ),
    "found: an index that cannot be traced, after a branch in a loop": Program(
        """\
def f(self, x, y, n, flag):
    for i in range(n):
        if x.float().mean() >= n:
            pass
    if x.reshape(-1)[n] > 0:
        pass
    else:
        pass
""",
        shape=(),
        seed=1001531,
    ),
    "found: the test is drawn from half precision": Program(
        """\
def f(self, x, y, n, flag):
    c = torch.rand_like(x.float())
    if (c > 0.5).any():
        y = y + 1
    return c, y
""",
        dtype="float16",
        seed=1004010,
    ),
    "found: a guard protects a division, and what stops the graph has functions of its own": Program(
        """\
def f(self, x, y, n, flag):
    if (x.long() == 0).any():
        raise ZeroDivisionError("guard 1")
    c = x.long() // x.sin().long()
    if c.sum() > 0:
        if (x.long() == 0).any():
            raise ZeroDivisionError("guard 3")
        a = y.reshape(-1)[x.long().abs().sum() % 6]
    return x, y, c
""",
        module=False,
        seed=1007051,
    ),
    "found: a graph without outputs fails": Program(
        """\
def f(self, x, y, n, flag):
    logger.warning("log 1")
    assert y > -99
""",
        seed=1019984,
    ),
    "found: a view of what is selected is written in another graph": Program(
        """\
def f(self, x, y, n, flag):
    for i in range(n):
        if (y == x).all():
            y = y + i
    if x.sum() < 0:
        y.reshape(-1)[0] = 0
    return (x, y)
""",
        shape=(4,),
        other_shape=(4,),
        n=5,
        seed=1042693,
    ),
    "a property of one side counts how often it is read": Program(
        """\
def f(self, x, y, n, flag):
    self.meter.reads = n
    if x.sum() > 0:
        x = x * self.meter.scale
    return x
"""
    ),
    "a property of one side draws": Program(
        """\
def f(self, x, y, n, flag):
    random.random()
    if x.sum() > 0:
        x = x * self.meter.drawn
    return x
"""
    ),
    "a private name, and an answer for every other": Program(
        """\
def f(self, x, y, n, flag):
    return self.private.gained(x), self.private.stored(y)
"""
    ),
    "a guard where a mode is on": Program(
        """\
def f(self, x, y, n, flag):
    with torch.no_grad():
        if x.sum() > 0:
            raise ValueError("guard")
        x = x + 1
    return x
"""
    ),
    "a list that was longer before the branch": Program(
        """\
def f(self, x, y, n, flag):
    self.items.append(n)
    if x.sum() > 0:
        self.items.pop()
    return x + len(self.items)
"""
    ),
    "an exception that takes no note": Program(
        """\
def f(self, x, y, n, flag):
    if x.max() >= 1:
        raise FrozenError("guard")
    return x
"""
    ),
    "an exception that takes no note protects an index": Program(
        """\
def f(self, x, y, n, flag):
    at = x.long().abs().sum()
    if at >= x.numel():
        raise FrozenError("guard")
    return x[at] + y
"""
    ),
    "a tensor that only the side not taken has memory for": Program(
        """\
def f(self, x, y, n, flag):
    if x.sum() > 900:
        y = y + torch.ones(10**12).sum()
    return y
"""
    ),
    "a text that only the side not taken has memory for": Program(
        """\
def f(self, x, y, n, flag):
    if x.sum() > 900:
        y = y + len("a" * 10**13)
    return y
"""
    ),
    "a number that only the side not taken has time for": Program(
        """\
def f(self, x, y, n, flag):
    if x.sum() > 900:
        y = y + 7 ** 10**9 % 5
    return y
"""
    ),
    "a handler raises in a try that has a finally": Program(
        """\
def f(self, x, y, n, flag):
    try:
        angry.error('log 1')
        x = x * 2
    finally:
        logger.info('log 2')
    return x
"""
    ),
    "memory that cannot be written to": Program(
        """\
def f(self, x, y, n, flag):
    m = READONLY > 1
    READONLY[m] = 5
    if READONLY.sum() > n:
        READONLY.add_(1)
    return x + READONLY.sum()
"""
    ),
    "one number of another kind is written under a mask": Program(
        """\
def f(self, x, y, n, flag):
    y = x.abs()
    m = y > 0
    w = self.s
    y[m] = w[m]
""",
        dtype="int64",
        shape=(1,),
        module=True,
        seed=2749878581069616,
    ),
    "a function gives what it was given, which is written to": Program(
        """\
def f(self, x, y, n, flag):
    c = clamped(y)
    y[:1] = 0
    return x, y, c
"""
    ),
    "the same, through another function": Program(
        """\
def f(self, x, y, n, flag):
    def within(t):
        return clamped(t)
    c = within(y)
    y[:1] = 0
    return x, y, c
"""
    ),
    "an item where the data says, on a side": Program(
        """\
def f(self, x, y, n, flag):
    at = ((x + y).cumsum(0).exp() > 1).sum()
    a = y[at - 1] if at > 0 else y.sum()
    b = y[-at] if at < 3 else y[0]
    return a, b, y
"""
    ),
    "an item out of bounds, on a side": Program(
        """\
def f(self, x, y, n, flag):
    at = ((x + y).cumsum(0).exp() > 1).sum()
    a = y[at + 2] if at > 0 else y.sum()
    return a, y
"""
    ),
    "an item out of bounds, behind a write and a log": Program(
        """\
def f(self, x, y, n, flag):
    logger.warning("begun")
    y[0] = 7
    at = ((x + y).cumsum(0).exp() > 1).sum()
    a = y[at + 2] if at > 0 else y.sum()
    self.k += 1
    return a, y
"""
    ),
    "an item is written to, which is of the tensor itself": Program(
        """\
def f(self, x, y, n, flag):
    at = ((x + y).cumsum(0).exp() > 1).sum()
    a = y[at - 1] if at > 0 else y[0]
    a += 1
    return a, y
"""
    ),
    "an item of what is written to later": Program(
        """\
def f(self, x, y, n, flag):
    at = ((x + y).cumsum(0).exp() > 1).sum()
    a = y[at - 1] if at > 0 else y.sum()
    y += 1
    return a * 2, y
"""
    ),
    "an item of what is written to behind a break": Program(
        """\
def f(self, x, y, n, flag):
    at = ((x + y).cumsum(0).exp() > 1).sum()
    a = y[at - 1] if at > 0 else y.sum()
    b = a.reshape(1)
    torch._dynamo.graph_break()
    y += 1
    return b * 2, y
"""
    ),
    "a function gives an item of what is written to": Program(
        """\
def f(self, x, y, n, flag):
    def item_of(t, at):
        return t[at - 1] if at > 0 else t.sum()
    a = item_of(y, ((x + y).cumsum(0).exp() > 1).sum())
    y += 1
    return a * 2, y
"""
    ),
    "an item of a parameter": Program(
        """\
def f(self, x, y, n, flag):
    at = ((x + y).cumsum(0).exp() > 1).sum()
    a = self.w[at - 1] if at > 0 else self.w[0]
    b = y[at - 1] if at > 0 else y[0]
    return a * x, b * x
""",
        train=True,
    ),
    "an item by a mask of one truth": Program(
        """\
def f(self, x, y, n, flag):
    i = (x > 1).any()
    a = y[i] if i else y[None]
    b = x[(x > 1).sum(0, keepdim=True)] if x.sum() > 0 else x[:1]
    return a, b
"""
    ),
    "rows by what is found": Program(
        """\
def f(self, x, y, n, flag):
    rows = (x > 1).nonzero()[:, 0]
    if len(rows) > n:
        logger.warning("many")
        y = y + 1
    self.k += 1
    return x[rows], y, 1 if len(rows) > 1 else 0
"""
    ),
    "rows by what is found, and a write before it": Program(
        """\
def f(self, x, y, n, flag):
    y[0] = 5
    rows = (x > 1).nonzero()[:, 0]
    if rows.numel() > n:
        raise ValueError(f"{n} rows at most")
    return y, rows
"""
    ),
    "a draw that nothing uses, before a branch that the input decides": Program(
        """\
def f(self, x, y, n, flag):
    b = torch.rand_like(x.float())
    b = torch.rand(y.shape) if (x > 1).any() else x
    return (x, y, b)
"""
    ),
    "a draw that nothing uses, before a branch on what is computed": Program(
        """\
def f(self, x, y, n, flag):
    b = torch.rand_like(x.float())
    c = torch.nn.functional.dropout(y.float(), 0.5, training=True)
    b = x * 2 if (x.exp() > 1).any() else x
    return x, y, b, torch.rand(y.shape)
"""
    ),
    "a guard on half precision in inference mode": Program(
        """\
def f(self, x, y, n, flag):
    with torch.inference_mode():
        if x.isinf().any() or x.isnan().any():
            raise ValueError('guard 1')
        c = y - x.min() + self.s
""",
        dtype="bfloat16",
        other="bfloat16",
    ),
    "a log of what is computed in inference mode": Program(
        """\
def f(self, x, y, n, flag):
    with torch.inference_mode():
        c = x * 2
        logger.warning("computed %s", c)
        if c.sum().item() > n:
            logger.warning("much")
    return y * 2
"""
    ),
    "a backend that fails behind a decision on a buffer": Program(
        """\
def f(self, x, y, n, flag):
    self.s.add_(1)
    if self.s.sum() > n:
        y = x.sin()
    w2 = x.view(-1)
    w2.neg_()
    return (x, y)
""",
        train=True,
        leaf=False,
        seed=4564072766899517,
    ),
    "an unused draw before a branch that a buffer decides": Program(
        """\
def f(self, x, y, n, flag):
    b = torch.rand_like(x.float())
    b = x * 2
    if self.s.sum() > n:
        return x, b, torch.rand(y.shape), y.tolist()
    return x, y, b, torch.rand(y.shape)
"""
    ),
    "a caller asks which object a helper's branch has given": Program(
        """\
def f(self, x, y, n, flag):
    y = noisy(x)
    if x is y:
        d3 = np.random.uniform()
    return y
"""
    ),
    "a write behind a guard that fails, where sizes are symbols": Program(
        """\
def f(self, x, y, n, flag):
    if not (y == x).all():
        raise ValueError
    self.s.mul_(2)
""",
        shape=(4,),
        other_shape=(4,),
        n=2,
        vary=True,
    ),
    "a branch between what is squeezed, a size that the data decides, and another": Program(
        """\
def f(self, x, y, n, flag):
    r2 = x.reshape(-1)
    r2 = r2[r2 > 0.6]
    x = r2.view(-1, 1).squeeze(0).squeeze(-1)
    x = y if y.sum() > 0 else x
"""
    ),
    "a power before a branch, of an infinity, and used by one side alone": Program(
        """\
def f(self, x, y, n, flag):
    b = pow(y, 2)
    if y.all():
        y = b
    return y
""",
        shape=(4,),
        other_shape=(4,),
        n=2,
        train=True,
        seed=100055558127877,
    ),
    "a property that counts, right of an and in an elif": Program(
        """\
def f(self, x, y, n, flag):
    if (y > 0).all():
        pass
    elif x.min() > y.float().mean() and self.meter.scale > 1:
        pass
    else:
        pass
""",
        shape=(4,),
        other_shape=(4,),
        n=2,
        seed=6158364627175946,
    ),
    "a guard that fails, in front of a write to what nobody may write to": Program(
        """\
def f(self, x, y, n, flag):
    if x.sum() > 0:
        logger.warning('log 2')
        if n % 2 == 0:
            raise ValueError('guard 3')
    elif x.sum() > 0 and READONLY.sum() > n:
        READONLY.add_(1)
    return (x, y)
""",
        dtype="int64",
        other="int64",
        shape=(4,),
        other_shape=(4,),
        n=0,
        seed=6158364627174741,
    ),
    "a write in a side to what the side has kept for its gradient": Program(
        """\
def f(self, x, y, n, flag):
    ok1 = y.all
    if torch.isnan(x).any():
        w3 = y.exp()
        m3 = w3 > 1
        w3[m3] = 0
        x = w3
    return (x, y, ok1)
""",
        dtype="float32",
        other="float32",
        shape=(2, 3),
        other_shape=(2, 3),
        n=2,
        flag=True,
        train=True,
        leaf=True,
        module=True,
        vary=False,
        library="",
        seed=6160563650429134,
    ),
    "a value of a side that a later branch replaces, with an infinite derivative": Program(
        """\
def f(self, x, y, n, flag):
    b = y.log()
    for i in range(2):
        if (b > 0).all():
            pass
        else:
            y = x.acos()
    return (x, y, b)
""",
        dtype="float32",
        other="float32",
        shape=(),
        other_shape=(),
        n=2,
        flag=True,
        train=True,
        leaf=True,
        module=True,
        vary=False,
        library="",
        seed=6160563650429644,
    ),
    "a value of one of two sides that a conditional expression replaces": Program(
        """\
def f(self, x, y, n, flag):
    if y.float().mean() <= 1:
        a = y.log()
    else:
        a = y.sqrt()
    a = a if 0 < y.float().mean() < 10 else y.abs()
    return (x, y, a)
""",
        dtype="float32",
        other="float32",
        shape=(4,),
        other_shape=(4,),
        n=2,
        flag=True,
        train=True,
        leaf=False,
        module=True,
        vary=False,
        library="",
        seed=6160563650430651,
    ),
    "a whole number divided by zero in a side of which the test is known": Program(
        """\
def f(self, x, y, n, flag):
    for i in range(2):
        ok2 = (y.long() == 0).any()
        if ok2:
            pass
        else:
            y = 6 // y.long()
    return y
""",
        dtype="float32",
        other="float32",
        shape=(4,),
        other_shape=(4,),
        n=2,
        flag=True,
        train=False,
        leaf=False,
        module=True,
        vary=False,
        library="",
        seed=7819726696743340,
    ),
    "a count that is halved in a loop": Program(
        """\
def f(self, x, y, n, flag):
    self.k += 1
    for i in range(n):
        self.k += i
        self.k //= 2
        self.last = 7 / self.k
    return x
""",
        dtype="float32",
        other="float32",
        shape=(4,),
        other_shape=(4,),
        n=2,
        flag=True,
        train=False,
        leaf=False,
        module=True,
        vary=False,
        library="",
        seed=7807632068838244,
    ),
    "the larger of a whole number and a number out of a tensor": Program(
        """\
def f(self, x, y, n, flag):
    self.k += 1
    self.k = max(self.k, x.float().sum().item())
    return x
""",
        dtype="float32",
        other="float32",
        shape=(),
        other_shape=(),
        n=2,
        flag=True,
        train=False,
        leaf=False,
        module=True,
        vary=False,
        library="",
        seed=7819726696743617,
    ),
    "what a side has computed that is not merged": Program(
        """\
def f(self, x, y, n, flag):
    if (x > 0).sum() >= n:
        b = y.max
    else:
        b = torch.zeros_like(y)
    if (x > 0).all():
        pass
    elif b.max() <= 1:
        pass
    return y
""",
        shape=(0,),
        other_shape=(0,),
        vary=False,
    ),
}
