// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/inherit"
	"github.com/attune-hpc/attune/internal/launch"
)

func main() {
	if launch.IsWaker(os.Args) {
		os.Exit(launch.Waker(os.Args))
	}
	os.Exit(run(os.Args[1:], newProcess()))
}

// process is what the commands have of the process they run in.
type process struct {
	stdout, stderr io.Writer
	// state and descriptors are what was inherited.
	state       inherit.State
	descriptors []int
	// program is how the started program ended; nil: none was started.
	program *launch.Exit
}

func newProcess() *process {
	return &process{
		stdout: os.Stdout, stderr: os.Stderr,
		state: inherit.Get(), descriptors: launch.Inherited(),
	}
}

// run executes the command line and returns the exit code, or ends this
// process by the signal that ended the program.
func run(args []string, p *process) int {
	root := newRoot(p)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if p.program != nil {
		return p.program.End()
	}
	var interrupted *launch.InterruptedError
	if errors.As(err, &interrupted) {
		return launch.DieBy(interrupted.Signal)
	}
	if err != nil {
		fmt.Fprintf(p.stderr, "attune: %v\n", err)
	}
	return exitcode.Of(err)
}
