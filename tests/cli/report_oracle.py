"""Makes logs as libspill writes them, and adds them up in another way than the command does.

    report_oracle.py make SEED EVENTS [HOW] >LOG    a run of several threads, whose lines are not in the order of events
        HOW: killed; each: lines in order; all: the same run with sums of what is small; threads: the same, not in order
    report_oracle.py check LOG REPORT.json                         every figure of the report follows from the log
"""
import json
import random
import sys

GIB = 1 << 30
ROOM = 8 * GIB
KINDS = ("device", "host", "managed")
CALLERS = [f"libmodel.so+{n:#x}" for n in range(0x10, 0x1c)]


def sums(bytes_by_kind):
    return {f"{kind}_bytes": bytes_by_kind.get(kind, 0) for kind in KINDS}


class Run:
    """Decides as a full device would have it, and keeps the totals as ledger.c does."""

    def __init__(self, seed):
        self.random, self.chance = random.Random(seed), random.Random(seed)
        self.how, self.events = "exit", 0
        self.sites, self.level = {}, {0: 0, 1: 0, "all": 0}
        self.silent, self.high = dict.fromkeys(self.level, False), dict(self.level)
        self.lines, self.live = [], {}
        self.seq = self.order = 0
        self.now = {kind: 0 for kind in KINDS}
        self.peak, self.spilled = dict(self.now), dict(self.now)
        self.counts = dict.fromkeys(("allocs", "frees", "spills", "ooms", "demotions", "promotions", "demoted_bytes",
                                     "promoted_bytes"), 0)
        self.away, self.begin, self.told = dict.fromkeys(("now", "peak_bytes", "wanted_bytes", "moves_us"), 0), 0, 0

    # log.level = all, as ledger_totals.c and site_sums.c do it. An allocation that fits and is small has no line.

    def event(self, device, change, summed):
        """Before the line of an event of the device; `change` of its memory. What the line has to tell; None of a summed one."""
        both = (device, "all")
        held = {}
        if not summed:
            if any(self.silent[one] for one in both):
                held = {"device_bytes": self.level[device] + change, "device_peak": self.high[device],
                        "all_bytes": self.level["all"] + change, "all_peak": self.high["all"]}
            self.order += 1
        for one in both:
            self.level[one] += change
            self.silent[one] = summed
            self.high[one] = max(self.high[one], self.level[one]) if summed else self.level[one]
        return {"order": self.order} | ({"held": held} if held else {})

    def sum_up(self, site, count, size, seq):
        """An allocation (1) or a free (-1) of a call site."""
        one = self.sites.setdefault(site, {"live": 0, "peak": 0, "alloc": [0, 0], "free": [0, 0], "largest": {}})
        one["live"] += count * size
        one["peak"] = max(one["peak"], one["live"])
        told = one["alloc" if count > 0 else "free"]
        told[0] += 1
        told[1] += size
        if count > 0 and size > one["largest"].get("bytes", 0):
            one["largest"] = {"seq": seq, "bytes": size}

    def write_sum(self, site, at=None):
        device, api, caller, rule = site
        one = self.sites[site]
        told = {name: {"count": one[name][0]} | sums({"device": one[name][1]}) for name in ("alloc", "free") if one[name][0]}
        if not told:
            return
        self.line("sum", at, **self.event(device, 0, False), dev=device, api=api, caller=caller, rule=rule, **told,
                  live_bytes=one["live"], peak_bytes=one["peak"], **({"largest": one["largest"]} if one["largest"] else {}))
        self.sites[site] = {"live": one["live"], "peak": one["live"], "alloc": [0, 0], "free": [0, 0], "largest": {}}

    def write_sums(self):
        for site in self.sites:
            self.write_sum(site)

    def line(self, kind, at=None, **members):
        """`at`: the thread's line may be written later than what it tells."""
        event = {"v": 1, "kind": kind, "t": round(self.events * 1e-4, 6), "tid": 4711} | members
        self.lines.append((self.events if at is None else at, event))

    def later(self):
        delay = self.random.choice((0, 0, 0, 0, 2, 7, 40))
        return self.events + (0 if self.how in ("each", "all") else delay)

    def add(self, held, sign=1):
        for kind, size in held.items():
            self.now[kind] += sign * size
            self.peak[kind] = max(self.peak[kind], self.now[kind])

    def count_away(self, held, sign=1):
        """After `add`, for memory that libspill placed."""
        self.away["now"] += sign * (held.get("host", 0) + held.get("managed", 0))
        self.raise_away()

    def raise_away(self):
        self.away["peak_bytes"] = max(self.away["peak_bytes"], self.away["now"])
        self.away["wanted_bytes"] = max(self.away["wanted_bytes"], self.now["device"] + self.away["now"])

    def alloc(self):
        size = self.random.choice((1 << 20, 3 << 20, 64 << 20, 700 << 20, 2 * GIB))
        device, api, caller = self.random.randrange(2), "cudaMalloc", self.random.choice(CALLERS)
        left = ROOM - self.now["device"]
        common = {"dev": device, "api": api, "caller": caller, "bytes": size}
        roll = self.random.random()
        if roll < 0.02 or (left < size and roll < 0.1):
            self.counts["ooms"] += 1
            self.write_sums()
            refused = self.random.choice(("host.limit", "device.limit", "oom.honest_first"))
            self.line("oom", **common, free=left, total=ROOM, live=sums(self.now), rule="default", refused_by=refused,
                      tried=[{"place": "device", "error": "CUDA_ERROR_OUT_OF_MEMORY"}], holders=[])
            return
        self.seq += 1
        reason, place, rule = "fits", self.random.choice(("device", "movable")), "default"
        held = {"device": size}
        if roll > 0.95:
            reason, place, held = "asked", self.random.choice(("host", "managed")), {}
            held[place] = size
        elif left < size:
            reason, place = self.random.choice(("oom", "limit", "rule")), self.random.choice(("split", "host", "managed"))
            rule = "cold" if reason == "rule" else "default"
            held = {place: size} if place != "split" else {"device": max(left, 0), "host": size - max(left, 0)}
            self.counts["spills"] += 1
            for kind in ("host", "managed"):
                self.spilled[kind] += held.get(kind, 0)
        self.counts["allocs"] += 1
        self.add(held)
        self.count_away(held if reason != "asked" else {})
        summed = self.how in ("all", "threads") and place == "device" and reason == "fits" and size < 700 << 20
        self.live[self.seq] = {"held": held, "ours": reason != "asked", "place": place, "dev": device, "bytes": size,
                               "site": (device, api, caller, rule) if summed else None}
        told = {name: value for name, value in sums(held).items() if value}
        later, event = self.later(), self.event(device, held.get("device", 0), summed)
        if summed:
            self.sum_up((device, api, caller, rule), 1, size, self.seq)
            return
        self.line("alloc", later, seq=self.seq, **event, **common, ptr=hex(self.seq << 32), place=place, **told,
                  reason=reason, rule=rule, us=5)

    def free(self):
        seq = self.random.choice(list(self.live))
        gone = self.live.pop(seq)
        self.counts["frees"] += 1
        self.add(gone["held"], -1)
        self.count_away(gone["held"] if gone["ours"] else {}, -1)
        later, event = self.later(), self.event(gone["dev"], -gone["held"].get("device", 0), gone["site"] is not None)
        if gone["site"]:
            self.sum_up(gone["site"], -1, gone["bytes"], seq)
            return
        self.line("free", later, seq=seq, **event, dev=gone["dev"], api="cudaFree", caller=CALLERS[0],
                  bytes=gone["bytes"], ptr=hex(seq << 32), place=gone["place"], reason="free", us=1)

    def move(self):
        movable = [seq for seq, one in self.live.items() if one["place"] == "movable"]
        if not movable:
            return
        seq = self.random.choice(movable)
        held = self.live[seq]["held"]
        there, from_there, what = ("host", "device", "demote") if held.get("device") else ("device", "host", "promote")
        size = max(1, held[from_there] // 2)
        self.add(held, -1)
        self.away["now"] -= held.get("host", 0)
        before = held.get("device", 0)
        self.live[seq]["held"] = held = {**held, from_there: held[from_there] - size, there: held.get(there, 0) + size}
        self.add(held)
        self.count_away(held)
        self.counts[f"{what[:-1]}ions"] += 1
        self.counts[f"{what}d_bytes"] += size
        dev = self.live[seq]["dev"]
        self.line("move", self.later(), seq=seq, **self.event(dev, held.get("device", 0) - before, False), what=what, dev=dev, bytes=size, chunks=1,
                  device_bytes=held.get("device", 0), host_bytes=held.get("host", 0), reason="room", us=self.took())

    def took(self):
        """Of the move itself, or of the one before, which has several lines: that time counts once."""
        now = self.events * 100
        if self.begin and self.random.random() < 0.4:
            took = now - self.begin
        else:
            took, self.begin, self.told = 9, now - 9, 0
        self.away["moves_us"] += took - self.told
        self.told = took
        return took

    def gap(self):
        """A free that the driver refused: its order is told by no line."""
        self.order += 1

    def write(self, events, how, rank):
        start = {"v": 1, "kind": "start", "t": 0, "time": "2026-11-21T03:50:51.123456Z", "boot": "b", "host": "node7", "pid": 4711,
                 "ppid": 1, "program": "model", "exe": "/model", "rank": {"RANK": rank}, "version": "0.1.0", "backend": "cuda",
                 "driver": 13000, "devices": [{"dev": n, "name": "SIM", "uuid": f"GPU-{n}", "bytes": ROOM} for n in range(2)],
                 "policy": [{"name": "spill.mode", "value": "spill", "source": "default"},
                            {"name": "device 1.limit", "value": "75%", "source": "environment"}], "args": ["model"]}
        print(json.dumps(start))
        self.how = how
        for _ in range(events):
            self.events += 1
            if self.sites and self.chance.random() < 0.1:
                self.write_sum(self.chance.choice(list(self.sites)), None if how == "all" else self.events + self.chance.choice((0, 3, 30)))
            roll = self.random.random()
            if not self.live or roll < 0.45:
                self.alloc()
            elif roll < 0.8:
                self.free()
            elif roll < 0.99:
                self.move()
            else:
                self.gap()
        self.write_sums()
        for _, line in sorted(self.lines, key=lambda line: line[0]):
            print(json.dumps(line))
        if how != "killed":
            print(json.dumps({"v": 1, "kind": "exit", "t": round(self.events * 1e-4, 6), "how": "exit", **self.counts,
                              "live": sums(self.now), "peak": sums(self.peak), "spilled": sums(self.spilled),
                              "away": {name: size for name, size in self.away.items() if name != "now"}, "hits": []}))


def held(record):
    return {kind: record.get(f"{kind}_bytes", 0) for kind in KINDS}


def rows(events, name):
    """A table: by one member of the allocations, from scratch for each of its values."""
    table = {}
    for value in {event.get(name) for event in events if event["kind"] == "alloc"}:
        mine = {event["seq"]: event for event in events if event["kind"] == "alloc" and event.get(name) == value}
        live = peak = away_peak = 0
        away = {}
        for event in events:
            if event.get("seq") in mine and mine[event["seq"]]["reason"] != "asked":
                away[event["seq"]] = 0 if event["kind"] == "free" else held(event)["host"] + held(event)["managed"]
                away_peak = max(away_peak, sum(away.values()))
            if event["kind"] in ("alloc", "free") and event["seq"] in mine:
                live += event["bytes"] if event["kind"] == "alloc" else -event["bytes"]
                peak = max(peak, live)
        spilled = sum(sum(held(event).values()) - held(event)["device"] for event in mine.values()
                      if event["reason"] in ("oom", "limit", "rule"))
        table[value] = {"name": value, "allocs": len(mine), "bytes": sum(event["bytes"] for event in mine.values()),
                        "peak": peak, "live": live, "spilled": spilled, "away": away_peak}
    return table


def device(events, number):
    """What a device held: the sum over the allocations after each event, and the moment of peak demand."""
    where, pinned, peak, fit = {}, set(), dict.fromkeys(KINDS, 0), {"wanted": 0}
    now = dict(peak)
    for event in events:
        if event.get("dev") != number:
            continue
        if event["kind"] in ("alloc", "move"):
            where[event["seq"]] = held(event)
            if event["kind"] == "alloc" and event["reason"] == "asked" and event["place"] == "host":
                pinned.add(event["seq"])
        elif event["kind"] == "free":
            where.pop(event["seq"])
        now = {kind: sum(one[kind] for one in where.values()) for kind in KINDS}
        peak = {kind: max(peak[kind], now[kind]) for kind in KINDS}
        host = now["host"] - sum(where[seq]["host"] for seq in pinned if seq in where)
        refused = event["bytes"] if event["kind"] == "oom" and event["refused_by"] != "oom.honest_first" else 0
        wanted = now["device"] + host + now["managed"] + refused
        if wanted > fit["wanted"]:
            fit = {"wanted": wanted, "device_bytes": now["device"], "host_bytes": host, "managed_bytes": now["managed"],
                   "refused": refused}
    return {"live": sums(now), "peak": sums(peak), "fit": fit}


def short(events, number):
    """The events at which the device lacked memory, which is not so where a limit or a rule decided."""
    why = {"alloc": ("oom",), "move": ("oom", "room", "reserve", "exchange"), "oom": ("host.limit",)}
    return [event for event in events if event.get("dev") == number and event.get("what") != "promote"
            and event.get("refused_by" if event["kind"] == "oom" else "reason") in why.get(event["kind"], ())]


def in_order(records):
    """Events by order; an out of memory comes after the highest that stood before it."""
    keyed, highest = [], 0
    for at, record in enumerate(records):
        highest = max(highest, record.get("order", 0))
        keyed.append(((record.get("order", highest), "order" not in record, at), record))
    return [record for _, record in sorted(keyed, key=lambda pair: pair[0])]


def check(log, report):
    records = [json.loads(line) for line in open(log)]
    (run,) = json.load(open(report))["runs"]
    events = in_order([record for record in records if record["kind"] in ("alloc", "free", "move", "oom")])
    if records[-1]["kind"] == "exit":
        assert run["totals"] == {name: records[-1][name] for name in run["totals"]}, run["totals"]
        assert run["exited"] and run["how"] == "exit"
    assert run["differences"] == [] and run["late_events"] == 0 and run["unknown_frees"] == 0
    for view, name in (("by_caller", "caller"), ("by_place", "place"), ("by_rule", "rule"), ("by_reason", "reason")):
        assert {row["name"]: row for row in run[view]} == rows(events, name), view
        assert [row["peak"] for row in run[view]] == sorted((row["peak"] for row in run[view]), reverse=True)
    for row in run["devices"]:
        mine = device(events, row["dev"])
        usable = min(ROOM - GIB, ROOM if row["dev"] == 0 else ROOM * 3 // 4)
        mine["fit"] |= {"usable": usable, "free": max(0, ROOM - mine["fit"]["device_bytes"]), "surplus": usable - mine["fit"]["wanted"]}
        lacked = short(events, row["dev"])
        told = any(event["kind"] == "oom" and not event["live"]["device_bytes"] for event in lacked)
        assert (row["shortage"] or {"count": 0})["count"] == len(lacked) and (row["shortage"] or {"told": told})["told"] == told
        if lacked and not told and mine["fit"]["surplus"] >= 0:
            mine["fit"]["surplus"] = None
        assert {name: row["fit"][name] for name in mine["fit"]} == mine["fit"] and row["live"] == mine["live"] and row["peak"] == mine["peak"], (row, mine)
    sizes = sorted((event["bytes"] for event in events if event["kind"] == "alloc"), reverse=True)
    assert [large["bytes"] for large in run["largest"]] == sizes[:10]
    freed = {event["seq"] for event in events if event["kind"] == "free"}
    assert all(large["freed"] == (large["seq"] in freed) for large in run["largest"])
    mine, callers = {}, {event["seq"]: event.get("caller") for event in events if event["kind"] == "alloc"}
    for event in events:
        if event.get("what") == "demote":
            row = mine.setdefault(event["seq"], {"seq": event["seq"], "moves": 0, "moved": 0, "caller": callers[event["seq"]]})
            row["moves"] += 1
            row["moved"] += event["bytes"]
        if event["kind"] == "move" and event["seq"] in mine:
            mine[event["seq"]]["host_bytes"] = event.get("host_bytes", 0)
        elif event["kind"] == "free" and event["seq"] in mine:
            mine[event["seq"]]["host_bytes"] = 0
    assert [row["moved"] for row in run["moved"]] == sorted((row["moved"] for row in mine.values()), reverse=True)[:10]
    assert all({name: row[name] for name in mine[row["seq"]]} == mine[row["seq"]] for row in run["moved"])
    for table, what in (("demoted", "demote"), ("promoted", "promote")):
        mine = [event["bytes"] for event in events if event.get("what") == what]
        assert sum(row["bytes"] for row in run[table]) == sum(mine) and sum(row["moves"] for row in run[table]) == len(mine)


if __name__ == "__main__":
    if sys.argv[1] == "check":
        check(*sys.argv[2:])
    else:
        Run(sys.argv[2]).write(int(sys.argv[3]), *(sys.argv[4:] + ["exit", "0"][len(sys.argv) - 4:]))
