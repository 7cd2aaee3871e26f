"""Predictions against the published numbers of Pöppl 2014, and cost tables that are none."""

import json
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from makespan.estimates import Estimate, Origin
from makespan.estimates.opencl_cost_table import table as tables
from makespan.estimates.opencl_cost_table.counting import count
from makespan.estimates.opencl_cost_table.expression import Array, Type
from makespan.estimates.opencl_cost_table.language import iteration
from makespan.estimates.opencl_cost_table.prediction import LaunchWork, Prediction, estimate, predict
from makespan.estimates.opencl_cost_table.table import LinearCost, OperationCost, RowCounts, Saturation
from makespan.estimates.report import cost_prediction
from makespan.host.errors import InputError
from makespan.host.text_file import shipped_files

MATRIX = Array("matrix", Type.FLOAT, (4096, 4096))
PUBLISHED = tables.find("rmbp-gt650m")
ROWS = {
    "FLOAT_ADD": 54.82778805217169,
    "INT_ADD": 55.128781833866825,
    "INT_MUL": 81.04237583646253,
    "INT_DIV": 1509.3169877866271,
    "GLOBAL_READ": 4981.5752014161835,
    "BASE_COST": 3191.479259200592,
}
"""The example of the source: row and microseconds; all others are 0."""


def predicted(
    body: str, overrides: Mapping[str, float] | None = None, *, group: int | None = None, alike: bool = False
) -> Prediction:
    found = iteration(rf"matrix.\(x,y){{ {body} }}", arrays=[MATRIX], constants={"HEIGHT": 4096, "WIDTH": 4096})
    counts = count(found, interval_bytes=PUBLISHED.interval_bytes, classified=not alike)
    work = LaunchWork(counts, found.work_items, group, found.bytes_in, found.bytes_out)
    return predict(PUBLISHED, work, overrides)


def changed(**keys: Any) -> str:
    """The shipped table with other values at the top."""
    text = (resources.files("makespan") / "data" / "cost_tables" / "rmbp-gt650m.json").read_text("utf-8")
    return json.dumps({**json.loads(text), **keys})


def test_p1_the_published_rows_add_up() -> None:
    found = predicted("x + matrix[x,y]", ROWS)
    assert found.kernel == pytest.approx(9873.370394125905, rel=1e-12)
    total = next(line for line in cost_prediction.text(found).splitlines() if line.startswith("TOTAL_COST"))
    assert total.split()[1].startswith("9873.37")


def test_p3_rows_from_the_published_coefficients() -> None:
    found = predicted("x + matrix[x,y]")
    computed = {
        "FLOAT_ADD": 54.826264,
        "INT_ADD": 55.128254,
        "INT_MUL": 81.042342,
        "INT_DIV": 1509.300530,
        "BASE_COST": 3191.552046,
        "GLOBAL_READ": 8759.565901,
    }
    assert {name: found[name].microseconds for name in computed} == pytest.approx(computed, abs=5e-7)
    for name in computed.keys() - {"GLOBAL_READ"}:
        assert found[name].microseconds == pytest.approx(ROWS[name], rel=5e-5)
    assert found["GLOBAL_READ"].microseconds != pytest.approx(ROWS["GLOBAL_READ"], rel=0.5)
    assert found.kernel == pytest.approx(13651.415337, abs=1e-6)


def test_p3_with_the_published_read() -> None:
    found = predicted("x + matrix[x,y]", {"GLOBAL_READ": ROWS["GLOBAL_READ"]})
    assert found.kernel == pytest.approx(9873.370, abs=0.1)
    assert found.kernel == pytest.approx(9873.424637, abs=1e-6)


def test_p3_an_unclassified_read() -> None:
    found = predicted("x + matrix[x,y]", alike=True)
    assert found["UNCLASSIFIED_GLOBAL_READ"].microseconds == pytest.approx(4151.422694, abs=1e-6)


@pytest.mark.parametrize(
    ("body", "microseconds"),
    [
        ("matrix[x,y]*(matrix[x,y]*matrix[x,y])", 31190.268757),
        ("matrix[x,y] + matrix[1 % HEIGHT, 1 % WIDTH]", 14422.335123),
        (
            "428.3741f + ((matrix[1 % HEIGHT, 1 % WIDTH] + matrix[x,y]) + matrix[y % HEIGHT, x % WIDTH])",
            73484.964004,
        ),
    ],
)
def test_p4_the_predicted_expressions(body: str, microseconds: float) -> None:
    assert predicted(body).kernel == pytest.approx(microseconds, abs=1e-6)


