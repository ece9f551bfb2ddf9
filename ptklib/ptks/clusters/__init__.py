"""k-means with differential privacy: centres, the nearest one of a record, and the distances to
all.
"""

from ptklib.ptks.clusters.ptk import MAX_CLUSTERS, Clusters

__all__ = ["MAX_CLUSTERS", "Clusters"]
