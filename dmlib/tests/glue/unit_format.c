/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of a packed file, and what is written of its parts. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "unit.h"

enum { STORED_AT = 16, COMPRESSED_AT = 64, TABLE_AT = 512, PARTS = 2 };

struct pack_record *record_of(struct file *file) {
    return (void *)(file->bytes + file->size - sizeof(struct pack_record));
}

struct pack_part *part_of(struct file *file, unsigned number) {
    return (struct pack_part *)(file->bytes + TABLE_AT) + number;
}

void seal(struct file *file) {
    struct pack_record *record = record_of(file);
    record->table_hash = xxh64(file->bytes + TABLE_AT, PARTS * sizeof(struct pack_part));
    record->content_hash = xxh64(file->bytes, file->size - sizeof(*record));
    record->record_hash = xxh64(record, offsetof(struct pack_record, record_hash));
}

struct file make_file(void) {
    struct file file = {.size = TABLE_AT + PARTS * sizeof(struct pack_part) +
                                sizeof(struct pack_record)};
    char *decoded = malloc(DECODED_SIZE);
    memset(decoded, 'z', DECODED_SIZE);
    memcpy(file.bytes + STORED_AT, STORED_TEXT, strlen(STORED_TEXT));
    size_t compressed = ZSTD_compress(file.bytes + COMPRESSED_AT, TABLE_AT - COMPRESSED_AT, decoded,
                                      DECODED_SIZE, 1);
    EXPECT(!ZSTD_isError(compressed));
    free(decoded);
    *part_of(&file, 0) = (struct pack_part){.kind = PACK_PROGRAM,
                                            .encoding = PACK_STORED,
                                            .offset = STORED_AT,
                                            .stored_size = strlen(STORED_TEXT),
                                            .size = strlen(STORED_TEXT),
                                            .mode = 0755,
                                            .name = "program"};
    *part_of(&file, 1) = (struct pack_part){.kind = PACK_CONTROLLER,
                                            .encoding = PACK_ZSTD,
                                            .offset = COMPRESSED_AT,
                                            .stored_size = compressed,
                                            .size = DECODED_SIZE,
                                            .mode = 0755,
                                            .name = "attune"};
    *record_of(&file) = (struct pack_record){.magic = PACK_MAGIC,
                                             .version = PACK_VERSION,
                                             .record_size = sizeof(struct pack_record),
                                             .file_size = file.size,
                                             .table_offset = TABLE_AT,
                                             .part_count = PARTS,
                                             .part_size = sizeof(struct pack_part),
                                             .machine = PACK_MACHINE};
    seal(&file);
    return file;
}

static void expect_refused(struct file *file, const char *why, int line) {
    struct pack pack = {.fd = -1};
    const char *said = complaint(&pack, file->bytes, file->size);
    if (said != NULL && strstr(said, why) != NULL)
        return;
    fprintf(stderr, "FAIL: line %d: the file is %s, want %s\n", line, said ? said : "accepted",
            why);
    exit(1);
}

/* A good file in which one thing is wrong, with fitting checksums. */
#define WRONG(change, why)                                                                         \
    do {                                                                                           \
        struct file file = make_file();                                                            \
        struct pack_record *r = record_of(&file);                                                  \
        struct pack_part *p = part_of(&file, 1);                                                   \
        (void)r, (void)p;                                                                          \
        change;                                                                                    \
        seal(&file);                                                                               \
        expect_refused(&file, why, __LINE__);                                                      \
    } while (0)

static void check_refusals(void) {
    const char *cut = "cut off", *format = "in another format", *table = "its table does not fit",
               *part = "part 1 makes no sense";
    WRONG(r->magic[0] = 'X', cut);
    WRONG(r->version++, format);
    WRONG(r->record_size--, format);
    WRONG(r->part_size++, format);
    WRONG(r->machine++, format);
    WRONG(r->file_size--, "bytes of");
    WRONG(r->part_count = 0, table);
    WRONG(r->part_count = PACK_PARTS_MAX + 1, table);
    WRONG(r->part_count = UINT32_MAX, table);
    WRONG(r->table_offset += 4, table);
    WRONG(r->table_offset = UINT64_MAX - 7, table);
    WRONG(r->table_offset += 8, table); /* into the record */
    WRONG(p->offset = UINT64_MAX, part);
    WRONG(p->offset = file.size, part);
    WRONG(p->stored_size = UINT64_MAX, part);
    WRONG(p->stored_size = file.size, part);
    WRONG(p->stored_size = file.size - sizeof(*r) - p->offset + 1, part); /* into the record */
    WRONG(p->encoding = 2, part);
    WRONG(p->encoding = PACK_STORED, part); /* of another size than it has decoded */
    WRONG(p->name[0] = 0, part);
    WRONG(memcpy(p->name, "..", 3), part);
    WRONG(memcpy(p->name, "a/b", 4), part);
    WRONG(memset(p->name, 'a', sizeof(p->name)), part);
}

