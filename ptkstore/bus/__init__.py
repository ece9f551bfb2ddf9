"""The bus: hints that something happened. `LocalBus` works inside one process; `Notifier` feeds it from the outbox."""

from ptkstore.bus.local import LocalBus
from ptkstore.bus.notifier import Drained, Notifier
from ptkstore.bus.protocol import Bus, BusUnavailable, Handle

__all__ = ["Bus", "BusUnavailable", "Drained", "Handle", "LocalBus", "Notifier"]
