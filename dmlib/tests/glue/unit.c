/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static jmp_buf died;
static char last_words[1024];

/* In place of the glue's die, which ends the process (--wrap=die). */
_Noreturn void __wrap_die(const char *format, ...);
void __wrap_die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_words, sizeof(last_words), format, arguments);
    va_end(arguments);
    longjmp(died, 1);
}

const char *complaint(struct pack *pack, const void *bytes, uint64_t size) {
    if (setjmp(died) != 0)
        return last_words;
    pack_check(pack, bytes, size);
    return NULL;
}

/* XXH64 as another implementation (github.com/cespare/xxhash) has it: all lengths up
 * to 200, so that each remainder of a stripe occurs. */
void test_hash(void) {
    unsigned char data[200];
    uint64_t sum = 0;
    EXPECT(xxh64("", 0) == 0xef46db3751d8e999);
    EXPECT(xxh64("abc", 3) == 0x44bc2cf5ad770999);
    for (unsigned i = 0; i < sizeof(data); i++)
        data[i] = (unsigned char)(i * 7);
    for (unsigned i = 0; i <= sizeof(data); i++)
        sum = sum * 31 + xxh64(data, i);
    EXPECT(sum == 0x70ca4bc116af675e);
}

/* The name of a process may look like the fields behind it. */
void test_start_ticks(void) {
    uint64_t before = start_ticks(getpid());
    EXPECT(before > 0);
    EXPECT(prctl(PR_SET_NAME, "a) R 1 2 3 4 5") == 0);
    EXPECT(start_ticks(getpid()) == before);
    EXPECT(start_ticks(-1) == 0); /* nobody has that id */
}

void test_own_filters(void) {
    uint32_t before = own_filters();
    struct sock_filter filter[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = 1, .filter = filter};
    EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    EXPECT(own_filters() > before);
}

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1) {
        run_rank();
        return 0;
    }
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"hash", test_hash},
        {"format", test_format},
        {"writing", test_writing},
        {"unpacking", test_unpacking},
        {"start ticks", test_start_ticks},
        {"job", test_job},
        {"own filters", test_own_filters},
    };
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
        tests[i].run();
        printf("ok   glue: %s\n", tests[i].name);
    }
    return 0;
}
