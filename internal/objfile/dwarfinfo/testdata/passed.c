/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters behind what is passed on the stack, or may be. */
typedef double wide __attribute__((vector_size(32)));
typedef int narrow __attribute__((vector_size(8)));
typedef __float128 quad;
struct large {
    long n[3];
};
struct aligned {
    double x;
} __attribute__((aligned(32)));
struct __attribute__((packed)) unaligned {
    char c;
    long n;
};
struct array {
    double x[4];
};
struct vector {
    wide x;
};
struct integers {
    narrow n[2];
};

int large(struct large s, int n, double x) { return (int)s.n[0] + n + (int)x; }
int extended(long double s, int n, double x) { return (int)s + n + (int)x; }
int aligned(struct aligned s, int n, double x) { return (int)s.x + n + (int)x; }
int array(struct array s, int n, double x) { return (int)s.x[0] + n + (int)x; }
int no_room(long a, long b, long c, long d, long e, struct large s, __int128 i, int n) {
    return (int)(a + b + c + d + e + s.n[0] + (long)i + n);
}
int unaligned(struct unaligned s, int n, double x) { return s.c + n + (int)x; }
int vector(struct vector s, int n, double x) { return (int)s.x[0] + n + (int)x; }
int integers(struct integers s, int n, double x) { return s.n[0][0] + n + (int)x; }
int quadruple(const quad s, int n, double x) { return (int)s + n + (int)x; }

int main(void) { return 0; }
