"""What would help is data, and does help: every remedy with a value is tried out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from allocator.admission.single import settle
from ptklib.errors import Refused
from ptklib.ledger.policy import Policy
from ptklib.privacy.amounts import Number
from ptkstore import Store
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.goal import Goal
from ptkstore.api.views import PlanView, Registration
from ptkstore.api.views.remedies import ADVICE, Remedy, known_remedies, remedies_of
from ptkstore.engine.catalogue.ptk_views import ptk_view
from ptkstore.engine.plans.planning import Candidate, fresh_loss, offers_of
from ptkstore.engine.plans.registrations import active, unwritten
from ptkstore.engine.plans.remedies import plan_remedies
from ptkstore.wire.faults import error_of, status_of
from tests.engine.small import config, open_store
from tests.engine.test_plans import registered
from tests.rpc.test_faults import Failure


def changes_of(remedy: Remedy) -> Changes | None:
    """What a remedy asks for; None where it has no field."""
    if remedy.kind == "n_max":
        assert isinstance(remedy.value, int)
        return Changes(n_max=remedy.value)
    if remedy.kind == "target" and remedy.value is not None:
        assert isinstance(remedy.value, float)
        return Changes(retarget={remedy.ptk or "": remedy.value})
    return Changes(remove=(remedy.ptk or "",)) if remedy.kind == "remove" else None


def test_what_gives_a_plan_gives_one(tmp_path: Path) -> None:
    with open_store(tmp_path, policy=Policy(epsilon=1, delta=0), n_max=6000) as store:
        assert register(store, "p0", 0.05).status == "ACTIVE"
        refused = register(store, "p1", 0.02)
        assert refused.status == "REJECTED"
        tight = Changes(retarget={"p1": 0.02})
        proposed = store.what_if("rides", tight).proposed
        assert proposed.total_samples is None
        assert [remedy.text for remedy in proposed.remedies] == list(proposed.changes)
        tried = [remedy.kind for remedy in proposed.remedies if try_out(store, remedy, tight)]
        assert tried == ["n_max", "remove"]


def register(store: Store, name: str, target: float) -> Registration:
    return store.register(name, stream="rides", kind="statistics", config=config(), target=target)


def try_out(store: Store, remedy: Remedy, asked: Changes) -> bool:
    more = changes_of(remedy)
    if more is None:
        return False
    retarget = {**asked.retarget, **more.retarget}
    for name in more.remove:
        retarget.pop(name)
    both = Changes(retarget=retarget, remove=more.remove, n_max=more.n_max)
    assert store.what_if("rides", both).proposed.total_samples is not None, remedy
    return True


def test_an_option_becomes_the_tightest_target_that_has_one(tmp_path: Path) -> None:
    """One partition for all: what the explanation has as an amount is told as a target."""
    with open_store(tmp_path, policy=Policy(epsilon=1, delta=0), n_max=6000) as store:
        assert register(store, "p0", 0.05).status == "ACTIVE"
        spec = store.stream("rides")
        privacy_filter = spec.policy.filter()
        tight = unwritten("p1", "rides", "statistics", config(), Goal(0.02))
        with store.parts.metadata.read() as tx:
            candidates = [*active(tx, "rides"), Candidate.of(tight)]
        settled = settle(
            privacy_filter,
            fresh_loss(spec, privacy_filter),
            [offers_of(spec, privacy_filter, one) for one in candidates],
            n_max=spec.n_max,
        )
        told = settled.plan.explanation
        remedies = plan_remedies(spec, privacy_filter, settled, told, candidates)
        (loosened,) = [remedy for remedy in remedies if remedy.kind == "target"]
        assert (loosened.ptk, loosened.field) == ("p1", "target")
        assert isinstance(loosened.value, float)
        fits = store.what_if("rides", Changes(add=(added(loosened.value),))).proposed
        assert fits.total_samples is not None
        known = plan_remedies(spec, privacy_filter, settled, told, candidates, known={"p1": 0.5})
        assert [remedy.value for remedy in known if remedy.kind == "target"] == [0.5]


def added(target: float) -> AddedPtk:
    return AddedPtk(name="p1", kind="statistics", config=config(), target=target)


def test_a_refusal_says_what_would_help() -> None:
    remedy = Remedy(kind="remove", ptk="p0", text="Remove p0.")
    error = Refused("PLAN_INFEASIBLE", "no", remedies=[remedy.as_json()])
    assert remedies_of(error) == (remedy,)
    status = status_of(error)
    failure = Failure(status.code, status.details, tuple(status.trailing_metadata))
    assert remedies_of(error_of(failure)) == (remedy,)
    assert remedies_of(Refused("PLAN_INFEASIBLE", "no")) == ()


def test_what_was_kept_in_words_is_read_as_words() -> None:
    row = unwritten("a", "rides", "statistics", config(), Goal(0.1))
    old = {"nearest_target": 0.2, "changes": ["Remove a."]}
    view = ptk_view(replace(row, suggestion=old), None)
    assert view.remedies == (Remedy(kind=ADVICE, text="Remove a."),)
    assert known_remedies((), ()) == ()


def test_a_plan_with_remedies_is_read_back(tmp_path: Path) -> None:
    with registered(tmp_path, (0.05,)) as store:
        view = store.what_if("rides", Changes(retarget={"p0": 1e-5})).proposed
        assert view.remedies
        assert PlanView.from_json(view.as_json()) == view
        body = view.as_json()
        del body["remedies"]
        assert {one.kind for one in PlanView.from_json(body).remedies} == {ADVICE}


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_an_epsilon_that_is_told_is_enough(tmp_path: Path, delta: Number) -> None:
    with open_store(tmp_path, policy=Policy(epsilon=1, delta=delta), n_max=6000) as store:
        assert register(store, "p0", 0.05).status == "ACTIVE"
        refused = register(store, "p1", 0.02)
        (remedy,) = [one for one in refused.remedies if one.kind == "epsilon"]
        assert isinstance(remedy.value, str)
        if not delta:
            assert remedy.value == "1.20000002"
            assert remedy.text == "Promise epsilon 1.201 instead of 1."
        enough = Changes(add=(added(0.02),), epsilon=remedy.value)
        assert store.what_if("rides", enough).proposed.total_samples is not None
