/* SPDX-License-Identifier: Apache-2.0 */
/* Each thread appends to its own segment of the file, which is mapped shared: a record is safe from the moment
 * its first eight bytes are stored, even where the process is killed in the next. Differs from the wait-free
 * queues between threads of HPCToolkit (section 4.1): there is no reader in the process that could die first. */
#define _GNU_SOURCE
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define IDLE_SLOTS 256
#define NEWS_SLOTS 2048 /* a power of two */

struct segment {
    uint8_t *base;
    size_t size, used;
    unsigned generation;
};

struct writer {
    struct segment *segment;
    uint8_t *open_record;
    size_t open_bytes;
    unsigned generation;
    uint64_t news[NEWS_SLOTS];
};

static struct {
    _Atomic int file;                    /* -1: none */
    _Atomic(struct gpa_file_header *) header;
    _Atomic uint64_t next_unit;
    _Atomic unsigned generation;         /* counts files: a fork leaves segments of the parent behind */
    _Atomic(struct segment *) idle[IDLE_SLOTS]; /* of threads that have ended */
} state = {.file = -1};

/* Those of threads that a fork leaves behind, too: in the child nothing else knows them. */
static _Atomic(struct writer *) writers[IDLE_SLOTS];

static pthread_key_t writer_key;
static pthread_once_t writer_once = PTHREAD_ONCE_INIT;
static _Atomic bool have_key;
static uint32_t crc_table[8][256];

static void make_crc_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) value = (value >> 1) ^ (value & 1 ? UINT32_C(0xEDB88320) : 0);
        crc_table[0][i] = value;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int row = 1; row < 8; row++)
            crc_table[row][i] = (crc_table[row - 1][i] >> 8) ^ crc_table[0][crc_table[row - 1][i] & 255];
}

static uint32_t crc32_of(uint32_t crc, const uint8_t *data, size_t bytes) {
    crc = ~crc;
    for (; bytes >= 8; bytes -= 8, data += 8) { /* eight bytes a step, whatever the byte order */
        uint32_t low = crc ^ ((uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
                              (uint32_t)data[3] << 24);
        crc = crc_table[7][low & 255] ^ crc_table[6][low >> 8 & 255] ^ crc_table[5][low >> 16 & 255] ^
              crc_table[4][low >> 24] ^ crc_table[3][data[4]] ^ crc_table[2][data[5]] ^ crc_table[1][data[6]] ^
              crc_table[0][data[7]];
    }
    for (; bytes; bytes--, data++) crc = (crc >> 8) ^ crc_table[0][(crc ^ *data) & 255];
    return ~crc;
}

static void drop_segment(struct segment *segment) {
    munmap(segment->base, segment->size);
    free(segment);
}

/* In the first place that holds `from`, `to`; beyond so many threads none is noted. */
static void note_writer(struct writer *from, struct writer *to) {
    for (int i = 0; i < IDLE_SLOTS; i++) {
        struct writer *expected = from;
        if (atomic_compare_exchange_strong(&writers[i], &expected, to)) return;
    }
}

/* At the end of a thread: its segment goes to whoever comes next. */
static void writer_ends(void *data) {
    struct writer *writer = data;
    struct segment *segment = writer->segment;
    if (segment && segment->generation == atomic_load(&state.generation))
        for (int i = 0; i < IDLE_SLOTS && segment; i++) {
            struct segment *none = NULL;
            if (atomic_compare_exchange_strong(&state.idle[i], &none, segment)) segment = NULL;
        }
    if (segment) drop_segment(segment);
    note_writer(writer, NULL);
    free(writer);
}

static void make_key(void) {
    make_crc_table();
    atomic_store(&have_key, pthread_key_create(&writer_key, writer_ends) == 0);
}

static struct writer *this_writer(void) {
    if (!atomic_load_explicit(&have_key, memory_order_acquire)) return NULL;
    unsigned generation = atomic_load(&state.generation);
    struct writer *writer = pthread_getspecific(writer_key);
    if (!writer) {
        writer = calloc(1, sizeof *writer);
        if (!writer) return NULL;
        writer->generation = generation;
        if (pthread_setspecific(writer_key, writer)) {
            free(writer);
            return NULL;
        }
        note_writer(NULL, writer);
    }
    if (writer->generation != generation) { /* after a fork: nothing of this file has been written yet */
        if (writer->segment) drop_segment(writer->segment);
        memset(writer, 0, sizeof *writer);
        writer->generation = generation;
    }
    return writer;
}

/* Blocks on the disk for a range: writing to a hole of a full disk would end the process with SIGBUS. */
static bool reserve(int file, off_t offset, size_t bytes) {
    struct rlimit limit;
    /* Beyond the limit the kernel would send SIGXFSZ, which ends the application. */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        (uint64_t)offset + bytes > (uint64_t)limit.rlim_cur)
        return errno = EFBIG, false;
    if (fallocate(file, 0, offset, (off_t)bytes) == 0) return true;
    if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) return false;
    static const uint8_t zeros[4096];
    for (size_t done = 0; done < bytes; done += sizeof zeros)
        if (pwrite(file, zeros, sizeof zeros, offset + (off_t)done) != (ssize_t)sizeof zeros) return false;
    return true;
}

