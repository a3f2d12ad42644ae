/* SPDX-License-Identifier: Apache-2.0 */
/* Writes numbered lines to the file that OUT names, buffered as MODE says
 * (full, line, large: by lines in a large buffer, none), by several functions of stdio, without
 * pause while "go" has been said. With THREAD it does so in a second thread, with OTHER the file is
 * open a second time, with CHURN a thread opens and closes streams without rest. On "own" it gives
 * the stream another buffer itself, on "reopen" it opens the file anew, in the same FILE and at the
 * same descriptor. Answers what the stream says about itself. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *out;
static int threaded;
static _Atomic int going;
static _Atomic int idle; /* the second thread has seen that it is not */
static long lines;
static char buffer[3000], large[128 << 10], own[5000];

static void write_line(void) {
    char text[32];
    snprintf(text, sizeof(text), "%ld\n", lines);
    switch (lines++ % 4) {
    case 0:
        fprintf(out, "%s", text);
        break;
    case 1:
        fputs(text, out);
        break;
    case 2:
        fwrite(text, 1, strlen(text), out);
        break;
    case 3:
        for (const char *c = text; *c; c++)
            putc(*c, out);
    }
}

static void *writer(void *unused) {
    for (;;) {
        idle = !going;
        if (!idle)
            write_line();
        else
            usleep(1000);
    }
    return unused;
}

static void *churn(void *unused) {
    FILE *other[8];
    for (;;) {
        for (int i = 0; i < 8; i++)
            other[i] = fopen("/dev/null", "w");
        for (int i = 0; i < 8; i++)
            if (other[i] != NULL)
                fclose(other[i]);
    }
    return unused;
}

static void answer(const char *line) {
    if (strcmp(line, "go") == 0 || strcmp(line, "stop") == 0) {
        going = line[0] == 'g';
        while (threaded && idle == going) /* or it is still in a line */
            usleep(1000);
        puts("ok");
    } else if (strcmp(line, "line") == 0) {
        write_line();
        printf("%zu held\n", __fpending(out));
    } else if (strcmp(line, "state") == 0)
        printf("%s%zu\n", __flbf(out) ? "line " : "", __fbufsize(out));
    else if (strcmp(line, "own") == 0)
        printf("%d\n", setvbuf(out, own, _IOFBF, sizeof(own)));
    else if (strcmp(line, "reopen") == 0)
        printf("%d\n", fileno(freopen(getenv("OUT"), "a", out)));
    else if (strcmp(line, "second") == 0)
        printf("%d\n", fileno(fdopen(fileno(out), "w")));
    else if (strcmp(line, "lines") == 0)
        printf("%ld\n", lines);
    else
        printf("%d\n", fileno(out));
    fflush(stdout);
}

int main(void) {
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    const char *mode = getenv("MODE");
    char line[64];
    pthread_t thread;

    out = fopen(getenv("OUT"), "w");
    if (out == NULL || (getenv("OTHER") != NULL && open(getenv("OUT"), O_WRONLY) < 0))
        return 2;
    if (strcmp(mode, "line") == 0)
        setvbuf(out, buffer, _IOLBF, sizeof(buffer));
    else if (strcmp(mode, "large") == 0)
        setvbuf(out, large, _IOLBF, sizeof(large));
    else if (strcmp(mode, "none") == 0)
        setvbuf(out, NULL, _IONBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0);
    write_line();
    threaded = getenv("THREAD") != NULL;
    if (threaded)
        pthread_create(&thread, NULL, writer, NULL);
    if (getenv("CHURN") != NULL)
        pthread_create(&thread, NULL, churn, NULL);
    puts("ready");
    fflush(stdout);
    for (;;) {
        if (going && !threaded) {
            for (int i = 0; i < 1000; i++)
                write_line();
            if (poll(&in, 1, 0) == 0)
                continue;
        }
        if (fgets(line, sizeof(line), stdin) == NULL)
            break;
        line[strcspn(line, "\n")] = 0;
        answer(line);
    }
    going = 0;
    return fclose(out);
}
