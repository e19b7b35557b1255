# SPDX-License-Identifier: Apache-2.0
"""The server: the library's, with texts of our own, and every feature registered."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Final

from cattrs import Converter
from lsprotocol import converters
from lsprotocol import types as lsp
from pygls.exceptions import FeatureRequestError, JsonRpcException, JsonRpcInvalidParams
from pygls.io_ import StdinAsyncReader, StdoutWriter, run_async
from pygls.lsp.server import LanguageServer
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
    lsp_method,
)

from gpadvisor import __version__
from gpadvisor.lsp import commands, notifications, requests
from gpadvisor.lsp.session import Session

log: Final = logging.getLogger("gpadvisor.lsp")
# The library's account of messages that are none; ours is the sentence of ``report_server_error``.
_silent: Final = logging.getLogger("gpadvisor.lsp.messages")
_silent.setLevel(logging.CRITICAL)
_HEADER_BYTES: Final = 4096
_MESSAGE_BYTES: Final = 256 << 20
HANDLERS: Final = (
    notifications.register,
    requests.register,
    requests.register_own,
    commands.register,
    commands.register_shown,
)


class _Protocol(LanguageServerProtocol):
    """The library's protocol; texts are kept by ``workspace`` alone, which splits lines as LSP says."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """As the library does; a request that is none is answered all the same."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            wrong = JsonRpcInvalidParams()
            if "id" in data and "method" in data:
                self._send_response(data["id"], error=wrong.to_response_error())
            raise wrong from error

    @lsp_method(lsp.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: lsp.DidOpenTextDocumentParams) -> Generator[Any, Any, None]:
        """Hand on."""
        yield self.fm.features[lsp.TEXT_DOCUMENT_DID_OPEN], (params,), None

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(
        self, params: lsp.DidChangeTextDocumentParams
    ) -> Generator[Any, Any, None]:
        """Hand on."""
        yield self.fm.features[lsp.TEXT_DOCUMENT_DID_CHANGE], (params,), None

    @lsp_method(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(
        self, params: lsp.DidCloseTextDocumentParams
    ) -> Generator[Any, Any, None]:
        """Hand on."""
        yield self.fm.features[lsp.TEXT_DOCUMENT_DID_CLOSE], (params,), None

    @lsp_method(lsp.EXIT)
    def lsp_exit(self, *_args: object) -> None:  # type: ignore[override]  # hands nothing on
        """End; not the library's, which a shutdown that is still being answered would cancel."""
        server: Any = self._server
        server.leave(0 if server.session.background.closing else 1)


class Server(LanguageServer):
    """One server, one client."""

    def __init__(self) -> None:
        super().__init__(
            name="gpadvisor",
            version=__version__,
            protocol_cls=_Protocol,
            converter_factory=_converter,
            max_workers=4,
        )
        self.leave: Callable[[int], object] = sys.exit
        self.session = Session(self)
        for register in HANDLERS:
            register(self, self.session)

    def start_io(self, stdin: BinaryIO | None = None, stdout: BinaryIO | None = None) -> None:
        """Serve on two streams; when the input ends, what was begun is ended in an orderly way."""
        if stdin is None or stdout is None:
            raise ValueError("the streams are to be taken from the process first")
        code = 1
        try:
            code = asyncio.run(self._serve(_Reader(stdin, self.thread_pool), stdout))
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException as error:  # noqa: BLE001 such as a signal's: the process ends all the same
            log.warning("ended: %s", error)
        finally:
            logging.shutdown()
            os._exit(code)  # a thread waits for the client's pipe, and Python would wait for the thread

    async def _serve(self, reader: _Reader, stdout: BinaryIO) -> int:
        """Until the input ends, the output is closed, or a signal comes; the exit status."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(Threads())
        end: asyncio.Future[int] = loop.create_future()

        def ended(code: int) -> None:
            if not end.done():
                end.set_result(code)

        self.leave = ended
        self.protocol.set_writer(_Writer(stdout, lambda: loop.call_soon_threadsafe(ended, 0)))
        for number in (signal.SIGINT, signal.SIGTERM):
            with contextlib.suppress(NotImplementedError):  # on Windows
                loop.add_signal_handler(number, ended, 128 + number)
        serving = asyncio.ensure_future(
            run_async(threading.Event(), reader, self.protocol, _silent, self.report_server_error)
        )
        serving.add_done_callback(lambda _: ended(1 if reader.is_broken else 0))
        code = await end
        await self.session.close()
        for _ in range(10):  # the answer to the shutdown, and the exit, are still on their way
            await asyncio.sleep(0)
        return code

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Requests are answered with their error; what else goes wrong is in the log."""
        if source is not FeatureRequestError:
            log.error("%s", error)


class Threads(ThreadPoolExecutor):
    """For searches and readings of files: the server's end does not wait for one that is still on its way."""

    def shutdown(self, *_: Any, **__: Any) -> None:
        """Begin nothing more."""
        super().shutdown(wait=False, cancel_futures=True)


class _Reader(StdinAsyncReader):
    """The library's, which waits for ever where the length of a message cannot be read."""

    is_broken = False
    _in_header = False
    _sized = False

    async def readline(self) -> bytes:
        """The next line of a header as the library wants it; the end of the stream where it is none.

        Without a length nothing tells where the next message begins.
        """
        line: bytes = await self.loop.run_in_executor(self.executor, self.stdin.readline, _HEADER_BYTES)
        if not line.strip():
            if self._in_header and not self._sized:
                return self._end("a message came without Content-Length")
            self._in_header = self._sized = False
            return line
        self._in_header = True
        name, colon, value = line.partition(b":")
        if not colon or not line.endswith(b"\n") or not name.strip().replace(b"-", b"").isalpha():
            return self._end(f"{line[:80]!r} stands where a header was expected")
        if name.strip().lower() != b"content-length":
            return line
        size = value.strip()
        if not size.isdigit() or len(size) > 10 or int(size) > _MESSAGE_BYTES:
            return self._end(f"{line[:80]!r} gives no length of up to {_MESSAGE_BYTES} bytes")
        self._sized = True
        return b"Content-Length: %d\r\n" % int(size)

    def _end(self, reason: str) -> bytes:
        log.error("%s; the server ends, as it cannot know where the next message begins", reason)
        self.is_broken = True
        return b""


class _Writer(StdoutWriter):
    """The library's; a client that does not read any more is told to nobody but the server."""

    def __init__(self, stdout: BinaryIO, gone: Callable[[], object]) -> None:
        super().__init__(stdout)
        self._gone = gone

    def write(self, data: bytes) -> None:
        """Write, or say that the client is gone."""
        try:
            super().write(data)
        except (OSError, ValueError):
            with contextlib.suppress(RuntimeError):  # the event loop has ended already
                self._gone()


def serve_streams(source: BinaryIO, wire: BinaryIO) -> None:
    """Serve until the client says exit or closes the stream."""
    Server().start_io(source, wire)


def serve_port(port: int) -> None:
    """Serve one client on the loopback address, for debugging."""
    Server().start_tcp("127.0.0.1", port)


def log_to_stderr() -> None:
    """Our own log at the level of the settings, the library's where something is wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("gpadvisor").setLevel(logging.INFO)
    logging.getLogger("pygls.protocol.json_rpc").setLevel(logging.CRITICAL)


def _converter() -> Any:
    """The library's own, but parameters of messages that it does not know stay as they came, if they came."""
    # Nobody is told which field of a message is wrong, and code that knows it takes twice as long to compile.
    converter = converters.get_converter(Converter(detailed_validation=False))
    for kind in (JsonRPCRequestMessage, JsonRPCNotification):
        converter.register_structure_hook(kind, lambda data, cls: cls(**({"params": None} | data)))
    converter.register_structure_hook(JsonRPCResponseMessage, lambda data, cls: cls(**data))
    return converter
