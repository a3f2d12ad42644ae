/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what the plugin reads of the service's reply (dmlib/tests/fuzz/fuzz.h). It
 * runs as root in slurmstepd, and another process may listen on the socket. */
#include <string.h>

#include "../../../../dmlib/tests/fuzz/fuzz.h"
#include "../handover.h"

unsigned long fuzz_accepted;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size >= REPLY_BYTES)
        return 0;
    char *reply = malloc(size + 1), *answer = malloc(ANSWER_BYTES), *note = malloc(NOTE_BYTES);
    if (size > 0)
        memcpy(reply, data, size);
    reply[size] = 0;
    int result = read_reply(reply, answer, note);
    size_t length = strnlen(answer, ANSWER_BYTES);
    EXPECT(length < ANSWER_BYTES);
    EXPECT(strnlen(note, NOTE_BYTES) < NOTE_BYTES && strpbrk(note, "\r\n\33") == NULL);
    if (result == 0)
        fuzz_accepted++;
    else /* one line for the user and the log */
        EXPECT(result == -1 && length > 0 && strpbrk(answer, "\r\n") == NULL);
    free(reply);
    free(note);
    free(answer);
    return 0;
}