@pytest.mark.parametrize(
    ("size", "factor", "digits"),
    [
        (1, 29.858287, 6),
        (2, 22.939987, 6),
        (8, 8.557844, 6),
        (16, 4.541134, 6),
        (32, 1.948862, 6),
        (64, 1.069041, 6),
        (256, 1.0000000102, 10),
    ],
)
def test_p5_work_group_factor(size: int, factor: float, digits: int) -> None:
    assert round(PUBLISHED.wg.factor(size), digits) == factor
    plain, grouped = predicted("x + matrix[x,y]"), predicted("x + matrix[x,y]", group=size)
    assert grouped.kernel == pytest.approx(plain.kernel * factor, rel=1e-6)


@pytest.mark.parametrize(("n", "costs"), [(0, 0), (1, 1), (8, 1), (9, 1), (12, 4), (128, 120)])
def test_p6_saturation(n: int, costs: float) -> None:
    law = Saturation(kind="sat", x_sat=8)
    assert law.multiple(n) == costs
    operation = OperationCost(slope=2e-3, saturation=law)
    assert operation.microseconds(n, 1000) == pytest.approx(2 * costs)


@pytest.mark.parametrize(
    ("size", "there", "back"), [(16 << 20, 60578.84328, 9122.093698), (64 << 20, 240766.14312, 35967.484792)]
)
def test_p7_transfers(size: int, there: float, back: float) -> None:
    assert PUBLISHED.transfer_microseconds(size, back=False) == pytest.approx(there, abs=5e-6)
    assert PUBLISHED.transfer_microseconds(size, back=True) == pytest.approx(back, abs=5e-7)


def test_p7_transfers_of_elements_are_four_times_as_fast() -> None:
    table = tables.parse(changed(transfer_unit="element"), "t.json")
    assert 4 / table.transfer.to.slope == pytest.approx(1117, abs=1)
    assert table.transfer_microseconds(4000, back=False) == pytest.approx(table.transfer.to(1000))


def test_p8_decision() -> None:
    found = predicted("x + matrix[x,y]", ROWS)
    assert found.total == pytest.approx(286606.998, abs=5e-4)
    assert cost_prediction.decision(found, 0.2).startswith("stay on the CPU")
    assert cost_prediction.decision(found, 0.3).startswith("run on the device")
    assert not found.on_device(found.total * 1e-6)  # as fast is no reason to move


def test_y0_of_the_source_as_printed_gives_no_time_at_all() -> None:
    wg = {"y0": 0, "B1": 13.04, "t1": 12.21124, "B2": 26.10, "t2": 2.28329}
    assert tables.parse(changed(wg=wg), "t.json").wg.factor(256) == pytest.approx(1.02e-8, rel=1e-2)


@pytest.mark.parametrize(
    ("law", "costs"),
    [
        (Saturation(kind="count_free"), {0: 0, 1: 2, 9: 2, 128: 2}),
        (Saturation(kind="count_free", tau=None), {3: 2}),
        (Saturation(kind="linear"), {0: 0, 1: 2, 9: 18}),
        (Saturation(kind="linear", tau=0.5e-3), {1: 2, 9: 6}),
        (Saturation(kind="sat", x_sat=8, tau=0.5e-3), {0: 0, 1: 2, 8: 2, 9: 2.5, 12: 4}),
        (Saturation(kind="table", points=((1, 1.0), (4, 0.5), (8, 0.75))), {1: 2, 4: 4, 6: 7.5, 8: 12, 16: 24}),
    ],
)
def test_laws_of_several_operations(law: Saturation, costs: dict[int, float]) -> None:
    operation = OperationCost(slope=2e-3, saturation=law)
    assert {n: operation.microseconds(n, 1000) for n in costs} == pytest.approx(costs)


def test_division_by_a_literal_has_a_price_of_its_own_where_it_was_measured() -> None:
    work = LaunchWork(RowCounts({"BASE_COST": 1, "INT_DIV": 5}, literal_divisions=4), 1000)
    cheap = OperationCost(slope=1e-6, saturation=Saturation(kind="linear"))
    divided = replace_ops(
        INT_DIV_LITERAL=cheap, INT_DIV=OperationCost(slope=1e-3, saturation=Saturation(kind="linear"))
    )
    assert predict(divided, work)["INT_DIV"].microseconds == pytest.approx(1 + 0.004)
    assert predict(PUBLISHED, work)["INT_DIV"].microseconds == pytest.approx(8.9781e-5 * 1000 + 3.0253)


def replace_ops(**ops: OperationCost) -> tables.OpenClCostTable:
    import msgspec

    return msgspec.structs.replace(PUBLISHED, ops={**PUBLISHED.ops, **ops})


