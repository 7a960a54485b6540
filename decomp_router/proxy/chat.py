"""POST /v1/chat/completions: fans out when the decision says so, and passes everything else through."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from decomp_router.execute.fanout import Fanout
from decomp_router.execute.upstream import Upstream
from decomp_router.proxy.call import Call
from decomp_router.proxy.client import Client, ClientGone
from decomp_router.proxy.delivery import Delivery
from decomp_router.proxy.judge import Judge, Verdict
from decomp_router.proxy.load import Load
from decomp_router.proxy.passthrough import PassThrough
from decomp_router.proxy.records import Record, Records

Clock = Callable[[], float]


@dataclass(frozen=True)
class ChatCompletions:
    """An ASGI app for the one route that may fan out."""

    upstream: Upstream
    judge: Judge
    load: Load
    linear: PassThrough
    delivery: Delivery
    records: Records
    clock: Clock = time.perf_counter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reads the body once; the client's leaving cancels whatever runs for it."""
        client = Client(scope, receive)
        try:
            raw = await client.body()
        except ClientGone:
            return
        await client.while_present(self._recorded(Call(scope, raw, send), raw))

    async def _recorded(self, call: Call, raw: bytes) -> None:
        record, begun = Record(time.time()), self.clock()
        self.records.add(record)
        try:
            await self._answer(call, raw, record)
        except BaseException as error:
            record.outcome = "cancelled" if not isinstance(error, Exception) else "failed"
            raise
        finally:
            record.seconds = self.clock() - begun

    async def _answer(self, call: Call, raw: bytes, record: Record) -> None:
        verdict = await self.judge.decide(raw, call.headers)
        record.decided(verdict.decision)
        record.width = verdict.width
        with self.load.busy(verdict.width):
            if verdict.decision.mode == "fanout":
                await self._fan_out(verdict, call, record)
            else:
                await self.linear.forward(call)
                record.outcome = "done"

    async def _fan_out(self, verdict: Verdict, call: Call, record: Record) -> None:
        plan = verdict.decision.plan
        assert plan is not None, "a decision to fan out has a plan"
        fanout = Fanout(self.upstream, call.unencoded(), verdict.body, plan, verdict.width, self.clock)
        record.branches = list(fanout.timings.values())
        await self.delivery.deliver(fanout, verdict.body, call, record)
