"""A quicker check that replaces a guard tree; it is valid only while nothing is assigned.

A guard tree checks every attribute that a capture has read, at every call. Most of them belong to objects whose memory
shows whether anything was assigned since the tree last held (`object_memory`): their nodes are left out, and one comparison
of words replaces them all. The metadata of held tensors is compared in one call. The rest of the tree (the inputs, torch's
modes, and everything not known to be covered) is checked as before.
"""

from __future__ import annotations

import types
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from compile_inspect.torch_private.object_memory import HEAP_TYPE_FLAG, WatchedWords, class_dictionary, is_immutable, take

Scope = dict[str, Any]

_IDENTITY_GUARDS = ("ID_MATCH", "NOT_NONE", "TRUE_MATCH", "FALSE_MATCH", "NONE_MATCH")
"""Guards on the identity of a value, and on nothing else."""
_CONTENT_GUARDS = ("DICT_LENGTH", "LENGTH_CHECK", "DICT_CONTAINS")
"""Guards on the direct contents of a container."""
_TENSOR_GUARDS = ("TENSOR_MATCH", "ID_MATCH", "TYPE_MATCH", "NO_TENSOR_ALIASING")
_FUNCTION_PARTS = ("CodeGuardAccessor", "FuncDefaultsGuardAccessor", "FuncKwDefaultsGuardAccessor", "ClosureGuardAccessor")
_FUNCTION_ATTRIBUTES = ("__code__", "__defaults__", "__kwdefaults__", "__closure__", "__globals__")
_CLASS_DICTIONARY = "TypeDictGuardAccessor"


class NoShortcutError(Exception):
    """A guard tree has a guard that can only be checked with the whole tree."""


class Shortcut:
    """The quick check for one capture, for the state in which it is made; the guard tree must hold there.

    `check_rest(scope)`, `take(positions).tobytes() == expected_words`, `check_tensors(*held_tensors, *look_up_tensors(scope))`
    and `check_surroundings(scope)` together imply the guard tree and the check of the surroundings.
    """

    def __init__(self, fullgraph: Any, surroundings: Any, names: Mapping[str, Any], often_assigned: Iterable[int] = ()) -> None:
        """`names` are those in Dynamo's sources; objects in `often_assigned` are left to the tree."""
        self._watched = WatchedWords(frozenset(often_assigned))
        walk = _TreeWalk(self._watched, _lookup_in(names), set(fullgraph.traced_codes))
        walk.root(fullgraph.root)
        self.held_tensors = tuple(walk.tensors.values())
        self.look_up_tensors: Callable[[Scope], tuple[Any, ...]] = _collector(walk.retained_tensors, names)
        self.check_tensors = _tensor_check((*self.held_tensors, *walk.retained_tensors.values()))
        clone = fullgraph.root.clone_manager(lambda manager: manager.get_source() in walk.retained_sources)
        _forbid_held_tensors(clone, walk.retained_tensors, self.held_tensors)
        self.check_rest: Callable[[Scope], bool] = clone.check
        self.check_surroundings: Callable[[Scope], Any] = surroundings.without(self._watched.add)
        self.positions = self._watched.positions()
        self.expected_words: bytes = self._watched.first_values()
        self.retained_sources = frozenset(walk.retained_sources)
        self._verify(fullgraph, surroundings, names["L"])

    def _verify(self, fullgraph: Any, surroundings: Any, scope: Scope) -> None:
        """Verify that the guard holds while every word is what it was at first.

        Other threads may have assigned something since the guard was checked.
        """
        quick = [self.holds(scope, surroundings.scope)]
        full = fullgraph.check(scope) and surroundings.check(surroundings.scope)
        quick.append(self.holds(scope, surroundings.scope))
        if not (full and all(quick)):
            raise NoShortcutError("something changed while the shortcut was made")

    @property
    def parts(self) -> tuple[Any, ...]:
        """What generated code checks, in the order of this class's description; the last keeps the memory alive."""
        return (
            self.check_rest,
            self.positions,
            self.expected_words,
            self.check_tensors,
            self.held_tensors,
            self.look_up_tensors,
            self.check_surroundings,
            self._watched,
        )

    def holds(self, scope: Scope, surroundings_scope: Scope) -> bool:
        """Whether this check accepts a call; if not, the guard may still hold."""
        return bool(
            self.check_rest(scope)
            and take(self.positions).tobytes() == self.expected_words
            and self.check_tensors(*self.held_tensors, *self.look_up_tensors(scope))
            and self.check_surroundings(surroundings_scope)
        )

    def changed(self) -> list[int]:
        """Identities of objects that were assigned to."""
        return list(self._watched.changed(self.expected_words))


