// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/procs"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// safePointFlags say where and in which thread something is done.
type safePointFlags struct {
	thread    int32
	at, after string
	wait      time.Duration
}

func (s *safePointFlags) add(cmd *cobra.Command) {
	cmd.Flags().Int32Var(&s.thread, "thread", 0, "the thread `TID` does it")
	cmd.Flags().StringVar(&s.at, "at", "", "where a thread enters `OBJECT:FUNCTION`")
	cmd.Flags().StringVar(&s.after, "after", "", "where `OBJECT:FUNCTION` returns")
	cmd.Flags().DurationVar(&s.wait, "wait", 0, "how long to wait for that, `TIME` as 500ms, 2s, 1m (default 2s)")
	for _, flag := range []string{"at", "after"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, // the flag exists
			func(_ *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
				pids, _, _ := procs.Leading(args) // incomplete as yet
				if len(pids) == 0 {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				return completeFunctions(pids, nil, word)
			})
	}
}

func (s *safePointFlags) parse() (*attunev1.SafePoint, error) {
	point := &attunev1.SafePoint{Thread: s.thread, TimeoutNanos: s.wait.Nanoseconds()}
	flag, name := "--at", s.at
	switch {
	case s.wait < 0:
		return nil, fmt.Errorf("--wait: %v is no time to wait", s.wait)
	case s.at != "" && s.after != "":
		return nil, errors.New("give either --at or --after")
	case s.at != "":
		point.Kind = attunev1.SafePoint_KIND_FUNCTION_ENTRY
	case s.after != "":
		flag, name = "--after", s.after
		point.Kind = attunev1.SafePoint_KIND_FUNCTION_EXIT
	default:
		return point, nil
	}
	function, err := parseFunction(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	point.Function = function
	return point, nil
}
