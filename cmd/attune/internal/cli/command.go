// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/status"

	"github.com/attune-hpc/attune/internal/exitcode"
)

// Said is what the other end of a call says, without gRPC's words around it.
func Said(err error) error {
	if s, ok := status.FromError(err); ok && err != nil {
		return errors.New(s.Message())
	}
	return err
}

// NoSuchCommand refuses a word that is no command, with what was perhaps meant.
func NoSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	remedy := fmt.Sprintf("see `%s --help`", cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		remedy = fmt.Sprintf("did you mean `%s %s`?", cmd.CommandPath(), near[0])
	} else if !cmd.HasParent() {
		remedy += "; to run a program: attune run -- " + args[0]
	}
	return exitcode.UsageError(fmt.Errorf("unknown command %q", args[0]), remedy)
}

// Group has a command do nothing itself: alone it prints its help, and a word that is none of
// the commands below it is refused, with what was perhaps meant.
func Group(group *cobra.Command, below ...*cobra.Command) *cobra.Command {
	group.Args, group.SuggestionsMinimumDistance = NoSuchCommand, 2
	group.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	group.AddCommand(below...)
	return group
}

// NoArguments refuses arguments.
func NoArguments(cmd *cobra.Command, args []string) error { return Arguments(0, 0)(cmd, args) }

// Any is the most of Arguments where there is no limit.
const Any = math.MaxInt

// Arguments refuses fewer arguments than least, and more than most.
func Arguments(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return exitcode.UsageError(errors.New("an argument is missing"), "write: "+cmd.UseLine())
		case len(args) > most:
			return exitcode.UsageError(errors.New("unexpected argument "+args[most]), fmt.Sprintf("see `%s --help`", cmd.CommandPath()))
		}
		return nil
	}
}

// SomeCommand refuses a command line of `attune WORD` without a program.
func SomeCommand(word string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 || args[0] == "" {
			return exitcode.UsageError(errors.New("no program to run"), "write: attune "+word+" -- CMD [ARGS]")
		}
		return nil
	}
}

// CompleteCommand leaves the program and its arguments to the shell.
func CompleteCommand(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// MustComplete completes a flag's value; the flag exists.
func MustComplete(cmd *cobra.Command, flag string, values func() []string) {
	err := cmd.RegisterFlagCompletionFunc(flag,
		func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return values(), cobra.ShellCompDirectiveNoFileComp
		})
	if err != nil {
		panic(err)
	}
}

// echo is how long after a signal another one may be the same: timeout(1) and some
// batch systems send it to a process, and then to the group that it is in.
const echo = 500 * time.Millisecond

// EndAtNext lets the next signal end this process at once, but not one that follows
// on the heels of the first. stop is that of [signal.NotifyContext].
func EndAtNext(stop context.CancelFunc) { time.AfterFunc(echo, stop) }
