# SPDX-License-Identifier: Apache-2.0
"""What went less than perfectly, kept as a value instead of a log line."""

from __future__ import annotations

from dataclasses import dataclass

from gpadvisor.model.ids import SourceLocation
from gpadvisor.model.kind import Kind
from gpadvisor.model.sentence import keeps_sentences


class ProblemCode(Kind):
    """Kinds of problem; the value is the stable string users see in JSON."""

    UNKNOWN_OPCODE = "unknown_opcode"
    UNKNOWN_STALL_REASON = "unknown_stall_reason"
    NO_LINE_INFO = "no_line_info"
    LINES_RECOVERED = "lines_recovered"  # from a source or cubin beside the profile
    NO_SAMPLES = "no_samples"
    NO_COUNTS = "no_counts"
    NO_BINARY = "no_binary"
    NO_DISASSEMBLY = "no_disassembly"
    TRUNCATED_SAMPLES = "truncated_samples"
    DROPPED_SAMPLES = "dropped_samples"
    FEW_SAMPLES = "few_samples"
    EXTERNAL_SAMPLES = "external_samples"
    INCONSISTENT_REPORT = "inconsistent_report"
    IMPOSSIBLE_COUNTER = "impossible_counter"  # as if it had not been counted
    IRREDUCIBLE_REGION = "irreducible_region"
    INDIRECT_BRANCH = "indirect_branch"
    SOURCE_UNMATCHED = "source_unmatched"
    SOURCE_AMBIGUOUS = "source_ambiguous"
    SOURCE_NOT_READ = "source_not_read"
    LINES_NOT_READ = "lines_not_read"
    UNUSED_SUPPRESSION = "unused_suppression"
    TOOL_FALLBACK = "tool_fallback"
    FAILED_LAUNCH = "failed_launch"
    LAUNCH_NOT_KNOWN = "launch_not_known"  # so that the kernel was not simulated
    LOOP_NOT_KNOWN = "loop_not_known"  # how often it runs, which a simulation took for granted
    NOT_ANALYSED = "not_analysed"
    DAMAGED_CUBIN = "damaged_cubin"
    DEBUG_BUILD = "debug_build"  # compiled with -G
    COMPILE_ASSUMPTION = "compile_assumption"
    COMPILE_DATABASE = "compile_database"  # cannot be read, or is of no use for the source
    REDUCED_SOURCE = "reduced_source"  # compiled without headers that are missing, or without host code
    MIXED_CONFIGURATIONS = "mixed_configurations"  # samples of launches that differ, not told apart
    UNFINISHED_COLLECTION = "unfinished_collection"  # the application ended before its collection did
    COLLECTION_LIMITED = "collection_limited"  # something stood in the way of the collector
    UNCOVERED_TIME = "uncovered_time"  # a kernel without samples takes more time than those with some
    UNKNOWN_TIME_COVERAGE = "unknown_time_coverage"  # kernels that were not asked for were not timed
    NOT_PICKED = "not_picked"  # collected beside the launches that were asked for
    SUM_OVER_RANKS = "sum_over_ranks"  # of many profiles, see gpadvisor aggregate
    MIXED_PROFILES = "mixed_profiles"  # a sum of several programs, builds or devices
    SLOW_RANKS = "slow_ranks"  # some ranks take longer than others
    NOT_IN_TIMELINE = "not_in_timeline"  # a kernel that the traced run did not launch
    LOWER_EVIDENCE = "lower_evidence"  # a collector was refused PC samples and took what it could get


@dataclass(frozen=True, slots=True)
@keeps_sentences("message")
class Problem:
    """One thing the reader should know before believing the numbers."""

    code: ProblemCode
    message: str
    location: SourceLocation | None = None  # where one line is at fault
    short: str = ""  # what is special here in a few words, where a screen has no room for the message
    rule: str = ""  # GPA202: the one that a comment ignores for nothing
