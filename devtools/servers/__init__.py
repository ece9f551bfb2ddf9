"""Real servers for tests and for trying things out, with no root and no container: Redis,
PostgreSQL and two S3 servers.

``python -m devtools.servers get`` fetches or builds them into a cache of the user, ``run`` starts
the whole set (see docs/guides/servers.md). Tests ask for a fixture of ``devtools.servers.fixtures``
and get a server when the first of them needs it.
"""
