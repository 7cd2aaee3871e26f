"""Prints a module as PTX text that parses to the same module; blanks and ordinary comments are gone."""

from collections.abc import Iterator

from makespan.kernels.ptx.module import (
    Brace,
    Declaration,
    Item,
    PtxInstruction,
    PtxKernel,
    PtxLabel,
    PtxModule,
    Statement,
)


def render(module: PtxModule) -> str:
    """Return the text of a module: `parse(render(m), ...) == m`."""
    return "".join(f"{line}\n" for item in module.items for line in _item(item))


def _item(item: Item) -> Iterator[str]:
    if isinstance(item, PtxKernel):
        return _kernel(item)
    return iter((f"{item.text};" if isinstance(item, Declaration) else item.text,))


def _kernel(kernel: PtxKernel) -> Iterator[str]:
    head = [*kernel.linkage, ".entry" if kernel.is_entry else ".func"]
    head += [_parameters(kernel.returns), kernel.name, _parameters(kernel.parameters)]
    yield " ".join(filter(None, head))
    yield from kernel.attributes
    if kernel.body is None:
        yield ";"
    else:
        yield "{"
        yield from map(_statement, kernel.body)
        yield "}"


def _parameters(parameters: tuple[Declaration, ...] | None) -> str:
    return "" if parameters is None else f"({', '.join(p.text for p in parameters)})"


def _statement(statement: Statement) -> str:
    match statement:
        case PtxInstruction():
            return f"\t{statement}"
        case PtxLabel(name):
            return f"{name}:"
        case Declaration():
            return f"\t{statement.text};"
        case Brace(opens):
            return "\t{" if opens else "\t}"
        case _:
            return f"\t{statement.text}"
