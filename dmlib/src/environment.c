/* SPDX-License-Identifier: Apache-2.0 */
/* Edits the environment in place: no allocation, strings only shrink, and those that do not
 * name us are not touched. */
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

static size_t entry_length(const char *entry) {
    size_t length = 0;
    while (entry[length] != '\0' && !separates(entry[length]))
        length++;
    return length;
}

static const char *behind(const char *entry, size_t length) {
    return entry + length + (entry[length] != '\0');
}

static bool has_entry(const char *list, const char *base) {
    for (size_t length; *list != '\0'; list = behind(list, length)) {
        length = entry_length(list);
        if (length > 0 && same_base(list, length, base))
            return true;
    }
    return false;
}

/* What stays keeps its order. */
static void drop_found(char *list, const char *base) {
    char *out = list;
    size_t length;
    for (const char *in = list; *in != '\0'; in = behind(in, length)) {
        length = entry_length(in);
        if (length > 0 && !same_base(in, length, base)) {
            if (out != list)
                *out++ = ':';
            memmove(out, in, length);
            out += length;
        }
    }
    *out = '\0';
}

/* Drops every entry with that base name. True: no other is left. */
static bool drop_entries(char *list, const char *base) {
    if (!has_entry(list, base))
        return false;
    drop_found(list, base);
    return *list == '\0';
}

static void remove_variable(char **place) {
    do
        place[0] = place[1];
    while (*place++ != NULL);
}

void dm_environment_clean(char **environment, const char *library) {
    static const char preload[] = "LD_PRELOAD=";
    static const char *const own[] = {"ATTUNE_SOCKET=", "ATTUNE_ONCE=", "ATTUNE_FILTERS="};
    const char *base = base_name(library);
    char **place = environment;
    while (place != NULL && *place != NULL) {
        bool gone = false;
        for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
            gone = gone || strncmp(*place, own[i], strlen(own[i])) == 0;
        if (strncmp(*place, preload, sizeof(preload) - 1) == 0)
            gone = drop_entries(*place + sizeof(preload) - 1, base);
        if (gone)
            remove_variable(place);
        else
            place++;
    }
}
