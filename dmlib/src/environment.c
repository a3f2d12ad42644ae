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

static const char preload[] = "LD_PRELOAD=";
static const char socket[] = "ATTUNE_SOCKET=";

static bool sets(const char *entry, const char *variable) {
    return strncmp(entry, variable, strlen(variable)) == 0;
}

void dm_environment_clean(char **environment, const char *library) {
    char **place = environment;
    while (place != NULL && *place != NULL) {
        bool gone = sets(*place, socket);
        if (sets(*place, preload)) {
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

static const char *own_library; /* as the loader names it */

void dm_environment_prepare(const char *library) { own_library = library; }

size_t dm_environment_count(char *const *environment) {
    size_t count = 0;
    while (environment != NULL && environment[count] != NULL)
        count++;
    return count;
}

bool dm_environment_copy(char *const *environment, char **copy, size_t room) {
    bool ours = false;
    size_t count = 0;
    for (; environment != NULL && *environment != NULL; environment++) {
        if (sets(*environment, preload)) {
            if (own_library == NULL || strcmp(*environment + sizeof(preload) - 1, own_library) != 0)
                return false; /* somebody else's as well */
            ours = true;
        } else if (!sets(*environment, socket)) {
            if (count + 1 >= room)
                return false;
            copy[count++] = *environment;
        }
    }
    if (ours)
        copy[count] = NULL;
    return ours;
}
