"""``python -m devtools.servers get [NAME ...]`` fetches or builds; ``python -m devtools.servers
run`` starts the set until Ctrl-C.
"""

from __future__ import annotations

import argparse
import signal
import sys
import threading
from contextlib import ExitStack

from devtools.servers.cache import ServerMissing, tell
from devtools.servers.postgres import start_postgres
from devtools.servers.recipes import NAMES, get
from devtools.servers.redis import start_redis
from devtools.servers.s3 import start_minio, start_versity
from devtools.servers.settings import sage_yaml


def main() -> int:
    """0 when all went well."""
    parser = argparse.ArgumentParser(prog="python -m devtools.servers", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    fetch = commands.add_parser("get", help="fetch or build servers into the cache")
    fetch.add_argument(
        "names",
        nargs="*",
        choices=[[], *NAMES],
        help=f"which of {', '.join(NAMES)}; all by default",
    )
    commands.add_parser("run", help="start all of them and print the sage.yaml that uses them")
    arguments = parser.parse_args()
    # Whoever ends us politely lets us tidy up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return _get(arguments.names or NAMES) if arguments.command == "get" else _serve()
    except ServerMissing as missing:
        tell(str(missing))
        return 1
    except KeyboardInterrupt:
        return 130


def _get(names: tuple[str, ...]) -> int:
    failed = []
    for name in names:
        try:
            tell(f"{name}: {get(name, tell)}")
        except ServerMissing as missing:
            tell(str(missing))
            failed.append(name)
    return 1 if failed else 0


def _serve() -> int:
    """Start everything, print how to use it, and wait."""
    _get(NAMES)
    over = threading.Event()
    with ExitStack() as stack:
        postgres = start_postgres(tell)
        stack.callback(postgres.server.close)
        postgres.execute("CREATE DATABASE sage")
        redis = start_redis(tell)
        stack.callback(redis.server.close)
        minio = start_minio(tell)
        stack.callback(minio.server.close)
        minio.client().make_bucket("sage")
        versity = start_versity(tell)
        stack.callback(versity.server.close)
        print("# sage.yaml for these servers; their data goes when they stop.")
        print(
            f"# A second S3 server with the same access key: {versity.endpoint}, secret key "
            f"{versity.secret_key}"
        )
        print(sage_yaml(postgres, minio, redis), end="", flush=True)
        tell("running; Ctrl-C stops them")
        try:
            over.wait()
        except KeyboardInterrupt:
            tell("stopping")
    return 0


if __name__ == "__main__":
    sys.exit(main())
