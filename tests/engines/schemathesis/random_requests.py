"""Random requests, made by schemathesis from the server's own OpenAPI document, until there were 20,000.

Names of what exists are mixed in (hooks.py), so that requests get past "no such table". The seed is printed; SEED=N
repeats a run.
"""

import json
import os
import re
import secrets
import subprocess
import sys
import urllib.parse
import urllib.request

from steps import close
from tidewater import Server, databases

REQUESTS = 20_000
# What is sent for one operation in one round; rounds go on until there were enough requests.
EXAMPLES = 200
ROUNDS_MAX = 12
CHECKS = "not_a_server_error,status_code_conformance"


def call(server, method, path, body=None, token=None, form=None):
    data = json.dumps(body).encode() if body is not None else urllib.parse.urlencode(form).encode() if form else None
    request = urllib.request.Request(server.catalog_url + path, data, method=method)
    request.add_header("content-type", "application/json" if form is None else "application/x-www-form-urlencoded")
    if token:
        request.add_header("authorization", f"Bearer {token}")
    with urllib.request.urlopen(request) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def prepare(server):
    """A namespace, a table and a view that requests may hit; answers a token."""
    key, secret = server.root_key
    form = {"grant_type": "client_credentials", "client_id": key, "client_secret": secret}
    token = call(server, "POST", "/v1/oauth/tokens", form=form)["access_token"]
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
    for namespace in (["n"], ["m"]):
        call(server, "POST", "/v1/namespaces", {"namespace": namespace, "properties": {}}, token)
    call(server, "POST", "/v1/namespaces/n/tables", {"name": "t", "schema": schema}, token)
    return token


def answered(server):
    """Requests so far, and those that failed on the server."""
    port = server.settings[server.settings.index("--metrics-addr") + 1]
    with urllib.request.urlopen(f"http://{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    counts = [line.rpartition(" ") for line in lines if line.startswith("tidewater_requests_total{") and 'listener="catalog"' in line]
    status = lambda labels: int(re.search(r'status="(\d+)"', labels).group(1))
    total = sum(float(count) for _, _, count in counts)
    failed = sum(float(count) for labels, _, count in counts if status(labels) >= 500)
    return int(total), int(failed)


def attack(database, wanted):
    with Server(database) as server:
        token = prepare(server)
        start, _ = answered(server)
        for number in range(ROUNDS_MAX):
            seed = int(os.environ.get("SEED", 0)) + number or secrets.randbelow(2**32)
            print(f"schemathesis on {database}: --seed {seed}", flush=True)
            # One worker: two threads that parse at once fail in Python before 3.11.5.
            command = [
                "schemathesis", "run", server.catalog_url + "/docs/openapi.json", "--url", server.catalog_url,
                "--header", f"Authorization: Bearer {token}", "--checks", CHECKS, "--seed", str(seed),
                "--max-examples", str(EXAMPLES), "--phases", "coverage,fuzzing", "--workers", "1",
                "--suppress-health-check", "all", "--continue-on-failure", "--no-color",
            ]  # fmt: skip
            environment = {**os.environ, "SCHEMATHESIS_HOOKS": "hooks"}
            outcome = subprocess.run(command, cwd=server.folder, env=environment, capture_output=True, text=True)
            if outcome.returncode != 0:
                # Paths of tens of kilobytes would push everything else out of the log.
                lines = [line if len(line) < 400 else line[:300] + " ..." for line in outcome.stdout.splitlines()]
                print("\n".join(lines)[-20_000:], outcome.stderr[-4_000:], sep="\n", flush=True)
                return 0, 1
            total, failed = answered(server)
            if total - start >= wanted:
                break
        total -= start
        name = f"schemathesis on {database}: {total} requests, {failed} failed on the server"
        passed = total >= wanted and failed == 0
        print(("ok   " if passed else "FAIL ") + name, flush=True)
        return (1, 0) if passed else (0, 1)


if __name__ == "__main__":
    chosen = databases(sys.argv[1:])
    close([attack(database, REQUESTS // len(chosen)) for database in chosen])
