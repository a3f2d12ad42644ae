// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// parentPoll is how often a tunlet looks whether its parent lives. The kernel
// tells at once when it dies; looking covers the case that the parent died
// before it could be asked to tell.
const parentPoll = 500 * time.Millisecond

// watchParent calls gone once when the process that started this one has ended,
// and keeps signals meant for the whole process group (Ctrl-C, Ctrl-\, hang-up,
// a batch system's SIGTERM) from ending the tunlet before the Analyzer does.
// stop ends the watch and waits for it.
//
// The kernel's parent-death signal also comes when the *thread* that started
// us ends, so it is only a hint to look.
func watchParent(gone func()) (stop func()) {
	parent := os.Getppid()
	hints := make(chan os.Signal, 1)
	signal.Notify(hints, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	// It can fail only where prctl is forbidden; then looking must do.
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGTERM), 0, 0, 0)

	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		poll := time.NewTicker(parentPoll)
		defer poll.Stop()
		for os.Getppid() == parent {
			select {
			case <-hints:
			case <-poll.C:
			case <-done:
				return
			}
		}
		gone()
	}()
	return func() {
		signal.Stop(hints)
		close(done)
		<-ended
	}
}
