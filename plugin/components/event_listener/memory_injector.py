"""Before a turn: what memory knows goes into the prompt. After it: what the user said is looked through for memories."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from typing import Any

import bridge as bridges
import identity
from langbot_plugin.api.definition.components.common.event_listener import EventListener
from langbot_plugin.api.entities import events
from langbot_plugin.api.entities.builtin.provider.message import Message

import ltm

log = logging.getLogger("ltm.plugin")
TURNS = 256  # turns under way whose message is kept for their end
COMMANDS = ("!", "！")
GUIDE = (
    "You have a long-term memory. Use recall_memory when earlier conversations may matter, remember for events, plans and"
    " decisions, update_profile for lasting facts, and neither for small talk or secrets."
)


class MemoryInjector(EventListener):
    """No exception leaves a handler: the host would drop the user's turn."""

    def __init__(self) -> None:
        super().__init__()
        self._turns: OrderedDict[str, tuple[bridges.Who, str]] = OrderedDict()
        self.handler(events.PromptPreProcessing)(self.before)
        self.handler(events.NormalMessageResponded)(self.after)

    async def before(self, context: Any) -> None:
        """Inject, within a time that the turn can wait."""
        bridge, started = self.plugin.bridge, time.perf_counter()
        try:
            spent = await asyncio.wait_for(self._inject(context), bridges.TURN_SECONDS)
            if spent is not None:
                bridge.timings.append((time.perf_counter() - started, spent))
                bridge.trouble("turn", "")
        except asyncio.TimeoutError:
            bridge.trouble("turn", f"memory took longer than {bridges.TURN_SECONDS:g} s, and the turn went on without it")
        except ltm.LtmError as error:
            bridge.trouble("turn", str(error))
        except Exception as error:
            log.exception("memory was not injected")
            bridge.trouble("turn", f"{type(error).__name__}: {error}")

    async def _inject(self, context: Any) -> float | None:
        """Seconds that the vector took; None when memory is not asked for in this turn."""
        bridge, event = self.plugin.bridge, context.event
        who, known = await identity.of_context(context, event.session_name)
        text = str(known.get("user_message_text") or "")
        attached = known.get("_knowledge_base_uuids")
        if text.lstrip().startswith(COMMANDS):
            return None
        kb = await bridge.kb_id()
        if not kb or not isinstance(attached, list) or kb not in attached:
            return None
        self._turns[who.query_id] = (who, text)
        while len(self._turns) > TURNS:
            self._turns.popitem(last=False)
        space = await bridge.space(who, "listener")
        (made, spent), _ = await asyncio.gather(
            bridge.inject(space, text, bridge.options["auto_recall_top_k"]),
            self._suppress_naive_retrieval(context, [each for each in attached if each != kb]),
        )
        await self._set(context, "_ltm_context", dict(made.context))
        if made.text:
            bridge.note_injected(who, text)
            # The system prompt reaches the model in every host version; the list of messages does not.
            event.default_prompt.append(Message(role="system", content=f"{GUIDE}\n\n{made.text}"))
        return float(spent)

    async def _suppress_naive_retrieval(self, context: Any, rest: list[str]) -> None:
        """Or the runner would put the same memories into the prompt a second time, without a frame."""
        await self._set(context, "_knowledge_base_uuids", rest)

    @staticmethod
    async def _set(context: Any, name: str, value: Any) -> None:
        try:
            await context.set_query_var(name, value)
        except Exception as error:  # whatever the host refuses, the turn goes on
            log.warning("the host did not take %s: %s", name, error)

    async def after(self, context: Any) -> None:
        """Look for memories in what the user said; once, however often a streamed answer is told."""
        try:
            query = str(getattr(context, "query_uuid", None) or getattr(context, "query_id", ""))
            turn = self._turns.pop(query, None)
            if turn is not None:
                self.plugin.bridge.forget_injected(*turn)
                self.plugin.bridge.background(self._extract(*turn))
        except Exception:
            log.exception("the end of a turn was not looked at")

    async def _extract(self, who: bridges.Who, text: str) -> None:
        bridge = self.plugin.bridge
        try:
            if not (await bridge.settings())["candidate_extraction_enabled"]:
                return
            space = await bridge.space(who, "listener")
            uuid = bridge.options["candidate_model_uuid"]
            model = bridges.HostModel(self.plugin, asyncio.get_running_loop(), uuid) if uuid else None
            try:
                found = await bridge.run_later(space.candidates.extract, text, model=model)
            except ltm.ModelError as error:
                bridge.trouble("candidates", f"the model that selects candidates failed, rules are used: {error}")
                found = await bridge.run_later(space.candidates.extract, text)
            else:
                bridge.trouble("candidates", "")
            log.info("%d candidates from a message", len(found.candidates))
        except ltm.LtmError as error:
            log.warning("no candidates were taken from a message: %s", error)