void test_format(void) {
    struct pack pack = {.fd = -1};
    struct file file = make_file();
    EXPECT(complaint(&pack, file.bytes, file.size) == NULL);
    EXPECT(pack_intact(&pack));
    EXPECT(pack_find(&pack, PACK_PROGRAM) == &pack.parts[0]);
    EXPECT(pack_find(&pack, PACK_CONTROLLER) == &pack.parts[1]);
    EXPECT(pack_find(&pack, PACK_LIBRARY) == NULL);

    file.bytes[STORED_AT] ^= 1; /* damage that the whole file's checksum finds */
    EXPECT(complaint(&pack, file.bytes, file.size) == NULL && !pack_intact(&pack));
    for (file.size = 0; file.size < sizeof(struct pack_record); file.size++)
        expect_refused(&file, "cut off", __LINE__);
    file = make_file();
    record_of(&file)->flags ^= 1;
    expect_refused(&file, "its record does not fit", __LINE__);
    check_refusals();
}

/* Writes part 0 or 1 of a file, and returns what became of it. */
static int written(struct file *file, unsigned number, char *text, size_t room) {
    struct pack pack = {.fd = -1};
    EXPECT(complaint(&pack, file->bytes, file->size) == NULL);
    int fd = memfd_create("part", MFD_CLOEXEC);
    EXPECT(fd >= 0);
    int result = pack_write(&pack, &pack.parts[number], fd) ? 0 : errno;
    ssize_t size = pread(fd, text, room, 0);
    EXPECT(result != 0 || size == (ssize_t)pack.parts[number].size);
    close(fd);
    return result;
}

static void check_limit(struct file *file, char *text) {
    struct rlimit before, low = {.rlim_cur = DECODED_SIZE - 1};
    EXPECT(getrlimit(RLIMIT_FSIZE, &before) == 0);
    low.rlim_max = before.rlim_max;
    EXPECT(setrlimit(RLIMIT_FSIZE, &low) == 0);
    int result = written(file, 1, text, DECODED_SIZE + 1);
    EXPECT(setrlimit(RLIMIT_FSIZE, &before) == 0);
    EXPECT_EQUAL(result, EFBIG); /* and not killed by SIGXFSZ */
}

void test_writing(void) {
    static char text[DECODED_SIZE + 1];
    struct file file = make_file();
    EXPECT_EQUAL(written(&file, 0, text, sizeof(text)), 0);
    EXPECT(memcmp(text, STORED_TEXT, strlen(STORED_TEXT)) == 0);
    EXPECT_EQUAL(written(&file, 1, text, sizeof(text)), 0);
    for (size_t i = 0; i < DECODED_SIZE; i++)
        EXPECT(text[i] == 'z');
    check_limit(&file, text);

    part_of(&file, 1)->size--; /* more comes out than the table says */
    seal(&file);
    EXPECT_EQUAL(written(&file, 1, text, sizeof(text)), EILSEQ);
    part_of(&file, 1)->size += 2;
    seal(&file);
    EXPECT_EQUAL(written(&file, 1, text, sizeof(text)), EILSEQ);
    file = make_file();
    file.bytes[COMPRESSED_AT] ^= 1;
    EXPECT_EQUAL(written(&file, 1, text, sizeof(text)), EILSEQ);
}

/* A file in memory that can be executed, and changed by nobody. */
void test_unpacking(void) {
    struct pack pack = {.fd = -1};
    struct file file = make_file();
    struct stat info;
    const char *where;
    char text[sizeof(STORED_TEXT)] = "";
    EXPECT(complaint(&pack, file.bytes, file.size) == NULL);
    int fd = program_file(&pack, pack_find(&pack, PACK_PROGRAM), &where);
    EXPECT(fd >= 0 && strcmp(where, "memory") == 0);
    EXPECT(fstat(fd, &info) == 0 && (info.st_mode & 0777) == 0755);
    EXPECT(read(fd, text, sizeof(text)) == (ssize_t)strlen(STORED_TEXT));
    EXPECT(strcmp(text, STORED_TEXT) == 0);
    EXPECT((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
    EXPECT((fcntl(fd, F_GET_SEALS) & F_SEAL_WRITE) != 0);
    close(fd);

    /* Beside this program, without a name. */
    record_of(&file)->flags = PACK_BESIDE;
    seal(&file);
    EXPECT(complaint(&pack, file.bytes, file.size) == NULL);
    fd = program_file(&pack, pack_find(&pack, PACK_PROGRAM), &where);
    EXPECT(fd >= 0 && where[0] == '/');
    EXPECT(fstat(fd, &info) == 0 && info.st_nlink == 0 && (info.st_mode & 0100) != 0);
    close(fd);
}
