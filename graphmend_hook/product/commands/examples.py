"""For the code of a refusal: a program that is declined with it, and what becomes of it where the remedy is followed.

`f` is what is compiled.  tests/commands/test_remedies.py follows each example.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """A program that is declined with a code, and one that gives the same and is mended.

    flags_before, flags_after: the options under which that is so, as they are written in a command.
    """

    before: str
    after: str
    flags_before: str = ""
    flags_after: str = ""

    def parts(self) -> Iterator[tuple[str, str]]:
        """What to show: each program, with the words in front of it; no program again that stays as it is."""
        yield f"With `{self.flags_before}`:" if self.flags_before else "", self.before
        under = f"with `{self.flags_after}`" if self.flags_after else ""
        if self.after != self.before:
            yield f"becomes, {under}" if under else "becomes", self.after
        else:
            yield f"is mended {under or f'without `{self.flags_before}`'}", ""


def _of(before: str, after: str = "", flags_before: str = "", flags_after: str = "") -> Example:
    before = before.lstrip("\n")
    return Example(before, after.lstrip("\n") or before, flags_before, flags_after)


_OF_WHERE = "if x.sum() > 0:\n        x = x + 1"
_OF_TRAP = "if x.sum() < 0:\n        raise ValueError('negative')"


def _loop(step: str, count: int = 4) -> str:
    """A loop over experts, each of which takes the rows that have chosen it."""
    return f"""\
for number in range({count}):
        rows = torch.where(chosen == number)[0]
        if rows.shape[0] == 0:
            continue
        {step}"""


_OF_SWEEP = _loop("out.index_add_(0, rows, x[rows] * number)")
_OF_GRAD = "hidden = x * 2\n    hidden.requires_grad_()"


def _sweep(
    step: str,
    result: str = "out",
    *,
    start: str = "chosen, out = x.argmax(1), torch.zeros_like(x)",
    given: str = "x",
    count: int = 4,
    name: str = "f",
) -> str:
    return f"def {name}({given}):\n    {start}\n    {_loop(step, count)}\n    return {result}\n"


def _in_generator(arguments: str, statement: str, result: str) -> Example:
    return _of(
        f"def f({arguments}):\n    {statement}\n    yield {result}\n",
        f"def part({arguments}):\n    {statement}\n    return {result}\n\n"
        f"def f({arguments}):\n    yield part({arguments})\n",
    )


def _with_frame(arguments: str, statement: str, result: str) -> Example:
    return _of(
        f"def f({arguments}, **kept):\n    kept.update(locals())\n    {statement}\n    return {result}\n",
        f"def f({arguments}, **kept):\n    kept.update(x=x)\n    {statement}\n    return {result}\n",
    )


def _with_numba(arguments: str, statement: str, result: str) -> Example:
    after = f"def f({arguments}):\n    {statement}\n    return {result}\n"
    return _of(f"import numba\n\n@numba.njit\n{after}", after)


_SHARED = {
    "GM102": ("x", _OF_WHERE, "x * 2"),
    "GM103": ("x", _OF_TRAP, "x * 2"),
    "GM105": ("x, chosen, out", _OF_SWEEP, "out"),
    "GM106": ("x, weight", _OF_GRAD, "hidden @ weight"),
}
EXAMPLES = {
    **{f"{code}-R10": _in_generator(*function) for code, function in _SHARED.items()},
    **{f"{code}-R11": _with_frame(*function) for code, function in _SHARED.items()},
    **{f"{code}-R12": _with_numba(*function) for code, function in _SHARED.items()},
    "GM104-R12": _with_numba("x", "count = int(x.argmax())", "x[:count]"),
    # [Defer]
    "GM101-R01": _of(
        "def f(x):\n    logger.info('in f', exc_info=True)\n    return x + 1\n",
        "def f(x):\n    logger.info('in f')\n    return x + 1\n",
    ),
    "GM101-R02": _of(
        "def f(x, y):\n    seen = ('of %s', y)\n    logger.info(*seen)\n    return x + 1\n",
        "def f(x, y):\n    logger.info('of %s', y)\n    return x + 1\n",
    ),
    "GM101-R03": _of(
        """
