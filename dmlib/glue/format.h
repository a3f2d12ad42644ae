/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format of a packed file, as internal/packfile writes it; all numbers
 * little-endian, all offsets from the start of the file:
 *
 *   glue (this program) | parts, each at a multiple of 4096 | table | record
 *
 * The record has a fixed size and stands at the very end, so that it is found
 * without knowing anything, and is missing in a file that was cut off.
 */
#ifndef GLUE_FORMAT_H
#define GLUE_FORMAT_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACK_MAGIC "ATTUNEPK"
#define PACK_VERSION 1
#define PACK_PARTS_MAX 64

enum pack_flag {
    PACK_NO_PRELOAD = 1, /* the program's loader does not take DMLib */
    PACK_BESIDE = 2,     /* the program is unpacked into the packed file's folder */
    PACK_QUIET = 4,      /* nobody is told the report on standard error */
    PACK_MAY_MOVE = 8,   /* with PACK_BESIDE: elsewhere if that folder is read-only */
};

enum pack_kind {
    PACK_PROGRAM = 1,
    PACK_CONTROLLER = 2,
    PACK_TUNLET = 3,
    PACK_LIBRARY = 4,
    PACK_CONFIG = 5,
    PACK_HEADERS = 6,     /* of memory files, for ATTUNE_EARLY_HEADERS */
    PACK_TUNLET_LINK = 7, /* another name of a tunlet's file */
    PACK_DESCRIPTIONS = 8,
};

#define PACK_MACHINE EM_X86_64

enum pack_encoding { PACK_STORED = 0, PACK_ZSTD = 1 };

/* XXH64 with seed 0 everywhere: it finds damage. It is no signature: whoever
 * may write the file may run anything as its user anyway. */
struct pack_record {
    char magic[8];
    uint32_t version;
    uint32_t record_size;
    uint64_t file_size;
    uint64_t table_offset;
    uint32_t part_count;
    uint32_t part_size;
    uint64_t content_hash; /* of all bytes before the record */
    uint32_t flags;
    uint32_t machine;     /* EM_ of <elf.h> */
    char attune[56];      /* version of attune, for people */
    uint64_t table_hash;  /* of the table */
    uint64_t record_hash; /* of the record up to here */
};

struct pack_part {
    uint32_t kind;
    uint32_t encoding;
    uint64_t offset;
    uint64_t stored_size;
    uint64_t size; /* decoded */
    uint64_t hash; /* of the decoded bytes */
    uint32_t mode; /* permission bits */
    uint32_t reserved;
    char name[80]; /* NUL-terminated, without a slash */
};

_Static_assert(sizeof(struct pack_record) == 128, "fixed size");
_Static_assert(offsetof(struct pack_record, record_hash) == 120, "fixed layout");
_Static_assert(sizeof(struct pack_part) == 128, "fixed size");

/* A packed file, mapped whole and read-only. */
struct pack {
    int fd;
    const unsigned char *bytes;
    struct pack_record record;
    const struct pack_part *parts;
};

/* Checks record and table of a file in memory: whatever they say lies inside the
 * file. Does not return if the file is damaged. */
void pack_check(struct pack *pack, const void *bytes, uint64_t size);

/* Opens, maps and checks the file that this process executes. */
void pack_open(struct pack *pack);

/* Whether every byte is as it was packed. */
bool pack_intact(const struct pack *pack);

/* The only part of a kind, NULL if there is none. */
const struct pack_part *pack_find(const struct pack *pack, enum pack_kind kind);

/* Whether this process may make a file as long as a part; later: once it has raised
 * its limit as far as it may. */
bool pack_may_be_written(const struct pack_part *part, bool later);

/* Writes a part, decoded, at the end of a file. False with errno. */
bool pack_write(const struct pack *pack, const struct pack_part *part, int fd);

uint64_t xxh64(const void *data, size_t size);

#endif
