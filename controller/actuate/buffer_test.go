// SPDX-License-Identifier: Apache-2.0

package actuate_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate"
	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/actuate/actuatetest"
)

// Two knobs set one buffer: what is forced by hand on top of a controller's change gives back
// what was there before both, the kernel's own tuning.
func TestBufferForcedOnTopOfAController(t *testing.T) {
	target, process := mustKeeper(t)
	locks := fmt.Sprintf("option %s %d %d", strings.Fields(target.Ask(t, "fds"))[0], unix.SOL_SOCKET, unix.SO_BUF_LOCK)
	if got := target.Ask(t, locks); got != "0" {
		t.Fatalf("SO_BUF_LOCK is %s; Linux 5.14 has it", got)
	}
	dir := t.TempDir()
	journal := actuatetest.MustJournal(t, dir)
	a := actuate.New(actuate.Options{Journal: journal, Kinds: all})
	actuatetest.MustApply(t, a, process, systemChange("c1", "socket.so_sndbuf", access.Integer(50000)))
	byHand := systemChange("", "socket.so_sndbufforce", access.Integer(100000))
	mustUndoByHand(t, dir, process, byHand, a.InForce()[0].Old, func() {
		a.Undo(t.Context(), "c1") // the controller gives it up
		mustRemove(t, journal)
	})
	if got := target.Ask(t, locks); got != "0" {
		t.Errorf("SO_BUF_LOCK is %s after both are undone", got)
	}
}
