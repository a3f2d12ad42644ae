/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is unloaded and loaded again. */
static volatile long seven = 7;
long r_counted(long a);
long r_removed(long a);
long r_counted(long a) { return a + seven; }
long r_removed(long a) { return a + 2 * seven; }
