// SPDX-License-Identifier: Apache-2.0

package peercred

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// ErrNoUser means that the kernel gave the peer an id that stands for
// everybody whom this process' user namespace does not know.
var ErrNoUser = errors.New("user is not known in this user namespace")

// noUID is what the kernel says of a peer that it has no ids of.
const noUID = ^uint32(0)

// distinct refuses ids that more than one user has: in a user namespace all
// that are not mapped look the same (user_namespaces(7)), and one of them must
// not pass for another. A process that is not mapped itself talks to its own
// kind, as it could not tell its own children otherwise.
func distinct(uid uint32) error {
	if uid == noUID || uid == sharedUID() && int(uid) != os.Geteuid() {
		return fmt.Errorf("%w: id %d", ErrNoUser, uid)
	}
	return nil
}

// sharedUID is the id that stands for all users who are not mapped, noUID where
// everybody is.
var sharedUID = sync.OnceValue(func() uint32 {
	ids, err := os.ReadFile("/proc/self/uid_map")
	if err != nil || mapsAll(string(ids)) {
		return noUID
	}
	const usual = 65534
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return usual
	}
	id, err := strconv.ParseUint(strings.TrimSpace(string(overflow)), 10, 32)
	if err != nil {
		return usual
	}
	return uint32(id)
})

// mapsAll says whether a uid_map leaves nobody out.
func mapsAll(ids string) bool {
	fields := strings.Fields(ids)
	return len(fields) == 3 && fields[0] == "0" && fields[2] == "4294967295"
}
