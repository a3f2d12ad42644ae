// SPDX-License-Identifier: Apache-2.0

package tune

import (
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

func loadAction() tuneAction {
	load := &attunev1.LoadLibrary{}
	return tuneAction{
		use:   "load [flags] PID... FILE",
		short: "Load a shared object into running processes",
		long: `Load has one thread of each process load a shared object, as dlopen(3) does:
its constructors run. The file must belong to root or the user of the process,
and be there as the process sees the file system.

Undoing closes the object only with --close-on-undo: what its constructors did
stays, and pointers into it that the program keeps lead nowhere then.`,
		example: `  attune tune load 4711 ./libfast.so --symbol fast
  attune tune load --close-on-undo 4711 4712 /opt/site/libtrace.so`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&load.Symbol, "symbol", "", "refuse an object that does not export `NAME`, and print its address")
			cmd.Flags().BoolVar(&load.Global, "global", false, "let its symbols serve objects that are loaded later")
			cmd.Flags().BoolVar(&load.CloseOnUndo, "close-on-undo", false, "close it when the change is undone")
		},
		parse: func(args []string) (requests []Request, err error) {
			if len(args) != 1 {
				return nil, errors.New("give one file to load")
			}
			load.Path, err = filepath.Abs(args[0])
			return []Request{{
				Name: "load " + filepath.Base(args[0]), Action: &attunev1.Action{Kind: &attunev1.Action_Load{Load: load}},
			}}, err
		},
		complete: func([]int, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"so"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
}
