"""The tool by which the model stores an episode."""

from __future__ import annotations

from typing import Any

import identity
from langbot_plugin.api.definition.components.tool.tool import Tool


class Remember(Tool):
    """Stores what the model was told, as who told it."""

    async def call(self, params: dict[str, Any], session: Any, query_id: Any, query_uuid: Any = None) -> dict[str, Any]:
        """Store an episode; errors are answered, not raised."""
        return await self.plugin.bridge.answered(self._store(params, session, query_id, query_uuid))

    async def _store(self, params: dict[str, Any], session: Any, query_id: Any, query_uuid: Any) -> dict[str, Any]:
        bridge = self.plugin.bridge
        names = ("content", "importance", "tags", "supersedes", "event_at", "valid_from", "valid_until", "source_ref", "claim_type")
        given = {name: params[name] for name in names if params.get(name) not in (None, "")}
        content = given.pop("content", "")
        who = await identity.of_tool(self.plugin, session, query_id, query_uuid)
        space = await bridge.space(who, "tool")
        stored = await bridge.run(space.remember, content, **given)
        await bridge.wrote(space)
        said = content.encode("utf-8", "replace").decode()  # a model may send what no text can hold
        return {"result": f"Remembered: {said}", "episode_id": stored.id, "outcome": stored.outcome, "notes": list(stored.notes)}
