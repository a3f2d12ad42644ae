// SPDX-License-Identifier: Apache-2.0

package accountant

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/launch"
	"github.com/attune-hpc/attune/internal/procid"
)

// reaper waits for what lost its parent, and keeps what it took.
type reaper struct {
	root   int                // the command, which is its launcher's to wait for
	helper func(pid int) bool // whether a child is one of this process's helpers (package readers)

	mu    sync.Mutex // guards what follows
	sum   taken      // of what was reaped here
	took  taken      // of the command and whatever it waited for: bytes and calls
	ioErr error      // why the former is not known
	shown taken      // all that the command took, as /proc had it at its end
	// files are the io files of the command and of what lost its parent. A user may
	// read that of an ended process, but not open it.
	files     map[int]*os.File
	strangers strangers // none beside other work, where nobody is adopted
	blind     error     // why bytes and calls of something that lost its parent are not in sum
}

func newReaper(helper func(pid int) bool) reaper {
	return reaper{helper: helper, ioErr: errors.New("the command's end was not seen"), files: make(map[int]*os.File)}
}

func (r *reaper) begin(pid int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.root = pid
	_ = r.openIO(pid) // ended sees that it is not there
}

// done returns what those took that have ended: that lost their parent, and the command.
func (r *reaper) done() taken {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := r.sum
	sum.add(r.shown)
	return sum
}

// all adds what the kernel said of the command, and why bytes and calls are not
// known of the command, or of others.
func (r *reaper) all(usage unix.Rusage) (sum taken, ioErr, blind error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum = r.sum
	var own taken
	addUsage(&own, usage)
	sum.add(own)
	sum.add(r.took)
	return sum, r.ioErr, r.blind
}

// close closes files that were read only.
func (r *reaper) close() {
	for _, file := range r.files {
		_ = file.Close()
	}
}

// openIO opens the io file of a process, to be read when it has ended.
func (r *reaper) openIO(pid int) error {
	file, err := os.Open(fmt.Sprintf("/proc/%d/io", pid))
	if err == nil {
		r.files[pid] = file
	}
	return err
}

// endIO reads the io file of a process that has ended.
func (r *reaper) endIO(pid int) (t taken, err error) {
	file := r.files[pid]
	if file == nil {
		if err := r.openIO(pid); err != nil {
			return t, err
		}
		file = r.files[pid]
	}
	defer file.Close()
	delete(r.files, pid)
	data := make([]byte, ioBytes)
	n, err := file.ReadAt(data, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return t, err
	}
	err = parseIO(data[:n], &t)
	return t, err
}

// ioBytes is more than an io file has.
const ioBytes = 4096

// ended reads the io file of the command, which holds what all took that were
// waited for; a zombie still has one.
func (r *reaper) ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took, r.ioErr = r.endIO(r.root)
	r.shown, _ = readWhole(r.root, false) // it is there until its launcher waits for it
	r.shown.add(r.took)
}

// reap waits for processes that lost their parent and have ended.
func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strangers.follow()
	for _, pid := range childrenOf(os.Getpid()) {
		stat, err := procid.ReadStat(pid)
		switch {
		case err != nil || pid == r.root:
		case r.files[pid] == nil && r.isStrange(stat):
			if stat.Zombie() && r.strangers.adopted(stat) {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // it has ended
			}
		case stat.Zombie():
			r.take(pid)
		case r.files[pid] == nil:
			_ = r.openIO(pid) // take sees that it is not there
		}
	}
}

// take reaps a process and adds up what it took.
func (r *reaper) take(pid int) {
	t, err := r.endIO(pid)
	if r.blind == nil {
		r.blind = err
	}
	var usage unix.Rusage
	if got, err := unix.Wait4(pid, nil, unix.WNOHANG, &usage); err != nil || got != pid {
		return // somebody else has waited for it
	}
	addUsage(&t, usage)
	r.sum.add(t)
}

// follow looks for what the strangers have started.
func (r *reaper) follow() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strangers.follow()
}

// strange says whether a child is none of the command's: it was there before, comes of what was, or is a
// helper, which is its parent's to wait for.
func (r *reaper) strange(stat procid.Stat) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isStrange(stat)
}

func (r *reaper) isStrange(stat procid.Stat) bool {
	return r.strangers.has(stat) || r.helper(stat.PID) || launched(stat)
}

// launched says whether a child executes this program and is called as those of package launch. Others may
// be called so, too.
func launched(stat procid.Stat) bool {
	if !launch.IsHelper(stat.Comm) {
		return false
	}
	own, err := os.Stat("/proc/self/exe")
	its, err2 := os.Stat(fmt.Sprintf("/proc/%d/exe", stat.PID))
	return err == nil && (err2 != nil && stat.Zombie() || err2 == nil && os.SameFile(own, its))
}

func addUsage(t *taken, usage unix.Rusage) {
	t.user, t.system = time.Duration(usage.Utime.Nano()), time.Duration(usage.Stime.Nano())
	t.cpu = t.user + t.system
	t.voluntary, t.involuntary = uint64(usage.Nvcsw), uint64(usage.Nivcsw)
	t.minorFaults, t.majorFaults = uint64(usage.Minflt), uint64(usage.Majflt)
}
