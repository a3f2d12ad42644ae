// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/inherit"
	"github.com/attune-hpc/attune/internal/procid"
)

// witness is a process in our group that keeps all signals pending.
type witness struct {
	pid int
	// end is the write side of its standard input; closing it ends the
	// witness, and so does our death.
	end *os.File
}

// newWitness starts a witness. The binary must have package inherit's entry.
func newWitness() (*witness, error) {
	in, end, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("witness: %w", err)
	}
	defer in.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		end.Close()
		return nil, fmt.Errorf("witness: %w", err)
	}
	defer null.Close()
	w := &witness{end: end}
	err = withMask(allSignals, func() (err error) {
		w.pid, err = syscall.ForkExec("/proc/self/exe", []string{inherit.WitnessArg}, &syscall.ProcAttr{
			Files: []uintptr{in.Fd(), null.Fd(), null.Fd()},
			Env:   []string{},
		})
		return err
	})
	if err != nil {
		end.Close()
		return nil, fmt.Errorf("start witness: %w", err)
	}
	return w, nil
}

// IsHelper says whether a process that executes this binary is one of this package's own by
// its name. It is called exe until it has taken its own name.
func IsHelper(name string) bool {
	return name == "exe" || name == inherit.WitnessArg || name == wakerArg
}

func (w *witness) pending() procid.Signals {
	status, err := procid.ReadStatus(w.pid)
	if err != nil {
		return 0
	}
	return status.Shared
}

// close ends the witness and reaps it.
func (w *witness) close() {
	w.end.Close()
	unix.Kill(w.pid, unix.SIGKILL) //nolint:errcheck // it may be gone
	reap(w.pid)                    //nolint:errcheck // it has no status of interest
}

// reap waits for the end of a child of ours.
func reap(pid int) (status unix.WaitStatus, err error) {
	for {
		if _, err = unix.Wait4(pid, &status, 0, nil); err != unix.EINTR {
			return status, err
		}
	}
}
