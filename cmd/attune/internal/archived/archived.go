// SPDX-License-Identifier: Apache-2.0

package archived

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/batch"
	"github.com/attune-hpc/attune/internal/postgres"
	"github.com/attune-hpc/attune/internal/regular"
	"github.com/attune-hpc/attune/internal/rundir"
)

// With opens the archive for a command, where its flags say. Where that is on a server, accounts
// that wait on this node are sent there after do; [ErrNotSent] if that is all that failed.
func With(ctx context.Context, flags *pflag.FlagSet, do func(*archive.Store) error) error {
	at, err := Find(flags)
	if err != nil {
		return err
	}
	return with(ctx, at, do)
}

func with(ctx context.Context, at string, do func(*archive.Store) error) error {
	if at == "" {
		dir, err := rundir.Current().KnowledgeDir()
		if err != nil {
			return err
		}
		at = filepath.Join(dir, File)
	}
	s, err := archive.Open(ctx, at)
	if err != nil {
		return err
	}
	err = do(s)
	if err == nil && postgres.IsURL(at) {
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

// add adds the task. If a server does not take it, it waits on this node for the next
// command that reaches the server.
func (p *Pending) add(ctx context.Context) error {
	bounded, onServer := ctx, postgres.IsURL(p.at)
	if onServer {
		var stop context.CancelFunc
		bounded, stop = context.WithTimeout(ctx, serverWait)
		defer stop()
	}
	err := with(bounded, p.at, func(s *archive.Store) error {
		_, err := s.Add(bounded, &p.task)
		return err
	})
	if err == nil || !onServer || errors.Is(err, ErrNotSent) || errors.Is(err, archive.ErrInvalid) {
		return err
	}
	path, waitErr := wait(context.WithoutCancel(ctx), p.at, &p.task)
	if waitErr != nil {
		return errors.Join(err, waitErr)
	}
	return fmt.Errorf("%w; it waits in %s, and the next command that reaches the archive adds it", err, path)
}

// Drop forgets the task. It may be called again.
func (p *Pending) Drop() {
	if p.executable != nil {
		_ = p.executable.Close() // it was only read
		p.executable = nil
	}
}
