"""Mistakes in the engine, its workers and its RPCs."""

from __future__ import annotations

from tests.mutations.mutation import Mutation, within

__all__ = ["OF_ENGINE"]

OF_ENGINE: list[Mutation] = [
    *within(
        "ptkstore/workers/train.py",
        "tests/streams/test_opened.py",
        (
            "workers: tags that were not opened",
            "records.opener.require(start, stop)",
            "pass",
            "test_a_worker_trains_on_no_tag_that_was_not_spent_for",
        ),
    ),
    *within(
        "ptkstore/workers/train.py",
        "tests/engine/test_workers.py",
        (
            "workers: every PTK sees all records",
            "int(grouped.begins[first]), int(grouped.begins[last])",
            "0, grouped.batch.num_rows",
            "test_every_job_sees_its_range_and_nothing_else",
        ),
        (
            "workers: texts of errors leave",
            "else failure_of(error)",
            "else str(error)",
            "test_a_failure_says_where_and_never_what",
        ),
    ),
    *within(
        "ptkstore/engine/window/validating.py",
        "tests/engine/test_on_trial.py",
        (
            "validating: what was not tested is published on trial too",
            "NOT_SHOWN if state.on_trial else NOT_TESTED",
            "NOT_TESTED",
            "test_without_a_test_there_is_no_version",
        ),
    ),
    *within(
        "ptkstore/engine/window/trials.py",
        "tests/engine/test_on_trial.py",
        (
            "trials: a PTK on trial trains where there is no test for it",
            "if not candidate.on_trial or has_test(candidate)",
            "if candidate or has_test(candidate)",
            "test_where_no_fresh_records_are_left_it_is_not_due",
        ),
    ),
    *within(
        "ptklib/encoding/error_place.py",
        "tests/ptks/test_error_place.py",
        (
            "errors: their texts are told with their place",
            "{f' at {place}' if place else ''}",
            "{f' at {place}' if place else ''} {error}",
            "test_kind_and_place_are_told_and_the_text_is_not",
        ),
    ),
    *within(
        "ptkstore/api/permissions.py",
        "tests/rpc/test_permissions.py",
        (
            "rpc: producers close windows",
            '_STREAM + "CloseWindow": _may("",',
            '_STREAM + "CloseWindow": _may("producer",',
            "test_the_reference_has_the_table",
        ),
        (
            "rpc: readers see who called",
            '"ListAuditEntries": _may("", scope',
            '"ListAuditEntries": _may("reader", scope',
            "test_the_reference_has_the_table",
        ),
        (
            "rpc: readers register PTKs",
            '"RegisterPtk": _may("developer",',
            '"RegisterPtk": _may("reader developer",',
            "test_the_reference_has_the_table",
        ),
        (
            "rpc: developers approve plans",
            '"ApprovePlan": _may("",',
            '"ApprovePlan": _may("developer",',
            "test_the_reference_has_the_table",
        ),
    ),
    *within(
        "ptkstore/rpc/gate/identity.py",
        "tests/rpc/test_permissions.py",
        (
            "rpc: roles do not matter",
            "if not self.roles & permission.roles:",
            "if not self.name:",
            "test_a_role_may_call_what_the_table_says_and_nothing_else",
        ),
        (
            "rpc: limits do not matter to the whole",
            'permission.scope == "whole" and self.limited',
            "not self.name",
            "test_a_token_for_one_stream_sees_that_stream_only",
        ),
        (
            "rpc: any stream is seen",
            "stream in self.streams if self.streams else not self.ptks",
            "bool(stream)",
            "test_a_token_for_one_stream_sees_that_stream_only",
        ),
    ),
    *within(
        "ptkstore/rpc/gate/identity.py",
        "tests/rpc/test_credentials.py",
        (
            "rpc: any secret is right",
            "if row is None or not right or not",
            "if row is None or not",
            "test_nobody_calls_without_valid_credentials",
        ),
        (
            "rpc: tokens never end",
            " or not row.alive(int(self._clock() * 1000)):",
            ":",
            "test_nobody_calls_without_valid_credentials",
        ),
    ),
    *within(
        "ptkstore/allowance.py",
        "tests/rpc/test_credentials.py",
        (
            "rpc: no limit to calls",
            "if left < needed:",
            "if left < -1e300:",
            "test_an_allowance_refills_with_time",
        ),
    ),
    *within(
        "ptkstore/engine/head_guard.py",
        "tests/deploy/test_rollback.py",
        (
            "witness: a ledger that was set back",
            "if known == self._ledger.genesis or any(",
            "if known or any(",
            "test_a_book_that_was_set_back_alone_is_named_before_anything_else_is_asked",
        ),
        (
            "witness: metadata that was set back",
            "if number < known:",
            "if number < 0:",
            "test_a_book_that_was_set_back_alone_is_named_before_anything_else_is_asked",
        ),
        (
            "witness: one that is gone",
            "if missing:",
            "if not known:",
            "test_what_is_old_or_gone_is_noticed_and_spends_nothing_twice",
        ),
    ),
    *within(
        "ptkstore/engine/head_guard.py",
        "tests/engine/test_head_first.py",
        (
            "witness: a head that goes back",
            "heads = [head, *(kept.head for kept in witnesses.values())]",
            "heads = [head]",
            "test_a_head_that_another_server_kept_meanwhile_is_not_replaced_by_an_older_one",
        ),
    ),
    *within(
        "ptkstore/engine/journal.py",
        "tests/engine/test_head_first.py",
        (
            "journal: a head of long ago",
            "known = self._guard.kept_text()",
            'known = "{}"',
            "test_the_head_is_kept_before_anything_is_written",
        ),
    ),
    *within(
        "ptkstore/engine/journal.py",
        "tests/engine/test_election.py",
        (
            "journal: a step of a server that does not lead",
            "self._lead().fence(tx)",
            "_ = self._lead",
            "test_a_leader_that_was_replaced_writes_nothing_more_and_lets_go",
        ),
    ),
    *within(
        "ptkstore/workers/processes.py",
        "tests/workers/test_processes.py",
        (
            "workers: every key of the store",
            "openers[id(job.opener)] = job.opener.for_worker()",
            "openers[id(job.opener)] = job.opener",
            "TestProcesses::test_a_worker_gets_no_key_beyond_the_grant",
        ),
        (
            "workers: a dead worker is a verdict",
            "PTK_FAILED if done.exhausted else PROFILE_LOST",
            "PTK_FAILED",
            "TestProcesses::test_a_worker_that_dies_in_a_profile_is_no_verdict",
        ),
    ),
    *within(
        "ptkstore/engine/guarded_lake.py",
        "tests/engine/test_head_first.py",
        (
            "witness: a result before its head is kept",
            "self._before_put()",
            "_ = self._before_put",
            "test_the_head_is_kept_before_anything_is_written",
        ),
    ),
    *within(
        "ptkstore/workers/confinement.py",
        "tests/engine/test_confinement.py",
        (
            "workers: not confined",
            "if version == 0:",
            "if version >= 0:",
            "test_a_ptk_can_read_neither_keys_nor_books_and_write_or_connect_nowhere",
        ),
        (
            "workers: with the variables of the engine",
            "if name in _NAMES or name.startswith(_PREFIXES)",
            "if name",
            "test_a_ptk_can_read_neither_keys_nor_books_and_write_or_connect_nowhere",
        ),
    ),
    *within(
        "ptkstore/rpc/gate/metrics.py",
        "tests/rpc/test_quiet.py",
        (
            "metrics: appends are counted",
            "if not is_counted(method):",
            "if not method:",
            "test_nothing_anywhere_changes_with_how_often_or_how_much_is_pushed",
        ),
    ),
    *within(
        "ptkstore/rpc/feeds/hub.py",
        "tests/rpc/test_watching.py",
        (
            "watching: one caller has every place",
            "if self._each[who] >= free:",
            "if self._each[who] < 0:",
            "test_one_caller_leaves_half_to_others_and_they_leave_some_to_the_next",
        ),
        (
            "watching: an end that is told twice frees two places",
            "if self._ends.pop(token, None) is None:\n                    return",
            "self._ends.pop(token, None)",
            "test_what_a_caller_gives_back_it_may_take_again",
        ),
    ),
]
