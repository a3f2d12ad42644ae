/* SPDX-License-Identifier: Apache-2.0 */
/* Another static variable of the same name. */
int other_counter(void);

static volatile int counter = 2;

int other_counter(void) { return counter; }