static void *map_units(int file, uint64_t unit, size_t bytes) {
    off_t offset = (off_t)(unit * GPA_UNIT_BYTES);
    if (!reserve(file, offset, bytes)) return NULL;
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, offset);
    return base == MAP_FAILED ? NULL : base;
}

bool gpa_recorder_open(const char *directory) {
    char path[4096];
    pthread_once(&writer_once, make_key);
    /* Process ids come again; the clock makes the name its own. */
    int length = snprintf(path, sizeof path, "%s/%ld-%llx.gpacupti", directory, (long)getpid(),
                          (unsigned long long)gpa_real_ns());
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return false;
    }
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return false;
    struct gpa_file_header *header = map_units(file, 0, GPA_UNIT_BYTES);
    if (!header) {
        int why = errno;
        close(file);
        unlink(path);
        errno = why;
        return false;
    }
    header->version = GPA_VERSION;
    header->byte_order = GPA_BYTE_ORDER;
    header->unit_bytes = GPA_UNIT_BYTES;
    header->process_id = (uint32_t)getpid();
    header->parent_id = (uint32_t)getppid();
    header->started_ns = gpa_real_ns();
    atomic_thread_fence(memory_order_release);
    header->magic = GPA_FILE_MAGIC;
    atomic_store(&state.next_unit, 1);
    atomic_store(&state.header, header);
    atomic_store(&state.file, file);
    return true;
}

bool gpa_recorder_reopen(const char *directory) {
    static int previous = -1;
    if (previous >= 0) close(previous);
    previous = atomic_exchange(&state.file, -1);
    atomic_store(&state.header, NULL);
    atomic_fetch_add(&state.generation, 1);
    for (int i = 0; i < IDLE_SLOTS; i++) {
        struct segment *segment = atomic_exchange(&state.idle[i], NULL);
        if (segment) drop_segment(segment);
    }
    return gpa_recorder_open(directory);
}

void gpa_recorder_abandon(void) {
    int file = atomic_exchange(&state.file, -1);
    if (file >= 0) close(file);
    struct gpa_file_header *header = atomic_exchange(&state.header, NULL);
    if (header) munmap(header, GPA_UNIT_BYTES);
    atomic_fetch_add(&state.generation, 1);
    for (int i = 0; i < IDLE_SLOTS; i++) {
        struct segment *segment = atomic_exchange(&state.idle[i], NULL);
        if (segment) munmap(segment->base, segment->size); /* not freed: malloc may be locked in the child */
    }
}

bool gpa_recorder_is_open(void) { return atomic_load(&state.file) >= 0; }

void gpa_recorder_finish(void) {
    struct gpa_file_header *header = atomic_load(&state.header);
    if (header) __atomic_store_n(&header->finished, 1, __ATOMIC_RELEASE);
}

void gpa_count(enum gpa_counter counter, uint64_t amount) {
    struct gpa_file_header *header = atomic_load_explicit(&state.header, memory_order_acquire);
    if (!header) return;
    uint64_t *counters[] = {&header->launches, &header->samples, &header->kernels, &header->lost_records};
    __atomic_fetch_add(counters[counter], amount, __ATOMIC_RELAXED);
}

static struct segment *claim_idle(size_t bytes) {
    for (int i = 0; i < IDLE_SLOTS; i++) {
        if (!atomic_load_explicit(&state.idle[i], memory_order_relaxed)) continue;
        struct segment *segment = atomic_exchange(&state.idle[i], NULL);
        if (!segment) continue;
        if (segment->used + bytes <= segment->size && segment->generation == atomic_load(&state.generation))
            return segment;
        drop_segment(segment); /* nearly full */
    }
    return NULL;
}

