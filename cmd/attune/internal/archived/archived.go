// SPDX-License-Identifier: Apache-2.0

package archived

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
	"github.com/attune-hpc/attune/internal/batch"
	"github.com/attune-hpc/attune/internal/regular"
	"github.com/attune-hpc/attune/internal/rundir"
)

// File is the name of the archive in the state directory.
const File = "archive.db"

// With opens the user's archive for a command.
func With(ctx context.Context, do func(*archive.Store) error) error {
	dir, err := rundir.Current().KnowledgeDir()
	if err != nil {
		return err
	}
	s, err := archive.Open(ctx, filepath.Join(dir, File))
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// Pending is what is known of a task before it runs. It belongs to one goroutine.
type Pending struct {
	task       archive.Task
	executable *os.File // nil: not to be read
}

// Begin looks at a command that is about to run: at its executable, which may be another
// file later, and at the sizes of the files that its arguments name. It reads none of them,
// and never fails. The caller calls Keep or Drop.
func Begin(command []string, name string) *Pending {
	p := &Pending{task: archive.Task{Schema: archive.SchemaID, Source: "attune", Name: name}}
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

// Keep adds the task, with its account, to the user's archive. Its error says what to do;
// the task's own result is not concerned.
func (p *Pending) Keep(ctx context.Context, a *account.Account) error {
	defer p.Drop()
	if p.executable != nil {
		p.task.Program, _ = regular.Checksum(ctx, p.executable) // without, tasks are told apart by name
	}
	p.task.Account = *a
	return With(ctx, func(s *archive.Store) error {
		_, err := s.Add(ctx, &p.task)
		return err
	})
}

// Drop forgets the task. It may be called again.
func (p *Pending) Drop() {
	if p.executable != nil {
		_ = p.executable.Close() // it was only read
		p.executable = nil
	}
}
