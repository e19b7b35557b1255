/* SPDX-License-Identifier: Apache-2.0 */
/* The collection file, one per process: docs/profiler.md, "The collection", has it in words.
 *
 * The file is a row of units. Unit 0 is the file header with live counters; the others hold segments of one or
 * more units. A segment belongs to one thread at a time, which alone appends to it, so that no thread waits for
 * another. Every byte lies in a shared mapping of the file: what is committed survives any end of the process.
 * All numbers are in the byte order of the machine that wrote them, which the header states. */
#ifndef GPADVISOR_FORMAT_H
#define GPADVISOR_FORMAT_H

#include <stdint.h>

#define GPA_FILE_MAGIC UINT64_C(0x4954505543415047)    /* "GPACUPTI" */
#define GPA_SEGMENT_MAGIC UINT64_C(0x31474553415047FF) /* 0xFF "GPASEG1" */
#define GPA_VERSION 1u
#define GPA_BYTE_ORDER 0x01020304u
#define GPA_UNIT_BYTES 65536u

struct gpa_file_header {
    uint64_t magic;
    uint32_t version;
    uint32_t byte_order;
    uint32_t unit_bytes;
    uint32_t process_id;
    uint32_t parent_id;
    uint32_t finished; /* 1: written to its end by the process itself */
    uint64_t started_ns; /* since 1970 */
    uint64_t launches;   /* live counters */
    uint64_t samples;
    uint64_t kernels;
    uint64_t lost_records; /* no room on the disk, or no memory */
    uint64_t reserved[8];
};

struct gpa_segment_header {
    uint64_t magic;
    uint32_t units;
    uint32_t reserved;
};

/* A record: this header, then `bytes` of payload, then zeros up to a multiple of 8. The first eight bytes are
 * stored last and at once; while they are zero, the segment ends here. */
struct gpa_record_header {
    uint32_t bytes;
    uint16_t kind;
    uint16_t mark; /* GPA_MARK */
    uint32_t crc;  /* CRC-32 of the first eight bytes and the payload */
    uint32_t reserved;
};
#define GPA_MARK 0xA5C3u

enum gpa_kind {
    GPA_PROCESS = 1,  /* gpa_process, then command line, host, executable */
    GPA_NOTE = 2,     /* gpa_note, then text */
    GPA_DEVICE = 3,   /* gpa_device, then name */
    GPA_CONTEXT = 4,  /* gpa_context */
    GPA_REASONS = 5,  /* gpa_reasons, then pairs of index and length with the name */
    GPA_MODULE = 6,   /* gpa_module */
    GPA_NAME = 7,     /* uint64 id, then text: names of functions, files and modules */
    GPA_LAUNCH = 8,   /* gpa_launch */
    GPA_FAILED = 9,   /* gpa_failed: a launch that returned an error */
    GPA_KERNEL = 10,  /* gpa_kernel: one execution, as the activity API reports it */
    GPA_PATH = 11,    /* gpa_path, then frames: the host call stack, innermost first */
    GPA_FRAME = 12,   /* gpa_frame: a Python frame */
    GPA_SYMBOL = 13,  /* gpa_symbol: what a native address is */
    GPA_SAMPLES = 14, /* gpa_samples, then gpa_sample rows */
    GPA_CALLER = 15,  /* gpa_caller: where the application made a call that is in a timeline */
    GPA_COPY = 16,    /* gpa_copy: a copy or a memset */
    GPA_CALL = 17,    /* gpa_call: a call of the runtime or the driver */
};

/* Lengths of the texts that follow stand in the record; texts carry no terminator. */
struct gpa_process {
    uint32_t process_id, parent_id;
    uint64_t started_ns;    /* since 1970 */
    uint64_t monotonic_ns;  /* the same moment on the clock of the launches */
    uint64_t cupti_ns;      /* the same moment on CUPTI's clock, 0 where unknown */
    uint32_t cupti_version, driver_version; /* as the libraries number themselves; 0 where unknown */
    uint32_t mode;          /* 1 continuous, 2 serialized, 3 a timeline and no samples */
    uint32_t forked;        /* the child of a process that used CUDA already */
    uint32_t late;          /* started after CUDA: earlier modules are unseen */
    uint32_t command_bytes, host_bytes, executable_bytes;
};

