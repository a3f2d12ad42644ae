// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
)

// File is a file that was read.
type File struct {
	// Name is what errors call it.
	Name string
	// Text is what is in it.
	Text []byte
	// Changed is when it was written: the end of tasks whose format has no times.
	Changed time.Time
	// Local is the zone of times that have none.
	Local *time.Location
}

// Result is what was in a file.
type Result struct {
	Tasks []*archive.Task
	// Skipped are records that are of no task that has run to its end, by the reason.
	Skipped map[string]int
}

// skip counts a record that is left out.
func (r *Result) skip(reason string) {
	if r.Skipped == nil {
		r.Skipped = make(map[string]int)
	}
	r.Skipped[reason]++
}

// formats are the parsers by name.
var formats = map[string]struct {
	read func(File) (Result, error)
	// is says whether a file's beginning is of the format.
	is func(beginning string) bool
}{
	"attune":    {readAttune, func(b string) bool { return strings.HasPrefix(b, "{") && strings.Contains(b, `"attune.`) }},
	"cctools":   {readCCTools, func(b string) bool { return strings.HasPrefix(b, "{") && !strings.Contains(b, `"attune.`) }},
	"kickstart": {readKickstart, func(b string) bool { return strings.Contains(b, "invocation:") }},
	"slurm": {readSlurm, func(b string) bool {
		return slurmDelimiter(firstLine(b)) != "" && strings.Contains(firstLine(b), "JobID")
	}},
	"nextflow": {readNextflow, func(b string) bool {
		return strings.HasPrefix(b, "task_id") || strings.Contains(firstLine(b), "\thash\t")
	}},
	"time": {readTime, func(b string) bool { return strings.Contains(b, timedLine) }},
}

// Formats returns the names of all formats, sorted.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// Read reads a file in a format; empty: whatever it looks like.
func Read(format string, f File) (Result, error) {
	f.Text = bytes.TrimPrefix(f.Text, []byte("\ufeff"))
	if format == "" {
		if format = guess(f.Text); format == "" {
			return Result{}, f.fail(0, "name it with --format: "+strings.Join(Formats(), ", "), "it looks like none of the formats")
		}
	}
	reader, known := formats[format]
	if !known {
		return Result{}, f.fail(0, "there are "+strings.Join(Formats(), ", "), "unknown format %q", format)
	}
	result, err := reader.read(f)
	if err != nil {
		return Result{}, err
	}
	for i, t := range result.Tasks {
		if err := t.Check(); err != nil {
			return Result{}, f.fail(0, "correct it there, or take it out", "task %d of %d: %w", i+1, len(result.Tasks), err)
		}
	}
	if len(result.Tasks) == 0 && len(result.Skipped) == 0 {
		return Result{}, f.fail(0, "is it of the format "+format+"?", "no task is in it")
	}
	return result, nil
}

// guess returns the format that a file looks like; empty if none.
func guess(text []byte) string {
	beginning := string(bytes.TrimLeft(text[:min(len(text), 64<<10)], " \t\r\n"))
	for _, name := range Formats() {
		if formats[name].is(beginning) {
			return name
		}
	}
	return ""
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// fail says where a file is not as its format wants it, and what helps. Line 0 is none.
func (f File) fail(line int, remedy, format string, arguments ...any) error {
	place := f.Name
	if line > 0 {
		place = fmt.Sprintf("%s:%d", f.Name, line)
	}
	return fmt.Errorf("%s: %w; nothing was imported of it: %s", place, fmt.Errorf(format, arguments...), remedy)
}

// origins tell records of a file apart, also those that are the same to the letter, and are the same
// when the file is read again, also when it has grown: checksums of all text up to a record's end.
type origins struct {
	text   []byte
	hash   hash.Hash
	hashed int
}

func (f File) origins() *origins { return &origins{text: f.Text, hash: sha256.New()} }

// at returns the origin of the record that ends before a byte of the file. The line end is not part of
// it, for the last record may have none yet. Records come in their order.
func (o *origins) at(end int) string {
	record := bytes.TrimRight(o.text[o.hashed:end], "\r\n")
	o.hash.Write(record)
	o.hashed += len(record)
	return hex.EncodeToString(o.hash.Sum(nil)[:8])
}

// newTask is a task about which nothing is known yet but who measured it.
func newTask(source string) *archive.Task {
	return &archive.Task{Schema: archive.SchemaID, Source: source, Account: account.Account{
		Schema: account.SchemaID, Accuracy: make(map[string]account.Accuracy), Sources: make(map[string]string),
	}}
}

// measured says of fields how they are to be read, and of those that are bounds why.
func measured(t *archive.Task, accuracy account.Accuracy, why string, fields ...string) {
	for _, field := range fields {
		if _, known := t.Account.Number(field); !known {
			continue
		}
		t.Account.Note(accuracy, t.Source, field)
		if why != "" {
			if t.Account.Missing == nil {
				t.Account.Missing = make(map[string]string)
			}
			t.Account.Missing[field] = why
		}
	}
}

// setCPU sets the CPU time, and the cores from it.
func setCPU(a *account.Account, user, system, total *float64) {
	a.UserSeconds, a.SystemSeconds, a.CPUSeconds = user, system, total
	if total == nil && user != nil && system != nil {
		a.CPUSeconds = new(*user + *system)
	}
	if a.CPUSeconds != nil && a.WallSeconds > 0 {
		a.CoresAverage = new(*a.CPUSeconds / a.WallSeconds)
	}
}

// largestOnly is why the resident memory of wait4 is a bound.
const largestOnly = "that of the largest process only"