static struct segment *new_segment(size_t bytes) {
    struct segment *segment = claim_idle(bytes);
    int file = atomic_load(&state.file);
    if (segment || file < 0) return segment;
    uint64_t units = (bytes + sizeof(struct gpa_segment_header) + GPA_UNIT_BYTES - 1) / GPA_UNIT_BYTES;
    segment = malloc(sizeof *segment);
    if (!segment) return NULL;
    uint64_t unit = atomic_fetch_add(&state.next_unit, units);
    segment->size = (size_t)units * GPA_UNIT_BYTES;
    segment->base = map_units(file, unit, segment->size);
    segment->generation = atomic_load(&state.generation);
    if (!segment->base) {
        free(segment);
        return NULL;
    }
    struct gpa_segment_header *head = (struct gpa_segment_header *)segment->base;
    head->units = (uint32_t)units;
    __atomic_store_n(&head->magic, GPA_SEGMENT_MAGIC, __ATOMIC_RELEASE);
    segment->used = sizeof *head;
    return segment;
}

void *gpa_record_begin(enum gpa_kind kind, size_t bytes) {
    struct writer *writer = this_writer();
    size_t room = sizeof(struct gpa_record_header) + ((bytes + 7) & ~(size_t)7);
    if (!writer || bytes > UINT32_MAX / 2) {
        gpa_count(GPA_COUNT_LOST, 1);
        return NULL;
    }
    if (writer->segment && writer->segment->used + room > writer->segment->size) {
        drop_segment(writer->segment);
        writer->segment = NULL;
    }
    if (!writer->segment) writer->segment = new_segment(room);
    if (!writer->segment) {
        gpa_count(GPA_COUNT_LOST, 1);
        return NULL;
    }
    uint8_t *at = writer->segment->base + writer->segment->used;
    writer->open_record = at;
    writer->open_bytes = bytes;
    ((struct gpa_record_header *)at)->reserved = (uint32_t)kind;
    return at + sizeof(struct gpa_record_header);
}

void gpa_record_end(void) {
    struct writer *writer = this_writer();
    if (!writer || !writer->open_record) return;
    struct gpa_record_header *header = (struct gpa_record_header *)writer->open_record;
    union {
        struct {
            uint32_t bytes;
            uint16_t kind, mark;
        } part;
        uint64_t whole;
    } first = {.part = {(uint32_t)writer->open_bytes, (uint16_t)header->reserved, GPA_MARK}};
    header->reserved = 0;
    uint32_t crc = crc32_of(0, (const uint8_t *)&first, sizeof first);
    header->crc = crc32_of(crc, writer->open_record + sizeof *header, writer->open_bytes);
    __atomic_store_n((uint64_t *)(void *)header, first.whole, __ATOMIC_RELEASE);
    writer->segment->used += sizeof *header + ((writer->open_bytes + 7) & ~(size_t)7);
    writer->open_record = NULL;
}

void gpa_record(enum gpa_kind kind, const void *head, size_t head_bytes, const void *tail, size_t tail_bytes) {
    uint8_t *payload = gpa_record_begin(kind, head_bytes + tail_bytes);
    if (!payload) return;
    memcpy(payload, head, head_bytes);
    if (tail_bytes) memcpy(payload + head_bytes, tail, tail_bytes);
    gpa_record_end();
}

uint64_t gpa_hash(uint64_t seed, const void *data, size_t bytes) {
    const uint8_t *at = data;
    uint64_t hash = seed ^ UINT64_C(0xcbf29ce484222325);
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    for (; bytes; bytes--, at++) hash = (hash ^ *at) * UINT64_C(0x100000001b3);
    hash = (hash ^ (hash >> 29)) * UINT64_C(0xBF58476D1CE4E5B9);
    hash ^= hash >> 32;
    return hash ? hash : 1; /* 0 says that there is none */
}

bool gpa_is_news(uint64_t id) {
    struct writer *writer = this_writer();
    if (!writer) return false;
    uint64_t *slot = &writer->news[(id ^ id >> 17) & (NEWS_SLOTS - 1)];
    if (*slot == id) return false;
    *slot = id;
    return true;
}

uint64_t gpa_name_of(const char *text, size_t bytes) {
    if (!text) return 0;
    uint64_t id = gpa_hash(1, text, bytes);
    if (gpa_is_news(id)) gpa_record(GPA_NAME, &id, sizeof id, text, bytes);
    return id;
}

uint64_t gpa_name(const char *text) { return text ? gpa_name_of(text, strnlen(text, 1 << 16)) : 0; }

static uint64_t clock_ns(clockid_t clock) {
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t gpa_monotonic_ns(void) { return clock_ns(CLOCK_MONOTONIC); }
uint64_t gpa_real_ns(void) { return clock_ns(CLOCK_REALTIME); }
uint64_t gpa_thread_id(void) {
    static __thread uint64_t id;
    if (!id) id = (uint64_t)syscall(SYS_gettid);
    return id;
}