enum gpa_stage {
    GPA_STAGE_LOAD = 1,     /* loading CUPTI */
    GPA_STAGE_SUBSCRIBE = 2,
    GPA_STAGE_CALLBACKS = 3,
    GPA_STAGE_TIMES = 4,    /* kernel activity */
    GPA_STAGE_SAMPLING = 5, /* enabling PC sampling in a context */
    GPA_STAGE_CONFIGURE = 6,
    GPA_STAGE_DATA = 7,     /* reading samples */
    GPA_STAGE_BUFFER = 8,   /* hardware buffer full */
    GPA_STAGE_MODULE = 9,   /* storing machine code */
    GPA_STAGE_DRIVER = 10,  /* the driver's own fatal error, told by CUPTI */
    GPA_STAGE_DROPPED = 11, /* activity records that CUPTI dropped; the count stands in `code` */
    GPA_STAGE_CONTEXT = 12, /* a context that is not sampled, since another of its GPU is; `code` is the GPU */
    GPA_STAGE_KEPT = 13,    /* the buffer was full into which the last samples of a context go */
    GPA_STAGE_SERIAL_TIMES = 14, /* concurrent times were asked for; `code` is the version that does not give them */
    GPA_STAGE_TRACE = 15, /* a kind of activity of a timeline; `text` is its name */
    GPA_STAGE_ENOUGH = 16, /* records of a timeline beyond `text` were left out; `code` is their number */
};

struct gpa_note {
    uint32_t stage;
    int32_t code; /* CUptiResult; errno where stage is GPA_STAGE_MODULE */
    uint32_t context;
    uint32_t text_bytes;
};

struct gpa_device {
    uint32_t index, major, minor, sms;
    uint32_t clock_khz, max_threads_per_sm, registers_per_sm, shared_bytes_per_sm;
    uint32_t l2_bytes, warp_size, name_bytes, reserved;
};

struct gpa_context {
    uint32_t context, device;
    uint32_t mode;
    uint32_t period;       /* exponent; 0 where unknown */
    uint64_t buffer_bytes; /* 0 where unknown */
    int32_t sampling;      /* CUptiResult of enabling; 0: samples come */
    uint32_t times;        /* the kind of activity that kernel times come from; 0: none */
};

struct gpa_reasons {
    uint32_t context, count;
};

struct gpa_module {
    uint32_t context, module;
    uint64_t crc; /* CUPTI's own number of the image, in the samples */
    uint64_t size;
    uint8_t sha256[32];
};

enum gpa_launch_kind { GPA_LAUNCH_KERNEL = 1, GPA_LAUNCH_COOPERATIVE = 2, GPA_LAUNCH_GRAPH = 3, GPA_LAUNCH_MANY = 4 };

struct gpa_launch {
    uint32_t correlation, outer; /* of the driver call, and of the runtime call around it; 0: none */
    uint32_t context, kind;
    uint64_t time_ns; /* monotonic */
    uint64_t stream;
    uint64_t thread;
    uint64_t name; /* id; 0 where unknown */
    uint64_t path; /* id; 0: no call stack */
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint32_t reserved;
};

struct gpa_failed {
    uint32_t correlation;
    int32_t code; /* CUresult */
};

struct gpa_kernel {
    uint32_t correlation, device, context, stream;
    uint64_t start_ns, end_ns;
    uint64_t name;
    uint64_t graph_node;
    uint32_t graph;
    uint32_t registers;
    uint32_t grid[3], block[3], cluster[3];
    uint32_t static_shared, dynamic_shared, shared_executed, local_per_thread;
    uint32_t reserved;
};

struct gpa_caller {
    uint32_t correlation, reserved;
    uint64_t path;
};

struct gpa_copy {
    uint32_t correlation, device, context, stream;
    uint64_t start_ns, end_ns, bytes;
    uint32_t is_set; /* a memset, which has none of the following */
    uint32_t kind, from, to; /* as CUPTI numbers them: CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind */
};

struct gpa_call {
    uint32_t correlation, thread; /* CUPTI's number of the thread */
    uint64_t start_ns, end_ns;
    uint64_t name;
    uint32_t driver, reserved; /* driver: a call of the driver, else of the runtime */
};

struct gpa_path {
    uint64_t id;
    uint32_t python; /* ids of GPA_FRAME, innermost first */
    uint32_t native; /* addresses after the Python frames, innermost first */
};

struct gpa_frame {
    uint64_t id, file, function; /* ids of names */
    uint32_t line, reserved;
};

struct gpa_symbol {
    uint64_t address, module, function; /* ids of names; 0 where unknown */
    uint64_t offset;                    /* in the module's file image */
};

struct gpa_samples {
    uint32_t context, rows;
    uint64_t range;
    uint64_t total, dropped, non_user;
    uint32_t buffer_full, reserved;
};

struct gpa_sample {
    uint64_t crc, pc, function_name; /* id of the name */
    uint32_t function, correlation;
    uint32_t reason, samples;
};

#endif
