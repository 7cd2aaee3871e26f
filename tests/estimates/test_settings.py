"""Figures given for one estimate."""

import pytest

from makespan.estimates.kinds import LEVELS, MAX_BLOCK_WARPS, InstructionKind
from makespan.host.errors import InputError
from makespan.model.machine import gpus
from makespan.model.machine.gpus import with_settings

GPU = gpus.Gpu("test", {"kleimenov_popova.delay.f64": gpus.gpu_datum("kleimenov_popova.delay.f64", 2, source="test")})


def test_the_keys_of_the_model_may_leave_out_its_name() -> None:
    found = with_settings(GPU, ["mem_ld = 420", "sms=8", "hong_kim.coalescing_rule=cc10"], "--set", model="hong_kim")
    assert (found.number("hong_kim.mem_ld"), found.whole("sms")) == (420, 8)
    assert found.text("hong_kim.coalescing_rule") == "cc10"
    assert found.datum("sms") == gpus.GpuDatum(8, "", "--set", gpus.DatumStatus.GIVEN)
    with pytest.raises(InputError, match="unknown key 'mem_ld'"):
        with_settings(GPU, ["mem_ld=420"], "--set")


def test_a_delay_takes_the_place_of_another_way_to_tell_it() -> None:
    found = with_settings(GPU, ["units.f64=1"], "--set", model="kleimenov_popova")
    assert set(found.data) == {"kleimenov_popova.units.f64"}
    assert set(with_settings(GPU, ["sms=8"], "--set").data) == {"kleimenov_popova.delay.f64", "sms"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["sms"], "--set sms must be a number, not ''"),
        (["sms=many"], "--set sms must be a number, not 'many'"),
        (["sms=1_0"], "--set sms must be a number, not '1_0'"),
        (["sms=٣"], "--set sms must be a number"),
        (["sms=nan"], "--set sms must be a number, not 'nan'"),
        (["sms=" + "1" * 41], "--set sms must be a number"),
        (["sms=1.5"], "sms must be a whole number of at least 1, at most 4096, not 1.5"),
        (["sms=1", "sms=2"], "--set sms: given twice"),
        (["hong_kim.coalescing_rule=none"], "must be one of cc10, segments"),
    ],
)
def test_what_is_no_setting_is_refused(settings: list[str], message: str) -> None:
    with pytest.raises(InputError) as error:
        with_settings(GPU, settings, "--set")
    assert message in str(error.value)


def test_every_level_class_of_instructions_and_size_of_a_block_has_its_keys() -> None:
    names = [f"{way}.{kind}" for way in ("latency", "delay", "throughput", "units") for kind in InstructionKind]
    names += [f"{way}_{level}" for way in ("lat", "band") for level in LEVELS]
    names += [f"launch.{warps}.{term}" for warps in (1, MAX_BLOCK_WARPS) for term in ("x1", "x2")]
    assert GPU.missing(*(f"kleimenov_popova.{name}" for name in names)) == tuple(
        f"kleimenov_popova.{name}" for name in names if name != "delay.f64"
    )


@pytest.mark.parametrize("key", ["launch.0.x1", "launch.<N>.x1", "launch.1.x3", "latency.f99", "delay.<KIND>"])
def test_a_placeholder_stands_for_its_names_alone(key: str) -> None:
    with pytest.raises(InputError, match="unknown key"):
        GPU.get(f"kleimenov_popova.{key}")
