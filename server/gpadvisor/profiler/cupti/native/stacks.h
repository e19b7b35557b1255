/* SPDX-License-Identifier: Apache-2.0 */
/* The host call stack of a launch: native frames, and Python's where an interpreter is in the process. */
#ifndef GPADVISOR_STACKS_H
#define GPADVISOR_STACKS_H

#include <stdint.h>

/* Look for an interpreter, warm up the unwinder. Not on the launch path. */
void gpa_stacks_prepare(void);
/* Record this thread's stack where it is new, and return its id; 0: none. */
uint64_t gpa_stack_here(void);
/* Name the native addresses met since the last call; takes the loader's lock, so never on the launch path. */
void gpa_stacks_name_addresses(void);
void gpa_stacks_forget(void); /* in another file, every address is named again */

/* Python's frames of this thread, innermost first; returns their number. */
uint32_t gpa_python_frames(uint64_t *ids, uint32_t room);
void gpa_python_prepare(void);

#endif
