"""The official OpenAI client for JavaScript, unchanged, against a local server. `make sdk-js` installs what it needs;
without it these tests are skipped."""

import json
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from pascal_engine.engine import Engine
from pascal_engine.server import create_app
from tests.engine.speaking import Say, make_say

SCRIPT = Path(__file__).parents[1] / "sdk_js" / "chat.cjs"
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Köln"}}\n</tool_call>'
CALLED = {"content": "I look.", "name": "weather", "arguments": {"city": "Köln"}}
Ask = Callable[[str], Any]


def _has_client() -> bool:
    command = ["node", "-e", "require('openai')"]
    return (
        shutil.which("node") is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


pytestmark = pytest.mark.skipif(not _has_client(), reason="needs node and the package openai: make sdk-js")


@pytest.fixture(scope="module")
def address(large: Engine) -> Iterator[str]:
    """Where the engine listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(uvicorn.Config(create_app(large), log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        server.should_exit = True
        thread.join()


@pytest.fixture
def ask(address: str) -> Ask:
    """ask(scenario): what the script prints."""

    def run(scenario: str) -> Any:  # noqa: ANN401
        command = ["node", str(SCRIPT), address, scenario]
        environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
        done = subprocess.run(command, capture_output=True, check=True, timeout=60, env=environment)
        return json.loads(done.stdout)

    return run


@pytest.fixture
def say(large: Engine, monkeypatch: pytest.MonkeyPatch) -> Say:
    return make_say(large, monkeypatch)


def test_chat_and_stream(ask: Ask, say: Say) -> None:
    say("Good day to you.")
    assert ask("chat") == {"content": "Good day to you.", "reason": "stop"}
    assert ask("stream") == {"content": "Good day to you.", "counted": True}


@pytest.mark.parametrize("scenario", ["tools", "toolstream"])
def test_calls_of_functions(scenario: str, ask: Ask, say: Say) -> None:
    say(f"I look.\n{CALL}")
    assert ask(scenario) == CALLED


def test_the_helper_that_runs_functions(ask: Ask, say: Say) -> None:
    say(CALL)
    assert ask("runner") == {"cities": ["Köln"], "roles": ["user", "assistant", "tool"]}


def test_a_schema(ask: Ask) -> None:
    answer = ask("schema")
    assert set(answer) == {"colour", "clear"}
    assert answer["colour"] in ("blue", "grey")


def test_probabilities_and_errors(ask: Ask) -> None:
    assert ask("logprobs") == [2, 2, 2, 2]
    assert ask("error") == {"status": 400, "kind": "BadRequestError"}
