/* SPDX-License-Identifier: Apache-2.0 */
/* Ten calls of one function for each line of input, always the same. With
 * LIBRARY it is the library that has the function. */
#include <stdio.h>
#include <stdlib.h>

struct message {
    int tag;              /* -3 to 6                                     */
    unsigned char kind;   /* 250 to 259, modulo 256                      */
    double weight;        /* 0 to 4.5                                    */
    const char *name;     /* "even" or "odd, and longer than it need be" */
    struct message *next; /* the one before; of the first nowhere        */
    char label[8];        /* "m0" to "m9"                                */
};

extern long c_level; /* 100 to 109 */
long c_send(struct message *m, int count, double ratio, float part, const char *text);

#ifdef LIBRARY

long c_level;
volatile long c_sink;

long c_send(struct message *m, int count, double ratio, float part, const char *text) {
    c_sink += m->tag + count + (long)ratio + (long)part + (text != NULL);
    return count * 10 - 15;
}

#else

static void send_all(void) {
    static struct message m[10];
    for (int i = 0; i < 10; i++) {
        m[i] = (struct message){.tag = i - 3, .kind = (unsigned char)(250 + i), .weight = i * 0.5};
        m[i].name = i % 2 == 0 ? "even" : "odd, and longer than it need be";
        m[i].next = i == 0 ? (struct message *)8 : &m[i - 1];
        snprintf(m[i].label, sizeof m[i].label, "m%d", i);
        c_level = 100 + i;
        void *volatile block = malloc(777);
        free(block);
        c_send(&m[i], i % 3, i - 4.5, (float)i * 0.25f, i == 5 ? NULL : "text");
    }
}

int main(void) {
    char line[64];

    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        void *volatile block = malloc(100); /* a safe point */
        free(block);
        if (line[0] != '0')
            send_all();
        puts("done");
    }
    return 0;
}

#endif
