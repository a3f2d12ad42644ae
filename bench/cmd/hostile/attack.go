// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"google.golang.org/grpc/codes"

	"github.com/attune-hpc/attune/bench/internal/measure"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/silentfs"
)

// attack is what the hostile user does, in a process group.
type attack struct {
	folder
	cmd     *exec.Cmd
	devices []*os.File
	done    chan struct{} // closed when its output has ended

	mu     sync.Mutex // guards counts
	counts map[string]int
}

// attacks are those that the attacker makes, by the names that begin its lines.
var attacks = []string{"fuse", "objects", "execs", "stands", "sockets", "calls"}

// fuseFolders are mounted for the user, who serves them.
var fuseFolders = []string{"fuse/memory", "fuse/program"}

// startAttack starts all attacks, on the processors that are the user's.
func (f folder) startAttack() (a *attack, err error) {
	a = &attack{folder: f, done: make(chan struct{}), counts: make(map[string]int)}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.unmount())
		}
	}()
	for _, name := range fuseFolders {
		device, err := silentfs.Open(f.path(name), hostileUser)
		if err != nil {
			return a, err
		}
		a.devices = append(a.devices, device)
	}
	a.cmd = exec.Command("taskset", "-c", hostileProcessors(), f.path("bin/attacker"), f.dir)
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: &syscall.Credential{Uid: hostileUser, Gid: hostileUser}}
	a.cmd.ExtraFiles = a.devices
	a.cmd.Stderr, err = os.OpenFile(f.path("attacker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return a, err
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return a, err
	}
	if err := a.cmd.Start(); err != nil {
		return a, err
	}
	go a.listen(out)
	return a, nil
}

// listen takes what the attacks say that they have done.
func (a *attack) listen(out io.Reader) {
	defer close(a.done)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text := lines.Text()
		at := strings.LastIndexByte(text, ' ')
		if n, err := strconv.Atoi(text[at+1:]); err == nil && at > 0 {
			a.mu.Lock()
			a.counts[text[:at]] = max(n, a.counts[text[:at]])
			a.mu.Unlock()
		}
	}
}

// stop ends the attacks, adds to what was done, and returns which of them did nothing.
func (a *attack) stop(ctx context.Context, done map[string]int) (idle []string, err error) {
	_ = syscall.Kill(-a.cmd.Process.Pid, syscall.SIGKILL) // Wait says how it ended
	err = a.unmount()                                     // has whoever waits for a page wait no longer
	_ = a.cmd.Wait()                                      // killed, unless it ended before
	if status := a.cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		err = errors.Join(err, fmt.Errorf("the attacker has ended by itself: %s", a.cmd.ProcessState))
	}
	<-a.done
	for what, n := range a.counts {
		done[what] += n
	}
	none := func() bool { return len(processesOf(hostileUser)) == 0 }
	return idleIn(a.counts), errors.Join(err, measure.Await(ctx, patience, "end of the attacks", none))
}

// idleIn returns the attacks that have counted nothing, calls that nobody was there to answer
// left out.
func idleIn(counts map[string]int) []string {
	return slices.DeleteFunc(slices.Clone(attacks), func(name string) bool {
		for what, n := range counts {
			if strings.HasPrefix(what, name+" ") && !strings.HasSuffix(what, ", "+codes.Unavailable.String()) && n > 0 {
				return true
			}
		}
		return false
	})
}

func (a *attack) unmount() (err error) {
	for i, device := range a.devices {
		err = errors.Join(err, silentfs.Close(a.path(fuseFolders[i])), device.Close())
	}
	a.devices = nil
	return err
}

// processesOf lists those of a user that run.
func processesOf(uid uint32) (pids []int) {
	all, _ := procid.List()
	for _, pid := range all {
		if status, err := procid.ReadStatus(pid); err == nil && status.Users.Effective == uid && !zombie(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func zombie(pid int) bool {
	stat, err := procid.ReadStat(pid)
	return err != nil || stat.Zombie()
}

// prepareAttack makes what the attacker needs: programs, and a folder of their own.
func (f folder) prepareAttack(compiled, unread string) error {
	for _, name := range []string{"exit", "traced", "maps", "garbage"} {
		if err := measure.CopyProgram(compiled, f.path("bin/hostile-"+name)); err != nil {
			return err
		}
	}
	err := errors.Join(measure.CopyProgram(unread, f.path("bin/hostile-unread")), measure.CopyProgram(f.path("bin/attacker"), f.path("bin/hostile-objects")))
	for _, name := range append(fuseFolders, "files") {
		err = errors.Join(err, os.MkdirAll(f.path(name), 0o755))
	}
	if err != nil {
		return fmt.Errorf("programs of the attacker: %w", err)
	}
	return os.Chown(f.path("files"), hostileUser, hostileUser)
}
