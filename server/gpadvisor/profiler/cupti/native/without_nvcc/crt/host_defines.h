/* SPDX-License-Identifier: Apache-2.0 */
/* What the headers of CUPTI and the CUDA runtime want of crt/host_defines.h in a C program. That file is in the package
 * of nvcc, which nothing else here needs; this one is searched last. */
#ifndef __HOST_DEFINES_H__
#define __HOST_DEFINES_H__

#define CUDARTAPI
#define CUDARTAPI_CDECL
#define __host__
#define __device__
#define __cudart_builtin__
#define __device_builtin__
#define __device_builtin_surface_type__
#define __device_builtin_texture_type__
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)

#endif
