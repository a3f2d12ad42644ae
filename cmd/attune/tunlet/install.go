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
	"github.com/attune-hpc/attune/tunlets/sdk"
)

// installation is of one tunlet into a directory.
type installation struct {
	file  string   // of the tunlet, or the directory with all that it is made of
	with  []string // files and directories that it needs beside its own file
	dir   string
	force bool // replace one of that name
}

// place checks what was asked for, and returns the tunlet's name and where its
// file, or directory, is to be.
func (i installation) place() (name, path string, err error) {
	name = tunlethost.NameOf(i.file)
	if name == "" {
		return "", "", exitcode.UsageError(fmt.Errorf("%s is no tunlet's name", filepath.Base(i.file)),
			"call the file "+sdk.ProgramPrefix+"NAME, or NAME"+sdk.DeclarationSuffix)
	}
	info, err := os.Stat(i.file)
	switch {
	case err != nil:
		return "", "", exitcode.UsageError(err, "name the file of a tunlet")
	case len(i.with) > 0 && (info.IsDir() || i.declared()):
		return "", "", exitcode.UsageError(fmt.Errorf("%s needs no further files", i.file), "name it alone")
	case info.IsDir():
	case !info.Mode().IsRegular(), info.Mode()&0o111 == 0 && !i.declared():
		return "", "", exitcode.UsageError(fmt.Errorf("%s is not an executable file", i.file), "chmod +x "+i.file)
	}
	path = filepath.Join(i.dir, filepath.Base(i.file))
	if _, err := os.Lstat(path); err == nil && !i.force {
		return "", "", exitcode.UsageError(fmt.Errorf("there is %s already", path), "replace it with --force")
	}
	return name, path, nil
}

// declared says that the file is no program.
func (i installation) declared() bool { return strings.HasSuffix(i.file, sdk.DeclarationSuffix) }

// run copies the tunlet beside its place, starts it there to ask what it is, and only
// then gives it its name.
func (i installation) run(ctx context.Context) (Info, error) {
	name, path, err := i.place()
	if err != nil {
		return Info{}, err
	}
	if err := os.MkdirAll(i.dir, 0o755); err != nil {
		return Info{}, exitcode.UsageError(err, "name a directory that you may write to with --dir")
	}
	killing := cli.CatchKilling()
	trial, err := os.MkdirTemp(i.dir, ".install-")
	if err != nil {
		return Info{}, exitcode.UsageError(err, "name a directory that you may write to with --dir")
	}
	defer os.RemoveAll(trial)
	keep := killing.Removes(trial)
	defer keep()
	tried := filepath.Join(trial, filepath.Base(path))
	if err := i.copyTo(tried); err != nil {
		return Info{}, exitcode.UsageError(err, "name what the tunlet is made of")
	}
	asking := tunletfind.Asking()
	asking.DescriptionDir = "" // it has to start: that it was known says nothing of what it needs beside itself
	candidate := tunlethost.Find(append([]string{trial}, tunletfind.Dirs(nil)...), []string{name})[0]
	candidate.CopyOf = i.file
	info, err := ask(ctx, candidate, asking)
	if err != nil {
		return Info{}, i.advise(err)
	}
	info.Path = path
	keep() // what is replaced is there in a moment
	return info, replace(tried, path, filepath.Join(trial, "replaced"))
}

// advise adds what a file that was installed alone may lack.
func (i installation) advise(err error) error {
	var coded *exitcode.Error
	if info, statErr := os.Stat(i.file); statErr == nil && !info.IsDir() && len(i.with) == 0 && !i.declared() && errors.As(err, &coded) {
		coded.Remedy = "if it needs files beside it, name them too: attune tunlet install " + i.file + " FILE..."
	}
	return err
}

// copyTo makes files of its own: the tunlet's, or a directory with all of them.
func (i installation) copyTo(to string) error {
	info, err := os.Stat(i.file)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return copyAll(i.file, to)
	case len(i.with) == 0:
		return copyFile(i.file, to, info.Mode())
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, from := range append([]string{i.file}, i.with...) {
		if err := copyAll(from, filepath.Join(to, filepath.Base(from))); err != nil {
			return err
		}
	}
	return os.Chmod(to, 0o755) // whatever the umask is
}

// say tells what was installed, and what attune run will make of it.
func (i installation) say(w io.Writer, info Info) {
	fmt.Fprintf(w, "installed %s %s as %s: %s\n", info.Name, info.Version, info.Path, info.Summary)
	switch used := tunlethost.Find(tunletfind.Dirs(nil), []string{info.Name})[0]; {
	case used.Path == "":
		fmt.Fprintf(w, "attune run finds it with --tunlet-dir %s\n", i.dir)
	case used.Path != info.Path && used.Folder != info.Path:
		fmt.Fprintf(w, "attune run uses %s, which comes first\n", used.Path)
	case used.Err != nil:
		fmt.Fprintf(w, "attune run does not use it: %v\n", used.Err)
	}
}

// targetDir returns the directory that was named, or else that of the user's own tunlets.
func targetDir(named string) (string, error) {
	if dir := cmp.Or(named, tunletfind.Own()); dir != "" {
		return dir, nil
	}
	return "", exitcode.UsageError(errors.New("neither XDG_DATA_HOME nor HOME says where your own tunlets are"), "name a directory with --dir")
}

func newTunletInstall(p *cli.Env) *cobra.Command {
	i := installation{}
	cmd := &cobra.Command{
		Use:   "install [flags] FILE|DIR [FILE|DIR ...]",
		Short: "Install a tunlet for the runs of this user",
		Long: `Install copies a tunlet's program, attune-tunlet-NAME, or its NAME.tunlet.yaml
into the directory of this user's tunlets, or into another one with --dir. What the
program needs beside itself, such as modules of Python, is named behind it; or all
of it is in a directory attune-tunlet-NAME, with the program of that name.

The tunlet is started there for a moment, and is not installed if it does not
answer, speaks another version of the tunlet API, or calls itself something else.`,
		Example: `  attune tunlet install ./attune-tunlet-mine
  attune tunlet install mine.tunlet.yaml
  attune tunlet install ./attune-tunlet-in-python attune_tunlet.py attune
  attune tunlet install --dir /usr/lib/attune/tunlets ./attune-tunlet-mine`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exitcode.UsageError(errors.New("the file of one tunlet is needed"), "write: attune tunlet install ./attune-tunlet-NAME")
			}
			dir, err := targetDir(i.dir)
			if err != nil {
				return err
			}
			if i.dir, err = filepath.Abs(dir); err != nil { // a tunlet is started in another directory
				return err
			}
			i.file, i.with = filepath.Clean(args[0]), args[1:]
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
