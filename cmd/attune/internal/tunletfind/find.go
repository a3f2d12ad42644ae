// SPDX-License-Identifier: Apache-2.0

package tunletfind

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/rundir"
)

// Dirs lists where tunlets are looked for: first, what the user said,
// then beside this program (a build), then where it was installed to, then the
// user's own.
func Dirs(first []string) []string {
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
	if own := Own(); own != "" {
		dirs = append(dirs, own)
	}
	return dirs
}

// Own is the directory of the user's own tunlets; empty: the user has no home directory.
func Own() string {
	switch data, home := os.Getenv("XDG_DATA_HOME"), os.Getenv("HOME"); {
	case filepath.IsAbs(data):
		return filepath.Join(data, "attune/tunlets")
	case filepath.IsAbs(home):
		return filepath.Join(home, ".local/share/attune/tunlets")
	}
	return ""
}

// Names lists the names of tunlets.
func Names(tunlets []tunlethost.Candidate) []string {
	list := make([]string, len(tunlets))
	for i, t := range tunlets {
		list[i] = t.Name
	}
	return list
}

// CheckDirs refuses directories that were named and are none.
func CheckDirs(dirs []string) error {
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return exitcode.UsageError(fmt.Errorf("no directory %s", dir), "name one that holds tunlets with --"+settings.KeyTunletDir)
		}
	}
	return nil
}

// Check refuses names that no directory has.
func Check(wanted, dirs []string) error {
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
			remedy = "there are: " + strings.Join(Names(found), ", ")
		}
		return exitcode.UsageError(fmt.Errorf("no tunlet %q", name), remedy)
	}
	return nil
}

// CheckAll refuses a directory of first that is none, a tunlet of use or named that no directory
// has, and settings that a tunlet does not have. Settings of a tunlet that is not found are not
// checked: it may be installed elsewhere, where the same settings are read.
func CheckAll(ctx context.Context, first, use, named []string, options map[string]map[string]string) error {
	if err := CheckDirs(first); err != nil {
		return err
	}
	dirs := Dirs(first)
	if err := Check(slices.Concat(use, named), dirs); err != nil {
		return err
	}
	return checkOptions(ctx, dirs, use, options)
}

// checkOptions checks those of the named tunlets; without names, of all.
func checkOptions(ctx context.Context, dirs, names []string, options map[string]map[string]string) error {
	if len(options) == 0 {
		return nil
	}
	for _, c := range tunlethost.Find(dirs, names) {
		given, ok := options[c.Name]
		if !ok {
			continue
		}
		if err := tunlethost.CheckOptions(ctx, c, Asking(), given); err != nil {
			why := strings.ReplaceAll(err.Error(), "\n", "; ")
			return exitcode.UsageError(fmt.Errorf("settings of tunlet %s: %s", c.Name, why), "`attune tunlet info "+c.Name+"` lists what there is")
		}
	}
	return nil
}

// DirFlag declares --tunlet-dir.
func DirFlag(cmd *cobra.Command, dirs *[]string) {
	cmd.Flags().StringArrayVar(dirs, settings.KeyTunletDir, nil, "look for tunlets in `DIR` first; may be repeated")
	cmd.PreRunE = func(*cobra.Command, []string) error { return CheckDirs(*dirs) }
}

// Complete completes the name of one tunlet.
func Complete(dirs *[]string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return Names(tunlethost.Find(Dirs(*dirs), nil)), cobra.ShellCompDirectiveNoFileComp
	}
}

// Asking is how tunlets are asked what they are.
func Asking() tunlethost.Options {
	user := rundir.Current()
	return tunlethost.Options{
		DescriptionDir: user.DescriptionDir(),
		Digests:        objfile.NewDigests(user.DigestDir()),
	}
}
