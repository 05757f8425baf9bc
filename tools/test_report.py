#!/usr/bin/python3
"""test_report.py EVENTS: counts the test cases of one `bazel test` run from its --build_event_json_file.

Prints the name of everything that failed, a target that did not build or does not exist included, and as its last line "PASSED FAILED".
A target without a test.xml (it crashed, or ran out of time) counts as one case. Of one that Bazel tried more than once
(flaky = True) the last attempt counts; those before it are printed.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


def cases(path):
    """(passed, names of failed) of a test.xml; (0, []) when it tells nothing."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return 0, []
    passed, failed = 0, []
    for case in root.iter("testcase"):
        if case.get("status") == "notrun" or case.find("skipped") is not None:
            continue
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(case.get("name", "?"))
        else:
            passed += 1
    return passed, failed


def outcome(result):
    """(passed, names of failed) of a testResult event."""
    xml = [f["uri"] for f in result.get("testActionOutput", []) if f["name"] == "test.xml"]
    good, bad = cases(urllib.parse.urlparse(xml[0]).path) if xml else (0, [])
    if result["status"] in ("PASSED", "FLAKY"):
        return max(good, 1), []
    return good, bad or [result["status"].lower()]


def main():
    passed, failed = 0, 0
    attempts = {}  # of each shard of each run of each test, in their order
    for line in open(sys.argv[1]):
        event = json.loads(line)
        identity = event.get("id", {})
        if "testResult" in identity and "testResult" in event:
            test = identity["testResult"]
            key = (test["label"], test.get("run", 1), test.get("shard", 1))
            attempts.setdefault(key, {})[test.get("attempt", 1)] = outcome(event["testResult"])
        elif "targetCompleted" in identity and not event.get("completed", {}).get("success"):
            failed += 1
            print(f"FAILED  {identity['targetCompleted']['label']}  does not build")
        elif "pattern" in identity and "aborted" in event:
            failed += 1
            print(f"FAILED  {' '.join(identity['pattern']['pattern'])}  names no target")
    for (label, _, _), outcomes in attempts.items():
        *earlier, (good, bad) = (outcomes[number] for number in sorted(outcomes))
        passed += good
        failed += len(bad)
        for name in (name for _, names in earlier for name in names):
            print(f"Tried again  {label}  {name}")
        for name in bad:
            print(f"FAILED  {label}  {name}")
    print(passed, failed)


main()
