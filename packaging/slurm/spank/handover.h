/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Telling the node's service of a task that is about to start: one HTTP request
 * over its local socket, as docs/reference/slurm.md has it.
 */
#ifndef ATTUNE_SLURM_HANDOVER_H
#define ATTUNE_SLURM_HANDOVER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The most bytes that an answer's environment may have, with the final 0. */
enum { ANSWER_BYTES = 2048 };

/* The same of what the service has to say of a task that it takes; more is cut off. */
enum { NOTE_BYTES = 512 };

/* The same of all that the service sends. */
enum { REPLY_BYTES = ANSWER_BYTES + NOTE_BYTES + 1024 };

/* What is said of a task. Text is put in as it is, but for the objective: it has no
 * quotes and no backslashes. */
struct task {
    pid_t pid;
    uid_t uid;
    uint32_t rank;
    const char *mode;
    const char *tunlets;   /* names with commas between them; empty: all */
    const char *objective; /* whatever the user wrote; empty: nothing */
    const char *job;
    const char *step;
};

/*
 * hand_over sends a task to the service that listens on the Unix socket, and
 * fills answer with lines NAME=VALUE that its environment is to have. It takes
 * at most *budget_ms, which it reduces by what it took.
 *
 * Returns 0, with what the task asked for and does not get in note, which is empty
 * if that is nothing; or -1 with a reason in answer. Allocates nothing, and leaves no
 * descriptor and no signal behind.
 */
int hand_over(const char *socket, const struct task *task, int *budget_ms,
              char answer[ANSWER_BYTES], char note[NOTE_BYTES]);

/* read_reply is the end of hand_over: it makes answer and note of all that the service
 * has sent, a text of less than REPLY_BYTES, which it may change. */
int read_reply(char *reply, char answer[ANSWER_BYTES], char note[NOTE_BYTES]);

#endif
