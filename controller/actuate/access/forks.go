// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// Lineage tells the forks that an image makes from a time on from all other processes.
type Lineage struct {
	// Seed stands for the random bytes that the kernel gave to the program, and that all its
	// forks have. Addresses alone do not tell: where they are not drawn at random, all
	// processes of a program have the same.
	Seed uint64 `json:"seed"`
	// Since is the time since boot.
	Since time.Duration `json:"since"`
}

// LineageOf is that of the forks that a process makes from now on; zero with an error.
func LineageOf(process Process) (Lineage, error) {
	seed, err := seedOf(process, process.PID())
	if err != nil {
		return Lineage{}, err
	}
	return Lineage{Seed: seed, Since: clock.SinceBoot()}, nil
}

// Precedes says whether a process that was started at a tick was there before.
func (l Lineage) Precedes(startTicks uint64) bool {
	return time.Duration(startTicks+1)*procid.Tick < l.Since
}

// randomBytes is how many the kernel gives to a program.
const randomBytes = 16

// seedOf makes a number of the random bytes of a program. They are its secrets, and a
// journal must not tell them.
func seedOf(holder proc.Holder, pid int) (uint64, error) {
	stat, err := procid.ReadStat(pid)
	if err != nil {
		return 0, err
	}
	address, err := procid.Auxiliary(procid.LiveThread(pid, stat), procid.AuxRandom)
	if err != nil {
		return 0, err
	}
	random := make([]byte, randomBytes)
	if err := proc.Read(holder, address, random); err != nil {
		return 0, fmt.Errorf("the random bytes of process %d: %w", pid, err)
	}
	sum := sha256.Sum256(random)
	return binary.LittleEndian.Uint64(sum[:]), nil
}

// Forks finds the forks of processes. The zero value is ready; it may be used from any
// goroutine, and who asks at the same time shares a look at all processes.
type Forks struct {
	begun atomic.Int64 // looks

	mu     sync.Mutex // guards what follows; held during a look
	number int64      // of the look that found what follows
	all    []procid.Stat
	err    error
}

// Of lists the living forks of an image, and what they have forked, with memory of their own.
// An error comes with those that could be told. There are none where the image of the process
// does not show.
func (f *Forks) Of(image procid.Identity, lineage Lineage) (found []procid.Identity, err error) {
	if image.Image == 0 || lineage == (Lineage{}) {
		return nil, nil
	}
	all, err := f.look()
	errs := []error{err}
	for _, stat := range all {
		itself := stat.PID == image.PID && stat.StartTicks == image.StartTicks
		if itself || lineage.Precedes(stat.StartTicks) || stat.Image.Number() != image.Image {
			continue
		}
		fork, is, err := lineage.tell(stat.PID, image)
		if is {
			found = append(found, fork)
		}
		errs = append(errs, err)
	}
	return found, errors.Join(errs...)
}

// look reads of all processes, but for those of the kernel, what they were at some time after
// the call.
func (f *Forks) look() ([]procid.Stat, error) {
	before := f.begun.Load()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.number > before { // begun after the call
		return f.all, f.err
	}
	f.number = f.begun.Add(1)
	pids, err := procid.List()
	f.all, f.err = make([]procid.Stat, 0, len(pids)), err
	for _, pid := range pids {
		if stat, err := procid.ReadStat(pid); err == nil && stat.Image.Number() != 0 {
			f.all = append(f.all, stat)
		}
	}
	return f.all, f.err
}

// tell says whether a process with the same addresses is a fork of an image, with memory of
// its own.
func (l Lineage) tell(pid int, image procid.Identity) (fork procid.Identity, is bool, err error) {
	defer func() {
		if errors.Is(err, procid.ErrGone) || errors.Is(err, proc.ErrImageGone) {
			is, err = false, nil
		}
	}()
	if fork, err = procid.Of(pid); err != nil || fork.Image != image.Image {
		return fork, false, err
	}
	held, err := proc.Hold(fork)
	if err != nil {
		return fork, false, fmt.Errorf("process %d, which may be a fork of process %d: %w", pid, image.PID, OutOfReach(err))
	}
	defer held.Close()
	seed, err := seedOf(held, pid)
	if err != nil || seed != l.Seed {
		return fork, false, err
	}
	if Ended(image) { // its pid may be the fork's by now
		return fork, true, nil
	}
	// Where the kernel does not tell, as in most containers, the memory counts as its own:
	// the change was taken back in the process, so that nothing is left of it in the same memory.
	shares, err := procid.SharesMemory(pid, image.PID)
	return fork, !shares || err != nil, nil
}

// ImageGone says whether a fork has ended or executes another program. One whose image does not
// show any more is not found again either.
func ImageGone(fork procid.Identity) bool {
	now, err := procid.Of(fork.PID)
	return errors.Is(err, procid.ErrGone) || err == nil && (!now.SameProcess(fork) || now.Image != fork.Image)
}

// errStaysThere is the last word on a fork that may not be touched for as long as it lives.
const errStaysThere = Final("what it has of the change stays there")

// OutOfReach makes an error about a fork final if the fork may not be touched.
func OutOfReach(err error) error {
	if errors.Is(err, proc.ErrPermission) || errors.Is(err, proc.ErrLeftAlone) {
		return fmt.Errorf("%s: %w", err.Error(), errStaysThere)
	}
	return err
}