def f(x, table):
    try:
        print('in f')
        scale = table['scale']
    except KeyError:
        scale = 2
    return x * scale
""",
        """
def f(x, table):
    print('in f')
    try:
        scale = table['scale']
    except KeyError:
        scale = 2
    return x * scale
""",
    ),
    "GM101-R04": _of(
        "def f(x, scale):\n    logger.info('of %s', scale)\n    return x * locals()['scale']\n",
        "def f(x, scale):\n    logger.info('of %s', scale)\n    return x * scale\n",
    ),
    "GM101-R05": _with_numba("x", "print('in f')", "x + 1"),
    "GM101-R06": _of(
        """
record = io.StringIO()

def f(x):
    print('in f', file=record)
    return x + 1
""",
        """
def f(x):
    print('in f', file=sys.stderr)
    return x + 1
""",
    ),
    "GM101-R07": _of(
        "async def f(x):\n    print('in f')\n    return x + 1\n",
        """
def part(x):
    print('in f')
    return x + 1

async def f(x):
    return part(x)
""",
    ),
    "GM101-R08": _of(
        "def f(x):\n    y = print('in f')\n    return x + 1 if y is None else x\n",
        "def f(x):\n    print('in f')\n    return x + 1\n",
    ),
    "GM101-R09": _of(
        """
def f(x):
    seen = []
    print(f'{seen} {seen.append(1)}')
    return x + len(seen)
""",
        """
def f(x):
    seen = []
    added = seen.append(1)
    print(f'{seen} {added}')
    return x + len(seen)
""",
    ),
    "GM101-R10": _of(
        """
def f(x, training=False):
    number = np.random.uniform()
    if training and 0.5 > number:
        return x
    return x + 1
""",
        """
def f(x, training=False):
    number = np.random.uniform()
    if training and number < 0.5:
        return x
    return x + 1
""",
    ),
    "GM101-R11": _of(
        """
def f(x):
    start = time.perf_counter()
    x = x + 1
    logger.info('%s s', time.perf_counter() - start)
    return x
""",
        """
def f(x):
    return x + 1

def timed(compiled, x):
    start = time.perf_counter()
    x = compiled(x)
    logger.info('%s s', time.perf_counter() - start)
    return x
""",
    ),
    # [Trap]
    "GM103-R01": _of(
        """
def f(x):
    if not 0 < x.sum().item() < 9:
        raise ValueError('out of range')
    return x + 1
""",
        """
def f(x):
    if not 0 < x.sum() < 9:
        raise ValueError('out of range')
    return x + 1
""",
    ),
    "GM103-R02": _of(
        """
def limit(x):
    return x.abs() * 2

def f(x):
    if x.sum() > 0 and (x > limit(x)).any():
        raise ValueError('too big')
    return x + 1
""",
        """
def limit(x):
    return x.abs() * 2

def f(x):
    most = limit(x)
    if x.sum() > 0 and (x > most).any():
        raise ValueError('too big')
    return x + 1
""",
    ),
    "GM103-R03": _of(
        """
def f(x, n=1):
    if n > 0:
        most = x.abs() * 2
    if x.sum() > 0 and (x > most).any():
        raise ValueError('too big')
    return x + 1
""",
        """
def f(x, n=1):
    most = x
    if n > 0:
        most = x.abs() * 2
    if x.sum() > 0 and (x > most).any():
        raise ValueError('too big')
    return x + 1
""",
    ),
    "GM103-R07": _of(
        """
def f(x):
    if x.min() < -9 or x.max() > 9 or x.mean() < 0 or x.sum() > 20 or x.prod() > 30 or x[0].sum() > 5:
        raise ValueError('out of range')
    return x + 1
""",
        """
def f(x):
    is_far = (x.abs().max() > 9) | (x.mean() < 0) | (x.sum() > 20) | (x.prod() > 30) | (x[0].sum() > 5)
    if is_far:
        raise ValueError('out of range')
    return x + 1
""",
    ),
    "GM103-R13": _of(
        """
def f(x, table):
    try:
        scale = table['scale']
    except KeyError:
        if x.sum() < 0:
            raise
        scale = 1
    return x * scale
