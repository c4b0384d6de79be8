"""May a value depend on the data of a tensor?  Evidence from the code alone; the traced value has the last word."""

from __future__ import annotations

import ast
import re
import weakref
from collections.abc import Callable, Collection, Iterator
from enum import IntEnum
from functools import cached_property
from typing import TypeGuard

from . import data_shapes, tensor_ops
from .draws import DRAWING
from .names import root_name, walk
from .scopes import Function, ModuleScope
from .unknown import COMPARED, OF_NUMBERS, STRANGERS, TORCH, Unknown, is_membership

# ``torch.Tensor``, ``Optional[torch.LongTensor]`` or ``torch.Tensor | None``; not a container of tensors.
_TENSOR_TYPE = re.compile(r"(?:typing\.)?(?:Optional\[)?(?:\w+\.)*(?:Float|Long|Bool|Int|Half)?Tensor\]?(?:\|None)?")
_SCALAR_TYPE = re.compile(r"(?:Optional\[)?(?:int|float|bool|str)\]?(?:\|(?:int|float|bool|None))*")
# What hardly anything but a tensor has.
_OF_TENSORS = tensor_ops.PREDICATES | tensor_ops.REDUCTIONS_TO_PYTHON | tensor_ops.OF_DISTRIBUTED
_DRAWING = frozenset({"bernoulli", "rand", "rand_like", "randint", "randn", "random", "uniform"})
_BUILTINS = frozenset(
    {"abs", "all", "any", "bool", "float", "int", "max", "min", "pow", "round", "sum"}
)  # of a tensor: what its data decides
_IMPLIED = "."  # no function has this name
_USUAL_OF_TENSORS = tensor_ops.SPECULABLE - tensor_ops.METADATA  # of a tensor they give one; much else has them too


class Taint(IntEnum):
    """How much speaks for "this expression holds tensor data": nothing, something, or its very form.

    OPEN, of tests alone: nothing speaks for it, and nothing against it.
    """

    NO = 0
    OPEN = 1
    MAYBE = 2
    YES = 3


def evidence_of(function: Function, scope: ModuleScope) -> Evidence:
    """What speaks for the values of `function` being tensor data; made once."""
    known: Evidence | None = scope.memory.get(function.qualname)
    if known is None or known.function is not function:
        known = scope.memory[function.qualname] = Evidence(function, scope)
    return known


def implied_attributes(scope: ModuleScope) -> frozenset[str]:
    """The attributes that a function of the module sets to numbers of tensors, or where a branch may be on data."""
    found: frozenset[str] | None = scope.memory.get(_IMPLIED)
    if found is None:
        scope.memory[_IMPLIED] = frozenset()  # while it is being found
        stores = [place.statement for place in scope.places if isinstance(place.statement, (ast.Assign, ast.AugAssign))]
        found = frozenset(name for store in stores if _reads_number(store.value) for name in _attributes_set(store))
        functions = {
            place.function.qualname: place.function for place in scope.places if _stores_number(place.statement)
        }
        evidence = [evidence_of(function, scope) for function in functions.values()]
        while (more := found.union(*(each.stores_under_data(found) for each in evidence))) != found:
            found = more
        scope.memory[_IMPLIED] = found
    return found


