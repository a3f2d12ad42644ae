// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/outfile"
	"github.com/attune-hpc/attune/internal/printable"
)

// outputs are the places that a run's results go to.
type outputs struct {
	stderr   io.Writer // nil: nothing is to be said
	terminal bool      // standard error is one
	report   outfile.Place
	page     outfile.Place
	timeline *os.File
	record   *os.File
}

// open checks and opens them; later the program may change or delete the
// working directory, and the standard streams are let go. What is open is for
// close, also after an error. Errors have the code for usage.
func (o *outputs) open(cfg config.Run, p *cli.Env) error {
	if !cfg.Quiet && !p.State.FDClosed(2) {
		o.stderr = p.Stderr
	}
	o.terminal = term.IsTerminal(2)
	if cfg.Watch && !o.terminal {
		return exitcode.UsageError(errors.New("--watch needs a terminal at standard error"),
			"use --timeline FILE and follow the file")
	}
	var err error
	if o.report, err = cli.OpenPlace("report", cfg.Report); err != nil {
		return err
	}
	if o.page, err = cli.OpenPlace("html", cfg.HTML); err != nil {
		return err
	}
	if o.timeline, err = cli.OpenStream(settings.KeyTimeline, cfg.Timeline); err != nil {
		return err
	}
	o.record, err = cli.OpenStream(settings.KeyRecord, cfg.Record)
	return err
}

// begin makes ready for what is written as things happen: nothing has been refused.
func (o *outputs) begin() (err error) {
	for _, f := range o.streams() {
		err = errors.Join(err, outfile.Empty(f))
	}
	return err
}

// streams are the files that are written to as things happen.
func (o *outputs) streams() []*os.File {
	return slices.DeleteFunc([]*os.File{o.timeline, o.record}, func(f *os.File) bool { return f == nil })
}

// writerOf is a file, or nil: a nil *os.File in an interface would not be nil.
func writerOf(f *os.File) io.Writer {
	if f == nil {
		return nil
	}
	return f
}

// NeedsStderr tells whether something will be said after the program's end.
func (o *outputs) NeedsStderr() bool { return o.stderr != nil }

// Write puts the report where it was asked for. Nobody can be told that
// standard error is gone.
func (o *outputs) Write(r *report.Report, notes []string) {
	for _, note := range notes {
		r.Remarks = append(r.Remarks, report.Remark{Seconds: r.WallSeconds, From: "attune", Text: note})
	}
	for _, err := range []error{o.report.Write(r.EncodeJSON), o.page.Write(r.EncodeHTML)} {
		if err != nil {
			o.notes([]string{err.Error()})
		}
	}
	if o.stderr == nil {
		return
	}
	opts := report.TextOptions{Outside: true}
	if o.terminal {
		opts.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		opts.Width, _, _ = term.GetSize(2) // 0: unknown, not wrapped
	}
	_ = r.WriteText(o.stderr, opts)
}

// Say writes an error of a part, of which the rest goes on, to standard error: one
// line for each that is joined in it. Nil is nothing.
func (s *Tuner) Say(err error) {
	if err != nil {
		s.Out.notes(strings.Split(err.Error(), "\n"))
	}
}

// notes says what went wrong where there is no report.
func (o *outputs) notes(lines []string) {
	if o.stderr == nil {
		return
	}
	for _, line := range lines {
		fmt.Fprintf(o.stderr, "attune: %s\n", printable.Lines(line))
	}
}

// close closes what open opened; what was written is written.
func (o *outputs) close() {
	for _, f := range o.streams() {
		_ = f.Close()
	}
	_ = errors.Join(o.report.Close(), o.page.Close())
}