""",
        """
def f(x, table):
    known = 'scale' in table
    if not known and x.sum() < 0:
        raise KeyError('scale')
    scale = table['scale'] if known else 1
    return x * scale
""",
    ),
    "GM103-R14": _of(
        """
class Config:
    def describe(self):
        return 'a config'

def f(x, config=Config(), strict=True):
    if x.sum() < 0:
        if strict:
            raise ValueError(config.describe())
    return x + 1
""",
        """
class Config:
    def describe(self):
        return 'a config'

def f(x, config=Config(), strict=True):
    text = config.describe()
    if x.sum() < 0:
        if strict:
            raise ValueError(text)
    return x + 1
""",
    ),
    "GM103-R15": _of(
        """
def f(x, n):
    if n > 3:
        if x.sum() < 0:
            raise ValueError('negative')
        else:
            raise TypeError('positive')
    return x + 1
""",
        """
def f(x, n):
    if n > 3 and x.sum() < 0:
        raise ValueError('negative')
    if n > 3:
        raise TypeError('positive')
    return x + 1
""",
    ),
    "GM103-R16": _of(
        """
def f(x, table):
    try:
        if x.sum() < 0:
            raise ValueError('negative')
        scale = table['scale']
    except KeyError:
        scale = 2
    return x * scale
""",
        """
def f(x, table):
    if x.sum() < 0:
        raise ValueError('negative')
    try:
        scale = table['scale']
    except KeyError:
        scale = 2
    return x * scale
""",
    ),
    "GM103-R19": _of(
        """
def f(x):
    checked = (x.sum() > 0, 'negative')
    torch._assert(*checked)
    return x + 1
""",
        """
def f(x):
    torch._assert(x.sum() > 0, 'negative')
    return x + 1
""",
    ),
    # [Sweep]
    "GM105-R01": _of(
        _sweep("with torch.no_grad():\n            state = x[rows] * number\n        out.index_add_(0, rows, state)"),
        _sweep("state = x[rows] * number\n        out.index_add_(0, rows, state)", name="part")
        + "\ndef f(x):\n    with torch.no_grad():\n        return part(x)\n",
    ),
    "GM105-R02": _of(
        _sweep(
            "state = x[rows] * number\n        out.index_add_(0, rows, state)",
            "out * state.shape[1]",
            start="chosen, out, state = x.argmax(1), torch.zeros_like(x), x",
        ),
        _sweep("state = x[rows] * number\n        out.index_add_(0, rows, state)", "out * x.shape[1]"),
    ),
    # [Where]
    "GM102-R01": _of(
        "def f(x):\n    if 0 < x.sum().item() < 9:\n        x = x + 1\n    return x\n",
        "def f(x):\n    if 0 < x.sum() < 9:\n        x = x + 1\n    return x\n",
    ),
    "GM102-R02": _of(
        """
def scaled(x, factor):
    return x * factor

def f(x):
    if x.sum() > 0:
        x = scaled(x, 3)
    return x
""",
        """
def scaled(x, factor):
    return x * factor

def f(x):
    y = scaled(x, 3)
    if x.sum() > 0:
        x = y
    return x
""",
    ),
    "GM102-R03": _of(
        """
def f(x, n=1):
    if n > 0:
        y = x * 2
    if x.sum() > 0:
        x = x + y
    return x
""",
        """
def f(x, n=1):
    y = x
    if n > 0:
        y = x * 2
    if x.sum() > 0:
        x = x + y
    return x
""",
    ),
    "GM102-R04": _of(
        """
class Model(torch.nn.Module):
    def forward(self, x):
        same = self
        self.last, y = x, x
        if x.sum() > 0:
            self.last = x + 1
            y = same.last * 2
        return y

f = Model()
""",
        """
class Model(torch.nn.Module):
    def forward(self, x):
        self.last, y = x, x
        if x.sum() > 0:
            self.last = x + 1
            y = self.last * 2
        return y

f = Model()
""",
    ),
    "GM102-R05": _of(
        "def f(x):\n    if x.sum() > 0:\n        y = x + 1\n    return y\n",
        "def f(x):\n    y = x\n    if x.sum() > 0:\n        y = x + 1\n    return y\n",
    ),
    "GM102-R06": _of(
        """