class _TreeWalk:
    """Decides which nodes of a guard tree are covered by words and which must be retained.

    Every visit of a node relies on this: while the words watched so far do not change, and the nodes retained so far hold,
    the node's value is the same object.
    """

    def __init__(self, watched: WatchedWords, lookup: Callable[[str], Any], traced: set[types.CodeType]) -> None:
        self._watched = watched
        self._lookup = lookup
        self._traced = traced
        self.retained_sources: set[str] = set()
        self.tensors: dict[int, Any] = {}
        self.retained_tensors: dict[str, Any] = {}
        """By source. Their guards depend on the dispatch keys of the thread as the whole tree recorded them when it was last
        checked; the quick check must read them itself."""

    def root(self, root: Any) -> None:
        """Retain the root and everything that may be another object at every call."""
        self.retained_sources.add(root.get_source())
        for access, child in _children(root):
            if type(access).__name__ == "GlobalsGuardAccessor" or child.get_source() == "L['function']":
                self._visit_value(child, (root.get_source(),))
            else:
                self._retain_all(child, ())

    def _visit_value(self, manager: Any, path: tuple[str, ...]) -> None:
        is_stable, value = self._value(manager.get_source())
        if is_stable:
            self._visit(manager, value, path)
        else:
            self._retain_all(manager, path)

    def _visit(self, manager: Any, value: Any, path: tuple[str, ...]) -> None:
        """Visit a node whose value cannot become another object unnoticed."""
        leaves, children = [type(leaf).__name__ for leaf in manager.get_leaf_guards()], list(_children(manager))
        if _is_plain_tensor(value) and not children and all(leaf in _TENSOR_GUARDS for leaf in leaves):
            self.tensors.setdefault(id(value), value)
            return
        if hasattr(manager, "get_key_value_managers"):  # it checks kind and length by itself
            leaves += ["TYPE_MATCH", "DICT_LENGTH"]
        if not all(self._covers(leaf, value) for leaf in leaves):
            self._retain(manager, path)
        self._visit_children(manager, value, path)

    def _visit_children(self, manager: Any, value: Any, path: tuple[str, ...]) -> None:
        below = (*path, manager.get_source())
        for access, child in _children(manager):
            if self._watched.add(value) and self._is_read_from_words(value, access):
                if type(access).__name__ == _CLASS_DICTIONARY:  # its source is a copy, created at every lookup
                    self._visit(child, class_dictionary(value), below)
                else:
                    self._visit_value(child, below)
            else:
                self._retain_all(child, below)

    def _retain(self, manager: Any, path: tuple[str, ...]) -> None:
        source = manager.get_source()
        self.retained_sources.update((source, *path))
        leaves = [type(leaf).__name__ for leaf in manager.get_leaf_guards()]
        if "TENSOR_MATCH" in leaves:
            self.retained_tensors[source] = self._lookup(source)
        if "DISPATCH_KEY_SET_MATCH" in leaves:
            raise NoShortcutError(source)

    def _retain_all(self, manager: Any, path: tuple[str, ...]) -> None:
        """Retain a node and those below it, except known objects whose contents are covered."""
        source = manager.get_source()
        self._retain(manager, path)
        leaves = [type(leaf).__name__ for leaf in manager.get_leaf_guards()]
        is_stable, value = self._value(source)
        if is_stable and "ID_MATCH" in leaves and not _is_tensor(value):
            self._visit_children(manager, value, path)
            return
        for _, child in _children(manager):
            self._retain_all(child, (*path, source))

    def _value(self, source: str) -> tuple[bool, Any]:
        """The value of a source, if two lookups give the same object."""
        try:
            first, second = self._lookup(source), self._lookup(source)
        except Exception:
            return False, None
        return first is second, first

    def _covers(self, leaf: str, value: Any) -> bool:
        if leaf in _IDENTITY_GUARDS:
            return True
        if leaf == "TYPE_MATCH":
            return not _may_change_class(value) or self._watched.add(value)
        if leaf in _CONTENT_GUARDS:
            return type(value) in (dict, OrderedDict, tuple) and self._watched.add(value)
        if leaf == "NO_HASATTR":
            return self._watches_absence(value)
        if leaf == "LAMBDA_GUARD" and type(value) is OrderedDict:  # of its order
            return self._watched.add(value)
        return leaf in ("EQUALS_MATCH", "LAMBDA_GUARD") and is_immutable(value)

    def _watches_absence(self, value: Any) -> bool:
        """Whether words show that an object gets an attribute that it does not have."""
        import torch

        kind = type(value)
        if (
            isinstance(value, (type, types.ModuleType))
            or not self._watched.add(value)
            or not _is_looked_up_plainly(kind, self._traced)
        ):
            return False
        if not hasattr(kind, "__getattr__"):
            return True
        parts = [vars(value).get(name) for name in ("_parameters", "_buffers", "_modules")]
        return kind.__getattr__ is torch.nn.Module.__getattr__ and all(self._watched.add(part) for part in parts)

    def _is_read_from_words(self, value: Any, access: Any) -> bool:
        """Whether an access to a watched value gives the same object until a word changes."""
        kind = type(access).__name__
        if kind in ("DictGetItemGuardAccessor", _KEY_VALUE_ACCESS):
            return type(value) in (dict, OrderedDict)
        if kind == "GetItemGuardAccessor":
            return type(value) in (dict, OrderedDict, tuple, types.FunctionType)  # of a function: its defaults
        if kind == "TupleGetItemGuardAccessor":
            return type(value) is tuple
        if kind in _FUNCTION_PARTS:
            return type(value) is types.FunctionType
        if kind == "GetAttrGuardAccessor":
            return _is_looked_up_plainly(type(value), self._traced) and self._is_stored(value, access.get_attr_name())
        if kind == "GenericGetAttrGuardAccessor":  # it bypasses a class's own __getattribute__
            name = access.repr().partition("(")[2].rstrip(")").strip("'")
            return not isinstance(value, type) and self._is_stored(value, name)
        if kind in ("TypeMROGuardAccessor", _CLASS_DICTIONARY):
            return isinstance(value, type)
        return kind in ("GetGenericDictGuardAccessor", "GlobalsGuardAccessor", "TypeGuardAccessor")

    def _is_stored(self, value: Any, name: str) -> bool:
        entry = _static(value if isinstance(value, type) else type(value), name)
        descriptor = type(entry)  # if it became a descriptor, or another kind of one, it would decide instead
        return (not descriptor.__flags__ & HEAP_TYPE_FLAG or self._watched.add(descriptor)) and is_stored(
            value, name, self._traced
        )


