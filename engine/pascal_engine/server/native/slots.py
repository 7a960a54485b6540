"""/slots/{id_slot}: a slot's state saved to a file, restored from one, erased."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from pascal_engine.engine import Engine
from pascal_engine.errors import SlotBusyError, StateFileError
from pascal_engine.server.errors import ApiError
from pascal_engine.server.native.schemas import SlotBody

T = TypeVar("T")

_FORBIDDEN = frozenset('/\\:*?"<>|\u2215\u2216\uff0e\ufeff\ufffd')
_MOST_BYTES = 200
"""Of a file's name: file systems take 255, and a file in the making has a longer name."""


class SlotActions:
    """Files lie in `folder`; without one there are no actions. The engine's thread only copies the state: disks are
    waited for beside it."""

    def __init__(self, engine: Engine, folder: Path | None) -> None:
        self._engine, self._folder = engine, folder

    async def act(self, request: Request, body: SlotBody) -> Response:
        """Does what the query's `action` says."""
        if self._folder is None:
            raise ApiError(501, "slots cannot be saved; start the server with --slot-save-path FOLDER")
        slot, action = _number(request.path_params["id_slot"]), request.query_params.get("action")
        begun = time.perf_counter()
        try:
            match action:
                case "save":
                    answer = await self._save(slot, file_in(self._folder, body.filename))
                case "restore":
                    answer = await self._restore(slot, file_in(self._folder, body.filename))
                case "erase":
                    return JSONResponse({"id_slot": slot, "n_erased": await self._erase(slot)})
                case _:
                    raise ApiError(400, "give ?action=save, ?action=restore or ?action=erase")
        except SlotBusyError as error:
            raise ApiError(409, str(error)) from error
        except StateFileError as error:
            raise ApiError(400, str(error)) from error
        milliseconds = 1000 * (time.perf_counter() - begun)
        return JSONResponse({"id_slot": slot, **answer, "timings": {f"{action}_ms": milliseconds}})

    async def _save(self, slot: int, path: Path) -> dict[str, Any]:
        states = self._engine.slot_states
        state = await self._call(lambda: states.capture(slot))
        await asyncio.to_thread(states.write, state, path)
        return {"filename": path.name, "n_saved": len(state.tokens), "n_written": path.stat().st_size}

    async def _restore(self, slot: int, path: Path) -> dict[str, Any]:
        states = self._engine.slot_states
        state = await asyncio.to_thread(states.read, path)
        await self._call(lambda: states.fill(slot, state))
        return {"filename": path.name, "n_restored": len(state.tokens), "n_read": path.stat().st_size}

    async def _erase(self, slot: int) -> int:
        return await self._call(lambda: self._engine.slot_states.erase(slot))

    async def _call(self, action: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self._engine.worker.call(action))


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ApiError(400, f"'{text}' is no number of a slot")
    return int(text)


def file_in(folder: Path, name: str) -> Path:
    """The file of that name. Whatever is not the plain name of a visible file in `folder` is a 400."""
    plain = name.isprintable() and not _FORBIDDEN & set(name) and ".." not in name
    edges = name[:1] not in ("", " ", ".") and name[-1:] not in (" ", ".")
    if not (plain and edges and len(name.encode("utf-8", "replace")) <= _MOST_BYTES):
        raise ApiError(400, "'filename' must be the plain name of a file, without folders")
    return folder / name
