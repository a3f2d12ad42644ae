/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The programs of uprobes.bpf.c for points that capture. They are loaded when
 * such a point comes: the kernel takes 40 ms to verify each of them, and 5 for
 * one of the others.
 */
#define CAPTURES 1
#include "uprobes.bpf.c"
