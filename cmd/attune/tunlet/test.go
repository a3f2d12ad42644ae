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
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/quantity"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk"
	"github.com/attune-hpc/attune/tunlets/tunlettest"
)

// check is a part of the suite as `attune tunlet test` runs it: a
// tunlettest.Runner. It belongs to the goroutine that runs it.
type check struct {
	out      io.Writer
	failures []string
	cleanups []func()
	failed   *int // of all parts
}

var _ tunlettest.Runner[*check] = (*check)(nil)

// Helper does nothing: failures are told without the place in the suite.
func (*check) Helper() {}

// Errorf notes a failure.
func (c *check) Errorf(format string, arguments ...any) {
	c.failures = append(c.failures, fmt.Sprintf(format, arguments...))
}

// Fatalf notes a failure and ends the part.
func (c *check) Fatalf(format string, arguments ...any) {
	c.Errorf(format, arguments...)
	runtime.Goexit()
}

// Fatal notes a failure and ends the part.
func (c *check) Fatal(arguments ...any) { c.Fatalf("%s", fmt.Sprint(arguments...)) }

// Cleanup has f called at the end of the part, the last one first.
func (c *check) Cleanup(f func()) { c.cleanups = append(c.cleanups, f) }

// Run runs a part in a goroutine of its own, waits for it, and tells how it went.
func (c *check) Run(name string, f func(*check)) bool {
	part := &check{out: c.out, failed: c.failed}
	part.run(f)
	if len(part.failures) == 0 {
		fmt.Fprintf(c.out, "ok    %s\n", name)
		return true
	}
	*c.failed++
	fmt.Fprintf(c.out, "FAIL  %s\n", name)
	for _, failure := range part.failures {
		fmt.Fprintf(c.out, "      %s\n", strings.ReplaceAll(failure, "\n", "\n      "))
	}
	return false
}

func (c *check) run(f func(*check)) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() {
			for i := len(c.cleanups) - 1; i >= 0; i-- {
				c.cleanups[i]()
			}
		}()
		f(c)
	}()
	<-ended
}

// tunletsAt lists the tunlets in a file or a directory.
func tunletsAt(path string) ([]tunlethost.Candidate, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, exitcode.UsageError(err, "name the file or the directory of a tunlet")
	}
	dir, names := path, []string(nil)
	one := !info.IsDir() || tunlethost.NameOf(path) != ""
	if one {
		dir, names = filepath.Dir(path), []string{tunlethost.NameOf(path)}
	}
	var found []tunlethost.Candidate
	for _, c := range tunlethost.Find(append([]string{dir}, tunletfind.Dirs(nil)...), names) {
		if at := cmp.Or(c.Folder, c.Path); filepath.Dir(at) == dir && (!one || at == path) {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return nil, exitcode.UsageError(fmt.Errorf("no tunlet in %s", path),
			"build it first; its file is called "+sdk.ProgramPrefix+"NAME, or NAME"+sdk.DeclarationSuffix)
	}
	return found, nil
}

// testTunlet runs the suite on one tunlet, and returns how many parts failed.
func testTunlet(ctx context.Context, out io.Writer, c tunlethost.Candidate, options map[string]string) int {
	failed := 0
	all := &check{out: out, failed: &failed}
	connect := func(tb tunlettest.TB) attunev1.TunletServiceClient {
		t, err := tunlethost.OpenUnasked(ctx, c, tunlethost.Options{})
		if err != nil {
			tb.Fatalf("start: %v", err)
		}
		tb.Cleanup(func() {
			if ended := t.Close(); ended != "" {
				tb.Errorf("it ended by itself: %s", ended)
			}
		})
		return t.Service()
	}
	all.run(func(t *check) {
		t.Run("has the name of its file", func(t *check) {
			d, err := connect(t).Describe(ctx, &attunev1.DescribeRequest{ApiVersions: []string{sdk.APIVersion}})
			if err != nil {
				t.Fatalf("describe: %v", err)
			}
			if d.GetName() != c.Name {
				t.Errorf("it calls itself %q, and would not be started: rename one of them", d.GetName())
			}
		})
		tunlettest.Conformance(t, options, connect)
	})
	for _, failure := range all.failures { // before the first part
		failed++
		fmt.Fprintf(out, "FAIL  %s\n", failure)
	}
	return failed
}

func newTunletTest(p *cli.Env) *cobra.Command {
	var given []string
	cmd := &cobra.Command{
		Use:   "test [flags] FILE|DIR",
		Short: "Run the conformance suite on a tunlet, in whatever language",
		Long: `Test starts a tunlet as attune run does, or each one in a directory, and plays
programs to it: quiet ones, busy ones, ones that meet the conditions under which it
is started, in simulated time and wild order. Whatever it solves, a tunlet must
describe itself, survive all of that, keep still where nothing is wrong, name only
what exists, give its measure points back, and do the same when it sees the same.

One that has to be told of the program, as attune tunlet info says, is of no use
without its options: give them with --option, and have it tested with and without.

Whether it recognises its own problem, and proposes the right thing then, only its
own tests know: package tunlets/tunlettest for those in Go.`,
		Example: "  attune tunlet test ./attune-tunlet-mine\n  attune tunlet test mine.tunlet.yaml\n  attune tunlet test --option variable=batch ./attune-tunlet-mine",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exitcode.UsageError(errors.New("the file or the directory of a tunlet is needed"), "write: attune tunlet test ./attune-tunlet-NAME")
			}
			options, err := tunletOptions(given)
			if err != nil {
				return err
			}
			found, err := tunletsAt(args[0])
			if err != nil {
				return err
			}
			failed := 0
			for _, c := range found {
				fmt.Fprintf(p.Stdout, "%s (%s)\n", c.Name, c.Path)
				failed += testTunlet(cmd.Context(), p.Stdout, c, options)
			}
			if failed > 0 {
				return &exitcode.Error{Code: exitcode.Failure, Err: fmt.Errorf("%s of the suite failed", quantity.Count(failed, "part", "parts")), Remedy: "each says what it wants"}
			}
			return nil
		},
	}
	optionFlag(cmd, &given)
	return cmd
}
