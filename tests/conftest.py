"""Settings for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

pytest_plugins = ["tests.servers.fixtures", "tests.fast"]

# How long an example takes says more about the machine than about the code.
settings.register_profile("sage", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("sage")
