"""Requests made up from the engine's own OpenAPI document, by schemathesis: none may be answered with a 5xx.

python -m tests.engine.fuzz_api [how many, default 5000]
"""

import contextlib
import socket
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable

from pascal_engine.server import create_app
from pascal_engine.server.options import ServerOptions
from tests.engine.harness import open_tiny
from tests.engine.recorded.model import AlphabetWriter

SLOTS, CONTEXT = 2, 128


@contextlib.contextmanager
def engine_url() -> Iterator[str]:
    """A running engine in which everything that can be switched on is on."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        model = Path(folder) / "alphabet.gguf"
        AlphabetWriter(model)
        options = ServerOptions(pooling="mean", slot_save_path=Path(folder), metrics=True, props=True)
        app = create_app(open_tiny(model, SLOTS, CONTEXT), options)
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=3))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def fuzz(url: str, n_requests: int) -> Counter[int]:
    """Counts of the statuses of `n_requests` answers or a little more; the first 5xx is an AssertionError."""
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]
    n_bodies = sum(bool(operation.body) for operation in operations)
    statuses: Counter[int] = Counter()
    for operation in operations:
        for mode in schemathesis.GenerationMode:
            limits = settings(
                max_examples=-(-n_requests // (n_bodies * len(schemathesis.GenerationMode))),
                deadline=None,
                database=None,
                phases=[Phase.generate, Phase.shrink],
                suppress_health_check=list(HealthCheck),
            )

            def ask(case: schemathesis.Case) -> None:
                response = case.call(timeout=60)
                statuses[response.status_code] += 1
                assert response.status_code < 500, f"{response.status_code}\n{case.as_curl_command()}"

            with contextlib.suppress(Unsatisfiable):  # nothing can be wrong about a route without parameters
                seed(1)(limits(given(case=operation.as_strategy(mode))(ask)))()
        print(f"{operation.method.upper()} {operation.path}: {statuses.total()} requests so far", flush=True)
    return statuses


if __name__ == "__main__":
    with engine_url() as url:
        found = fuzz(url, int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
    print(f"{found.total()} requests, none answered with a 5xx: {dict(sorted(found.items()))}")
