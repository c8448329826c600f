#!/usr/bin/env python3
"""The pages of `spill report --html` in a real browser: browser.py BUILD FOLDER

They load without a complaint and without the network, their charts have the points and the peaks that `spill report --json`
has, and they do what they say when one drags, points, types or clicks. Pictures go to FOLDER, to be looked at. Without chromium
it says so, and that is no failure.
"""
import json
import pathlib
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here))
import chromium  # noqa: E402

top = here.parent.parent
build, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
CHARTS = "[...document.querySelectorAll('.chart:not(.all)')]"
FUNCTION = "<img src=x onerror=x>alloc"
HOSTILE = "</script><script>document.title='X'</script><img src=x onerror=document.title='X'> ${x} \u2028"


def written(name, make):
    log = folder / name
    with log.open("w", encoding="utf-8") as out:
        make(out)
    return log


def made(script, *arguments):
    return subprocess.run([sys.executable, str(top / script), *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def changed(lines, **members):
    start, rest = lines.split("\n", 1)
    return json.dumps(json.loads(start) | members) + "\n" + rest


def with_function(run):
    """The file of a caller is there, and has a symbol."""
    made("tests/cli/make_elf.py", folder / "function.so", "build_id=0011", f"functions={FUNCTION}:0x1a00:0x40")
    file = {"v": 1, "kind": "file", "t": 0, "name": "libggml-cuda.so", "path": str(folder / "function.so"), "build_id": "0011"}
    return run.replace("\n", "\n" + json.dumps(file) + "\n", 1)


def logs():
    run = (top / "tests/cli/data/run.jsonl").read_text(encoding="utf-8")
    several = [changed(made("tests/cli/report_oracle.py", "make", rank, 600), rank={"RANK": str(rank)}, pid=4711 + rank) for rank in range(4)]
    return {
        "run": [written("run.jsonl", lambda out: out.write(run))],
        "hostile": [written("hostile.jsonl", lambda out: out.write(changed(
            run.replace("libggml-cuda.so", json.dumps(HOSTILE)[1:-1]), program=HOSTILE, args=[HOSTILE], host=HOSTILE)))],
        "function": [written("function.jsonl", lambda out: out.write(with_function(run)))],
        "dropped": [top / "tests/cli/data/dropped.jsonl"],
        "begun": [written("begun.jsonl", lambda out: out.write(run.split("\n", 1)[0] + "\n"))],
        "ranks": [written(f"rank{at}.jsonl", lambda out, text=text: out.write(text)) for at, text in enumerate(several)],
        "million": [written("million.jsonl", lambda out: subprocess.run(
            [sys.executable, str(top / "tests/bench/long_log.py"), "1000000"], check=True, stdout=out))],
    }


def reported(name, paths):
    """The page, and what --json says of the same logs."""
    page = folder / (name + ".html")
    command = [str(build / "spill"), "report"]
    done = subprocess.run([*command, "--html", str(page), *map(str, paths)], capture_output=True, text=True, check=False)
    if "built without the library" in done.stderr:
        print("browser: skipped: spill was built without libjs-dygraphs")
        sys.exit(0)
    assert page.exists(), done.stderr
    return page, json.loads(subprocess.run([*command, "--json", *map(str, paths)], capture_output=True, text=True, check=False).stdout)


class Pages(unittest.TestCase):
    def opened(self, name, width=1280, height=900, **look):
        browser.look(width, height, **look)
        browser.open(pages[name][0])
        self.assertEqual(browser.complaints, [])
        self.assertEqual(browser.requests, ["file://" + str(pages[name][0])])
        self.assertGreater(float(browser.value("document.documentElement.dataset.ready")), 0)
        self.assertIsNone(browser.value("document.documentElement.dataset.errors"))
        return pages[name][1]["runs"][0]

    def charts_are_of(self, run):
        charts = browser.value(CHARTS + ".map((card) => ({...card.dataset}))")
        devices = [device for device in run["devices"] if any(device["peak"].values()) or device["dev"] is not None]
        for chart, device in zip(charts, sorted(devices, key=lambda device: (device["dev"] is None, device["dev"])), strict=True):
            self.assertEqual(chart["rows"], chart["points"])
            for kind in ("device", "host", "managed"):
                self.assertEqual(int(chart.get(kind, 0)), device["peak"][kind + "_bytes"])
        counts = {kind: sum(int(chart[kind]) for chart in charts) for kind in ("spill", "demote", "promote", "oom", "honest")}
        totals = run["totals"]
        self.assertEqual(counts, {"spill": totals["spills"], "demote": totals["demotions"], "promote": totals["promotions"],
                                  "oom": totals["ooms"] - run["honest"], "honest": run["honest"]})
        return charts

    def test_charts_have_the_points_and_the_peaks(self):
        for name in ("run", "ranks", "million"):
            with self.subTest(name):
                charts = self.charts_are_of(self.opened(name))
                self.assertGreater(min(int(chart["points"]) for chart in charts), 2)

    def test_every_run_can_be_chosen(self):
        self.opened("ranks")
        for at, run in enumerate(pages["ranks"][1]["runs"]):
            browser.value(f"(() => {{ const s = document.getElementById('run'); s.value = {at}; s.dispatchEvent(new Event('change')); }})()")
            self.assertEqual(browser.value("document.documentElement.dataset.run"), str(at))
            self.charts_are_of(run)
        browser.value("document.querySelector('tr.pick').click()")
        self.assertEqual(browser.value("document.documentElement.dataset.run"), "0")
        self.assertEqual(browser.complaints, [])

    def test_a_rank_that_stands_out_can_be_chosen(self):
        told = [pages["ranks"][1]["ranks"][name] for name in ("fullest", "held_up_most", "longest", "first_oom")]
        self.assertEqual({each["run"] for each in told}, {0, 1})
        for each in told:
            self.opened("ranks")
            browser.value(f"[...document.querySelectorAll('#all-runs button')].find((one) => one.textContent === {json.dumps(each['text'])}).click()")
            self.assertEqual(browser.value("document.documentElement.dataset.run"), str(each["run"]))
        self.assertEqual(browser.complaints, [])

    def test_the_sum_of_runs_is_at_least_each(self):
        self.opened("ranks")
        total = browser.value("({...document.querySelector('.chart.all').dataset})")
        for kind in ("device", "host", "managed"):
            peaks = [run["totals"]["peak"][kind + "_bytes"] for run in pages["ranks"][1]["runs"]]
            self.assertGreaterEqual(int(total[kind]), max(peaks))
            self.assertLessEqual(int(total[kind]), pages["ranks"][1]["sum"]["peak"][kind + "_bytes"] * 2)

    def test_what_is_hostile_stays_text(self):
        self.opened("hostile")
        self.assertTrue(browser.value("document.title").startswith("spill report: </script>"))
        self.assertIn(HOSTILE.split(" ")[0], browser.value("document.getElementById('title').textContent"))
        self.assertEqual(browser.value("document.scripts.length"), 3)
        self.assertEqual(browser.value("document.querySelectorAll('img:not(.dygraph-rangesel-zoomhandle):not([src^=\"data:\"])').length"), 0)

    def test_a_caller_has_its_function_as_text(self):
        self.opened("function")
        named = f"libggml-cuda.so+0x1a2b ({FUNCTION})"
        self.assertIn(named, browser.value("document.getElementById('verdict').innerText"))
        self.assertGreater(browser.value(f"[...document.querySelectorAll('td')].filter((cell) => cell.textContent === {named!r}).length"), 3)
        self.assertEqual(browser.value("document.querySelectorAll('img[src=x]').length"), 0)

    def test_a_run_without_memory_and_one_with_lines_left_out(self):
        self.opened("begun")
        self.assertIn("No memory was asked for", browser.value("document.body.innerText"))
        self.opened("dropped")
        self.assertIn("log.max left out", browser.value("document.getElementById('verdict').innerText"))

    def place(self, selector, at=0):
        return browser.value(f"(() => {{ const e = document.querySelectorAll({selector!r})[{at}]; e.scrollIntoView({{block: 'center'}}); "
                             "const b = e.getBoundingClientRect(); return {x: b.x, y: b.y, w: b.width, h: b.height}; })()")

    def ranges(self):
        return browser.value("[...document.querySelectorAll('.chart:not(.all)')].map((card) => card.chart.graph.xAxisRange())")

    def test_zoom_pan_and_back(self):
        self.opened("ranks")
        whole = self.ranges()
        self.assertGreater(len(whole), 1)
        box = self.place(".chart:not(.all) .graph")
        browser.drag(box["x"] + box["w"] * 0.3, box["x"] + box["w"] * 0.5, box["y"] + box["h"] * 0.4)
        near = self.ranges()
        self.assertLess(near[0][1] - near[0][0], 0.3 * (whole[0][1] - whole[0][0]))
        self.assertEqual(near, [near[0]] * len(near))
        browser.value("document.querySelector('.chart:not(.all) .plot').focus()")
        browser.key("ArrowRight")
        right = self.ranges()
        self.assertGreater(right[0][0], near[0][0])
        self.assertAlmostEqual(right[0][1] - right[0][0], near[0][1] - near[0][0])
        browser.key("-")
        self.assertGreater(self.ranges()[0][1] - self.ranges()[0][0], right[0][1] - right[0][0])
        browser.key("0")
        self.assertEqual(self.ranges(), whole)
        self.assertEqual(browser.complaints, [])

    def test_pointing_reads_the_values(self):
        run = self.opened("run")
        box = self.place(".graph")
        at = browser.value("document.querySelector('.chart').chart.graph.toDomXCoord(13)")
        browser.mouse("Moved", box["x"] + at, box["y"] + 60)
        words = browser.value("document.querySelector('.legend').innerText")
        self.assertRegex(words, r"at 13\.\d+ s")
        self.assertIn("5.00 GiB" if run["devices"][0]["peak"]["device_bytes"] == 5 << 30 else "6.00 GiB", words)
        self.assertIn("2.04 GiB", words)
        strip = self.place(".strip")
        spill = browser.value("document.querySelector('.chart').chart.graph.toDomXCoord(12.345678)")
        browser.mouse("Moved", strip["x"] + spill, strip["y"] + 9)
        self.assertIn("spill: 2.04 GiB", browser.value("document.getElementById('tip').innerText"))
        browser.mouse("Moved", 2, 2)
        self.assertTrue(browser.value("document.getElementById('tip').hidden"))

    def test_within_a_bucket_the_least_and_the_most_are_told(self):
        self.opened("million")
        bucket = browser.value("""(() => { const card = document.querySelector('.chart'), graph = card.chart.graph;
            graph.updateOptions({dateWindow: [100, 102]}); card.scrollIntoView({block: 'center'}); return card.querySelector('.graph').getBoundingClientRect().x
            + graph.toDomXCoord(101); })()""")
        box = self.place(".graph")
        browser.mouse("Moved", bucket, box["y"] + 60)
        self.assertRegex(browser.value("document.querySelector('.legend').innerText"), r"on the card\s+[\d.]+ GiB to [78]\.[\d]+ GiB")

    def test_a_million_marks_are_few_signs(self):
        self.opened("million")
        self.assertLess(browser.value("document.querySelectorAll('*').length"), 4000)
        pans = browser.value("(() => { const g = document.querySelector('.chart').chart.graph, [a, b] = g.xAxisRange(), start = performance.now(); "
                             "for (let i = 0; i < 30; i++) g.updateOptions({dateWindow: [a + i, (a + b) / 2 + i]}); return (performance.now() - start) / 30; })()")
        print(f"browser: the page of 1,000,000 records is ready after {browser.value('document.documentElement.dataset.ready')} ms, "
              f"and drawn anew in {pans:.1f} ms while it is moved")

    def test_tables_are_sorted_by_a_click(self):
        self.opened("ranks")
        cells = "[...document.querySelectorAll('[aria-label=\"By caller\"] tbody tr')].map((row) => Number(row.cells[5].textContent))"
        head = "document.querySelectorAll('[aria-label=\"By caller\"] thead button')[5]"
        before = browser.value(cells)
        browser.value(head + ".click()")
        self.assertEqual(browser.value(cells), sorted(before, reverse=True))
        self.assertEqual(browser.value(head + ".parentNode.getAttribute('aria-sort')"), "descending")
        self.assertNotEqual(before, sorted(before, reverse=True))
        browser.value(head + ".click()")
        self.assertEqual(browser.value(cells), sorted(before))
        self.assertEqual(browser.value(head + ".parentNode.getAttribute('aria-sort')"), "ascending")

    def test_light_and_dark(self):
        ground = "getComputedStyle(document.body).backgroundColor"
        self.opened("run", dark=True)
        self.assertEqual(browser.value(ground), "rgb(15, 19, 24)")
        curve = "document.querySelector('.chart').chart.graph.getColors()[0]"
        dark = browser.value(curve)
        browser.value("document.getElementById('theme').click()")
        self.assertEqual(browser.value(ground), "rgb(255, 255, 255)")
        self.assertNotEqual(browser.value(curve), dark)
        self.opened("run")
        self.assertEqual(browser.value(ground), "rgb(255, 255, 255)")

    def test_a_phone_has_no_sideways_scrolling(self):
        for name in pages:
            self.opened(name, width=375, height=800, scale=2, phone=True)
            self.assertLessEqual(browser.value("document.documentElement.scrollWidth"), 375, name)

    def test_on_a_phone_a_name_stays_beside_the_figures_that_matter(self):
        self.opened("ranks", width=390, height=844, scale=2, phone=True)
        ends = "[...document.querySelectorAll('[aria-label=\"{}\"] tbody tr:first-child td')].map((cell) => cell.getBoundingClientRect().right)"
        for table in ("By caller", "4 runs"):  # a name, and two figures
            self.assertLessEqual(browser.value(ends.format(table))[2], 390, table)
        box = "document.querySelector('[aria-label=\"By caller\"]')"
        browser.value(f"{box}.scrollLeft = 200")
        self.assertGreater(browser.value(f"{box}.scrollLeft"), 0)
        left = browser.value(f"[{box}, {box}.querySelector('td')].map((each) => each.getBoundingClientRect().left)")
        self.assertLess(abs(left[0] - left[1]), 2, "it is still there")

    def test_the_headline_is_the_story(self):
        peak, rest = self.opened("run")["story"]["size"].split("; ", 1)
        self.assertEqual(browser.value("document.querySelector('#verdict .headline').innerText"), "1 out of memory; " + peak)
        self.assertIn(rest[1:], browser.value("document.querySelector('#verdict .lead').innerText"))
        self.assertIn("Refused by: ", browser.value("document.querySelector('#verdict .problem').innerText"))

    def test_everything_has_a_name(self):
        self.opened("ranks")
        self.assertEqual(browser.value("document.querySelectorAll('h1').length"), 1)
        nameless = "[...document.querySelectorAll('button, select, [role=group], [role=region], [role=img]')].filter((e) => !(e.getAttribute('aria-label') || e.textContent).trim() && !e.labels?.length).length"
        self.assertEqual(browser.value(nameless), 0)

    def test_pictures(self):
        for name, width, look in (("run", 1280, {}), ("run", 1280, {"dark": True}), ("ranks", 1280, {}), ("million", 1280, {"dark": True}),
                                  ("ranks", 390, {"phone": True}), ("dropped", 1280, {})):
            self.opened(name, width=width, height=900, **look)
            browser.screenshot(folder / f"{name}-{width}{'-dark' if look.get('dark') else ''}.png")
        self.opened("run")
        browser.call("Emulation.setEmulatedMedia", media="print")
        browser.screenshot(folder / "run-print.png")


if not chromium.find():
    print("browser: skipped: no chromium here")
    sys.exit(0)
folder.mkdir(parents=True, exist_ok=True)
pages = {name: reported(name, paths) for name, paths in logs().items()}
browser = chromium.Browser()
try:
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=1)
finally:
    browser.close()
