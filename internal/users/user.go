// SPDX-License-Identifier: Apache-2.0

package users

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"time"
)

// ErrUnknown is returned for a name that is no user's of this machine.
var ErrUnknown = errors.New("not known on this machine")

// patience is how long the directory service may take to answer.
const patience = 5 * time.Second

// UserID returns the id of a user by name: from the files, else by getent(1),
// since without cgo Go does not ask a directory service. The error is ErrUnknown
// also where that does not answer in time.
func UserID(ctx context.Context, name string) (uint32, error) {
	found, err := user.Lookup(name)
	if err == nil {
		return parse(found.Uid)
	}
	if _, unknown := errors.AsType[user.UnknownUserError](err); !unknown {
		return 0, err
	}
	return askDirectory(ctx, name)
}

func askDirectory(ctx context.Context, name string) (uint32, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	line, err := getent(ctx, "passwd", "--", name)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	// getent takes an id for a name as well.
	fields := strings.Split(line, ":")
	if len(fields) < 3 || fields[0] != name {
		return 0, ErrUnknown
	}
	return parse(fields[2])
}

func parse(text string) (uint32, error) {
	id, err := strconv.ParseUint(text, 10, 32)
	return uint32(id), err
}
