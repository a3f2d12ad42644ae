/* SPDX-License-Identifier: Apache-2.0 */
/* What the two ways to a memory file share: the gate (gate.c), and bringing
 * one's own where nobody need be waited for (early.c). Only system
 * calls. */
#ifndef DM_GATE_H
#define DM_GATE_H

#include "dmlib.h"

#include <sys/socket.h>
#include <sys/un.h>

/* Files of different sizes that are tried. */
#define DM_GATE_ATTEMPTS 3

/* dm_layout_leaves_room within the limits of this process. */
DM_HIDDEN bool dm_gate_leaves_room(uint64_t size);
/* Milliseconds, for deadlines. */
DM_HIDDEN int64_t dm_gate_now(void);
/* A millisecond. */
DM_HIDDEN void dm_gate_pause(void);
/* -1 is no descriptor. */
DM_HIDDEN void dm_gate_close(int fd);
/* A connection, or a negative errno value. */
DM_HIDDEN int dm_gate_connect(const struct sockaddr_un *to, int64_t deadline);
/* Maps a memory file of a size and introduces this process in it; ready says how that
 * went. */
DM_HIDDEN void dm_gate_map(int fd, uint64_t size, struct dm_mapping *mapping,
                           struct attune_ready *ready);
/* What the file at that path says of vm.overcommit_memory: memory is had only if it is
 * there. */
DM_HIDDEN bool dm_early_commits(const char *overcommit);
/* A file as the controller makes one; negative: there is none. All of its memory is taken
 * at once if commits. */
DM_HIDDEN int dm_early_file(const struct attune_header *header, bool commits);
/* Without waiting at the gate. True: mapping is filled, and the controller will
 * find the file. False: it wants none, or nobody would find it. */
DM_HIDDEN bool dm_early_register(struct attune_hello hello, const struct sockaddr_un *gate,
                                 int64_t deadline, struct dm_mapping *mapping);

#endif
