"""C++ tests, compiled a few files at a time.

Most of the compilation of a test is work that the tests of its package have in common: gtest's templates, and headers of what they test. A unit is a
generated file that holds up to _FILES test files of a package (tools/make-test-unit). Each test remains a program of its own, which is linked with
the whole unit and runs the cases of its own file (third_party/gtest/one_file.cc).

A BUILD file with cc_test of this file ends with cc_tests_in_units()."""

_FILES = 8

_SOURCE = "_source"
_CASES = "_cases"

def cc_test(name, srcs, deps = [], alone = False, args = [], copts = [], **kwargs):
    """A cc_test, with the other tests of its package if it is one file, and headers.

    Args:
      name: its name
      srcs: *_test.cc, headers, and what else there is; with another .cc it is compiled alone
      deps: what it is linked with, and so is each test of its unit
      alone: compiled by itself: it defines something that other tests of the package must not have, such as an operator new or a main(), or
        it instantiates a suite that a library defines
      args: for the test's program
      copts: with these too it is compiled alone
      **kwargs: as for any cc_test
    """
    files = [file for file in srcs if file.endswith(".cc")]
    if alone or copts or len(files) != 1:
        native.cc_test(name = name, srcs = srcs, deps = deps, args = args, copts = copts, **kwargs)
        return
    native.filegroup(
        name = name + _SOURCE,
        srcs = srcs,
        testonly = True,
        tags = ["manual"],
        visibility = ["//visibility:private"],
    )
    native.cc_test(
        name = name,
        args = ["--cases_of=%s/%s" % (native.package_name(), files[0])] + args,
        deps = deps + [":" + name + _CASES, "//third_party/gtest:one_file"],
        **kwargs
    )

def cc_tests_in_units():
    """Compiles the files of the package's cc_tests, in the order of their names."""
    rules = native.existing_rules()
    tests = {}  # file: its tests
    headers = {}
    deps = {}
    for name, rule in rules.items():
        if rule["kind"] == "filegroup" and name.endswith(_SOURCE) and name[:-len(_SOURCE)] in rules:
            test = name[:-len(_SOURCE)]
            file = [source for source in rule["srcs"] if source.endswith(".cc")][0]
            tests.setdefault(file, []).append(test)
            headers.setdefault(file, []).extend([source for source in rule["srcs"] if source != file])
            deps.setdefault(file, []).extend([dep for dep in rules[test]["deps"] if dep != ":" + test + _CASES])
    files = sorted(tests.keys())
    count = (len(files) + _FILES - 1) // _FILES  # units, as even as they can be
    for i in range(count):
        members = files[i * len(files) // count:(i + 1) * len(files) // count]
        unit = "unit_%d_test" % (i + 1)
        native.genrule(
            name = unit + "_file",
            srcs = members,
            outs = [unit + ".cc"],
            cmd = "python3 $(location //tools:make-test-unit) $@ $(SRCS)",
            tools = ["//tools:make-test-unit"],
            testonly = True,
            visibility = ["//visibility:private"],
        )
        native.cc_library(
            name = unit,
            srcs = [unit + ".cc"] + sorted({header: None for file in members for header in headers[file]}.keys()),
            deps = sorted({dep: None for file in members for dep in deps[file]}.keys()),
            alwayslink = True,
            testonly = True,
            visibility = ["//visibility:private"],
        )
        for file in members:
            for test in tests[file]:
                native.alias(name = test + _CASES, actual = ":" + unit, testonly = True, visibility = ["//visibility:private"])
