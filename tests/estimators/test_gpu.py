"""Descriptions of GPUs: what the shipped ones say, what a file may say, and how it fails."""

from pathlib import Path

import pytest

from makespan.errors import InputError
from makespan.estimators import Origin, gpu
from makespan.estimators.gpu import Gpu, Status, datum
from makespan.estimators.gpu_keys import KEYS

FX5600 = {
    "sms": 16,
    "clock_ghz": 1.35,
    "mem_bw_gbs": 76.8,
    "warp_size": 32,
    "hong_kim.mem_ld": 420,
    "hong_kim.departure_del_uncoal": 10,
    "hong_kim.departure_del_coal": 4,
    "hong_kim.uncoal_per_mw": 32,
    "hong_kim.issue_cycles": 4,
    "limits.warps": 24,
    "limits.blocks": 8,
    "limits.registers": 8192,
    "limits.shared_bytes": 16384,
}
GTX280 = {
    "sms": 30,
    "clock_ghz": 1.3,
    "mem_bw_gbs": 141.7,
    "hong_kim.mem_ld": 450,
    "hong_kim.departure_del_uncoal": 40,
    "hong_kim.departure_del_coal": 4,
    "limits.warps": 32,
    "limits.blocks": 8,
    "limits.registers": 16384,
    "limits.shared_bytes": 16384,
}
HD6970 = {
    "sms": 24,
    "clock_ghz": 0.88,
    "mem_bw_gbs": 176,
    "warp_size": 64,
    "hong_kim.throughput.f32_add": 21,
    "hong_kim.throughput.f32_sub": 22,
    "hong_kim.throughput.f32_mul": 22,
    "hong_kim.throughput.f32_div": 2,
    "hong_kim.throughput.sin": 1,
    "hong_kim.throughput.native_sin": 2,
    "hong_kim.vector_throughput.f32_add": 40,
    "hong_kim.vector_throughput.f32_sub": 40,
    "hong_kim.vector_throughput.f32_mul": 40,
    "hong_kim.vector_throughput.f32_div": 2,
}
GTX1050 = {
    "sms": 5,
    "clock_ghz": 1.455,
    "mem_bw_gbs": 112,
    "kleimenov_popova.pb_per_sm": 4,
    "kleimenov_popova.band_DRAM": 77,
    "limits.registers": 65536,
    "limits.shared_bytes": 98304,
    "limits.warps": 64,
    "limits.blocks": 32,
    "kleimenov_popova.latency.f32": 6,
    "kleimenov_popova.latency.i32": 6,
    "kleimenov_popova.delay.f32": 1,
    "kleimenov_popova.delay.i32": 1,
    "kleimenov_popova.delay.f64": 32,
    "kleimenov_popova.delay.sfu": 4,
    "kleimenov_popova.lat_L1": 82,
    "kleimenov_popova.lat_L2": 216,
}
EXAMPLE = {**FX5600, "clock_ghz": 1, "mem_bw_gbs": 80}
EXAMPLE = {key: value for key, value in EXAMPLE.items() if not key.startswith("limits.")} | {"limits.blocks": 8}
FILE = """
name = "mine"
notes = ["measured by me"]
sms = { value = 2, source = "counted", status = "data sheet" }
[hong_kim]
mem_ld = { value = 400.5, source = "microbenchmark", status = "measured" }
coalescing_rule = { value = "cc10", source = "guide", status = "data sheet" }
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("quadro-fx5600", FX5600),
        ("gtx280", GTX280),
        ("hd6970", HD6970),
        ("gtx1050", GTX1050),
        ("isca09-example", EXAMPLE),
        ("8800gtx", {**FX5600, "mem_bw_gbs": 86.4}),
        ("8800gt", {**FX5600, "sms": 14, "clock_ghz": 1.5, "mem_bw_gbs": 57.6}),
    ],
)
def test_shipped_gpus_have_the_published_numbers(name: str, expected: dict[str, float]) -> None:
    found = gpu.find(name)
    assert {key: found.number(key) for key in expected} == expected
    assert all(one.source for one in found.data.values())


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("hd6970", ("hong_kim.mem_ld", "hong_kim.departure_del_coal", "hong_kim.departure_del_uncoal")),
        ("gtx280", ("hong_kim.uncoal_per_mw",)),
        ("gtx1050", ("kleimenov_popova.lat_uncoal", "kleimenov_popova.band_L1", "kleimenov_popova.band_L2")),
        ("gtx1050", ("kleimenov_popova.band_uncoal", "kleimenov_popova.lat_DRAM")),
    ],
)
def test_what_nobody_measured_is_not_there(name: str, missing: tuple[str, ...]) -> None:
    found = gpu.find(name)
    assert found.missing(*missing, "sms") == missing
    for key in missing:
        assert found.get(key) is None
        with pytest.raises(InputError, match=rf"GPU {name}: {key}.* is not known .*; .*, or give it"):
            found.number(key)


def test_parameters_of_a_sister_card_say_that_they_are_assumed() -> None:
    for name in ("8800gtx", "8800gt"):
        copied = gpu.find(name).data["hong_kim.mem_ld"]
        assert copied.status is Status.ASSUMED
        assert "quadro-fx5600" in copied.source
    assert gpu.find("gtx1050").data["kleimenov_popova.lat_L1"].status is Status.LITERATURE


def test_a_missing_number_says_what_measures_it() -> None:
    says = r"mem_ld \[cycles\] is not known \(latency of the device memory without load\);"
    with pytest.raises(InputError, match=f"{says} measure it with `makespan microbench memory`"):
        gpu.find("hd6970").number("hong_kim.mem_ld")


def test_a_file_is_read_and_written_without_loss(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FILE)
    found = gpu.find(str(file))
    assert (found.name, found.whole("sms"), found.number("hong_kim.mem_ld")) == ("mine", 2, 400.5)
    assert found.text("hong_kim.coalescing_rule") == "cc10"
    assert found.text("limits.register_scope") is None
    again = tmp_path / "again.toml"
    gpu.write(found, again)
    assert gpu.read(again) == found
    for name, one in gpu.shipped().items():
        gpu.write(one, again)
        assert gpu.read(again) == one, name


def test_figures_of_a_caller_win() -> None:
    found = gpu.find("isca09-example")
    changed = found.with_data({"mem_bw_gbs": datum("mem_bw_gbs", 160, source="--set")})
    assert changed.number("mem_bw_gbs") == 160
    assert found.number("mem_bw_gbs") == 80
    assert changed.quantity("mem_bw_gbs", "Mem_Bandwidth").origin is Origin.GIVEN
    quantity = changed.quantity("sms", "SMs")
    assert (quantity.value, quantity.unit, quantity.origin) == (16, "", Origin.GPU)
    assert quantity.note.startswith("literature, unverified: S. Hong and H. Kim")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smms = 3", "unknown key 'smms'; known: sms, clock_ghz"),
        ("[hong_kim]\nmem_lt = 3", "unknown key 'hong_kim.mem_lt'; known: hong_kim.mem_ld"),
        ("[nothing]\na = 3", "unknown key 'nothing'"),
        ("sms = 3", r"sms must be \{ value = ..., source = .*\}, not 3"),
        ('sms = { value = 3, source = "x" }', "sms must be"),
        ('sms = { value = 3, source = "x", status = "sure" }', "sms: status 'sure'; there are: measured; data sheet"),
        ('sms = { value = 3, source = "", status = "measured" }', "source must be 1..500 printable characters"),
        ('sms = { value = 3, source = "a\\u001bb", status = "measured" }', "printable"),
        ('sms = { value = 2.5, source = "x", status = "measured" }', "sms must be a whole number of at least 1"),
        ('sms = { value = 0, source = "x", status = "measured" }', "sms must be a whole number of at least 1"),
        ('sms = { value = true, source = "x", status = "measured" }', "sms must be a whole number"),
        ('clock_ghz = { value = 0, source = "x", status = "measured" }', "clock_ghz must be a number above 0"),
        ('clock_ghz = { value = nan, source = "x", status = "measured" }', "clock_ghz must be a number above 0"),
        ('clock_ghz = { value = inf, source = "x", status = "measured" }', "clock_ghz must be a number above 0"),
        ('clock_ghz = { value = "1", source = "x", status = "measured" }', "clock_ghz must be a number above 0"),
        (
            '[hong_kim]\ndeparture_del_coal = { value = -1, source = "x", status = "measured" }',
            "hong_kim.departure_del_coal must be a number of at least 0",
        ),
        (
            '[hong_kim]\ncoalescing_rule = { value = "cc99", source = "x", status = "measured" }',
            "must be one of cc10, segments, not 'cc99'",
        ),
        ("notes = 3", "notes must be a list of texts"),
        ("name = 3", "name must be a text"),
        ("sms = ", "not a TOML GPU file"),
        ("a" * 70_000, "larger than 64 KiB"),
    ],
)
def test_bad_files_are_refused_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        gpu.read(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_names_that_are_nowhere_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown GPU 'gtx9'; shipped: 8800gt, 8800gtx, gtx1050, gtx280"):
        gpu.find("gtx9")
    with pytest.raises(InputError, match="cannot read the GPU file: No such file"):
        gpu.find(str(tmp_path / "missing.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\x80")
    with pytest.raises(InputError, match="not UTF-8 text"):
        gpu.find(str(tmp_path / "bytes.toml"))
    with pytest.raises(InputError, match="cannot write the GPU file"):
        gpu.write(gpu.find("gtx280"), tmp_path / "no" / "folder.toml")
    with pytest.raises(InputError, match="unknown key 'mem_ld'"):
        Gpu("x", {"mem_ld": datum("hong_kim.mem_ld", 3, source="x")})
    with pytest.raises(InputError, match="unknown key 'nonsense'"):
        gpu.find("gtx280").get("nonsense")


def test_every_key_says_how_to_get_its_number() -> None:
    for name, key in KEYS.items():
        assert key.meaning, name
        assert key.how, name
