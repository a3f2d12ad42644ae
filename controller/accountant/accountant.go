// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/batch"
	"github.com/attune-hpc/attune/internal/buildinfo"
	"github.com/attune-hpc/attune/internal/launch"
	"github.com/attune-hpc/attune/internal/procid"
)

// Accountant makes the account of one command.
type Accountant struct {
	options Options
	source  source
	refused error // why the kernel's source does not serve
	noFiles error // why the kernel does not account for files though they were asked for
	group   *group
	disk    *disk // nil: it is not measured
	watched []watched
	pid     int
	started time.Time
	sampler *sampler
	stop    context.CancelFunc
	stopped chan struct{}
	calm    func() // undoes hurry
}

// New makes ready for a command. The caller must Close it.
func New(options Options) (*Accountant, error) {
	if options.Every == 0 {
		options.Every = 50 * time.Millisecond
	}
	options.Every = max(options.Every, MinEvery)
	a := &Accountant{options: options, group: &group{err: errors.New("the command is left in that of attune")}}
	var err error
	if a.disk, err = newDisk(&options); err != nil {
		return nil, err
	}
	if err := a.openSource(); err != nil {
		return nil, errors.Join(err, a.disk.close())
	}
	if !options.NoGroup && !options.Beside {
		a.group = newGroup()
	}
	err = limitable(&a.options, a.group, a.source)
	if err == nil {
		err = hold(&a.options, a.group)
	}
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Accountant) openSource() error {
	if !a.options.WithoutKernel {
		k, noFiles, err := newKernel(a.options.Files, a.options.Beside)
		if err == nil {
			k.limited = len(a.options.Limits) > 0
			a.source, a.noFiles = k, noFiles
			return nil
		}
		a.refused = err
	}
	if a.options.Files {
		a.noFiles = cmp.Or(a.refused, errors.New("needs the kernel's account"))
	}
	r, err := newReaped(a.options.Beside, a.disk.helper)
	a.source = r
	return err
}

// Prepare has a command forked so that it can be followed.
func (a *Accountant) Prepare(cmd *launch.Command) {
	a.watched = startingWith(a.options.Snapshots)
	cmd.Group, cmd.GroupOnly = a.group.fd(), a.group.required()
	cmd.Ended = a.source.ended
	cmd.Fork = func(fork func() error) error {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		return a.group.around(func() error { return a.source.fork(fork) })
	}
}

// Begin says that the command runs.
func (a *Accountant) Begin(child *launch.Child) {
	a.pid, a.started = child.PID(), child.Started
	a.source.begin(a.pid)
	a.group.began(child.InGroup)
	a.disk.begin(a.started)
	ctx, stop := context.WithCancel(context.Background())
	a.stop, a.stopped = stop, make(chan struct{})
	a.sampler = &sampler{
		options: a.options, source: a.source, group: a.group, disk: a.disk, started: a.started,
		enforcer: newEnforcer(&a.options, a.group), shown: newShown(ctx, &a.options, a.watched),
		times: make(map[string]float64), sharing: newSharing(),
	}
	if a.noFiles != nil {
		a.sampler.opened = newOpened()
	}
	a.calm = func() {}
	if a.options.anyHard() {
		a.calm = hurry()
	}
	go func() {
		defer close(a.stopped)
		a.sampler.run(ctx)
	}()
}