def test_a_store_is_priced_as_a_read_unless_the_table_knows_better() -> None:
    import msgspec

    work = LaunchWork(RowCounts({"BASE_COST": 1, "GLOBAL_WRITE": 2}), 1000)
    assert predict(PUBLISHED, work)["GLOBAL_WRITE"].microseconds == pytest.approx(2 * (0.521932 + 3))
    known = msgspec.structs.replace(PUBLISHED, access={**PUBLISHED.access, "GLOBAL_WRITE": LinearCost(slope=1e-3)})
    assert predict(known, work)["GLOBAL_WRITE"].microseconds == pytest.approx(2)


def test_a_row_that_is_missing_is_named_with_its_experiment() -> None:
    with pytest.raises(InputError, match=r"no row DOUBLE_MUL, .*measure opencl --double', experiment B4"):
        predict(PUBLISHED, LaunchWork(RowCounts({"DOUBLE_MUL": 1}), 1))
    import msgspec

    bare = msgspec.structs.replace(PUBLISHED, access={})
    with pytest.raises(InputError, match=r"no row COMPLEX_GLOBAL_READ, .*experiment B7"):
        predict(bare, LaunchWork(RowCounts({"COMPLEX_GLOBAL_READ": 1}), 1))
    given = predict(bare, LaunchWork(RowCounts({"COMPLEX_GLOBAL_READ": 1}), 1), {"COMPLEX_GLOBAL_READ": 5.0})
    assert given["COMPLEX_GLOBAL_READ"].microseconds == 5


def test_what_was_too_cheap_to_measure_is_a_warning() -> None:
    unresolved = replace_ops(
        FLOAT_ADD=OperationCost(slope=0, unresolved=True, saturation=Saturation(kind="count_free"))
    )
    found = predict(unresolved, LaunchWork(RowCounts({"FLOAT_ADD": 1}), 1))
    assert "too cheap to be measured, and taken as 0: FLOAT_ADD" in found.warnings
    assert (
        predict(unresolved, LaunchWork(RowCounts({"FLOAT_ADD": 1}), 1), {"FLOAT_ADD": 1.0}).warnings
        == found.warnings[1:]
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: LaunchWork(RowCounts({}), 0), "0 work-items"),
        (lambda: LaunchWork(RowCounts({}), 100, 7), "work-group size 7 does not divide the 100 work-items"),
        (lambda: LaunchWork(RowCounts({}), 100, 0), "work-group size 0: at least 1"),
        (lambda: LaunchWork(RowCounts({}), 1, None, -1, 0), "transfer to the device: -1 bytes"),
        (lambda: LaunchWork(RowCounts({}), 1, None, 0, -5), "transfer from the device: -5 bytes"),
        (lambda: predict(PUBLISHED, LaunchWork(RowCounts({}), 4096, 2048)), "takes at most 1024"),
        (lambda: predict(PUBLISHED, LaunchWork(RowCounts({}), 1), {"FOO": 1.0}), "override of FOO: no such row"),
        (
            lambda: predict(PUBLISHED, LaunchWork(RowCounts({}), 1), {"INT_ADD": -1.0}),
            "override of INT_ADD: -1.0 is not a time",
        ),
        (lambda: predict(PUBLISHED, LaunchWork(RowCounts({}), 1), {"INT_ADD": float("nan")}), "nan is not a time"),
        (lambda: RowCounts({"FOO": 1}), "unknown row FOO"),
        (lambda: RowCounts({"INT_ADD": -1}), "negative count"),
        (lambda: RowCounts({"INT_DIV": 1}, 2), "2 of 1 divisions"),
    ],
)
def test_a_launch_that_cannot_be_priced(wrong: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        wrong()


SAT = {"kind": "sat", "x_sat": 8}


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"foo": 1}, "unknown field `foo`"),
        ({"base": {"slope": 1, "foo": 2}}, "unknown field `foo`"),
        ({"base": {"slope": -1}}, "Expected `float` >= 0.0 - at `$.base.slope`"),
        ({"base": {"slope": float("nan")}}, "malformed"),
        ({"base": {"slope": float("inf")}}, "malformed"),
        ({"base": {"slope": 1, "icept": -2}}, "Expected `float` >= 0.0 - at `$.base.icept`"),
        ({"base": {}}, "missing required field `slope`"),
        ({"units": "ms"}, "units"),
        ({"interval_bytes": 0}, "Expected `int` >= 1 - at `$.interval_bytes`"),
        ({"max_work_group": 0}, "Expected `int` >= 1 - at `$.max_work_group`"),
        ({"ops": {"FLOAT_POW": {"slope": 1, "saturation": SAT}}}, "unknown row 'FLOAT_POW' in ops"),
        ({"access": {"L1_READ": {"slope": 1}}}, "unknown row 'L1_READ' in access"),
        ({"ops": {"INT_ADD": {"slope": 1}}}, "missing required field `saturation`"),
        (
            {"ops": {"INT_ADD": {"slope": 1, "saturation": {"kind": "sat", "x_sat": 0}}}},
            "Expected `int` >= 1 - at `$.ops[...].saturation.x_sat`",
        ),
        ({"ops": {"INT_ADD": {"slope": 1, "saturation": {"kind": "sat"}}}}, "x_sat belongs to kind 'sat'"),
        ({"ops": {"INT_ADD": {"slope": 1, "saturation": {"kind": "linear", "x_sat": 3}}}}, "x_sat belongs to"),
        ({"ops": {"INT_ADD": {"slope": 1, "saturation": {**SAT, "tau": -1}}}}, "Expected `float` >= 0.0"),
        ({"ops": {"INT_ADD": {"slope": 1, "saturation": {"kind": "table"}}}}, "points belong to kind 'table'"),
        ({"ops": {"INT_ADD": {"slope": 1, "saturation": {"kind": "table", "points": [[2, 1], [1, 1]]}}}}, "rising"),
        ({"wg": {"y0": 1, "B1": 1, "t1": 0, "B2": 1, "t2": 1}}, "Expected `float` > 0.0 - at `$.wg.t1`"),
        ({"wg": {"y0": 1, "B1": -1, "t1": 1, "B2": 1, "t2": 1}}, "Expected `float` >= 0.0 - at `$.wg.B1`"),
        ({"device": "two\nlines"}, "not a printable text"),
        ({"source": "two\nlines"}, "not a printable text"),
        ({"source": "\ud800"}, "malformed"),
        ({"base": {"slope": 1, "source": "\x1b[31m"}}, "not a printable text"),
        ({"wg": {"y0": 1, "B1": 1, "t1": 1, "B2": 1, "t2": 1, "source": "\x1b[31m"}}, "not a printable text"),
        ({"base": {"slope": 1, "se": float("nan")}}, "malformed"),
        ({"base": {"slope": 1, "se": -1}}, "Expected `float` >= 0.0 - at `$.base.se`"),
        ({"base": {"slope": 1, "r2": float("nan")}}, "malformed"),
        ({"rel_tol": float("nan")}, "malformed"),
        ({"rel_tol": -1}, "Expected `float` > 0.0 - at `$.rel_tol`"),
        (
            {"ops": {"INT_ADD": {"slope": 1, "saturation": {"kind": "count_free", "tau": 1}}}},
            "tau belongs to kinds 'sat' and 'linear'",
        ),
        (
            {"ops": {"INT_ADD": {"slope": 1, "saturation": {"kind": "table", "points": [[1, 1]], "tau": 1}}}},
            "tau belongs to kinds 'sat' and 'linear'",
        ),
    ],
)
def test_a_table_with_a_fault_is_refused_in_one_line(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        tables.parse(changed(**keys), "t.json")
    assert str(refused.value).startswith("t.json: not a cost table: ")
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"device": "a", "device": "b"}', "[" * 100_000, "nonsense"])
def test_other_texts_are_no_tables(text: str) -> None:
    with pytest.raises(InputError, match="not a cost table"):
        tables.parse(text, "t.json")


