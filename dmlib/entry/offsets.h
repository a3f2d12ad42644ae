/* SPDX-License-Identifier: Apache-2.0 */
/* What start_x86_64.S reads of struct attune_entry. */
#define ENTRY_BASE 0
#define ENTRY_SIZE 8
#define ENTRY_FRAME 16
#define ENTRY_UNMAP 24
