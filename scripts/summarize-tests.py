#!/usr/bin/env python3
"""Adds up the JUnit reports of a folder and closes with 'N passed, N failed, N skipped'.

    summarize-tests.py FOLDER               exit code 1 where a test failed or none ran
    summarize-tests.py --crashed NAME CODE  prints the report of a program that left none
    summarize-tests.py --ran NAME CODE      the same, of one that passed if its exit code is 0
"""

import pathlib
import sys
import xml.etree.ElementTree as ET


def report_of(name, title, code, failed):
    """The report of a program that writes none itself."""
    suite = ET.Element("testsuite", name=name, tests="1", failures=str(int(failed)))
    case = ET.SubElement(suite, "testcase", classname=name, name=title)
    if failed:
        ET.SubElement(case, "failure", message=f"exit code {code}")
    return ET.tostring(suite, encoding="unicode")


def outcome(case):
    """Verdict and reason of one test case."""
    for tag in ("failure", "error"):
        found = case.find(tag)
        if found is not None:
            return "failed", found.get("message") or (found.text or "").strip()
    found = case.find("skipped")
    if found is not None:
        return "skipped", found.get("message") or (found.text or "").strip()
    if case.get("result") in ("skipped", "suppressed") or case.get("status") == "notrun":
        return "skipped", "disabled"
    return "passed", ""


def main():
    if sys.argv[1] == "--crashed":
        print(report_of(sys.argv[2], "runs to its end", sys.argv[3], failed=True))
        return 0
    if sys.argv[1] == "--ran":
        print(report_of(sys.argv[2], "finds nothing", sys.argv[3], failed=sys.argv[3] != "0"))
        return 0

    count = {"passed": 0, "failed": 0, "skipped": 0}
    for report in sorted(pathlib.Path(sys.argv[1]).glob("*.xml")):
        for case in ET.parse(report).iter("testcase"):
            verdict, reason = outcome(case)
            count[verdict] += 1
            if verdict != "passed":
                first = reason.splitlines()[0] if reason else "no reason given"
                print(f"{verdict}: {report.stem}: {case.get('classname')}.{case.get('name')}: {first}")
    print(f"{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] or not count["passed"] else 0


sys.exit(main())
