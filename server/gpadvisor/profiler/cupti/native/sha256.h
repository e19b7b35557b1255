/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPADVISOR_SHA256_H
#define GPADVISOR_SHA256_H
#include <stddef.h>
#include <stdint.h>
/* SHA-256 as FIPS 180-4 defines it. */
void gpa_sha256(const void *data, size_t bytes, uint8_t digest[32]);
#endif