class Evidence:
    """Taint of the names and expressions of one function."""

    def __init__(self, function: Function, scope: ModuleScope) -> None:
        self.function = function
        # Weakly, since the scope keeps this: a circle of references would keep the whole syntax tree.
        self._scope: ModuleScope = scope if isinstance(scope, weakref.ProxyType) else weakref.proxy(scope)
        self._tests: dict[ast.expr, Taint] = {}

    @cached_property
    def _names(self) -> dict[str, Taint]:
        known: dict[str, Taint] = {}
        for argument in _arguments(self.function.node):
            if argument.annotation is not None and _TENSOR_TYPE.fullmatch(_text_of(argument.annotation)):
                known[argument.arg] = Taint.YES
        self.__dict__["_names"] = known  # what is being computed is what the recursion asks for
        for name in self.untyped - known.keys():
            if self._scope.is_handed_buffer(self.function, name):
                known[name] = Taint.MAYBE
        while True:
            before = dict(known)
            for target, value in self._bindings:
                if known.get(target) is not Taint.YES and (taint := self.of(value)) > known.get(target, Taint.NO):
                    known[target] = taint
            for bound, iterated in self._unpacked_tensors:
                if self.of(iterated) is not Taint.NO:
                    known.update(dict.fromkeys(_names_in(bound) - known.keys(), Taint.MAYBE))
            if known == before:
                return known

    @cached_property
    def _unpacked_tensors(self) -> list[tuple[ast.expr, ast.expr]]:
        """Targets of loops over tensors and their numbers, ``for n in counts.tolist()``, with what each goes over."""
        lists = {target for target, value in self._bindings if _is_list_of_tensor(value)}
        lists |= {target for target, value in self._bindings if _draws_places(value)}
        return [
            (each, iterated)
            for target, whole in self._unpackings()
            for each, iterated in _iterated(target, whole)
            if _is_list_of_tensor(iterated) or _draws_places(iterated) or getattr(iterated, "id", "") in lists
        ]

    @cached_property
    def untyped(self) -> frozenset[str]:
        """The parameters of which the annotation does not say that they hold one number, or text."""
        return frozenset(
            argument.arg
            for argument in _arguments(self.function.node)
            if argument.annotation is None or not _SCALAR_TYPE.fullmatch(_text_of(argument.annotation))
        )

    @cached_property
    def items(self) -> frozenset[str]:
        """The names bound to items of what may be a tensor, an untyped parameter too, and to what is made of those.

        Bound by loops, comprehensions and unpacking; made by sums and by lists of them.
        """
        unpacked = list(self._unpackings())
        found = {target for target, value in self._bindings if self._is_last_item(value)}
        while True:
            before = len(found)
            for target, iterated in unpacked:
                found |= self._items_bound(target, iterated, found)
            for name, value in self._bindings if found else ():
                if _is_calculated(value) and not found.isdisjoint(_names_in(value)):
                    found.add(name)
            if len(found) == before:
                return frozenset(found)

    def is_of_strangers(self, node: ast.expr) -> bool:
        """Is it a comparison in which a call of numpy takes part, or a number that Python's `random` has drawn?"""
        return isinstance(node, ast.Compare) and any(
            self._calls(part, "numpy.") or self._calls(part, "random.") or getattr(part, "id", "") in self._drawn
            for part in walk(node)
        )

    def _calls(self, node: ast.AST, package: str) -> bool:
        return isinstance(node, ast.Call) and self._scope.imports.qualified(node.func).startswith(package)

    @cached_property
    def _drawn(self) -> frozenset[str]:
        """The names that are bound to calls of Python's `random`."""
        return frozenset(target for target, value in self._bindings if self._calls(value, "random."))

    def _is_last_item(self, node: ast.expr) -> bool:
        """``positions[-1] + 1``, of a parameter that nobody says the type of: the length of a sequence."""
        item = node.left if isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant) else node
        last = isinstance(item, ast.Subscript) and isinstance(item.slice, ast.UnaryOp)
        return last and isinstance(item.value, ast.Name) and item.value.id in self.untyped  # type: ignore[attr-defined]

    @cached_property
    def masks(self) -> frozenset[str]:
        """The names that are bound to comparisons, joined by ``&`` and ``|`` perhaps, of whatever there is."""
        found: set[str] = set()
        for target, value in self._bindings:
            if is_comparison(value, found):
                found.add(target)
        return frozenset(found)

    def _unpackings(self) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Targets, and that whose items they are bound to: ``for a in b``, ``a, b = ab[i]``, ``[... for a in b]``."""
        for statement in self.function.statements:
            if isinstance(statement, ast.For):
                yield statement.target, statement.iter
            elif _unpacks(statement, (ast.Name, ast.Subscript)):
                yield statement.targets[0], statement.value
            part = getattr(statement, "test", None) if hasattr(statement, "body") else statement
            if part is not None and self._scope.may_hold(b"for", part):
                comprehensions = (node for node in walk(part) if isinstance(node, ast.comprehension))
                yield from ((node.target, node.iter) for node in comprehensions)

    def _unpacked_calls(self) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Targets, and the calls whose results they are bound to: ``a, b = function(x)``."""
        return ((s.targets[0], s.value) for s in self.function.statements if _unpacks(s, ast.Call))

    @cached_property
    def _bindings(self) -> list[tuple[str, ast.expr]]:
        found: list[tuple[str, ast.expr]] = []
        for statement in self.function.statements:
            if isinstance(statement, ast.Assign):
                for target in statement.targets:
                    found += _pairs(target, statement.value)
            elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)) and statement.value is not None:
                found += _pairs(statement.target, statement.value)
            elif isinstance(statement, (ast.If, ast.While)) and self._scope.may_hold(b":=", statement.test):
                tested = walk(statement.test)
                found += [(node.target.id, node.value) for node in tested if isinstance(node, ast.NamedExpr)]
        return found

    def may_be_mask(self, node: ast.expr) -> bool:
        """May it be an index that selects by truths, or by numbers out of a tensor?"""
        if isinstance(node, (ast.Constant, ast.Slice)):
            return False
        if is_comparison(node, self.masks):
            return True
        if isinstance(node, (ast.Compare, ast.UnaryOp, ast.Name, ast.Call, ast.BinOp, ast.Attribute)):
            return self.of(node) is not Taint.NO
        return False

    def _items_bound(self, target: ast.expr, whole: ast.expr, items: Collection[str]) -> set[str]:
        found: set[str] = set()
        for each, iterated in _iterated(target, whole):
            handed_in = isinstance(iterated, ast.Name) and iterated.id in self.untyped
            if handed_in or root_name(iterated) in items or self.of(iterated) is not Taint.NO:
                found |= _names_in(each)
        return found

    def of_test(self, node: ast.expr) -> Taint:
        """The taint of a test, kept: several rules ask for it, when all that it depends on is known."""
        if node not in self._tests:
            self._tests[node] = (
                self.of(node) or self._of_counted(node) or self._of_implied(node) or self._of_open_test(node)
            )
        return self._tests[node]

    def _of_counted(self, node: ast.expr) -> Taint:
        if isinstance(node, ast.BoolOp):
            return max(map(self._of_counted, node.values))
        if isinstance(node, ast.Name):
            return Taint.MAYBE if node.id in self._counts else Taint.NO
        if isinstance(node, ast.Compare) and any(map(self._of_counted, (node.left, *node.comparators))):
            return Taint.MAYBE
        return Taint.MAYBE if self._shaped and data_shapes.counts(node, self._shaped) else Taint.NO

    def _of_implied(self, node: ast.expr) -> Taint:
        """Does it ask for a count or a flag that a branch on data has set: ``if self.bad_epochs >= patience``?"""
        is_asked = isinstance(
            node, (ast.Attribute, ast.BinOp, ast.BoolOp, ast.Call, ast.Compare, ast.Name, ast.UnaryOp)
        )
        return Taint.OPEN if is_asked and self._asks_implied(node) else Taint.NO

    def _asks_implied(self, node: ast.expr) -> bool:
        if not self._implied.isdisjoint(_names_in(node)):
            return True
        attributes = implied_attributes(self._scope)
        return bool(attributes) and (
            _compares_attribute(node, attributes) or not self._calculated.isdisjoint(_names_in(node))
        )

    def is_drawn(self, node: ast.expr) -> bool:
        """Does it ask for a number that is drawn, as layers ask that are dropped at random?"""
        return _draws(node) or not self._of_draws.isdisjoint(_names_in(node))

    @cached_property
    def _of_draws(self) -> frozenset[str]:
        return frozenset(target for target, value in self._bindings if _draws(value))

    @cached_property
    def _branches_on_data(self) -> list[ast.If]:
        """The branches whose test may be data."""
        branches = [each for each in self.function.statements if isinstance(each, ast.If)]
        return [each for each in branches if (self.of(each.test) or self._of_counted(each.test)) is not Taint.NO]

    @cached_property
    def _implied(self) -> frozenset[str]:
        """The names that are bound to numbers of Python's, counted up or appended to, where a branch may be on data.

        So too behind a branch that ends a step of a loop.
        """
        choices = [(name, value) for name, value in self._bindings if isinstance(value, ast.IfExp)]
        found = {name for name, choice in choices if _is_of_python(choice) and self.of(choice.test) is not Taint.NO}
        branches = self._branches_on_data
        loops = [each for each in self.function.statements if branches and isinstance(each, (ast.For, ast.While))]
        around = [node for loop in loops if not {*branches}.isdisjoint(nodes := [*walk(*loop.body)]) for node in nodes]
        sides = {node for branch in branches for node in walk(*branch.body, *branch.orelse)}
        for node in (*around, *sides):
            if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Assign) and node in sides):
                pairs = [pair for target in _targets(node) for pair in _pairs(target, node.value)]
                found |= {name for name, value in pairs if _is_of_python(value)}
            elif (appended := _appended(node)) is not None:
                found.add(appended[0])
        return frozenset(found | self._filled)

    @cached_property
    def _filled(self) -> set[str]:
        """The names of lists to which what may be data is appended: ``residuals.append(r.item())``."""
        appended = [
            _appended(each.value)
            for each in self.function.statements
            if self._scope.may_hold(b".append", each) and isinstance(each, ast.Expr)
        ]
        return {name for name, value in filter(None, appended) if self.of(value) is not Taint.NO}

    @cached_property
    def _calculated(self) -> frozenset[str]:
        """The names that are bound to what is calculated with such attributes."""
        attributes = implied_attributes(self._scope)
        bound = [(name, value) for name, value in self._bindings if isinstance(value, (ast.Attribute, ast.BinOp))]
        return frozenset(name for name, value in bound if _compares_attribute(value, attributes))

    def stores_under_data(self, known: Collection[str]) -> set[str]:
        """The attributes that it stores numbers to where the test of a branch may be data, or is about `known` ones."""
        found: set[str] = set()
        for branch in self.function.statements:
            if not isinstance(branch, ast.If):
                continue
            stored = set(_numbers_stored(branch))
            if stored and self._decides_by(branch.test, known):
                found |= stored
        return found

    def _decides_by(self, test: ast.expr, known: Collection[str]) -> bool:
        asked = {part.attr for part in walk(test) if isinstance(part, ast.Attribute)}
        return (self.of(test) or self._of_open_test(test)) is not Taint.NO or not asked.isdisjoint(known)

    @cached_property
    def _shaped(self) -> frozenset[str]:
        """The names of tensors whose sizes the data decides."""
        unpacked = [(name, call) for target, call in self._unpacked_calls() for name in _names_in(target)]
        return data_shapes.names_shaped_by_data([*self._bindings, *unpacked], self.may_be_mask, self._gives_shaped)

    @cached_property
    def _perhaps_shaped(self) -> frozenset[str]:
        """The same, where what is handed in may be a mask: ``x[b][valid[b]]``."""
        return data_shapes.names_shaped_by_data(self._bindings, self._may_select, self._gives_shaped)

    def _may_select(self, index: ast.expr) -> bool:
        is_such = isinstance(index, (ast.Attribute, ast.Call, ast.Name, ast.Subscript))
        return self.may_be_mask(index) or (is_such and self.may_hold(index))

    def _gives_shaped(self, call: ast.Call) -> bool:
        """Is it a function of the module that returns such a tensor, alone or among others?"""
        helper = self._helper(call.func)
        return helper is not None and evidence_of(helper, self._scope).returns_shaped

    @cached_property
    def returns_shaped(self) -> bool:
        self.__dict__["returns_shaped"] = False  # for a function that calls itself
        returned = [node.value for node in self.function.statements if isinstance(node, ast.Return) and node.value]
        parts = [part for value in returned for part in (value.elts if isinstance(value, ast.Tuple) else [value])]
        return any(isinstance(part, ast.Name) and part.id in self._shaped for part in parts)

    @cached_property
    def _counts(self) -> frozenset[str]:
        """The names of such sizes."""
        return frozenset(target for target, value in self._bindings if data_shapes.counts(value, self._shaped))

    def may_hold(self, node: ast.expr) -> bool:
        """May it be a tensor, or hold some, for all that the text says?"""
        return self._unknown.holds(node)

    def may_give(self, node: ast.expr) -> bool:
        """May it be one, or what a part of the object gives, of which nothing is known here?"""
        return self._unknown.gives(node)

    def _of_open_test(self, node: ast.expr) -> Taint:
        if isinstance(node, ast.Compare):
            if self._asks_whether_found(node):
                return Taint.MAYBE
            is_open = self._unknown.compares(node) or self._unknown.looks_in(node) or self._compares_made(node)
            is_open = is_open or self._compares_answer(node) or data_shapes.counts(node, self._perhaps_shaped)
            return Taint.OPEN if is_open else Taint.NO
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._of_open_test(node.operand)
        if isinstance(node, ast.Call):
            if getattr(node.func, "id", "") in ("all", "any") and len(node.args) == 1:
                (items,) = node.args
                if isinstance(items, (ast.GeneratorExp, ast.ListComp)):
                    return self.of_test(items.elt)
                parts = items.elts if isinstance(items, (ast.List, ast.Tuple)) else ()
                return max(map(self.of_test, parts), default=self._of_open_test(items))
            return Taint.OPEN if self._may_answer(node) else Taint.NO
        if isinstance(node, ast.Name):
            return Taint.OPEN if node.id in self._answers or self._unknown.is_handed_in(node.id) else Taint.NO
        if isinstance(node, ast.Attribute):
            return Taint.OPEN if self._is_answer(node) else Taint.NO
        return max(map(self._of_open_test, node.values)) if isinstance(node, ast.BoolOp) else Taint.NO

    def _compares_made(self, node: ast.Compare) -> bool:
        """Does it compare what a function has made of data: ``epoch = clamp(step.item() - 3)``, ``if epoch <= 0``?"""
        operands = (node.left, *node.comparators)
        names = {each.id for each in operands if isinstance(each, ast.Name)}
        is_asked = not (names.isdisjoint(self._made) and names.isdisjoint(self._answers))
        return is_asked and all(isinstance(op, COMPARED) for op in node.ops)

    def _compares_answer(self, node: ast.Compare) -> bool:
        """Does it compare an attribute in which the module stores what may be data: ``if self.num_found == 0``?"""
        attributes = [each for each in (node.left, *node.comparators) if isinstance(each, ast.Attribute)]
        return all(isinstance(op, COMPARED) for op in node.ops) and any(map(self._is_answer, attributes))

    def _asks_whether_found(self, node: ast.Compare) -> bool:
        """Is it ``found is None``, of what a branch on data has bound, or a function returns that has one?"""
        match node:
            case ast.Compare(ast.Name(spelling), [ast.Is() | ast.IsNot()], [ast.Constant(None)]):
                return spelling in self._found
        return False

    @cached_property
    def _found(self) -> frozenset[str]:
        """The names that a branch on data binds, and those bound to calls of functions of the module that have one."""
        nodes = [node for each in self._branches_on_data for node in walk(*each.body, *each.orelse)]
        stores = [node for node in nodes if isinstance(node, ast.Assign)]
        bound = {target.id for store in stores for target in store.targets if isinstance(target, ast.Name)}
        helpers = [(name, self._helper(value.func)) for name, value in self._bindings if isinstance(value, ast.Call)]
        asked = {name for name, helper in helpers if helper and evidence_of(helper, self._scope).returns_none_by_data}
        return frozenset(bound | asked)

    @cached_property
    def returns_none_by_data(self) -> bool:
        """Does the function return a name that a branch on data binds, and something else otherwise?"""
        self.__dict__["returns_none_by_data"] = False  # for a function that calls itself
        returned = [each.value for each in self.function.statements if isinstance(each, ast.Return)]
        return any(isinstance(value, ast.Name) and value.id in self._found for value in returned)

    @cached_property
    def _made(self) -> frozenset[str]:
        return self._bound_to(self._unknown.makes_of_data)

    def _bound_to(self, is_such: Callable[[ast.Call], bool]) -> frozenset[str]:
        """The names that are bound to such calls."""
        return frozenset(name for name, value in self._bindings if isinstance(value, ast.Call) and is_such(value))

    def _is_answer(self, node: ast.Attribute) -> bool:
        """Does the module store in the attribute what may be data, or what a function answers: ``if self.overflow``?"""
        for function, value in self._scope.assigned.get(node.attr, ()):
            evidence = evidence_of(function, self._scope)
            if evidence.of(value) or (isinstance(value, ast.Call) and evidence._may_answer(value)):
                return True
        return False

    def _may_answer(self, call: ast.Call) -> bool:
        """Does it ask a function about tensors that may answer by their data, as far as its text is known?"""
        if not self._unknown.answers(call):
            return False
        helper = self._helper(call.func)
        return helper is None or evidence_of(helper, self._scope).decides

    @cached_property
    def decides(self) -> bool:
        """Does the function return what may be data, or branch on such?"""
        self.__dict__["decides"] = False  # for a function that calls itself
        tests = [each.test for each in self.function.statements if isinstance(each, ast.If)]
        return self.returned is not Taint.NO or any(self.of_test(test) is not Taint.NO for test in tests)

    @cached_property
    def _answers(self) -> frozenset[str]:
        """The names that are bound to what functions answer that are asked about tensors."""
        return self._bound_to(self._may_answer)

    @cached_property
    def _unknown(self) -> Unknown:
        unpacked = [*self._unpackings(), *self._unpacked_calls()]
        bindings = [*self._bindings, *((name, value) for target, value in unpacked for name in _names_in(target))]
        return Unknown(
            self.function.node, bindings, lambda node: self.of(node) is not Taint.NO, self._scope.imports.qualified
        )

    def of(self, node: ast.expr) -> Taint:
        """The taint of the value of `node`."""
        if isinstance(node, ast.Name):
            return self._names.get(node.id, Taint.NO)
        if isinstance(node, ast.Constant):
            return Taint.NO
        if isinstance(node, ast.Attribute):
            return Taint.MAYBE if self._scope.is_buffer(node) else Taint.NO
        if isinstance(node, ast.Call):
            return self._of_call(node)
        if isinstance(node, ast.Compare):
            if is_membership(node):
                container = node.comparators[0]
                return self.of(node.left if isinstance(container, (ast.List, ast.Tuple)) else container)
            if not all(isinstance(op, COMPARED) for op in node.ops):
                return Taint.NO
            return max(map(self.of, (node.left, *node.comparators)))
        if isinstance(node, ast.BinOp):
            return max(self.of(node.left), self.of(node.right))
        if isinstance(node, ast.UnaryOp):
            return self.of(node.operand)
        if isinstance(node, ast.BoolOp):
            return max(map(self.of, node.values))
        if isinstance(node, ast.IfExp):
            return max(self.of(node.body), self.of(node.orelse))
        if isinstance(node, (ast.Subscript, ast.NamedExpr)):
            return self.of(node.value)
        return self.of(node.elt) if isinstance(node, (ast.GeneratorExp, ast.ListComp)) else Taint.NO

    def _of_call(self, call: ast.Call) -> Taint:
        qualified = self._scope.imports.qualified(call.func)
        if qualified in DRAWING:
            return Taint.YES  # it is a tensor where the graph compares it
        name = qualified.rpartition(".")[2] or _bare_name(call.func)
        if name in tensor_ops.TENSOR_RESULT or name in _OF_TENSORS:
            if qualified.startswith(TORCH):
                return Taint.YES
            if isinstance(call.func, ast.Attribute) and not qualified.startswith(STRANGERS):
                sure = name in _OF_TENSORS or self.of(call.func.value) > Taint.NO
                return Taint.YES if sure else Taint.MAYBE
        if name in _USUAL_OF_TENSORS and isinstance(call.func, ast.Attribute) and not qualified.startswith(STRANGERS):
            return self.of(call.func.value)
        if qualified in OF_NUMBERS or (name in _BUILTINS and isinstance(call.func, ast.Name)):
            of = self._of_converted if name in ("float", "int") else self.of
            return max(map(of, call.args), default=Taint.NO)
        if name == "numpy" and isinstance(call.func, ast.Attribute) and not call.args:
            return Taint.MAYBE
        if qualified.startswith("numpy."):
            return min(Taint.MAYBE, max(map(self.of, call.args), default=Taint.NO))
        if name in ("numel", "size", "__len__") and isinstance(call.func, ast.Attribute):
            counted = call.func.value  # ``x[mask].numel()`` counts data; any other size does not
            selects = isinstance(counted, ast.Subscript) and isinstance(counted.slice, (ast.Name, ast.Compare))
            return Taint.MAYBE if selects else Taint.NO
        helper = self._helper(call.func)
        return min(Taint.MAYBE, evidence_of(helper, self._scope).returned) if helper is not None else Taint.NO

    def _of_converted(self, node: ast.expr) -> Taint:
        """That of what is made a number: ``int(lengths[k])``, an item of a parameter, is meant for a tensor."""
        return max(self.of(node), Taint.MAYBE if self.is_item_handed_in(node) else Taint.NO)

    def is_item_handed_in(self, node: ast.expr) -> bool:
        """Is it an item of a parameter that nobody says the type of?"""
        return isinstance(node, ast.Subscript) and getattr(node.value, "id", "") in self.untyped

    @cached_property
    def returned(self) -> Taint:
        """The taint of what the function returns."""
        self.__dict__["returned"] = Taint.NO  # for a function that calls itself
        statements = self.function.statements
        values = [node.value for node in statements if isinstance(node, ast.Return) and node.value]
        return max(map(self.of, values), default=Taint.NO)

    def _helper(self, callee: ast.expr) -> Function | None:
        if isinstance(callee, ast.Name):
            return self._scope.functions.get(callee.id)
        if isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name) and callee.value.id == "self":
            prefix = self.function.qualname.rpartition(".")[0]
            return self._scope.functions.get(f"{prefix}.{callee.attr}") or self._scope.inherited.get(callee.attr)
        return None


