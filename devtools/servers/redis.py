"""Redis with a password, keeping nothing on disk."""

from __future__ import annotations

from dataclasses import dataclass

import redis

from devtools.servers.cache import Say
from devtools.servers.recipes import get
from devtools.servers.running import LocalServer, new_directory, new_secret, running

__all__ = ["Redis", "start_redis"]


@dataclass(frozen=True)
class Redis:
    """A running Redis."""

    server: LocalServer
    password: str

    @property
    def url(self) -> str:
        """Its URL, password included."""
        return f"redis://:{self.password}@127.0.0.1:{self.server.port}/0"


def start_redis(say: Say) -> Redis:
    """A new, empty Redis."""
    program = get("redis", say)
    password = new_secret()

    def make(port: int) -> LocalServer:
        directory = new_directory("redis")
        settings = directory / "redis.conf"
        settings.write_text(
            f'port {port}\nbind 127.0.0.1\nsave ""\nappendonly no\nrequirepass {password}\n'
        )
        settings.chmod(0o600)

        def answers() -> None:
            with redis.Redis(
                host="127.0.0.1", port=port, password=password, socket_timeout=5
            ) as client:
                client.ping()

        return LocalServer("redis", port, directory, [str(program), str(settings)], answers)

    return Redis(running(make), password)
