/* SPDX-License-Identifier: Apache-2.0 */
/* One program under one controller, and what a test expects of it. */
#include "controller.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void fail_at(const char *file, int line, const char *condition, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "FAIL: %s:%d: %s: ", file, line, condition);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(1);
}

#define MAX_WORDS 16

void session_spawn(struct session *s, const char *arguments) {
    char line[256], *words[MAX_WORDS + 1] = {(char *)target_path};
    int count = strchr(arguments, '/') == arguments ? 0 : 1;
    snprintf(line, sizeof(line), "%s", arguments);
    for (char *word = strtok(line, " "); word != NULL && count < MAX_WORDS;
         word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    controller_start(&s->controller);
    const char *library = s->library != NULL ? s->library : long_gate_path;
    s->pid = spawn(library, &s->controller, words, s->extra, &s->output);
}

void session_start(struct session *s, const char *arguments) {
    session_spawn(s, arguments);
    s->process = controller_process(&s->controller, 0);
}

static void end(struct session *s, bool draining) {
    int status = 0;
    double deadline = now_seconds() + WAIT_SECONDS;
    while (waitpid(s->pid, &status, WNOHANG) == 0) {
        if (draining)
            drain_all(&s->controller);
        poll(NULL, 0, 1);
        EXPECT(now_seconds() < deadline, "the program hangs");
    }
    if (draining)
        drain_all(&s->controller);
    read_all(s->output, s->text, sizeof(s->text));
    EXPECT(status == 0, "status %#x, output %s", (unsigned)status, s->text);
}

void session_end(struct session *s) { end(s, true); }
void session_end_undrained(struct session *s) { end(s, false); }
void session_close(struct session *s) { controller_stop(&s->controller); }
