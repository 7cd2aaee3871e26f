"""Descriptions of GPUs: what the shipped ones say, what a file may say, and how it fails."""

import json
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from makespan import cli
from makespan.estimates.estimate import Origin, from_gpu
from makespan.host.errors import InputError
from makespan.model.machine import gpus
from makespan.model.machine.gpus import KEYS, DatumStatus, Gpu, gpu_datum
from makespan.model.machine.occupancy import SmLimits

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
    "hong_kim.issue_cycles": 4,
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
    found = gpus.find_gpu(name)
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
    found = gpus.find_gpu(name)
    assert found.missing(*missing, "sms") == missing
    for key in missing:
        assert found.get(key) is None
        with pytest.raises(InputError, match=rf"GPU {name}: {key}.* is not known .*; .*, or give it"):
            found.number(key)


def test_parameters_of_a_sister_card_say_that_they_are_assumed() -> None:
    for name in ("8800gtx", "8800gt"):
        copied = gpus.find_gpu(name).data["hong_kim.mem_ld"]
        assert copied.status is DatumStatus.ASSUMED
        assert "quadro-fx5600" in copied.source
    assert gpus.find_gpu("gtx1050").data["kleimenov_popova.lat_L1"].status is DatumStatus.LITERATURE


def test_a_missing_number_says_what_measures_it() -> None:
    says = r"mem_ld \[cycles\] is not known \(latency of the device memory without load\);"
    with pytest.raises(InputError, match=f"{says} measure it with `makespan measure memory`"):
        gpus.find_gpu("hd6970").number("hong_kim.mem_ld")


def test_a_file_is_read_and_written_without_loss(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FILE)
    found = gpus.find_gpu(str(file))
    assert (found.name, found.whole("sms"), found.number("hong_kim.mem_ld")) == ("mine", 2, 400.5)
    assert found.text("hong_kim.coalescing_rule") == "cc10"
    assert found.text("limits.register_scope") is None
    again = tmp_path / "again.toml"
    again.write_text(gpus.gpu_text(found), "utf-8")
    assert gpus.read_gpu(again) == found
    for name, one in gpus.shipped_gpus().items():
        again.write_text(gpus.gpu_text(one), "utf-8")
        assert gpus.read_gpu(again) == one, name


