"""How long to wait before another try: the numbers, their chance and their limits."""

from __future__ import annotations

import pytest

from ptklib.errors import InvalidInput
from ptkstore.backoff import SERVER_AWAY, Backoff


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(0, 0.5), (1, 0.5), (2, 1), (3, 2), (4, 4), (5, 5), (6, 5), (10_000, 5)],
)
def test_delays_double_up_to_the_longest(failures: int, seconds: float) -> None:
    backoff = Backoff(first_seconds=0.5, longest_seconds=5, jitter=0)
    assert backoff.most_seconds(failures) == backoff.seconds(failures) == seconds


@pytest.mark.parametrize("jitter", [0.25, 0.5, 1])
def test_jitter_is_the_share_that_is_left_to_chance(jitter: float) -> None:
    backoff = Backoff(first_seconds=1, longest_seconds=8, jitter=jitter)
    delays = [backoff.seconds(3) for _ in range(2000)]
    assert all(4 * (1 - jitter) <= delay <= 4 for delay in delays)
    # The whole range is used: each end within a twentieth of it, which 2000 tries never miss.
    assert min(delays) < 4 * (1 - 0.95 * jitter)
    assert max(delays) > 4 * (1 - 0.05 * jitter)


def test_whoever_waits_for_a_server_waits_a_tenth_of_a_second_up_to_two() -> None:
    most = [SERVER_AWAY.most_seconds(failures) for failures in range(1, 8)]
    assert most == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 2, 2])
    assert SERVER_AWAY.jitter == 0.5


@pytest.mark.parametrize(
    ("first", "longest", "jitter"),
    [(0, 1, 0.5), (-1, 1, 0.5), (2, 1, 0.5), (float("nan"), 1, 0.5), (1, 2, 1.1), (1, 2, -0.1)],
)
def test_delays_that_make_no_sense_are_refused(first: float, longest: float, jitter: float) -> None:
    with pytest.raises(InvalidInput, match="VALUE_INVALID"):
        Backoff(first_seconds=first, longest_seconds=longest, jitter=jitter)
