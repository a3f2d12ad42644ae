// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"context"
	"time"

	"github.com/attune-hpc/attune/internal/account"
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
	return account.UserID(ctx, name)
}
