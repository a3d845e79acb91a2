"""A program with hooks and log settings of its own."""

import logging

import torch
import torch._dynamo.callback as callback
import torch._dynamo.convert_frame as convert_frame

starts = []
callback.callback_handler.register_start_callback(lambda arguments: starts.append(arguments.compile_id))
rewritten = []


def hook(original, new):
    rewritten.append(original.co_name)
    return new


handle = convert_frame.register_bytecode_hook(hook)


@torch.compile(backend="eager")
def first(x, n):
    if n == 2:
        print("two")
    return x * n


@torch.compile(backend="eager")
def second(x):
    return x - 1


first(torch.ones(2), 1)
first(torch.ones(2), 2)
torch._logging.set_logs(recompiles=False, dynamo=logging.ERROR)
second(torch.ones(2))
print("callbacks", len(starts), "bytecode hook", rewritten)
