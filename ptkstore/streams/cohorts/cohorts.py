"""Cohorts: which block a user belongs to, for life.

A user spans many spans of time, so at user level time cannot cut the stream into blocks with
separate budgets. Instead a user joins the cohort of the span in which the first record is seen, and
all records of the user go to that cohort's block while it is open. Once it is sealed, later records
of its users are quarantined whatever the stream's rule for late records is: they must not reach
another block, whose budget is another one. Where a record goes depends on its own user only, so
adding or removing a user changes nothing for others.

Users join in two steps. `stage` is for the batches of one group that were accepted and changes
nothing outside; `settle` makes all of it durable (`member_log` says in which order, and what a
crash leaves) and is as much work where nobody joined. A group that fails before is forgotten by the
next `begin`.

What is remembered is one tag per user (a keyed pseudorandom value, never the id) and the number of
the cohort, encrypted. It has to outlive the cohort's data: it is the one thing besides DP results
that does. See docs/internals/streams.md. Reason: STREAM_DAMAGED, where members that were
acknowledged are not there any more.
"""

from __future__ import annotations

import numpy as np

from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.cohorts.member_log import MemberLog, Members
from ptkstore.streams.cohorts.members_v1 import FILE, read_members_v1
from ptkstore.streams.progress.progress import Progress
from ptkstore.streams.tag_map import Numbers, TagMap
from ptkstore.streams.tags import Tags

__all__ = ["NOBODY", "Cohorts", "forget_members", "verify_members"]

NOBODY = int(np.iinfo(np.int64).min)


class Cohorts:
    """The members of all cohorts of one stream: a log on disk, and sorted runs in memory."""

    def __init__(self, vault: Vault, key: bytes, progress: Progress) -> None:
        """Read who has joined; the first time a log is made, from what an earlier version left."""
        self._log = MemberLog(vault, key)
        if progress.members_kept:
            members = self._read()
        else:
            members = read_members_v1(vault.files)
            self._log.rewrite(members)
            # From here on a log that is missing is damage.
            progress.members_kept = True
            progress.write(vault.files)
        (vault.files / FILE).unlink(missing_ok=True)
        self._remember(members)
        self.begin()

    def begin(self) -> None:
        """Begin a group: whatever was staged and not settled did not happen."""
        self._staged = TagMap(NOBODY)
        self._joins: list[Members] = []
        if self._stale:
            self._remember(self._read())

    def find(self, tags: Tags) -> Numbers:
        """The cohort of each tag, `NOBODY` where there is none; those that were staged count."""
        numbers = self._known.find(tags)
        unknown = numbers == NOBODY
        if self._joins and unknown.any():
            numbers[unknown] = self._staged.find(tags[unknown])
        return numbers

    def stage(self, tags: Tags, numbers: Numbers) -> None:
        """Let users who are in no cohort yet join with the group, if it comes to be written."""
        if len(tags):
            self._staged.put(tags, numbers)
            self._joins.append(Members(tags, numbers))

    def settle(self) -> None:
        """Make all that was staged durable.

        After a failure what is durable is uncertain: the next `begin` looks.
        """
        tags = np.concatenate([np.empty(0, np.uint64), *(join.tags for join in self._joins)])
        numbers = np.concatenate([np.empty(0, np.int64), *(join.numbers for join in self._joins)])
        self._stale = True
        self._log.write(Members(tags, numbers))
        self._stale = False
        self._known.put(tags, numbers)
        self._joins = []

    def _read(self) -> Members:
        members = self._log.read()
        # What was read beyond the witnessed end may be in memory alone, after a sync that failed:
        # it must not count before it is on the disk.
        if self._log.is_ahead or self._log.is_long_for(members):
            self._log.rewrite(members)
        return members

    def _remember(self, members: Members) -> None:
        self._known = TagMap(NOBODY)
        self._known.put(members.tags, members.numbers)
        self._stale = False


def forget_members(vault: Vault, key: bytes) -> None:
    """Remove all that says who has joined, readable or not: for a stream that ends, which takes no
    records any more.
    """
    MemberLog(vault, key).forget()
    (vault.files / FILE).unlink(missing_ok=True)


def verify_members(vault: Vault, first: int) -> None:
    """Read everything that says who has joined, and change nothing; a writer may be at work.

    Refused: STREAM_DAMAGED.
    """
    if not vault.files.exists():
        return
    if Progress.read(vault.files, first).members_kept:
        MemberLog(vault, vault.tag_key()).read()
    else:
        read_members_v1(vault.files)
