/* SPDX-License-Identifier: Apache-2.0 */
/* The start gate: good, refused, broken, slow; and what the program notices. */
#include "controller.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void trace_locks(struct controller *c, struct process *p) {
    (void)c;
    control_set(p, P_LOCK, ATTUNE_CTL_EVENT);
}

static void registers(void) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, "pairs 100");
    session_end(&s);
    struct process *p = s.process;
    EXPECT_EQUAL(p->hello.pid, s.pid);
    EXPECT_EQUAL(p->hello.flags, 0);
    EXPECT_EQUAL(p->ready.status, ATTUNE_READY_OK);
    EXPECT_EQUAL(p->header->pid, s.pid);
    EXPECT_EQUAL(p->header->state, 1);
    EXPECT_EQUAL(p->header->stub_count, ATTUNE_STUB_COUNT);
    EXPECT(p->header->dmlib_base != 0 && p->header->dmlib_base % 4096 == 0);
    EXPECT(p->header->stub_entry > p->header->dmlib_base);
    EXPECT_EQUAL(p->received[P_LOCK], 100); /* from the first on: go came after place */
    EXPECT_EQUAL(s.controller.count, 1);
    session_close(&s);
}

/* What the program's children see: KEPT shows that nothing else was touched. */
static void expect_environment(enum manner manner, const char *extra, const char *want) {
    const char *library = manner == MANNER_SILENT ? library_path : NULL;
    struct session s = {.library = library, .controller.manner = manner, .extra = extra};
    session_spawn(&s, "environment");
    session_end(&s);
    EXPECT(strcmp(s.text, want) == 0, "manner %d: got %s, want %s", manner, s.text, want);
    session_close(&s);
}

static void failures_leave_a_clean_environment(void) {
    static const enum manner manners[] = {MANNER_REFUSE, MANNER_SILENT, MANNER_UNSEALED,
                                          MANNER_BAD_MAGIC, MANNER_BAD_SIZE};
    for (size_t i = 0; i < sizeof(manners) / sizeof(manners[0]); i++)
        expect_environment(manners[i], "KEPT=kept", "none  kept\ndone\n");
}

static void success_keeps_the_environment(void) {
    char want[600];
    snprintf(want, sizeof(want), "%s socket kept\ndone\n", long_gate_path);
    expect_environment(MANNER_NORMAL, "KEPT=kept", want);
}

static void once_cleans_the_environment(void) {
    expect_environment(MANNER_NORMAL, "ATTUNE_ONCE=1", "none  lost\ndone\n");
}

static void preloaded_without_socket(const char *preload, const char *extra, const char *want) {
    char *argv[] = {(char *)target_path, "environment", NULL};
    char text[600];
    int output;
    pid_t pid = spawn(preload, NULL, argv, extra, &output);
    read_all(output, text, sizeof(text));
    EXPECT_EQUAL(finish(pid), 0);
    EXPECT(strcmp(text, want) == 0, "preload %s: got %s, want %s", preload, text, want);
}

static void no_socket_cleans_its_own_entry_only(void) {
    char list[600];
    preloaded_without_socket(library_path, "KEPT=kept", "none  kept\ndone\n");
    snprintf(list, sizeof(list), "%s:libm.so.6", library_path);
    preloaded_without_socket(list, "KEPT=kept", "libm.so.6  kept\ndone\n");
    snprintf(list, sizeof(list), "libm.so.6 %s:libdl.so.2", library_path);
    preloaded_without_socket(list, "KEPT=kept", "libm.so.6:libdl.so.2  kept\ndone\n");
}

static void socket_without_listener(void) {
    preloaded_without_socket(library_path, "ATTUNE_SOCKET=/nonexistent/gate.sock",
                             "none  lost\ndone\n");
    preloaded_without_socket(library_path, "ATTUNE_SOCKET=", "none  lost\ndone\n");
}

