// SPDX-License-Identifier: Apache-2.0

package child

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/bounded"
	"github.com/attune-hpc/attune/internal/unixmsg"
)

// Word is the argument with which attuned runs [Serve].
const Word = "session"

// socketFD is where a session's process has its socket.
const socketFD = 3

// process is one for a session, started, and idle until it is told what for.
type process struct {
	*conversation

	command *exec.Cmd
	errors  *bounded.Head
	// waited is closed when the process was waited for; failed is set before.
	waited chan struct{}
	failed error
}

// startProcess starts one. It ends with the thread that calls startProcess.
func startProcess(program []string) (*process, error) {
	own, other, err := socketPair(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, err
	}
	defer other.Close()
	p := &process{conversation: newConversation(own, mostFromChild, 0), errors: &bounded.Head{Most: maxSaid}, waited: make(chan struct{})}
	p.command = exec.Command(program[0], program[1:]...)
	p.command.ExtraFiles, p.command.Stderr = []*os.File{other}, p.errors
	p.command.WaitDelay = time.Second // what it has started may have its stderr
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("process of a session: %w", err), own.Close())
	}
	go func() { // ends with the process
		defer close(p.waited)
		p.failed = p.command.Wait()
	}()
	return p, nil
}

// killPatience is how long a process may take to end that was killed, on a crowded
// machine too.
const killPatience = 5 * time.Second

// errLeftBehind says that a process sleeps where no signal wakes it, as one does that
// reads what a silent FUSE server has. It ends when that does.
var errLeftBehind = errors.New("the process does not end though it was killed, and is left behind")

// end hangs up, waits until the process has ended, by force when ctx ends, and returns
// why it ended, nil if by itself and well; errLeftBehind if it has not.
func (p *process) end(ctx context.Context) error {
	_ = unixmsg.Close(p.conn) // the process ends when it sees that
	if !p.endsBefore(ctx) {
		_ = p.command.Process.Kill() // it has ended, or does now
		killed, cancel := context.WithTimeout(context.WithoutCancel(ctx), killPatience)
		defer cancel()
		if !p.endsBefore(killed) {
			return errLeftBehind
		}
	}
	if p.failed == nil {
		return nil
	}
	if said := p.said(); said != "" {
		return fmt.Errorf("%w: %s", p.failed, said)
	}
	return p.failed
}

// endsBefore waits until the process has ended; false if ctx ends first.
func (p *process) endsBefore(ctx context.Context) bool {
	select {
	case <-p.waited:
		return true
	case <-ctx.Done():
		return false
	}
}

// over says whether the process has ended.
func (p *process) over() bool {
	select {
	case <-p.waited:
		return true
	default:
		return false
	}
}

// used is the CPU time of a process that has ended; 0 of one that has not, or where the
// kernel did not tell.
func (p *process) used() time.Duration {
	if !p.over() || p.command.ProcessState == nil {
		return 0
	}
	return p.command.ProcessState.UserTime() + p.command.ProcessState.SystemTime()
}

// maxSaid bounds what is kept of what a process writes to its standard error, which is
// nothing unless Go's runtime ends it.
const maxSaid = 4 << 10

// said is the first line of that, once the process was waited for.
func (p *process) said() string {
	line, _, _ := strings.Cut(string(p.errors.Kept), "\n")
	return strings.ToValidUTF8(line, "?")
}
