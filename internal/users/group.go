// SPDX-License-Identifier: Apache-2.0

package users

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Members returns the ids of those whom a group lists and of those whose own group it is: by the files, and
// by getent(1) for those of a directory service. A directory service that does not list all of its users
// when it is asked for them does not tell whose own group it is. An id may come more than once. It
// fails if there is no such group, if a member is unknown, or if the directory service does not answer in time.
func Members(ctx context.Context, group string) (ids []uint32, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	groups, err := table(ctx, "group", group)
	if err != nil {
		return nil, err
	}
	named := slices.IndexFunc(groups, func(f []string) bool { return len(f) == 4 && f[0] == group })
	if named < 0 {
		return nil, fmt.Errorf("group %s is %w", group, ErrUnknown)
	}
	gid := groups[named][2]
	var names []string
	for _, f := range groups {
		if len(f) == 4 && f[2] == gid {
			names = append(names, strings.FieldsFunc(f[3], func(r rune) bool { return r == ',' })...)
		}
	}
	known, err := table(ctx, "passwd")
	if err != nil {
		return nil, err
	}
	entry := func(name string) int {
		return slices.IndexFunc(known, func(f []string) bool { return len(f) == 7 && f[0] == name })
	}
	if rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return entry(name) >= 0 }); len(rest) > 0 {
		unlisted, err := table(ctx, "passwd", rest...) // all with one question
		if err != nil {
			return nil, err
		}
		known = append(known, unlisted...)
	}
	for _, name := range names {
		at := entry(name)
		if at < 0 {
			return nil, fmt.Errorf("member %s of group %s is %w", name, group, ErrUnknown)
		}
		id, err := parse(known[at][2])
		if err != nil {
			return nil, fmt.Errorf("member %s of group %s: %w", name, group, err)
		}
		ids = append(ids, id)
	}
	for _, f := range known {
		if len(f) != 7 || f[3] != gid {
			continue
		}
		if id, err := parse(f[2]); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// table returns the entries of a database, group or passwd, by their fields: those of the file, and what
// getent says of keys, or, without keys, of all.
func table(ctx context.Context, name string, keys ...string) (entries [][]string, err error) {
	text, err := os.ReadFile("/etc/" + name)
	if err != nil {
		return nil, err
	}
	arguments := []string{name}
	if len(keys) > 0 {
		arguments = slices.Concat(arguments, []string{"--"}, keys) // a key may begin with -
	}
	said, err := getent(ctx, arguments...)
	for line := range strings.Lines(string(text) + "\n" + said) {
		entries = append(entries, strings.Split(strings.TrimSpace(line), ":"))
	}
	return entries, err
}

// Exit codes of getent(1).
const notThere, notListed = 2, 3

// getent says what there is of what is asked for, nothing if there is no getent: only the files know users then.
func getent(ctx context.Context, arguments ...string) (string, error) {
	text, err := exec.CommandContext(ctx, "getent", arguments...).Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("getent %s: %w", strings.Join(arguments, " "), ctx.Err())
	case err == nil, errors.As(err, &exit) && (exit.ExitCode() == notThere || exit.ExitCode() == notListed):
		return string(text), nil
	case errors.Is(err, exec.ErrNotFound):
		return "", nil
	}
	return "", fmt.Errorf("getent %s: %w", strings.Join(arguments, " "), err)
}
