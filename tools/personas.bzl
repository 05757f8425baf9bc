"""Tests that must hold in both personas of the devices (WEFT_PERSONA)."""

load(":tests.bzl", "cc_test")

def persona_cc_tests(name, **kwargs):
    """Declares NAME_roce_test and NAME_iwarp_test, cc_tests with the given attributes."""
    for persona in ["roce", "iwarp"]:
        cc_test(
            name = name + "_" + persona + "_test",
            env = {"WEFT_PERSONA": persona},
            **kwargs
        )
