"""The tool by which the model deletes an episode."""

from __future__ import annotations

from typing import Any

import identity
from langbot_plugin.api.definition.components.tool.tool import Tool


class Forget(Tool):
    """Deletes one episode of the chat."""

    async def call(self, params: dict[str, Any], session: Any, query_id: Any, query_uuid: Any = None) -> dict[str, Any]:
        """Delete an episode; what is not there is said not to be."""
        return await self.plugin.bridge.answered(self._delete(params, session, query_id, query_uuid))

    async def _delete(self, params: dict[str, Any], session: Any, query_id: Any, query_uuid: Any) -> dict[str, Any]:
        bridge = self.plugin.bridge
        who = await identity.of_tool(self.plugin, session, query_id, query_uuid)
        space = await bridge.space(who, "tool")
        done = await bridge.run(space.forget, params.get("episode_id") or "")
        return {"result": f"Episode {done.id} was deleted.", "removed_summaries": list(done.removed)}
