// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/tunlets/skeleton"
)

// newTunletOptions are what `attune tunlet new` is told.
type newTunletOptions struct {
	dir  string
	sdk  string
	yaml bool
}

// make makes the tunlet, and returns what to do with it.
func (o newTunletOptions) make(name string) (next string, err error) {
	if o.yaml {
		path, err := skeleton.WriteYAML(o.dir, name)
		return fmt.Sprintf("%s\n\n  attune tunlet test %s\n  attune run --tunlet-dir %s --tunlet %s -- PROGRAM\n", path, path, o.dir, name), err
	}
	from, err := sdkSource(o.sdk)
	if err != nil {
		return "", err
	}
	path, err := skeleton.WriteGo(o.dir, name, from)
	before := ""
	if from.Checkout == "" {
		before = " && go mod tidy"
	}
	if othersMayWrite() {
		before += " && umask 022" // for what go build makes
	}
	return fmt.Sprintf("%s\n\n  cd %s%s && go test . && go build -o attune-tunlet-%s .\n  attune tunlet test ./attune-tunlet-%s\n  attune run --tunlet-dir . --tunlet %s -- PROGRAM\n",
		path, path, before, name, name, name), err
}

// othersMayWrite says whether others may write to what programs make that do not
// care: Attune would not use such a tunlet.
func othersMayWrite() bool {
	const others = 0o022
	mask := syscall.Umask(others)
	syscall.Umask(mask)
	return mask&others != others
}

// sdkSource says where the SDK comes from: the checkout that was named, else one
// that the current directory is in, else the version of this program.
func sdkSource(checkout string) (from skeleton.Source, err error) {
	if checkout != "" {
		from.Checkout, err = filepath.Abs(checkout)
		return from, err
	}
	if from.Checkout = enclosingCheckout(); from.Checkout != "" {
		return from, nil
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || !strings.HasPrefix(info.Main.Version, "v") {
		return from, exitcode.UsageError(errors.New("this attune is no released version, so there is no such version of its SDK"),
			"name a checkout of Attune's source with --sdk DIR, or write the tunlet in YAML (--yaml)")
	}
	from.Version = info.Main.Version
	return from, nil
}

// enclosingCheckout is the checkout of Attune that the current directory is in;
// empty: none.
func enclosingCheckout() string {
	dir, err := os.Getwd()
	for ; err == nil && dir != "/"; dir = filepath.Dir(dir) {
		if goMod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil {
			if strings.HasPrefix(string(goMod), "module github.com/attune-hpc/attune\n") {
				return dir
			}
			return ""
		}
	}
	return ""
}

func newTunletNew(p *cli.Env) *cobra.Command {
	o := newTunletOptions{}
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a new tunlet that builds, passes the suite and runs",
		Long: `New makes a small tunlet that is complete: with --yaml a file NAME.tunlet.yaml,
otherwise a directory NAME with a program in Go and its tests. It is about programs
that write little at a time, and changes a global variable of theirs. Make something
else of it step by step; the tutorial shows how: docs/tutorial/first-tunlet.md.

A program in Go is built against a checkout of Attune's source: the one that the
current directory is in, or --sdk DIR.`,
		Example: "  attune tunlet new --yaml mine\n  attune tunlet new mine --sdk ~/src/attune",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exitcode.UsageError(errors.New("the name of the new tunlet is needed"), "write: attune tunlet new NAME")
			}
			next, err := o.make(args[0])
			switch {
			case errors.Is(err, skeleton.ErrName):
				return exitcode.UsageError(err, "choose another name")
			case errors.Is(err, fs.ErrExist):
				return exitcode.UsageError(err, "choose another name, or another directory with --dir")
			case err != nil:
				return err
			}
			fmt.Fprintf(p.Stdout, "made %s", next)
			return nil
		},
	}
	cmd.Flags().StringVar(&o.dir, "dir", ".", "make it in `DIR`")
	cmd.Flags().StringVar(&o.sdk, "sdk", "", "build against the checkout of Attune's source in `DIR`")
	cmd.Flags().BoolVar(&o.yaml, "yaml", false, "make a tunlet in YAML, without Go code")
	return cmd
}
