/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and checks the packed file. */
#include "format.h"

#include "glue.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#define REMEDY "; copy it again, or pack it anew"

static void check_record(const struct pack *pack, uint64_t size) {
    const struct pack_record *r = &pack->record;
    if (memcmp(r->magic, PACK_MAGIC, sizeof(r->magic)) != 0)
        die("the file is cut off: it has %lu bytes and no record at its end" REMEDY,
            (unsigned long)size);
    if (xxh64(r, offsetof(struct pack_record, record_hash)) != r->record_hash)
        die("the file is damaged: its record does not fit its checksum" REMEDY);
    if (r->version != PACK_VERSION || r->record_size != sizeof(*r) ||
        r->part_size != sizeof(struct pack_part) || r->machine != PACK_MACHINE)
        die("the file was packed in another format; pack it anew");
    if (r->file_size != size)
        die("the file is damaged: it has %lu bytes of %lu" REMEDY, (unsigned long)size,
            (unsigned long)r->file_size);
}

static bool inside(uint64_t offset, uint64_t size, uint64_t limit) {
    return offset <= limit && size <= limit - offset;
}

static bool sound(const struct pack_part *part, uint64_t limit) {
    return inside(part->offset, part->stored_size, limit) && part->encoding <= PACK_ZSTD &&
           memchr(part->name, 0, sizeof(part->name)) != NULL && part->name[0] != '\0' &&
           part->name[0] != '.' && strchr(part->name, '/') == NULL &&
           (part->encoding != PACK_STORED || part->size == part->stored_size);
}

static void check_table(struct pack *pack) {
    const struct pack_record *r = &pack->record;
    uint64_t limit = r->file_size - sizeof(*r);
    uint64_t bytes = (uint64_t)r->part_count * sizeof(struct pack_part);
    if (r->part_count == 0 || r->part_count > PACK_PARTS_MAX || r->table_offset % 8 != 0 ||
        !inside(r->table_offset, bytes, limit) ||
        xxh64(pack->bytes + r->table_offset, bytes) != r->table_hash)
        die("the file is damaged: its table does not fit its checksum" REMEDY);
    pack->parts = (const struct pack_part *)(pack->bytes + r->table_offset);
    for (uint32_t i = 0; i < r->part_count; i++)
        if (!sound(&pack->parts[i], limit))
            die("the file is damaged: part %u makes no sense" REMEDY, i);
}

void pack_check(struct pack *pack, const void *bytes, uint64_t size) {
    if (size < sizeof(pack->record))
        die("the file is cut off" REMEDY);
    pack->bytes = bytes;
    memcpy(&pack->record, pack->bytes + size - sizeof(pack->record), sizeof(pack->record));
    check_record(pack, size);
    check_table(pack);
}

void pack_open(struct pack *pack) {
    struct stat info;
    pack->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (pack->fd < 0 || fstat(pack->fd, &info) != 0)
        die("the file cannot be read: %s; a packed program needs read permission", strerror(errno));
    uint64_t size = (uint64_t)info.st_size;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, pack->fd, 0);
    if (bytes == MAP_FAILED)
        die("the file cannot be mapped: %s", strerror(errno));
    pack_check(pack, bytes, size);
}

/* Populates what is read whole: a fault for every 16 pages would cost more
 * than the checksum. */
bool pack_intact(const struct pack *pack) {
    uint64_t size = pack->record.file_size - sizeof(pack->record);
    madvise((void *)pack->bytes, size, MADV_POPULATE_READ);
    return xxh64(pack->bytes, size) == pack->record.content_hash;
}

const struct pack_part *pack_find(const struct pack *pack, enum pack_kind kind) {
    for (uint32_t i = 0; i < pack->record.part_count; i++)
        if (pack->parts[i].kind == kind)
            return &pack->parts[i];
    return NULL;
}

static bool write_all(int fd, const void *data, size_t size) {
    for (const char *at = data; size > 0;) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            at += n;
            size -= (size_t)n;
        }
    }
    return true;
}

static bool decode(const void *data, size_t size, void *to, size_t room) {
    size_t n = ZSTD_decompress(to, room, data, size);
    if (!ZSTD_isError(n) && n == room)
        return true;
    errno = EILSEQ;
    return false;
}

/* Decoded straight into the file's own pages. */
static bool write_decoded(const struct pack *pack, const struct pack_part *part, int fd) {
    /* Not ftruncate: where there is no room, a store into the page would kill. */
    if (part->size == 0 || fallocate(fd, 0, 0, (off_t)part->size) != 0)
        return false;
    void *to = mmap(NULL, part->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (to == MAP_FAILED)
        return false;
    bool done = decode(pack->bytes + part->offset, part->stored_size, to, part->size);
    int saved = errno;
    munmap(to, part->size);
    errno = saved;
    return done;
}

bool pack_may_be_written(const struct pack_part *part, bool later) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
           part->size <= (later ? limit.rlim_max : limit.rlim_cur);
}

bool pack_write(const struct pack *pack, const struct pack_part *part, int fd) {
    if (!pack_may_be_written(part, false)) { /* who writes more is killed */
        errno = EFBIG;
        return false;
    }
    if (part->encoding == PACK_ZSTD)
        return write_decoded(pack, part, fd);
    return write_all(fd, pack->bytes + part->offset, part->stored_size);
}
