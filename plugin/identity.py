"""Who speaks where, from the sources of the host that are right in groups too."""

from __future__ import annotations

import asyncio
from typing import Any

from bridge import Who, session_of


async def of_tool(plugin: Any, session: Any, query_id: Any, query_uuid: Any) -> Who:
    """Of a tool call. In a group the session's sender is whoever spoke first, so the speaker is the query's; where there is no
    query (agent runs) the session was made from this very message."""
    kind = getattr(session.launcher_type, "value", session.launcher_type)
    sender, name, bot = "", "", session.bot_uuid or ""
    try:
        api = _query_api(plugin, query_id, query_uuid)
        known = await api.get_query_vars()
        sender, name = _text(known.get("sender_id")), _text(known.get("sender_name"))
        bot = bot or await api.get_bot_uuid() or ""
    except Exception:  # no such query: the host says so with an error of its own
        sender = _text(session.sender_id)
    return Who(bot, str(kind), _text(session.launcher_id), sender, name, _text(query_uuid or query_id))


def _query_api(plugin: Any, query_id: Any, query_uuid: Any) -> Any:
    from langbot_plugin.api.proxies.query_based_api import QueryBasedAPIProxy

    handler = {"plugin_runtime_handler": plugin.plugin_runtime_handler}
    try:
        return QueryBasedAPIProxy(query_id=query_id, query_uuid=query_uuid, **handler)
    except (TypeError, ValueError):  # hosts before 4.11 know no query_uuid
        return QueryBasedAPIProxy(query_id=query_id, **handler)


async def of_context(context: Any, session_name: str = "") -> tuple[Who, dict[str, Any]]:
    """Of an event or a command, with the query's variables."""
    variables, uuid = await asyncio.gather(context.get_query_vars(), context.get_bot_uuid())
    known = dict(variables)
    kind, id = session_of(session_name) if session_name else (_text(known.get("launcher_type")), _text(known.get("launcher_id")))
    bot = _text(uuid)
    sender, name = _text(known.get("sender_id")), _text(known.get("sender_name"))
    query = _text(getattr(context, "query_uuid", None) or getattr(context, "query_id", ""))
    return Who(bot, kind, id, sender, name, query), known


def of_retrieval(settings: dict[str, Any]) -> Who | None:
    """Of a retrieval; None when it is nobody's: a test from the dashboard or another plugin's call."""
    kind, id = session_of(_text(settings.get("session_name")))
    if not id:
        return None
    return Who(_text(settings.get("bot_uuid")), kind, id, _text(settings.get("sender_id")), "")


def _text(value: Any) -> str:
    return "" if value is None else str(getattr(value, "value", value))