def test_a_key_that_is_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match="key 'device' is given twice"):
        tables.parse(changed().replace('"device"', '"device": "first", "device"', 1), "t.json")


def test_tables_are_found_by_name_or_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(tables.table_json(PUBLISHED))
    assert tables.find(str(path)) == PUBLISHED == tables.find("rmbp-gt650m")
    with pytest.raises(InputError, match=r"unknown cost table 'foo'; shipped: .*rmbp-gt650m"):
        tables.find("foo")
    with pytest.raises(InputError, match="cannot read the cost table"):
        tables.find(str(tmp_path / "none.json"))
    path.write_bytes(b"\xff" * 10)
    with pytest.raises(InputError, match="not UTF-8"):
        tables.find(str(path))
    path.write_bytes(b" " * (tables.MAX_FILE_BYTES + 1))
    with pytest.raises(InputError, match="larger than 1 MiB"):
        tables.find(str(path))


def test_shipped_tables_say_where_they_come_from() -> None:
    shipped = [tables.find(name) for name in shipped_files("cost_tables", ".json")]
    assert shipped
    assert all(table.source or table.driver for table in shipped)


def test_the_estimate_is_one_and_knows_where_its_numbers_come_from() -> None:
    found = estimate(predicted("x + matrix[x,y]"))
    assert isinstance(found, Estimate)
    assert found.cycles is None
    assert found.seconds == pytest.approx((13651.415337 + 240766.14312 + 35967.484792) * 1e-6)
    assert found.limiting == "to the device"
    assert sum(term.value for term in found.terms) == pytest.approx(found.seconds)
    assert {quantity.origin for quantity in found.quantities} >= {Origin.DERIVED, Origin.MEASURED}
    assert replace(found, cycles=1.0) != found
