from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from ptkstore.streams.tag_map import TagMap
from ptkstore.streams.tags import Tags, random_tags, user_tags

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
COUNT = 200_000
USERS = [pa.array(np.arange(COUNT)), pa.array([f"user-{k}" for k in range(COUNT)])]


def p_value(tags: Tags) -> float:
    """Chi-square over 256 cells, for the highest and for the lowest byte; the smaller p-value,
    doubled.
    """
    cells = [
        np.bincount((tags >> np.uint64(shift)) & np.uint64(255), minlength=256) for shift in (56, 0)
    ]
    return 2 * min(float(stats.chisquare(one).pvalue) for one in cells)


@pytest.mark.parametrize("tags", [random_tags(COUNT), *(user_tags(one, KEY) for one in USERS)])
def test_tags_are_uniform(tags: Tags) -> None:
    assert tags.dtype == np.uint64
    assert len(set(tags.tolist())) == COUNT
    assert p_value(tags) > 1e-6


def test_the_test_of_uniformity_notices_a_slight_bias() -> None:
    tags = random_tags(COUNT)
    # 5% of the tags have their highest bit cleared: a tilt of 2.5% towards the lower half, missed
    # once in 10^9 runs or less.
    tilted = np.where(np.arange(COUNT) % 20 == 0, tags & np.uint64(2**63 - 1), tags)
    assert p_value(tilted) < 1e-6


@pytest.mark.parametrize("users", USERS)
def test_a_user_has_one_tag_and_the_key_decides_which(users: pa.Array) -> None:
    tags = user_tags(users, KEY)
    order = np.random.default_rng(1).permutation(COUNT)
    assert (user_tags(users.take(pa.array(order)), KEY) == tags[order]).all()
    assert not np.isin(user_tags(users, OTHER), tags).any()


def test_integers_of_any_width_and_sign_have_tags() -> None:
    for kind in (pa.int8(), pa.int64(), pa.uint32()):
        values = pa.array([0, 1, 100], kind)
        assert (user_tags(values, KEY) == user_tags(pa.array([0, 1, 100]), KEY)).all()
    assert len(set(user_tags(pa.array([-1, 1, 2**62, -(2**62)]), KEY).tolist())) == 4
    assert len(user_tags(pa.array([], pa.string()), KEY)) == 0
    assert len(user_tags(pa.array([], pa.int64()), KEY)) == 0


def test_random_tags_do_not_repeat_between_calls() -> None:
    assert not np.isin(random_tags(1000), random_tags(1000)).any()


def test_a_tag_map_is_a_dict() -> None:
    random = np.random.default_rng(2)
    found, model = TagMap(-1), {}
    for _ in range(60):
        tags = np.unique(random.integers(0, 500, random.integers(0, 80)).astype(np.uint64))
        numbers = random.integers(0, 1000, len(tags))
        found.put(tags, numbers)
        model.update(dict(zip(tags.tolist(), numbers.tolist(), strict=True)))
        asked = random.integers(0, 600, 100).astype(np.uint64)
        assert found.find(asked).tolist() == [model.get(one, -1) for one in asked.tolist()]
