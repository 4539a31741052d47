"""The tool by which the model looks things up."""

from __future__ import annotations

from typing import Any

import identity
from langbot_plugin.api.definition.components.tool.tool import Tool

import ltm

MOST = 20


class RecallMemory(Tool):
    """Answers with profiles and the episodes that bear on a question."""

    async def call(self, params: dict[str, Any], session: Any, query_id: Any, query_uuid: Any = None) -> dict[str, Any]:
        """Search the chat's memory; errors are answered, not raised."""
        return await self.plugin.bridge.answered(self._look(params, session, query_id, query_uuid))

    async def _look(self, params: dict[str, Any], session: Any, query_id: Any, query_uuid: Any) -> dict[str, Any]:
        bridge = self.plugin.bridge
        who = await identity.of_tool(self.plugin, session, query_id, query_uuid)
        space = await bridge.space(who, "tool")
        return await bridge.run(self._answer, space, params)  # type: ignore[no-any-return]

    def _answer(self, space: ltm.Space, params: dict[str, Any]) -> dict[str, Any]:
        names = ("speaker_id", "speaker_name", "source", "importance_min")
        given = {name: params[name] for name in names if params.get(name) not in (None, "")}
        given |= {ours: params[name] for ours, name in (("after", "time_after"), ("before", "time_before")) if params.get(name)}
        where = ltm.Filter(statuses=[params.get("status") or "active"], **given)
        top_k = params.get("top_k") or 5
        if isinstance(top_k, bool) or not isinstance(top_k, int) or not 1 <= top_k <= MOST:
            raise ltm.InvalidInput(f"top_k must be 1 to {MOST}, not {top_k!r}")
        query = params.get("query") or ""
        found = space.recall(query, limit=top_k, where=where, weights=self.plugin.bridge.weights())
        profiles = {"session_profile": space.profiles.get("session").text()}
        profiles["speaker_profile"] = space.profiles.get("speaker").text() if space.speaker else ""
        episodes = [{**hit.episode.to_json(), "score": round(hit.score, 4)} for hit in found.hits]
        return {**profiles, "episodes": episodes, "mode": found.mode, "notes": list(found.truncated)}
