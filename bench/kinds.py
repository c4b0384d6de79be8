"""PyTorch's registry of graph breaks beside the rules: ``python -m bench.kinds > docs/breaks.md``, on the newest torch.

Which kinds are mended is shown by programs, `tests/compiled/kind_cases.py`; why the others are not is said by group.
"""

from __future__ import annotations

import ast
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

CASES = Path(__file__).parents[1] / "tests" / "compiled" / "kind_cases.py"
SITE = "https://meta-pytorch.github.io/compile-graph-break-site/gb"

_GONE = "not in this registry"


@dataclass(frozen=True)
class Mended:
    """A kind that rules mend.

    cases: programs that break so in stock.  up_to: the last torch on which they do, if Dynamo has learnt it since.
    """

    rules: tuple[str, ...]
    cases: tuple[str, ...]
    up_to: str = ""


@dataclass(frozen=True)
class Group:
    """Kinds that are left, for one reason."""

    title: str
    why: str
    kinds: str


# By number, in its order.
MENDED = {
    "GB0007": Mended(("defer",), ("warns",)),
    "GB0033": Mended(("where", "trap", "value"), ("is_equal", "is_near", "makes_a_range", "takes_a_row")),
    "GB0036": Mended(("value", "where"), ("selects", "counts_places", "repeats", "finds_distinct")),
    "GB0059": Mended(("defer", "value"), ("prints", "prints_to_stderr")),
    "GB0109": Mended(("value",), ("lists",)),
    "GB0124": Mended(("value", "trap"), ("reads_a_number", "slices", "checks")),
    "GB0170": Mended(
        ("where", "trap", "value"), ("branches", "raises", "asserts", "chooses", "chains", "asks_any", "warns_if_large")
    ),
    "GB0206": Mended(("grad",), ("sets_requires_grad",), "2.14"),
    "GB0207": Mended(("value",), ("sorted_options",), "2.13"),
    "GB0208": Mended(("value",), ("is_on_the_default_device", "rounds_down")),
    "GB0246": Mended(("value",), ("one_hot",)),
    "GB0291": Mended(("defer",), ("logs", "logs_a_value")),
    "GB6215": Mended(("defer",), ("logs_by_a_lookup",)),
    "GB6297": Mended(("value",), ("applies_twice",)),
    "GB7000": Mended(("sweep",), ("calls_experts",)),
    "GB8985": Mended(("grad",), ("asks_for_a_gradient",)),
}

