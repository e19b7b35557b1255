# SPDX-License-Identifier: Apache-2.0
"""One decoded SASS instruction: what it reads and writes, and its control code (GPA section IV, Table I)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NewType

from gpadvisor.model.ids import Pc
from gpadvisor.model.kind import Kind

Register = NewType("Register", int)
"""One 32-bit register, predicate or virtual barrier register of any file: ``file * 256 + index``."""


class RegisterFile(Kind):
    """The register files a SASS operand can name; barriers are the paper's virtual registers."""

    GPR = 0  # R0-R254; RZ is never stored
    PREDICATE = 1  # P0-P6; PT is never stored
    UNIFORM = 2  # UR0-UR79
    UNIFORM_PREDICATE = 3  # UP0-UP6
    BARRIER = 4  # B0-B5, the six scoreboards (GPA section IV, "virtual barrier registers")


_PREFIXES: Final = ("R", "P", "UR", "UP", "B")
"""By the number of the file."""


def register(file: RegisterFile, index: int) -> Register:
    """The register ``index`` of ``file``."""
    return Register(file.value * 256 + index)


def register_file(reg: Register) -> RegisterFile:
    """The file a register belongs to."""
    return RegisterFile(reg >> 8)


def register_name(reg: Register) -> str:
    """The register as SASS writes it: ``R4``, ``UP0``, ``B2``."""
    return f"{_PREFIXES[reg >> 8]}{reg & 255}"


@dataclass(frozen=True, slots=True)
class Guard:
    """The predicate in front of an instruction, ``@P0`` or ``@!UP1``; absent where it is PT."""

    register: Register
    negated: bool


_WAITS = tuple(tuple(i for i in range(6) if mask >> i & 1) for mask in range(64))
"""The scoreboards of each wait mask."""


@dataclass(frozen=True, slots=True)
class ControlCode:
    """Scheduling bits 105-125 of the 128-bit word (sm_70 and newer)."""

    stall_cycles: int  # 0-15, cycles before the same warp may issue again
    yield_flag: bool  # bit 109 as it stands: False = end of group
    write_barrier: int | None  # 0-5, released when the result is written
    read_barrier: int | None  # 0-5, released when the sources are read
    wait_mask: int  # bit i: wait until scoreboard i is zero
    reuse: int  # four operand-cache bits

    @property
    def waits(self) -> tuple[int, ...]:
        """The scoreboards this instruction waits for, in order."""
        return _WAITS[self.wait_mask]


class MemorySpace(Kind):
    """The address space of a memory instruction."""

    GLOBAL = "global"
    LOCAL = "local"
    SHARED = "shared"
    CONSTANT = "constant"
    TEXTURE = "texture"
    GENERIC = "generic"
    DISTRIBUTED_SHARED = "distributed_shared"
    TENSOR = "tensor"  # Blackwell tensor memory


class OpcodeClass(Kind):
    """What an instruction is for; the vocabulary of pruning and of the optimizers."""

    INTEGER = "integer"
    INTEGER_MULTIPLY = "integer_multiply"
    FLOAT16 = "float16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    TRANSCENDENTAL = "transcendental"  # MUFU
    CONVERSION = "conversion"  # F2I, I2F, F2F, FRND
    TENSOR = "tensor"  # HMMA, IMMA, DMMA, HGMMA, UTCMMA
    PREDICATE = "predicate"  # ISETP, PLOP3, ...
    MOVE = "move"
    SHUFFLE = "shuffle"  # SHFL
    VOTE = "vote"  # VOTE, MATCH, REDUX
    SPECIAL_REGISTER = "special_register"  # S2R, CS2R
    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic"
    REDUCTION = "reduction"
    ASYNC_COPY = "async_copy"  # LDGSTS, UTMALDG, UBLKCP
    CACHE_CONTROL = "cache_control"
    BARRIER = "barrier"  # BAR, the CTA barrier
    MEMORY_BARRIER = "memory_barrier"  # MEMBAR, FENCE, ERRBAR
    DEPENDENCY_BARRIER = "dependency_barrier"  # DEPBAR, LDGDEPBAR, WARPGROUP.DEPBAR
    WARP_SYNC = "warp_sync"  # WARPSYNC, BSSY, BSYNC, ...
    MBARRIER = "mbarrier"  # SYNCS
    CLUSTER_BARRIER = "cluster_barrier"  # UCGABAR
    BRANCH = "branch"
    INDIRECT_BRANCH = "indirect_branch"
    CALL = "call"
    RETURN = "return"
    EXIT = "exit"
    SLEEP = "sleep"
    NOP = "nop"
    UNKNOWN = "unknown"


