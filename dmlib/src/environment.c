/* SPDX-License-Identifier: Apache-2.0 */
/* Edits the environment in place: no allocation, and strings only shrink. */
#include "dmlib.h"

#include <string.h>

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ld.so takes both as separators. */
static bool separates(char c) { return c == ':' || c == ' '; }

static bool same_base(const char *entry, size_t length, const char *base) {
    size_t base_length = strlen(base);
    if (length < base_length || memcmp(entry + length - base_length, base, base_length) != 0)
        return false;
    return length == base_length || entry[length - base_length - 1] == '/';
}

/* Drops every entry with that base name; what stays keeps its order. */
static void drop_entries(char *list, const char *base) {
    char *out = list;
    for (char *in = list; *in != '\0';) {
        size_t length = 0;
        while (in[length] != '\0' && !separates(in[length]))
            length++;
        if (length > 0 && !same_base(in, length, base)) {
            if (out != list)
                *out++ = ':';
            memmove(out, in, length);
            out += length;
        }
        in += length;
        if (*in != '\0')
            in++;
    }
    *out = '\0';
}

static void remove_variable(char **place) {
    do
        place[0] = place[1];
    while (*place++ != NULL);
}

void dm_environment_clean(char **environment, const char *library) {
    static const char preload[] = "LD_PRELOAD=";
    static const char socket[] = "ATTUNE_SOCKET=", once[] = "ATTUNE_ONCE=";
    char **place = environment;
    while (place != NULL && *place != NULL) {
        bool gone = strncmp(*place, socket, sizeof(socket) - 1) == 0 ||
                    strncmp(*place, once, sizeof(once) - 1) == 0;
        if (strncmp(*place, preload, sizeof(preload) - 1) == 0) {
            char *list = *place + sizeof(preload) - 1;
            drop_entries(list, base_name(library));
            gone = *list == '\0';
        }
        if (gone)
            remove_variable(place);
        else
            place++;
    }
}
