// SPDX-License-Identifier: Apache-2.0

package tunlethost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
	"golang.org/x/sys/unix"
)

// pipePatience is how long after a tunlet's end its output is still read, in
// case a descendant holds the pipes open. What is there when it is over is lost: why
// a tunlet ended, where whoever reads has to wait for a CPU.
const pipePatience = 2 * time.Second

// process runs one tunlet process for go-plugin, whose own runner would hand
// the application's standard input to it.
type process struct {
	path   string
	limits Limits
	grow   bool // the limits grow later; see launcher
	cmd    *exec.Cmd
	stdout *os.File
	stderr *os.File
	exited chan struct{} // closed when the process has been reaped
	state  *os.ProcessState
	rss    atomic.Uint64 // peak before it was killed, bytes

	costs     *account
	accounted bool // what it took is in costs; guarded by the mutex there

	mu     sync.Mutex // guards what follows; held while the process is started
	pid    int        // 0: not started, or start failed
	doomed bool       // killed before it was started
}

var _ runner.Runner = (*process)(nil)

// newProcess prepares a process; env is its whole environment.
func newProcess(path string, arguments, env []string, limits Limits, costs *account) *process {
	cmd := exec.Command(path, arguments...)
	cmd.Env = env
	cmd.Dir = "/"
	// No session of its own: the kernel shares processors out by session where they have no
	// control groups, and beside threads that wake each other all the time it let
	// one that is rarely runnable wait for 8 s of 9 (Linux 6.18).
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return &process{path: path, limits: limits, costs: costs, cmd: cmd, exited: make(chan struct{})}
}

// Start starts the process. The goroutine that does so keeps its thread until
// the process ends, because Pdeathsig goes by the parent thread.
func (p *process) Start(context.Context) error {
	outR, outW, err := os.Pipe()
	if err != nil {
		return err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return errors.Join(err, outR.Close(), outW.Close())
	}
	p.stdout, p.stderr = outR, errR
	p.cmd.Stdout, p.cmd.Stderr = outW, errW
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := p.launch()
		_ = outW.Close()
		_ = errW.Close()
		started <- err
		if err == nil {
			p.reap()
		}
	}()
	if err := <-started; err != nil {
		return errors.Join(err, outR.Close(), errR.Close())
	}
	return nil
}

// launch starts the process unless it has been killed already.
func (p *process) launch() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doomed {
		return errors.New("stopped before it was started")
	}
	var at *fs.PathError
	switch err := p.cmd.Start(); {
	case errors.As(err, &at):
		return fmt.Errorf("execute it: %w", at.Err) // which tunlet it is, the caller says
	case err != nil:
		return err
	}
	p.pid = p.cmd.Process.Pid
	_ = p.limits.confine(p.pid, p.grow) // else it is only looked at
	return nil
}

// reap waits for the end, then ends what the process left behind.
func (p *process) reap() {
	p.state, _ = p.cmd.Process.Wait()
	if p.state != nil {
		p.costs.close(p, p.state.UserTime()+p.state.SystemTime())
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	deadline := time.Now().Add(pipePatience)
	_ = p.stdout.SetReadDeadline(deadline)
	_ = p.stderr.SetReadDeadline(deadline)
}

// Wait waits until the process has ended.
func (p *process) Wait(context.Context) error {
	<-p.exited
	_ = p.stdout.Close()
	_ = p.stderr.Close()
	if p.state != nil && !p.state.Success() {
		return errors.New(p.state.String())
	}
	return nil
}

// Kill kills the process and its group at once. Its peak memory is read before.
func (p *process) Kill(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 {
		p.doomed = true
		return nil
	}
	select {
	case <-p.exited:
		return nil
	default:
	}
	p.measure()
	if err := syscall.Kill(-p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// Stdout returns the reading end of the process' standard output.
func (p *process) Stdout() io.ReadCloser { return p.stdout }

// Stderr returns the reading end of its standard error.
func (p *process) Stderr() io.ReadCloser { return p.stderr }

// Name returns the path of the binary.
func (p *process) Name() string { return p.path }

// ID returns the process id.
func (p *process) ID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pid == 0 {
		return ""
	}
	return strconv.Itoa(p.pid)
}

// Diagnose adds nothing: the tail of standard error says more.
func (p *process) Diagnose(context.Context) string { return "" }

// PluginToHost returns the address as it is: both live in one file system.
func (p *process) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}

// HostToPlugin returns the address as it is.
func (p *process) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

// raise has the kernel let the process take what it may take now that its limits have
// grown. It lowers nothing: memory that a run-time system gave back stays mapped, and counts.
func (p *process) raise(l Limits) error {
	select {
	case <-p.exited: // its pid may be another's by now
		return nil
	default:
	}
	var limit unix.Rlimit
	if err := unix.Prlimit(p.pid, unix.RLIMIT_DATA, nil, &limit); err != nil || limit.Cur >= l.data() {
		return err
	}
	limit.Cur = min(l.data(), limit.Max)
	return unix.Prlimit(p.pid, unix.RLIMIT_DATA, &limit, nil)
}

// measure reads what the process takes, and notes its peak of memory; of one that is
// gone, which is false, it has the peak that is known. The peak is not read from rusage: ru_maxrss of a child starts with
// the memory of the parent that it was forked from.
func (p *process) measure() (usage, bool) {
	select {
	case <-p.exited: // its pid may be another's by now
		return usage{peak: p.rss.Load()}, false
	default:
	}
	u, ok := usageOf(p.pid)
	p.rss.Store(max(p.rss.Load(), u.peak))
	u.peak = p.rss.Load()
	if ok {
		p.costs.note(p, u)
	}
	return u, ok
}
