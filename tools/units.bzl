"""C++ libraries of many files, compiled a few files at a time.

Nine tenths of the compilation of a file is reading its headers, and the files of a library include the same ones. A unit is a generated file
that includes up to _FILES of them, so that these headers are read once. A name that is local to a file (in an anonymous namespace, or static),
or declared in one of the library's headers, therefore must not stand for something else in another file: tools/make-unit refuses it."""

load(":library.bzl", "cc_library")

_FILES = 6

def cc_library_in_units(name, srcs, hdrs = [], alone = [], textual_hdrs = [], **kwargs):
    """A cc_library. Of `srcs`, the .cc files that are not in `alone` are compiled in units, in the order in which they stand."""
    together = [file for file in srcs if file.endswith(".cc") and file not in alone]
    headers = [file for file in srcs + hdrs if file.endswith(".h")]
    count = (len(together) + _FILES - 1) // _FILES  # units, as even as they can be
    units = []
    for i in range(count):
        files = together[i * len(together) // count:(i + 1) * len(together) // count]
        units.append("%s_unit_%d.cc" % (name, i + 1))
        native.genrule(
            name = "%s_unit_%d" % (name, i + 1),
            srcs = together + headers,
            outs = [units[-1]],
            cmd = "python3 $(location //tools:make-unit) $@ %s -- $(SRCS)" % " ".join(["$(location %s)" % file for file in files]),
            tools = ["//tools:make-unit"],
            testonly = kwargs.get("testonly", False),
            visibility = ["//visibility:private"],
        )
    cc_library(
        name = name,
        srcs = units + [file for file in srcs if file not in together],
        hdrs = hdrs,
        textual_hdrs = textual_hdrs + together,
        **kwargs
    )
