// SPDX-License-Identifier: Apache-2.0

package admit

import (
	"context"
	"fmt"
	"time"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/member"
	"github.com/attune-hpc/attune/controller/shm"
)

const (
	// attendPatience bounds the search for a thread that can be stopped: those
	// that stand in a system call which could not be restarted are let be.
	attendPatience = 300 * time.Millisecond
	// attendTimeout bounds what it executes, a few system calls.
	attendTimeout = time.Second
)

// attendant returns who stops a thread of a process that comes by no hook, for
// the commands that wait in its mailbox.
func (w ways) attendant(t *member.Member) shm.Attendant {
	return func(ctx context.Context, entry uint64) (uint64, time.Duration, error) {
		process, err := t.Hold()
		if err != nil {
			return 0, 0, err
		}
		value, result, err := inject.Execute(ctx, process, inject.Calling(entry), inject.ExecuteOptions{
			Anywhere: true, Patience: attendPatience, Timeout: attendTimeout, Cache: w.Cache,
		})
		stopped := result.Stopped + result.Disturbed
		if err != nil {
			return 0, stopped, fmt.Errorf("stop a thread for it: %w", err)
		}
		w.Log.Debug("a thread was stopped for what waited in the mailbox", "pid", t.PID(), "thread", result.Thread, "stopped", stopped)
		return value, stopped, nil
	}
}
