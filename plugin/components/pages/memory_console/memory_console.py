"""The console's page inside the host: the same front end and the same answers as `ltm serve`, carried by the host's page calls."""

from __future__ import annotations

import asyncio
from typing import Any

import bridge as bridges
from langbot_plugin.api.definition.components.page import Page, PageResponse

import ltm
from ltm_console.api import Console
from ltm_console.language import speaking, translated

ANSWER_SECONDS = 25.0  # the host gives up after 30; what takes longer is a job


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
        bridge = self.plugin.bridge
        body = request.body if isinstance(request.body, dict) else {}
        try:
            memory = await bridge.open()
        except ltm.LtmError as error:
            with speaking(str(body.get("language", ""))):
                return PageResponse.ok({"error": {"kind": type(error).__name__, "message": translated(str(error))}})
        if self._console is None or self._console.memory is not memory:
            options = _Options(bridge, asyncio.get_running_loop())
            self._console = Console(memory, host="langbot", actor="langbot", options=options)
        # Not in the bridge's pool: an option waits for the bridge, and the long way of a page must take no thread from a turn.
        work = asyncio.to_thread(self._console.answer, str(request.endpoint).strip("/"), body)
        try:
            _, data = await asyncio.wait_for(work, ANSWER_SECONDS)
        except asyncio.TimeoutError:
            error = {"kind": "Busy", "message": f"this takes longer than {ANSWER_SECONDS:g} s; it goes on meanwhile"}
            with speaking(str(body.get("language", ""))):
                data = {"error": {**error, "message": translated(error["message"])}}
        return PageResponse.ok(data)
