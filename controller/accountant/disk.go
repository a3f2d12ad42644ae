// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/footprint"
	"github.com/attune-hpc/attune/internal/readers"
)

const (
	// diskShare is what part of the time may be spent with walks through directories, as a
	// divisor.
	diskShare = 20
	// longestWalk is how long a walk may take, lastWalk the one at the command's end.
	longestWalk, lastWalk = 30 * time.Second, 2 * time.Second
	// helperPatience is how much more time the helper has.
	helperPatience = 5 * time.Second
)

// ErrDirectory says that the footprint of a directory cannot be measured.
var ErrDirectory = errors.New("cannot tell the footprint")

// measure is a walk, which may never end: a server of NFS or FUSE may not answer.
var measure = readers.NewOperation("measure", footprint.Measure).Slow()

// Operations lists what may never end, for the process that does it (package readers).
func Operations() []readers.Served { return []readers.Served{measure} }

// disk measures the footprint of directories again and again.
type disk struct {
	question footprint.Question
	every    time.Duration
	patience time.Duration
	started  time.Time
	pool     *readers.Pool
	stopped  chan struct{}
	stop     context.CancelFunc // the walks but the last one
	cancel   context.CancelFunc // that one, too

	mu           sync.Mutex // guards what follows
	now          footprint.Footprint
	bytes, files peak
	missed       string // why the peaks are a bound, or absent
	measured     bool
}

// needsDisk says whether a footprint is wanted.
func (o *Options) needsDisk() bool {
	return len(o.Directories) > 0 || slices.ContainsFunc(o.Limits, func(l Limit) bool { return strings.HasPrefix(l.Field, "disk.") })
}

// newDisk makes ready to measure, the working directory if only limits ask for it; nil if
// nothing is to be. It fails with [ErrDirectory] if a directory
// cannot be measured now.
func newDisk(o *Options) (*disk, error) {
	if !o.needsDisk() {
		return nil, nil
	}
	d := &disk{
		every: o.Every, patience: cmp.Or(o.helperPatience, helperPatience),
		stopped: make(chan struct{}), pool: readers.New(readers.Options{Command: o.helper, Own: true}),
	}
	directories := o.Directories
	if len(directories) == 0 {
		directories = []string{"."}
	}
	for _, path := range directories {
		whole, err := filepath.Abs(path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%w: %s: %w", ErrDirectory, path, err), d.close())
		}
		d.question.Directories = append(d.question.Directories, whole)
	}
	// The helper starts before whoever follows processes. Without time, it opens the directories.
	if _, err := d.ask(context.Background(), 0); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// ask has the helper walk for most.
func (d *disk) ask(ctx context.Context, most time.Duration) (footprint.Footprint, error) {
	q := d.question
	q.Most = most
	ctx, cancel := context.WithTimeout(ctx, most+d.patience)
	defer cancel()
	now, err := measure.Ask(ctx, d.pool, uint32(os.Getuid()), q)
	if ctx.Err() != nil || errors.Is(err, readers.ErrRefused) {
		err = fmt.Errorf("%w: %s: %w", ErrDirectory, strings.Join(q.Directories, ", "), errSilent)
	} else if err != nil {
		err = fmt.Errorf("%w: %w", ErrDirectory, err)
	}
	return now, err
}

// helper says whether a child of this process is one that measures.
func (d *disk) helper(pid int) bool { return d != nil && d.pool.Has(pid) }

// begin measures from now on until end.
func (d *disk) begin(started time.Time) {
	if d == nil {
		return
	}
	d.started = started
	ctx, cancel := context.WithCancel(context.Background())
	running, stop := context.WithCancel(ctx)
	d.cancel, d.stop = cancel, stop
	go d.run(ctx, running)
}

// run measures again and again until running ends, and then once more.
func (d *disk) run(ctx, running context.Context) {
	defer close(d.stopped)
	for running.Err() == nil {
		begun := time.Now()
		if now, err := d.ask(running, longestWalk); running.Err() == nil { // else it was cut off
			d.take(now, err)
		}
		select {
		case <-running.Done():
		case <-time.After(max(d.every, diskShare*time.Since(begun)) - time.Since(begun)):
		}
	}
	d.take(d.ask(ctx, lastWalk))
}

// take takes note of what was measured.
func (d *disk) take(now footprint.Footprint, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.miss(err.Error())
		return
	}
	d.miss(now.Missed)
	d.now, d.measured = now, true
	seconds := time.Since(d.started).Seconds()
	if now.Bytes > d.bytes.value {
		d.bytes = peak{now.Bytes, seconds}
	}
	if now.Files > d.files.value {
		d.files = peak{now.Files, seconds}
	}
}

func (d *disk) miss(why string) {
	if d.missed == "" {
		d.missed = why
	}
}

// latest is what there was at the last walk.
func (d *disk) latest() (now footprint.Footprint, known bool) {
	if d == nil {
		return now, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now, d.measured
}

// end measures for the last time. A walk that does not end is left behind.
func (d *disk) end() {
	if d == nil || d.cancel == nil {
		return
	}
	d.stop()
	select {
	case <-d.stopped:
	case <-time.After(lastWalk + d.patience):
	}
	d.cancel()
	<-d.stopped
}

// fill fills in the peaks, after end.
func (d *disk) fill(a *account.Account) {
	if d == nil {
		return
	}
	a.Disk.Directories = d.question.Directories
	accuracy := account.Sampled
	for _, f := range []struct {
		name string
		into **uint64
		peak peak
	}{{diskFiles, &a.Disk.Files, d.files}, {diskBytes, &a.Disk.Bytes, d.bytes}} {
		if d.missed != "" {
			accuracy, a.Missing[f.name] = account.Bound, d.missed
		}
		if d.measured {
			*f.into, a.PeakTimes[f.name] = new(f.peak.value), f.peak.seconds
			a.Note(accuracy, "statx(2) of all that lies in the directories", f.name)
		}
	}
}

// close ends the helper, unless it hangs.
func (d *disk) close() error {
	if d == nil {
		return nil
	}
	return d.pool.Close()
}
