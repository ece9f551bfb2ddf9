"""The bus: hints that something happened. `LocalBus` works inside one process, `RedisBus` between
processes; `ptkstore.engine.notifier` feeds either from the outbox.
"""

from ptkstore.bus.local import LocalBus
from ptkstore.bus.protocol import Bus, BusUnavailable, Handle
from ptkstore.bus.redis import RedisBus

__all__ = ["Bus", "BusUnavailable", "Handle", "LocalBus", "RedisBus"]