_KEY_VALUE_ACCESS = "_Pair"


class _KeyValueAccess:
    """Access to the key and the value at a position of a dictionary whose order is guarded."""


def _children(manager: Any) -> Iterable[tuple[Any, Any]]:
    """The nodes below a node, each with its accessor."""
    yield from zip(manager.get_accessors(), manager.get_child_managers(), strict=True)
    if hasattr(manager, "get_key_value_managers"):
        for pair in manager.get_key_value_managers().values():
            for child in pair:
                if child is not None:
                    yield _KeyValueAccess(), child


def is_stored(value: Any, name: str, traced: set[types.CodeType]) -> bool:
    """Whether reading an attribute gives what is stored in an object or its class, or what traced code makes of that.

    What traced code reads has its own guards.
    """
    kind = type(value)
    if kind is types.ModuleType:
        return name in vars(value)
    if kind is types.FunctionType:
        return name in _FUNCTION_ATTRIBUTES or name in vars(value)
    if kind is types.CellType:
        return name == "cell_contents"
    if isinstance(value, type):
        in_metaclass = _static(kind, name) if kind is not type else None
        return in_metaclass is None and _is_plain_entry(_static(value, name))
    if kind in (property, staticmethod, classmethod):
        return name in ("fget", "fset", "fdel", "__func__")
    entry, own = _static(kind, name), getattr(value, "__dict__", {})
    if name == "__class__":
        return entry is vars(object)[name]
    if name == "__dict__":
        return type(entry) is types.GetSetDescriptorType
    if type(entry) is property:
        return getattr(entry.fget, "__code__", None) in traced
    if entry is None or (name in own and not hasattr(type(entry), "__set__")):
        return name in own
    return type(entry) is types.MemberDescriptorType or _is_plain_entry(entry)


