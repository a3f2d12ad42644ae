/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded before the other one, whose variable needs more room. */
__thread int early[4] = {5};

int *where(void) { return &early[3]; }