def f(x):
    with torch.no_grad():
        if x.sum() > 0:
            return x + 1
    return x
""",
        """
def f(x):
    y = x
    with torch.no_grad():
        if x.sum() > 0:
            y = x + 1
    return y
""",
    ),
    "GM102-R07": _of(
        """
def f(x):
    if x.min() < -9 or x.max() > 9 or x.mean() < 0 or x.sum() > 20 or x.prod() > 30 or x[0].sum() > 5:
        x = x.clamp(-9, 9)
    return x
""",
        """
def f(x):
    is_far = (x.abs().max() > 9) | (x.mean() < 0) | (x.sum() > 20) | (x.prod() > 30) | (x[0].sum() > 5)
    if is_far:
        x = x.clamp(-9, 9)
    return x
""",
    ),
    "GM102-R08": _of(
        """
def f(x, out):
    if x.sum() > 0:
        out['y'] = x + 1
    else:
        out['y'] = x - 1
    return out
""",
        """
def f(x, out):
    if x.sum() > 0:
        y = x + 1
    else:
        y = x - 1
    out['y'] = y
    return out
""",
    ),
    "GM102-R09": _of(
        """
def f(x):
    if x.sum() > 0:
        logger.info('positive', stack_info=True)
        x = x + 1
    return x
""",
        """
def f(x):
    if x.sum() > 0:
        logger.info('positive')
        x = x + 1
    return x
""",
    ),
    "GM102-R13": _of(
        """
def f(x, table):
    try:
        y = x * table['scale']
    except KeyError:
        if x.sum() < 0:
            raise
        else:
            y = x + 1
    return y
""",
        """
def f(x, table):
    if 'scale' in table:
        y = x * table['scale']
    elif x.sum() < 0:
        raise KeyError('scale')
    else:
        y = x + 1
    return y
""",
    ),
    "GM102-R14": _of(
        """
class Config:
    def describe(self):
        return 'a config'

def f(x, config=Config(), strict=True):
    if x.sum() < 0:
        if strict:
            raise ValueError(config.describe())
        x = x * 2
    elif x.sum() > 1:
        x = x + 1
    return x
""",
        """
class Config:
    def describe(self):
        return 'a config'

def f(x, config=Config(), strict=True):
    text = config.describe()
    if x.sum() < 0:
        if strict:
            raise ValueError(text)
        x = x * 2
    elif x.sum() > 1:
        x = x + 1
    return x
""",
    ),
    "GM102-R15": _of(
        """
def f(x, n):
    if n > 3:
        if x.sum() < 0:
            y = x * 2
            raise ValueError('negative', y)
        else:
            raise TypeError('positive')
    return x + 1
""",
        """
def f(x, n):
    if n > 3 and x.sum() < 0:
        raise ValueError('negative', x * 2)
    if n > 3:
        raise TypeError('positive')
    return x + 1
""",
    ),
    "GM102-R16": _of(
        """
def f(x, table):
    try:
        if x.sum() > 0:
            print('positive')
            x = x + 1
        scale = table['scale']
    except KeyError:
        scale = 2
    return x * scale
""",
        """
def f(x, table):
    if x.sum() > 0:
        print('positive')
        x = x + 1
    try:
        scale = table['scale']
    except KeyError:
        scale = 2
    return x * scale
""",
    ),
    "GM102-R17": _of(
        """
def f(x):
    y = x
    if x.sum() > 0:
        y = x + 1
    y += 2
    return y
""",
        """
def f(x):
    y = x
    if x.sum() > 0:
        y = x + 1
    y = y + 2
    return y
""",
    ),
    "GM102-R18": _of(
        "def f(x):\n    return (x if x.sum() > 0 else -x) + (x if x.max() > 3 else x * 2)\n",
        """
def f(x):
    y = x if x.sum() > 0 else -x
    z = x if x.max() > 3 else x * 2
    return y + z
""",
    ),
    # while tracing: [Defer]
    "GM101-T01": _of(
        """
class Log:
    def info(self, text):
        sys.stderr.write(text)