COMPUTING: Final = frozenset(
    {
        OpcodeClass.INTEGER,
        OpcodeClass.INTEGER_MULTIPLY,
        OpcodeClass.FLOAT16,
        OpcodeClass.FLOAT32,
        OpcodeClass.FLOAT64,
        OpcodeClass.TRANSCENDENTAL,
        OpcodeClass.CONVERSION,
        OpcodeClass.PREDICATE,
        OpcodeClass.MOVE,
    }
)
"""What has the same result in all threads if its operands are the same."""


class Pipe(Kind):
    """The execution pipe, as Nsight Compute names pipes."""

    ALU = "alu"
    FMA = "fma"
    FP16 = "fp16"
    FP64 = "fp64"
    XU = "xu"
    TENSOR = "tensor"
    LSU = "lsu"
    TEX = "tex"
    ADU = "adu"  # barriers, branches through registers
    CBU = "cbu"  # control flow
    UNIFORM = "uniform"
    UNKNOWN = "unknown"


class InOrderQueue(Kind):
    """A queue whose results return in order: waiting for a younger entry implies the older ones."""

    MIO = "mio"  # LDS, SHFL, ... (sass-level: shared-memory pipeline)
    TEX = "tex"  # texture fetches on one scoreboard


@dataclass(frozen=True, slots=True)
class OpcodeInfo:
    """Facts about an opcode that do not depend on its operands; one shared instance per mnemonic form."""

    opclass: OpcodeClass
    pipe: Pipe
    space: MemorySpace | None  # of loads, stores, atomics, reductions, async copies
    variable_latency: bool  # may set a write barrier; each instruction that does has it
    queue: InOrderQueue | None
    known: bool  # False: a conservative model, and an UNKNOWN_OPCODE problem was reported


@dataclass(frozen=True, slots=True)
class PartialWait:
    """``DEPBAR.LE SBn, keep``: waits until at most ``keep`` operations on one scoreboard are outstanding."""

    barrier: int
    keep: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """One decoded instruction; registers exclude RZ, PT, URZ and UPT."""

    pc: Pc
    opcode: str  # base mnemonic, "LDG"
    modifiers: tuple[str, ...]  # ("E", "64", "CONSTANT")
    operands: str  # operand text as the disassembler prints it
    guard: Guard | None
    defs: tuple[Register, ...]  # registers, predicates, uniform ones; no barriers
    uses: tuple[Register, ...]  # the same files, guard included; no barriers
    info: OpcodeInfo
    control: ControlCode
    target: Pc | None  # of a direct branch, or of a call inside the section
    callee: str | None  # symbol of a direct call
    partial_wait: PartialWait | None
    width_bytes: int | None  # bytes per thread of a memory access

    @property
    def operand_texts(self) -> list[str]:
        """Each operand by itself."""
        return [text.strip() for text in self.operands.split(",")]

    @property
    def text(self) -> str:
        """The instruction as a reader expects it: ``@!P0 LDG.E.64 R4, [R2.64]``."""
        guard = ""
        if self.guard is not None:
            guard = f"@{'!' if self.guard.negated else ''}{register_name(self.guard.register)} "
        mnemonic = ".".join((self.opcode, *self.modifiers))
        return f"{guard}{mnemonic} {self.operands}".rstrip()
