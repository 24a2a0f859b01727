"""op: one rule for an operation whose files share a stem."""

load(":isa.bzl", "multi_isa_library")

def op(name, deps = [], kernel_deps = [], hdrs = [], kernel_hdrs = [], **kwargs):
    """The library NAME from NAME.h, NAME.cc, NAME_kernels.h and, per instruction set, NAME_cpu.cc.

    Args:
      name: the stem
      deps: what NAME.h and NAME.cc include
      kernel_deps: what NAME_kernels.h and NAME_cpu.cc include
      hdrs: further headers of the function side
      kernel_hdrs: further headers of the kernel side
      **kwargs: visibility, testonly, ...
    """
    multi_isa_library(
        name = name + "_kernels",
        srcs = [name + "_cpu.cc"],
        hdrs = [name + "_kernels.h"] + kernel_hdrs,
        deps = kernel_deps,
        **kwargs
    )
    native.cc_library(
        name = name,
        srcs = [name + ".cc"],
        hdrs = [name + ".h"] + hdrs,
        deps = deps + [":%s_kernels" % name],
        **kwargs
    )
