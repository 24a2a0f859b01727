"""Visibility of the folders: each may be used by those to its right (tools/check_layers proves it)."""

LAYERS = [
    "base",
    "tensor",
    "autograd",
    "nn",
    "dist",
    "optim",
    "checkpoint",
    "train",
    "analysis",
    "cli",
    "examples",
]

def users_of(layer):
    """For package(default_visibility = users_of("tensor")): the folder itself and all to its right."""
    users = LAYERS[LAYERS.index(layer):] + ["benchmarks", "tests"]
    return ["//%s:__subpackages__" % user for user in users]
