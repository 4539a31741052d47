from langbot_plugin.api.definition.components.command.command import Command
from langbot_plugin.api.entities.builtin.command.context import CommandReturn


class NewTalk(Command):
    def __init__(self):
        super().__init__()

        async def answer(self, context):
            await context.create_new_conversation()
            yield CommandReturn(text="a new conversation")

        self.subcommand(name="", help="new conversation", usage="!newtalk")(answer)
