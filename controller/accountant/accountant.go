// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/launch"
)

// Options says what is to be measured how; the zero value is good.
type Options struct {
	// WithoutKernel has the account made as without root.
	WithoutKernel bool
}

// Accountant makes the account of one command.
type Accountant struct {
	options Options
	source  source
	pid     int
	started time.Time
	refused error // why the kernel's source is not used
}

// New makes ready for a command. The caller must Close it.
func New(options Options) (*Accountant, error) {
	a := &Accountant{options: options}
	k, err := newKernel()
	if err != nil {
		return nil, err
	}
	a.source = k
	return a, nil
}

// Fork is for launch.Command: it calls fork, which forks the command.
func (a *Accountant) Fork(fork func() error) error { return a.source.fork(fork) }

// Ended is for launch.Command.
func (a *Accountant) Ended() { a.source.ended() }

// Begin says that the command runs.
func (a *Accountant) Begin(child *launch.Child) {
	a.pid, a.started = child.PID(), child.Started
	a.source.begin(a.pid)
}

// End returns the account of the command, which has ended.
func (a *Accountant) End(args []string, exit launch.Exit) *account.Account {
	end := a.started.Add(exit.Wall)
	record := &account.Account{
		Schema: account.SchemaID, Version: buildinfo.Get().Version, Command: args, Host: host(),
		Start: a.started, End: end, WallSeconds: exit.Wall.Seconds(),
		Accuracy: map[string]account.Accuracy{"wall_seconds": account.Exact},
		Sources:  map[string]string{}, Missing: map[string]string{},
	}
	record.Directory, _ = os.Getwd() // absent if it was removed
	record.Exit = account.Exit{Type: account.ExitNormal, Code: new(exit.Code)}
	if exit.Signal != 0 {
		record.Exit = account.Exit{Type: account.ExitSignal, Signal: unix.SignalName(exit.Signal)}
	}
	a.source.fill(record, a.started)
	if record.CPUSeconds != nil && record.WallSeconds > 0 {
		record.CoresAverage = new(*record.CPUSeconds / record.WallSeconds)
		record.Accuracy["cores_average"] = record.Accuracy["cpu_seconds"]
	}
	record.Cost.CPUSeconds, record.Cost.MemoryPeakBytes = ownCost()
	return record
}

// Close ends what New began.
func (a *Accountant) Close() error { return a.source.close() }
