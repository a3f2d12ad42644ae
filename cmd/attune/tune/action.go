// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	"github.com/attune-hpc/attune/internal/exitcode"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Request is one change that is asked for, of every process that is named.
type Request struct {
	// Name under which attune changes lists it.
	Name   string
	Action *attunev1.Action
	At     *attunev1.SafePoint
	// OfMPI: it is made in all processes together.
	OfMPI bool
	// first: the others can be looked at only when it has been made.
	first bool
}

// tuneAction is a subcommand of tune that changes something inside processes.
type tuneAction struct {
	use, short, long, example string
	// flags adds what the action takes; may be nil.
	flags func(cmd *cobra.Command)
	// parse makes requests of what follows the process ids.
	parse func(args []string) ([]Request, error)
	// complete completes what follows them; may be nil.
	complete func(pids []int, args []string, word string) ([]string, cobra.ShellCompDirective)
}

func newTuneAction(p *cli.Env, flags *Flags, a tuneAction) *cobra.Command {
	cmd := &cobra.Command{
		Use: a.use, Short: a.short, Long: a.long, Example: a.example,
		RunE: func(cmd *cobra.Command, args []string) error {
			pids, rest, err := procs.Leading(args)
			if err == nil && len(pids) == 0 {
				err = errNoProcess
			}
			var requests []Request
			if err == nil {
				requests, err = a.parse(rest)
			}
			if err != nil {
				return exitcode.UsageError(err, fmt.Sprintf("see `%s --help`", cmd.CommandPath()))
			}
			if requests[0].first {
				if err := tune(cmd.Context(), p, *flags, pids, requests[:1]); err != nil || flags.DryRun {
					return err
				}
				if err := tune(cmd.Context(), p, *flags, pids, requests[1:]); err != nil {
					return fmt.Errorf("%w, but to %s, which stays", err, requests[0].Name)
				}
				return nil
			}
			return tune(cmd.Context(), p, *flags, pids, requests)
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
			pids, rest, _ := procs.Leading(args) // incomplete as yet
			if len(pids) == 0 {
				return procs.CompleteOwn(), cobra.ShellCompDirectiveNoFileComp
			}
			if a.complete == nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.complete(pids, rest, word)
		},
	}
	if a.flags != nil {
		a.flags(cmd)
	}
	return cmd
}

// errNoProcess is of a command line that names none.
var errNoProcess = errors.New("no process id given")

// tuneActions are the subcommands of tune.
func tuneActions() []tuneAction {
	return []tuneAction{
		setAction(), callAction(), replaceAction(), removeAction(), paramAction(), insertAction(), loadAction(),
	}
}

func setAction() tuneAction {
	var ifOld string
	var thread int32
	return tuneAction{
		use:   "set [flags] PID... OBJECT:VARIABLE=VALUE...",
		short: "Write global variables of running processes",
		long: `Set writes global variables, exported, static or thread-local, from outside and
without stopping the process. Size and, where there is debug information, type
are checked. Of several static variables of one name, NAME@FILE.c is the one of
that source file. A thread-local variable is written in every thread that there
is, or in that of --thread.

Numbers are decimal or 0x..., and may end in K, M, G or T (powers of 1024); one
with a point is a floating-point number.`,
		example: `  attune tune set 4711 libgomp.so.1:gomp_spin_count_var=0
  attune tune set 4711 4712 solver:chunk=64 --if-old 16
  attune tune set 4711 'solver:limit@queue.c=1M' solver:tolerance=0.5`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&ifOld, "if-old", "", "write only if `VALUE` is what the variable holds")
			cmd.Flags().Int32Var(&thread, "thread", 0, "write the copy of the thread `TID` of a thread-local variable")
		},
		parse:    func(args []string) ([]Request, error) { return parseSets(args, ifOld, thread) },
		complete: completeVariables,
	}
}

