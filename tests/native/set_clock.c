/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded before all else: a wall clock that is set back or forward by a day whenever it is looked at. Waits that end
 * at a time of that clock end the process. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define DAY (24 * 60 * 60)
static _Atomic int looks;

int clock_gettime(clockid_t clock, struct timespec *to) {
    int result = (int)syscall(SYS_clock_gettime, clock, to);
    if (clock == CLOCK_REALTIME) to->tv_sec += looks++ % 2 ? DAY : -DAY;
    return result;
}

time_t time(time_t *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict to, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    to->tv_sec = now.tv_sec;
    to->tv_usec = now.tv_nsec / 1000;
    return 0;
}

int pthread_cond_timedwait(pthread_cond_t *of, pthread_mutex_t *with, const struct timespec *end) {
    (void)of, (void)with, (void)end;
    abort();
}

int pthread_mutex_timedlock(pthread_mutex_t *of, const struct timespec *end) {
    (void)of, (void)end;
    abort();
}

int sem_timedwait(sem_t *of, const struct timespec *end) {
    (void)of, (void)end;
    abort();
}
