// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/commands"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/launch"
)

func main() {
	if launch.IsWaker(os.Args) {
		os.Exit(launch.Waker(os.Args))
	}
	os.Exit(execute(os.Args[1:], cli.New()))
}

// execute executes the command line and returns the exit code, or ends this
// process by the signal that ended the program.
func execute(args []string, p *cli.Env) int {
	root := commands.New(p)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if p.Program != nil {
		return p.Program.End()
	}
	var interrupted *launch.InterruptedError
	if errors.As(err, &interrupted) {
		return launch.DieBy(interrupted.Signal)
	}
	if err != nil {
		fmt.Fprintf(p.Stderr, "attune: %v\n", err)
	}
	return exitcode.Of(err)
}
