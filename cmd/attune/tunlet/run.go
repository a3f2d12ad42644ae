// SPDX-License-Identifier: Apache-2.0

package tunlet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/attune-hpc/attune/analyzer/tunlethost"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/tunletfind"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/tunlets/sdk/recording"
	"github.com/attune-hpc/attune/tunlets/sdk/replay"
)

// tunletRun is what `attune tunlet run` is told.
type tunletRun struct {
	dirs    []string
	replay  string
	expect  string
	partial bool
	explain bool
	options []string
}

const tunletRunLong = `Run drives one tunlet with what attune run --record FILE has recorded, in the time
of the recording, without the program, and prints what the tunlet decides. The
same tunlet decides the same each time, so that what it prints can be kept and
compared: with --expect FILE nothing is printed but the differences, and the exit
code is 1 if there are any.

A tunlet gets what the recording has: the samples that were taken, and the hits
of the measure points that some tunlet or --probe asked for then. What it
proposes changes nothing any more; a proposal that it made when it was recorded
has the fate that it had then. docs/reference/recording.md has the details.

With --explain it also prints why: of a tunlet in YAML what each expression gives, and
by which values; of others what they say by Host.Explain.`

const tunletRunExample = `  attune run --record storm.rec -- ./my-program
  attune tunlet run --replay storm.rec malloc
  attune tunlet run --replay storm.rec --explain gc
  attune tunlet run --replay storm.rec malloc >storm.expect
  attune tunlet run --replay storm.rec --expect storm.expect --tunlet-dir ./bin malloc`

func newTunletRun(p *cli.Env) *cobra.Command {
	var run tunletRun
	cmd := &cobra.Command{
		Use:     "run --replay FILE [flags] NAME",
		Short:   "Try a tunlet with a recorded run",
		Long:    tunletRunLong,
		Example: tunletRunExample,
		RunE: func(cmd *cobra.Command, args []string) error {
			if run.explain && run.expect != "" {
				return exitcode.UsageError(errors.New("--explain and --expect exclude each other"), "what is expected has no explanations")
			}
			if len(args) != 1 {
				return exitcode.UsageError(errors.New("the name of one tunlet is needed"), "`attune tunlet list` shows them")
			}
			if run.replay == "" {
				return exitcode.UsageError(errors.New("no recording"), "make one with attune run --record FILE, and name it with --replay FILE")
			}
			return run.do(cmd.Context(), args[0], p.Stdout)
		},
		ValidArgsFunction: tunletfind.Complete(&run.dirs),
	}
	flags := cmd.Flags()
	flags.StringVar(&run.replay, "replay", "", "drive the tunlet with the recording in `FILE`")
	flags.StringVar(&run.expect, "expect", "", "compare what it decides with `FILE`, and print the differences only")
	flags.BoolVar(&run.explain, "explain", false, "print also why it decides so")
	flags.BoolVar(&run.partial, "partial", false, "use what there is of a recording that is cut off or damaged")
	optionFlag(cmd, &run.options)
	tunletfind.DirFlag(cmd, &run.dirs)
	return cmd
}

// do replays, and prints the transcript or the differences.
func (r tunletRun) do(ctx context.Context, name string, stdout io.Writer) error {
	options, err := tunletOptions(r.options)
	if err != nil {
		return err
	}
	dirs := tunletfind.Dirs(r.dirs)
	if err := tunletfind.Check([]string{name}, dirs); err != nil {
		return err
	}
	var expected []byte
	if r.expect != "" {
		if expected, err = os.ReadFile(r.expect); err != nil {
			return exitcode.UsageError(err, "name what the tunlet should decide with --expect")
		}
	}
	file, err := os.Open(r.replay)
	if err != nil {
		return exitcode.UsageError(err, "name a recording with --replay")
	}
	defer file.Close()
	to := stdout
	var got bytes.Buffer
	if r.expect != "" {
		to = &got
	}
	if err := r.drive(ctx, tunlethost.Find(dirs, []string{name})[0], options, file, to); err != nil || r.expect == "" {
		return err
	}
	return r.compare(string(expected), got.String(), stdout)
}

// drive starts the tunlet, replays, and ends it.
func (r tunletRun) drive(ctx context.Context, c tunlethost.Candidate, options map[string]string, file io.ReadSeeker, to io.Writer) error {
	host := tunletfind.Asking()
	host.Config = map[string]map[string]string{c.Name: options}
	t, err := tunlethost.Open(ctx, c, host)
	if err != nil {
		return fmt.Errorf("tunlet %s: %w", c.Name, err)
	}
	err = replay.Run(ctx, file, replay.Options{Tunlet: t.Service(), Info: t.Info(), Partial: r.partial, Explain: r.explain, Transcript: to})
	if ended := t.Close(); ended != "" && err != nil {
		err = fmt.Errorf("tunlet %s has ended, %s: %w", c.Name, ended, err)
	}
	return r.refusal(err)
}

// refusal adds what to do about a bad recording.
func (r tunletRun) refusal(err error) error {
	remedy := ""
	switch {
	case errors.Is(err, recording.ErrFormat):
		remedy = "attune run --record FILE makes one"
	case errors.Is(err, recording.ErrVersion):
		remedy = "use the attune that made it, or record again"
	case errors.Is(err, recording.ErrTruncated), errors.Is(err, recording.ErrDamaged):
		remedy = "--partial uses what there is"
	default:
		return err
	}
	return &exitcode.Error{Code: exitcode.Failure, Err: fmt.Errorf("%s: %w", r.replay, err), Remedy: remedy}
}

// compare prints how the transcript differs from what was expected.
func (r tunletRun) compare(expected, got string, stdout io.Writer) error {
	diff := udiff.Unified(r.expect, "replayed", expected, got)
	if diff == "" {
		return nil
	}
	if _, err := io.WriteString(stdout, diff); err != nil {
		return err
	}
	return &exitcode.Error{
		Code: exitcode.Failure, Err: errors.New("the tunlet decides otherwise than expected"),
		Remedy: "if that is right, print it into " + r.expect + " without --expect",
	}
}
