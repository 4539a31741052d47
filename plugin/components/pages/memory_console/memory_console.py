"""The console's page inside the host: the same front end and the same answers as `ltm serve`, carried by the host's page calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import bridge as bridges
from langbot_plugin.api.definition.components.page import Page, PageResponse

import ltm
from ltm_console.api import Console
from ltm_console.language import say, speaking, translated

log = logging.getLogger("ltm.plugin")
ANSWER_SECONDS = 25  # the host gives up after 30; what takes longer is a job


class _Options:
    """The plugin's own tunables; those of the engine are settings of the file and shown there."""

    def __init__(self, bridge: bridges.Bridge, loop: asyncio.AbstractEventLoop) -> None:
        self._bridge, self._loop = bridge, loop

    def shown(self) -> dict[str, dict[str, Any]]:
        """Each with its value and bounds."""
        kinds = {bool: "boolean", int: "integer", float: "number", str: "text"}
        return {
            name: {
                "value": self._bridge.options[name],
                "default": option.default,
                "least": option.least,
                "most": option.most,
                "type": kinds[type(option.default)],
                "choices": list(option.choices),
                "words": translated(option.words),
            }
            for name, option in bridges.OPTIONS.items()
            if not option.engine
        }

    def change(self, name: str, value: Any) -> Any:
        """Set one, from a worker thread. Raises ltm.LtmError."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return asyncio.run_coroutine_threadsafe(self._bridge.configure(name, text), self._loop).result(ANSWER_SECONDS)


class MemoryConsole(Page):
    """Answers the page. The host has asked for the right to manage plugins already, and does not say who asks."""

    def __init__(self) -> None:
        super().__init__()
        self._console: Console | None = None

    async def handle_api(self, request: Any) -> PageResponse:
        """One call of the page; errors are answers too, since the host shows its own words for what is raised or refused."""
        body = request.body if isinstance(request.body, dict) else {}
        with speaking(str(body.get("language", ""))):
            try:
                return PageResponse.ok(await self._in_time(self._answer(str(request.endpoint).strip("/"), body)))
            except ltm.LtmError as error:
                return _refused(type(error).__name__, translated(str(error)))
            except Exception:
                log.exception("the page was not answered")
                return _refused("Internal", say("This did not work; the log says why."))

    @staticmethod
    async def _in_time(answer: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
        try:
            return await asyncio.wait_for(answer, ANSWER_SECONDS)
        except asyncio.TimeoutError:
            raise ltm.Busy(f"this takes longer than {ANSWER_SECONDS} s; it goes on meanwhile") from None

    async def _answer(self, endpoint: str, body: dict[str, Any]) -> dict[str, Any]:
        bridge = self.plugin.bridge
        memory = await bridge.open()
        if self._console is None or self._console.memory is not memory:
            options = _Options(bridge, asyncio.get_running_loop())
            self._console = Console(memory, host="langbot", actor="langbot", options=options)
        # Not in the bridge's pool: an option waits for the bridge, and what a page takes long over must keep no tool waiting.
        _, data = await asyncio.to_thread(self._console.answer, endpoint, body)
        return data


def _refused(kind: str, words: str) -> PageResponse:
    return PageResponse.ok({"error": {"kind": kind, "message": words}})
