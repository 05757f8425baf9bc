"""Who may use what of the MPI library: each folder those below it, and nobody one above."""

# From the top.
_LAYERS = [
    "api",
    "dynamic",
    "io",
    "rma",
    "survive",
    "coll",
    "p2p",
    "host",
    "comm",
    "datatype",
    "core",
]

def above(layer):
    """The visibility of `layer`: the folders above it. Of the highest one nobody."""
    higher = _LAYERS[:_LAYERS.index(layer)]
    return ["//mpi_hybrid/%s:__subpackages__" % one for one in higher] or ["//visibility:private"]