def _is_looked_up_plainly(cls: type, traced: set[types.CodeType]) -> bool:
    """Whether attributes of instances are looked up by Python's own rules, or by code that was traced."""
    getter = _static(cls, "__getattribute__")
    return type(getter) is types.WrapperDescriptorType or getattr(getter, "__code__", None) in traced


def _static(cls: type, name: str) -> Any:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def _is_plain_entry(entry: Any) -> bool:
    """Whether reading an entry of a class gives the entry itself, or a function or method."""
    if entry is None:
        return False
    return type(entry) in (types.FunctionType, staticmethod, classmethod) or not hasattr(type(entry), "__get__")


def _may_change_class(value: Any) -> bool:
    return bool(type(value).__flags__ & HEAP_TYPE_FLAG) or isinstance(value, types.ModuleType)


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _is_plain_tensor(value: Any) -> bool:
    import torch

    return type(value) in (torch.Tensor, torch.nn.Parameter)


def _tensor_check(tensors: tuple[Any, ...]) -> Callable[..., Any]:
    """A check of whether tensors still have their present metadata; `object`, which is truthy, if there are none."""
    from torch._C._dynamo.guards import TensorGuards

    if not tensors:
        return object
    shapes: list[Any] = [list(tensor.shape) for tensor in tensors]
    strides: list[Any] = [list(tensor.stride()) for tensor in tensors]
    guards = TensorGuards(*tensors, dynamic_dims_sizes=shapes, dynamic_dims_strides=strides)  # it crashes without them
    check: Callable[..., Any] = guards.check
    return check


def _collector(sources: Iterable[str], names: Mapping[str, Any]) -> Callable[[Scope], tuple[Any, ...]]:
    """A function that returns the values of sources in a call."""
    source_list = "".join(f"{source}, " for source in sources)
    # Sources are expressions that Dynamo wrote for its own guards.
    others = {name: value for name, value in names.items() if name != "L"}  # do not keep the inputs of this call alive
    collect: Callable[[Scope], tuple[Any, ...]] = eval(f"lambda L: ({source_list})", others)
    return collect


def _forbid_held_tensors(root: Any, look_up_tensors: Mapping[str, Any], held: tuple[Any, ...]) -> None:
    """Guard that no looked-up tensor is a held one; tensors with other metadata cannot be."""
    managers: dict[str, Any] = {}
    pending = [root]
    while pending:
        manager = pending.pop()
        managers.setdefault(manager.get_source(), manager)
        pending += [child for _, child in _children(manager)]
    for source, tensor in look_up_tensors.items():
        alike = frozenset(id(other) for other in held if _metadata(other) == _metadata(tensor))
        if alike:
            managers[source].add_lambda_guard(_NoneOf(alike), [f"{source} is none of the held tensors"], None)


class _NoneOf:
    def __init__(self, identities: frozenset[int]) -> None:
        self._identities = identities

    def __call__(self, tensor: Any) -> bool:
        return id(tensor) not in self._identities


def _metadata(tensor: Any) -> Any:
    return type(tensor), tensor.dtype, tensor.device, tensor.shape


def _lookup_in(names: Mapping[str, Any]) -> Callable[[str], Any]:
    """A function that evaluates Dynamo's sources, which are expressions; each is parsed once."""
    parsed, namespace = dict[str, types.CodeType](), dict(names)

    def lookup(source: str) -> Any:
        if source not in parsed:
            parsed[source] = compile(source, "<source>", "eval")
        return eval(parsed[source], namespace)

    return lookup
