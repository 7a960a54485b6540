"""What the HTTP layer costs while four answers are streamed: `python bench/http_overhead.py`.

One engine serves two arms in turn, each first every other time: requests handed to its scheduler in this process, and
the same requests sent to its server, whose streams a process of its own reads. Both times the engine itself measures
how fast it decodes, so that what counts is the time that the server takes away from it. That needs a quiet machine; on
a busy one look at `server`: the processor time of the server's thread for each token, and what share of a core that is
at the speed without HTTP. Writes docs/results/http_overhead.json.

Without `--model` the file is `pascal-engine synth --like qwen35moe-1b`, made in .cache when it is not there.
"""

from __future__ import annotations

import argparse
import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue
from statistics import median

import numpy as np
import uvicorn
from machine import machine
from rich.console import Console
from rich.progress import track

from pascal_engine.engine import Engine, EngineOptions
from pascal_engine.schedule.sequence import Event, Failed, Finished
from pascal_engine.server import create_app
from pascal_engine.server.native.schemas import NativeCompletionBody
from pascal_engine.server.timings import timings
from pascal_engine.synth import SHAPES, write_model

SHAPE = "qwen35moe-1b"
MODEL = Path(f".cache/{SHAPE}.gguf")
PROMPT, DECODED, PARALLEL = 64, 64, 4
BAR = 0.03
"""Of the speed without HTTP, the most that may be lost."""

Bodies = list[dict[str, object]]


def bodies(n_vocab: int, seed: int) -> Bodies:
    """Requests with random prompts; nothing is reused, and nothing ends early."""
    rng = np.random.default_rng(seed)
    prompts = rng.integers(n_vocab, size=(PARALLEL, PROMPT)).tolist()
    fixed = {"n_predict": DECODED, "temperature": 0, "ignore_eos": True, "cache_prompt": False, "stream": True}
    return [{"prompt": prompt, **fixed} for prompt in prompts]


@dataclass(frozen=True)
class Arms:
    """The two ways to the engine; each gives tokens a second, all sequences together."""

    engine: Engine
    port: int
    server_clock: int

    def server_seconds(self) -> float:
        """Processor time of the server's thread so far."""
        return time.clock_gettime(self.server_clock)

    def direct(self, asked: Bodies) -> float:
        events: Queue[Event] = Queue()
        for body in map(NativeCompletionBody.model_validate, asked):
            (prompt,) = body.prompts()
            tokens = [token for token in prompt if isinstance(token, int)]
            self.engine.worker.submit(body.request(self.engine, tokens), events.put)
        speeds: list[float] = []
        while len(speeds) < len(asked):
            event = events.get()
            assert not isinstance(event, Failed), event
            if isinstance(event, Finished):
                speeds.append(timings(event.usage)["predicted_per_second"])
        return sum(speeds)

    def http(self, asked: Bodies) -> float:
        command = [sys.executable, __file__, "--read", str(self.port)]
        answer = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True)
        return float(answer.stdout)


def read(port: int) -> None:
    """The client: sends the bodies on standard input at once, prints the sum of the speeds that the answers tell."""
    asked: Bodies = json.load(sys.stdin)
    with ThreadPoolExecutor(len(asked)) as pool:
        print(sum(pool.map(lambda body: _read_one(port, body), asked)))


def _read_one(port: int, body: dict[str, object]) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/completion", json.dumps(body))
    lines = [line for line in connection.getresponse() if line.startswith(b"data: ")]
    assert len(lines) == DECODED + 1, lines[-1]
    return float(json.loads(lines[-1].removeprefix(b"data: "))["timings"]["predicted_per_second"])


def serve(engine: Engine) -> Arms:
    """Starts the server beside the caller."""
    config = uvicorn.Config(create_app(engine), port=0, log_level="warning", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    assert thread.ident is not None
    port = server.servers[0].sockets[0].getsockname()[1]
    return Arms(engine, port, time.pthread_getcpuclockid(thread.ident))


def measure(engine: Engine, n_rounds: int) -> list[dict[str, float]]:
    """Tokens a second of both arms in each round, and microseconds of the server for each token, after one round for
    nothing."""
    arms = serve(engine)
    ways: dict[str, Callable[[Bodies], float]] = {"direct": arms.direct, "http": arms.http}
    rounds = []
    for number in track(range(n_rounds + 1), "rounds", console=Console(stderr=True)):
        asked = bodies(engine.tokenizer.n_vocab, number)
        before = arms.server_seconds()
        speeds = {name: ways[name](asked) for name in sorted(ways, reverse=bool(number % 2))}
        speeds["server_us"] = 1e6 * (arms.server_seconds() - before) / (PARALLEL * DECODED)
        rounds.append(speeds)
    return rounds[1:]


def summary(rounds: list[dict[str, float]]) -> dict[str, object]:
    """Median and spread of both arms, and of the share of its speed that each round lost."""
    lost = [1 - speeds["http"] / speeds["direct"] for speeds in rounds]
    arms = {name: _spread([speeds[name] for speeds in rounds]) for name in ("direct", "http")}
    share = [speeds["server_us"] * speeds["direct"] / 1e6 for speeds in rounds]
    server = {"us_per_token": _spread([speeds["server_us"] for speeds in rounds]), "share_of_a_core": _spread(share)}
    return {**arms, "overhead": _spread(lost), "bar": BAR, "server": server}


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": round(median(values), 4), "min": round(min(values), 4), "max": round(max(values), 4)}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--out", type=Path, default=Path("docs/results/http_overhead.json"))
    parser.add_argument("--read", type=int, metavar="PORT", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read is not None:
        return read(arguments.read)
    if arguments.model == MODEL and not MODEL.exists():
        MODEL.parent.mkdir(exist_ok=True)
        write_model(MODEL, SHAPE, SHAPES[SHAPE], "Q4_K_M")
    n_ctx = PARALLEL * (PROMPT + DECODED + 1)
    engine = Engine.open(arguments.model, EngineOptions(n_ctx, PARALLEL, cache_bytes=0, threads=arguments.threads))
    rounds = measure(engine, arguments.rounds)
    result = {
        "machine": machine(),
        "model": arguments.model.name,
        "threads": arguments.threads,
        "tokens": {"prompt": PROMPT, "decoded": DECODED, "parallel": PARALLEL},
        "tokens_per_second": summary(rounds),
        "rounds": rounds,
    }
    arguments.out.write_text(json.dumps(result, indent=1) + "\n")
    Console().print(summary(rounds))
    return None


if __name__ == "__main__":
    main()
