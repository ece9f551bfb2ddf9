"""Mistakes in streams: who is told what, what opens, what is destroyed and what must never be
lost.
"""

from __future__ import annotations

from tests.mutations.mutation import Mutation, within

__all__ = ["OF_STREAMS"]

OF_STREAMS: list[Mutation] = [
    *within(
        "ptkstore/streams/tags.py",
        "tests/streams/test_tags.py",
        (
            "tags: tags that count",
            "return require_secure(source).words(count)",
            "return np.arange(count, dtype=np.uint64)",
            "test_tags_are_uniform",
        ),
        (
            "tags: users without a key",
            "digest_size=8, key=key, person=_PERSON",
            "digest_size=8, person=_PERSON",
            "test_a_user_has_one_tag_and_the_key_decides_which",
        ),
        (
            "tags: numbers without a key",
            "algorithms.AES256(key)",
            "algorithms.AES256(bytes(32))",
            "test_a_user_has_one_tag_and_the_key_decides_which",
        ),
    ),
    *within(
        "ptkstore/streams/blocks/frames.py",
        "tests/streams/test_frames.py",
        (
            "frames: the same nonce always",
            "nonce = os.urandom(12)",
            "nonce = bytes(12)",
            "test_frames_never_share_a_nonce",
        ),
        (
            "frames: headers are not checked",
            " or _CRC.unpack_from(raw, end)[0] != zlib.crc32(raw[:end])",
            "",
            "test_a_header_with_a_changed_byte_is_no_frame",
        ),
        (
            "frames: a frame beyond the file",
            "if stop > size:",
            "if stop < 0:",
            "test_a_frame_that_the_file_ends_in_is_no_frame",
        ),
        (
            "frames: of any block",
            "(stream.encode(), block.encode())",
            "(stream.encode(), b'')",
            "test_the_pieces_of_a_frame_are_the_frame_whatever_its_size_and_place",
        ),
    ),
    *within(
        "ptkstore/streams/blocks/vault.py",
        "tests/streams/test_vault.py",
        (
            "vault: keys are not overwritten",
            "os.pwrite(descriptor, _GONE, 0)",
            "os.pwrite(descriptor, b'', 0)",
            "test_the_key_is_overwritten_before_it_is_unlinked",
        ),
        (
            "vault: keys are not removed",
            "\n                path.unlink()",
            "",
            "test_expiry_leaves_nothing_that_could_open_a_kept_copy",
        ),
        (
            "vault: new keys for an old stream",
            "not path.exists() and any(self.files.iterdir()",
            "path.is_dir(",
            "test_a_key_directory_that_is_not_there_deletes_nothing",
        ),
        (
            "vault: an overwritten key opens",
            "KEY_BYTES and key != _GONE",
            "KEY_BYTES",
            "test_only_what_cannot_be_opened_is_collected",
        ),
        (
            "vault: what cannot be opened stays",
            "not self.holds(block) or not",
            "not",
            "test_only_what_cannot_be_opened_is_collected",
        ),
    ),
    *within(
        "ptkstore/streams/reading/reader.py",
        "tests/streams/test_reader.py",
        (
            "reader: opened without a charge",
            "ledger.spend_all(grants)",
            "pass",
            "test_the_grant_is_spent_before_anything_is_read",
        ),
        (
            "reader: a grant for another stream",
            ") or grant.stream != self.spec.name",
            ")",
            "test_without_a_good_grant_nothing_opens",
        ),
        (
            "reader: an open block is read",
            "self._spans.block_number(block) >= sealed_before",
            "sealed_before < 0",
            "test_blocks_that_cannot_be_opened",
        ),
        (
            "reader: the start of a range is forgotten",
            "inside |= (tags >= np.uint64(range_.start)) & (",
            "inside |= (",
            "test_tag_slices_are_disjoint_and_cover_everything",
        ),
        (
            "reader: counts without noise",
            "zip(plan, noisy, strict=True)",
            "zip(plan, counts, strict=True)",
            "test_counts_leave_with_noise_only",
        ),
        (
            "reader: what follows the seal is ignored",
            "or last.stop != os.fstat(descriptor).st_size",
            "or last.stop == 0",
            "test_a_file_that_was_tampered_with_is_noticed",
        ),
    ),
    *within(
        "ptkstore/streams/reading/reader.py",
        "tests/streams/test_cohorts.py",
        (
            "reader: one record of a user too many",
            "before[inverse] + rank < self._most",
            "before[inverse] + rank <= self._most",
            "test_records_per_user_are_bounded_by_arrival",
        ),
        (
            "reader: users begin anew with every frame",
            "np.minimum(before + counts, self._most))",
            "before)",
            "test_records_per_user_are_bounded_by_arrival",
        ),
    ),
    *within(
        "ptkstore/streams/reading/opened.py",
        "tests/streams/test_opened.py",
        (
            "opened: anybody's word opens",
            "hmac.compare_digest(opened.mac, _mac(opened))",
            "opened.store",
            "test_what_was_not_spent_for_stays_closed",
        ),
        (
            "opened: any range is open",
            "any(first <= start and stop <= last for first, last in ranges)",
            "ranges",
            "test_grants_open_their_union_once",
        ),
    ),
    *within(
        "ptkstore/api/stream_spec.py",
        "tests/streams/test_spec.py",
        (
            "streams: a user's records count as one",
            "=self.records_per_user",
            "=1",
            "test_the_count_is_priced_for_the_unit",
        ),
        (
            "streams: counts beyond the policy",
            "Fraction(self.count_epsilon) <= Fraction(self.policy.epsilon",
            "bool(self.count_epsilon",
            "test_a_specification_that_is_wrong_is_refused",
        ),
        (
            "streams: columns without public bounds",
            'column.upper is None or (column.lower is None and column.type != "string")',
            "not column.name",
            "test_a_specification_that_is_wrong_is_refused",
        ),
    ),
    *within(
        "ptkstore/streams/spans.py",
        "tests/streams/test_reader.py",
        (
            "streams: quarantine is a block",
            "if name.startswith(QUARANTINE):",
            "if not name:",
            "test_blocks_that_cannot_be_opened",
        ),
    ),
    *within(
        "ptkstore/streams/ingest/writer.py",
        "tests/streams/test_vault.py",
        (
            "destruction: noted after it happens",
            (
                "        self._acknowledged.destroying(name for name in names if name in there)\n"
                "        self._vault.destroy(*names)\n"
            ),
            (
                "        self._vault.destroy(*names)\n"
                "        self._acknowledged.destroying(name for name in names if name in there)\n"
            ),
            "test_expiry_that_was_interrupted_is_finished_at_the_next_start",
        ),
    ),
    *within(
        "ptkstore/streams/ingest/writer.py",
        "tests/streams/test_breakdown.py",
        (
            "destruction: a failed one goes on unnoticed",
            "self._guarded(lambda: self._destroy(*blocks, *late))",
            "self._destroy(*blocks, *late)",
            "test_expiry_that_finds_no_room_is_made_good",
        ),
    ),
    *within(
        "ptkstore/streams/ingest/writer.py",
        "tests/streams/test_reach.py",
        (
            "reach: users join before their batch is judged",
            "        check_reach(self._spans,",
            ("        self._router.split(checked, oldest_open)\n        check_reach(self._spans,"),
            "test_what_is_refused_joins_nobody_with_what_is_accepted_beside_it",
        ),
    ),
    *within(
        "ptkstore/streams/ingest/writer.py",
        "tests/streams/test_members.py",
        (
            "members: frames before those who join",
            (
                "            if self._cohorts is not None:\n"
                "                self._cohorts.settle()\n"
                "            write_parts(self._files, parts, least_syncs=min(users, len(self._files)))\n"
            ),
            (
                "            write_parts(self._files, parts, least_syncs=min(users, len(self._files)))\n"
                "            if self._cohorts is not None:\n"
                "                self._cohorts.settle()\n"
            ),
            "TestCrashes::test_a_batch_that_is_sent_again_after_a_crash_at_any_sync_gives_the_same",
        ),
    ),
    *within(
        "ptkstore/streams/blocks/acknowledged.py",
        "tests/streams/test_acknowledged.py",
        (
            "destruction: left out of notes put together",
            'self.known.add({"gone": wanted})',
            "pass",
            "test_a_destruction_is_noted_even_where_the_notes_are_put_together",
        ),
    ),
    *within(
        "ptkstore/streams/progress/recovery.py",
        "tests/streams/test_vault.py",
        (
            "destruction: not finished after a crash",
            "if acknowledged.known.gone:",
            "if not acknowledged.known:",
            "test_expiry_that_was_interrupted_is_finished_at_the_next_start",
        ),
        (
            "recovery: a key or a file that is gone",
            "not vault.holds(name) or not vault.path(name).exists()",
            "not name",
            "test_what_is_lost_without_a_note_of_its_destruction_stops_the_writer",
        ),
    ),
    *within(
        "ptkstore/streams/progress/recovery.py",
        "tests/streams/test_acknowledged.py",
        (
            "recovery: a sealed block that was cut",
            "if not whole or Extent.of(descriptor, extent.length) != extent:",
            "if not name:",
            "test_a_stream_of_an_earlier_release_is_taken_as_it_is",
        ),
    ),
    *within(
        "ptkstore/streams/blocks/file.py",
        "tests/streams/test_crashes.py",
        (
            "recovery: what was promised is cut",
            "if length < self._promised.length:",
            "if length < 0:",
            "test_damage_in_the_last_of_what_was_promised_is_no_torn_tail",
        ),
    ),
    *within(
        "ptkstore/streams/ingest/reach.py",
        "tests/streams/test_reach.py",
        (
            "reach: a batch of any width",
            "blocks_of(numbers, oldest_open) > MAX_BLOCKS",
            "last < 0",
            "test_neither_members_nor_open_blocks_have_a_say",
        ),
        (
            "reach: event times without a horizon",
            "if last >= end:",
            "if last < 0:",
            "test_a_stream_has_no_more_open_blocks_than_its_horizon",
        ),
    ),
    *within(
        "ptkstore/streams/cohorts/cohorts.py",
        "tests/streams/test_members.py",
        (
            "cohorts: nobody is less work than somebody",
            "self._log.write(Members(tags, numbers))",
            "_ = len(tags) and self._log.write(Members(tags, numbers))",
            "TestNothingIsTold::test_an_append_makes_and_syncs_as_many_files_whoever_is_in_it",
        ),
    ),
    *within(
        "ptkstore/streams/cohorts/member_log.py",
        "tests/streams/test_members.py",
        (
            "members: a log that was cut",
            "if at < end.length:",
            "if at < 0:",
            "TestDamage::test_a_file_that_was_cut_is_noticed",
        ),
        (
            "members: without a chain",
            "_PLACE.pack(number, at, chain)",
            "_PLACE.pack(number, at, _START)",
            "TestDamage::test_padding_is_not_missed",
        ),
    ),
    *within(
        "ptkstore/streams/blocks/binding.py",
        "tests/streams/test_binding.py",
        (
            "binding: any ledger opens",
            "not hmac.compare_digest(identity, ledger.identity.encode())",
            "not identity",
            "test_a_second_ledger_opens_nothing",
        ),
    ),
    *within(
        "ptkstore/streams/progress/accepted.py",
        "tests/streams/test_producers.py",
        (
            "producers: a forgotten number counts as received",
            "Verdict.FORGOTTEN if ranges.forgot(seq)",
            "Verdict.DUPLICATE if ranges.forgot(seq)",
            "TestNumbers::test_a_number_in_a_closed_gap_is_refused",
        ),
        (
            "producers: a session of somebody else",
            "return Verdict.ENDED if newest and number",
            "return Verdict.NEW if newest and number",
            "TestSessions::test_a_new_session_of_a_producer_ends_the_one_before",
        ),
    ),
    *within(
        "ptkstore/streams/progress/senders.py",
        "tests/streams/test_producers.py",
        (
            "producers: callers share their numbers",
            "return cls(caller_mark(caller), producer, session)",
            'return cls("", producer, session)',
            "TestNumbers::test_callers_do_not_share_numbers",
        ),
    ),
]
