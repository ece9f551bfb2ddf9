"""The ledger's entries about a stream, a page at a time, however long the journal is.

The journal knows commits, not streams; an index in the metadata says where a stream's entries lie.
It is brought up to date from the commits that came since, before every read and after every window,
and never trusted with the entries themselves: these are read from the journal and checked against
its chain. Who spent what is added up with it. All public: the book never depends on records, and
when they were made is told as coarsely as everything (`ptkstore.api.times`). Reasons:
STREAM_UNKNOWN, PAGE_INVALID, PAGE_TOKEN_INVALID.
"""

from __future__ import annotations

from collections.abc import Mapping

from ptklib.ledger.state import Entry
from ptkstore.api.paging import PageRequest
from ptkstore.api.times import public_entry
from ptkstore.api.views import ChargeLine, ChargePage
from ptkstore.engine.budgets.spending import sums_of
from ptkstore.engine.parts import Parts
from ptkstore.ledger.journals.chain import Commit
from ptkstore.metadata.work.charges import ChargeRow, IndexHead

__all__ = ["SHOWN", "charge_page", "index_charges", "list_charges", "search_charges"]

# The kinds of entries that concern charges and blocks; others are left out.
SHOWN = ("reserve", "spend", "release", "retire")
# Commits that are read in one turn with the ledger's lock, so that charges are not held up for
# long.
_TURN = 500
# What one call looks at: entries that are read, and numbers whose keys are compared.
_LOOKED = 1000
_SEARCHED = 20_000


def charge_page(
    parts: Parts,
    stream: str,
    *,
    limit: int,
    page_token: str,
    newest_first: bool,
    find: str,
    blocks: str,
) -> ChargePage:
    """Entries about a stream, oldest first.

    With ``find`` (a part of the key, such as the name of a PTK) or ``blocks`` (how the names of
    blocks begin) newest first, and a page looks at so many entries and no more: one with a token
    says that the search goes on.
    """
    parts.specs.named(stream)
    if newest_first or find or blocks:
        page = PageRequest(f"charges {stream} newest {find!r} {blocks!r}", limit, page_token)
        some, before = search_charges(
            parts, stream, before=page.after, limit=page.size, find=find, blocks=blocks
        )
        return ChargePage(tuple(some), page.token(before) if before is not None else "")
    page = PageRequest(f"charges {stream}", limit, page_token)
    lines = list_charges(parts, stream, after=page.after, limit=page.size + 1)
    part, token = page.cut(lines, lambda line: line.number)
    return ChargePage(tuple(part), token)


def list_charges(parts: Parts, stream: str, *, after: int | None, limit: int) -> list[ChargeLine]:
    """Entries after that number, oldest first."""
    index_charges(parts)
    with parts.metadata.read() as tx:
        rows = tx.charges.list(stream, limit=limit, after=after)
    commits = {
        commit.seq: commit.entries for commit in parts.ledger.commits(row.seq for row in rows)
    }
    return [
        ChargeLine(row.number, row.kind, row.key, public_entry(commits[row.seq][row.place]))
        for row in rows
    ]


def search_charges(
    parts: Parts, stream: str, *, before: int | None, limit: int, find: str = "", blocks: str = ""
) -> tuple[list[ChargeLine], int | None]:
    """Entries before that number, newest first, whose key has ``find`` and that are about blocks
    whose name begins like ``blocks``; and before which number to go on, None where nothing is left.

    One call looks at so many entries and no more, whatever is found: a search of a long book takes
    several.
    """
    index_charges(parts)
    lines: list[ChargeLine] = []
    places = parts.ledger.places(stream, blocks) if blocks else None
    if places == (0, 0):
        return [], None
    with parts.metadata.read() as tx:
        end = tx.charges.head().entries + 1 if before is None else before
        looked, down_to = (_LOOKED, 0) if blocks else (limit, end - _SEARCHED if find else 0)
        rows = tx.charges.newest(
            stream, limit=looked, before=end, find=find, down_to=max(0, down_to)
        )
    commits = {
        commit.seq: commit.entries for commit in parts.ledger.commits(row.seq for row in rows)
    }
    for row in rows:
        entry = commits[row.seq][row.place]
        if places is None or _touches(entry, places):
            lines.append(ChargeLine(row.number, row.kind, row.key, public_entry(entry)))
            if len(lines) == limit:
                return lines, row.number
    if len(rows) == looked:
        return lines, rows[-1].number
    return lines, max(0, down_to) or None


