/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of all classes, and structures within structures. */
#include <stdio.h>

typedef unsigned long count_t;
struct point {
    double x, y;
};
struct mixed {
    long n;
    double x;
};
struct large {
    long n[4];
};
struct node {
    short flags;
    union {
        int tag;
        char bytes[4];
    };
    struct point where;
    struct node *next;
    int table[3][5];
    unsigned low : 3;
};
struct sendwork {
    char pad[12];
    int ntuples;
    struct node *head;
    struct node inner;
};
struct sendwork global_sendwork;
static unsigned char hidden_byte = 3;
__thread long per_thread = 5;

__attribute__((noinline)) long all(int a, double b, struct node *list, count_t c, float d,
                                   struct point p, struct mixed m, const char *text,
                                   unsigned char last, struct large big, int stacked) {
    __asm__ volatile("");
    return a + (long)b + list->flags + (long)c + (long)d + (long)p.x + m.n + text[0] + last +
           big.n[1] + stacked;
}
__attribute__((noinline)) int rows(int m[][5], int (*row)[5]) { return m[1][2] + row[0][1]; }
__attribute__((noinline)) struct large result(int first) {
    return (struct large){{first, hidden_byte, per_thread, 0}};
}

int main(void) {
    struct node n = {0};
    struct large l = result(2 + rows(n.table, n.table));
    struct point p = {1, 2};
    struct mixed m = {1, 2};
    global_sendwork.head = &n;
    printf("%ld %p %p %p %p\n", all(1, 2, &n, 3, 4, p, m, "x", 5, l, 6),
           (void *)&global_sendwork.ntuples, (void *)&global_sendwork.inner.table[1][2],
           (void *)&hidden_byte, (void *)main);
    return 0;
}
