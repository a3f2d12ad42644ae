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

// lookupPatience is how long the node's directory of users may take to answer.
const lookupPatience = 5 * time.Second

// lookupUser returns the id of a user given by name or id.
func lookupUser(name string) (uint32, error) {
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
	return askDirectory(name)
}

// askDirectory asks getent(1): without cgo Go knows the users of files only, and
// not those of a directory service.
func askDirectory(name string) (uint32, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupPatience)
	defer cancel()
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
