"""Which PTKs a stream accepts, before any price is asked for."""

from __future__ import annotations

import pytest

from ptklib.columns.keys import Categories, IntegerRange
from ptklib.errors import InvalidInput
from ptklib.ptks.embeddings import Embeddings
from ptkstore.engine.plans.dry_run import check_fit
from tests.streams.rides import spec, user_spec

WHO = IntegerRange(column="who", first=0, last=9)
NOTE = Categories(column="note", values=("a", "b"))


def embeddings(users: IntegerRange | Categories, items: IntegerRange | Categories) -> Embeddings:
    return Embeddings(users=users, items=items, value="who", lower=0, upper=5, publish="items")


def test_a_proof_that_speaks_of_users_is_given_the_users_of_the_stream() -> None:
    # Another column would let one user of 1000 records weigh 31 times as much as the noise was made
    # for.
    check_fit(user_spec(), embeddings(WHO, NOTE))
    with pytest.raises(InvalidInput, match="UNIT_UNSUPPORTED") as refusal:
        check_fit(user_spec(), embeddings(NOTE, WHO))
    assert (
        "must take users from the user column of stream 'rides', which is 'who', got 'note'"
        in str(refusal.value)
    )


def test_one_record_is_one_record_whoever_it_names() -> None:
    check_fit(user_spec(records_per_user=1), embeddings(NOTE, WHO))
    check_fit(spec(), embeddings(NOTE, WHO))


def test_columns_and_units_must_be_there() -> None:
    with pytest.raises(InvalidInput, match="COLUMN_UNKNOWN"):
        check_fit(spec(), embeddings(WHO, IntegerRange(column="film", first=0, last=9)))
    both = Embeddings(users=WHO, items=NOTE, value="who", lower=0, upper=5)
    with pytest.raises(InvalidInput, match="UNIT_UNSUPPORTED"):
        check_fit(user_spec(), both)
