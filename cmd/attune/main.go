// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/commands"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/controller/accountant"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/launch"
	"github.com/attune-hpc/attune/internal/printable"
	"github.com/attune-hpc/attune/internal/readers"
)

func main() {
	// What the program's own runtime is told: it may be written in Go, too.
	debug.SetGCPercent(100)
	debug.SetMemoryLimit(math.MaxInt64)
	if launch.IsWaker(os.Args) {
		os.Exit(launch.Waker(os.Args))
	}
	readers.ServeIfAsked(readings()...)
	os.Exit(execute(os.Args[1:], cli.New()))
}

// readings are what an attune has another one read for it, which may never answer.
func readings() []readers.Served { return append(accountant.Operations(), procs.Operations()...) }

// execute executes the command line and returns the exit code, or ends this
// process by the signal that ended the program.
func execute(args []string, p *cli.Env) int {
	unwritten := p.KeepErrors()
	root := commands.New(p)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if p.Program != nil {
		return p.Program.End()
	}
	if interrupted, ok := errors.AsType[*launch.InterruptedError](err); ok {
		return launch.DieBy(interrupted.Signal)
	}
	if err == nil {
		err = unwritten()
	}
	if err != nil {
		fmt.Fprintf(p.Stderr, "attune: %s\n", printable.Lines(err.Error()))
	}
	return exitcode.Of(err)
}
