// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
)

// notUsed is the third column of the list: a tunlet that somebody else could
// have written is not started.
func notUsed(err error) string {
	if err == nil {
		return ""
	}
	return "\tnot used: " + err.Error()
}

// Command returns `attune tunlet`.
func Command(p *cli.Env) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "tunlet", Short: "Make, show, check, try, test, install and remove tunlets"},
		newTunletNew(p), newTunletList(p), newTunletInfoCommand(p), newTunletRun(p), newTunletInstall(p), newTunletRemove(p), newTunletTest(p), newTunletCheck(p))
}

func newTunletList(p *cli.Env) *cobra.Command {
	var dirs []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tunlets that attune run would use",
		Long: `List shows name and file of every tunlet that is found: each is a program that
knows one performance problem. One that is not used comes with the reason.

They are looked for beside attune, in lib/attune/tunlets of its installation, in
/usr/lib/attune/tunlets and in ~/.local/share/attune/tunlets.`,
		Example: "  attune tunlet list",
		Args:    cli.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			found := tunlethost.Find(tunletfind.Dirs(dirs), nil)
			if len(found) == 0 {
				return p.Nothing("is found: --tunlet-dir names another directory")
			}
			w := cli.Table(p.Stdout)
			for _, t := range found {
				fmt.Fprintf(w, "%s\t%s%s\n", t.Name, t.Path, notUsed(t.Err))
			}
			return w.Flush()
		},
	}
	tunletfind.DirFlag(cmd, &dirs)
	return cmd
}
