"""A serial console: text both ways, as a terminal shows it and sends it."""

import codecs
import re
import socket

from computeapi.backends.hypervisor.simulated_consoles.terminal import Terminal, received

ERASE_LINE = '\r\x1b[K'
ESCAPE_SEQUENCE = re.compile(r'\x1b(?:[\[O][0-?]*[ -/]*[@-~]|[^\[O])')
# How much of what was shown last is looked for where the beginning of a log has been cut off.
MOST_OVERLAP = 1000


def speak(connection: socket.socket, terminal: Terminal) -> None:
    """Show the log and the prompt; what is typed is echoed."""
    keys, paper = Keys(), Paper()
    connection.sendall(paper.changes(terminal).encode())
    for data in received(connection, terminal):
        for character in keys.typed(data):
            terminal.type(character)
        connection.sendall(paper.changes(terminal).encode())


class Keys:
    """What a terminal sends, as characters: arrows and the like, which are several, are left out."""

    def __init__(self) -> None:
        self.decoder = codecs.getincrementaldecoder('utf-8')('replace')
        self.pending = ''

    def typed(self, data: bytes) -> str:
        text = ESCAPE_SEQUENCE.sub('', self.pending + self.decoder.decode(data).replace('\r\n', '\r'))
        begun = text.find('\x1b')
        # A sequence whose rest is still to come; what is too long for one is none.
        self.pending = text[begun:][:16] if begun >= 0 else ''
        return text if begun < 0 else text[:begun]


class Paper:
    """What a terminal shows already."""

    def __init__(self) -> None:
        self.log, self.prompt = '', ''

    def changes(self, terminal: Terminal) -> str:
        """What to send so that it shows what is new."""
        log, prompt = terminal.log, terminal.prompt
        if log != self.log:
            text = ERASE_LINE + beyond(self.log, log).replace('\n', '\r\n') + prompt
        elif prompt.startswith(self.prompt):
            text = prompt[len(self.prompt) :]
        else:
            text = ERASE_LINE + prompt
        self.log, self.prompt = log, prompt
        return text


def beyond(shown: str, log: str) -> str:
    """What a log has that had been shown so far; its beginning may be cut off since."""
    if log.startswith(shown):
        return log[len(shown) :]
    end = shown[-MOST_OVERLAP:]
    at = log.rfind(end)
    return log if at < 0 else log[at + len(end) :]
