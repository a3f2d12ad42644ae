/* SPDX-License-Identifier: Apache-2.0 */
/* The other static function of one name. */
static __attribute__((noinline)) int helper(int x) {
    __asm__ volatile("");
    return x * 5;
}
extern "C" int other_helper(int x) { return helper(x) + 1; }
