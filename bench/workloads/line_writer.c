/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines of 35 bytes to a standard output that writes each of them at once, for
 * SECONDS. What it shows of its progress goes where standard output was before;
 * the lines go to /dev/null.
 *
 *     line_writer SECONDS [none|line|full]
 */
#include "workload.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BATCH = 1000 };

static int mode_of(const char *name) {
    if (strcmp(name, "full") == 0)
        return _IOFBF;
    return strcmp(name, "none") == 0 ? _IONBF : _IOLBF;
}

/* Leads standard output to /dev/null; returns what it was. */
static FILE *shown_elsewhere(void) {
    int shown = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY);

    if (shown < 0 || null < 0 || dup2(null, STDOUT_FILENO) < 0) {
        perror("standard output");
        exit(1);
    }
    close(null);
    return fdopen(shown, "w");
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    FILE *shown = shown_elsewhere();
    struct progress p;
    uint64_t lines = 0;
    int i;

    setvbuf(stdout, NULL, mode_of(argc > 2 ? argv[2] : "line"), BUFSIZ);
    p = progress_begin_on(shown);
    do
        for (i = 0; i < BATCH; i++, lines++)
            printf("line %010llu of many that it writes\n",
                   (unsigned long long)(lines % 10000000000u));
    while (progress_step(&p, lines) < seconds);
    progress_end(&p, lines);
    return 0;
}
