// SPDX-License-Identifier: Apache-2.0

package archived

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/pflag"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/batch"
	"github.com/attune-hpc/attune/internal/postgres"
	"github.com/attune-hpc/attune/internal/regular"
)

// With opens the archive for a command, where its flags say. Accounts that wait on this node for
// that archive are sent there after do; [ErrNotSent] if that is all that failed.
func With(ctx context.Context, flags *pflag.FlagSet, do func(*archive.Store) error) error {
	at, err := Find(flags)
	if err != nil {
		return err
	}
	return with(ctx, at, do)
}

func with(ctx context.Context, at string, do func(*archive.Store) error) error {
	at, err := resolve(at)
	if err != nil {
		return err
	}
	s, err := archive.Open(ctx, at)
	if err != nil {
		return err
	}
	err = do(s)
	if err == nil {
		err = send(ctx, s, at)
	}
	return errors.Join(err, s.Close())
}

// Pending is what is known of a task before it runs. It belongs to one goroutine.
type Pending struct {
	task       archive.Task
	at         string
	executable *os.File // nil: not to be read
}

// Begin looks at a command that is about to run: at its executable, which may be another
// file later, and at the sizes of the files that its arguments name. It reads none of them,
// and never fails. The caller calls Keep or Drop. at is what [Find] returned.
func Begin(command []string, name, at string) *Pending {
	p := &Pending{at: at, task: archive.Task{Schema: archive.SchemaID, Source: "attune", Name: name}}
	if len(command) == 0 {
		return p
	}
	if path, err := exec.LookPath(command[0]); err == nil {
		p.executable, _ = regular.Open(path) // it may be executable only; then there is no checksum
	}
	var input uint64
	for _, argument := range command[1:] {
		if info, err := os.Stat(argument); err == nil && info.Mode().IsRegular() {
			input += uint64(info.Size())
		}
	}
	if input > 0 {
		p.task.InputBytes = &input
	}
	job := batch.Current(os.Getenv)
	p.task.Job, p.task.Asked = job.ID, archive.Asked{MemoryBytes: job.MemoryBytes, Cores: job.Cores, WallSeconds: job.WallSeconds}
	return p
}

// Keep adds the task, with its account, to the archive. Its error says what to do;
// the task's own result is not concerned.
func (p *Pending) Keep(ctx context.Context, a *account.Account) error {
	defer p.Drop()
	if p.executable != nil {
		p.task.Program, _ = regular.Checksum(ctx, p.executable) // without, tasks are told apart by name
	}
	p.task.Account = *a
	return p.add(ctx)
}

// serverWait bounds the wait for a server at the end of a task.
const serverWait = 15 * time.Second

// add adds the task to the archive, or puts it aside.
func (p *Pending) add(ctx context.Context) error {
	bounded := ctx
	if postgres.IsURL(p.at) {
		var stop context.CancelFunc
		bounded, stop = context.WithTimeout(ctx, serverWait)
		defer stop()
	}
	err := with(bounded, p.at, func(s *archive.Store) error {
		_, err := s.Add(bounded, &p.task)
		return err
	})
	return p.putAside(context.WithoutCancel(ctx), err)
}

// putAside keeps a task on this node that the archive did not take, if the archive may take it
// from a later command. The error is that of the archive, and says where the task waits.
func (p *Pending) putAside(ctx context.Context, err error) error {
	if !mayBeAddedLater(p.at, err) {
		return err
	}
	path, waitErr := wait(ctx, p.at, &p.task)
	if waitErr != nil {
		return errors.Join(err, waitErr)
	}
	return fmt.Errorf("%w; it waits in %s, and the next command that reaches the archive adds it", err, path)
}

// mayBeAddedLater says whether a later command may add what the archive at a place did not take.
func mayBeAddedLater(at string, err error) bool {
	switch {
	case err == nil || errors.Is(err, ErrNotSent) || errors.Is(err, archive.ErrInvalid):
		return false
	case postgres.IsURL(at):
		return true
	}
	return errors.Is(err, archive.ErrBusy) || errors.Is(err, archive.ErrFull)
}

// Drop forgets the task. It may be called again.
func (p *Pending) Drop() {
	if p.executable != nil {
		_ = p.executable.Close() // it was only read
		p.executable = nil
	}
}
