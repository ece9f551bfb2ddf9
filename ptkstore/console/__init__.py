"""The operator's console: what each choice of E, T and N_max costs, in a browser.

It speaks the public API alone (`ptkstore.Store`), so that it shows what is public or DP and nothing
else. All paths are flat and all links are relative: it works below any prefix. See
docs/internals/console.md for how a page is added.
"""

from ptkstore.console.app import make_app
from ptkstore.console.sessions.settings import ConsoleSettings
from ptkstore.console.sessions.sources import DirectorySource, ServerSource, Source

__all__ = ["ConsoleSettings", "DirectorySource", "ServerSource", "Source", "make_app"]
