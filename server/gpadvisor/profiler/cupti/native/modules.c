/* SPDX-License-Identifier: Apache-2.0 */
/* Every machine code image that the driver loads, stored once under its sha256. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector.h"
#include "sha256.h"

struct known {
    struct gpa_module record;
    struct known *next;
};

static _Atomic(struct known *) known_images;

static bool write_all(int file, const uint8_t *data, size_t bytes) {
    while (bytes) {
        ssize_t done = write(file, data, bytes);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        data += done;
        bytes -= (size_t)done;
    }
    return true;
}

/* Under another name first: a file that bears its hash is whole. */
static bool store_image(const uint8_t digest[32], const void *image, size_t bytes) {
    char folder[4096], path[4200], temporary[4200];
    static _Atomic unsigned serial;
    int length = snprintf(folder, sizeof folder, "%s/cubins", gpa_options.directory);
    if (length < 0 || (size_t)length >= sizeof folder) return errno = ENAMETOOLONG, false;
    if (mkdir(folder, 0777) && errno != EEXIST) return false;
    char hex[65];
    for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    snprintf(path, sizeof path, "%s/%s.cubin", folder, hex);
    if (access(path, F_OK) == 0) return true;
    snprintf(temporary, sizeof temporary, "%s/.%ld-%u", folder, (long)getpid(), atomic_fetch_add(&serial, 1));
    int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0) return false;
    bool good = write_all(file, image, bytes);
    int why = errno;
    good = close(file) == 0 && good;
    if (good && rename(temporary, path) == 0) return true;
    unlink(temporary);
    errno = why;
    return false;
}

static const struct known *find_known(uint64_t crc, size_t bytes) {
    for (const struct known *at = atomic_load(&known_images); at; at = at->next)
        if (at->record.crc == crc && at->record.size == bytes) return at;
    return NULL;
}

static void remember(const struct gpa_module *record) {
    struct known *fresh = malloc(sizeof *fresh);
    if (!fresh) return;
    fresh->record = *record;
    fresh->next = atomic_load(&known_images);
    while (!atomic_compare_exchange_weak(&known_images, &fresh->next, fresh)) {}
}

void gpa_modules_again(const char *before) {
    char from[4400], to[4400], folder[4200];
    snprintf(folder, sizeof folder, "%.4000s/cubins", gpa_options.directory);
    if (mkdir(folder, 0777) && errno != EEXIST) return;
    for (const struct known *at = atomic_load(&known_images); at; at = at->next) {
        char hex[65];
        for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", at->record.sha256[i]);
        snprintf(from, sizeof from, "%.4000s/cubins/%s.cubin", before, hex);
        snprintf(to, sizeof to, "%s/%s.cubin", folder, hex);
        if (link(from, to) && errno != EEXIST) gpa_note(GPA_STAGE_MODULE, errno, 0, strerror(errno));
        gpa_record(GPA_MODULE, &at->record, sizeof at->record, NULL, 0);
    }
}

void gpa_module_loaded(uint32_t context, uint32_t module, const void *image, size_t bytes) {
    if (!image || !bytes) return;
    CUpti_GetCubinCrcParams params = {.size = CUpti_GetCubinCrcParamsSize, .cubinSize = bytes, .cubin = image};
    CUptiResult result = gpa_cupti.cuptiGetCubinCrc(&params);
    if (result != CUPTI_SUCCESS) {
        gpa_note_result(GPA_STAGE_MODULE, result, context);
        params.cubinCrc = 0;
    }
    struct gpa_module record = {.context = context, .module = module, .crc = params.cubinCrc, .size = bytes};
    const struct known *known = params.cubinCrc ? find_known(params.cubinCrc, bytes) : NULL;
    if (known) {
        memcpy(record.sha256, known->record.sha256, 32);
    } else {
        gpa_sha256(image, bytes, record.sha256);
        if (!store_image(record.sha256, image, bytes))
            gpa_note(GPA_STAGE_MODULE, errno, context, strerror(errno));
    }
    if (params.cubinCrc) remember(&record);
    gpa_record(GPA_MODULE, &record, sizeof record, NULL, 0);
}
