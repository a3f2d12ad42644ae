/* SPDX-License-Identifier: Apache-2.0 */
/* What the hooks go on to, by name: slots are led to a hook from that function only. */
#include "hook.h"

#include <string.h>

/* Stand before these two where the arena was used, as hooks of our own. */
#define dm_real_free dm_libc_free
#define dm_real_realloc dm_libc_realloc

DM_EXPORT struct attune_behind attune_dm_behind[ATTUNE_BEHIND_COUNT];

struct attune_behind attune_dm_behind[ATTUNE_BEHIND_COUNT] = {
#define DM_REAL(result, hook, parameters) {.name = #hook},
#include "real.def"
#undef DM_REAL
};

void dm_real_note_behind(void) {
    struct attune_behind *next = attune_dm_behind;
#define DM_REAL(result, hook, parameters) (next++)->function = (uint64_t)(uintptr_t)dm_real_##hook;
#include "real.def"
#undef DM_REAL
}

uint64_t dm_real_behind(const char *name) {
    for (size_t i = 0; i < ATTUNE_BEHIND_COUNT; i++)
        if (strncmp(attune_dm_behind[i].name, name, ATTUNE_ATTACH_NAME) == 0)
            return attune_dm_behind[i].function;
    return 0;
}
