"""The C++ libraries of this tree."""

def cc_library(name, srcs = [], copts = [], deps = [], **kwargs):
    """A cc_library whose C++ files begin with the headers of //third_party/standard, which are read already parsed.

    Not one that is optimized in its own way: gcc 12 crashed on some, under AddressSanitizer, when the headers had been parsed for another level.
    """
    own_level = [option for option in copts if option.startswith("-O")]
    compiled = [file for file in srcs if file.endswith(".cc") and not own_level]
    native.cc_library(
        name = name,
        srcs = srcs,
        copts = copts + (["-include", "third_party/standard/standard.h"] if compiled else []),
        deps = deps + (["//third_party/standard:precompiled"] if compiled else []),
        **kwargs
    )
