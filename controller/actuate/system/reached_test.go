// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/asuser"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// A limit is not put back where the program has passed it, which it could only because that
// was raised, and would be harmed.
func TestPassedLimitStays(t *testing.T) {
	tests := []struct {
		knob     string
		resource int
		old, new uint64
		pass     func(*testing.T, *keeper)
		final    bool // it will never be below again
	}{
		{"limit.cpu", unix.RLIMIT_CPU, 1, 1 << 40, func(t *testing.T, k *keeper) {
			k.Ask(t, "pump")
			patience.Until(t, "a second of CPU time", func() bool {
				used, err := procid.CPUTime(k.PID)
				return err == nil && used > time.Second
			})
		}, true},
		{"limit.fsize", unix.RLIMIT_FSIZE, 1000, 1 << 40, func(t *testing.T, k *keeper) { k.Ask(t, "file 2000") }, false},
		{"limit.as", unix.RLIMIT_AS, 6 << 20, 1 << 40, func(t *testing.T, k *keeper) { k.Ask(t, "memory") }, false},
		{"limit.data", unix.RLIMIT_DATA, 6 << 20, 1 << 40, func(t *testing.T, k *keeper) { k.Ask(t, "memory") }, false},
		{"limit.memlock", unix.RLIMIT_MEMLOCK, 4096, 1 << 16, func(t *testing.T, k *keeper) {
			if got := k.Ask(t, "lock 32768"); got != "1" {
				t.Fatal("no memory is locked")
			}
		}, false},
		{"limit.nproc", unix.RLIMIT_NPROC, 3, 1 << 12, func(*testing.T, *keeper) {}, false}, // it has 4
		{"limit.nofile", unix.RLIMIT_NOFILE, 100, 1000, func(t *testing.T, k *keeper) { k.Ask(t, "dup 0 100") }, false},
	}
	for _, test := range tests {
		t.Run(test.knob, func(t *testing.T) {
			const user = 61003 // no limit spares: some do not bind root
			k := mustKeeperOf(t, user)
			var err error
			var now uint64
			asUser(t, user, func() {
				err = passed(t, k, test.knob, test.resource, test.old, test.new, test.pass)
				now = softLimit(t, k, test.resource)
			})
			if last := new(access.Final); err == nil || errors.As(err, last) != test.final {
				t.Errorf("restored with %v", err)
			}
			if now != test.new {
				t.Errorf("the limit is %d", now)
			}
		})
	}
}

// asUser does something as a user if the tests are root's, which may not have the capability to set
// limits of others.
func asUser(t *testing.T, user uint32, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		do()
	} else if err := asuser.Do(user, do); err != nil {
		t.Fatal(err)
	}
}

// passed raises a limit, has the program pass the old one, and says how the change was undone.
func passed(t *testing.T, k *keeper, knob string, resource int, low, high uint64, pass func(*testing.T, *keeper)) error {
	t.Helper()
	var limit unix.Rlimit
	err := unix.Prlimit(k.PID, resource, nil, &limit)
	limit.Cur = low
	if err := errors.Join(err, unix.Prlimit(k.PID, resource, &limit, nil)); err != nil {
		t.Fatal(err)
	}
	_, states := k.change(t, knob, strconv.FormatUint(high, 10), Everywhere)
	pass(t, k)
	return takeBack(k.identity, states)
}

// softLimit is one that a program has now.
func softLimit(t *testing.T, k *keeper, resource int) uint64 {
	t.Helper()
	var limit unix.Rlimit
	if err := unix.Prlimit(k.PID, resource, nil, &limit); err != nil {
		t.Fatal(err)
	}
	return limit.Cur
}
