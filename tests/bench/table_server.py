"""
scripts/bench --llama-server: llama-server with less memory than its model needs, over HTTP. Its cache is for four long
conversations, and these are short: what is held and not used should leave the device. The user builds the server; the model is made
here (llama_model.py).
"""
import concurrent.futures
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from benchlib import MOVING, environment, gpu_name, hog, host_memory, runtime_path, table
from table_llama import FOLLOW, MACHINE, RESIDENT, make_model, wanted

PORT, CLIENTS, PROMPT, TOKENS, LONG = 18080, 4, 200, 24, 160
LATER = 50  # tokens after which the speed of a long answer counts
SERVER = ("-ngl", "99", "-c", "16384", "-np", str(CLIENTS), "--no-mmap", "--no-warmup", "--cache-ram", "0", "--host", "127.0.0.1", "--port", str(PORT))
STARTS = 120  # seconds
NO_BYTES = [[word, False] for word in range(3, 259)]  # words of single bytes (llama_model.py) are no text together


def ask(client, tokens, length=PROMPT):
    """The answer's numbers, and when each came. Without sampling, so that answers can be compared."""
    prompt = [300 + (client * 7919 + i * 104729) % 31000 for i in range(length)]
    body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "top_k": 1, "seed": 1, "ignore_eos": True, "stream": True,
            "return_tokens": True, "cache_prompt": False, "logit_bias": NO_BYTES}
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}/completion", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    found, times, line = [], [], b""
    with urllib.request.urlopen(request, timeout=120) as answer:
        for line in filter(lambda line: line.startswith(b"data: {"), answer):
            new = json.loads(line[6:]).get("tokens", [])
            found += new
            times += [time.monotonic()] * len(new)
    if len(found) != tokens:
        raise ValueError(f"{len(found)} tokens of {tokens}: {line[:300]}")
    return found, times


def busy(chance, seconds):
    """All clients ask at once, for questions and answers of random length, so long. Returns how many tokens came."""
    until, count = time.monotonic() + seconds, 0
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        while time.monotonic() < until:
            asked = [(chance.randrange(1000), chance.randrange(4, 3 * TOKENS), chance.randrange(16, 8 * PROMPT)) for _ in range(CLIENTS)]
            count += sum(len(tokens) for tokens, _ in pool.map(lambda one: ask(*one), asked))
    return count


def speed(times, first=0):
    """Tokens a second from that one on."""
    times = times[first:]
    return (len(times) - 1) / (times[-1] - times[0]) if len(times) > 1 and times[-1] > times[0] else 0


@contextlib.contextmanager
def serving(program, model, said, variables):
    """A server that is ready, and writes what it says to that file. Ends with the block."""
    with open(said, "wb") as output:
        with subprocess.Popen([program, "-m", str(model), *SERVER], stdout=output, stderr=output, env=variables) as process:
            try:
                wait_until_ready(process, said)
                yield
            finally:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()


def wait_until_ready(process, log):
    until = time.monotonic() + STARTS
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/health", timeout=2) as answer:
                if answer.status == 200:
                    return
        time.sleep(0.2)
    raise RuntimeError(f"the server is not ready: {log.read_text(errors='replace')[-1500:]}")


def measure():
    """Speeds, and the answers by part: one after another, a long one, all at once."""
    alone = [ask(client, TOKENS) for client in range(CLIENTS)]
    long = ask(0, LONG)
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        together = list(pool.map(lambda client: ask(client, TOKENS), range(CLIENTS)))
    begin = min(times[0] for _, times in together)
    whole = (CLIENTS * TOKENS - 1) / (max(times[-1] for _, times in together) - begin)
    return ((statistics.median(speed(times) for _, times in alone), speed(long[1], LATER), whole),
            {part: [answer for answer, _ in asked] for part, asked in (("alone", alone), ("long", [long]), ("together", together))})


def verdict(answers, enough):
    """Of the answers that come all at once, the server makes batches as they come in, and sums depend on the batch. So a few may
    differ with enough memory, too."""
    different = [part for part in enough if answers[part] != enough[part]]
    return "DIFFERENT: " + ", ".join(different) if different else "equal"


def run(program, model, way):
    """(speeds, answers); None, and said why, if there are none."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(os.environ.get("BENCH_KEEP", folder)) / f"server-{way}.jsonl"
        follow = {} if way == RESIDENT else {"SPILL_MOVABLE_FOLLOW": way}
        variables = environment(folder, log, MOVING if follow else None, **MACHINE, **follow,
                                LD_LIBRARY_PATH=os.environ.get("LD_LIBRARY_PATH") or runtime_path())
        try:
            with serving(program, model, pathlib.Path(folder) / "server.txt", variables):
                return measure()
        except (RuntimeError, OSError, ValueError) as error:
            print(f"  {way}: {error}", flush=True)
            return None


def main(words, leave_mib):
    program, gguf_py, _ = wanted(words)
    gpu = gpu_name()
    if not gpu:
        sys.exit("bench: --llama-server needs a GPU")
    head = ("memory", "one client, tokens/s", f"one client from token {LATER} on", f"{CLIENTS} clients, in all", "answers")
    rows, found = [head], {}
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder) / "model.gguf"
        make_model(gguf_py, model)
        print(f"{gpu}; {host_memory()}", flush=True)
        found[RESIDENT] = run(program, model, RESIDENT)
        with hog(leave_mib) as taken:
            print(f"another process holds the rest by plain allocations; {taken.said}", flush=True)
            for way in FOLLOW:
                found[way] = run(program, model, way)
                print(f"  {way}: {found[way] and found[way][0]}", flush=True)
    for way, result in found.items():
        cells = [f"{value:.1f}" for value in result[0]] if result else ["", "", ""]
        rows.append((way, *cells, verdict(result[1], found[RESIDENT][1]) if result and found[RESIDENT] else "none"))
    print()
    table(*rows)
    sys.exit("bench: not all runs have figures" if None in found.values() else 0)
