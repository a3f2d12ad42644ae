/* SPDX-License-Identifier: Apache-2.0 */
/* The glue's reading of a packed file, which anyone may have handed over. What
 * finds damage, checksums and sizes, is put in: it stops the fuzzer, but nobody who
 * means it. */
#include <setjmp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../glue/glue.h"
#include "fuzz.h"

/* Decoded, larger parts would only cost time. */
#define DECODED_MAX (1 << 20)

unsigned long fuzz_accepted;

static jmp_buf refused;

/* In place of the glue's, which ends the process. */
void __wrap_die(const char *format, ...);
void __wrap_die(const char *format, ...) {
    (void)format;
    longjmp(refused, 1);
}

static bool inside(uint64_t offset, uint64_t size, uint64_t limit) {
    return offset <= limit && size <= limit - offset;
}

static void mend(uint8_t *file, size_t size) {
    struct pack_record record;
    uint8_t *end = file + size - sizeof(record);
    memcpy(&record, end, sizeof(record));
    memcpy(record.magic, PACK_MAGIC, sizeof(record.magic));
    record.version = PACK_VERSION;
    record.record_size = sizeof(record);
    record.part_size = sizeof(struct pack_part);
    record.machine = PACK_MACHINE;
    record.file_size = size;
    uint64_t bytes = record.part_count * sizeof(struct pack_part);
    if (inside(record.table_offset, bytes, size - sizeof(record)))
        record.table_hash = xxh64(file + record.table_offset, bytes);
    record.content_hash = xxh64(file, size - sizeof(record));
    record.record_hash = xxh64(&record, offsetof(struct pack_record, record_hash));
    memcpy(end, &record, sizeof(record));
}

/* A part lies in the file, and is written whole or not at all. */
static void check_part(const struct pack *pack, const struct pack_part *part) {
    struct stat info;
    EXPECT(inside(part->offset, part->stored_size, pack->record.file_size));
    EXPECT(strnlen(part->name, sizeof(part->name)) < sizeof(part->name));
    EXPECT(strcmp(part->name, "..") != 0 && strchr(part->name, '/') == NULL);
    EXPECT(pack_find(pack, part->kind) != NULL);
    if (part->size > DECODED_MAX)
        return;
    int fd = memfd_create("part", MFD_CLOEXEC);
    EXPECT(fd >= 0);
    bool written = pack_write(pack, part, fd);
    EXPECT(fstat(fd, &info) == 0 && (!written || (uint64_t)info.st_size == part->size));
    close(fd);
}

static void check_pack(const struct pack *pack) {
    EXPECT(pack->record.part_count > 0 && pack->record.part_count <= PACK_PARTS_MAX);
    EXPECT(pack_intact(pack));
    for (uint32_t i = 0; i < pack->record.part_count; i++)
        check_part(pack, &pack->parts[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct pack pack = {.fd = -1};
    /* Of exactly that size, so that the sanitizers see a byte too many. */
    uint8_t *file = malloc(size);
    if (size > 0)
        memcpy(file, data, size);
    if (size >= sizeof(struct pack_record))
        mend(file, size);
    if (setjmp(refused) == 0) {
        pack_check(&pack, file, size);
        check_pack(&pack);
        fuzz_accepted++;
    }
    free(file);
    return 0;
}
