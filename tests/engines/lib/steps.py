"""Runs named steps in order and prints one line each, then the count."""

import sys
import time
import traceback


def run(title, steps):
    """Runs (name, function) pairs. After a failure the rest is not run: later steps stand on earlier ones.

    Prints `ok` or `FAIL` a step; answers (passed, failed).
    """
    passed = 0
    for name, step in steps:
        started = time.monotonic()
        try:
            step()
        except Exception as error:
            print(f"FAIL {title}: {name}: {type(error).__name__}: {str(error)[:2000]}", flush=True)
            traceback.print_exc(file=sys.stdout)
            print(f"{title}: not run: {len(steps) - passed - 1}", flush=True)
            return passed, 1
        passed += 1
        print(f"ok   {title}: {name} ({time.monotonic() - started:.1f} s)", flush=True)
    return passed, 0


def close(results):
    """Prints the closing line for all (passed, failed) results and exits with the verdict."""
    passed = sum(result[0] for result in results)
    failed = sum(result[1] for result in results)
    print(f"{passed} passed, {failed} failed", flush=True)
    sys.exit(1 if failed or not passed else 0)


def same(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def eventually(check, deadline_s=60):
    """Repeats a check until it holds: for work the server does in the background."""
    deadline = time.monotonic() + deadline_s
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
