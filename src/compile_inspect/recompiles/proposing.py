"""For each cause of recompiles, why it is one and what could be written instead."""

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
_SMALL = " Sizes 0 and 1 are always compiled apart from all others."


def why(cause: Cause) -> str:
    """What happened, for someone who does not know Dynamo."""
    name, dimension = cause.variable, cause.dimension
    change = f" from {cause.expected} to {cause.actual}" if cause.expected and cause.actual else ""
    sentences = {
        CauseKind.SIZE: f"The size of dimension {dimension} of {name} changed{change}; what was compiled is for one size.",
        CauseKind.CONDITION: f"What was compiled holds where {cause.reason}; now dimension {dimension} of {name} is "
        f"{cause.actual or 'another'}. The code, or torch, decides by this size.",
        CauseKind.STRIDE: f"The layout of {name} in memory changed: the stride of dimension {dimension}{change}.",
        CauseKind.RANK: f"The number of dimensions of {name} changed{change}.",
        CauseKind.DTYPE: f"The dtype of {name} changed{change}.",
        CauseKind.DEVICE: f"The device of {name} changed{change}.",
        CauseKind.GRADIENT: f"Whether {name} requires a gradient, or was made in inference mode, changed{change}.",
        CauseKind.STATE: f"A setting of torch changed: {name}{change}.",
        CauseKind.NUMBER: f"The number {name} changed{change}; it was compiled in as a constant.",
        CauseKind.VALUE: f"{name} changed{change}; each value is compiled by itself.",
        CauseKind.ATTRIBUTE: f"The attribute {name} changed{change}; attributes are compiled in as constants.",
        CauseKind.GLOBAL: f"The variable {name} changed{change}; globals are compiled in as constants.",
        CauseKind.LENGTH: f"The length of {name} changed{change}; lists and dictionaries are unrolled.",
        CauseKind.TYPE: f"The type of {name} changed{change}.",
        CauseKind.OBJECT: f"{name} is another object than the one that was compiled in.",
        CauseKind.SHARED: "One tensor is given for two arguments in some calls and not in others.",
    }
    sentence = sentences.get(cause.kind, f"What was compiled holds only where {cause.reason or 'things are as they were'}.")
    return sentence + (_SMALL if cause.small and cause.kind in (CauseKind.SIZE, CauseKind.CONDITION) else "")


def remedies_for(
    cause: Cause, *, sizes: Sequence[int] = (), together: Places = (), dynamic: bool | None = None
) -> list[Remedy]:
    """What to try, the least intrusive first.

    `sizes` are all that the dimension takes, with repetitions; `together` the places that change with it.
    """
    makers: dict[CauseKind, Callable[[], list[Remedy]]] = {
        CauseKind.SIZE: lambda: _for_sizes(cause, sizes, together, dynamic),
        CauseKind.CONDITION: lambda: _for_conditions(cause, sizes, together, dynamic),
        CauseKind.STRIDE: lambda: [
            _converted(cause, "contiguous()", "Copy {} into the usual order in memory", "It is copied.")
        ],
        CauseKind.DTYPE: lambda: _for_dtypes(cause),
        CauseKind.NUMBER: lambda: _for_numbers(cause, dynamic),
        CauseKind.ATTRIBUTE: lambda: _for_attributes(cause),
        CauseKind.GLOBAL: lambda: _for_globals(cause),
    }
    maker = makers.get(cause.kind)
    found = maker() if maker is not None else _by_hand(cause)
    # Not everything that torch guards has a name in the program: a value that a graph break left behind has none.
    return [remedy if _is_code(remedy.code) else replace(remedy, code="") for remedy in found]