def test_figures_of_a_caller_win() -> None:
    found = gpus.find_gpu("isca09-example")
    changed = found.with_data({"mem_bw_gbs": gpu_datum("mem_bw_gbs", 160, source="--set")})
    assert changed.number("mem_bw_gbs") == 160
    assert found.number("mem_bw_gbs") == 80
    assert from_gpu(changed, "mem_bw_gbs", "Mem_Bandwidth").origin is Origin.GIVEN
    quantity = from_gpu(changed, "sms", "SMs")
    assert (quantity.value, quantity.unit, quantity.origin) == (16, "", Origin.GPU)
    assert quantity.note.startswith("literature, unverified: S. Hong and H. Kim")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("smms = 3", "unknown key 'smms'; did you mean 'sms'[?] known: sms, clock_ghz"),
        (
            "[hong_kim]\nmem_lt = 3",
            "unknown key 'hong_kim.mem_lt'; did you mean 'hong_kim.mem_ld'[?] known: hong_kim.mem_ld",
        ),
        ("[nothing]\na = 3", "unknown key 'nothing'"),
        ("[hong_kin]\nmem_ld = 3", "unknown key 'hong_kin'; did you mean 'hong_kim'[?] known: sms, clock_ghz"),
        ("[mig.1g]\n10g = 3", "unknown key 'mig.1g.10g'; known: mig.<N>g.<N>gb"),
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
        gpus.read_gpu(file)
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_names_that_are_nowhere_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown GPU 'gtx9'; shipped: 8800gt, 8800gtx, a100-pcie, a100-sxm, gtx1050"):
        gpus.find_gpu("gtx9")
    with pytest.raises(InputError, match="cannot read the GPU file: No such file"):
        gpus.find_gpu(str(tmp_path / "missing.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff\x80")
    with pytest.raises(InputError, match="not UTF-8 text"):
        gpus.find_gpu(str(tmp_path / "bytes.toml"))
    with pytest.raises(InputError, match="unknown key 'mem_ld'"):
        Gpu("x", {"mem_ld": gpu_datum("hong_kim.mem_ld", 3, source="x")})
    with pytest.raises(InputError, match="unknown key 'nonsense'"):
        gpus.find_gpu("gtx280").get("nonsense")


def test_every_key_says_how_to_get_its_number() -> None:
    for name, key in KEYS.items():
        assert key.meaning, name
        assert key.how, name


# What the exact core asks


WHOLE = {
    # SMs, base clock in MHz, machine, resident blocks
    "rtx-2080-ti": (68, 1350, "turing", 16),
    "rtx-3070": (46, 1500, "ampere-ga10x", 16),
    "rtx-3090": (82, 1395, "ampere-ga10x", 16),
    "rtx-4090": (128, 2235, "ada", 24),
    "rtx-5090": (170, 2017, "blackwell-gb20x", 24),
    "t4": (40, 585, "turing", 16),
    "v100-sxm": (80, 1290, "volta", 32),
    "v100-pcie": (80, 1230, "volta", 32),
    "a100-sxm": (108, 1095, "ampere-ga100", 32),
    "a100-pcie": (108, 765, "ampere-ga100", 32),
    "h100-pcie": (114, 1095, "hopper", 32),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_shipped_gpu_has_sms_a_clock_and_a_machine(name: str) -> None:
    card, (sms, megahertz, machine, blocks) = gpus.find_gpu(name), WHOLE[name]
    assert (card.count_sms(), card.machine.name, card.limits.blocks) == (sms, machine, blocks)
    assert card.hertz("base_clock_ghz") == megahertz * 10**6 < card.hertz("clock_ghz")


def test_what_nobody_promises_is_no_clock_and_no_machine() -> None:
    for name in ("h100-sxm", "h200", "jetson-agx-orin", "jetson-agx-xavier"):
        with pytest.raises(InputError, match=rf"GPU {name}: base_clock_ghz \[GHz\] is not known"):
            gpus.find_gpu(name).hertz("base_clock_ghz")
    with pytest.raises(InputError, match=r"no machines with partitions come .* capability 7\.2: say"):
        _ = gpus.find_gpu("jetson-agx-xavier").machine
    with pytest.raises(InputError, match=r"capability \(not known\): say"):
        _ = gpus.find_gpu("hd6970").machine
    assert all(card.missing("dispatch_cycles") for card in gpus.shipped_gpus().values())


def test_a_clock_is_the_decimal_number_that_is_written(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    for text, hertz in [("1.1", 1_100_000_000), ("0.1", 10**8), ("2", 2 * 10**9), ("1e-10", Fraction(1, 10))]:
        file.write_text(f'clock_ghz = {{ value = {text}, source = "locked", status = "measured" }}')
        assert gpus.read_gpu(file).hertz("clock_ghz") == hertz


def test_instances_of_a_gpu_have_a_part_of_its_sms() -> None:
    for card in gpus.shipped_gpus().values():
        assert all(1 <= sms <= card.count_sms() for sms in card.mig.values())
    h100 = gpus.find_gpu("h100-sxm")
    assert [h100.count_sms(asked) for asked in (None, "1", "132")] == [132, 1, 132]
    assert (h100.count_sms("1g.10gb"), h100.count_sms("1g.20gb"), h100.count_sms("7g.80gb")) == (16, 26, 132)


@pytest.mark.parametrize("asked", ["0", "109", "-1", "1.0", "1e2", "", " 5", "٣", "1g.99gb", "9" * 50])
def test_sms_that_a_gpu_does_not_have_are_refused(asked: str) -> None:
    with pytest.raises(
        InputError, match=r"GPU a100-sxm: the number of SMs must be 1\.\.108, or one of 1g\.5gb, "
    ) as caught:
        gpus.find_gpu("a100-sxm").count_sms(asked)
    assert len(str(caught.value)) < 250


def test_an_instance_with_more_sms_than_its_gpu_is_refused() -> None:
    fewer = gpus.with_settings(gpus.find_gpu("a100-sxm"), ["sms=40"], "--set")
    assert fewer.count_sms("2g.10gb") == 28
    with pytest.raises(InputError, match=r"GPU a100-sxm: the number of SMs must be 1\.\.40"):
        fewer.count_sms("3g.40gb")


def test_limits_of_the_file_win_over_those_of_the_capability() -> None:
    card = gpus.find_gpu("rtx-3070")
    assert card.limits == SmLimits.of_sm(86)
    fewer = card.with_data({"limits.blocks": gpu_datum("limits.blocks", 3, source="x")})
    assert fewer.limits == replace(SmLimits.of_sm(86), blocks=3)
    unknown = Gpu("x", {"warp_size": gpu_datum("warp_size", 64, source="x")}, compute_capability="7.2")
    assert unknown.limits == SmLimits(warp_size=64)


MEMORY = {
    # bits of the bus, Gbit/s of each, GB/s, KiB of L2
    "rtx-2080-ti": (352, 14, 616, 5632),
    "rtx-3070": (256, 14, 448, 4096),
    "rtx-3090": (384, 19.5, 936, 6144),
    "rtx-4090": (384, 21, 1008, 73728),
    "rtx-5090": (512, 28, 1792, 98304),
    "t4": (256, 10, 320, 4096),
    "v100-pcie": (4096, 1.754, 898, 6144),
    "v100-sxm": (4096, 1.754, 898, 6144),
    "a100-pcie": (5120, 2.43, 1555, 40960),
    "a100-sxm": (5120, 2.43, 1555, 40960),
    "h100-pcie": (5120, 3.186, 2039, 51200),
    "h100-sxm": (5120, 5.238, 3352, 51200),
    "h200": (6144, 6.25, 4800, 51200),
    "jetson-agx-orin": (256, 6.4, 204.8, 4096),
    "jetson-agx-xavier": (256, 4.266, 136.5, 512),
    "gtx1050": (128, 7, 112, 1024),
    "hd6970": (256, 5.5, 176, 512),
}


def test_a_shipped_gpu_has_the_bandwidth_of_its_bus_and_an_l2_cache() -> None:
    for name, (bits, rate, bandwidth, kibibytes) in MEMORY.items():
        card = gpus.find_gpu(name)
        assert (card.number("mem_bw_gbs"), card.whole("l2_bytes")) == (bandwidth, kibibytes << 10), name
        assert card.bandwidth == Fraction(str(bandwidth)) * 10**9
        assert bandwidth == pytest.approx(bits / 8 * rate, rel=0.001), name
    assert {name for name, card in gpus.shipped_gpus().items() if not card.missing("l2_bytes")} == MEMORY.keys()


def test_the_page_of_gpus_has_the_memory_of_each() -> None:
    text = (Path(__file__).parents[2] / "docs" / "gpus.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| ([0-9.]+) \| ([0-9.-]+) \|", text, re.MULTILINE)
    said = {
        name: (f"{card.number('mem_bw_gbs'):g}", f"{card.whole('l2_bytes') / 2**20:g}")
        for name, card in gpus.shipped_gpus().items()
        if not card.missing("mem_bw_gbs", "l2_bytes")
    }
    assert {name: (bandwidth, cache) for name, bandwidth, cache in rows} == said


# makespan machines --gpus


def test_the_list_has_every_shipped_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["machines", "--gpus"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(gpus.shipped_gpus())
    rows = {line.split()[0]: line.split()[-8:] for line in lines}
    assert rows["a100-sxm"] == ["8.0", "ampere-ga100", "108", "1.095", "1.41", "1555", "40", "11"]
    assert rows["jetson-agx-xavier"] == ["7.2", "-", "8", "-", "1.377", "136.5", "0.5", "-"]
    assert rows["8800gtx"][-3:] == ["86.4", "-", "-"]


def test_a_page_has_every_number_with_its_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(f'{FILE}[mig.1g]\n10gb = {{ value = 1, source = "asked", status = "measured" }}\n')
    assert cli.run(["machines", "--gpus", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "GPU mine",
        "architecture  -",
        "capability    -",
        "machine       -",
        "notes:",
        "  - measured by me",
        "numbers:",
        "  sms                                  2  data sheet  counted",
        "  hong_kim.mem_ld           400.5 cycles  measured    microbenchmark",
        "  hong_kim.coalescing_rule          cc10  data sheet  guide",
        "  mig.1g.10gb                          1  measured    asked",
    ]


def test_json_has_one_object_a_gpu(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["machines", "--gpus", "--format", "json"]) == 0
    documents = {each["name"]: each for each in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(documents) == list(gpus.shipped_gpus())
    card = documents["rtx-3070"]
    assert (card["schema"], card["machine"], card["mig"]) == ("makespan.gpu/1", "ampere-ga10x", {})
    assert card["figures"][0] == {
        "key": "sms",
        "value": 46,
        "unit": "",
        "status": "data sheet",
        "source": gpus.find_gpu("rtx-3070").datum("sms").source,
    }
    assert documents["jetson-agx-xavier"]["machine"] is None


def test_a_gpu_that_nobody_knows_is_one_line_and_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["machines", "--gpus", "magic"]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith("makespan: unknown GPU 'magic'; shipped: 8800gt, ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no number of a GPU in it, such as sms"),
        ('compute_capability = "8.6"\n', "there is no number of a GPU in it, such as sms"),
        (
            'sms = { value = 4097, source = "me", status = "measured" }',
            "sms must be a whole number of at least 1, at most 4096, not 4097",
        ),
        ('[mig.1g]\n10gb = { value = 4097, source = "me", status = "measured" }', "mig.1g.10gb must be a whole number"),
    ],
)
def test_what_describes_no_gpu_is_not_shown(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(text)
    assert cli.run(["machines", "--gpus", str(tmp_path / "mine.toml")]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith(f"makespan: {tmp_path / 'mine.toml'}: ")
    assert message in said.err
