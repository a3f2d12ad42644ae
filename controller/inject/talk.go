// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject/tracer"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/procid"
)

// helperPause is between looks at what a thread of its own does: nobody waits.
const helperPause = 100 * time.Microsecond

// handout is what the files that the process makes are filled with.
type handout struct {
	library  string       // path of DMLib as this process sees it
	geometry shm.Geometry // of the memory that is shared
	owner    shm.Owner    // of that memory
	user     int          // who the files must belong to
}

// talk is our side of the conversation with what loads DMLib in the process
// (dmlib/entry): it opens files, we fill them, it attaches. Each side writes
// words of its own into the mapping, and looks at those of the other.
type talk struct {
	*call
	handout handout
	reply   []byte // the attach request as it came back
	helper  int    // the thread that opened the files, as we number it
	filled  bool   // the files have been filled, or it was tried
	shared  *shm.Memory
	failed  error
}

// look listens, and fills the files when it is time. tid is the thread that does
// the work, 0 if that is not known.
func (k *talk) look(tid int) (there bool) {
	if !k.listen() {
		return false
	}
	if k.answer.state != abi.EntryFilesMade || k.filled {
		return true
	}
	k.filled = true
	if tid == 0 {
		tid, _ = procid.OuterID(k.process.PID(), k.answer.thread) // else 0 again
	}
	k.helper = tid
	k.failed = k.fill(tid)
	// Where that did not work the process finds an empty file, and gives up.
	k.say(abi.EntryGoFilled)
	return true
}

// fill makes the files that a thread has opened what they are to be.
func (k *talk) fill(tid int) error {
	if k.job.bytes {
		if err := k.fillLibrary(tid); err != nil {
			return fmt.Errorf("hand over DMLib: %w", err)
		}
	}
	file, err := openMemory(k.process.PID(), tid, k.answer.memory, k.handout.user)
	if err != nil {
		return err
	}
	if k.shared, err = shm.NewIn(file, k.handout.geometry); err != nil {
		return err
	}
	k.shared.SetOwner(k.handout.owner)
	return nil
}

func (k *talk) fillLibrary(tid int) error {
	content, err := os.ReadFile(k.handout.library)
	if err != nil {
		return err
	}
	file, err := openMemory(k.process.PID(), tid, k.answer.library, k.handout.user)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(content); err != nil {
		return err
	}
	const seals = unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	_, err = unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals)
	return err
}

// attend waits for the thread that does the work. The process goes on
// meanwhile, and may end or execute another program. After an error the caller
// calls drop.
func (k *talk) attend(ctx context.Context) error {
	until := time.Now().Add(k.timeout)
	for {
		there := k.look(0)
		switch {
		case k.answer.state == abi.EntryDone:
			return k.collect()
		case !there || !k.process.Alive():
			return ErrInterrupted
		case ctx.Err() != nil && !k.filled:
			return ctx.Err()
		case time.Now().After(until):
			return ErrTimeout
		}
		time.Sleep(helperPause)
	}
}

// collect reads what the process has written into the request, while it is
// there.
func (k *talk) collect() error {
	k.reply = make([]byte, len(k.job.request))
	return k.process.Read(k.base+uint64(k.region.request), k.reply)
}

// drop lets go of memory that nobody came to share. Who comes to it late finds it
// detached.
func (k *talk) drop() error {
	if k.shared == nil {
		return nil
	}
	err := k.shared.Close()
	k.shared = nil
	return err
}

// endPatience bounds the wait for a thread that has only to end.
const endPatience = time.Second

// dismiss lets the thread that did the work end, and waits until it has: its
// stack is then the C library's again.
func (k *talk) dismiss() {
	k.say(abi.EntryGoRead)
	until := time.Now().Add(endPatience)
	for k.apart() && k.helper != 0 && tracer.Exists(k.process.PID(), k.helper) && time.Now().Before(until) {
		time.Sleep(helperPause)
	}
}

// problem says what went wrong, nil if nothing did.
func (k *talk) problem() error {
	errno := unix.Errno(k.answer.errno)
	switch {
	case k.failed != nil:
		return k.failed
	case k.answer.state != abi.EntryDone:
		return fmt.Errorf("%w: it came to no end", ErrCall)
	case k.answer.step == 0 && k.shared != nil && k.shared.App().Ready:
		return nil
	}
	switch k.answer.step {
	case abi.EntryFiles:
		return fmt.Errorf("%w: open files of its own: %w", ErrCall, errno)
	case abi.EntryWait:
		return fmt.Errorf("%w: this command was too slow for it", ErrCall)
	case abi.EntryLoad:
		return fmt.Errorf("%w: load %s: %s", ErrCall, k.handout.library, k.text(k.answer.text))
	case abi.EntryAttach:
		return attachError(errno)
	}
	return fmt.Errorf("%w: step %d: %w", ErrCall, k.answer.step, errno)
}

// attachError says what an error of attune_dm_attach means.
func attachError(errno unix.Errno) error {
	switch errno {
	case unix.EBUSY:
		return fmt.Errorf("%w: it came first", ErrHeld)
	case unix.EPERM:
		return fmt.Errorf("%w: it runs with the rights of another user than who started it", ErrUnsuited)
	case unix.EINVAL:
		return fmt.Errorf("%w: its DMLib is of another version: restart it", ErrUnsuited)
	}
	return fmt.Errorf("%w: attach: %w", ErrCall, errno)
}

// text reads a C string of the process.
func (k *talk) text(at uint64) string {
	buffer := make([]byte, 256)
	for size := len(buffer); at != 0 && size > 0; size /= 2 {
		if k.process.Read(at, buffer[:size]) != nil {
			continue
		}
		for i, b := range buffer[:size] {
			if b == 0 {
				return string(buffer[:i])
			}
		}
		return string(buffer[:size])
	}
	return "no reason given"
}
