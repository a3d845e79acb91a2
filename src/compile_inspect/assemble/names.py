"""Convert Dynamo's names for variables and conditions to what the user wrote."""

from __future__ import annotations

import re

_LOCAL = re.compile(r"L\['([^']+)'\]")
_BUILTIN = re.compile(r"G\['__builtins_dict__\w*'\]\['([^']+)'\]")
_IMPORT = re.compile(r"G\['__import_(\w+)'\]")
_GLOBAL = re.compile(r"G\['([^']+)'\]")
_CONTAINER = re.compile(r"\.(?:_modules|_parameters|_buffers)\['([^']+)'\]")
_CELL = re.compile(r"\.__closure__\[(\d+)\]\.cell_contents")
_STACK = re.compile(r"\b___stack(\d+)\b")
_DICT_ITEM = re.compile(r"\.__dict__\['([^']+)'\]")
_CHECK_TYPE = re.compile(r"^___check_type_id\((?P<name>.*), \d+\)(?:, type=<class '(?P<type>[^']+)'>)?")
_CHECK_OBJECT = re.compile(r"^___check_obj_id\((?P<name>.*), \d+\)(?:, type=<class '(?P<type>[^']+)'>)?")
_CHECK_TENSOR = re.compile(r"^check_tensor\((?P<name>[^,]+), (?P<class>[^,]+), .*?\), (?P<dtype>torch\.\w+), (?P<rest>.*)\)$")


def readable_name(source: str) -> str:
    """A guarded source as the user would write it.

    >>> readable_name("L['self']._modules['fc']._parameters['weight']")
    'self.fc.weight'
    >>> readable_name("G['__builtins_dict___1']['print']")
    'builtin print'
    """
    if source in ("", "G", "L"):
        return {"": "", "G": "globals", "L": "locals"}[source]
    source = _BUILTIN.sub(r"builtin \1", source)
    source = _IMPORT.sub(lambda match: match[1].replace("_dot_", "."), source)
    source = _LOCAL.sub(r"\1", source)
    source = _GLOBAL.sub(r"global \1", source)
    source = _CONTAINER.sub(r".\1", source)
    source = _DICT_ITEM.sub(r".\1", source)
    source = _CELL.sub(r" closure[\1]", source)
    source = _STACK.sub(r"value \1 at the graph break", source)
    return source.removesuffix(".__dict__")


def readable_condition(kind: str, text: str) -> str:
    """A guard's condition in words, without the addresses of objects.

    >>> readable_condition("EQUALS_MATCH", "L['self'].k == 3")
    'self.k == 3'
    >>> readable_condition("TYPE_MATCH", "___check_type_id(L['d'], 140070468554400), type=<class 'dict'>")
    'd is of type dict'
    """
    tensor = _CHECK_TENSOR.match(text)
    if tensor is not None:
        name = readable_name(tensor["name"])
        # Torch writes no device index for the CPU.
        rest = tensor["rest"].replace("device=None, ", "")
        return f"{name} is a {tensor['class']} of {tensor['dtype'].removeprefix('torch.')}, {rest}"
    type_check = _CHECK_TYPE.match(text)
    if type_check is not None:
        return f"{readable_name(type_check['name'])} is of type {type_check['type'] or 'the same as when compiled'}"
    same = _CHECK_OBJECT.match(text)
    if same is not None:
        what = f" ({same['type']})" if same["type"] else ""
        return f"{readable_name(same['name'])} is the same object{what}"
    if kind == "GLOBAL_STATE":
        return "torch's global state (grad mode, autocast, threads, determinism) is unchanged"
    return readable_name(text)
