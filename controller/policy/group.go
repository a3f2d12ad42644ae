// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bufio"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
)

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
