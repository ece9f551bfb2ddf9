from __future__ import annotations

import threading

import pytest

from ptkstore.ledger.group_commit import GroupCommit


def test_everybody_gets_the_own_outcome_and_waiting_items_share_a_commit() -> None:
    groups: list[list[int]] = []
    entered, go_on = threading.Event(), threading.Event()

    def commit_all(items: list[int], more: object) -> list[str | BaseException]:
        groups.append(items)
        entered.set()
        assert go_on.wait(30)
        return [ValueError(f"no {item}") if item % 5 == 0 else f"done {item}" for item in items]

    group = GroupCommit(commit_all)
    outcomes: dict[int, str] = {}

    def client(item: int) -> None:
        try:
            outcomes[item] = group.submit(item)
        except ValueError as error:
            outcomes[item] = str(error)

    first = threading.Thread(target=client, args=(1,))
    first.start()
    assert entered.wait(30)
    others = [threading.Thread(target=client, args=(item,)) for item in range(2, 300)]
    for thread in others:
        thread.start()
    while len(group._waiting) < len(others):
        pass
    go_on.set()
    for thread in [first, *others]:
        thread.join(30)
    assert outcomes == {
        item: f"no {item}" if item % 5 == 0 else f"done {item}" for item in range(1, 300)
    }
    assert [len(one) for one in groups] == [1, 298]


def test_a_failed_commit_fails_everybody_in_the_group_and_nobody_else() -> None:
    fail = [True]

    def commit_all(items: list[int], more: object) -> list[int | BaseException]:
        if fail[0]:
            raise OSError("disk full")
        return list(items)

    group = GroupCommit(commit_all)
    with pytest.raises(OSError, match="disk full"):
        group.submit(1)
    fail[0] = False
    assert group.submit(2) == 2
