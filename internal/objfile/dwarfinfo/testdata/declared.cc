/* SPDX-License-Identifier: Apache-2.0 */
/* A class that goes by address for the sake of a member that is only declared. */
#include "outside.h"

struct options {
    text name;
    long numbers[4];
};

text::~text() {}
extern "C" long declared(options o, long n) { return o.numbers[0] + n; }
int main() { return 0; }