def is_comparison(node: ast.expr, known: Collection[str] = ()) -> bool:
    """Does the form of the expression say that it compares, element by element?"""
    if isinstance(node, ast.Name):
        return node.id in known
    if isinstance(node, ast.Compare):
        return all(isinstance(op, COMPARED) for op in node.ops)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return is_comparison(node.operand, known)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.BitAnd, ast.BitOr)):
        return is_comparison(node.left, known) or is_comparison(node.right, known)
    return False


def _draws(node: ast.expr) -> bool:
    return any(isinstance(part, ast.Call) and _bare_name(part.func) in _DRAWING for part in walk(node))


def _is_of_python(node: ast.expr) -> bool:
    """Is it a number, a truth or a name, or calculated or chosen from such?"""
    if isinstance(node, ast.IfExp):
        return _is_of_python(node.body) and _is_of_python(node.orelse)
    return all(isinstance(part, (ast.Constant, ast.Name, ast.BinOp, ast.UnaryOp)) for part in walk(node))


def _reads_number(node: ast.expr) -> bool:
    """Is a number of a tensor read in it?"""
    return any(isinstance(part, ast.Call) and getattr(part.func, "attr", "") == "item" for part in walk(node))


def _appended(node: ast.AST) -> tuple[str, ast.expr] | None:
    """The name of the list in ``numbers.append(number)``, and the number; None of anything else."""
    match node:
        case ast.Call(ast.Attribute(ast.Name(spelling), "append"), [value], []):
            return spelling, value
    return None


