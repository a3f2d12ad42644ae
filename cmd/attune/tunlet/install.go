// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
	"github.com/attune-hpc/attune/internal/exitcode"
)

// installation is of one tunlet's file into a directory.
type installation struct {
	file  string
	dir   string
	force bool // replace one of that name
}

// place checks what was asked for, and returns the tunlet's name and where its
// file is to be.
func (i installation) place() (name, path string, err error) {
	name = tunlethost.NameOf(i.file)
	if name == "" {
		return "", "", exitcode.UsageError(fmt.Errorf("%s is no tunlet's name", filepath.Base(i.file)),
			"call the file "+tunlethost.Prefix+"NAME, or NAME"+tunlethost.Suffix)
	}
	info, err := os.Stat(i.file)
	if err != nil {
		return "", "", exitcode.UsageError(err, "name the file of a tunlet")
	}
	if executable := info.Mode()&0o111 != 0; !info.Mode().IsRegular() || !executable && !i.declared() {
		return "", "", exitcode.UsageError(fmt.Errorf("%s is not an executable file", i.file), "chmod +x "+i.file)
	}
	path = filepath.Join(i.dir, filepath.Base(i.file))
	if _, err := os.Lstat(path); err == nil && !i.force {
		return "", "", exitcode.UsageError(fmt.Errorf("there is %s already", path), "replace it with --force")
	}
	return name, path, nil
}

// declared says that the file is no program.
func (i installation) declared() bool { return strings.HasSuffix(i.file, tunlethost.Suffix) }

// run copies the file beside its place, asks the tunlet there what it is, and
// only then gives it its name.
func (i installation) run(ctx context.Context) (Info, error) {
	name, path, err := i.place()
	if err != nil {
		return Info{}, err
	}
	if err := os.MkdirAll(i.dir, 0o755); err != nil {
		return Info{}, exitcode.UsageError(err, "name a directory that you may write to with --dir")
	}
	trial, err := os.MkdirTemp(i.dir, ".install-")
	if err != nil {
		return Info{}, exitcode.UsageError(err, "name a directory that you may write to with --dir")
	}
	defer os.RemoveAll(trial)
	tried := filepath.Join(trial, filepath.Base(path))
	if err := i.copyTo(tried); err != nil {
		return Info{}, err
	}
	info, err := askTunlet(ctx, name, append([]string{trial}, tunletfind.Dirs(nil)...))
	if err != nil {
		return Info{}, err
	}
	info.Path = path
	return info, os.Rename(tried, path)
}

// copyTo makes a file of its own.
func (i installation) copyTo(to string) (err error) {
	mode := os.FileMode(0o755)
	if i.declared() {
		mode = 0o644
	}
	in, err := os.Open(i.file)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // read only
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(mode), out.Sync(), out.Close()) // whatever the umask is
}

// say tells what was installed, and what attune run will make of it.
func (i installation) say(w io.Writer, info Info) {
	fmt.Fprintf(w, "installed %s %s as %s: %s\n", info.Name, info.Version, info.Path, info.Summary)
	switch used := tunlethost.Find(tunletfind.Dirs(nil), []string{info.Name})[0]; {
	case used.Path == "":
		fmt.Fprintf(w, "attune run finds it with --tunlet-dir %s\n", i.dir)
	case used.Path != info.Path:
		fmt.Fprintf(w, "attune run uses %s, which comes first\n", used.Path)
	case used.Err != nil:
		fmt.Fprintf(w, "attune run does not use it: %v\n", used.Err)
	}
}

// ownTunletDir is where a user's own tunlets are.
func ownTunletDir() string {
	dirs := tunletfind.Dirs(nil)
	return dirs[len(dirs)-1]
}

func newTunletInstall(p *cli.Env) *cobra.Command {
	i := installation{}
	cmd := &cobra.Command{
		Use:   "install [flags] FILE",
		Short: "Install a tunlet for the runs of this user",
		Long: `Install copies a tunlet's program, attune-tunlet-NAME, or its NAME.tunlet.yaml
into the directory of this user's tunlets, or into another one with --dir. The
tunlet is started there for a moment, and is not installed if it does not answer, speaks another version of the
tunlet API, or calls itself something else.`,
		Example: "  attune tunlet install ./attune-tunlet-mine\n  attune tunlet install mine.tunlet.yaml\n  attune tunlet install --dir /usr/lib/attune/tunlets ./attune-tunlet-mine",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exitcode.UsageError(errors.New("the file of one tunlet is needed"), "write: attune tunlet install ./attune-tunlet-NAME")
			}
			dir, err := filepath.Abs(cmp.Or(i.dir, ownTunletDir())) // a tunlet is started in another directory
			if err != nil {
				return err
			}
			i.file, i.dir = args[0], dir
			info, err := i.run(cmd.Context())
			if err == nil {
				i.say(p.Stdout, info)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&i.dir, "dir", "", "install into `DIR` (default: ~/.local/share/attune/tunlets)")
	cmd.Flags().BoolVar(&i.force, "force", false, "replace a tunlet of the same name")
	return cmd
}

// removeTunlet removes a tunlet's file from a directory, and from no other.
func removeTunlet(name, dir string) (path string, err error) {
	for _, file := range []string{tunlethost.Prefix + name, name + tunlethost.Suffix} {
		if name == "" || tunlethost.NameOf(file) != name {
			continue // not the program that runs the files of others
		}
		path = filepath.Join(dir, file)
		if err = os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			return path, err
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
			path, err := removeTunlet(args[0], cmp.Or(dir, ownTunletDir()))
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
