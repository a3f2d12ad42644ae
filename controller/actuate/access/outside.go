// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/loaderlist"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
)

// MaxErrno is the greatest error that a system call returns.
const MaxErrno = 4095

// MapStopped has a stopped thread of the process map memory that is readable
// and executable. unix.EEXIST where something is mapped.
func MapStopped(ctx context.Context, process Process, start, size uint64) error {
	result, _, err := Execute(ctx, process, MapCode(start, size, unix.PROT_READ|unix.PROT_EXEC), inject.ExecuteOptions{Anywhere: true})
	switch {
	case err != nil:
		return err
	case result == start:
		return nil
	case -result <= MaxErrno:
		return fmt.Errorf("map %d bytes at %#x: %w", size, start, unix.Errno(-result))
	}
	return fmt.Errorf("map %d bytes at %#x: the kernel chose %#x", size, start, result)
}

// RewriteStopped changes code while all threads of the process are stopped, see
// [inject.Rewrite].
func RewriteStopped(ctx context.Context, process Process, changes ...proc.Change) error {
	held, err := process.Hold()
	if err == nil {
		_, err = inject.Rewrite(ctx, held, changes...)
	}
	return err
}

// Journaled is a process of which only the identity is known: the journal or the user names
// it. Whoever made it closes it.
type Journaled struct {
	sync.Mutex
	identity procid.Identity
	image    proc.Keeper
	sites    *sites.Sites
}

// ProcessOf is the process of an identity, without DMLib as far as anybody knows.
func ProcessOf(identity procid.Identity) *Journaled { return &Journaled{identity: identity} }

// PID implements [Process].
func (j *Journaled) PID() int { return j.identity.PID }

// Identity implements [Process].
func (j *Journaled) Identity() procid.Identity { return j.identity }

// Alive implements [Process].
func (j *Journaled) Alive() bool { return !Ended(j.identity) }

// Images implements [Process].
func (j *Journaled) Images() ([]objfile.Image, error) {
	images, err := objfile.Images(j.identity.PID)
	return loaderlist.ProgramFirst(j, images), err
}

// Mailbox implements [Process]: there is none.
func (j *Journaled) Mailbox() Mailbox { return nil }

// Hold implements [proc.Holder].
func (j *Journaled) Hold() (*proc.Handle, error) { return j.image.Hold(j.identity, nil) }

// Close lets go of the process.
func (j *Journaled) Close() { _ = j.image.Close() } // nothing was written by way of it that is not there

// Sites implements [Process]: memory is mapped by a stopped thread. The caller holds the
// process' lock, or is the only one who has it.
func (j *Journaled) Sites() *sites.Sites {
	if j.sites == nil {
		j.sites = sites.NewSites(Outside{Process: j}, new(sites.Functions))
	}
	return j.sites
}

// Outside is a process as package sites wants it.
type Outside struct{ Process }

// Memory implements [sites.Process].
func (Outside) Memory() *shm.Memory { return nil }

// Rewrite implements [sites.Process].
func (o Outside) Rewrite(ctx context.Context, changes ...proc.Change) error {
	return RewriteStopped(ctx, o.Process, changes...)
}

// Map implements [sites.Process].
func (o Outside) Map(ctx context.Context, start, size uint64) error {
	return MapStopped(ctx, o.Process, start, size)
}

// Ended says whether a process is gone; its pid may be somebody else's.
func Ended(identity procid.Identity) bool {
	now, err := procid.Of(identity.PID)
	return errors.Is(err, procid.ErrGone) || err == nil && !now.SameProcess(identity)
}
