// SPDX-License-Identifier: Apache-2.0

package child

import (
	"fmt"
	"io"
	"os/signal"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/actuate/kinds"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/procid"
)

// GuardWord is the first of the arguments with which attuned runs [ServeGuard].
const GuardWord = "guard"

const (
	// guardPatience bounds the start of a guard, for which the end of the node waits: without
	// one all is undone that was proven good.
	guardPatience = 8 * time.Second
	// guardLooks is how often a guard looks whether it is needed, and guardTries how
	// often it tries to undo what cannot be undone at its time.
	guardLooks = time.Second
	guardTries = 60
)

// ServeGuard is the guard's process: it waits until the attuned that has started it is
// gone, and then until nothing is held any more, or undoes that at its time. args are the
// directory of journals and the time. It returns the exit code of the program.
func ServeGuard(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	signal.Ignore(unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGPIPE)
	procid.SetName("attuned-guard")
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintf(stderr, "attuned "+GuardWord+": "+format+"\n", args...)
	}
	if len(args) != 2 {
		say("it is for attuned itself")
		return exitcode.Usage
	}
	until, err := strconv.ParseInt(args[1], 10, 64)
	if err == nil {
		err = confineSelf()
	}
	if err != nil {
		say("%v", err)
		return exitcode.Failure
	}
	_, _ = fmt.Fprintln(stdout, "guarding")
	gone := make(chan struct{})
	go func() { // ends with attuned
		defer close(gone)
		_, _ = io.Copy(io.Discard, stdin)
	}()
	known := kinds.All(kinds.Options{})
	look := time.NewTicker(guardLooks)
	defer look.Stop()
	for tried := 0; tried < guardTries; <-look.C {
		if clock.SinceBoot() >= time.Duration(until) {
			done, err := known.Restore(args[0])
			for _, r := range done {
				say("nobody took change %s over: %s of process %d is undone: %v", r.Change, r.Knob, r.PID, r.Err == nil)
			}
			if err != nil {
				say("%v", err)
			}
			tried++
		}
		select {
		case <-gone:
			if holds, err := known.Holds(args[0]); err == nil && !holds {
				_, _ = known.Restore(args[0]) // journals of processes that have ended
				return exitcode.OK
			}
		default:
		}
	}
	say("not everything could be undone; the journals have the rest")
	return exitcode.Failure
}
