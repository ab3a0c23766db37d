"""A serial console: text in both directions, as terminals send and display it."""

import codecs
import re
import socket

from computeapi.backends.hypervisor.simulated_consoles.terminal import Terminal, received

ERASE_LINE = '\r\x1b[K'
ESCAPE_SEQUENCE = re.compile(r'\x1b(?:[\[O][0-?]*[ -/]*[@-~]|[^\[O])')
# How much of the text shown last is searched for in a log whose beginning was cut off.
MAX_OVERLAP = 1000


def speak(connection: socket.socket, terminal: Terminal) -> None:
    """Show the log and the prompt; typed characters are echoed."""
    keys, paper = Keys(), Paper()
    connection.sendall(paper.changes(terminal).encode())
    for data in received(connection, terminal):
        for character in keys.typed(data):
            terminal.type(character)
        connection.sendall(paper.changes(terminal).encode())


class Keys:
    """Decodes a terminal's input into characters; escape sequences, e.g. of arrow keys, are dropped."""

    def __init__(self) -> None:
        self.decoder = codecs.getincrementaldecoder('utf-8')('replace')
        self.pending = ''

    def typed(self, data: bytes) -> str:
        text = ESCAPE_SEQUENCE.sub('', self.pending + self.decoder.decode(data).replace('\r\n', '\r'))
        begun = text.find('\x1b')
        # An incomplete sequence is kept until the rest arrives; more than 16 characters cannot be one.
        self.pending = text[begun:][:16] if begun >= 0 else ''
        return text if begun < 0 else text[:begun]


class Paper:
    """What a terminal already shows."""

    def __init__(self) -> None:
        self.log, self.prompt = '', ''

    def changes(self, terminal: Terminal) -> str:
        """The output that updates the terminal to the current state."""
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
    """The part of a log that has not been shown yet; its beginning may have been cut off since."""
    if log.startswith(shown):
        return log[len(shown) :]
    end = shown[-MAX_OVERLAP:]
    at = log.rfind(end)
    return log if at < 0 else log[at + len(end) :]
