"""The tool by which the model deletes an episode."""

from __future__ import annotations

from typing import Any

import identity
from langbot_plugin.api.definition.components.tool.tool import Tool

import ltm


class Forget(Tool):
    """Deletes one episode of the chat."""

    async def call(self, params: dict[str, Any], session: Any, query_id: Any, query_uuid: Any = None) -> dict[str, Any]:
        """Delete an episode; what is not there is said not to be."""
        bridge = self.plugin.bridge
        try:
            who = await identity.of_tool(self.plugin, session, query_id, query_uuid)
            space = await bridge.space(who, "tool")
            done = await bridge.run(space.forget, params.get("episode_id") or "")
        except ltm.LtmError as error:
            return {"error": f"Error: {error}"}
        return {"result": f"Episode {done.id} was deleted.", "removed_summaries": list(done.removed)}
