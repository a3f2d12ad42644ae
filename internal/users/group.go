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
	for _, f := range groups {
		if len(f) != 4 || f[2] != gid {
			continue
		}
		for name := range strings.SplitSeq(f[3], ",") {
			if name == "" {
				continue
			}
			id, err := UserID(ctx, name)
			if err != nil {
				return nil, fmt.Errorf("member %s of group %s: %w", name, group, err)
			}
			ids = append(ids, id)
		}
	}
	own, err := table(ctx, "passwd")
	for _, f := range own {
		if len(f) != 7 || f[3] != gid {
			continue
		}
		if id, err := parse(f[2]); err == nil {
			ids = append(ids, id)
		}
	}
	return ids, err
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

// getent says what there is, nothing if there is no such entry, or no getent: only the files know users then.
func getent(ctx context.Context, arguments ...string) (string, error) {
	text, err := exec.CommandContext(ctx, "getent", arguments...).Output()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("getent %s: %w", strings.Join(arguments, " "), ctx.Err())
	case errors.Is(err, exec.ErrNotFound),
		errors.As(err, &exit) && (exit.ExitCode() == notThere || exit.ExitCode() == notListed):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("getent %s: %w", strings.Join(arguments, " "), err)
	}
	return string(text), nil
}
