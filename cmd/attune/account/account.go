// SPDX-License-Identifier: Apache-2.0

package account

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/controller/accountant"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/launch"
)

const long = `Account starts CMD unchanged and says at its end what CMD and all processes that it
started took: CPU time, memory, bytes, calls, processes. Input, output, terminal,
signals, exit code and death by signal pass through as with attune run, and
nothing is tuned.

With root, the kernel adds up what each thread took when it is done with the
thread: nothing is too short to be seen, and nothing is counted twice. Each number
in the JSON document says whether it is exact, sampled, or a bound, and what
measured it; docs/reference/account.md describes all of them. What could not be
measured is absent, with its reason.

Processes that outlive CMD are in the account with what they took until CMD ended.`

const example = `  attune account -- ./my-program input.dat
  attune account --json account.json -- make -j8`

// flags are those of `attune account`.
type flags struct {
	json  string
	quiet bool
}

// Command returns `attune account`.
func Command(p *cli.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:               "account [flags] -- CMD [ARGS]",
		Short:             "Run a program and say what it took",
		Long:              long,
		Example:           example,
		Args:              cli.SomeCommand("account"),
		ValidArgsFunction: cli.CompleteCommand,
		RunE: func(cmd *cobra.Command, args []string) error {
			return run(cmd.Context(), p, f, args)
		},
	}
	cmd.Flags().SetInterspersed(false) // what follows CMD is CMD's
	cmd.Flags().StringVar(&f.json, "json", "", "write the account as JSON to this file at the end; - is standard output")
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "say nothing on standard error")
	return cmd
}

// run runs the program from start to account. An error means that the program did
// not run; else p.Program says how it ended.
func run(ctx context.Context, p *cli.Env, f flags, args []string) error {
	out, err := openOutputs(f, p)
	if err != nil {
		return err
	}
	defer out.close()
	a, err := accountant.New(accountant.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = a.Close() }() // nobody can do anything about it
	child, err := launch.Start(ctx, launch.Command{
		Args: args, Env: cli.Environment(), Signals: launch.Catch(p.State), Fork: a.Fork, Ended: a.Ended,
	})
	if err != nil {
		return err
	}
	a.Begin(child)
	if err := launch.LetGo(p.Descriptors, !f.quiet); err != nil && !f.quiet {
		_, _ = fmt.Fprintf(p.Stderr, "attune: standard streams stay open here until the end: %v\n", err) // nobody else to tell
	}
	exit := child.Wait()
	p.Program = &exit
	out.write(a.End(args, exit))
	return nil
}

// outputs are the places that the account goes to.
type outputs struct {
	stderr io.Writer // nil: nothing is to be said
	json   *os.File  // nil: none
}

// openOutputs opens them before the program starts: what is wrong with them is
// refused. Errors have the code for usage.
func openOutputs(f flags, p *cli.Env) (*outputs, error) {
	o := &outputs{}
	if !f.quiet && !p.State.FDClosed(2) {
		o.stderr = p.Stderr
	}
	var err error
	o.json, err = open(f.json, "json")
	return o, err
}

// write puts the account where it was asked for.
func (o *outputs) write(a *account.Account) {
	var err error
	if o.json != nil {
		err = writeJSON(o.json, a)
	}
	if o.stderr == nil {
		return
	}
	if err != nil {
		_, _ = fmt.Fprintf(o.stderr, "attune: write the account: %v\n", err) // nobody else to tell
	}
	_, _ = io.WriteString(o.stderr, page(a)) // nobody else to tell
}

func (o *outputs) close() {
	if o.json != nil {
		_ = o.json.Close() // what was written was written with one call
	}
}

// usage is a mistake on the command line.
func usage(flag string, err error) error {
	return exitcode.UsageError(fmt.Errorf("--%s: %w", flag, err), "see `attune account --help`")
}

