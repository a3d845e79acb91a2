"""Explain each cause of recompiles and propose remedies."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from compile_inspect.recompiles.buckets import multiples
from compile_inspect.recompiles.buckets import proposals as bucket_proposals
from compile_inspect.recompiles.causes import Cause, CauseKind
from compile_inspect.recompiles.trials import dtype_name
from compile_inspect.records.forecast import Buckets, Remedy, RemedyKind

Places = tuple[tuple[str, int], ...]
_MODULUS = re.compile(r"% (?P<modulus>[1-9]\d*)\b")
_KEYWORD = re.compile(r"^\w+\['(?P<key>\w+)'\]$")
_SMALL_SIZE_NOTE = " torch always compiles sizes 0 and 1 separately."


def explain(cause: Cause) -> str:
    """Explain what happened to someone who does not know Dynamo."""
    name, dimension = cause.variable, cause.dimension
    change = f" from {cause.expected} to {cause.actual}" if cause.expected and cause.actual else ""
    sentences = {
        CauseKind.SIZE: f"The size of dimension {dimension} of {name} changed{change}; the compiled code is for one size.",
        CauseKind.CONDITION: f"The compiled code is valid if {cause.reason}; now dimension {dimension} of {name} is "
        f"{cause.actual or 'different'}. The code, or torch, branches on this size.",
        CauseKind.STRIDE: f"The layout of {name} in memory changed: the stride of dimension {dimension}{change}.",
        CauseKind.RANK: f"The number of dimensions of {name} changed{change}.",
        CauseKind.DTYPE: f"The dtype of {name} changed{change}.",
        CauseKind.DEVICE: f"The device of {name} changed{change}.",
        CauseKind.GRADIENT: f"Whether {name} requires a gradient, or was created in inference mode, changed{change}.",
        CauseKind.STATE: f"A setting of torch changed: {name}{change}.",
        CauseKind.NUMBER: f"The number {name} changed{change}; it is a constant in the compiled code.",
        CauseKind.VALUE: f"{name} changed{change}; torch compiles for each value separately.",
        CauseKind.ATTRIBUTE: f"The attribute {name} changed{change}; attributes are constants in the compiled code.",
        CauseKind.GLOBAL: f"The variable {name} changed{change}; globals are constants in the compiled code.",
        CauseKind.LENGTH: f"The length of {name} changed{change}; lists and dictionaries are unrolled.",
        CauseKind.TYPE: f"The type of {name} changed{change}.",
        CauseKind.OBJECT: f"{name} is not the object for which the code was compiled.",
        CauseKind.SHARED: "One tensor is passed for two arguments in some calls but not in others.",
    }
    sentence = sentences.get(cause.kind, f"The compiled code is valid only if {cause.reason or 'nothing else has changed'}.")
    return sentence + (_SMALL_SIZE_NOTE if cause.small and cause.kind in (CauseKind.SIZE, CauseKind.CONDITION) else "")


def remedies_for(
    cause: Cause, *, sizes: Sequence[int] = (), linked_dimensions: Places = (), dynamic: bool | None = None
) -> list[Remedy]:
    """What to try, the least intrusive remedy first.

    `sizes` are all sizes that the dimension takes, with repetitions; `linked_dimensions` are those that change with it.
    """
    makers: dict[CauseKind, Callable[[], list[Remedy]]] = {
        CauseKind.SIZE: lambda: _for_sizes(cause, sizes, linked_dimensions, dynamic),
        CauseKind.CONDITION: lambda: _for_conditions(cause, sizes, linked_dimensions, dynamic),
        CauseKind.STRIDE: lambda: [_conversion_remedy(cause, "contiguous()", "Make {} contiguous", "It is copied.")],
        CauseKind.DTYPE: lambda: _for_dtypes(cause),
        CauseKind.NUMBER: lambda: _for_numbers(cause, dynamic),
        CauseKind.ATTRIBUTE: lambda: _for_attributes(cause),
        CauseKind.GLOBAL: lambda: _for_globals(cause),
    }
    maker = makers.get(cause.kind)
    remedies = maker() if maker is not None else _by_hand(cause)
    # Not every value that torch guards has a name in the program: one that a graph break passes on has none.
    return [remedy if _is_code(remedy.code) else replace(remedy, code="") for remedy in remedies]


def _is_code(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _for_sizes(cause: Cause, sizes: Sequence[int], linked_dimensions: Places, dynamic: bool | None) -> list[Remedy]:
    places = linked_dimensions or ((cause.variable, cause.dimension or 0),)
    remedies = [_mark_remedy(places, firmly=True), _mark_remedy(places, firmly=False)]
    if dynamic is not True:
        remedies.insert(1, _dynamic_remedy())
    return remedies + [_padding_remedy(places, buckets) for buckets in bucket_proposals(sizes)]


def _for_conditions(cause: Cause, sizes: Sequence[int], linked_dimensions: Places, dynamic: bool | None) -> list[Remedy]:
    own_dimension = (cause.variable, cause.dimension or 0)
    remedies = []
    modulus = _MODULUS.search(cause.reason)
    if modulus is not None and sizes:
        remedies.append(_padding_remedy(linked_dimensions or (own_dimension,), multiples(sizes, int(modulus["modulus"]))))
    elif cause.others and "==" in cause.reason:  # two sizes that happened to be equal during compilation
        remedies.append(_mark_remedy((own_dimension, *cause.others), firmly=True))
    elif cause.small and sizes and len(set(sizes)) > 1:
        # Only sizes below 2 need to be padded.
        bucket_sizes = tuple(sorted({max(2, size) for size in sizes}))
        waste = 100 * (sum(max(2, size) for size in sizes) - sum(sizes)) / sum(max(2, size) for size in sizes)
        remedies.append(
            _padding_remedy(linked_dimensions or (own_dimension,), Buckets(bucket_sizes, round(waste, 2), "at least 2"))
        )
    remedies += [_padding_remedy(linked_dimensions or (own_dimension,), buckets) for buckets in bucket_proposals(sizes)]
    if not cause.small:
        title = f"Branch on the size of {cause.variable} outside the compiled function, and compile one function per branch"
        remedies.append(Remedy(RemedyKind.CONSTANT, title, "", (own_dimension,), "Each branch is compiled once."))
    return remedies


def _mark_remedy(places: Places, *, firmly: bool) -> Remedy:
    function = "mark_dynamic" if firmly else "maybe_mark_dynamic"
    names = " and ".join(f"dimension {dimension} of {name}" for name, dimension in places)
    verb = "changes" if len(places) == 1 else "change"
    hint = "a hint that torch ignores if the code needs one size"
    return Remedy(
        RemedyKind.MARK_DYNAMIC if firmly else RemedyKind.MAYBE_MARK_DYNAMIC,
        f"Declare that {names} {verb}" if firmly else f"Declare that {names} may change",
        "\n".join(f"torch._dynamo.{function}({name}, {dimension})" for name, dimension in places),
        places,
        "One kernel serves all sizes; torch raises if the code needs one size." if firmly else f"It is {hint}.",
    )


def _dynamic_remedy() -> Remedy:
    return Remedy(
        RemedyKind.DYNAMIC,
        "Compile for dynamic sizes from the first call on",
        "torch.compile(function, dynamic=True)",
        behavior_change="All sizes and numbers are symbolic: kernels can be slower than those for one size.",
    )


def _padding_remedy(places: Places, buckets: Buckets) -> Remedy:
    name, dimension = places[0]
    lines = [f"sizes = {buckets.sizes}", f"size = next(item for item in sizes if item >= {name}.shape[{dimension}])"]
    for other, place in places:
        lines += [
            f"padding = list({other}.shape)",
            f"padding[{place}] = size - {other}.shape[{place}]",
            f"{other} = torch.cat([{other}, {other}.new_zeros(padding)], dim={place})",
        ]
    number = len(buckets.sizes)
    size_text = ("1 size" if number == 1 else f"each of {number} sizes") + (" (those observed)" if number > 8 else "")
    title = f"Pad {' and '.join(dict.fromkeys(other for other, _ in places))} to {size_text}, {buckets.rule}"
    waste = f"{buckets.waste_percent:g} % of the computation is padding, which must not affect the results."
    return Remedy(RemedyKind.BUCKETS, title, "\n".join(lines), places, waste, buckets)


def _for_dtypes(cause: Cause) -> list[Remedy]:
    dtype = dtype_name(cause.expected)
    if dtype is None:
        return _by_hand(cause)
    title, changes = f"Convert {{}} to {dtype} before the call", f"The computation uses {dtype}."
    return [_conversion_remedy(cause, f"to(torch.{dtype})", title, changes)]


def _conversion_remedy(cause: Cause, method: str, title: str, changes: str) -> Remedy:
    name = cause.variable
    return Remedy(RemedyKind.CONVERSION, title.format(name), f"{name} = {name}.{method}", ((name, cause.dimension),), changes)


def _for_numbers(cause: Cause, dynamic: bool | None) -> list[Remedy]:
    name = cause.variable
    remedies = [
        Remedy(
            RemedyKind.TENSOR,
            f"Pass {name} as a tensor",
            f"{name} = torch.tensor({name})",
            ((name, None),),
            f"{name} can then decide neither a branch nor a shape without a graph break.",
        )
    ]
    if dynamic is not True:
        remedies.append(_dynamic_remedy())
    setting = "torch._dynamo.config.specialize_int = False"
    remedies.append(
        Remedy(RemedyKind.SETTING, "Make integers symbolic after they have changed once", setting, settings=(setting,))
    )
    return remedies


def _for_attributes(cause: Cause) -> list[Remedy]:
    owner, _, name = cause.variable.rpartition(".")
    setting = "torch._dynamo.config.allow_unspec_int_on_nn_module = True"
    is_integer = (cause.expected or "").lstrip("-").isdecimal()
    changes = f"Change it with {cause.variable}.fill_(…); it can decide neither a branch nor a shape."
    if not name.isidentifier():  # inside a container, which can contain a tensor instead of a number
        title = f"Store {cause.variable} as a tensor"
        code = f"{cause.variable} = torch.tensor({cause.expected})"
        return (
            [Remedy(RemedyKind.TENSOR, title, code, behavior_change=changes)] if _is_number(cause.expected) else _by_hand(cause)
        )
    buffer = Remedy(
        RemedyKind.TENSOR,
        f"Store {cause.variable} as a buffer of the module",
        f'{owner}.register_buffer("{name}", torch.tensor({cause.expected or name}), persistent=False)  # its first value',
        behavior_change=changes,
    )
    if not is_integer:
        return [buffer] if _is_number(cause.expected) else _by_hand(cause)
    return [
        Remedy(
            RemedyKind.SETTING,
            "Make integer attributes of modules symbolic after they have changed once",
            setting,
            behavior_change="This applies to all modules; a loop over such a number still makes it a constant.",
            settings=(setting,),
        ),
        buffer,
    ]


def _is_number(text: str | None) -> bool:
    try:
        float(text or "")
    except ValueError:
        return False
    return True


def _for_globals(cause: Cause) -> list[Remedy]:
    name = cause.variable.removeprefix("global ")
    remedies = []
    if _is_number(cause.expected):
        remedies.append(
            Remedy(
                RemedyKind.TENSOR,
                f"Make {name} a tensor, and change its value in place",
                f"{name} = torch.tensor({cause.expected})\n{name}.fill_({cause.actual or 'value'})",
                behavior_change=f"{name} can then decide neither a branch nor a shape without a graph break.",
            )
        )
    parameter = f"Pass {name} to the function as an argument"
    remedies.append(
        Remedy(RemedyKind.CONSTANT, parameter, f"def function(x, {name}): ...", behavior_change="Its callers must pass it.")
    )
    return remedies


def _by_hand(cause: Cause) -> list[Remedy]:
    name = cause.variable
    keyword = _KEYWORD.sub(r"\g<key>", name)
    per_value_code = f"compiled = {{value: torch.compile(functools.partial(function, {keyword}=value)) for value in values}}"
    advice: dict[CauseKind, tuple[str, str]] = {
        CauseKind.RANK: (f"Pass {name} with the same number of dimensions in every call", f"{name} = {name}.unsqueeze(0)"),
        CauseKind.DEVICE: (f"Move {name} to one device before the call", f"{name} = {name}.to(device)"),
        CauseKind.DTYPE: (f"Convert {name} to one dtype before the call", f"{name} = {name}.to(dtype)"),
        CauseKind.GRADIENT: (f"Let {name} require a gradient in all calls or in none", f"{name} = {name}.detach()"),
        CauseKind.STATE: (
            f"Always call it with the same {name}; otherwise torch compiles once for every state",
            "",
        ),
        CauseKind.VALUE: (f"Compile one function per value of {name}, if there are few values", per_value_code),
        CauseKind.ATTRIBUTE: (f"Do not change {name} between calls, or compile one module per value", ""),
        CauseKind.LENGTH: (f"Stack the items of {name} into one tensor", f"{name} = torch.stack(tuple({name}))"),
        CauseKind.TYPE: (f"Pass {name} with the same type in every call", ""),
        CauseKind.OBJECT: (f"Pass the same object for {name} in every call, or compile one function per object", ""),
        CauseKind.SHARED: ("Pass a copy if one tensor is passed twice", f"{name or 'y'} = {name or 'x'}.clone()"),
    }
    if cause.kind not in advice:
        return []
    title, code = advice[cause.kind]
    return [Remedy(RemedyKind.CONSTANT, title, code, ((name, None),) if name else ())]
