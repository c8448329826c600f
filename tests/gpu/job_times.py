"""What jobs tell of their steps, on standard error. For any framework: nothing else is imported."""
import os
import statistics
import sys


def wait_for_turn():
    """Behind the imports, before the first use of the GPU: another job may be measured (scripts/bench --programs)."""
    pipe = os.environ.pop("JOB_TURN", None)
    if pipe:
        with open(pipe, encoding="utf-8") as turn:
            if not turn.readline():
                sys.exit("who measures has ended")


def tell_step(number, milliseconds):
    """As it goes, so that a run that is cut off says how far it came."""
    print(f"step {number} {milliseconds:.2f}", file=sys.stderr, flush=True)


def tell_times(times, peak_mib):
    """`NAME VALUE` lines: ms a step (median), its least and most, and the peak by the framework's own account."""
    print(f"ms {statistics.median(times):.1f}\nleast {min(times):.1f}\nmost {max(times):.1f}\npeak {peak_mib}", file=sys.stderr)