def _targets(store: ast.Assign | ast.AugAssign) -> list[ast.expr]:
    return store.targets if isinstance(store, ast.Assign) else [store.target]


def _attributes_set(store: ast.Assign | ast.AugAssign) -> list[str]:
    return [target.attr for target in _targets(store) if isinstance(target, ast.Attribute)]


def _stores_number(node: ast.AST) -> TypeGuard[ast.Assign | ast.AugAssign]:
    """Does it store a number of Python's to an attribute, or count one up?"""
    if not isinstance(node, (ast.Assign, ast.AugAssign)) or not _attributes_set(node):
        return False
    return _is_of_python(node.value) or isinstance(node, ast.AugAssign)


def _numbers_stored(branch: ast.If) -> Iterator[str]:
    """The attributes that its sides store numbers to."""
    for node in walk(*branch.body, *branch.orelse):
        if _stores_number(node):
            yield from _attributes_set(node)


def _compares_attribute(node: ast.expr, names: Collection[str]) -> bool:
    """Does it compare an attribute of one of these names, or ask for its truth?"""
    if isinstance(node, ast.BoolOp):
        return any(_compares_attribute(value, names) for value in node.values)
    if isinstance(node, ast.Compare) and not all(isinstance(op, COMPARED) for op in node.ops):
        return False
    return any(isinstance(part, ast.Attribute) and part.attr in names for part in walk(node))


