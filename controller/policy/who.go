// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/pki"
	"github.com/attune-hpc/attune/internal/users"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// who is a list of users and roles; nil is anybody.
type who []member

// member is a user or, if it has one, everybody with a role.
type member struct {
	uid  uint32
	role attunev1.Role
}

// parseWho reads names, numbers, @groups and role:ROLE. Without any it is
// anybody; an empty group is nobody.
func parseWho(names []string, in directory) (who, error) {
	if names == nil {
		return nil, nil
	}
	listed := who{}
	for _, name := range names {
		if word, isRole := strings.CutPrefix(name, "role:"); isRole {
			role, err := pki.ParseRole(word)
			if err != nil {
				return nil, err
			}
			listed = append(listed, member{uid: pki.NoUID, role: role})
			continue
		}
		ids, err := in.ids(name)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			listed = append(listed, member{uid: id})
		}
	}
	return listed, nil
}

// has says whether somebody is listed.
func (w who) has(p *attunev1.Principal) bool {
	return w == nil || slices.ContainsFunc(w, func(m member) bool {
		if m.role != attunev1.Role_ROLE_UNSPECIFIED {
			return p.GetRole() == m.role
		}
		return p.GetUid() == m.uid && m.uid != pki.NoUID
	})
}

// names says whether a user is listed by name, number or group, not as one of
// all.
func (w who) names(uid uint32) bool {
	return slices.ContainsFunc(w, func(m member) bool {
		return m.role == attunev1.Role_ROLE_UNSPECIFIED && m.uid == uid && uid != pki.NoUID
	})
}

// lookupPatience is how long a directory service may take to answer, for all names of a
// policy together.
const lookupPatience = 5 * time.Second

// directory knows the users that the names and @groups of a policy stand for.
type directory struct {
	known map[string][]uint32
	ask   func(name string) ([]uint32, error) // who is not known yet
}

// ids are those that a name, a number or an @group stands for.
func (d directory) ids(name string) ([]uint32, error) {
	if id, err := strconv.ParseUint(name, 10, 32); err == nil {
		return []uint32{uint32(id)}, nil
	}
	if ids, known := d.known[name]; known {
		return ids, nil
	}
	ids, err := d.ask(name)
	if err == nil {
		d.known[name] = ids
	}
	return ids, err
}

// lookUp asks this machine and its directory service.
func lookUp(ctx context.Context, name string) ([]uint32, error) {
	if group, isGroup := strings.CutPrefix(name, "@"); isGroup {
		return users.Members(ctx, group)
	}
	id, err := users.UserID(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("user %s is %w", name, err)
	}
	return []uint32{id}, nil
}
