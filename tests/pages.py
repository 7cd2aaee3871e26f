"""Pages to look at, and how to read what stands on them without a browser."""

import json
import random
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from typing import Any

from makespan.kernels.flow import BoundBasis, LoopBound, LoopInfo, SourceLine
from makespan.kernels.sass import Address, KernelResources, SassInstruction, SassKernel
from makespan.model.assumptions import caveat
from makespan.model.instance import Instance
from makespan.model.machine import Latency, Machine, UnitClass
from makespan.model.program import InstructionOrigin, Program
from makespan.model.result import Bounds, Result, Upper
from makespan.model.schedule import Schedule
from makespan.model.simulate import POLICIES, Choices, run
from makespan.proof.bounds import least_possible, pessimistic
from makespan.proof.engines import solve
from makespan.proof.policy_gap import PolicyGap, enclosing
from makespan.report.html import PageCommand, PageContext, PageInput, page_data, render_page

CONTEXT = PageContext("strings", Choices())
EVIDENCE = "0" * 64
_VOID = {"meta", "link", "input", "br"}
_SLOW = Machine(
    "slow", (UnitClass("C", 2, 1, Latency(4, 4)), UnitClass("L", 1, 2, Latency(20, 60)), UnitClass("D", 1, 5)), 2
)


class Element:
    """An element with its text; what is in it has elements of its own."""

    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.tag, self.attributes, self.text, self.inside = tag, attributes, "", list[Element]()

    def __iter__(self) -> "Iterator[Element]":
        yield self
        for element in self.inside:
            yield from element

    def all(self, tag: str) -> "list[Element]":
        return [element for element in self if element.tag == tag]

    def one(self, identity: str) -> "Element":
        (found,) = (element for element in self if element.attributes.get("id") == identity)
        return found

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


class Reader(HTMLParser):
    """A strict reader: every element ends where it should."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(text)
        self.close()
        assert self._open == [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        assert len(element.attributes) == len(attrs)
        self._open[-1].inside.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].inside.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data


def read(text: str) -> Element:
    return Reader(text).root


@cache
def gap() -> PolicyGap:
    instance = Instance.of("CLLC|LCLCC", 6, blocks=2)
    return enclosing(solve(instance, best_case=True), {policy: run(instance, policy) for policy in POLICIES})


@cache
def data() -> dict[str, Any]:
    return page_data(gap(), replace(CONTEXT, curve=(gap().result,)), EVIDENCE)


@cache
def page() -> Element:
    return read(render_page(data()))


def embedded(root: Element) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(root.one("page-data").text)
    return found


@cache
def long_page(cycles: int) -> str:
    """So many cycles, and some, of 64 warps that a random policy mixed: what compresses worst."""
    draw = random.Random(5)
    instance = Instance.of("".join(draw.choice("CCL") for _ in range(cycles // 43)), 64)
    witness = run(instance, "random")
    most = pessimistic(instance)
    shortest = Bounds(least_possible(instance), witness.makespan)
    result = Result(
        instance, Bounds(witness.makespan, most), witness, Upper.PESSIMISTIC, most, shortest, "certificate", 1.0, ()
    )
    assert witness.makespan > cycles
    return render_page(page_data(PolicyGap(result, {"random": witness.makespan}), CONTEXT, EVIDENCE))


@cache
def slow() -> PolicyGap:
    instance = Instance.of(
        Program.chain(
            "CCLCDCLC" * 3, origins=[InstructionOrigin("k.ptx", 5 + n, f"op{n}", f"k.cu:{n}") for n in range(24)]
        ),
        6,
        _SLOW,
    )
    witness = run(instance, "lrr")
    most = pessimistic(instance)
    shortest = Bounds(least_possible(instance), witness.makespan)
    result = Result(
        instance,
        Bounds(witness.makespan, most),
        witness,
        Upper.PESSIMISTIC,
        most,
        shortest,
        "x",
        1.0,
        instance.assumptions,
    )
    return PolicyGap(result, {"lrr": witness.makespan})


def page_about(text: str) -> dict[str, Any]:
    """A page in which everything that comes from outside is this text."""
    machine = Machine(text, (UnitClass("C", 1), UnitClass("L", 1)), caveats=(caveat(text),))
    origins = (InstructionOrigin(text, 1, text, f"{text}:1"),) * 2
    program = Program(Program.chain("CL").places, origins=origins, assumptions=(caveat(text),))
    instance = Instance.of(program, 2, machine)
    witness = Schedule.of_chains(instance, [(0,), (0, 1), (1,)])
    result = Result(instance, Bounds(3, 3), witness, Upper.SEARCH, 4, Bounds(3, 3), "auto", 0.5, (caveat(text),))
    code = SassInstruction(Address(1), "NOP", ptx=SourceLine(text, 1))
    context = PageContext(
        text,
        Choices(),
        inputs=(PageInput("source", text, text.encode("utf-8", "surrogatepass")),),
        kernel=SassKernel(text, text, text, 86, (code,), KernelResources(1), ptx_text=text),
        commands=(PageCommand("Again:", text),),
        loops=(LoopInfo(text, 3, text, LoopBound(2, exact=True, source=text, by=BoundBasis.USER), 1),),
    )
    return page_data(PolicyGap(result, {"lrr": 3}), context, EVIDENCE)


def numbers(text: str) -> list[int]:
    """What `column` wrote, read by its description."""
    found, value, digit = [], 0, 1
    for byte in b64decode(text[1:]):
        value += (byte & 127) * digit
        digit *= 128
        if byte < 128:
            found.append(-(value + 1) // 2 if value % 2 else value // 2)
            value, digit = 0, 1
    if text[0] == "p":
        return found
    return [number for number, count in zip(found[::2], found[1::2], strict=True) for _ in range(count)]


Row = list[tuple[int, int, str, str, int | None, int | None]]


def rows(drawn: dict[str, Any]) -> list[Row]:
    """Per warp: first cycle, cycles, why, class, place and port of every stretch, as the page tells them."""
    warps = (row for row in drawn["rows"] if row["warp"] is not None)
    return [spans(drawn, row) for row in sorted(warps, key=lambda row: row["warp"])]


def spans(drawn: dict[str, Any], row: dict[str, Any]) -> Row:
    """The same of one row, of a warp or a port."""
    columns = [numbers(row[key]) for key in ("kind", "gap", "cycles", "place", "port")]
    found: Row = []
    now, place = 0, -1
    for number, gap, cycles, step, port in zip(*columns, strict=True):
        kind, first, place = drawn["kinds"][number], now + gap, place + step
        issues = kind["why"] == "issues"
        found.append((first, cycles, kind["why"], kind["unit"], place if issues else None, port if issues else None))
        now = first + cycles
    return found
