// SPDX-License-Identifier: Apache-2.0

package access

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
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
// goroutine. Who asks while somebody looks at all processes shares the next look, and nothing of
// it is kept.
type Forks struct {
	looking sync.Mutex // held during a look; comes first

	mu   sync.Mutex // guards what follows
	next *Look      // that has not begun; nil: nobody waits for one
}

// Of lists the living forks of an image, and what they have forked, with memory of their own, at
// some time after the call. An error comes with those that could be told. There are none where
// the image of the process does not show.
func (f *Forks) Of(image procid.Identity, lineage Lineage) (found []procid.Identity, err error) {
	f.mu.Lock()
	if f.next == nil {
		f.next = &Look{begin: f.begin}
	}
	look := f.next
	f.mu.Unlock()
	return look.Of(image, lineage)
}

// begin lets nobody more share the next look, and waits for the present one.
func (f *Forks) begin() (end func()) {
	f.looking.Lock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = nil
	return f.looking.Unlock
}

// Look finds the forks of processes by one look at all, when it is first asked. The zero value is
// ready; it may be used from any goroutine.
type Look struct {
	begin func() (end func()) // called before the look; may be nil

	once sync.Once
	of   map[uint64][]born // by the number of the image
	err  error
}

// born is a process, and when it was started.
type born struct {
	pid   int
	ticks uint64
}

// Of is [Forks.Of] at the time of the look.
func (l *Look) Of(image procid.Identity, lineage Lineage) (found []procid.Identity, err error) {
	boot, err := procid.BootID()
	if image.Image == 0 || lineage == (Lineage{}) || err != nil || image.BootID != boot {
		return nil, err
	}
	l.once.Do(l.read)
	errs := []error{l.err}
	for _, one := range l.of[image.Image] {
		itself := one.pid == image.PID && one.ticks == image.StartTicks
		if itself || lineage.Precedes(one.ticks) {
			continue
		}
		fork, is, err := lineage.tell(one.pid, image)
		if is {
			found = append(found, fork)
		}
		errs = append(errs, err)
	}
	return found, errors.Join(errs...)
}

// read reads the stat files of all processes. Those of the kernel have no image.
func (l *Look) read() {
	if l.begin != nil {
		defer l.begin()()
	}
	pids, err := procid.List()
	l.of, l.err = make(map[uint64][]born), err
	for _, pid := range pids {
		stat, err := procid.ReadStat(pid)
		if number := stat.Image.Number(); err == nil && number != 0 {
			l.of[number] = append(l.of[number], born{pid, stat.StartTicks})
		}
	}
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
