"""The tool by which the model keeps lasting facts."""

from __future__ import annotations

from typing import Any

import identity
from langbot_plugin.api.definition.components.tool.tool import Tool


class UpdateProfile(Tool):
    """Sets, adds or removes a fact of the chat's or the speaker's profile."""

    async def call(self, params: dict[str, Any], session: Any, query_id: Any, query_uuid: Any = None) -> dict[str, Any]:
        """Change a profile; errors are answered, not raised."""
        return await self.plugin.bridge.answered(self._change(params, session, query_id, query_uuid))

    async def _change(self, params: dict[str, Any], session: Any, query_id: Any, query_uuid: Any) -> dict[str, Any]:
        bridge = self.plugin.bridge
        subject = params.get("scope") or ("session" if params.get("field") == "notes" else "speaker")
        options = {name: params[name] for name in ("fact_key", "previous_value") if params.get(name)}
        who = await identity.of_tool(self.plugin, session, query_id, query_uuid)
        space = await bridge.space(who, "tool")
        field, action, value = (params.get(name) or "" for name in ("field", "action", "value"))
        done = await bridge.run(space.profiles.update, field, action, value, subject=subject, **options)
        return {"result": f"{subject} profile {done.outcome}", "profile": done.profile.text()}