LEFT = (
    Group(
        "What only data knows, or no fake tensor can tell",
        "A size, a truth or a kernel that nothing but the data decides. What has another form is mended above, by "
        "the same rules; these are the forms that have none: an operator without a kernel for fake tensors, a list "
        "that is indexed by several numbers, a check whose message is no function of its own.",
        """
        GB0002 GB0018 GB0037 GB0038 GB0043 GB0048 GB0049 GB0064 GB0080 GB0087 GB0090 GB0112 GB0213 GB0218 GB0224
        GB0288 GB0360 GB2922 GB3069 GB4315 GB6270 GB7489 GB7596 GB9158 GB9211 GB9352 GB9840
        """,
    ),
    Group(
        "Functions that Dynamo does not look into",
        "They are written in C, or torch has them on a list. What is known of one, as data "
        "(`rules/defer/known_calls.py`, `rules/value/forms.py`), is mended; a rewrite that knew nothing of a function "
        "could not say what it does.",
        """
        GB0008 GB0009 GB0117 GB0121 GB0147 GB0148 GB0156 GB0177 GB0193 GB0296 GB9493
        """,
    ),
    Group(
        "Python's objects, as far as Dynamo has no model of them",
        "Attributes, hashes, texts, comparisons, iterators and classes that run code of their own, or C. A rewrite "
        "would have to do by other means what the class of the object does, and only the class knows what that is. "
        "Locks and context variables are here: a lock is held from one statement to another, and what is read under "
        "it has been read before the graph runs; a graph has no place where it could be taken.",
        """
        GB0003 GB0004 GB0005 GB0006 GB0010 GB0011 GB0012 GB0020 GB0021 GB0022 GB0023 GB0027 GB0028 GB0031 GB0032
        GB0035 GB0047 GB0050 GB0051 GB0054 GB0055 GB0057 GB0060 GB0061 GB0062 GB0063 GB0069 GB0070 GB0071 GB0075
        GB0076 GB0077 GB0079 GB0081 GB0082 GB0084 GB0086 GB0088 GB0089 GB0091 GB0094 GB0095 GB0097 GB0111 GB0113
        GB0114 GB0115 GB0116 GB0118 GB0119 GB0120 GB0122 GB0131 GB0132 GB0133 GB0134 GB0135 GB0136 GB0137 GB0141
        GB0142 GB0143 GB0150 GB0151 GB0152 GB0153 GB0154 GB0155 GB0160 GB0161 GB0162 GB0167 GB0168 GB0169 GB0171
        GB0174 GB0175 GB0176 GB0178 GB0179 GB0180 GB0182 GB0183 GB0184 GB0186 GB0187 GB0188 GB0189 GB0190 GB0191
        GB0192 GB0194 GB0195 GB0196 GB0197 GB0198 GB0200 GB0201 GB0202 GB0203 GB0204 GB0205 GB0211 GB0214 GB0215
        GB0217 GB0221 GB0222 GB0223 GB0243 GB0252 GB0253 GB0254 GB0255 GB0256 GB0257 GB0258 GB0259 GB0260 GB0261
        GB0262 GB0263 GB0268 GB0270 GB0271 GB0273 GB0278 GB0280 GB0281 GB0287 GB0289 GB0292 GB0299 GB0354 GB0364
        GB0365 GB0366 GB0367 GB0368 GB0369 GB0459 GB0467 GB0507 GB0569 GB0682 GB0755 GB0781 GB0808 GB0811 GB0871
        GB1157 GB1220 GB1273 GB1275 GB1350 GB1354 GB1392 GB1472 GB1583 GB1584 GB1618 GB1752 GB1940 GB2404 GB2412
        GB2444 GB2483 GB2544 GB2549 GB2582 GB2710 GB2736 GB2852 GB2861 GB3003 GB3006 GB3241 GB3383 GB3697 GB3775
        GB3780 GB3837 GB3934 GB4198 GB4234 GB4240 GB4271 GB4347 GB4393 GB4399 GB4411 GB4608 GB4749 GB4818 GB4841
        GB4880 GB5017 GB5195 GB5380 GB5458 GB5460 GB5565 GB5687 GB5849 GB5904 GB6012 GB6025 GB6053 GB6066 GB6404
        GB6604 GB6622 GB6815 GB6890 GB6999 GB7151 GB7168 GB7230 GB7286 GB7312 GB7502 GB7510 GB7637 GB7786 GB7906
        GB7968 GB8315 GB8335 GB8435 GB8887 GB8977 GB9137 GB9192 GB9198 GB9277 GB9316 GB9368 GB9458 GB9522 GB9548
        GB9561 GB9625 GB9648 GB9672 GB9890 GB9899
        """,
    ),
    Group(
        "What another break brings with it",
        "Dynamo cannot go on behind a break in a loop, a `with` or an inlined call, or cannot make again what lives "
        "across one. They go where the break itself is mended.",
        """
        GB0019 GB0024 GB0034 GB0039 GB0052 GB0065 GB0066 GB0092 GB0093 GB0096 GB0199 GB0219 GB0272 GB0274 GB0276
        GB0283 GB0295 GB1297 GB1319 GB2069 GB2533 GB2669 GB4501 GB4778 GB5696 GB6276 GB6956 GB7425 GB8949 GB9528
        GB9898
        """,
    ),
    Group(
        "What the program asks for",
        "A break, a skip or a disabled function that somebody has written down. It is what they want.",
        """
        GB0025 GB0030 GB0098 GB0099 GB0269 GB0275 GB0284 GB0376 GB0377 GB4297 GB4636
        """,
    ),
    Group(
        "Gradients inside of the graph",
        "`backward()`, `autograd.grad`, hooks, parameters that are made, functions of autograd and function "
        "transforms that do what AOTAutograd has no form for. [Grad](grad.md) mends the ones above, and GB0125 of "
        "a buffer; what else changes who has a gradient has to stay.",
        """
        GB0013 GB0029 GB0083 GB0085 GB0100 GB0101 GB0104 GB0108 GB0123 GB0125 GB0138 GB0139 GB0140 GB0144 GB0145
        GB0149 GB0165 GB0166 GB0173 GB0181 GB0209 GB0225 GB0226 GB0228 GB0229 GB0235 GB0237 GB0244 GB0264 GB0328
        GB0346 GB0347 GB0348 GB0352 GB0358 GB0371 GB0372 GB0373 GB0442 GB1042 GB1140 GB1381 GB1724 GB2019 GB2464
        GB4372 GB4927 GB5748 GB5821 GB6663 GB7054 GB7299 GB7324 GB7444 GB7935 GB8982 GB9182 GB9186 GB9741 GB9958
        """,
    ),
    Group(
        "Higher-order operators, strict mode, Triton",
        "`torch.cond`, `scan`, `map`, `while_loop` and their kin, flex attention and kernels take what their page "
        "says they take. Most of these are errors of the program that eager has too.",
        """
        GB0017 GB0040 GB0041 GB0042 GB0067 GB0068 GB0073 GB0074 GB0078 GB0102 GB0216 GB0236 GB0238 GB0239 GB0251
        GB0301 GB0302 GB0303 GB0304 GB0305 GB0306 GB0307 GB0308 GB0309 GB0310 GB0311 GB0312 GB0313 GB0314 GB0315
        GB0316 GB0317 GB0318 GB0319 GB0320 GB0321 GB0322 GB0323 GB0324 GB0325 GB0326 GB0327 GB0329 GB0330 GB0331
        GB0332 GB0333 GB0334 GB0335 GB0336 GB0337 GB0338 GB0339 GB0340 GB0341 GB0342 GB0343 GB0344 GB0345 GB0349
        GB0350 GB0351 GB0353 GB0355 GB0356 GB0361 GB1075 GB1177 GB1380 GB1824 GB2520 GB2977 GB3326 GB3840 GB4026
        GB4307 GB4413 GB4774 GB5884 GB6017 GB6183 GB6210 GB6735 GB7072 GB7694 GB8165 GB8206 GB8593 GB9203 GB9509
        GB9760
        """,
    ),
    Group(
        "Tensors of another kind",
        "Sparse, nested and dual tensors, subclasses, script modules, opaque objects, FSDP of the old kind, "
        "addresses of data. The rules leave tensors with behaviour of their own alone.",
        """
        GB0000 GB0001 GB0015 GB0016 GB0026 GB0044 GB0053 GB0103 GB0129 GB0130 GB0163 GB0164 GB0227 GB0233 GB0234
        GB0245 GB0265 GB0266 GB0267 GB0277 GB0282 GB0357 GB0359 GB0362 GB0363 GB0374 GB0375 GB0998 GB1501 GB1576
        GB1739 GB2078 GB4695 GB5282 GB5976 GB7020 GB7685 GB7905 GB8587 GB8656 GB8843 GB9118 GB9567
        """,
    ),
    Group(
        "Writes that give a tensor other memory",
        "`resize_`, `set_`, `.data = ...`, `out=` of another shape: whoever holds the tensor, or a view of it, sees "
        "it. A copy would not be it.",
        """
        GB0056 GB0058 GB0072 GB0126 GB0127 GB0128 GB0220 GB0240 GB0241 GB0242 GB0247 GB4197 GB5491 GB6602
        """,
    ),
    Group(
        "Devices, streams, profilers and other processes",
        "They have an effect at a moment, beside what the graph computes; behind the graph it would be another one.",
        """
        GB0045 GB0046 GB0146 GB0172 GB0210 GB0212 GB0230 GB0248 GB0249 GB0279 GB0285 GB0286 GB0370 GB1750 GB2473
        GB2696 GB3343 GB4996 GB5173 GB5210 GB6441 GB9193 GB9300 GB9860
        """,
    ),
    Group(
        "Random generators",
        "What a generator of the program draws comes out of its state, which a graph does not have.",
        """
        GB0107 GB0110 GB0297 GB7650
        """,
    ),
    Group(
        "LSTM, GRU and RNN",
        "Dynamo traces them only where `torch._dynamo.config.allow_rnn` says so. In mended modules an `nn.LSTM` on a "
        "CPU without gradients is an operation of the graph; the others would be unrolled.",
        """
        GB0014
        """,
    ),
    Group(
        "NumPy",
        "Dynamo computes with torch what NumPy would, which need not be the same to the bit; what it has no "
        "counterpart for stays NumPy's.",
        """
        GB0105 GB0106 GB0157 GB0158 GB0159 GB0185 GB0231 GB0232 GB0250 GB0290 GB0293 GB0294 GB0298 GB0300
        """,
    ),
)


