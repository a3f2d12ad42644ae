/* SPDX-License-Identifier: Apache-2.0 */
/* Points that change hands while a call is under way. */
#include "controller.h"

#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TIMED (ATTUNE_CTL_AGGREGATE | ATTUNE_CTL_DURATION)
#define SUMMED ATTUNE_CTL_AGGREGATE

static void wait_until_in(pid_t pid, int call) {
    char path[64];
    int found = -1;
    double start = now_seconds();
    snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
    while (found != call) {
        EXPECT(now_seconds() < start + WAIT_SECONDS, "system call %d, not %d", found, call);
        FILE *file = fopen(path, "r");
        EXPECT(file != NULL);
        if (fscanf(file, "%d", &found) != 1)
            found = -1; /* it runs */
        fclose(file);
        usleep(1000);
    }
}

/* The call under way began as the point was, and ends as another one that has its place. */
static void change(struct session *s, int call, unsigned point, uint32_t word) {
    wait_until_in(s->pid, call);
    control_set(s->process, point, 0);
    control_set(s->process, point, word);
    kill(s->pid, SIGUSR1);
}

struct words {
    uint32_t read, lock;
};

static void place_words(struct controller *c, struct process *p) {
    const struct words *words = c->data;
    control_set(p, P_READ, words->read);
    control_set(p, P_LOCK, words->lock);
    control_set(p, P_UNLOCK, SUMMED);
}

static void run_blocked(struct session *s, struct words before, struct words after) {
    s->controller.place = place_words;
    s->controller.data = &before;
    session_start(s, "blocked");
    change(s, SYS_read, P_READ, after.read);
    change(s, SYS_futex, P_LOCK, after.lock);
    session_end(s);
    EXPECT_EQUAL(lost(s->process), 0);
}

/* Ticks are not summed up as values: one byte was read. */
static void timed_calls_end_untimed(void) {
    struct session s = {0};
    run_blocked(&s, (struct words){TIMED, ATTUNE_CTL_EVENT | ATTUNE_CTL_DURATION},
                (struct words){SUMMED, SUMMED});
    EXPECT_EQUAL(aggregate_of(s.process, P_READ).sum, 1);
    EXPECT_EQUAL(s.process->received[P_LOCK], 1); /* the holder's, before */
    EXPECT_EQUAL(aggregate_of(s.process, P_LOCK).sum * 2, aggregate_of(s.process, P_UNLOCK).sum);
    session_close(&s);
}

/* Nor are values as ticks: what was not timed when it began has no duration. */
static void untimed_calls_end_timed(void) {
    struct session s = {0};
    run_blocked(&s, (struct words){SUMMED, SUMMED}, (struct words){TIMED, TIMED});
    EXPECT_EQUAL(aggregate_of(s.process, P_READ).count, 0);
    EXPECT_EQUAL(aggregate_of(s.process, P_LOCK).count, 1); /* the holder's, before */
    session_close(&s);
}

const struct test_case changed_cases[] = {
    {"changed_to_values", timed_calls_end_untimed},
    {"changed_to_durations", untimed_calls_end_timed},
    {NULL, NULL},
};
