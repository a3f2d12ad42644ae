// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// removeTunlet removes a tunlet's file, or directory, from a directory, and from no other.
func removeTunlet(name, dir string) (path string, err error) {
	for _, file := range []string{sdk.ProgramPrefix + name, name + sdk.DeclarationSuffix} {
		if name == "" || tunlethost.NameOf(file) != name {
			continue // not the program that runs the files of others
		}
		path = filepath.Join(dir, file)
		if _, err = os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			return path, errors.Join(err, os.RemoveAll(path))
		}
	}
	for _, t := range tunlethost.Find(tunletfind.Dirs(nil), nil) {
		if t.Name == name {
			return "", exitcode.UsageError(fmt.Errorf("tunlet %s is %s, and not in %s", name, t.Path, dir),
				"name its directory with --dir, or remove the package that brought it")
		}
	}
	return "", exitcode.UsageError(fmt.Errorf("no tunlet %q in %s", name, dir), "`attune tunlet list` shows those there are")
}

func newTunletRemove(p *cli.Env) *cobra.Command {
	dir := ""
	var searched []string
	cmd := &cobra.Command{
		Use:   "remove [flags] NAME",
		Short: "Remove a tunlet that was installed",
		Long: `Remove takes a tunlet out of the directory of this user's tunlets, or out of
another one with --dir. Where it runs it goes on until that session ends; sessions
that would have to start it first, or again, go on without it.`,
		Example: "  attune tunlet remove mine",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || strings.Contains(args[0], "/") {
				return exitcode.UsageError(errors.New("the name of one tunlet is needed"), "`attune tunlet list` shows them")
			}
			from, err := targetDir(dir)
			if err != nil {
				return err
			}
			path, err := removeTunlet(args[0], from)
			if err == nil {
				fmt.Fprintf(p.Stdout, "removed %s\n", path)
			}
			return err
		},
		ValidArgsFunction: tunletfind.Complete(&searched),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "remove from `DIR` (default: ~/.local/share/attune/tunlets)")
	return cmd
}
