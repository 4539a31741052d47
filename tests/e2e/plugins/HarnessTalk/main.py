from langbot_plugin.api.definition.plugin import BasePlugin


class HarnessTalkPlugin(BasePlugin):
    pass
