// SPDX-License-Identifier: Apache-2.0

// Command run starts a program with package launch and nothing else. It sends the signal
// with the number SIGNAL_GROUP in its environment to its process group just before the fork.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"

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
	command := launch.Command{Args: os.Args[1:], Env: os.Environ(), Signals: signals}
	if sig, err := strconv.Atoi(os.Getenv("SIGNAL_GROUP")); err == nil {
		command.Fork = func(fork func() error) error {
			signalGroup(syscall.Signal(sig))
			return fork()
		}
	}
	child, err := launch.Start(context.Background(), command)
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

// signalGroup sends a signal to the process group, and returns when it is caught.
func signalGroup(sig syscall.Signal) {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, sig)
	_ = syscall.Kill(0, sig) // one of our own
	<-caught
	signal.Stop(caught) // waits until all others have got it, too
}