def _touches(entry: Entry, places: tuple[int, int]) -> bool:
    """True for an entry about one of the blocks.

    A spend or release has no blocks of its own: its reservation has.
    """
    runs = entry.get("runs") or [run for part in entry.get("slices", ()) for run in part[0]]
    return any(first < places[1] and first + count > places[0] for first, count in runs)


def index_charges(parts: Parts) -> None:
    """Bring the index up to the newest commit.

    Several servers may do so at once: each commit is added once.
    """
    while _index_some(parts):
        pass


def _index_some(parts: Parts) -> bool:
    """One turn; False when there is nothing left to do."""
    with parts.metadata.read() as tx:
        head = tx.charges.head()
    commits = parts.ledger.commits(range(max(1, head.seq), head.seq + 1 + _TURN))
    if head.seq:
        if not commits or (commits[0].seq, commits[0].mac.hex()) != (head.seq, head.mac):
            # A journal that was set back or replaced.
            with parts.metadata.write() as tx:
                tx.charges.clear()
            return True
        commits = commits[1:]
    if not commits:
        return False
    fresh = {
        entry["charge"]: entry
        for commit in commits
        for entry in commit.entries
        if entry["kind"] == "reserve"
    }
    numbers = {
        entry["charge"] for commit in commits for entry in commit.entries if "charge" in entry
    }
    with parts.metadata.read() as tx:
        if tx.charges.head() != head:
            return True
        older = tx.charges.reserved(numbers - set(fresh))
    rows, entries = _rows(commits, head.entries, fresh, older)
    sums = sums_of(parts, fresh.values(), _given_back(parts, commits, fresh, older))
    with parts.metadata.write() as tx:
        # Another server may have been faster between our look and our lock.
        if tx.charges.head() == head:
            tx.charges.add(rows, IndexHead(commits[-1].seq, commits[-1].mac.hex(), entries), sums)
    return True


def _given_back(
    parts: Parts, commits: list[Commit], fresh: Mapping[int, Entry], older: Mapping[int, ChargeRow]
) -> list[Entry]:
    """The reservations that these commits released, as they were made."""
    released = [
        entry["charge"]
        for commit in commits
        for entry in commit.entries
        if entry["kind"] == "release"
    ]
    places = [older[charge_id] for charge_id in released if charge_id not in fresh]
    before = (
        {commit.seq: commit.entries for commit in parts.ledger.commits(row.seq for row in places)}
        if places
        else {}
    )
    return [
        *(fresh[charge_id] for charge_id in released if charge_id in fresh),
        *(before[row.seq][row.place] for row in places),
    ]


def _rows(
    commits: list[Commit], number: int, fresh: Mapping[int, Entry], older: Mapping[int, ChargeRow]
) -> tuple[list[ChargeRow], int]:
    """What concerns charges, and the number of the last entry.

    Entries about a charge follow its stream and key.
    """
    owners = {charge_id: (row.stream, row.key) for charge_id, row in older.items()}
    owners |= {
        charge_id: (entry["stream"], entry.get("key") or "") for charge_id, entry in fresh.items()
    }
    rows = []
    for commit in commits:
        for place, entry in enumerate(commit.entries):
            number += 1
            if entry["kind"] in SHOWN:
                charge = entry.get("charge")
                stream, key = owners[charge] if charge is not None else (entry["stream"], "")
                rows.append(
                    ChargeRow(stream, number, commit.seq, place, entry["kind"], charge, key)
                )
    return rows, number
