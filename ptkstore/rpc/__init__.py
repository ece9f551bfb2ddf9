"""The service behind the wire contract: thin servicers over the embedded `Store`.

``faults``       one map between our errors and gRPC statuses, both ways
``messages``     views to messages and back
``permissions``  one table: who may call what
``happenings``   what was done, told and asked for, as pages
``callers``      who calls: tokens, certificates, rate limits
``dispatch``     every call goes through here: identity, permission, audit, repeats, errors, metrics
``streams``, ``ptks``, ``plans``, ``budgets``, ``operations``, ``events``   the services
``appending``, ``arrow``   ingest; ``running`` long work; ``delivering`` calls to subscribers; ``hub`` wakes watchers
"""

__all__: list[str] = []
