/* SPDX-License-Identifier: Apache-2.0 */
/* Functions whose parameters and variables are known by name. */
#include <stdio.h>

struct part {
    int id;
    const char *label;
};

struct request {
    long size;
    unsigned short flags;
    double weight;
    char tag[8];
    struct part *first;
    struct part parts[4];
};

struct two {
    long a, b;
};

struct request global_request;
static int calls;
__thread int per_thread;

__attribute__((noinline)) int handle(int n, struct request *request, double factor,
                                     const char *path, unsigned char byte, struct two two, long six,
                                     long seven) {
    calls += n + (int)request->size + byte + (int)two.a + (int)six + (int)seven + (path != NULL);
    return (int)factor + per_thread;
}

__attribute__((noinline)) int handle_other(struct request *request, int n) {
    return (int)request->size + n;
}

int main(void) {
    char line[64];

    puts("ready");
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        calls += handle(1, &global_request, 2.5, line, 3, (struct two){1, 2}, 6, 7);
        calls += handle_other(&global_request, 1);
        puts("done");
        fflush(stdout);
    }
    return 0;
}
