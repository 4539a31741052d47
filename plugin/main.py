"""The LangBot plugin: what a user installs. It opens the memory file and hands it to its components; the engine does the rest."""

from __future__ import annotations

import logging

from bridge import Bridge
from langbot_plugin.api.definition.plugin import BasePlugin

import ltm

log = logging.getLogger("ltm.plugin")


class LongTermMemoryPlugin(BasePlugin):
    """Owns the bridge. Nothing here may fail: a plugin that does not start takes the whole installation with it."""

    bridge: Bridge

    async def initialize(self) -> None:
        """Open the file; if that fails, say why when asked (`!memory health`) and try again at the next use."""
        self.bridge = Bridge(self)
        self.bridge.background(self.bridge.run(ltm.warm_up))
        try:
            await self.bridge.open()
        except ltm.LtmError as error:
            log.error("memory is off: %s", error)
