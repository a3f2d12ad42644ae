// SPDX-License-Identifier: Apache-2.0

// Command run starts a program with package launch and nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/inherit"
	"github.com/attune-hpc/attune/internal/launch"
)

func main() { os.Exit(run()) }

func run() int {
	if launch.IsWaker(os.Args) {
		return launch.Waker(os.Args)
	}
	inherited := launch.Inherited()
	signals := launch.Catch(inherit.Get())
	child, err := launch.Start(context.Background(), launch.Command{
		Args: os.Args[1:], Env: os.Environ(), Signals: signals,
	})
	if interrupted, ok := errors.AsType[*launch.InterruptedError](err); ok {
		return launch.DieBy(interrupted.Signal)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		return exitcode.Of(err)
	}
	if err := launch.LetGo(inherited, true); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
	}
	return child.Wait().End()
}
