"""Writes a log of so many records, as a long run on a full device would: long_log.py RECORDS [SEED] >LOG

Sums are kept as it goes, so that the exit line is true: the report has to find it so.
"""
import random
import sys

from loglines import alloc, event, free, start

GIB = 1 << 30
ROOM = 8 * GIB
SIZES = (1 << 20, 2 << 20, 8 << 20, 32 << 20, 200 << 20)


def sums(held):
    return f'{{"device_bytes":{held[0]},"host_bytes":{held[1]},"managed_bytes":0}}'


def main():
    records, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    chance, out = random.Random(seed), sys.stdout.write
    live, now, peak, totals = [], [0, 0], [0, 0], dict.fromkeys(
        ("allocs", "frees", "spills", "ooms", "demotions", "promotions", "demoted_bytes", "promoted_bytes"), 0)
    spilled = seq = 0
    out(start(ROOM, '{"name":"spill.mode","value":"spill","source":"default"}'))
    for n in range(1, records + 1):
        time = f"{n // 2000}.{n % 2000 * 500:06d}"
        roll = chance.random()
        if live and (roll < 0.47 or now[1] > 2 * GIB):
            at = int(chance.random() * len(live))
            live[at], live[-1] = live[-1], live[at]
            number, size, device, host = live.pop()
            now[0] -= device
            now[1] -= host
            totals["frees"] += 1
            out(free(event(time, number, n, 7), "libmodel.so+0x1f", size, number << 20, host > 0))
        elif live and roll < 0.49 and live[-1][2]:
            number, size, device, host = live[-1]
            live[-1] = (number, size, 0, size)
            now[0] -= size
            now[1] += size
            totals["demotions"] += 1
            totals["demoted_bytes"] += size
            out(f'{{"v":1,"kind":"move",{event(time, number, n, 7)},"dev":0,"what":"demote","api":"cudaMalloc",'
                f'"caller":"libmodel.so+0x2f","bytes":{size},"chunks":1,"device_bytes":0,"host_bytes":{size},"reason":"room","us":90}}\n')
        elif roll < 0.4901:
            totals["ooms"] += 1
            out(f'{{"v":1,"kind":"oom","t":{time},"tid":7,"dev":0,"api":"cudaMalloc","caller":"libmodel.so+0x3f","bytes":{16 * GIB},"free":0,'
                f'"total":{ROOM},"live":{sums(now)},"rule":"default","refused_by":"host.limit","tried":[],"holders":[]}}\n')
        else:
            seq += 1
            size = SIZES[int(chance.random() * 5)]
            over = now[0] + size > ROOM
            held = (0, size) if over else (size, 0)
            live.append((seq, size, *held))
            now[0] += held[0]
            now[1] += held[1]
            spilled += held[1]
            totals["allocs"] += 1
            totals["spills"] += over
            out(alloc(event(time, seq, n, 7), f"libmodel.so+{seq % 40:#x}", size, seq << 20, over))
        peak = [max(peak[0], now[0]), max(peak[1], now[1])]
    figures = ",".join(f'"{name}":{value}' for name, value in totals.items())
    out(f'{{"v":1,"kind":"exit","t":{records // 2000 + 1}.000000,"how":"exit",{figures},"live":{sums(now)},"peak":{sums(peak)},'
        f'"spilled":{sums((0, spilled))},"hits":[]}}\n')


main()
