"""States without Sage: ``export(state, folder)`` writes files that need NumPy and nothing else."""

from ptklib.export.files import Exported, export

__all__ = ["Exported", "export"]
