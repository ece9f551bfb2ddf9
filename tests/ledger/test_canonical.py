from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ptklib.encoding.canonical import canonical, canonical_entries
from tests.ledger.test_snapshot import COSTS, lived

names = st.text(max_size=20)
entries = st.dictionaries(
    st.sampled_from(
        ["kind", "stream", "charge", "contexts", "key", "why", "blocks", "at_ms", "cost", "demand"]
    ),
    st.one_of(
        st.integers(-(2**70), 2**70),
        names,
        st.lists(names, max_size=3),
        st.none(),
        st.booleans(),
        st.floats(0, 1),
    ),
)


@given(st.lists(entries, max_size=3))
def test_the_fast_way_gives_the_same_bytes(made: list[dict[str, Any]]) -> None:
    assert canonical_entries(made) == canonical(made)


def test_the_fast_way_gives_the_same_bytes_for_real_entries() -> None:
    for composition in COSTS:
        _, made = lived(composition, 5)
        assert canonical_entries(made) == canonical(made)
        assert canonical_entries(made) == canonical(made), "remembered texts too"