def _unpacks(statement: ast.stmt, kinds: type | tuple[type, ...]) -> TypeGuard[ast.Assign]:
    """``a, b = value``, of an expression of such a kind."""
    is_assigned = isinstance(statement, ast.Assign) and isinstance(statement.value, kinds)
    return is_assigned and isinstance(statement.targets[0], ast.Tuple)  # type: ignore[attr-defined]


def _is_list_of_tensor(node: ast.expr) -> bool:
    """Is it ``x.tolist()``, or ``x.numpy()``?"""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("numpy", "tolist")


def _draws_places(node: ast.expr) -> bool:
    """Is it ``torch.randperm(n)``, which programs go through, as through the list of it?"""
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "randperm"


def _iterated(target: ast.expr, whole: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What each part of the target is bound to the items of, through `enumerate` and `zip`."""
    match whole, target:
        case ast.Call(ast.Name("enumerate"), [iterated, *_]), ast.Tuple([_, item]):
            return _iterated(item, iterated)
        case ast.Call(ast.Name("zip"), [*several]), ast.Tuple([*items]) if len(several) == len(items):
            pairs = zip(items, several, strict=True)
            return [pair for item, iterated in pairs for pair in _iterated(item, iterated)]
    return [(target, whole)]


def _bare_name(callee: ast.expr) -> str:
    return callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    return [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]


def _is_calculated(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in ("max", "min")
    return isinstance(node, (ast.BinOp, ast.Name, ast.ListComp))


def _names_in(node: ast.expr) -> set[str]:
    return {part.id for part in walk(node) if isinstance(part, ast.Name)}


def _text_of(annotation: ast.expr) -> str:
    if isinstance(annotation, ast.Constant):
        return annotation.value.replace(" ", "") if isinstance(annotation.value, str) else ""
    return _spelled(annotation).replace(" ", "")


def _spelled(node: ast.expr) -> str:
    """What `ast.unparse` gives, a hundred times as fast for the usual annotations."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
        return f"{_spelled(node.value)}.{node.attr}"
    plain = isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
    if plain and isinstance(node.slice, (ast.Name, ast.Attribute, ast.Subscript)):  # type: ignore[attr-defined]
        return f"{_spelled(node.value)}[{_spelled(node.slice)}]"  # type: ignore[attr-defined]
    return ast.unparse(node)


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    displays = isinstance(target, (ast.Tuple, ast.List)) and isinstance(value, (ast.Tuple, ast.List))
    if not displays or len(target.elts) != len(value.elts):  # type: ignore[attr-defined]
        return []
    return [pair for inner in zip(target.elts, value.elts, strict=True) for pair in _pairs(*inner)]  # type: ignore[attr-defined]
