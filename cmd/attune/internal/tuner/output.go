// SPDX-License-Identifier: Apache-2.0

package tuner

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/cmd/attune/internal/cli"
	"github.com/attune-hpc/attune/cmd/attune/internal/settings"
	"github.com/attune-hpc/attune/internal/config"
	"github.com/attune-hpc/attune/internal/exitcode"
	"github.com/attune-hpc/attune/internal/outfile"
)

// outputs are the places that a run's results go to.
type outputs struct {
	stderr   io.Writer // nil: nothing is to be said
	terminal bool      // standard error is one
	report   place
	page     place
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
	if o.report, err = openPlace(cfg.Report, "report"); err != nil {
		return err
	}
	if o.page, err = openPlace(cfg.HTML, "html"); err != nil {
		return err
	}
	if o.timeline, err = openOutput(cfg.Timeline, settings.KeyTimeline); err != nil {
		return err
	}
	o.record, err = openOutput(cfg.Record, settings.KeyRecord)
	return err
}

// openOutput opens the file of a flag that is written to as things happen; nil
// if none is named.
func openOutput(path, flag string) (*os.File, error) {
	if path == "" {
		return nil, nil
	}
	f, err := outfile.Open(path, os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, exitcode.UsageError(fmt.Errorf("%s: %w", flag, err), "name a file that you may write to with --"+flag)
	}
	return f, nil
}

// place is where a document of the end goes; the zero value is nowhere.
type place struct {
	file   string   // to be made, absolute; empty: none
	stream *os.File // a pipe, device or descriptor instead; nil: none
}

// openPlace opens what the document of a flag is to be streamed into, or checks that
// its file can be made. That happens at the end, under another name first, so its
// directory is what counts. Errors have the code for usage.
func openPlace(path, flag string) (p place, err error) {
	switch {
	case path == "":
	case outfile.Stream(path):
		p.stream, err = outfile.Open(path, 0)
	default:
		p.file, err = placeable(path)
	}
	if err != nil {
		return p, exitcode.UsageError(fmt.Errorf("%s: %w", flag, err), "name a file that you may write to with --"+flag)
	}
	return p, nil
}

// placeable is a path, absolute, of a file that can be made.
func placeable(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(abs); err == nil && info.IsDir() {
		return "", fmt.Errorf("%s is a directory", path)
	}
	if err := unix.Access(filepath.Dir(abs), unix.W_OK); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return abs, nil
}

// write writes the document, if it has a place.
func (p place) write(encode func(io.Writer) error, toFile func(path string) error) error {
	switch {
	case p.stream != nil:
		return encode(p.stream)
	case p.file != "":
		return toFile(p.file)
	}
	return nil
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
	for _, err := range []error{o.report.write(r.EncodeJSON, r.WriteJSON), o.page.write(r.EncodeHTML, r.WritePage)} {
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
		fmt.Fprintf(o.stderr, "attune: %s\n", line)
	}
}

// close closes what open opened; what was written is written.
func (o *outputs) close() {
	for _, f := range []*os.File{o.timeline, o.record, o.report.stream, o.page.stream} {
		if f != nil {
			_ = f.Close()
		}
	}
}