def _is_code(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _for_sizes(cause: Cause, sizes: Sequence[int], together: Places, dynamic: bool | None) -> list[Remedy]:
    places = together or ((cause.variable, cause.dimension or 0),)
    found = [_marked(places, firmly=True), _marked(places, firmly=False)]
    if dynamic is not True:
        found.insert(1, _everything_dynamic())
    return found + [_padded(places, buckets) for buckets in bucket_proposals(sizes)]


def _for_conditions(cause: Cause, sizes: Sequence[int], together: Places, dynamic: bool | None) -> list[Remedy]:
    here = (cause.variable, cause.dimension or 0)
    found = []
    modulus = _MODULUS.search(cause.reason)
    if modulus is not None and sizes:
        found.append(_padded(together or (here,), multiples(sizes, int(modulus["modulus"]))))
    elif cause.others and "==" in cause.reason:  # two sizes that were equal by chance when it was compiled
        found.append(_marked((here, *cause.others), firmly=True))
    elif cause.small and sizes and len(set(sizes)) > 1:
        # Whatever is below 2 alone needs another size.
        kept = tuple(sorted({max(2, size) for size in sizes}))
        waste = 100 * (sum(max(2, size) for size in sizes) - sum(sizes)) / sum(max(2, size) for size in sizes)
        found.append(_padded(together or (here,), Buckets(kept, round(waste, 2), "at least 2")))
    found += [_padded(together or (here,), buckets) for buckets in bucket_proposals(sizes)]
    if not cause.small:
        title = f"Decide by the size of {cause.variable} outside of the compiled function, and compile one for each side"
        found.append(Remedy(RemedyKind.CONSTANT, title, "", (here,), "Each side is compiled once."))
    return found


def _marked(places: Places, *, firmly: bool) -> Remedy:
    function = "mark_dynamic" if firmly else "maybe_mark_dynamic"
    names = " and ".join(f"dimension {dimension} of {name}" for name, dimension in places)
    verb = "changes" if len(places) == 1 else "change"
    hint = "a hint that is dropped where the code needs one size"
    return Remedy(
        RemedyKind.MARK_DYNAMIC if firmly else RemedyKind.MAYBE_MARK_DYNAMIC,
        f"Say that {names} {verb}" if firmly else f"Say that {names} may change",
        "\n".join(f"torch._dynamo.{function}({name}, {dimension})" for name, dimension in places),
        places,
        "One kernel serves all sizes; torch raises where the code needs one size." if firmly else f"It is {hint}.",
    )


def _everything_dynamic() -> Remedy:
    return Remedy(
        RemedyKind.DYNAMIC,
        "Compile for sizes that change, from the first call on",
        "torch.compile(function, dynamic=True)",
        behavior_change="All sizes and numbers are left open: kernels can be slower than those for one size.",
    )


def _padded(places: Places, buckets: Buckets) -> Remedy:
    name, dimension = places[0]
    lines = [f"sizes = {buckets.sizes}", f"size = next(item for item in sizes if item >= {name}.shape[{dimension}])"]
    for other, place in places:
        lines += [
            f"padding = list({other}.shape)",
            f"padding[{place}] = size - {other}.shape[{place}]",
            f"{other} = torch.cat([{other}, {other}.new_zeros(padding)], dim={place})",
        ]
    number = len(buckets.sizes)
    few = ("1 size" if number == 1 else f"each of {number} sizes") + (" (those seen)" if number > 8 else "")
    title = f"Pad {' and '.join(dict.fromkeys(other for other, _ in places))} to {few}, {buckets.rule}"
    waste = f"{buckets.waste_percent:g} % of what is computed is padding, which the code must not let into its results."
    return Remedy(RemedyKind.BUCKETS, title, "\n".join(lines), places, waste, buckets)


def _for_dtypes(cause: Cause) -> list[Remedy]:
    dtype = dtype_name(cause.expected)
    if dtype is None:
        return _by_hand(cause)
    title, changes = f"Convert {{}} to {dtype} before the call", f"It is computed in {dtype}."
    return [_converted(cause, f"to(torch.{dtype})", title, changes)]


def _converted(cause: Cause, method: str, title: str, changes: str) -> Remedy:
    name = cause.variable
    return Remedy(RemedyKind.CONVERSION, title.format(name), f"{name} = {name}.{method}", ((name, cause.dimension),), changes)


def _for_numbers(cause: Cause, dynamic: bool | None) -> list[Remedy]:
    name = cause.variable
    found = [
        Remedy(
            RemedyKind.TENSOR,
            f"Give {name} as a tensor",
            f"{name} = torch.tensor({name})",
            ((name, None),),
            f"{name} can then decide neither a branch nor a shape without a graph break.",
        )
    ]
    if dynamic is not True:
        found.append(_everything_dynamic())
    setting = "torch._dynamo.config.specialize_int = False"
    found.append(
        Remedy(RemedyKind.SETTING, "Let whole numbers stay open after they have changed once", setting, settings=(setting,))
    )
    return found


def _for_attributes(cause: Cause) -> list[Remedy]:
    owner, _, name = cause.variable.rpartition(".")
    setting = "torch._dynamo.config.allow_unspec_int_on_nn_module = True"
    whole = (cause.expected or "").lstrip("-").isdecimal()
    changes = f"It is changed with {cause.variable}.fill_(…), and can decide neither a branch nor a shape."
    if not name.isidentifier():  # inside a container, which takes a tensor as it takes a number
        title = f"Hold {cause.variable} as a tensor"
        code = f"{cause.variable} = torch.tensor({cause.expected})"
        return (
            [Remedy(RemedyKind.TENSOR, title, code, behavior_change=changes)] if _is_number(cause.expected) else _by_hand(cause)
        )
    buffer = Remedy(
        RemedyKind.TENSOR,
        f"Hold {cause.variable} as a tensor of the module",
        f'{owner}.register_buffer("{name}", torch.tensor({cause.expected or name}), persistent=False)  # at its first value',
        behavior_change=changes,
    )
    if not whole:
        return [buffer] if _is_number(cause.expected) else _by_hand(cause)
    return [
        Remedy(
            RemedyKind.SETTING,
            "Let whole numbers that modules hold stay open after they have changed once",
            setting,
            behavior_change="It holds for all modules: loops over such a number still fix it.",
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
    found = []
    if _is_number(cause.expected):
        found.append(
            Remedy(
                RemedyKind.TENSOR,
                f"Make {name} a tensor, and change what it holds",
                f"{name} = torch.tensor({cause.expected})\n{name}.fill_({cause.actual or 'value'})",
                behavior_change=f"{name} can then decide neither a branch nor a shape without a graph break.",
            )
        )
    parameter = f"Give {name} to the function as an argument"
    found.append(
        Remedy(RemedyKind.CONSTANT, parameter, f"def function(x, {name}): ...", behavior_change="Its callers must give it.")
    )
    return found


def _by_hand(cause: Cause) -> list[Remedy]:
    name = cause.variable
    keyword = _KEYWORD.sub(r"\g<key>", name)
    apart = f"compiled = {{value: torch.compile(functools.partial(function, {keyword}=value)) for value in values}}"
    told: dict[CauseKind, tuple[str, str]] = {
        CauseKind.RANK: (f"Give {name} the same number of dimensions in every call", f"{name} = {name}.unsqueeze(0)"),
        CauseKind.DEVICE: (f"Bring {name} to one device before the call", f"{name} = {name}.to(device)"),
        CauseKind.DTYPE: (f"Convert {name} to one dtype before the call", f"{name} = {name}.to(dtype)"),
        CauseKind.GRADIENT: (f"Let {name} want a gradient in all calls or in none", f"{name} = {name}.detach()"),
        CauseKind.STATE: (
            f"Call it always in the same state of {name}; otherwise every state is compiled for once",
            "",
        ),
        CauseKind.VALUE: (f"Compile a function for each value of {name}, if they are few", apart),
        CauseKind.ATTRIBUTE: (f"Leave {name} as it is between calls, or compile a module for each value", ""),
        CauseKind.LENGTH: (f"Stack what {name} holds into one tensor", f"{name} = torch.stack(tuple({name}))"),
        CauseKind.TYPE: (f"Give {name} in one type in every call", ""),
        CauseKind.OBJECT: (f"Give the same object for {name} in every call, or compile a function for each", ""),
        CauseKind.SHARED: ("Give a copy where one tensor is given twice", f"{name or 'y'} = {name or 'x'}.clone()"),
    }
    if cause.kind not in told:
        return []
    title, code = told[cause.kind]
    return [Remedy(RemedyKind.CONSTANT, title, code, ((name, None),) if name else ())]
