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

# dist/comm sees only base and tensor.
_COMM = "dist/comm"
_SEEN_BY_COMM = ["base", "tensor", "dist"]

def declare_users():
    """One package_group a layer; a folder of a user's own may use all of them."""
    for i, layer in enumerate(LAYERS):
        refused = LAYERS[:i] + ([] if layer in _SEEN_BY_COMM else [_COMM])
        native.package_group(
            name = "users_of_" + layer,
            packages = ["//..."] + ["-//%s/..." % folder for folder in refused],
        )

def users_of(layer):
    """For package(default_visibility = users_of("tensor"))."""
    return ["//build_defs:users_of_" + layer]
