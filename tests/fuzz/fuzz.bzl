"""One rule for every fuzzer of the tree."""

def weft_fuzz_test(name, srcs, deps = [], corpus = [], runs = 20000, max_length = 4096, **kwargs):
    """A target that defines LLVMFuzzerTestOneInput.

    With --config=fuzz it is a libFuzzer binary (60 s under `bazel test`; later libFuzzer flags, given with --test_arg, win).
    Otherwise it is a quick test that replays the corpus and then seeded random and mutated inputs, so that every ordinary
    test run exercises the same code: --test_arg=--seed=N --test_arg=--runs=N replay and widen it.

    Args:
      name: the test's name.
      srcs: the sources, one of which defines LLVMFuzzerTestOneInput.
      deps: what it needs.
      corpus: files to start from: interesting inputs, and each input that once crashed.
      runs: how many random inputs the quick test tries.
      max_length: the longest random input in bytes.
      **kwargs: passed to cc_test.
    """
    files = ["$(location %s)" % file for file in corpus]
    native.cc_test(
        name = name,
        srcs = srcs,
        args = select({
            # libFuzzer takes directories, or files to run once and stop: the corpus is given as seed inputs.
            "//tests/fuzz:fuzzing": [
                "-max_total_time=60",
                "-timeout=20",
                "-max_len=%d" % max_length,
            ] + (["-seed_inputs=" + ",".join(files)] if files else []),
            "//conditions:default": [
                "--runs=%d" % runs,
                "--max_length=%d" % max_length,
            ] + files,
        }),
        data = corpus,
        linkopts = select({
            # Bazel links with the C driver, which leaves the C++ half of UBSan's run time out unless told.
            "//tests/fuzz:fuzzing": [
                "-fsanitize=fuzzer",
                "-fsanitize-link-c++-runtime",
            ],
            "//conditions:default": ["-fno-lto"],  # third_party/system.BUILD says why
        }),
        linkstatic = True,
        deps = deps + select({
            "//tests/fuzz:fuzzing": [],
            "//conditions:default": ["//tests/fuzz:driver"],
        }),
        **kwargs
    )
