/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends items of 16 bytes over a connection, so many to a message as
 * items_per_message says, which is where a tuner may put in. A child takes them.
 * An iteration is an item.
 *
 *     item_sender SECONDS [ITEMS_PER_MESSAGE]
 */
#include "workload.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ITEM = 16, MOST = 1024, LOOK = 1000 };

volatile int items_per_message = 1;

/* A connection to a child that reads whatever comes. */
static int connect_reader(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), out = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    static char buffer[1 << 16];

    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0)
        exit(1);
    if (fork() == 0) {
        int in = accept(listener, NULL, NULL);

        close(listener);
        close(out);
        while (read(in, buffer, sizeof buffer) > 0)
            ;
        _exit(0);
    }
    close(listener);
    if (connect(out, (struct sockaddr *)&address, sizeof address) != 0)
        exit(1);
    setsockopt(out, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return out;
}

/* What an item is made of: some arithmetic. */
static void make(char *item, uint64_t number) {
    uint64_t words[ITEM / sizeof(uint64_t)] = {number, number};
    int i;

    for (i = 0; i < 100; i++)
        words[1] = words[1] * 6364136223846793005u + 1442695040888963407u;
    memcpy(item, words, ITEM);
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? atof(argv[1]) : 10;
    static char message[ITEM * MOST];
    struct progress p;
    uint64_t items = 0;
    int out, held = 0;

    if (argc > 2)
        items_per_message = atoi(argv[2]);
    out = connect_reader();
    p = progress_begin();
    while (items % LOOK != 0 || progress_step(&p, items) < seconds) {
        make(message + held * ITEM, items++);
        if (++held < items_per_message && held < MOST)
            continue;
        if (write(out, message, (size_t)(held * ITEM)) != held * ITEM)
            return 1;
        held = 0;
    }
    progress_end(&p, items);
    return 0;
}
