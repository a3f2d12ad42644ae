/* SPDX-License-Identifier: Apache-2.0 */
/* Gives a fuzzer's function each file that is named, whole and cut off at each
 * length, and fails if none is accepted. */
#include <string.h>

#include "fuzz.h"

static size_t read_file(const char *path, uint8_t *to, size_t room) {
    FILE *file = fopen(path, "rb");
    EXPECT(file != NULL);
    size_t size = fread(to, 1, room, file);
    EXPECT(size < room && ferror(file) == 0);
    fclose(file);
    return size;
}

/* In memory of exactly that size, so that the sanitizers see a byte too many. */
static void give(const uint8_t *data, size_t size) {
    uint8_t *copy = malloc(size);
    if (size > 0)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

int main(int argc, char **argv) {
    static uint8_t input[1 << 16];
    for (int i = 1; i < argc; i++) {
        size_t size = read_file(argv[i], input, sizeof(input));
        for (size_t cut = 0; cut <= size; cut++)
            give(input, cut);
    }
    EXPECT(fuzz_accepted > 0);
    return 0;
}
