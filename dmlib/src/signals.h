/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DM_SIGNALS_H
#define DM_SIGNALS_H

#include <stdint.h>

/* Kept back while work of ours must not be left in the middle: all signals but faults and
 * the C library's own. A fault whose signal is blocked would take the program's handler
 * away, for all threads; setuid(2) and its like wait until every thread has taken their
 * signal. */
#define DM_SIGNAL(number) (UINT64_C(1) << ((number)-1))
/* SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV and SIGSYS */
#define DM_SIGNALS_FAULTS                                                                          \
    (DM_SIGNAL(4) | DM_SIGNAL(5) | DM_SIGNAL(7) | DM_SIGNAL(8) | DM_SIGNAL(11) | DM_SIGNAL(31))
#define DM_SIGNAL_SETXID DM_SIGNAL(33)
#define DM_SIGNALS_BLOCKED (~(DM_SIGNALS_FAULTS | DM_SIGNAL_SETXID))

#endif
