# SPDX-License-Identifier: Apache-2.0
"""Every error that gpadvisor raises on purpose.

::

    GpadvisorError (exit 3)
     +-- UsageError (exit 2)
     |    +-- SettingsError
     +-- CubinError
     |    +-- NoDeviceCodeError
     +-- SassError
     +-- ProfileError
     |    +-- ProfileFormatError
     |    |    +-- NoTimelineError
     |    +-- ProfileMismatchError
     +-- SourceError
     |    +-- CompileError (toolchain, with the compiler's messages)
     +-- MachineModelError
     |    +-- UnknownArchitectureError
     +-- ToolError (exit 4)
          +-- ToolNotFoundError
          +-- ToolFailedError
          +-- ToolTimeoutError
          +-- CancelledError

A message names the thing, what was expected and what to do next, in one sentence without a final stop.
"""

from __future__ import annotations

from typing import ClassVar


class GpadvisorError(Exception):
    """Root of the tree; ``str(error)`` is the sentence a user reads."""

    exit_code: ClassVar[int] = 3


class UsageError(GpadvisorError):
    """The request itself is wrong: an option, a name, a value."""

    exit_code: ClassVar[int] = 2


class SettingsError(UsageError):
    """A settings file has an unknown key or a value of the wrong type."""


class CubinError(GpadvisorError):
    """Bytes that should be a CUDA ELF image are not, or not one that is understood."""


class NoDeviceCodeError(CubinError):
    """A source or a cubin has no kernel and no device function: there is nothing to advise on."""


class SassError(GpadvisorError):
    """Disassembly and code bytes do not fit together."""


class ProfileError(GpadvisorError):
    """A profile cannot be used."""


class ProfileFormatError(ProfileError):
    """A profile file is damaged, foreign, or of a newer format."""


class NoTimelineError(ProfileFormatError):
    """A file is of another kind than timelines: what looks for some goes on."""


class ProfileMismatchError(ProfileError):
    """A profile lacks what the request needs, such as a kernel or a section."""


class SourceError(GpadvisorError):
    """A CUDA source cannot be read or compiled into one cubin."""


class MachineModelError(GpadvisorError):
    """A machine table is malformed."""


class UnknownArchitectureError(MachineModelError):
    """No machine table exists for an architecture; the message suggests the nearest."""


class ToolError(GpadvisorError):
    """An external tool could not do its work."""

    exit_code: ClassVar[int] = 4


class ToolNotFoundError(ToolError):
    """No usable copy of an external tool was found; the message says what to install."""


class ToolFailedError(ToolError):
    """An external tool ended with an error."""


class ToolTimeoutError(ToolError):
    """An external tool did not end within its time limit and was stopped."""


class CancelledError(ToolError):
    """The caller asked to stop."""
