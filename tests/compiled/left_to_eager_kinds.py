"""Reads of state that can change, one a program: in a frame that stock leaves to eager, because a break stands in a loop.

A kind: what makes the object `o`; what the frame reads; and what changes from one call to the next.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

HEAD = """import collections, dataclasses, enum, functools, random, types
import torch
from torch import nn


class Guard:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


"""
LOOP = "for _ in range(1):\n    if x.sum() > 100:\n        x = x + 1\n"
TRY = "try:\n    if x.sum() > 100:\n        x = x + 1\nexcept KeyError:\n    pass\n"
WITH = "with Guard():\n    if x.sum() > 100:\n        x = x + 1\n"


@dataclass(frozen=True)
class Kind:
    """One read, and the changes: each is made before another call."""

    setup: str
    read: str
    changes: tuple[str, ...]

    def program(self, around: str = LOOP) -> str:
        """A module with `f` and `o`; the changes are made in its globals."""
        return f"{HEAD}{self.setup}\n\ndef f(x, o):\n{textwrap.indent(around + self.read, '    ')}    return x\n"


BAG = "class Bag:\n    pass\n"
OBJECT = BAG + "o = Bag()"
MODULE = "class M(nn.Module):\n    pass\no = M()"
SLOTS = "class S:\n    __slots__ = ('w',)\no = S()"
KEY = (
    "class Key:\n    def __init__(self, v):\n        self.v = v\n"
    "    def __eq__(self, other):\n        return self.v == other.v\n"
    "    def __hash__(self):\n        return hash(self.v)\n"
)
FALLBACK = (
    "class Lazy:\n    def __init__(self):\n        self.d = {'w': 2.0}\n"
    "    def __getattr__(self, name):\n        if name == 'd' or name not in self.d:\n"
    "            raise AttributeError(name)\n        return self.d[name]\no = Lazy()"
)
ATTRIBUTE = "try:\n    x = x * o.w\nexcept AttributeError:\n    x = x + 10\n"
ITEM = "try:\n    x = x * o['w']\nexcept KeyError:\n    x = x + 10\n"
SET_DEL = ("o.w = 3.0", "del o.w", "o.w = 4.0")

KINDS: dict[str, Kind] = {
    # what is not there, and comes
    "key missing": Kind("o = {}", ITEM, ("o['w'] = 3.0", "del o['w']")),
    "key missing, other keys": Kind("o = {'v': 1.0}", ITEM, ("o['w'] = 3.0", "o.clear()")),
    "key missing in an OrderedDict": Kind("o = collections.OrderedDict()", ITEM, ("o['w'] = 3.0",)),
    "key missing in a defaultdict": Kind("o = collections.defaultdict(None)", ITEM, ("o['w'] = 3.0",)),
    "key missing in a Counter": Kind("o = collections.Counter()", "x = x + o['w']\n", ("o['w'] = 3", "o['w'] = 4")),
    "key missing in a ChainMap": Kind(
        "a, b = {}, {}\no = collections.ChainMap(a, b)", ITEM, ("b['w'] = 3.0", "a['w'] = 4.0")
    ),
    "key missing in a mapping proxy": Kind("d = {}\no = types.MappingProxyType(d)", ITEM, ("d['w'] = 3.0",)),
    "key missing in a dict of its own class": Kind("class D(dict):\n    pass\no = D()", ITEM, ("o['w'] = 3.0",)),
    "__missing__": Kind(
        "class D(dict):\n    def __missing__(self, key):\n        return 5.0\no = D()",
        "x = x * o['w']\n",
        ("o['w'] = 3.0", "del o['w']"),
    ),
    "key missing in a global dict": Kind("T = {}\no = None", ITEM.replace("o[", "T["), ("T['w'] = 3.0", "T.clear()")),
    "key missing in a dict of an object": Kind(OBJECT + "\no.d = {}", ITEM.replace("o[", "o.d["), ("o.d['w'] = 3.0",)),
    "key missing, caught as LookupError": Kind("o = {}", ITEM.replace("KeyError", "LookupError"), ("o['w'] = 3.0",)),
    "key missing, caught outside": Kind(
        "o = {}\ndef get(d):\n    return d['w']",
        "try:\n    x = x * get(o)\nexcept KeyError:\n    pass\n",
        ("o['w'] = 3.0",),
    ),
    "int key missing": Kind("o = {}", ITEM.replace("'w'", "7"), ("o[7] = 3.0",)),
    "tuple key missing": Kind("o = {}", ITEM.replace("'w'", "(1, 'a')"), ("o[1, 'a'] = 3.0",)),
    "get": Kind("o = {}", "x = x * o.get('w', 2.0)\n", ("o['w'] = 3.0", "del o['w']")),
    "pop with a default": Kind("o = {}", "x = x * o.pop('w', 2.0)\n", ("o['w'] = 3.0", "o['v'] = 1.0")),
    "pop without": Kind(
        "o = {}", "try:\n    x = x * o.pop('w')\nexcept KeyError:\n    pass\n", ("o['w'] = 3.0", "o['v'] = 1.0")
    ),
    "setdefault": Kind("o = {}", "x = x * o.setdefault('w', 2.0)\n", ("o['w'] = 3.0", "del o['w']")),
    "del of a key": Kind(
        "o = {}", "try:\n    del o['w']\n    x = x * 2\nexcept KeyError:\n    pass\n", ("o['w'] = 3.0", "")
    ),
    "popitem": Kind("o = {}", "try:\n    x = x * o.popitem()[1]\nexcept KeyError:\n    pass\n", ("o['w'] = 3.0", "")),
    "in": Kind("o = {}", "if 'w' in o:\n    x = x * 2\n", ("o['w'] = 3.0", "del o['w']")),
    "not in, of a set": Kind("o = set()", "if 'w' not in o:\n    x = x * 2\n", ("o.add('w')", "o.clear()")),
    "remove from a set": Kind(
        "o = set()", "try:\n    o.remove('w')\n    x = x * 2\nexcept KeyError:\n    pass\n", ("o.add('w')", "")
    ),
    "discard": Kind("o = set()", "o.discard('w')\nx = x * (1 + len(o))\n", ("o.add('v')", "o.add('w')")),
    "pop of a set": Kind("o = set()", "try:\n    x = x * o.pop()\nexcept KeyError:\n    pass\n", ("o.add(3)", "")),
    "index missing": Kind(
        "o = []", "try:\n    x = x * o[1]\nexcept IndexError:\n    pass\n", ("o.append(1.0)", "o.append(3.0)")
    ),
    "index of a list": Kind(
        "o = []",
        "try:\n    x = x * (2 + o.index('w'))\nexcept ValueError:\n    pass\n",
        ("o.append('v')", "o.append('w')"),
    ),
    "remove from a list": Kind(
        "o = []", "try:\n    o.remove('w')\n    x = x * 2\nexcept ValueError:\n    pass\n", ("o.append('w')", "")
    ),
    "pop of a list": Kind("o = []", "try:\n    x = x * o.pop()\nexcept IndexError:\n    pass\n", ("o.append(3.0)", "")),
    "popleft": Kind(
        "o = collections.deque()",
        "try:\n    x = x * o.popleft()\nexcept IndexError:\n    pass\n",
        ("o.append(3.0)", ""),
    ),
    "next of an empty list": Kind("o = []", "x = x * next(iter(o), 2.0)\n", ("o.append(3.0)", "o[0] = 4.0")),
    "unpack": Kind(
        "o = [1.0]",
        "try:\n    a, b = o\n    x = x * b\nexcept ValueError:\n    pass\n",
        ("o.append(3.0)", "o.append(1)"),
    ),
    "attribute missing": Kind(OBJECT, ATTRIBUTE, SET_DEL),
    "attribute missing of a module": Kind(MODULE, ATTRIBUTE, SET_DEL),
    "attribute missing of a namespace": Kind("o = types.SimpleNamespace()", ATTRIBUTE, SET_DEL),
    "attribute missing of a class": Kind("class o:\n    pass", ATTRIBUTE, SET_DEL),
    "attribute missing of an instance, set on its class": Kind(OBJECT, ATTRIBUTE, ("Bag.w = 3.0", "del Bag.w")),
    "attribute of the class, hidden by the instance": Kind(
        "class Bag:\n    w = 2.0\no = Bag()", "x = x * o.w\n", ("o.w = 3.0", "del o.w", "Bag.w = 5.0")
    ),
    "attribute of a base, hidden by the class": Kind(
        "class A:\n    w = 2.0\nclass B(A):\n    pass\no = B()", "x = x * o.w\n", ("B.w = 3.0", "del B.w", "A.w = 5.0")
    ),
    "method hidden by the instance": Kind(
        "class Bag:\n    def m(self, x):\n        return x * 2\no = Bag()",
        "x = o.m(x)\n",
        ("o.m = lambda x: x * 3", "del o.m"),
    ),
    "method of a module hidden by the instance": Kind(
        "class M(nn.Module):\n    def m(self, x):\n        return x * 2\no = M()",
        "x = o.m(x)\n",
        ("o.m = lambda x: x * 3", "del o.m"),
    ),
    "method replaced in the class": Kind(
        "class Bag:\n    def m(self, x):\n        return x * 2\no = Bag()",
        "x = o.m(x)\n",
        ("Bag.m = lambda self, x: x * 3", "Bag.m = lambda self, x: x * 4"),
    ),
    "attribute missing of a function": Kind("def o():\n    pass", ATTRIBUTE, SET_DEL),
    "attribute missing of a Python module": Kind("o = types.ModuleType('o')", ATTRIBUTE, SET_DEL),
    "attribute missing of a submodule": Kind(
        MODULE + "\no.inner = M()", ATTRIBUTE.replace("o.w", "o.inner.w"), ("o.inner.w = 3.0", "del o.inner.w")
    ),
    "parameter missing": Kind(
        MODULE,
        ATTRIBUTE,
        ("o.w = nn.Parameter(torch.full((2,), 3.0))", "del o.w", "o.register_buffer('w', torch.ones(2))"),
    ),
    "submodule missing": Kind(
        MODULE, "try:\n    x = o.act(x)\nexcept AttributeError:\n    pass\n", ("o.act = nn.Softplus()", "del o.act")
    ),
    "slot missing": Kind(SLOTS, ATTRIBUTE, SET_DEL),
    "getattr with a default": Kind(OBJECT, "x = x * getattr(o, 'w', 2.0)\n", SET_DEL),
    "getattr with a default of a module": Kind(MODULE, "x = x * getattr(o, 'w', 2.0)\n", SET_DEL),
    "getattr with a default of a namespace": Kind(
        "o = types.SimpleNamespace()", "x = x * getattr(o, 'w', 2.0)\n", SET_DEL
    ),
    "getattr with a default of a class": Kind("class o:\n    pass", "x = x * getattr(o, 'w', 2.0)\n", SET_DEL),
    "getattr with a default of a function": Kind("def o():\n    pass", "x = x * getattr(o, 'w', 2.0)\n", SET_DEL),
    "getattr with a default of a Python module": Kind(
        "o = types.ModuleType('o')", "x = x * getattr(o, 'w', 2.0)\n", SET_DEL
    ),
    "getattr with a default of a slot": Kind(SLOTS, "x = x * getattr(o, 'w', 2.0)\n", SET_DEL),
    "hasattr": Kind(OBJECT, "if hasattr(o, 'w'):\n    x = x * o.w\n", SET_DEL),
    "hasattr of a module": Kind(MODULE, "if hasattr(o, 'w'):\n    x = x * o.w\n", SET_DEL),
    "hasattr of a namespace": Kind("o = types.SimpleNamespace()", "if hasattr(o, 'w'):\n    x = x * o.w\n", SET_DEL),
    "hasattr of a class": Kind("class o:\n    pass", "if hasattr(o, 'w'):\n    x = x * o.w\n", SET_DEL),
    "hasattr of a function": Kind("def o():\n    pass", "if hasattr(o, 'w'):\n    x = x * o.w\n", SET_DEL),
    "hasattr of a slot": Kind(SLOTS, "if hasattr(o, 'w'):\n    x = x * o.w\n", SET_DEL),
    "hasattr of a tensor": Kind(
        "o = torch.ones(2)", "if hasattr(o, 'scale'):\n    x = x * 3\n", ("o.scale = 3.0", "del o.scale")
    ),
    "attribute of a tensor": Kind("o = torch.ones(2)", "x = x * getattr(o, 'scale', 2.0)\n", ("o.scale = 3.0",)),
    "attribute of a parameter": Kind(
        "o = nn.Parameter(torch.ones(2))", "x = x * getattr(o, 'scale', 2.0)\n", ("o.scale = 3.0", "del o.scale")
    ),
    "__getattr__ that knows": Kind(FALLBACK, "x = x * o.w\n", ("o.d['w'] = 3.0", "o.w = 4.0", "del o.w")),
    "__getattr__ that does not know": Kind(
        FALLBACK, ATTRIBUTE.replace("o.w", "o.v"), ("o.d['v'] = 3.0", "o.v = 4.0", "del o.v")
    ),
    "__getattr__ behind getattr": Kind(FALLBACK, "x = x * getattr(o, 'v', 2.0)\n", ("o.d['v'] = 3.0", "o.v = 4.0")),
    "__getattr__ behind hasattr": Kind(
        FALLBACK, "if hasattr(o, 'v'):\n    x = x * o.v\n", ("o.d['v'] = 3.0", "del o.d['v']")
    ),
    "__getattr__ of a module": Kind(
        "class M(nn.Module):\n    def __getattr__(self, name):\n        try:\n            return super().__getattr__(name)\n"
        "        except AttributeError:\n            return 5.0\no = M()",
        "x = x * o.w\n",
        SET_DEL,
    ),
    "__getattr__ of a wrapper": Kind(
        BAG + "class Wrap:\n    def __init__(self, inner):\n        self.inner = inner\n"
        "    def __getattr__(self, name):\n        return getattr(self.inner, name)\no = Wrap(Bag())\no.inner.w = 2.0",
        "x = x * o.w\n",
        ("o.inner.w = 3.0", "o.w = 4.0", "del o.w"),
    ),
    "__getattribute__": Kind(
        "class B:\n    def __getattribute__(self, name):\n        if name == 'w':\n            return T['w']\n"
        "        return object.__getattribute__(self, name)\nT = {'w': 2.0}\no = B()",
        "x = x * o.w\n",
        ("T['w'] = 3.0", "T['w'] = 4.0"),
    ),
    "property that looks": Kind(
        "class B:\n    @property\n    def w(self):\n        return getattr(self, '_w', 2.0)\no = B()",
        "x = x * o.w\n",
        ("o._w = 3.0", "del o._w"),
    ),
    "cached_property": Kind(
        "class B:\n    v = 2.0\n    @functools.cached_property\n    def w(self):\n        return self.v\no = B()",
        "x = x * o.w\n",
        ("o.v = 3.0", "del o.w"),
    ),
    "descriptor of its own": Kind(
        "class D:\n    def __get__(self, o, kind):\n        return o.__dict__.get('_w', 2.0)\nclass B:\n    w = D()\no = B()",
        "x = x * o.w\n",
        ("o._w = 3.0", "o.w = 4.0", "del o.w"),
    ),
    "del of an attribute": Kind(
        OBJECT, "try:\n    del o.w\n    x = x * 2\nexcept AttributeError:\n    pass\n", ("o.w = 3.0", "")
    ),
    "del of an attribute of a module": Kind(
        MODULE, "try:\n    del o.w\n    x = x * 2\nexcept AttributeError:\n    pass\n", ("o.w = 3.0", "")
    ),
    "delattr": Kind(
        OBJECT, "try:\n    delattr(o, 'w')\n    x = x * 2\nexcept AttributeError:\n    pass\n", ("o.w = 3.0", "")
    ),
    "del of an attribute that is there": Kind(OBJECT + "\no.w = 1.0", "del o.w\nx = x * 2\n", ("o.w = 3.0",)),
    "len of vars": Kind(OBJECT, "x = x * (1 + len(vars(o)))\n", ("o.w = 3.0", "o.v = 3.0", "del o.w")),
    "len of __dict__": Kind(OBJECT, "x = x * (1 + len(o.__dict__))\n", ("o.w = 3.0", "o.v = 3.0", "del o.w")),
    "len of __dict__ of a module": Kind(MODULE, "x = x * (1 + len(o.__dict__))\n", ("o.w = 3.0", "o.v = 3.0")),
    "key in vars": Kind(OBJECT, "if 'w' in vars(o):\n    x = x * 2\n", SET_DEL),
    "key in __dict__": Kind(OBJECT, "if 'w' in o.__dict__:\n    x = x * 2\n", SET_DEL),
    "get of __dict__": Kind(OBJECT, "x = x * o.__dict__.get('w', 2.0)\n", SET_DEL),
    "item of __dict__": Kind(OBJECT, ITEM.replace("o['", "o.__dict__['"), SET_DEL),
    "items of vars": Kind(
        OBJECT, "for k, v in vars(o).items():\n    x = x * v\n", ("o.w = 3.0", "o.v = 4.0", "o.w = 2.0")
    ),
    "values of __dict__": Kind(OBJECT, "for v in o.__dict__.values():\n    x = x * v\n", ("o.w = 3.0", "del o.w")),
    "truth of vars": Kind(OBJECT, "if vars(o):\n    x = x * 2\n", SET_DEL),
    "list of vars": Kind(OBJECT, "x = x * (1 + len(list(vars(o))))\n", SET_DEL),
    "dir": Kind(OBJECT, "if 'w' in dir(o):\n    x = x * 2\n", SET_DEL),
    "key in the names of a class": Kind(OBJECT, "if 'w' in Bag.__dict__:\n    x = x * 2\n", ("Bag.w = 1", "del Bag.w")),
    # keys with an equality of their own
    "own __eq__ in get": Kind(
        KEY + "T = {Key(1): 4.0}\no = Key(2)", "x = x * T.get(o, 2.0)\n", ("o = Key(1)", "o.v = 3", "T[Key(3)] = 5.0")
    ),
    "own __eq__ in getitem": Kind(
        KEY + "T = {Key(1): 4.0}\no = Key(2)",
        "try:\n    x = x * T[o]\nexcept KeyError:\n    pass\n",
        ("o = Key(1)", "o.v = 3", "T[Key(3)] = 5.0"),
    ),
    "own __eq__ in a dict": Kind(
        KEY + "T = {Key(1): 4.0}\no = Key(2)", "if o in T:\n    x = x * 2\n", ("o = Key(1)", "o.v = 3")
    ),
    "own __eq__ in a set": Kind(
        KEY + "T = {Key(1)}\no = Key(2)", "if o in T:\n    x = x * 2\n", ("o = Key(1)", "o.v = 3", "T.add(Key(3))")
    ),
    "own __eq__ in a list": Kind(
        KEY + "T = [Key(1)]\no = Key(2)", "if o in T:\n    x = x * 2\n", ("o = Key(1)", "o.v = 3", "T[0].v = 3")
    ),
    "own __eq__ in index": Kind(
        KEY + "T = [Key(1), Key(2)]\no = Key(2)", "x = x * (2 + T.index(o))\n", ("o = Key(1)", "T[1].v = 1; o = Key(1)")
    ),
    "own __eq__ in count": Kind(
        KEY + "T = [Key(1), Key(2)]\no = Key(2)", "x = x * (2 + T.count(o))\n", ("o = Key(1)", "T[1].v = 1")
    ),
    "own __eq__": Kind(KEY + "T = Key(1)\no = Key(2)", "if o == T:\n    x = x * 2\n", ("o.v = 1", "T.v = 2")),
    "own __eq__ of tuples": Kind(
        KEY + "T = (Key(1),)\no = Key(2)", "if (o,) == T:\n    x = x * 2\n", ("o.v = 1", "o.v = 3")
    ),
    "own __eq__ of lists": Kind(
        KEY + "T = [Key(1)]\no = [Key(2)]", "if o == T:\n    x = x * 2\n", ("o[0].v = 1", "o[0].v = 3")
    ),
    "own __hash__": Kind(KEY + "o = Key(2)", "if hash(o) == 1:\n    x = x * 2\n", ("o.v = 1", "o.v = 3")),
    "dataclass as a key": Kind(
        "@dataclasses.dataclass(frozen=True)\nclass Key:\n    v: int\nT = {Key(1): 4.0}\no = Key(2)",
        "x = x * T.get(o, 2.0)\n",
        ("o = Key(1)", "T[Key(1)] = 5.0", "del T[Key(1)]"),
    ),
    "named tuple as a key": Kind(
        "Key = collections.namedtuple('Key', 'v')\nT = {Key(1): 4.0}\no = Key(2)",
        "x = x * T.get(o, 2.0)\n",
        ("o = Key(1)", "T[Key(1)] = 5.0"),
    ),
    "enum as a key": Kind(
        "class E(enum.Enum):\n    A = 1\n    B = 2\nT = {E.A: 4.0}\no = E.B",
        "x = x * T.get(o, 2.0)\n",
        ("o = E.A", "T[E.A] = 5.0"),
    ),
    "object as a key": Kind(
        BAG + "A = Bag()\nT = {A: 4.0}\no = Bag()", "x = x * T.get(o, 2.0)\n", ("o = A", "T[A] = 5.0", "T.clear()")
    ),
    "module as a key": Kind(
        "A = nn.ReLU()\nT = {A: 4.0}\no = nn.ReLU()", "x = x * T.get(o, 2.0)\n", ("o = A", "T[A] = 5.0", "T.clear()")
    ),
    "class as a key": Kind(
        BAG + "T = {}\no = Bag()", "x = x * T.get(type(o), 2.0)\n", ("T[Bag] = 3.0", "T[Bag] = 4.0")
    ),
    # identity
    "is over a list": Kind(
        BAG + "A, B = Bag(), Bag()\nT = [A, B]\no = B",
        "for each in T:\n    if each is o:\n        x = x * 2\n",
        ("o = Bag()", "T[0] = o"),
    ),
    "is": Kind(BAG + "A = Bag()\no = Bag()", "if o is A:\n    x = x * 2\n", ("o = A", "o = Bag()")),
    "is, of an attribute": Kind(
        BAG + "A = Bag()\no = Bag()\no.a = None", "if o.a is A:\n    x = x * 2\n", ("o.a = A", "o.a = Bag()", "A = o.a")
    ),
    "is None": Kind(OBJECT + "\no.a = None", "if o.a is not None:\n    x = x * 2\n", ("o.a = Bag()", "o.a = None")),
    "is, of lists": Kind("A = []\no = []", "if o is A:\n    x = x * 2\n", ("o = A", "o = []")),
    "is, of dicts": Kind("A = {}\no = {}", "if o is A:\n    x = x * 2\n", ("o = A", "o = {}")),
    "is, of tensors": Kind(
        "A = torch.ones(2)\no = torch.ones(2)", "if o is A:\n    x = x * 2\n", ("o = A", "o = torch.ones(2)")
    ),
    "is, of modules": Kind("A = nn.ReLU()\no = nn.ReLU()", "if o is A:\n    x = x * 2\n", ("o = A", "o = nn.ReLU()")),
    "in a list, by identity": Kind(
        BAG + "T = [Bag()]\no = Bag()", "if o in T:\n    x = x * 2\n", ("o = T[0]", "o = Bag()", "T.append(o)")
    ),
    "in a tuple, by identity": Kind(
        BAG + "T = (Bag(),)\no = Bag()", "if o in T:\n    x = x * 2\n", ("o = T[0]", "o = Bag()")
    ),
    "in a set, by identity": Kind(
        BAG + "T = {Bag()}\no = Bag()", "if o in T:\n    x = x * 2\n", ("T.add(o)", "o = Bag()")
    ),
    "index, by identity": Kind(
        BAG + "T = [Bag(), Bag()]\no = T[1]", "x = x * (2 + T.index(o))\n", ("o = T[0]", "T.reverse()")
    ),
    "id": Kind(BAG + "A = Bag()\no = Bag()", "if id(o) == id(A):\n    x = x * 2\n", ("o = A", "o = Bag()")),
    "== without an __eq__": Kind(BAG + "A = Bag()\no = Bag()", "if o == A:\n    x = x * 2\n", ("o = A", "o = Bag()")),
    "is, of functions": Kind(
        "def A(x):\n    return x\ndef B(x):\n    return x\no = B", "if o is A:\n    x = x * 2\n", ("o = A", "o = B")
    ),
    "is, of bound methods": Kind(
        "class B:\n    def m(self):\n        pass\nA = B()\no = B()",
        "if o.m == A.m:\n    x = x * 2\n",
        ("o = A", "o = B()"),
    ),
    # random numbers of Python
    "random.Random of a module": Kind(
        "R = random.Random(0)\no = None", "x = x * R.randint(1, 1000)\n", ("", "R.seed(5)", "")
    ),
    "random.Random of an object": Kind(
        OBJECT + "\no.r = random.Random(0)", "x = x * o.r.random()\n", ("", "o.r.seed(5)", "")
    ),
    "random.Random as an argument": Kind("o = random.Random(0)", "x = x * o.uniform(0, 1)\n", ("", "o.seed(5)", "")),
    "random of Python": Kind("o = None", "x = x * random.randint(1, 1000)\n", ("random.seed(1)", "", "random.seed(5)")),
    "shuffle": Kind("R = random.Random(0)\no = [1, 2, 3, 4]", "R.shuffle(o)\nx = x * o[0]\n", ("", "R.seed(5)")),
    "choice": Kind("R = random.Random(0)\no = [1, 2, 3, 4]", "x = x * R.choice(o)\n", ("", "R.seed(5)")),
    "random made in the frame": Kind("o = 1", "x = x * random.Random(o).randint(1, 1000)\n", ("o = 2", "o = 3")),
    # kinds and shapes of objects
    "type": Kind(
        "class A:\n    w = 2.0\nclass B(A):\n    w = 3.0\no = A()", "x = x * type(o).w\n", ("o = B()", "B.w = 4.0")
    ),
    "isinstance": Kind(
        "class A:\n    pass\nclass B(A):\n    pass\no = A()",
        "if isinstance(o, B):\n    x = x * 2\n",
        ("o = B()", "o = A()"),
    ),
    "class changed": Kind(
        "class A:\n    w = 2.0\nclass B:\n    w = 3.0\no = A()",
        "x = x * o.w\n",
        ("o.__class__ = B", "B.w = 4.0", "o.__class__ = A"),
    ),
    "callable": Kind(
        "class A:\n    pass\no = A()",
        "if callable(o):\n    x = x * 2\n",
        ("A.__call__ = lambda self: 1", "del A.__call__"),
    ),
    "issubclass": Kind(
        "class A:\n    pass\nclass B:\n    pass\no = B",
        "if issubclass(o, A):\n    x = x * 2\n",
        ("class C(A):\n    pass\no = C",),
    ),
    "__len__": Kind(
        "class A:\n    def __init__(self):\n        self.d = []\n    def __len__(self):\n        return len(self.d)\no = A()",
        "x = x * (1 + len(o))\n",
        ("o.d.append(1)", "o.d.clear()"),
    ),
    "__bool__": Kind(
        "class A:\n    b = False\n    def __bool__(self):\n        return self.b\no = A()",
        "if o:\n    x = x * 2\n",
        ("o.b = True", "del o.b"),
    ),
    "__contains__": Kind(
        "class A:\n    def __init__(self):\n        self.d = set()\n    def __contains__(self, k):\n        return k in self.d\no = A()",
        "if 'w' in o:\n    x = x * 2\n",
        ("o.d.add('w')", "o.d.clear()"),
    ),
    "__getitem__": Kind(
        "class A:\n    def __init__(self):\n        self.d = {}\n    def __getitem__(self, k):\n        return self.d.get(k, 2.0)\no = A()",
        "x = x * o['w']\n",
        ("o.d['w'] = 3.0", "o.d.clear()"),
    ),
    "__call__": Kind(
        "class A:\n    w = 2.0\n    def __call__(self, x):\n        return x * self.w\no = A()",
        "x = o(x)\n",
        ("o.w = 3.0", "del o.w"),
    ),
    "__iter__": Kind(
        "class A:\n    def __init__(self):\n        self.d = [1.0]\n    def __iter__(self):\n        return iter(self.d)\no = A()",
        "for v in o:\n    x = x * v\n",
        ("o.d.append(3.0)", "o.d[0] = 2.0"),
    ),
    "__lt__": Kind(
        "class A:\n    def __init__(self, v):\n        self.v = v\n    def __lt__(self, b):\n        return self.v < b.v\nT = A(2)\no = A(1)",
        "if o < T:\n    x = x * 2\n",
        ("o.v = 3", "T.v = 4"),
    ),
    "sorted by an attribute": Kind(
        BAG + "o = [Bag(), Bag()]\no[0].v, o[1].v = 1.0, 2.0",
        "x = x * sorted(o, key=lambda b: b.v)[0].v\n",
        ("o[0].v = 5.0", "o[1].v = 6.0"),
    ),
    "str of an object": Kind(
        "class A:\n    v = 'a'\n    def __str__(self):\n        return self.v\no = A()",
        "if str(o) == 'a':\n    x = x * 2\n",
        ("o.v = 'b'", "o.v = 'a'"),
    ),
    # containers
    "len of a list": Kind("o = []", "x = x * (1 + len(o))\n", ("o.append(1)", "o.clear()")),
    "truth of a dict": Kind("o = {}", "if o:\n    x = x * 2\n", ("o['w'] = 1", "o.clear()")),
    "order of a dict": Kind(
        "o = {'a': 2.0, 'b': 3.0}", "x = x * next(iter(o.values()))\n", ("o['a'] = o.pop('a')", "o['b'] = 5.0")
    ),
    "dicts that are equal": Kind("T = {'a': 1}\no = {}", "if o == T:\n    x = x * 2\n", ("o['a'] = 1", "T['b'] = 1")),
    "sets that are equal": Kind("T = {1}\no = set()", "if o == T:\n    x = x * 2\n", ("o.add(1)", "T.add(2)")),
    "set operations": Kind("T = {1, 2}\no = {1}", "x = x * (1 + len(o & T))\n", ("o.add(2)", "T.clear()")),
    "subset": Kind("T = {1, 2}\no = {3}", "if o <= T:\n    x = x * 2\n", ("o.clear()", "o.add(1)")),
    "keys view": Kind("o = {}", "if 'w' in o.keys():\n    x = x * 2\n", ("o['w'] = 1", "o.clear()")),
    "values view": Kind("o = {}", "if 2.0 in o.values():\n    x = x * 2\n", ("o['w'] = 2.0", "o.clear()")),
    "deque": Kind("o = collections.deque(maxlen=2)", "o.append(x.size(0))\nx = x * len(o)\n", ("", "o.clear()")),
    "default made": Kind(
        "o = collections.defaultdict(list)", "o['w'].append(1)\nx = x * len(o['w'])\n", ("", "o.clear()")
    ),
    "bytearray": Kind("o = bytearray(b'a')", "x = x * o[0]\n", ("o[0] = 3", "o[0] = 4")),
    "range": Kind("o = range(3)", "if 3 in o:\n    x = x * 2\n", ("o = range(4)", "o = range(2)")),
    "iterator of the program": Kind("o = iter([1.0, 2.0, 3.0])", "x = x * next(o, 9.0)\n", ("", "", "")),
    "count of itertools": Kind("import itertools\no = itertools.count(1)", "x = x * next(o)\n", ("", "", "")),
    "generator of the program": Kind("o = (v for v in [1.0, 2.0, 3.0])", "x = x * next(o, 9.0)\n", ("", "", "")),
    # names
    "global": Kind("W = 2.0\no = None", "x = x * W\n", ("W = 3.0", "W = 4")),
    "global missing": Kind("o = None", "try:\n    x = x * W\nexcept NameError:\n    pass\n", ("W = 3.0", "del W")),
    "name of builtins": Kind("o = None", "x = x * len([1, 2])\n", ("len = lambda v: 5", "del len")),
    "globals()": Kind("o = None", "x = x * globals().get('W', 2.0)\n", ("W = 3.0", "del W")),
    "cell": Kind(
        "def make():\n    w = 2.0\n    def read():\n        return w\n    def put(v):\n        nonlocal w\n        w = v\n    return read, put\no, put = make()",
        "x = x * o()\n",
        ("put(3.0)", "put(4.0)"),
    ),
    "cell without a value": Kind(
        "def make():\n    def read():\n        return w\n    def put(v):\n        nonlocal w\n        w = v\n    if 0:\n        w = 1\n    return read, put\no, put = make()",
        "try:\n    x = x * o()\nexcept NameError:\n    pass\n",
        ("put(3.0)", "put(4.0)"),
    ),
    "defaults of a function": Kind(
        "def o(x, w=2.0):\n    return x * w", "x = o(x)\n", ("o.__defaults__ = (3.0,)", "o.__defaults__ = (4.0,)")
    ),
    "code of a function": Kind(
        "def o(x):\n    return x * 2", "x = o(x)\n", ("o.__code__ = (lambda x: x * 3).__code__",)
    ),
    "partial": Kind(
        "def g(w, x):\n    return x * w\no = functools.partial(g, 2.0)",
        "x = o(x)\n",
        ("o = functools.partial(g, 3.0)",),
    ),
    "lru_cache": Kind(
        "T = {'w': 2.0}\n@functools.lru_cache\ndef g():\n    return T['w']\no = None",
        "x = x * g()\n",
        ("g.cache_clear(); T['w'] = 3.0", "g.cache_clear(); T['w'] = 4.0"),
    ),
    # torch's
    "training": Kind(MODULE, "if o.training:\n    x = x * 2\n", ("o.eval()", "o.train()")),
    "hooks": Kind(
        "o = nn.ReLU()", "x = o(x)\n", ("H = o.register_forward_hook(lambda m, i, r: r * 2)\n", "H.remove()")
    ),
    "ModuleList grows": Kind(
        "o = nn.ModuleList([nn.Softplus()])",
        "for m in o:\n    x = m(x)\n",
        ("o.append(nn.Softplus())", "o[0] = nn.Sigmoid()"),
    ),
    "ModuleDict": Kind(
        "o = nn.ModuleDict()", "if 'a' in o:\n    x = o['a'](x)\n", ("o['a'] = nn.Softplus()", "del o['a']")
    ),
    "ModuleDict, missing": Kind(
        "o = nn.ModuleDict()",
        "try:\n    x = o['a'](x)\nexcept KeyError:\n    pass\n",
        ("o['a'] = nn.Softplus()", "del o['a']"),
    ),
    "named_parameters": Kind(
        MODULE,
        "for n, p in o.named_parameters():\n    x = x * p\n",
        ("o.w = nn.Parameter(torch.full((2,), 3.0))", "del o.w"),
    ),
    "requires_grad": Kind(
        "o = torch.ones(2)", "if o.requires_grad:\n    x = x * 2\n", ("o.requires_grad_()", "o.requires_grad_(False)")
    ),
    "grad": Kind(
        "o = torch.ones(2, requires_grad=True)",
        "if o.grad is not None:\n    x = x * 2\n",
        ("o.grad = torch.ones(2)", "o.grad = None"),
    ),
    "environment": Kind(
        "import os\no = None\nos.environ.pop('GM_W', None)",
        "if os.environ.get('GM_W'):\n    x = x * 2\n",
        ("os.environ['GM_W'] = '1'", "del os.environ['GM_W']"),
    ),
    "default dtype": Kind(
        "o = None",
        "if torch.get_default_dtype() == torch.float64:\n    x = x * 2\n",
        ("torch.set_default_dtype(torch.float64)", "torch.set_default_dtype(torch.float32)"),
    ),
    # aliases, other libraries, forms
    "two names for one list": Kind("T = []\no = T", "o.append(1)\nx = x * len(T)\n", ("o = []", "o = T", "T = []")),
    "two names for one list, apart first": Kind(
        "T = []\no = []", "o.append(1)\nx = x * (1 + len(T))\n", ("o = T", "o = []")
    ),
    "two names for one dict": Kind(
        "T = {}\no = {}", "o['w'] = 3.0\nx = x * T.get('w', 2.0)\n", ("o = T", "o = {}; T.clear()")
    ),
    "two names for one object": Kind(
        BAG + "T = Bag(); T.w = 2.0\no = Bag(); o.w = 2.0",
        "o.w = o.w + 1\nx = x * T.w\n",
        ("o = T", "o = Bag(); o.w = 1.0"),
    ),
    "two attributes for one list": Kind(
        OBJECT + "\no.a, o.b = [], []", "o.a.append(1)\nx = x * (1 + len(o.b))\n", ("o.b = o.a", "o.a = []")
    ),
    "weak reference": Kind(
        "import weakref\n" + BAG + "A = Bag()\no = weakref.ref(A)",
        "if o() is None:\n    x = x * 2\n",
        ("del A", "A = Bag(); o = weakref.ref(A)"),
    ),
    "weak dict": Kind(
        "import weakref\n" + BAG + "A = Bag()\nT = weakref.WeakKeyDictionary()\no = A",
        "x = x * T.get(o, 2.0)\n",
        ("T[A] = 3.0", "T.clear()"),
    ),
    "context variable": Kind(
        "import contextvars\no = contextvars.ContextVar('o', default=2.0)",
        "x = x * o.get()\n",
        ("o.set(3.0)", "o.set(4.0)"),
    ),
    "thread local": Kind(
        "import threading\no = threading.local()", "x = x * getattr(o, 'w', 2.0)\n", ("o.w = 3.0", "del o.w")
    ),
    "thread local missing": Kind(
        "import threading\no = threading.local()",
        "try:\n    x = x * o.w\nexcept AttributeError:\n    pass\n",
        ("o.w = 3.0", "del o.w"),
    ),
    "sys.modules": Kind(
        "import sys\no = None\nsys.modules.pop('gmx', None)",
        "if 'gmx' in sys.modules:\n    x = x * 2\n",
        ("sys.modules['gmx'] = sys", "del sys.modules['gmx']"),
    ),
    "level of a logger": Kind(
        "import logging\nL = logging.getLogger('gmx')\nL.setLevel(30)\no = None",
        "if L.isEnabledFor(10):\n    x = x * 2\n",
        ("L.setLevel(10)", "L.setLevel(30)"),
    ),
    "name of a class": Kind(
        "class A:\n    pass\nclass B:\n    pass\no = A()",
        "if type(o).__name__ == 'B':\n    x = x * 2\n",
        ("o = B()", "B.__name__ = 'C'"),
    ),
    "singledispatch": Kind(
        "@functools.singledispatch\ndef g(o, x):\n    return x * 2\nclass A:\n    pass\no = A()",
        "x = g(o, x)\n",
        ("g.register(A)(lambda o, x: x * 3)",),
    ),
    "abc register": Kind(
        "import abc\nclass I(abc.ABC):\n    pass\nclass A:\n    pass\no = A()",
        "if isinstance(o, I):\n    x = x * 2\n",
        ("I.register(A)",),
    ),
    "instancecheck": Kind(
        "T = {'w': False}\nclass Meta(type):\n    def __instancecheck__(cls, o):\n        return T['w']\nclass I(metaclass=Meta):\n    pass\no = 1.5",
        "if isinstance(o, I):\n    x = x * 2\n",
        ("T['w'] = True", "T['w'] = False"),
    ),
    "enum by name": Kind("class E(enum.Enum):\n    A = 1\n    B = 2\no = 'A'", "x = x * E[o].value\n", ("o = 'B'",)),
    "enum by value": Kind(
        "class E(enum.Enum):\n    A = 1\n    B = 2\no = 1", "if E(o) is E.B:\n    x = x * 2\n", ("o = 2", "o = 1")
    ),
    "repr": Kind(
        "class A:\n    v = 1\n    def __repr__(self):\n        return f'A{self.v}'\no = A()",
        "if repr(o) == 'A1':\n    x = x * 2\n",
        ("o.v = 2", "o.v = 1"),
    ),
    "format": Kind(
        "class A:\n    v = 1\n    def __format__(self, s):\n        return f'A{self.v}'\no = A()",
        "if f'{o}' == 'A1':\n    x = x * 2\n",
        ("o.v = 2", "o.v = 1"),
    ),
    "attrgetter": Kind(
        OBJECT + "\nimport operator\no.w = 2.0", "x = x * operator.attrgetter('w')(o)\n", ("o.w = 3.0", "o.w = 4.0")
    ),
    "nonlocal": Kind(
        "def make():\n    n = 0\n    def step():\n        nonlocal n\n        n += 1\n        return n\n    return step\no = make()",
        "x = x * o()\n",
        ("", "", ""),
    ),
    "global counter": Kind(
        "N = 0\no = None\ndef step():\n    global N\n    N += 1\n    return N", "x = x * step()\n", ("", "N = 7", "")
    ),
    "mutable default": Kind(
        "def o(x, seen=[]):\n    seen.append(1)\n    return x * len(seen)",
        "x = o(x)\n",
        ("", "o.__defaults__[0].clear()", ""),
    ),
    "class list": Kind(
        "class A:\n    seen = []\no = A()",
        "o.seen.append(1)\nx = x * len(A.seen)\n",
        ("", "A.seen.clear()", "o.seen = []"),
    ),
    "module __getattr__": Kind(
        "o = types.ModuleType('o')\nT = {'w': 2.0}\no.__getattr__ = lambda name: T[name]",
        "x = x * o.w\n",
        ("T['w'] = 3.0", "o.w = 4.0"),
    ),
    "metaclass __getattr__": Kind(
        "T = {'w': 2.0}\nclass Meta(type):\n    def __getattr__(cls, name):\n        return T[name]\nclass o(metaclass=Meta):\n    pass",
        "x = x * o.w\n",
        ("T['w'] = 3.0", "o.w = 4.0"),
    ),
    "fields": Kind(
        "@dataclasses.dataclass\nclass D:\n    w: float = 2.0\n    v: float = 1.0\no = D()",
        "for f in dataclasses.fields(o):\n    x = x * getattr(o, f.name)\n",
        ("o.w = 3.0", "o.v = 4.0"),
    ),
    "asdict": Kind(
        "@dataclasses.dataclass\nclass D:\n    w: float = 2.0\no = D()",
        "x = x * dataclasses.asdict(o)['w']\n",
        ("o.w = 3.0",),
    ),
    "copy": Kind("import copy\n" + OBJECT + "\no.w = 2.0", "x = x * copy.copy(o).w\n", ("o.w = 3.0", "o.w = 4.0")),
    "cycle": Kind("import itertools\no = itertools.cycle([1.0, 2.0])", "x = x * next(o)\n", ("", "", "")),
    "lru_cache remembers": Kind(
        "T = {'w': 2.0}\n@functools.lru_cache\ndef g():\n    return T['w']\no = None",
        "x = x * g()\n",
        ("T['w'] = 3.0", "g.cache_clear()"),
    ),
    "data_ptr": Kind(
        "A = torch.ones(2)\no = torch.ones(2)",
        "if o.data_ptr() == A.data_ptr():\n    x = x * 2\n",
        ("o = A.view(2)", "o = torch.ones(2)"),
    ),
    "global hooks": Kind(
        "o = nn.ReLU()\nimport torch.nn.modules.module as m",
        "x = o(x)\n",
        ("H = m.register_module_forward_hook(lambda m, i, r: r * 2)", "H.remove()"),
    ),
    "pre-hooks": Kind(
        "o = nn.ReLU()", "x = o(x)\n", ("H = o.register_forward_pre_hook(lambda m, i: (i[0] * 2,))", "H.remove()")
    ),
    "hook replaced": Kind(
        "o = nn.ReLU()\nH = o.register_forward_hook(lambda m, i, r: r * 2)",
        "x = o(x)\n",
        ("H.remove(); H = o.register_forward_hook(lambda m, i, r: r * 3)", "H.remove()"),
    ),
    "forward replaced": Kind(
        "class M(nn.Module):\n    def forward(self, x):\n        return x * 2\no = M()",
        "x = o(x)\n",
        ("M.forward = lambda self, x: x * 3", "o.forward = lambda x: x * 4", "del o.forward"),
    ),
    "property replaced": Kind(
        "class A:\n    @property\n    def w(self):\n        return 2.0\no = A()",
        "x = x * o.w\n",
        ("A.w = property(lambda self: 3.0)", "A.w = 4.0"),
    ),
    "static method replaced": Kind(
        "class A:\n    @staticmethod\n    def m(x):\n        return x * 2\no = A()",
        "x = o.m(x)\n",
        ("A.m = staticmethod(lambda x: x * 3)",),
    ),
    "class method replaced": Kind(
        "class A:\n    @classmethod\n    def m(cls, x):\n        return x * 2\no = A",
        "x = o.m(x)\n",
        ("A.m = classmethod(lambda cls, x: x * 3)",),
    ),
    "super": Kind(
        "class A:\n    def m(self, x):\n        return x * 2\nclass B(A):\n    def m(self, x):\n        return super().m(x)\no = B()",
        "x = o.m(x)\n",
        ("A.m = lambda self, x: x * 3",),
    ),
    "dunder replaced": Kind(
        "class A:\n    def __len__(self):\n        return 2\no = A()",
        "x = x * len(o)\n",
        ("A.__len__ = lambda self: 3",),
    ),
    "bases changed": Kind(
        "class A:\n    w = 2.0\nclass C:\n    w = 3.0\nclass B(A):\n    pass\no = B()",
        "x = x * o.w\n",
        ("B.__bases__ = (C,)",),
    ),
    "function replaced": Kind(
        "def g(x):\n    return x * 2\no = None", "x = g(x)\n", ("def g(x):\n    return x * 3\n", "g = lambda x: x * 4")
    ),
    "function of another module": Kind(
        "M_ = types.ModuleType('M_')\nexec('def g(x): return x * 2', vars(M_))\no = None",
        "x = M_.g(x)\n",
        ("M_.g = lambda x: x * 3", "M_ = types.SimpleNamespace(g=lambda x: x * 4)"),
    ),
    "closure of a function in a dict": Kind(
        "o = {'f': lambda x: x * 2}", "x = o['f'](x)\n", ("o['f'] = lambda x: x * 3", "o['f'] = torch.neg")
    ),
    "walrus in a while": Kind(
        "o = [1, 2]", "while o and (k := o.pop()):\n    x = x * k\n", ("o.append(3)", "o += [2, 2]")
    ),
    "match": Kind(
        "class P:\n    __match_args__ = ('w',)\no = P()\no.w = 1",
        "match o:\n    case P(w=1):\n        x = x * 2\n    case P(v=2):\n        x = x * 3\n",
        ("o.w = 2", "o.v = 2"),
    ),
    "match of a dict": Kind(
        "o = {}", "match o:\n    case {'w': w}:\n        x = x * w\n", ("o['w'] = 3.0", "o['w'] = 4.0", "o.clear()")
    ),
    "keyword arguments": Kind(
        "o = {}\ndef g(x, w=2.0, **rest):\n    return x * w * (1 + len(rest))",
        "x = g(x, **o)\n",
        ("o['w'] = 3.0", "o['v'] = 4.0"),
    ),
    "star": Kind(
        "o = []\ndef g(x, *rest):\n    return x * (1 + len(rest))", "x = g(x, *o)\n", ("o.append(1)", "o.clear()")
    ),
    "merge of dicts": Kind(
        "o = {}\nT = {'w': 2.0}", "x = x * {**T, **o}['w']\n", ("o['w'] = 3.0", "T['w'] = 9.0", "o.clear()")
    ),
    "except in a helper": Kind(
        OBJECT + "\ndef get(o, d):\n    try:\n        return o.w\n    except AttributeError:\n        return d",
        "x = x * get(o, 2.0)\n",
        ("o.w = 3.0", "del o.w"),
    ),
    "contextlib.suppress": Kind(
        "import contextlib\no = {}",
        "with contextlib.suppress(KeyError):\n    x = x * o['w']\n",
        ("o['w'] = 3.0", "del o['w']"),
    ),
    "hasattr in a property": Kind(
        "class A:\n    @property\n    def w(self):\n        return self._w if hasattr(self, '_w') else 2.0\no = A()",
        "x = x * o.w\n",
        ("o._w = 3.0", "del o._w"),
    ),
    "vars in a helper": Kind(
        OBJECT + "\ndef n(o):\n    return 1 + len(vars(o))", "x = x * n(o)\n", ("o.w = 1", "del o.w")
    ),
    "is in a helper": Kind(
        BAG + "A = Bag()\no = Bag()\ndef same(a, b):\n    return a is b",
        "if same(o, A):\n    x = x * 2\n",
        ("o = A", "o = Bag()"),
    ),
    "any is": Kind(
        BAG + "T = [Bag(), Bag()]\no = T[1]", "if any(t is o for t in T):\n    x = x * 2\n", ("o = Bag()", "o = T[0]")
    ),
    "index by is": Kind(
        BAG + "T = [Bag(), Bag()]\no = T[1]", "x = x * [i for i, t in enumerate(T, 2) if t is o][0]\n", ("o = T[0]",)
    ),
    "is over modules": Kind(
        "o = nn.ModuleList([nn.ReLU(), nn.ReLU()])\nT = o[1]",
        "for m in o:\n    if m is T:\n        x = x * 2\n",
        ("T = o[0]", "T = nn.ReLU()"),
    ),
    "parameters by identity": Kind(
        "o = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])",
        "x = x * len(list(o.parameters()))\n",
        ("o[1].weight = o[0].weight", "o[1].bias = o[0].bias"),
    ),
    "modules by identity": Kind(
        "o = nn.ModuleList([nn.ReLU(), nn.ReLU()])",
        "x = x * len(list(o.modules()))\n",
        ("o[1] = o[0]", "o[1] = nn.ReLU()"),
    ),
    "buffer missing": Kind(
        "o = nn.Module()",
        "try:\n    x = x * o.w\nexcept AttributeError:\n    pass\n",
        ("o.register_buffer('w', torch.full((2,), 3.0))", "del o.w"),
    ),
    "_buffers": Kind(
        "o = nn.Module()",
        "if 'w' in o._buffers:\n    x = x * 2\n",
        ("o.register_buffer('w', torch.ones(2))", "del o.w"),
    ),
    "get_submodule": Kind(
        "o = nn.Module()",
        "try:\n    x = o.get_submodule('a')(x)\nexcept AttributeError:\n    pass\n",
        ("o.a = nn.Softplus()", "del o.a"),
    ),
    "ParameterDict": Kind(
        "o = nn.ParameterDict()",
        "x = x * o['w'] if 'w' in o else x\n",
        ("o['w'] = nn.Parameter(torch.full((2,), 3.0))", "del o['w']"),
    ),
    "defaultdict made by reading": Kind(
        "o = collections.defaultdict(lambda: 2.0)", "x = x * o['w']\n", ("o['w'] = 3.0", "del o['w']")
    ),
    "namespace vars": Kind("o = types.SimpleNamespace()", "x = x * (1 + len(vars(o)))\n", ("o.w = 1", "del o.w")),
    "class vars": Kind("class o:\n    pass", "x = x * (1 + ('w' in vars(o)))\n", ("o.w = 1", "del o.w")),
    "dir of a class": Kind("class o:\n    pass", "x = x * (1 + ('w' in dir(o)))\n", ("o.w = 1", "del o.w")),
    "annotations": Kind(
        "class o:\n    pass",
        "x = x * (1 + len(getattr(o, '__annotations__', {})))\n",
        ("o.__annotations__ = {'w': int}",),
    ),
    "del in a loop": Kind(
        "o = {'a': 1.0}",
        "for k in list(o):\n    if o[k] > 1:\n        del o[k]\nx = x * (1 + len(o))\n",
        ("o['b'] = 3.0", "o['c'] = 0.5"),
    ),
}
