"""The C++ libraries of this tree."""

def cc_library(name, srcs = [], copts = [], deps = [], **kwargs):
    """A cc_library whose C++ files begin with the headers of //third_party/standard, which are read already parsed."""
    compiled = [file for file in srcs if file.endswith(".cc")]
    native.cc_library(
        name = name,
        srcs = srcs,
        copts = copts + (["-include", "third_party/standard/standard.h"] if compiled else []),
        deps = deps + (["//third_party/standard:precompiled"] if compiled else []),
        **kwargs
    )