log = Log()

def f(x):
    log.info('in f')
    return x + 1
""",
        """
def f(x):
    logger.info('in f')
    return x + 1
""",
    ),
    "GM101-T02": _of(
        "def f(x):\n    logger.info('of %s', x)\n    return x + 1\n",
        "def f(x):\n    logger.info('of %s', x.detach())\n    return x + 1\n",
    ),
    "GM101-T03": _of(
        """
def g(x):
    logger.info('of %s', x)
    return x + 1

def f(x):
    return torch.vmap(g)(x)
""",
        """
def g(x):
    return x + 1

def f(x):
    logger.info('of %s', x)
    return torch.vmap(g)(x)
""",
    ),
    "GM101-T04": _of(
        """
class Config:
    size = 3

config = Config()

def f(x):
    logger.info('%s', config)
    return x + 1
""",
        """
class Config:
    size = 3

config = Config()
text = str(config)

def f(x):
    logger.info('%s', text)
    return x + 1
""",
    ),
    "GM101-T05": _of(
        """
@contextlib.contextmanager
def section():
    yield

def f(x):
    with section():
        print('in f')
        x = x + 1
    return x
""",
        """
@contextlib.contextmanager
def section():
    yield

def f(x):
    print('in f')
    with section():
        x = x + 1
    return x
""",
    ),
    "GM101-T06": _of(
        """
@torch.compiler.nested_compile_region
def block(x):
    print('in the block')
    return x + 1

def f(x):
    return block(x)
""",
        """
@torch.compiler.nested_compile_region
def block(x):
    return x + 1

def f(x):
    print('in the block')
    return block(x)
""",
    ),
    "GM101-T07": _of(
        """
warnings.filterwarnings('error', 'old')

def f(x):
    warnings.warn('slow')
    return x + 1
""",
        """
warnings.filterwarnings('always', 'old')

def f(x):
    warnings.warn('slow')
    return x + 1
""",
    ),
    "GM101-T08": _of(
        """
def block(x, training):
    number = np.random.uniform()
    if training and number < 0.5:
        return x
    return x * 2

def f(x, training=False):
    return torch.utils.checkpoint.checkpoint(block, x, training, use_reentrant=False)
""",
        """
def block(x, skip):
    if skip:
        return x
    return x * 2

def f(x, training=False):
    number = np.random.uniform()
    return torch.utils.checkpoint.checkpoint(block, x, training and number < 0.5, use_reentrant=False)
""",
    ),
    "GM101-T10": _of(
        """
def g(x):
    print('in g')
    return x + 1

def f(x, table):
    try:
        return g(x) * table['scale']
    except KeyError:
        return x
""",
        """
def g(x):
    print('in g')
    return x + 1

def f(x, table):
    y = g(x)
    try:
        return y * table['scale']
    except KeyError:
        return x
""",
    ),
    "GM101-T11": _of(
        """
def f(x):
    logger.info('in f')
    try:
        assert x.sum() > 0, 'negative'
    except KeyError:
        return x
    return x + 1
""",
        """
def f(x):
    logger.info('in f')
    assert x.sum() > 0, 'negative'
    return x + 1
""",
    ),
    "GM101-T12": _of(
        """
def f(x):
    try:
        assert x.sum() > 0, 'negative'
    finally:
        print('done')
    return x + 1
""",
        """
def f(x):
    assert x.sum() > 0, 'negative'
    print('done')
    return x + 1
""",
    ),
    "GM101-T13": _of(
        """
def f(x, share=1.0):
    number = np.random.uniform()
    if number < share:
        x = x * 2
    return x
""",
        """
def f(x, share=1.0):
    number = torch.rand(())
    if number < share:
        x = x * 2
    return x
""",
    ),
    "GM101-T14": _of(
        """
def block(x):
    logger.warning('in the block')
    return x * 2

def f(x):
    return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
""",
        """
def block(x):
    return x * 2

def f(x):
    logger.warning('in the block')
    return torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)
""",
    ),
    "GM101-T15": _of(
        "def f(x):\n    logger.warning('in f', stacklevel=2)\n    return x + 1\n",
        "def f(x):\n    logger.warning('in f')\n    return x + 1\n",
    ),
    "GM101-T16": _of(
        """
