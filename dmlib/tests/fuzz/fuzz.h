/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What parses hostile input has a fuzzer here: a file with one function, which
 * libFuzzer calls with what it makes up (`make fuzz`), and replay.c with what is
 * committed in corpus/ (`make test`).
 */
#ifndef DM_TEST_FUZZ_H
#define DM_TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../expect.h"

/* Parses the input and ends the process if what comes out breaks a promise. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The inputs that the parser has accepted so far. A corpus of which it accepts
 * nothing, since the format has changed, proves nothing. */
extern unsigned long fuzz_accepted;

#endif