def registry() -> dict[str, str]:
    """The kinds that the installed torch knows: by number, what it says of each."""
    found = util.find_spec("torch")
    assert found is not None
    assert found.origin is not None
    path = Path(found.origin).parent / "_dynamo" / "graph_break_registry.json"
    kinds = json.loads(path.read_text(encoding="utf-8"))
    return {number: versions[0]["Gb_type"] for number, versions in sorted(kinds.items())}


def left() -> dict[str, Group]:
    """By number, the group that a kind is left with."""
    return {number: group for group in LEFT for number in group.kinds.split()}


def page(kinds: dict[str, str]) -> Iterator[str]:
    """The page of the docs."""
    yield "# PyTorch's kinds of graph breaks"
    yield ""
    yield f"Made by `python -m bench.kinds`, with the registry of torch {metadata.version('torch').partition('+')[0]}:"
    yield f"{len(kinds)} kinds. {sum(number in MENDED for number in kinds)} of them are mended, each in forms that the"
    yield "rules' pages describe; `tests/compiled/test_kinds.py` compiles programs for each, without the hook and with"
    yield "it. For the others a rewrite has no exact form; the reasons stand by group."
    yield ""
    yield "## Mended"
    yield ""
    yield "| number | PyTorch's text | rule | for example | breaks up to torch |"
    yield "|---|---|---|---|---|"
    cases = _cases()
    for number, mended in MENDED.items():
        rules = ", ".join(f"[{rule}]({rule}.md)" for rule in mended.rules)
        shown = "<br>".join(f"`{cases[case]}`" for case in mended.cases)
        text = _escaped(kinds.get(number, _GONE))
        yield f"| {_link(number)} | {text} | {rules} | {shown} | {mended.up_to or 'every one'} |"
    for group in LEFT:
        yield from ("", f"## {group.title}", "", group.why, "", "| number | PyTorch's text |", "|---|---|")
        for number in group.kinds.split():
            yield f"| {_link(number)} | {_escaped(kinds.get(number, _GONE))} |"


def _link(number: str) -> str:
    return f"[{number}]({SITE}/{number.lower()}.html)"


def _escaped(text: str) -> str:
    parts = text.strip().split("`")  # every second one is code
    plain = ("".join(f"\\{letter}" if letter in "*_<>|" else letter for letter in part) for part in parts[::2])
    return "`".join(part for pair in itertools.zip_longest(plain, parts[1::2]) for part in pair if part is not None)


def _cases() -> dict[str, str]:
    """By name of a case, the statement that it is about: the one before the `return`, its first line."""
    functions = [
        each for each in ast.parse(CASES.read_text(encoding="utf-8")).body if isinstance(each, ast.FunctionDef)
    ]
    about = {function.name: function.body[-2] for function in functions if len(function.body) > 1}
    return {name: ast.unparse(statement).splitlines()[0].replace("|", "\\|") for name, statement in about.items()}


if __name__ == "__main__":
    print("\n".join(page(registry())))
