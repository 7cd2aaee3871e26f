"""Who executes which opcode."""

from collections.abc import Callable
from typing import TypeAlias

from tests.sass_interpreter.machine import Action
from tests.sass_interpreter.operands import Decoding

Handler: TypeAlias = Callable[[Decoding], Action]

HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register what decodes these opcodes."""

    def register(handler: Handler) -> Handler:
        for name in names:
            assert name not in HANDLERS, name
            HANDLERS[name] = handler
        return handler

    return register


def decoded(d: Decoding) -> Action:
    """What an instruction does; a uniform twin does the same with uniform registers."""
    name = d.name
    handler = HANDLERS.get(name) or HANDLERS.get(name.removeprefix("U"))
    if handler is None:
        raise d.unsupported()
    return handler(d)