func parseSets(args []string, ifOld string, thread int32) (requests []Request, err error) {
	var required *attunev1.Value
	if ifOld != "" {
		if required, err = parseValue(ifOld); err != nil {
			return nil, fmt.Errorf("--if-old: %w", err)
		}
	}
	for _, arg := range args {
		name, text, found := strings.Cut(arg, "=")
		if !found {
			return nil, fmt.Errorf("%q is no OBJECT:VARIABLE=VALUE", arg)
		}
		symbol, err := parseSymbol(name)
		if err != nil {
			return nil, err
		}
		value, err := parseValue(text)
		if err != nil {
			return nil, err
		}
		requests = append(requests, Request{Name: symbol.String(), Action: &attunev1.Action{
			Kind: &attunev1.Action_SetVariable{SetVariable: &attunev1.SetVariable{
				Object: symbol.object, Symbol: symbol.symbol, Value: value, RequiredOld: required, Thread: thread,
			}},
		}})
	}
	if requests == nil {
		return nil, errors.New("nothing to change given, write OBJECT:VARIABLE=VALUE")
	}
	return requests, nil
}

// results are the values of --returns.
var results = map[string]attunev1.ResultType{
	"integer": attunev1.ResultType_RESULT_TYPE_INTEGER,
	"real":    attunev1.ResultType_RESULT_TYPE_REAL,
	"nothing": attunev1.ResultType_RESULT_TYPE_NONE,
}

func callAction() tuneAction {
	var returns, expect string
	var point safePointFlags
	return tuneAction{
		use:   "call [flags] PID... OBJECT:FUNCTION [--] [ARGUMENT...]",
		short: "Call a function once in running processes",
		long: `Call has one thread of each process call a function, with up to six arguments,
and prints what it returned. The thread is stopped for a moment, at a place
where it could have called the C library itself, or with --at or --after where
it enters a function, or returns from it, by itself: nothing is stopped before.
What the call does cannot be taken back.

An argument is a number as for set, or else a text; a text that looks like a
number stands in double quotes, and a truth value is 1 or 0. A number with a point is passed as a double.
Negative numbers stand behind --.`,
		example: `  attune tune call 4711 libc.so.6:malloc_trim 0
  attune tune call 4711 libc.so.6:mallopt -- -1 1073741824
  attune tune call --returns real 4711 libm.so.6:sqrt 2.0
  attune tune call 4711 libc.so.6:setenv OMP_WAIT_POLICY passive 1
  attune tune call --after solver:step --wait 1m 4711 solver:write_checkpoint`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&returns, "returns", "integer", "what the function returns: integer, real or nothing")
			cmd.Flags().StringVar(&expect, "expect", "", "fail unless it returns `VALUE`")
			point.add(cmd)
			_ = cmd.RegisterFlagCompletionFunc("returns", cobra.FixedCompletions( // the flag exists
				[]string{"integer", "real", "nothing"}, cobra.ShellCompDirectiveNoFileComp))
		},
		parse: func(args []string) ([]Request, error) {
			call, err := parseCall(args, returns, expect)
			if err != nil {
				return nil, err
			}
			at, err := point.parse()
			if err != nil {
				return nil, err
			}
			return []Request{{
				Name:   "call " + strings.TrimPrefix(call.GetObject()+":"+call.GetSymbol(), ":"), // of any object
				Action: &attunev1.Action{Kind: &attunev1.Action_CallFunction{CallFunction: call}},
				At:     at,
			}}, nil
		},
		complete: completeFunctions,
	}
}

func parseCall(args []string, returns, expect string) (*attunev1.CallFunction, error) {
	if len(args) == 0 {
		return nil, errors.New("no function given, write OBJECT:FUNCTION")
	}
	symbol, err := parseSymbol(args[0])
	if err != nil {
		return nil, err
	}
	result, known := results[returns]
	if !known {
		return nil, fmt.Errorf("--returns: %q is neither integer, real nor nothing", returns)
	}
	call := &attunev1.CallFunction{Object: symbol.object, Symbol: symbol.symbol, Result: result}
	for _, arg := range args[1:] {
		call.Arguments = append(call.Arguments, parseArgument(arg))
	}
	if expect != "" {
		if call.Expect, err = parseValue(expect); err != nil {
			return nil, fmt.Errorf("--expect: %w", err)
		}
	}
	return call, nil
}
