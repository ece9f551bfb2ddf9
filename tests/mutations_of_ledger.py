"""Mistakes in the ledger, from the pure state machine to its journal; `tests.mutations` makes them one at a time."""

from __future__ import annotations

from tests.mutations_of_ptks import Mutation

__all__ = ["OF_LEDGER"]


def _in(path: str, tests: tuple[str, ...], *rows: tuple[str, str, str]) -> list[Mutation]:
    paths = tuple(f"tests/ledger/test_{name}.py" for name in tests)
    return [Mutation(f"ledger: {name}", path, old, new, paths) for name, old, new in rows]


OF_LEDGER: list[Mutation] = [
    *_in(
        "ptklib/ledger/decide.py",
        ("decide",),
        ("a stream is made twice", "if command.stream in state.streams:", "if False:"),
        ("a block is added twice", "if name in stream.by_name]", "if not name]"),
        ("ranges without end", "    _check_ranges(slices)\n", ""),
        ("no look at the policy", "        _check_room(stream, command, blocks, tags, row)\n", "        pass\n"),
        ("no look at quotas", "        if context in stream.quotas:", "        if not context:"),
        ("one key for two requests", "        _check_same(state, stream.keys[command.key], entry)\n", ""),
        ("half of a request stays", "for entry in reversed(entries):", "for entry in entries[:0]:"),
        ("an old grant is spent", "if command.at_ms >= charge.expires_at_ms:", "if command.at_ms < 0:"),
        ("a closed block is charged", "    if closed:\n", "    if not closed:\n"),
        (
            "a spent grant is told as released",
            "if state.fates[number] == SPENT:",
            "if state.fates[number] == RESERVED:",
        ),
        ("one ceiling speaks for all", "if judge.judge(ceilings, row).all():", "if judge.judge(ceilings, row).any():"),
        ("one point speaks for all", "    if admitted.all():", "    if admitted.any():"),
        ("a single point always fits", "return [] if judge.judge_one(", "return [] if row.size or judge.judge_one("),
        (
            "living reservations lapse",
            "if one.expires_at_ms <= command.at_ms]",
            "if one.expires_at_ms > command.at_ms]",
        ),
    ),
    *_in(
        "ptklib/ledger/loss_map.py",
        ("loss_map",),
        (
            "the first segment of a range is not seen",
            "bisect_right(starts, tags.start) - 1 :",
            "bisect_right(starts, tags.start) :",
        ),
        (
            "the last segment of a range is not seen",
            "bisect_left(starts, tags.stop)]",
            "bisect_left(starts, tags.stop) - 1]",
        ),
        ("a ceiling that stays low", "self._ceiling = self._ceiling + demand", "self._ceiling = self._ceiling + 0"),
        ("twice is taken back", "self._lay(tags, -demand)", "self._lay(tags, -2 * demand)"),
        ("the least loss for the largest", "self.rows.max(axis=0)", "self.rows.min(axis=0)"),
        ("a charge of a range is not laid down", "self.rows[first:last] += demand", "self.rows[first:first] += demand"),
    ),
    *_in(
        "ptklib/ledger/slices.py",
        ("slices", "decide"),
        (
            "ranges that overlap do not",
            "return self.start < other.stop and other.start < self.stop",
            "return self.start == other.start",
        ),
        ("a block is named twice", "if len(set(self.blocks)) != len(self.blocks):", "if not self.blocks:"),
        (
            "a range that is none",
            "if not 0 <= self.start < self.stop <= TAG_SPACE:",
            "if not 0 <= self.start <= TAG_SPACE:",
        ),
    ),
    *_in(
        "ptklib/ledger/grants.py",
        ("grants",),
        ("the time of a grant is not signed", "for one in slices], expires_at_ms])", "for one in slices], 0])"),
        (
            "the tags of a grant are not signed",
            "[[one.blocks, one.tags.start, one.tags.stop] for",
            "[[one.blocks, 0, 1] for",
        ),
    ),
    *_in(
        "ptkstore/ledger/chain.py",
        ("journal",),
        ("any commit follows", "return hmac.compare_digest(mac, commit_mac(key, head, body))", "return True"),
        (
            "a commit forgets the one before",
            'b"sage journal v1", head.mac, (head.seq + 1)',
            'b"sage journal v1", (head.seq + 1)',
        ),
    ),
    *_in(
        "ptkstore/ledger/key_file.py",
        ("journal",),
        ("a key that others read", "if stat.S_IMODE(path.stat().st_mode) & 0o077:", "if not key:"),
        ("a short key", "if len(key) != KEY_BYTES:", "if not key:"),
    ),
    *_in(
        "ptkstore/ledger/verification.py",
        ("journal",),
        ("a cut history is verified", '_require(seen, "HISTORY_CUT"', '_require(True, "HISTORY_CUT"'),
        (
            "a policy that is exceeded is verified",
            "bool(stream.filter.admits(block.loss.rows, nothing).all())",
            "bool(stream.filter.width)",
        ),
    ),
    *_in(
        "ptkstore/ledger/book.py",
        ("attacks", "book"),
        (
            "a forged grant is spent",
            "        for grant in grants:\n            verify(self._key, grant)\n\n        def work",
            "        def work",
        ),
        ("a charge at once is only reserved", "            spend_at_ms=now_ms,\n", ""),
    ),
]
