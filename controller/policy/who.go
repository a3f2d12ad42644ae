// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bufio"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/internal/pki"
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
func parseWho(names []string) (who, error) {
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
		ids, err := userIDs(name)
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

// userIDs are those that a name, a number or an @group stands for.
func userIDs(name string) ([]uint32, error) {
	group, isGroup := strings.CutPrefix(name, "@")
	if isGroup {
		return members(group)
	}
	if id, err := strconv.ParseUint(name, 10, 32); err == nil {
		return []uint32{uint32(id)}, nil
	}
	found, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	id, err := strconv.ParseUint(found.Uid, 10, 32)
	return []uint32{uint32(id)}, err
}

// members are the users that a group lists, and those whose own group it is,
// as the files of this machine have them.
func members(name string) ([]uint32, error) {
	group, err := user.LookupGroup(name)
	if err != nil {
		return nil, err
	}
	listed, err := column("/etc/group", func(f []string) (string, bool) {
		return f[len(f)-1], len(f) == 4 && f[2] == group.Gid
	})
	if err != nil {
		return nil, err
	}
	var ids []uint32
	for _, member := range strings.Split(strings.Join(listed, ","), ",") {
		if member == "" {
			continue
		}
		found, err := userIDs(member)
		if err != nil {
			return nil, fmt.Errorf("member of group %s: %w", name, err)
		}
		ids = append(ids, found...)
	}
	own, err := column("/etc/passwd", func(f []string) (string, bool) {
		return f[min(2, len(f)-1)], len(f) == 7 && f[3] == group.Gid
	})
	for _, id := range own {
		if n, err := strconv.ParseUint(id, 10, 32); err == nil {
			ids = append(ids, uint32(n))
		}
	}
	return ids, err
}

// column picks a field of the lines of a file that are wanted.
func column(path string, pick func(fields []string) (string, bool)) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var picked []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if field, ok := pick(strings.Split(lines.Text(), ":")); ok {
			picked = append(picked, field)
		}
	}
	return picked, lines.Err()
}
