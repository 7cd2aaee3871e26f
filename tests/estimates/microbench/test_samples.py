"""Files of samples: read as they were written, and refused with their line."""

from pathlib import Path

import pytest

from makespan.estimates.microbench import samples
from makespan.estimates.microbench.samples import INSTRUCTIONS, MEMORY, THROUGHPUT, SampleColumns
from makespan.host.errors import InputError
from tests.estimates.microbench.virtual_memory import QUADRO


def test_samples_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "samples.csv"
    file.write_text(samples.text(QUADRO.samples(), MEMORY))
    assert samples.read(file, MEMORY) == QUADRO.samples()


WORDS = "pattern,requests,cycles\n"
RATES = "operation,operations,global_size,seconds\n"
TIMES = "measure,name,count,cycles\n"


@pytest.mark.parametrize(
    ("table", "text", "said"),
    [
        (MEMORY, "", ":1: the first line must be pattern,requests,cycles or pattern,requests,seconds, not ''"),
        (MEMORY, "pattern,requests\n", ":1: the first line must be"),
        (MEMORY, WORDS, ": no sample in it"),
        (MEMORY, f"{WORDS}latency,1\n", ":2: 2 values, the header has 3"),
        (MEMORY, f"{WORDS}latenz,1,2\n", ":2: pattern must be one of latency, coalesced, uncoalesced"),
        (MEMORY, f"{WORDS}latency,1.5,2\n", ":2: '1.5' is not a whole number"),
        (MEMORY, f"{WORDS}latency,0,2\n", ":2: '0' is not a whole number of at least 1"),
        (MEMORY, f"{WORDS}latency,1,nan\n", ":2: 'nan' is not a time above 0"),
        (MEMORY, f"{WORDS}latency,1,-3\n", ":2: '-3' is not a time above 0"),
        (MEMORY, f"{WORDS}latency,1,0\n", ":2: '0' is not a time above 0"),
        (MEMORY, f"{WORDS}latency,1,soon\n", ":2: 'soon' is not a time above 0"),
        (MEMORY, f"{WORDS}\n\nlatency,9{'9' * 50},1\n", ":4: '9999"),
        (THROUGHPUT, f"{RATES}f32_add,1000,1048576\n", ":2: 3 values, the header has 4"),
        (THROUGHPUT, f"{RATES}f32_add,1000,1048576,0\n", ":2: '0' is not a time above 0"),
        (THROUGHPUT, f"{RATES}f32_add,0,1048576,1\n", ":2: '0' is not a whole number of at least 1"),
        (INSTRUCTIONS, "measure,name,count\n", ":1: the first line must be"),
        (INSTRUCTIONS, f"{TIMES}latency,f32,64\n", ":2: 3 values, the header has 4"),
        (INSTRUCTIONS, f"{TIMES}speed,f32,64,1\n", ":2: measure must be one of"),
        (INSTRUCTIONS, f"{TIMES}latency,f33,64,1\n", ":2: latency of 'f33': must be one of"),
        (INSTRUCTIONS, f"{TIMES}latency,f32,-1,1\n", ":2: '-1' is not a whole number"),
        (INSTRUCTIONS, f'{TIMES}"\n', ":2: 1 values"),
    ],
)
def test_samples_that_cannot_be_are_refused_with_their_line(
    table: SampleColumns, text: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "samples.csv"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        samples.read(file, table)
    assert str(error.value).startswith(f"{file}{said}")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_bytes(b"\xff\x80")
    with pytest.raises(InputError, match="cannot read the file of samples: it is not UTF-8 text"):
        samples.read(tmp_path / "samples.csv", MEMORY)
    with pytest.raises(InputError, match="cannot read the file of samples: No such file"):
        samples.read(tmp_path / "none.csv", MEMORY)
