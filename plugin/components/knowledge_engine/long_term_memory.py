"""The knowledge base that a user attaches to pipelines; for agent-bound bots it is also how memories reach the model."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Any

import bridge as bridges
import identity
from bridge import Who
from langbot_plugin.api.definition.components.knowledge_engine.engine import KnowledgeEngine, KnowledgeEngineCapability
from langbot_plugin.api.entities.builtin.provider.message import ContentElement
from langbot_plugin.api.entities.builtin.rag.context import RetrievalResponse, RetrievalResultEntry
from langbot_plugin.api.entities.builtin.rag.enums import DocumentStatus
from langbot_plugin.api.entities.builtin.rag.models import IngestionResult

import ltm

log = logging.getLogger("ltm.plugin")


class LongTermMemory(KnowledgeEngine):
    """Retrieval of nobody's memory is empty: without a session there is no scope, and no scope is never all scopes."""

    def __init__(self) -> None:
        super().__init__()
        self._creating = asyncio.Lock()

    @classmethod
    def get_capabilities(cls) -> list[str]:
        """Documents can be taken in."""
        return [KnowledgeEngineCapability.DOC_INGESTION]

    async def on_knowledge_base_create(self, kb_id: str, config: dict[str, Any]) -> None:
        """Take up the settings; a second knowledge base is refused, since there is one memory."""
        _, problems = bridges.effective(config, {})
        if problems:  # the host takes the base back and shows this
            raise ValueError("; ".join(problems))
        async with self._creating:
            known = await self.plugin.bridge.kb_id()
            if known and known != kb_id and await self._is_there(known):
                raise ValueError("this memory has a knowledge base already; delete that one first (memories are kept)")
            await self.plugin.bridge.created(kb_id, config)

    async def _is_there(self, kb_id: str) -> bool:
        """Whether a knowledge base is one of this host: a file may come from another installation, which had its own."""
        try:
            return any(each.get("uuid") == kb_id for each in await self.plugin.list_knowledge_bases())
        except Exception:  # a host that cannot tell
            return True

    async def on_knowledge_base_delete(self, kb_id: str) -> None:
        """Memories stay in the file; `!memory` and the tools go on."""
        await self.plugin.bridge.deleted(kb_id)

    async def retrieve(self, context: Any) -> RetrievalResponse:
        """Profiles and memories of the chat that asks."""
        who = identity.of_retrieval(context.retrieval_settings or {})
        if who is None:
            log.warning("a retrieval without a session was answered with nothing: it is nobody's memory")
            return RetrievalResponse(results=[], total_found=0)
        bridge = self.plugin.bridge
        if bridge.was_injected(who, context.query):  # the runner asks for what the prompt holds already
            return RetrievalResponse(results=[], total_found=0)
        try:
            await bridge.adopt_kb(context.knowledge_base_id)
            space = await bridge.space(who, "retrieve")
            top_k = int(context.retrieval_settings.get("top_k") or 5)
            made, _ = await asyncio.wait_for(bridge.inject(space, context.query, max(1, min(top_k, 20))), bridges.TURN_SECONDS)
        except asyncio.TimeoutError:
            bridge.trouble("turn", f"memory took longer than {bridges.TURN_SECONDS:g} s, and the turn went on without it")
            return RetrievalResponse(results=[], total_found=0)
        except Exception as error:  # the host would end the turn
            bridge.trouble("turn", str(error) or type(error).__name__)
            return RetrievalResponse(results=[], total_found=0)
        blocks = {"profile": made.profile, "memories": made.memories}
        results = [
            RetrievalResultEntry(
                id=name, content=[ContentElement.from_text(text)], metadata={"kind": name}, distance=0.0, score=1.0
            )
            for name, text in blocks.items()
            if text
        ]
        return RetrievalResponse(results=results, total_found=len(results))

    async def ingest(self, context: Any) -> IngestionResult:
        """Take in a JSON file as one document. It must name the chat it belongs to: an upload has no session."""
        meta = context.file_object.metadata
        try:
            if context.parsed_content is not None:
                raw = context.parsed_content.text.encode()
            else:
                raw = await self.plugin.get_knowledge_file_stream(context.file_object.storage_path)
            who = _named_scope(raw)
            space = await self.plugin.bridge.space(who, "ingest")
            await self.plugin.bridge.note_document(meta.document_id, who)
            report = await self.plugin.bridge.run(space.transfer.load_document, meta.document_id, raw)
        except Exception as error:  # a raise would leave the file neither in nor out
            log.warning("a document was not taken in: %s", error)
            return IngestionResult(document_id=meta.document_id, status=DocumentStatus.FAILED, error_message=str(error))
        self.plugin.bridge.catch_up()
        count = report.episodes + report.facts + report.duplicates
        return IngestionResult(document_id=meta.document_id, status=DocumentStatus.COMPLETED, chunks_created=count)

    async def delete_document(self, kb_id: str, document_id: str) -> bool:
        """Delete what came with a document, in the chat that it was taken into; True also when nothing was left of it."""
        bridge = self.plugin.bridge
        try:
            who = await bridge.document_scope(document_id)
            if who is not None:
                space = await bridge.space(who, "ingest")
                await bridge.run(space.transfer.delete_document, document_id)
                await bridge.note_document(document_id, None)
        except ltm.LtmError as error:
            log.warning("a document was not deleted: %s", error)
            return False
        return True


def _named_scope(raw: bytes) -> Who:
    """The chat that an uploaded file names in "scope": its bot, launcher_type and launcher_id."""
    try:
        scope = json.loads(raw.decode("utf-8-sig"))["scope"]
        parts = (str(scope["bot"]), str(scope["launcher_type"]), str(scope["launcher_id"]))
    except (ValueError, KeyError, TypeError) as error:
        words = '{"scope": {"bot": "...", "launcher_type": "group", "launcher_id": "..."}, "episodes": [...]}'
        raise ltm.InvalidInput(f"the file does not name the chat it belongs to; it must be like {words}") from error
    return Who(*parts, "", "")
