"""What a page of `spill report --html` holds, against `spill report --json` of the same logs: page_check.py PAGE REPORT.json

It is whole in itself (nothing is fetched; only its own two scripts may run), its figures are those of --json, and its curves
have the report's peaks and ends, its marks the report's counts.
"""
import base64
import hashlib
import html.parser
import json
import re
import sys

VIEWS = ("by_caller", "by_place", "by_rule", "by_reason")
KINDS = ("device", "host", "managed")
FETCHING = {"src", "srcset", "action", "formaction", "poster", "background", "srcdoc", "ping"}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.scripts, self.policy, self.tags, self.at = [], "", [], None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        assert not FETCHING & set(named), (tag, named)
        assert not any(name.startswith("on") for name in named), (tag, named)
        assert named.get("href", "#").startswith(("#", "data:,")), named
        self.tags.append(tag)
        if tag == "script":
            self.at = (named.get("type"), [])
            self.scripts.append(self.at)
        if named.get("http-equiv") == "Content-Security-Policy":
            self.policy = named["content"]

    def handle_endtag(self, tag):
        self.at = None if tag == "script" else self.at

    def handle_data(self, data):
        if self.at:
            self.at[1].append(data)


def check_frame(page):
    """Three scripts: the data, which is none, and two whose hashes the page's policy names, and no other."""
    kinds = [kind for kind, _ in page.scripts]
    assert kinds == ["application/json", None, None], kinds
    allowed = ["'sha256-" + base64.b64encode(hashlib.sha256("".join(text).encode()).digest()).decode() + "'"
               for kind, text in page.scripts if kind is None]
    assert page.policy.startswith("default-src 'none'; script-src " + " ".join(allowed) + "; "), page.policy
    assert "connect-src" not in page.policy and "http" not in page.policy
    assert page.tags.count("html") == page.tags.count("body") == page.tags.count("main") == 1
    assert not {"img", "iframe", "object", "embed", "svg", "base"} & set(page.tags)


def shown(value):
    """With a ? in place of what a page does not show: control characters, and what turns the direction of text."""
    if isinstance(value, str):
        return re.sub("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", "?", value)
    if isinstance(value, dict):
        return {name: shown(item) for name, item in value.items()}
    return [shown(item) for item in value] if isinstance(value, list) else value


def check_figures(data, report):
    for at, run in enumerate(report["runs"]):
        for view in VIEWS:
            told = data["runs"][at][view]
            assert told == run[view][:len(told)] and len(told) >= min(20, len(run[view])), view
            assert data["stories"][at]["rows"][view] == len(run[view])
            run[view] = told
    for name, value in report.items():
        assert data[name] == value, name


def check_lane(lane, device):
    assert len(lane["after"]) == len(lane["lasts"]) <= 2048
    for kind in KINDS:
        most, last = lane[kind]["most"], lane[kind]["last"]
        assert len(most) == len(last) == len(lane[kind]["least"]) == len(lane["after"])
        assert max(most, default=0) == device["peak"][kind + "_bytes"], (kind, max(most), device)
        assert (most[-1] - last[-1] if most else 0) == device["live"][kind + "_bytes"], kind


def check_marks(lanes, run, names):
    sums = {kind: [sum(mark[i] for lane in lanes for mark in lane["marks"][kind]) for i in (1, 2)]
            for kind in ("spill", "demote", "promote", "oom", "honest")}
    totals = run["totals"]
    assert sums["spill"] == [totals["spills"], totals["spilled"]["host_bytes"] + totals["spilled"]["managed_bytes"]], sums
    assert sums["demote"] == [totals["demotions"], totals["demoted_bytes"]]
    assert sums["promote"] == [totals["promotions"], totals["promoted_bytes"]]
    assert sums["honest"][0] == run["honest"]
    assert sums["oom"][0] + sums["honest"][0] == totals["ooms"]
    for kind, moves in ("demote", run["demoted"]), ("promote", run["promoted"]):
        reasons = {names[mark[6] - 1] if mark[6] else None for lane in lanes for mark in lane["marks"][kind]}
        assert reasons <= {row["name"] for row in moves}, (reasons, moves)


def check_story(story, run, names):
    ends = {lane["dev"]: sum(lane["after"]) + sum(lane["lasts"]) for lane in story["lanes"]}
    devices = {device["dev"]: device for device in run["devices"]}
    none = {"peak": dict.fromkeys((kind + "_bytes" for kind in KINDS), 0)} | {"live": dict.fromkeys((kind + "_bytes" for kind in KINDS), 0)}
    assert all(end <= round(run["ended"] * 1e6) for end in ends.values()), (ends, run["ended"])
    for dev, device in devices.items():
        assert dev in ends or device["peak"] == none["peak"], dev
    for lane in story["lanes"]:
        check_lane(lane, devices.get(lane["dev"], none))
    if "left_out_since" not in story:
        check_marks(story["lanes"], run, names)


def main():
    text = open(sys.argv[1], encoding="utf-8").read()
    page = Page(text)
    check_frame(page)
    written = "".join(page.scripts[0][1])
    assert not set("<>&\u2028\u2029") & set(written)
    data, report = json.loads(written), shown(json.load(open(sys.argv[2], encoding="utf-8")))
    check_figures(data, report)
    for story, run in zip(data["stories"], report["runs"], strict=True):
        check_story(story, run, data["names"])


main()
