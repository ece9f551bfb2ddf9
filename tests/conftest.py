"""Settings for all tests."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

pytest_plugins = ["devtools.servers.fixtures", "tests.fast"]

# How long an example takes says more about the machine than about the code.
settings.register_profile(
    "sage", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("sage")

# Shells start what goes on in the background with Ctrl-C ignored, and so would be the programs that
# tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
