/* SPDX-License-Identifier: Apache-2.0 */
/* Leads the calls of a program that waits in the start gate to the hooks that enter on
 * demand: those of its own file, by its relocations. */
#include "controller.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[ATTUNE_HOOK_COUNT] = {
#define HOOK(index, name, family, value, extra) [index] = #name,
#include "attune/dmlib_hooks.def"
#undef HOOK
};

struct object {
    const char *file; /* mapped as it is on disk */
    uint64_t bias;
    int memory; /* of the process */
    struct attune_hook_entry entries[ATTUNE_HOOK_COUNT];
};

static const Elf64_Phdr *segments(const struct object *o, uint16_t *count) {
    const Elf64_Ehdr *header = (const void *)o->file;
    *count = header->e_phnum;
    return (const void *)(o->file + header->e_phoff);
}

static const void *in_file(const struct object *o, uint64_t address) {
    uint16_t count;
    const Elf64_Phdr *segment = segments(o, &count);
    for (; count > 0; count--, segment++)
        if (segment->p_type == PT_LOAD && address - segment->p_vaddr < segment->p_filesz)
            return o->file + segment->p_offset + (address - segment->p_vaddr);
    fail("address %#lx is in no segment", address);
}

static uint64_t dynamic(const struct object *o, int64_t tag) {
    uint16_t count;
    const Elf64_Phdr *segment = segments(o, &count);
    for (; count > 0; count--, segment++)
        if (segment->p_type == PT_DYNAMIC)
            for (const Elf64_Dyn *d = (const void *)(o->file + segment->p_offset);
                 d->d_tag != DT_NULL; d++)
                if (d->d_tag == tag)
                    return d->d_un.d_val;
    return 0;
}

static void lead(const struct object *o, const Elf64_Rela *relocation) {
    const Elf64_Sym *symbols = in_file(o, dynamic(o, DT_SYMTAB));
    const char *texts = in_file(o, dynamic(o, DT_STRTAB));
    const char *name = texts + symbols[ELF64_R_SYM(relocation->r_info)].st_name;
    for (unsigned i = 0; i < ATTUNE_HOOK_COUNT; i++)
        if (o->entries[i].hook != 0 && strcmp(names[i], name) == 0 &&
            pwrite(o->memory, &o->entries[i].hook, 8, (off_t)(o->bias + relocation->r_offset)) < 0)
            fail("write the slot of %s", name);
}

static void lead_table(const struct object *o, int64_t place, int64_t size) {
    uint64_t bytes = dynamic(o, size);
    const Elf64_Rela *table = bytes == 0 ? NULL : in_file(o, dynamic(o, place));
    for (uint64_t i = 0; i < bytes / sizeof(*table); i++)
        if (ELF64_R_TYPE(table[i].r_info) == R_X86_64_JUMP_SLOT ||
            ELF64_R_TYPE(table[i].r_info) == R_X86_64_GLOB_DAT)
            lead(o, &table[i]);
}

static int open_of(const struct process *p, const char *what, int flags) {
    char path[40];
    snprintf(path, sizeof(path), "/proc/%d/%s", p->hello.pid, what);
    return open(path, flags | O_CLOEXEC);
}

/* The program lies lowest; 0 of one that has ended. */
static uint64_t lowest_mapping(const struct process *p) {
    char path[40];
    uint64_t start = 0;
    snprintf(path, sizeof(path), "/proc/%d/maps", p->hello.pid);
    FILE *maps = fopen(path, "re");
    if (maps == NULL)
        return 0;
    if (fscanf(maps, "%lx", &start) != 1)
        start = 0;
    fclose(maps);
    return start;
}

/* One that has ended meanwhile is left alone: what it would have called is counted by nobody. */
void lead_hooks(const struct process *p) {
    struct object o = {.memory = open_of(p, "mem", O_RDWR)};
    int fd = open_of(p, "exe", O_RDONLY);
    struct stat status;
    if (o.memory >= 0 && fd >= 0 && fstat(fd, &status) == 0 &&
        pread(o.memory, o.entries, sizeof(o.entries), (off_t)p->header->hook_entry) ==
            sizeof(o.entries)) {
        void *file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file == MAP_FAILED)
            fail("map the program");
        o.file = file;
        uint64_t start = lowest_mapping(p);
        o.bias = ((const Elf64_Ehdr *)file)->e_type == ET_DYN ? start : 0;
        if (start != 0) {
            lead_table(&o, DT_JMPREL, DT_PLTRELSZ);
            lead_table(&o, DT_RELA, DT_RELASZ);
        }
        munmap(file, (size_t)status.st_size);
    }
    if (o.memory >= 0)
        close(o.memory);
    if (fd >= 0)
        close(fd);
}
