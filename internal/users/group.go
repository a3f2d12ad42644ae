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
	var names []string // of those that it lists
	for _, f := range groups {
		if len(f) == 4 && f[2] == gid {
			names = append(names, strings.FieldsFunc(f[3], func(r rune) bool { return r == ',' })...)
		}
	}
	known, err := entries(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		id, err := known.id(name)
		if err != nil {
			return nil, fmt.Errorf("member %s of group %s: %w", name, group, err)
		}
		ids = append(ids, id)
	}
	for name, f := range known {
		if id, err := known.id(name); err == nil && f[3] == gid {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// passwd has the entries of users by name.
type passwd map[string][]string

// entries returns those of all users that are listed, and of these: those that are not are asked
// for with one question.
func entries(ctx context.Context, names []string) (passwd, error) {
	known := make(passwd)
	listed, err := table(ctx, "passwd")
	if err != nil {
		return nil, err
	}
	known.add(listed)
	rest := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return known[name] != nil })
	if len(rest) > 0 {
		unlisted, err := table(ctx, "passwd", rest...)
		if err != nil {
			return nil, err
		}
		known.add(unlisted)
	}
	return known, nil
}

// add adds entries, of which the first of a name counts.
func (p passwd) add(all [][]string) {
	for _, f := range all {
		if len(f) == 7 && p[f[0]] == nil {
			p[f[0]] = f
		}
	}
}

// id is a user's.
func (p passwd) id(name string) (uint32, error) {
	f := p[name]
	if f == nil {
		return 0, ErrUnknown
	}
	return parse(f[2])
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
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("getent %s: %w", strings.Join(arguments, " "), ctx.Err())
	case err == nil, exited && (exit.ExitCode() == notThere || exit.ExitCode() == notListed):
		return string(text), nil
	case errors.Is(err, exec.ErrNotFound):
		return "", nil
	}
	return "", fmt.Errorf("getent %s: %w", strings.Join(arguments, " "), err)
}
