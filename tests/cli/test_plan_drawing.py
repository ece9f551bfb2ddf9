"""The plan in characters: who lies where, how high, and what is idle."""

from __future__ import annotations

from ptkstore.api.views import PartitionLine, PlanLine, PlanView
from ptkstore.drawing.plan_text import draw_plan


def plan(
    lines: list[PlanLine], partitions: list[PartitionLine], before: float | None = 0.0
) -> PlanView:
    total = sum(one.samples for one in partitions) or None
    cuts = tuple(partitions)
    return PlanView(
        "rides",
        0,
        "OPTIMAL",
        total,
        None,
        "strip",
        0.0,
        tuple(lines),
        partitions=cuts,
        spent_before=before,
    )


def line(name: str, used: float, *partitions: int) -> PlanLine:
    return PlanLine(name, "0.1", 100 * len(partitions), 0.5, 0.1, partitions, used)


def test_ptks_lie_in_their_partitions_as_high_as_they_use() -> None:
    found = plan(
        [line("wide", 0.5, 0, 1), line("left", 0.5, 0), line("right", 0.25, 1)],
        [PartitionLine(300, 2, 1.0), PartitionLine(100, 2, 0.75)],
    )
    rows = draw_plan(found, width=8, height=4).splitlines()
    assert [row[8:16] for row in rows[:4]] == ["bbbbbb..", "bbbbbbcc", "aaaaaaaa", "aaaaaaaa"]
    assert rows[0].startswith("     E |")
    assert rows[4].endswith("400 samples")
    assert rows[5] == "a wide, b left, c right; . idle (6.2%)"


def test_what_counts_took_before_is_below_e() -> None:
    lines, cuts = (
        [line("all", 1.0, 0), line("half", 0.5, 1)],
        [PartitionLine(100, 1, 1.0), PartitionLine(100, 1, 0.5)],
    )
    rows = draw_plan(plan(lines, cuts, 0.2), width=2, height=10).splitlines()
    assert [row[8:10] for row in rows[:10]] == ["=="] * 2 + ["a."] * 4 + ["ab"] * 4
    assert rows[-1] == "a all, b half; . idle (25.0%); = published counts (20.00% of E)"
    flat = draw_plan(plan(lines, cuts, 0.01), width=2, height=10).splitlines()
    assert [row[8:10] for row in flat[:10]] == ["a."] * 5 + ["ab"] * 5
    assert flat[-1].endswith("; not drawn: published counts (1.00% of E)")
    # Of a plan that was kept without it, nothing is claimed.
    assert draw_plan(plan(lines, cuts, None), width=2, height=10).startswith("budget |")


def test_no_plan_is_no_picture_and_many_ptks_share_a_sign() -> None:
    assert draw_plan(plan([], [])) == ""
    many = plan([line(f"p{k:03}", 0.01, 0) for k in range(100)], [PartitionLine(100, 100, 1.0)])
    text = draw_plan(many, width=4, height=100)
    assert "# 48 more" in text
    assert text.count("####") == 48
