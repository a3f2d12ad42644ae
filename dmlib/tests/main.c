/* SPDX-License-Identifier: Apache-2.0 */
/* `tests LIBRARY TARGET [NAME...]`: each test in a process of its own. */
#include "controller.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *library_path, *long_gate_path, *target_path, *directory_path;

extern const struct test_case gate_cases[], process_cases[], event_cases[], command_cases[],
    shared_cases[], confined_cases[], left_cases[], changed_cases[];

static const struct test_case *const suites[] = {gate_cases,    process_cases, event_cases,
                                                 command_cases, shared_cases,  confined_cases,
                                                 left_cases,    changed_cases};

static bool run(const struct test_case *test) {
    int status;
    double start = now_seconds();
    fflush(NULL);
    pid_t self = getpid(), pid = fork();
    if (pid == 0) {
        die_with(self);
        test->run();
        exit(0);
    }
    waitpid(pid, &status, 0);
    printf("%-4s %-32s %6.3f s\n", status == 0 ? "ok" : "FAIL", test->name, now_seconds() - start);
    return status == 0;
}

static bool wanted(const struct test_case *test, char **names, int count) {
    for (int i = 0; i < count; i++)
        if (strcmp(test->name, names[i]) == 0)
            return true;
    return count == 0;
}

int main(int argc, char **argv) {
    int failed = 0, passed = 0;
    if (argc < 3)
        fail("usage: tests LIBRARY TARGET [NAME...]");
    library_path = argv[1];
    target_path = argv[2];
    directory_path = dirname(strdup(target_path));
    char long_gate[500];
    snprintf(long_gate, sizeof(long_gate), "%s/long-gate/libattune-dm.so", directory_path);
    long_gate_path = long_gate;
    for (size_t s = 0; s < sizeof(suites) / sizeof(suites[0]); s++)
        for (const struct test_case *test = suites[s]; test->name != NULL; test++) {
            if (!wanted(test, argv + 3, argc - 3))
                continue;
            if (run(test))
                passed++;
            else
                failed++;
        }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0 || passed == 0;
}
