"""``claude_sdk``: cases are played with the Claude Agent SDK."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from baton.http.limits import of_messages
from baton.model import Case, InputError, Problem, ProviderError, Source, Trace
from baton.providers.base import ConfiguredProvider, Surroundings
from baton.readers.claude.reader import merge_stream, read_session_file

from .client import connected, installed
from .options import ClaudeSdkOptions, agents_of, known_agents, working_folder
from .play import Conversation, Played


class ClaudeSdk(ConfiguredProvider[ClaudeSdkOptions]):
    """Plays each case with a Claude Code of its own."""

    options_type = ClaudeSdkOptions

    def __init__(self, options: ClaudeSdkOptions, around: Surroundings | None = None) -> None:
        super().__init__(options, around)
        self._folder = working_folder(options, self.around.folder)
        self._agents = agents_of(options, self.around.folder)
        self._catalog = {**known_agents(options, self.around.folder), **self.around.agents}
        if not installed():
            message = "`claude_sdk` needs claude-agent-sdk: pip install 'baton-evals[claude]'"
            raise InputError(Problem(path="type", message=message))
        self._source = Source(
            format="claude-stream", framework="claude-agent-sdk", location=options.cwd
        )

    async def __call__(self, case: Case) -> Trace:
        """Play a case; raises ProviderError."""
        played = Played(
            self._connected,
            case,
            self.hooks,
            source=self._source,
            catalog=self._catalog,
            timeout=self.options.timeout,
            limits=of_messages(self.options.max_answer_mib, self.options.max_events),
        )
        try:
            return self._completed(await played.play())
        except ProviderError as error:
            if error.trace is not None:
                error.trace = self._completed(error.trace)
            raise

    def _connected(self) -> AbstractAsyncContextManager[Conversation]:
        return connected(self.options, self._agents, self._folder)

    def _completed(self, trace: Trace) -> Trace:
        """Add what the session's own files tell, where they are of the same turns."""
        path = self._transcript(trace.id) if self.options.transcripts else None
        if path is None:
            return trace
        try:
            transcript = read_session_file(path, self._catalog)
        except InputError:
            return trace
        if [turn.input for turn in transcript.turns] != [turn.input for turn in trace.turns]:
            return trace
        transcript.case, transcript.source = trace.case, trace.source
        merge_stream(transcript, trace)
        for turn, seen in zip(transcript.turns, trace.turns, strict=True):
            turn.status, turn.error = seen.status, seen.error
        return transcript

    def _transcript(self, session: str) -> Path | None:
        """Find the file of a session, wherever its project's folder is."""
        home = Path(self.options.env.get("HOME") or Path.home())
        stated = self.options.env.get("CLAUDE_CONFIG_DIR") or os.environ.get("CLAUDE_CONFIG_DIR")
        projects = (Path(stated) if stated else home / ".claude") / "projects"
        if not session or "/" in session:
            return None
        return next((file for file in projects.glob(f"*/{session}.jsonl")), None)
