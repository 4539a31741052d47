"""The two consoles a person uses: the command line and, to come, the web page."""
