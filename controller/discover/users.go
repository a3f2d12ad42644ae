// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"strconv"
	"time"

	"github.com/attune-hpc/attune/controller/bpf/procevent"
	"github.com/attune-hpc/attune/internal/users"
)

// lookupPatience is how long the node's directory of users may take to answer,
// for all registrations together: meanwhile no process is looked at.
const lookupPatience = 5 * time.Second

// directory looks users up, each name once.
type directory struct {
	ctx   context.Context // ends when the directory has had its time
	known map[string]userID
}

type userID struct {
	uid uint32
	err error
}

func newDirectory(ctx context.Context) *directory { return &directory{ctx, make(map[string]userID)} }

// id returns the id of a user given by name or id.
func (u *directory) id(name string) (uint32, error) {
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
	return users.UserID(ctx, name)
}

// numeric is a user given by id.
func numeric(name string) (uint32, bool) {
	id, err := strconv.ParseUint(name, 10, 32)
	return uint32(id), err == nil && id < uint64(procevent.AnyUser)
}
