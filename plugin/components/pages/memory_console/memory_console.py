"""The console's page inside the host. Its front end comes with the console; until then it shows what the file holds."""

from __future__ import annotations

from typing import Any

from langbot_plugin.api.definition.components.page import Page, PageResponse

import ltm


class MemoryConsole(Page):
    """Answers the page's calls; the host has asked for the right to manage plugins already."""

    async def handle_api(self, request: Any) -> PageResponse:
        """One endpoint: what the file holds."""
        if request.endpoint != "/summary":
            return PageResponse.fail(f"no endpoint {request.endpoint}")
        try:
            memory = await self.plugin.bridge.open()
            return PageResponse.ok({"path": memory.path, "stats": await self.plugin.bridge.run(memory.stats)})
        except ltm.LtmError as error:
            return PageResponse.fail(str(error))
