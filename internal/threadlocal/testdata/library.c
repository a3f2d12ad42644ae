/* SPDX-License-Identifier: Apache-2.0 */
/* Loaded late, so that its variable has no place before it is used. */
__thread int late[5000] = {7};

int *where(void) { return &late[3]; }
