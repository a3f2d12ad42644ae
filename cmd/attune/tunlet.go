// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
)

// tunletDirs lists where tunlets are looked for: first, what the user said,
// then beside this program (a build), then where it was installed to, then the
// user's own.
func tunletDirs(first []string) []string {
	var dirs []string
	for _, dir := range first {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs // a tunlet is started in another directory
		}
		dirs = append(dirs, dir)
	}
	if exe, err := os.Executable(); err == nil {
		dir := filepath.Dir(exe)
		dirs = append(dirs, dir, filepath.Join(dir, "../lib/attune/tunlets"))
	}
	dirs = append(dirs, "/usr/lib/attune/tunlets")
	switch data, home := os.Getenv("XDG_DATA_HOME"), os.Getenv("HOME"); {
	case filepath.IsAbs(data):
		dirs = append(dirs, filepath.Join(data, "attune/tunlets"))
	case filepath.IsAbs(home):
		dirs = append(dirs, filepath.Join(home, ".local/share/attune/tunlets"))
	}
	return dirs
}

func names(tunlets []tunlethost.Candidate) []string {
	list := make([]string, len(tunlets))
	for i, t := range tunlets {
		list[i] = t.Name
	}
	return list
}

// checkTunlets refuses names that no directory has.
func checkTunlets(wanted, dirs []string) error {
	if len(wanted) == 0 {
		return nil
	}
	there := map[string]bool{}
	found := tunlethost.Find(dirs, nil)
	for _, t := range found {
		there[t.Name] = true
	}
	for _, name := range wanted {
		if there[name] {
			continue
		}
		remedy := "none is installed; name their directory with --tunlet-dir"
		if len(found) > 0 {
			remedy = "there are: " + strings.Join(names(found), ", ")
		}
		return exitcode.UsageError(fmt.Errorf("no tunlet %q", name), remedy)
	}
	return nil
}

// checkTunletOptions refuses settings of tunlets that do not have them. A tunlet
// that is not installed here may be elsewhere, where the same settings are read.
func checkTunletOptions(ctx context.Context, cfg config.Run) error {
	if len(cfg.TunletOptions) == 0 {
		return nil
	}
	for _, c := range tunlethost.Find(tunletDirs(cfg.TunletDirs), cfg.Tunlets) {
		given, ok := cfg.TunletOptions[c.Name]
		if !ok {
			continue
		}
		if err := tunlethost.CheckOptions(ctx, c, asking(), given); err != nil {
			why := strings.ReplaceAll(err.Error(), "\n", "; ")
			return exitcode.UsageError(fmt.Errorf("settings of tunlet %s: %s", c.Name, why), "`attune tunlet info "+c.Name+"` lists what there is")
		}
	}
	return nil
}

// notUsed is the third column of the list: a tunlet that somebody else could
// have written is not started.
func notUsed(err error) string {
	if err == nil {
		return ""
	}
	return "\tnot used: " + err.Error()
}

// tunletDirFlag declares --tunlet-dir.
func tunletDirFlag(cmd *cobra.Command, dirs *[]string) {
	cmd.Flags().StringArrayVar(dirs, keyTunletDir, nil, "look for tunlets in `DIR` first; may be repeated")
}

// completeTunlets completes the name of one tunlet.
func completeTunlets(dirs *[]string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(tunlethost.Find(tunletDirs(*dirs), nil)), cobra.ShellCompDirectiveNoFileComp
	}
}

func newTunlet(p *process) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "tunlet",
		Short:                      "Make, show, try, test, install and remove tunlets",
		Args:                       noSuchCommand,
		SuggestionsMinimumDistance: 2,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTunletNew(p), newTunletList(p), newTunletInfoCommand(p), newTunletRun(p), newTunletInstall(p), newTunletRemove(p), newTunletTest(p))
	return cmd
}

func newTunletList(p *process) *cobra.Command {
	var dirs []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tunlets that attune run would use",
		Long: `List shows name and file of every tunlet that is found: each is a program that
knows one performance problem. One that is not used comes with the reason.

They are looked for beside attune, in lib/attune/tunlets of its installation, in
/usr/lib/attune/tunlets and in ~/.local/share/attune/tunlets.`,
		Example: "  attune tunlet list",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(p.stdout, 0, 8, 2, ' ', 0)
			for _, t := range tunlethost.Find(tunletDirs(dirs), nil) {
				fmt.Fprintf(w, "%s\t%s%s\n", t.Name, t.Path, notUsed(t.Err))
			}
			return w.Flush()
		},
	}
	tunletDirFlag(cmd, &dirs)
	return cmd
}