def warning(text, **options):
    logger.warning(text, **options)

def f(x):
    warning('in f', exc_info=True)
    return x + 1
""",
        """
def warning(text, **options):
    logger.warning(text, **options)

def f(x):
    warning('in f')
    return x + 1
""",
    ),
    "GM101-T17": _of(
        """
@functools.cache
def scale():
    logger.info('looked up')
    return 3

def f(x):
    return x * scale()
""",
        """
@functools.cache
def scale():
    return 3

def f(x):
    logger.info('looked up')
    return x * scale()
""",
    ),
    "GM101-T18": _of(
        """
adapter = logging.LoggerAdapter(logger, {'layer': 0})

def f(x):
    for layer in range(2):
        adapter.extra['layer'] = layer
        adapter.info('in a layer')
        x = x + layer
    return x
""",
        """
adapters = [logging.LoggerAdapter(logger, {'layer': layer}) for layer in range(2)]

def f(x):
    for layer in range(2):
        adapters[layer].info('in a layer')
        x = x + layer
    return x
""",
    ),
    # [Trap]
    "GM103-T01": _of(
        """
def f(x):
    if x.sum() < 0:
        raise ValueError('negative')
    return x + 1
""",
        flags_before="--guards keep",
    ),
    # [Where]
    "GM102-T01": _of(
        "def f(x):\n    if x > 0:\n        x = x + 1\n    return x\n",
        "def f(x):\n    if (x > 0).any():\n        x = x + 1\n    return x\n",
    ),
    "GM102-T02": _of(
        """
def f(x):
    if x.sum() < 0:
        y = x.long()
    else:
        y = x + 1
    return y * 2.0
""",
        """
def f(x):
    if x.sum() < 0:
        y = x.trunc()
    else:
        y = x + 1
    return y * 2.0
""",
    ),
    "GM102-T03": _of(
        """
def f(x):
    if x.sum() > 0:
        factor = 1.0
    else:
        factor = 2.0
    return x * factor
""",
        """
def f(x):
    if x.sum() > 0:
        y = x * 1.0
    else:
        y = x * 2.0
    return y
""",
    ),
    "GM102-T04": _of(
        """
def f(x, n):
    if n.min() > 0:
        x = x // n.long()
    return x
""",
        """
def f(x, n):
    divided = x // torch.where(n > 0, n.long(), 1)
    if n.min() > 0:
        x = divided
    return x
""",
    ),
    "GM102-T05": _of(
        """
def f(x, extra=None):
    if x.sum() < 0:
        x = x + extra.shape[0]
    return x
""",
        """
def f(x, extra=None):
    size = 0 if extra is None else extra.shape[0]
    if x.sum() < 0:
        x = x + size
    return x
""",
    ),
    "GM102-T06": _of(
        """
def f(x):
    if x.sum() > 0 and x.log().sum() > 0:
        x = x + 1
    return x
""",
        """
def f(x):
    is_big = x.log().sum() > 0
    if x.sum() > 0 and is_big:
        x = x + 1
    return x
""",
    ),
    "GM102-T07": _of(
        """
def g(x):
    if x.sum() > 0:
        x = x * 2
    return x.sum()

def f(x):
    return torch.func.grad(g)(x)
""",
        """
def g(x):
    x = torch.where(x.sum() > 0, x * 2, x)
    return x.sum()

def f(x):
    return torch.func.grad(g)(x)
""",
    ),
    "GM102-T08": _of(
        """
def f(x):
    if x.sum() > 0:
        x = x + (1 if x.max() > 3 else 2)
    return x
""",
        """
def f(x):
    if x.sum() > 0:
        if x.max() > 3:
            x = x + 1
        else:
            x = x + 2
    return x
""",
    ),
    "GM102-T09": _of(
        """
class Model(torch.nn.Module):
    @property
    def last(self):
        return self.kept

    @last.setter
    def last(self, value):
        self.kept = value

    def forward(self, x):
        self.kept = x
        if x.sum() > 0:
            self.last = x + 1
        return self.kept * 2

f = Model()
""",
        """
