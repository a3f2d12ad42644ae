/* SPDX-License-Identifier: Apache-2.0 */
/* Names of all kinds: overloads, templates, a class, static duplicates. */
#include <cstdio>

namespace ns {
struct Matrix {
    int n;
    Matrix();
    ~Matrix();
    int multiply(const Matrix &other) const;
    int add(int x);
};
Matrix::Matrix() : n(1) {}
Matrix::~Matrix() { n = 0; }
__attribute__((noinline)) int Matrix::multiply(const Matrix &other) const { return n * other.n; }
__attribute__((noinline)) int Matrix::add(int x) { return n += x; }
__attribute__((noinline)) int f(int x) { return x + 1; }
__attribute__((noinline)) int f(long x) { return (int)x + 2; }
__attribute__((noinline)) int g(char *text) { return text[0]; }
template <typename T> __attribute__((noinline)) T largest(T a, T b) { return a > b ? a : b; }
} // namespace ns

extern "C" int other_helper(int x);
extern "C" __attribute__((noinline)) int aliased(int x) { return x - 1; }
extern "C" int alias(int x) __attribute__((alias("aliased")));
extern "C" __attribute__((noinline)) int chosen_now(void) { return 3; }
extern "C" void *resolve_chosen(void) { return (void *)chosen_now; }
extern "C" int chosen(void) __attribute__((ifunc("resolve_chosen")));

static __attribute__((noinline)) int helper(int x) {
    __asm__ volatile("");
    return x * 3;
}
extern "C" __attribute__((noinline)) int only_here(int x) { return helper(x) + 1; }

int main(int argc, char **argv) {
    ns::Matrix a, b;
    int sum = a.multiply(b) + a.add(argc) + ns::f(argc) + ns::f((long)argc) + ns::g(argv[0]);
    sum += ns::largest(argc, 2) + other_helper(argc) + alias(argc) + chosen() + only_here(argc);
    std::printf("%d\n", sum);
    return 0;
}
