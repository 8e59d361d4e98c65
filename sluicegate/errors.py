"""The one error tree.

    SluicegateError
    ├── UsageError            bad input or a missing part: one sentence and a hint, exit code 2
    │   ├── SettingsError     a setting that contradicts its bound or another setting
    │   └── SnapshotRefused   a file that is no whole snapshot of a format that this version reads
    ├── PrometheusFailed      a Prometheus gave no whole answer
    ├── GrafanaFailed         a Grafana did not take what it was sent
    ├── NeverStill            jobs moved for as long as a snapshot was tried
    ├── SnapshotBusy          another process writes the same snapshot
    ├── HalfRestored          a snapshot of a queue that is only half back would take the place of an older file
    ├── NoContract            the queue that a snapshot was asked of is not open, or lost its settings
    └── StoreError            the queue's server did not do what was asked
        ├── StoreUnavailable  no answer in time, refused, loading, a replica, connection broken: outcome not known
        └── StoreRejected     the server answered with an error (no permission, out of memory, wrong type)
            ├── NoLogin       the server wants a name or a password that it was not given: nobody waits this away
            ├── NotText       the answer holds bytes that are no UTF-8, which another client has written
            ├── OtherLibrary  the server has other code under the library's name, without the command that was asked for
            └── StoreFull     the server's memory is full: what adds jobs is refused, everything else goes on

A refusal that the caller must handle (an admission, a gate move, a lost race) is a value, never one of these.
"""

from __future__ import annotations


class SluicegateError(Exception):
    """Be the root of everything this project raises on purpose."""


class UsageError(SluicegateError):
    """Tell a person what was wrong with what they asked for, and what to do instead."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class SettingsError(UsageError):
    """Name the setting, its value and the bound it breaks."""


class SnapshotRefused(UsageError):
    """Say what is wrong with a snapshot's file, and where in it."""


class PrometheusFailed(SluicegateError):
    """Say what was asked, and why there is no whole answer: part of a history would look like a quiet one."""


class GrafanaFailed(SluicegateError):
    """Say what a Grafana was sent, and why it did not take it."""


class NeverStill(SluicegateError):
    """Say that jobs went on moving while they were written down, so that no instant could be written."""


class SnapshotBusy(SluicegateError):
    """Say that another process is writing the file; it is waited for, or takes another name."""


class HalfRestored(SluicegateError):
    """Say that a restore is not complete: what it has not put back may be in the file alone that would be replaced."""


class NoContract(SluicegateError):
    """Say that the queue holds no contract: a file of it would look like a snapshot, and could never be restored."""


class StoreError(SluicegateError):
    """Be the root of what the queue's server can do to a caller."""


class StoreUnavailable(StoreError):
    """Say that no answer came: whether the command ran is not known, so repeat it only with its request id."""


class StoreRejected(StoreError):
    """Carry the server's own error text: the command was not executed."""


class NoLogin(StoreRejected):
    """Say that the server knows no such user and password, or that it wants some and got none."""


class NotText(StoreRejected):
    """Say that an answer can't be read as text; the command was executed."""


class OtherLibrary(StoreRejected):
    """Say which code the server has and which is needed, and what to do."""


class StoreFull(StoreRejected):
    """Say that the server takes no more data, and what makes room."""
