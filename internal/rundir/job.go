// SPDX-License-Identifier: Apache-2.0

package rundir

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Names in the folder of a packed job; dmlib/glue makes it, and its first two.
const (
	// JoinSocket is where the processes of the job say that they are there.
	JoinSocket = "join"
	jobPrefix  = "job-"
	hostDigits = 8 // after the prefix: those of one node
)

// jobLockTime is how long the lock is waited for; who enters has it for
// milliseconds.
const jobLockTime = 2 * time.Second

// Job is the folder that the processes of a packed job share on a node.
type Job struct {
	// Path is absolute.
	Path string
}

// Socket returns the path of a socket in the folder.
func (j Job) Socket(name string) string { return SocketIn(j.Path, name) }

// NewDir makes the directory of a run beside the folder: programs can be started
// from there, as the start of packed programs has seen.
func (j Job) NewDir() (*Dir, error) { return createBelow(Current(), filepath.Dir(j.Path)) }

// Remove removes the folder unless a process has entered: empty is asked while
// nobody can. It says whether the folder is gone, but for the library where a process
// may still load that.
func (j Job) Remove(empty func() bool) (bool, error) {
	lock, err := j.lock(jobLockTime)
	if err != nil {
		return false, err
	}
	defer func() { _ = lock.Close() }() // the lock only
	if !empty() {
		return false, nil
	}
	return true, remove(j.Path)
}

// Leave removes of the folder what no process needs, whoever has entered: their
// controller ends before they do.
func (j Job) Leave() error { return remove(j.Path) }

// lock takes the lock that processes enter under. It is made as they make it: who
// removed the folder may have been killed meanwhile.
func (j Job) lock(patience time.Duration) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(j.Path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !time.Now().Before(end) {
			return nil, errors.Join(fmt.Errorf("lock of %s: %w", j.Path, err), f.Close())
		}
	}
}

// RemoveDeadJobs removes the folders of the user's packed jobs on the node of own whose
// controller was killed. Of another one, with which it may share the file system, nobody
// seems to be there.
func RemoveDeadJobs(u User, own Job) {
	name := filepath.Base(own.Path)
	mine := name[:min(len(name), len(jobPrefix)+hostDigits)]
	for _, base := range u.ownBases() {
		entries, err := os.ReadDir(base)
		if err != nil {
			continue // another run has removed it
		}
		for _, entry := range entries {
			job := Job{Path: filepath.Join(base, entry.Name())}
			if strings.HasPrefix(entry.Name(), mine) && u.checkOwn(job.Path) == nil {
				job.removeIfDead()
			}
		}
	}
}

// removeIfDead leaves a folder that is being entered alone, and one that it
// cannot remove to the next run.
func (j Job) removeIfDead() {
	lock, err := j.lock(0)
	if err != nil {
		return
	}
	defer func() { _ = lock.Close() }() // the lock only
	conn, err := net.Dial("unixpacket", j.Socket(JoinSocket))
	switch {
	case err == nil:
		_ = conn.Close() // whoever listens sees that nothing was said
	case errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ECONNREFUSED):
		_ = remove(j.Path)
	} // else somebody listens, whose queue is full
}
