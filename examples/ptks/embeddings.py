"""Film ratings: vectors of users and films, with differential privacy, and the vector of a new user
from her own history.

Two weeks of made-up ratings train one state, a week at a time. Its predictions are compared with
the mean of all ratings. Then item vectors alone are trained at *user* level, and a user who was
never seen is projected.

Run it with ``python -m examples.ptks.embeddings``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ptklib.columns.keys import IntegerRange
from ptklib.ptks.embeddings import Embeddings

USERS, FILMS, RATINGS = 3_000, 300, 150_000
WORLD = np.random.default_rng(0)
LIKES_SPACE, IS_SPACE = WORLD.choice([-1, 1], USERS), WORLD.choice([-1, 1], FILMS)
MOOD, QUALITY = WORLD.normal(0, 0.4, USERS), WORLD.normal(0, 0.5, FILMS)


def ratings(seed: int) -> pa.Table:
    """Every user has a mood, every film a quality; half of the users prefer films about space."""
    generator = np.random.default_rng(seed)
    user, film = generator.integers(0, USERS, RATINGS), generator.integers(0, FILMS, RATINGS)
    stars = (
        3.3
        + MOOD[user]
        + QUALITY[film]
        + 0.7 * LIKES_SPACE[user] * IS_SPACE[film]
        + generator.normal(0, 0.6, RATINGS)
    )
    return pa.table({"user": user, "film": film, "stars": np.clip(np.rint(stars), 1, 5)})


def main() -> None:
    """Train, and say how far predictions are off, in stars."""
    users = IntegerRange(column="user", first=0, last=USERS - 1)
    films = IntegerRange(column="film", first=0, last=FILMS - 1)
    ptk = Embeddings(
        users=users, items=films, value="stars", lower=1, upper=5, factors=3, prefix=""
    )
    held = ratings(99)
    stars = held["stars"].to_numpy()
    print(f"the mean of all ratings is off by      {stars.std():.2f} stars")
    arrays = None
    for week in (1, 2):
        arrays = ptk.train_dp(ratings(week).to_batches(), epsilon=2, delta="1e-6", previous=arrays)
        off = 4 * np.sqrt(ptk.eval(arrays, held.to_batches()))
        print(f"after week {week}, at epsilon 2, we are off by {off:.2f}")

    items = Embeddings(
        users=users,
        items=films,
        value="stars",
        lower=1,
        upper=5,
        factors=3,
        prefix="",
        publish="items",
    )
    arrays = items.train_dp(ratings(1).to_batches(), epsilon=8, delta="1e-6", records_per_unit=100)
    space, other = np.flatnonzero(IS_SPACE > 0)[:40], np.flatnonzero(IS_SPACE < 0)[:40]
    history = pa.array([np.concatenate([space[:20], other[:20]]).tolist()])
    own = items.project(arrays, history, pa.array([[5.0] * 20 + [2.0] * 20]))[0]
    for name, few in (("films about space", space[20:]), ("other films", other[20:])):
        made = items.features(arrays, pa.table({"film": few}))
        vectors = np.column_stack([made[f"item_{place}"].to_numpy() for place in range(3)])
        print(
            f"a new user who likes films about space: {np.mean(vectors @ own):.1f} stars for "
            f"{name} she has not seen"
        )


if __name__ == "__main__":
    main()
