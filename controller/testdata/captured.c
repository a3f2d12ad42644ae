/* SPDX-License-Identifier: Apache-2.0 */
/* Ten calls of one function for each line of input, always the same but for what
 * the line's digit says, and ten of others. With LIBRARY it is the library that
 * has the functions. */
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct message {
    int tag;              /* -3 to 6                                     */
    unsigned char kind;   /* 250 to 259, modulo 256                      */
    double weight;        /* 0 to 4.5                                    */
    const char *name;     /* "even" or "odd, and longer than it need be" */
    struct message *next; /* the one before; of the first nowhere        */
    char label[8];        /* "m0" to "m9"                                */
    const char *edge;     /* "end", where memory ends, with or without 0 */
};

extern long c_level;  /* 100 to 109, or from another hundred */
extern int c_minus;   /* the same - 400 */
extern double c_odd;  /* odd[i]     */
extern float c_small; /* the same   */
long c_send(struct message *m, int count, double ratio, float part, const char *text);
long c_nest(long depth);
long c_where(int thread, const void *site, int cpu);

#ifdef LIBRARY

long c_level;
int c_minus;
double c_odd;
float c_small;
volatile long c_sink;
struct {
    signed char i8;
    short i16;
    int i32;
    long i64;
    unsigned char u8;
    unsigned short u16;
    unsigned int u32;
    unsigned long u64;
    float f32;
    double f64;
} c_wide = {-8, -16, -32, -64, 0xf8, 0xfff0, 0xffffffe0, 0xffffffffffffffc0, -3.5f, 1e300};

/* Behind each exit lie one-byte no-operations, so that the jump of a patch leads
 * 0x6f6f6f70 bytes back, where nothing is. */
#define AFTER_AN_EXIT __attribute__((noinline, patchable_function_entry(8, 8)))

long c_send(struct message *m, int count, double ratio, float part, const char *text) {
    c_sink += m->tag + count + (long)ratio + (long)part + (text != NULL);
    return count * 10 - 15;
}

static long nothing(long depth) { return depth + 1; }

/* Without a branch: its exit is its end. */
AFTER_AN_EXIT long c_nest(long depth) {
    static long (*volatile const next[])(long) = {nothing, c_nest};
    long below = next[depth > 0](depth - 1);
    c_sink += below;
    return below + depth;
}

AFTER_AN_EXIT long c_where(int thread, const void *site, int cpu) {
    c_sink += thread + cpu;
    return (long)site;
}

AFTER_AN_EXIT void c_last(void) {}

#else

/* Passes on where its call returns to. */
__asm__(".text\n"
        ".type where, @function\n"
        "where:\n"
        "    sub $8, %rsp\n"
        "    lea 1f(%rip), %rsi\n"
        "    call c_where@PLT\n"
        "1:  add $8, %rsp\n"
        "    ret\n");
void where(int thread, const void *unused, int cpu);

static const char *edges[2]; /* "end", followed by 0, and by nothing */

static void make_edges(void) {
    long page = sysconf(_SC_PAGESIZE);
    for (int i = 0; i < 2; i++) {
        char *memory = mmap(NULL, 2 * (size_t)page, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        edges[i] = memory + page - (i == 0 ? 4 : 3);
        memcpy(memory + page - (i == 0 ? 4 : 3), "end", i == 0 ? 4 : 3);
        munmap(memory + page, (size_t)page);
    }
}

static void stay_here(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void send_all(int hundreds) {
    static const double odd[] = {NAN, -INFINITY, INFINITY, -0.0, 0x1p-149,
                                 1.5, -1.5,      0x1p127,  -NAN, 0};
    static struct message m[10];
    for (int i = 0; i < 10; i++) {
        m[i] = (struct message){.tag = i - 3, .kind = (unsigned char)(250 + i), .weight = i * 0.5};
        m[i].name = i % 2 == 0 ? "even" : "odd, and longer than it need be";
        m[i].next = i == 0 ? (struct message *)8 : &m[i - 1];
        m[i].edge = edges[i % 2];
        snprintf(m[i].label, sizeof m[i].label, "m%d", i);
        c_level = 100 * hundreds + i;
        c_minus = (int)c_level - 400;
        c_odd = odd[i];
        c_small = (float)odd[i];
        void *volatile block = malloc(777);
        free(block);
        c_send(&m[i], i % 3, i - 4.5, (float)i * 0.25f, i == 5 ? NULL : "text");
        where(gettid(), NULL, sched_getcpu());
    }
    c_nest(3);
    c_nest(5);
}

int main(void) {
    char line[64];

    make_edges();
    stay_here();
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        void *volatile block = malloc(100); /* a safe point */
        free(block);
        if (line[0] != '0')
            send_all(line[0] - '0');
        puts("done");
    }
    return 0;
}

#endif