/* The seconds that a program takes under a controller that is too slow. */
static double time_with_slow_controller(enum manner manner, bool instrumented) {
    struct session s = {
        .library = library_path, .controller.manner = manner, .controller.place = trace_locks};
    double start = now_seconds();
    session_spawn(&s, "pairs 10");
    session_end_undrained(&s);
    double took = now_seconds() - start;
    s.process = controller_process(&s.controller, 0);
    if (instrumented)
        EXPECT_EQUAL(drain(s.process, NULL, NULL), 10);
    else
        EXPECT(s.process->ready.magic == 0);
    session_close(&s);
    return took;
}

/* All waiting is bounded, whether the answer or go is missing. */
static void slow_controller_is_left_behind(enum manner manner, bool instrumented) {
    double took = 0;
    for (int tries = 0; tries == 0 || (took >= 1.5 && tries < TRIES); tries++) {
        took = time_with_slow_controller(manner, instrumented);
        EXPECT(took > 0.2, "took %.3f s", took);
    }
    EXPECT(took < 1.5, "took %.3f s", took);
}

static void silent_controller(void) { slow_controller_is_left_behind(MANNER_SILENT, false); }
static void go_missing(void) { slow_controller_is_left_behind(MANNER_NO_GO, true); }

/* The controller offers files that are too big for the address space. */
static void address_space_is_small(void) {
    struct session s = {.controller.padding = 1ull << 30};
    session_start(&s, "limit 256");
    session_end(&s);
    controller_process(&s.controller, 3);
    EXPECT_EQUAL(s.controller.count, 4); /* the program, then three attempts */
    for (int i = 1; i < 4; i++) {
        struct process *p = controller_process(&s.controller, i);
        EXPECT_EQUAL(p->hello.attempt, i - 1);
        EXPECT_EQUAL(p->ready.status, ATTUNE_READY_NO_MAP);
        EXPECT_EQUAL(p->ready.error, 12 /* ENOMEM */);
        EXPECT_EQUAL(p->header->state, 0);
    }
    session_close(&s);
}

/* A program that keeps its limit keeps it with us, and goes on being measured. */
static void program_locks_its_memory(void) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, "lockall 8");
    session_end(&s);
    EXPECT_EQUAL(controller_process(&s.controller, 1)->received[P_LOCK], 20);
    EXPECT_EQUAL(lost(controller_process(&s.controller, 1)), 0);
    session_close(&s);
}

static void descriptors_are_untouched(void) {
    struct session s = {0};
    session_start(&s, "open");
    session_end(&s);
    EXPECT(strcmp(s.text, "3\ndone\n") == 0, "output %s", s.text);
    session_close(&s);
}

static void program_closes_all_descriptors(void) {
    struct session s = {.controller.place = trace_locks};
    session_start(&s, "closeall 1000");
    session_end(&s);
    EXPECT_EQUAL(s.process->received[P_LOCK], 1000);
    session_close(&s);
}

static void static_binary_runs(void) {
    char path[500];
    struct session s = {0};
    snprintf(path, sizeof(path), "%s/target-static pairs 100", directory_path);
    session_spawn(&s, path);
    session_end(&s);
    EXPECT(strcmp(s.text, "done\n") == 0, "output %s", s.text);
    EXPECT_EQUAL(s.controller.count, 0);
    session_close(&s);
}

const struct test_case gate_cases[] = {
    {"registers", registers},
    {"failures_leave_clean_environment", failures_leave_a_clean_environment},
    {"success_keeps_environment", success_keeps_the_environment},
    {"once_cleans_environment", once_cleans_the_environment},
    {"no_socket_cleans_own_entry", no_socket_cleans_its_own_entry_only},
    {"socket_without_listener", socket_without_listener},
    {"silent_controller", silent_controller},
    {"go_missing", go_missing},
    {"small_address_space", address_space_is_small},
    {"lockall", program_locks_its_memory},
    {"descriptors_untouched", descriptors_are_untouched},
    {"close_all", program_closes_all_descriptors},
    {"static_binary", static_binary_runs},
    {NULL, NULL},
};
