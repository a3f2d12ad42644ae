// SPDX-License-Identifier: Apache-2.0

//go:build privileged

package taskaccount

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestLivingOnce: a process is in a list once, however many end while the kernel's table is read.
func TestLivingOnce(t *testing.T) {
	a := mustAccounts(t)
	enough := t.TempDir() + "/enough"
	looked := make(chan error, 1)
	go func() {
		looked <- lookOften(a)
		_ = os.WriteFile(enough, nil, 0o600) // without it the shells do not end, which the test's time limit tells
	}()
	script := strings.Repeat(`while [ ! -e "$0" ]; do /bin/true; done & `, 16) + "wait"
	mustAccount(t, a, exec.Command("sh", "-c", script, enough))
	if err := <-looked; err != nil {
		t.Error(err)
	}
}

// lookOften lists the living again and again. It fails if a process is in a list twice.
func lookOften(a *Accounts) error {
	type identity struct {
		pid   int
		start time.Duration
	}
	for range 1000 {
		list, err := a.Living()
		if err != nil {
			return err
		}
		seen := make(map[identity]bool, len(list))
		for _, p := range list {
			key := identity{p.PID, p.Start}
			if seen[key] {
				return fmt.Errorf("process %d is in a list of %d twice", p.PID, len(list))
			}
			seen[key] = true
		}
	}
	return nil
}
