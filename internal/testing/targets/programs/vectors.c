/* SPDX-License-Identifier: Apache-2.0 */
/* Hard case: a thread keeps values in registers that signal frames tell of beside the
 * others: all of those of vectors that the processor has (AVX, AVX-512), and with
 * "tiles" those of its matrix unit (AMX) as well, which with "released" the thread has
 * used before. Says "none" where there is no matrix unit. */
#define _GNU_SOURCE
#include "target.h"
#include <stdint.h>
#include <sys/syscall.h>

enum { WHILE = 50000, ROWS = 16, COLUMNS = 64, REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };

static int with_tiles;

static void check_all(const uint64_t *words, int n, uint64_t want) {
    for (int i = 0; i < n; i++)
        if (words[i] != want)
            is_wrong();
}

/* The instructions by which a tile is used are too new for some assemblers. */
static void load_tile(const void *bytes) {
    const char shape[64] __attribute__((aligned(64))) = {[0] = 1, [16] = COLUMNS, [48] = ROWS};
    __asm__ volatile(".byte 0xc4,0xe2,0x78,0x49,0x00" /* ldtilecfg (%%rax) */ ::"a"(shape),
                     "m"(shape));
    __asm__ volatile(
        ".byte 0xc4,0xe2,0x7b,0x4b,0x04,0x08" /* tileloadd (%%rax,%%rcx), %%tmm0 */ ::"a"(bytes),
        "c"((long)COLUMNS)
        : "memory");
}

static void store_tile(void *bytes) {
    __asm__ volatile(
        ".byte 0xc4,0xe2,0x7a,0x4b,0x04,0x08" /* tilestored %%tmm0, (%%rax,%%rcx) */ ::"a"(bytes),
        "c"((long)COLUMNS)
        : "memory");
}

static void release_tile(void) { __asm__ volatile(".byte 0xc4,0xe2,0x78,0x49,0xc0"); }

static void in_avx(uint64_t value) {
    uint64_t kept[4];
    long n = WHILE;
    __asm__ volatile("vmovq %[value], %%xmm7\n"
                     "vpunpcklqdq %%xmm7, %%xmm7, %%xmm7\n"
                     "vinsertf128 $1, %%xmm7, %%ymm7, %%ymm7\n"
                     "1: dec %[n]\n"
                     "jnz 1b\n"
                     "vmovups %%ymm7, (%[kept])\n"
                     "vzeroupper\n"
                     : [n] "+r"(n)
                     : [value] "r"(value), [kept] "r"(kept)
                     : "memory", "xmm7");
    check_all(kept, 4, value);
}

static void in_avx512(uint64_t value) {
    uint64_t kept[17];
    long n = WHILE;
    __asm__ volatile("vpbroadcastq %[value], %%zmm7\n"
                     "vpbroadcastq %[value], %%zmm23\n"
                     "kmovq %[value], %%k3\n"
                     "1: dec %[n]\n"
                     "jnz 1b\n"
                     "vmovups %%zmm7, (%[kept])\n"
                     "vmovups %%zmm23, 64(%[kept])\n"
                     "kmovq %%k3, 128(%[kept])\n"
                     "vzeroupper\n"
                     : [n] "+r"(n)
                     : [value] "r"(value), [kept] "r"(kept)
                     : "memory", "xmm7");
    check_all(kept, 17, value);
}

static void keep(void) {
    static uint64_t round;
    uint64_t value = ++round * 0x9e3779b97f4a7c15, tile[ROWS * COLUMNS / 8];
    for (int i = 0; i < ROWS * COLUMNS / 8; i++)
        tile[i] = value;
    if (with_tiles)
        load_tile(tile);
    if (__builtin_cpu_supports("avx512bw"))
        in_avx512(value);
    else if (__builtin_cpu_supports("avx"))
        in_avx(value);
    if (with_tiles) {
        memset(tile, 0, sizeof(tile));
        store_tile(tile);
        check_all(tile, ROWS * COLUMNS / 8, value);
    }
}

static void *released(void *unused) {
    char tile[ROWS * COLUMNS] = {0};
    load_tile(tile);
    release_tile();
    (void)unused;
    return forever(keep);
}

static void *kept(void *unused) {
    (void)unused;
    return forever(keep);
}

int main(int argc, char **argv) {
    if (argc > 1 && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) != 0) {
        puts("none");
        return 0;
    }
    with_tiles = argc > 1 && strcmp(argv[1], "tiles") == 0;
    begin(argc > 1 && !with_tiles ? released : kept, 0);
    return target_serve(argv);
}
