/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one place that chooses machine-dependent code. An architecture gives
 *
 *   dm_ticks()          cheap, monotonic, the same on all processors
 *   DM_MILLISECOND      at least so many ticks, for coarse waiting only
 *   dm_pause()          between two looks at a word that another processor writes
 *   dm_count_own(p)     (*p)++, releasing, by the thread that owns it
 *   dm_syscall(...)     result or -errno; never touches errno
 *   DM_STUB_*           where the GOT stubs are, none where count is 0
 */
#ifndef DM_ARCH_H
#define DM_ARCH_H

#if defined(__x86_64__) && defined(__LP64__) && !defined(DM_ARCH_GENERIC)
#include "arch_x86_64.h"
#else
#include "arch_generic.h"
#endif

#endif
