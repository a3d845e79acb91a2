"""Log records of its own making, which torch's trace events would collide with, and a logging set-up that silences loggers."""

import logging
import logging.config

import torch


class Holder:
    pass


logging.config.dictConfig({"version": 1, "disable_existing_loggers": True})
old = logging.getLogRecordFactory()
made = []


def factory(*args, **kwargs):
    record = old(*args, **kwargs)
    record.metadata = {"request": 7}
    made.append(record)
    return record


logging.setLogRecordFactory(factory)
for logger in logging.root.manager.loggerDict.values():
    if isinstance(logger, logging.Logger):
        logger.handlers.clear()
holder = Holder()
setattr(holder, "\udc80", 3)
program = torch.compile(lambda x, a: x + getattr(a, "\udc80"), backend="eager")
print(program(torch.ones(2), holder).tolist(), program(torch.ones(3), holder).tolist(), len(made))
