"""Mistakes in the ledger, from the pure state machine to its journal."""

from __future__ import annotations

from tests.mutations.mutation import Mutation, within

__all__ = ["OF_LEDGER"]

OF_LEDGER: list[Mutation] = [
    *within(
        "ptklib/ledger/decide.py",
        "tests/ledger/test_decide.py",
        (
            "ledger: a stream is made twice",
            "if command.stream in state.streams:",
            "if False:",
            "test_streams_and_blocks_have_names_of_their_own",
        ),
        (
            "ledger: a block is added twice",
            "if name in stream.by_name]",
            "if not name]",
            "test_streams_and_blocks_have_names_of_their_own",
        ),
        (
            "ledger: ranges without end",
            "_check_ranges(slices)",
            "pass",
            "test_each_fault_has_its_reason",
        ),
        (
            "ledger: no look at the policy",
            "_check_room(stream, command, blocks, tags, row)",
            "pass",
            "test_ten_charges_of_a_tenth_fit_one_and_the_eleventh_does_not",
        ),
        (
            "ledger: no look at quotas",
            "        if context in stream.quotas:",
            "        if not context:",
            "test_quotas_divide_but_never_replace_the_policy",
        ),
        (
            "ledger: one key for two requests",
            "_check_same(state, stream.keys[command.key], entry)",
            "pass",
            "test_a_key_makes_a_request_idempotent",
        ),
        (
            "ledger: half of a request stays",
            "for entry in reversed(entries):",
            "for entry in entries[:0]:",
            "test_reserve_all_is_all_or_nothing",
        ),
        (
            "ledger: an old grant is spent",
            "if command.at_ms >= charge.expires_at_ms:",
            "if command.at_ms < 0:",
            "test_expiry_releases_what_never_started_and_only_that",
        ),
        (
            "ledger: a closed block is charged",
            "if closed:",
            "if not closed:",
            "test_the_life_of_a_charge",
        ),
        (
            "ledger: a spent grant is told as released",
            "if state.fates[number] == SPENT:",
            "if state.fates[number] == RESERVED:",
            "test_the_life_of_a_charge",
        ),
        (
            "ledger: one ceiling speaks for all",
            "if privacy_filter.judge(ceilings, row).all():",
            "if privacy_filter.judge(ceilings, row).any():",
            "test_one_full_block_among_many_is_enough_to_refuse",
        ),
        (
            "ledger: one point speaks for all",
            "    if admitted.all():",
            "    if admitted.any():",
            "test_disjoint_slices_compose_in_parallel_and_overlapping_ones_add_up",
        ),
        (
            "ledger: a single point always fits",
            "if privacy_filter.judge_one(",
            "if row.size or privacy_filter.judge_one(",
            "test_ten_charges_of_a_tenth_fit_one_and_the_eleventh_does_not",
        ),
        (
            "ledger: living reservations lapse",
            "if charge.expires_at_ms <= command.at_ms]",
            "if charge.expires_at_ms > command.at_ms]",
            "test_expiry_releases_what_never_started_and_only_that",
        ),
    ),
    *within(
        "ptklib/ledger/loss_map.py",
        "tests/ledger/test_loss_map.py",
        (
            "ledger: the first segment of a range is not seen",
            "bisect_right(starts, tags.start) - 1 :",
            "bisect_right(starts, tags.start) :",
            "test_within_gives_exactly_the_losses_that_meet_the_range",
        ),
        (
            "ledger: the last segment of a range is not seen",
            "bisect_left(starts, tags.stop)]",
            "bisect_left(starts, tags.stop) - 1]",
            "test_within_gives_exactly_the_losses_that_meet_the_range",
        ),
        (
            "ledger: a ceiling that stays low",
            "self._ceiling = self._ceiling + demand",
            "self._ceiling = self._ceiling + 0",
            "test_the_ceiling_is_never_below_a_loss",
        ),
        (
            "ledger: twice is taken back",
            "self._lay(tags, -demand)",
            "self._lay(tags, -2 * demand)",
            "test_taking_a_charge_back_restores_it_bit_for_bit",
        ),
        (
            "ledger: the least loss for the largest",
            "self.rows.max(axis=0)",
            "self.rows.min(axis=0)",
            "test_it_is_the_sum_of_what_covers_each_tag",
        ),
        (
            "ledger: a charge of a range is not laid down",
            "self.rows[first:last] += demand",
            "self.rows[first:first] += demand",
            "test_it_is_the_sum_of_what_covers_each_tag",
        ),
    ),
    *within(
        "ptklib/ledger/slices.py",
        "tests/ledger/test_slices.py",
        (
            "ledger: ranges that overlap do not",
            "< other.stop and other.start < self.stop",
            "== other.start",
            "test_neighbouring_shares_meet_without_gap_or_overlap",
        ),
        (
            "ledger: a block is named twice",
            "len(set(self.blocks)) != len(self.blocks)",
            "not self.blocks",
            "test_slices_name_blocks_once",
        ),
        (
            "ledger: a range that is none",
            "< self.stop <=",
            "<=",
            "test_what_is_not_a_range_of_tags_is_refused",
        ),
    ),
    *within(
        "ptklib/ledger/grants.py",
        "tests/ledger/test_grants.py",
        (
            "ledger: the time of a grant is not signed",
            "for slice_ in slices], expires_at_ms])",
            "for slice_ in slices], 0])",
            "test_the_signature_alone_tells_an_altered_grant",
        ),
        (
            "ledger: the tags of a grant are not signed",
            "slice_.tags.start, slice_.tags.stop",
            "0, 1",
            "test_the_signature_alone_tells_an_altered_grant",
        ),
        (
            "ledger: any grant is right",
            " or not hmac.compare_digest(_mac(key, grant.body), grant.mac)",
            "",
            "test_the_signature_alone_tells_an_altered_grant",
        ),
    ),
    *within(
        "ptkstore/ledger/journals/chain.py",
        "tests/ledger/test_journal.py",
        (
            "ledger: any commit follows",
            "hmac.compare_digest(mac, commit_mac(key, head, body))",
            "True",
            "test_tampering_without_the_key_is_noticed",
        ),
        (
            "ledger: a commit forgets the one before",
            'b"sage journal v1", head.mac, (head.seq + 1)',
            'b"sage journal v1", (head.seq + 1)',
            "test_a_commit_of_another_history_under_the_same_key_does_not_fit",
        ),
        (
            "ledger: a snapshot is believed",
            "return hmac.compare_digest(mac, snapshot_mac(key, head, body))",
            "return True",
            "test_a_snapshot_of_another_ledger_is_not_even_loaded",
        ),
        (
            "ledger: commits out of order",
            " or seq != head.seq + 1:",
            ":",
            "test_tampering_without_the_key_is_noticed",
        ),
    ),
    *within(
        "ptkstore/ledger/key_file.py",
        "tests/ledger/test_journal.py",
        (
            "ledger: a key that others read",
            "stat.S_IMODE(path.stat().st_mode) & 0o077",
            "not key",
            "test_a_missing_open_or_wrong_key_stops_the_ledger",
        ),
        (
            "ledger: a short key",
            "if len(key) != KEY_BYTES:",
            "if not key:",
            "test_a_missing_open_or_wrong_key_stops_the_ledger",
        ),
    ),
    *within(
        "ptkstore/ledger/verification.py",
        "tests/ledger/test_journal.py",
        (
            "ledger: a cut history is verified",
            '_require(seen, "HISTORY_CUT"',
            '_require(True, "HISTORY_CUT"',
            "test_a_journal_that_was_cut_is_noticed_by_a_head_kept_elsewhere",
        ),
        (
            "ledger: a policy that is exceeded is verified",
            "admits(block.loss.rows, nothing).all()",
            "width",
            "test_a_commit_beyond_the_policy_is_noticed_even_when_signed",
        ),
        (
            "ledger: memory that differs is verified",
            "digest(replayed) == live",
            "bool(live)",
            "test_memory_that_differs_from_the_journal_is_noticed",
        ),
        (
            "ledger: a wrong snapshot is verified",
            "body == dump(replayed)",
            "bool(body)",
            "test_a_snapshot_that_differs_is_noticed_even_when_signed",
        ),
    ),
    *within(
        "ptkstore/ledger/ledger.py",
        "tests/ledger/test_attacks.py",
        (
            "ledger: a forged grant is spent",
            "\n            verify(self._key, grant)",
            "\n            _ = grant",
            "TestAttacks::test_a_grant_with_impossible_names_or_numbers_is_forged",
        ),
    ),
    *within(
        "ptkstore/ledger/ledger.py",
        "tests/ledger/test_book.py",
        (
            "ledger: a charge at once is only reserved",
            ", spend_at_ms=now_ms)",
            ")",
            "TestBook::test_what_was_said_is_there_after_reopening",
        ),
    ),
    *within(
        "ptkstore/ledger/ledger.py",
        "tests/ledger/test_grants.py",
        (
            "ledger: a forged grant is released",
            "\n        verify(self._key, grant)",
            "",
            "test_a_forger_is_not_told_what_became_of_a_charge",
        ),
        (
            "ledger: a grant twice in one spend",
            "len({grant.charge for grant in grants}) != len(grants)",
            "not grants",
            "test_one_grant_named_twice_is_refused_and_not_spent",
        ),
        (
            "ledger: a grant of another history",
            "issue(self._key, turn.state, charge) != grant",
            "not grant.mac",
            "test_a_grant_that_outlived_a_journal_set_back_does_not_fit_its_successor",
        ),
    ),
]
