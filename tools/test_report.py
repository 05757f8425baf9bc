#!/usr/bin/python3
"""test_report.py EVENTS: counts the test cases of one `bazel test` run from its --build_event_json_file.

Prints everything that failed with the beginning and the end of what it and its programs said, a target that did not build or does not exist included, and
as its last line "PASSED FAILED".
A target without a test.xml (it crashed, or ran out of time) counts as one case. Of one that Bazel tried more than once
(flaky = True) the last attempt counts; those before it are printed.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


FIRST_LINES, LAST_LINES, LINE_LENGTH = 4, 12, 160  # of what a failed case said, and each of the programs that it ran
PROGRAM = "--- "  # begins what a program said, as tests/stock/stock.py writes it


def abridged(text):
    parts = [[]]
    for line in text.splitlines():
        if line.startswith(PROGRAM):
            parts.append([])
        if line.strip():
            parts[-1].append(line[:LINE_LENGTH])
    for part in parts:
        if len(part) > FIRST_LINES + LAST_LINES:
            part[FIRST_LINES:-LAST_LINES] = ["..."]
    return [line for part in parts for line in part]


def cases(path):
    """(passed, [(name, lines that say why)] of failed) of a test.xml; (0, []) when it tells nothing."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return 0, []
    passed, failed = 0, []
    for case in root.iter("testcase"):
        if case.get("status") == "notrun" or case.find("skipped") is not None:
            continue
        reasons = case.findall("failure") + case.findall("error")
        if reasons:
            name = ".".join(filter(None, (case.get("classname"), case.get("name", "?"))))
            failed.append((name, abridged("\n".join(reason.text or reason.get("message") or "" for reason in reasons))))
        else:
            passed += 1
    return passed, failed


def end_of(path):
    try:
        with open(path, errors="replace") as file:
            return abridged(file.read())
    except OSError:
        return []


def outcome(result):
    """(passed, [(name, lines)] of failed) of a testResult event."""
    files = {f["name"]: urllib.parse.urlparse(f["uri"]).path for f in result.get("testActionOutput", []) if "uri" in f}
    good, bad = cases(files["test.xml"]) if "test.xml" in files else (0, [])
    if result["status"] in ("PASSED", "FLAKY"):
        return max(good, 1), []
    log = end_of(files.get("test.log", ""))
    bad = [(name, lines if len(lines) > 1 else lines + log) for name, lines in bad]  # Bazel's own test.xml has one line
    return good, bad or [(result["status"].lower(), log)]


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
        said = [("Tried again", *case) for _, failures in earlier for case in failures] + [("FAILED", *case) for case in bad]
        for what, name, lines in said:
            print(f"{what}  {label}  {name}", *lines, sep="\n    ")
    print(passed, failed)


main()