// End returns the account of the command, which has ended. With Options.Wait it
// waits for the other processes, until ctx ends.
func (a *Accountant) End(ctx context.Context, args []string, exit launch.Exit) *account.Account {
	end := a.started.Add(exit.Wall)
	if a.options.Wait && a.awaitOthers(ctx) {
		end = time.Now()
	}
	a.stop() // before anything that takes time: from here on no limit is compared
	<-a.stopped
	a.sampler.enforcer.checkKilled()
	a.endOthers()
	a.calm()
	record := &account.Account{
		Schema: account.SchemaID, Version: buildinfo.Get().Version, Command: args, Host: host(),
		Start: a.started, End: end, WallSeconds: end.Sub(a.started).Seconds(),
		Accuracy: map[string]account.Accuracy{"wall_seconds": account.Exact},
		Sources:  map[string]string{}, Missing: map[string]string{},
	}
	record.Directory, _ = os.Getwd() // absent if it was removed
	fillAvailable(record, batch.Current(os.Getenv))
	mark, all := a.source.fill(record, a.started, exit.Rusage, a.sampler.last.taken)
	a.sampler.fill(record, mark, all)
	_, refused := procid.SharesMemory(os.Getpid(), os.Getpid())
	fillDoubled(record, refused)
	a.disk.end()
	a.disk.fill(record)
	if a.refused != nil {
		record.Missing["accuracy"] = whyNotKernel(a.refused)
	}
	if a.sampler.opened != nil {
		a.sampler.opened.fill(record, a.noFiles)
	}
	a.fillExit(record, exit)
	fillCores(record)
	record.Cost.CPUSeconds, record.Cost.MemoryPeakBytes = ownCost()
	return record
}

// fillCores relates the CPU time to the time by the clock.
func fillCores(record *account.Account) {
	if record.CPUSeconds == nil || record.WallSeconds <= 0 {
		return
	}
	record.CoresAverage = new(*record.CPUSeconds / record.WallSeconds)
	record.Accuracy["cores_average"] = record.Accuracy["cpu_seconds"]
	if record.CoresPeak != nil { // of spans between looks, of which one is above the average
		record.CoresPeak = new(max(*record.CoresPeak, *record.CoresAverage))
	}
}

// fillExit says how the command ended, and which limits were exceeded.
func (a *Accountant) fillExit(record *account.Account, exit launch.Exit) {
	record.Exit = account.Exit{Type: account.ExitNormal, Code: new(exit.Code)}
	if exit.Signal != 0 {
		record.Exit = account.Exit{Type: account.ExitSignal, Signal: account.SignalName(exit.Signal)}
	}
	for i, e := range a.sampler.enforcer.excesses {
		// What no look at the living saw may be in the totals.
		limit := a.options.Limits[i]
		if total, known := record.Number(limit.Field); known && total > max(limit.Max, e.peak) {
			e = excess{limit, total}
		}
		switch {
		case e.limit.Field == "":
		case e.limit.Soft:
			record.Exit.SoftLimits = append(record.Exit.SoftLimits, e.String())
		default:
			record.Exit.Limits = append(record.Exit.Limits, e.String())
		}
	}
	if a.sampler.enforcer.ender.ending() {
		record.Exit.Type = account.ExitLimits
	}
}

// awaitOthers waits until no process is left. False if none was.
func (a *Accountant) awaitOthers(ctx context.Context) (waited bool) {
	a.untilNobody(ctx, func([]living) { waited = true })
	return waited
}

// endTimeout is how long processes may take to end after SIGKILL: one that waits
// for a disk takes no signal.
const endTimeout = 10 * time.Second

// endOthers ends what is left of a command that exceeded a limit.
func (a *Accountant) endOthers() {
	e := &a.sampler.enforcer.ender
	if !e.ending() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.grace+endTimeout)
	defer cancel()
	a.untilNobody(ctx, func(alive []living) { e.press(alive, time.Now()) })
}

// failedLooks is how many looks may fail one after the other before nobody can be waited for:
// those of endTimeout.
const failedLooks = int(endTimeout / endPause)

// untilNobody looks until no process is left, and calls seen with those that live. It gives up when
// ctx ends, or when failedLooks looks have failed one after the other.
func (a *Accountant) untilNobody(ctx context.Context, seen func(alive []living)) {
	for failed := 0; ctx.Err() == nil && failed < failedLooks; time.Sleep(endPause) {
		n, err := a.source.look()
		switch {
		case err != nil:
			failed++
		case len(n.alive)+len(n.ending) == 0:
			return
		default:
			failed = 0
			seen(n.alive)
		}
	}
}

// Close ends what New began.
func (a *Accountant) Close() error {
	if err := errors.Join(a.source.close(), a.group.close(), a.disk.close()); err != nil {
		return fmt.Errorf("end the account: %w", err)
	}
	return nil
}
