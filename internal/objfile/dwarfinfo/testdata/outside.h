/* SPDX-License-Identifier: Apache-2.0 */
/* A class of which the debug information of declared.cc has the name only. */
struct text {
    ~text();
    char *begin;
};