class Model(torch.nn.Module):
    def forward(self, x):
        self.kept = x
        if x.sum() > 0:
            self.kept = x + 1
        return self.kept * 2

f = Model()
""",
    ),
    "GM102-T10": _of(
        """
def f(x):
    mask = x > 2
    if mask.any():
        x[mask] = 0.0
    return x * 3
""",
        """
def f(x):
    mask = x > 2
    return torch.where(mask, 0.0, x) * 3
""",
    ),
    "GM102-T11": _of(
        """
def add_one(y):
    y.add_(1)

def f(x):
    y = x
    if x.sum() > 0:
        y = x * 2
    add_one(y)
    return y
""",
        """
def f(x):
    y = x
    if x.sum() > 0:
        y = x * 2
    return y + 1
""",
    ),
    # [Sweep]
    "GM105-T01": _of(
        _sweep("out.index_add_(0, rows, x[rows] - x[rows].max())"),
        _sweep(
            "out.index_add_(0, rows, x[rows] - highest[number])",
            start="""\
chosen, out = x.argmax(1), torch.zeros_like(x)
    highest = torch.stack([torch.where((chosen == each)[:, None], x, -torch.inf).max() for each in range(4)])""",
        ),
    ),
    "GM105-T02": _of(
        _sweep(
            "out.index_add_(0, rows, x[rows] * weights[number])",
            "out * 2 if out.requires_grad else out",
            given="x, weights",
        ),
        _sweep("out.index_add_(0, rows, x[rows] * weights[number])", "out * 2", given="x, weights"),
    ),
    "GM105-T03": _of(
        _sweep("out.index_add_(0, rows, x[rows] * weights[number])", given="x, weights", count=80),
        """
def f(x, weights):
    return x * weights[x.argmax(1)][:, None]
""",
    ),
    # [Value]
    "GM104-T01": _of(
        """
def f(x):
    for _ in range(x.exp().sum().int().item()):
        x = x + 1
    return x
""",
        """
def f(x):
    return x + x.exp().sum().int()
""",
    ),
    "GM104-T02": _of(
        """
def f(x, n):
    for _ in range(n.max().item()):
        x = x * 2
    return x
""",
        flags_after="--values n",
    ),
    "GM104-T03": _of(
        """
def f(x, n):
    torch.add(n, 1, out=n)
    for _ in range(n.max().item()):
        x = x * 2
    return x
""",
        """
def f(x, n):
    torch.add(n, 1, out=n)
    return x * 2 ** n.max()
""",
    ),
    "GM104-T05": _of(
        """
def f(x, n):
    for _ in range(n.max().item()):
        x = x * 2
    return x
""",
        """
def f(x, n):
    return x * 2 ** n.max()
""",
        flags_before="--values n",
    ),
    "GM104-T06": _of(
        """
def f(x, n):
    return (x + 1)[: n.max().item()].expand(3, 4) * 2
""",
        """
def f(x, n):
    places = torch.arange(3).clamp(max=n.max() - 1)
    return (x + 1)[places] * 2
""",
    ),
    "GM104-T07": _of(
        "def f(x, n):\n    while n > 0:\n        x, n = x + 1, n - 1\n    return x\n",
        """
def f(x, n):
    for step in range(3):
        x = torch.where(step < n, x + 1, x)
    return x
""",
    ),
    "GM104-T08": _of(
        """
def f(x):
    found = []
    for number in range(12):
        column = x[:, number]
        found.append(column[column > 3])
    return torch.cat(found)
""",
        """
def f(x):
    columns = x.T
    return columns[columns > 3]
""",
    ),
    # [Grad]
    "GM106-T01": _of(
        """
def f(x, weight):
    y = x.to(torch.complex64)
    y.requires_grad = True
    return (y @ weight.to(y.dtype)).real
""",
        """
def f(x, weight):
    y = x * 1
    y.requires_grad = True
    return y @ weight
""",
    ),
    "GM106-T02": _of(
        "def f(x):\n    y = x * 2\n    y.requires_grad_()\n    return y * 2\n",
        "def f(x):\n    y = x * 2\n    return y * 2\n",
    ),
}
