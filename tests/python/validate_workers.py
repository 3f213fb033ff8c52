"""Work in child processes that may die: what they said until then comes back, and where they died."""

import contextlib
import faulthandler
import json
import mmap
import os
import selectors
import signal
import struct
import traceback


class Place:
    """A number that outlives the process that wrote it."""

    def __init__(self):
        self._memory = mmap.mmap(-1, 8)

    def note(self, number):
        self._memory[:8] = struct.pack("=q", number)

    def last(self):
        return struct.unpack("=q", self._memory[:8])[0]


class Child:
    """A forked process that works on its part of something, from some step on."""

    def __init__(self, work, part, start, place):
        self.part, self.place, self._text = part, place, b""
        place.note(start)
        reader, writer = os.pipe()
        self.id = os.fork()
        if self.id == 0:
            os.close(reader)
            faulthandler.disable()
            self._work(work, part, start, writer)
        os.close(writer)
        self.reader = reader

    def _work(self, work, part, start, writer):
        # What a peer prints before it aborts is of no interest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        code = 1
        try:
            with os.fdopen(writer, "w") as pipe:
                def say(what):
                    pipe.write(json.dumps(what) + "\n")
                    pipe.flush()

                try:
                    work(part, start, self.place, say)
                    code = 0
                except BaseException:
                    say({"failed": traceback.format_exc()[-20000:]})
        finally:
            os._exit(code)

    def read(self):
        """Reads what there is; whether that was the end."""
        chunk = os.read(self.reader, 1 << 16)
        self._text += chunk
        return not chunk

    def end(self):
        """What it said, and the signal that ended it, if any did."""
        os.close(self.reader)
        status = os.waitpid(self.id, 0)[1]
        died = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        # A line that death cut short is no answer.
        lines = self._text.decode(errors="replace").split("\n")[:-1]
        return [json.loads(line) for line in lines], died


def run(work, parts, on_death=None):
    """Runs `work(part, start, place, say)` for each part in a process of its own; what all of them said.

    The process notes its steps in `place`. When it dies at one, `on_death(last, signal)` says what to make of that and of
    what it said last, and the work goes on behind it; without `on_death` that is a failure.
    """
    said = []
    with contextlib.closing(selectors.DefaultSelector()) as waiting:
        def start(part, step, place):
            child = Child(work, part, step, place)
            waiting.register(child.reader, selectors.EVENT_READ, child)

        for part in parts:
            start(part, 0, Place())
        while waiting.get_map():
            for key, _ in waiting.select():
                child = key.data
                if not child.read():
                    continue
                waiting.unregister(key.fileobj)
                answers, died = child.end()
                for answer in answers:
                    assert not (isinstance(answer, dict) and "failed" in answer), answer["failed"]
                said += answers
                if died:
                    step = child.place.last()
                    assert on_death, f"{child.part} died of {signal.Signals(died).name} at step {step}"
                    said.append(on_death(answers[-1], died))
                    start(child.part, step + 1, child.place)
    return said
