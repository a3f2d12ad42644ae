// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// lookupPatience is how long the node's directory of users may take to answer,
// for all registrations together: meanwhile no process is looked at.
const lookupPatience = 5 * time.Second

// users looks users up, each name once.
type users struct {
	ctx   context.Context // ends when the directory has had its time
	known map[string]userID
}

type userID struct {
	uid uint32
	err error
}

func newUsers(ctx context.Context) *users { return &users{ctx, make(map[string]userID)} }

// id returns the id of a user given by name or id.
func (u *users) id(name string) (uint32, error) {
	answer, ok := u.known[name]
	if !ok {
		answer.uid, answer.err = lookupUser(u.ctx, name)
		u.known[name] = answer
	}
	return answer.uid, answer.err
}

func lookupUser(ctx context.Context, name string) (uint32, error) {
	if id, ok := numeric(name); ok {
		return id, nil
	}
	known, err := user.Lookup(name)
	if err == nil {
		return parseUserID(known.Uid)
	}
	var unknown user.UnknownUserError
	if !errors.As(err, &unknown) {
		return 0, err
	}
	return askDirectory(ctx, name)
}

// askDirectory asks getent(1): without cgo Go knows the users of files only, and
// not those of a directory service.
func askDirectory(ctx context.Context, name string) (uint32, error) {
	line, err := exec.CommandContext(ctx, "getent", "passwd", "--", name).Output()
	if err != nil {
		return 0, fmt.Errorf("not known on this node: %w", err)
	}
	fields := strings.Split(string(line), ":")
	if len(fields) < 3 || fields[0] != name {
		return 0, errors.New("not known on this node")
	}
	return parseUserID(fields[2])
}

func parseUserID(text string) (uint32, error) {
	id, err := strconv.ParseUint(text, 10, 32)
	return uint32(id), err
}
