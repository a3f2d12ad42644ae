// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
)

const nextflowRemedy = "write it with nextflow run -with-trace; what it adds to the default are start, complete, process, cpus, memory, time"

// traceRow is a line of a trace by its columns; a - is nothing.
type traceRow map[string]string

// get returns a cell, and whether something is in it.
func (r traceRow) get(column string) (string, bool) {
	text := strings.TrimSpace(r[column])
	return text, text != "" && text != "-"
}

// readNextflow reads a trace, with a task in each line.
func readNextflow(f File) (result Result, err error) {
	reader := csv.NewReader(bytes.NewReader(f.Text))
	if strings.Contains(firstLine(string(f.Text)), "\t") {
		reader.Comma, reader.LazyQuotes = '\t', true
	}
	header, err := reader.Read()
	if err != nil {
		return Result{}, f.fail(1, nextflowRemedy, "%w", err)
	}
	reader.ReuseRecord = true // only now: the header is kept
	origins := f.origins()
	for {
		cells, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return result, nil
		}
		if err != nil {
			return Result{}, f.failCSV(err)
		}
		row := make(traceRow, len(cells))
		for i, cell := range cells {
			row[header[i]] = cell
		}
		line, _ := reader.FieldPos(0)
		switch status := row["status"]; {
		case status == "":
			return Result{}, f.fail(line, nextflowRemedy, "no status")
		case status != "COMPLETED" && status != "FAILED": // CACHED: it ran in an earlier trace
			result.skip("is " + strings.ToLower(status))
			continue
		case status == "FAILED" && !row.hasTime(): // its submission was refused
			result.skip("never began")
			continue
		}
		t, err := row.task(f.Local)
		if err != nil {
			return Result{}, f.fail(line, nextflowRemedy, "%w", err)
		}
		t.Origin = origins.at(int(reader.InputOffset()))
		result.Tasks = append(result.Tasks, t)
	}
}

// failCSV is the error of a line that has no cells.
func (f File) failCSV(err error) error {
	line := 0
	if wrong, is := errors.AsType[*csv.ParseError](err); is {
		line, err = wrong.Line, wrong.Err
	}
	return f.fail(line, nextflowRemedy, "%w", err)
}

func (r traceRow) task(zone *time.Location) (*archive.Task, error) {
	t := newTask("nextflow")
	a := &t.Account
	t.Name, _ = r.get("process")
	if t.Name == "" {
		t.Name, _, _ = strings.Cut(r["name"], " (")
	}
	if t.Name == "" {
		return nil, errors.New("neither process nor name")
	}
	t.Job, _ = r.get("native_id")
	a.Host.Name, _ = r.get("hostname")
	if err := r.times(a, zone); err != nil {
		return nil, err
	}
	if err := r.taken(a); err != nil {
		return nil, err
	}
	if err := r.asked(&t.Asked); err != nil {
		return nil, err
	}
	a.Exit = account.Exit{Type: account.ExitLost}
	if text, is := r.get("exit"); is {
		code, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("exit %q is no code", text)
		}
		a.Exit = account.Exit{Type: account.ExitNormal, Code: &code}
	}
	measured(t, account.Exact, "", "wall_seconds")
	measured(t, account.Sampled, "", "cpu_seconds", "cores_average", "memory.resident_peak_bytes", "memory.virtual_peak_bytes", "io.read_bytes",
		"io.written_bytes", "io.read_calls", "io.written_calls", "io.storage_read_bytes", "io.storage_written_bytes",
		"context_switches.voluntary", "context_switches.involuntary")
	return t, nil
}

// hasTime says whether the trace tells any time of the task.
func (r traceRow) hasTime() bool {
	return slices.ContainsFunc([]string{"submit", "start", "complete", "realtime"}, func(column string) bool {
		_, is := r.get(column)
		return is
	})
}

// taken sets what the task took, as far as a trace has it.
func (r traceRow) taken(a *account.Account) error {
	sizes := map[string]**uint64{
		"peak_rss": &a.Memory.Resident, "peak_vmem": &a.Memory.Virtual, "rchar": &a.IO.Read, "wchar": &a.IO.Written, "syscr": &a.IO.ReadCalls,
		"syscw": &a.IO.WrittenCalls, "read_bytes": &a.IO.StorageRead, "write_bytes": &a.IO.StorageWritten,
		"vol_ctxt": &a.ContextSwitches.Voluntary, "inv_ctxt": &a.ContextSwitches.Involuntary,
	}
	for column, into := range sizes {
		if text, is := r.get(column); is {
			size, err := bytesOf(text, 1)
			if err != nil {
				return fmt.Errorf("%s: %w", column, err)
			}
			*into = &size
		}
	}
	if text, is := r.get("%cpu"); is {
		percent, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		if err != nil {
			return fmt.Errorf("%%cpu %q is no number", text)
		}
		setCPU(a, nil, nil, new(percent/100*a.WallSeconds))
	}
	return nil
}

// times sets start, end and time from what a trace has of them.
func (r traceRow) times(a *account.Account, zone *time.Location) error {
	for column, into := range map[string]*time.Time{"start": &a.Start, "complete": &a.End} {
		if text, is := r.get(column); is {
			when, err := traceTime(text, zone)
			if err != nil {
				return fmt.Errorf("%s: %w", column, err)
			}
			*into = when
		}
	}
	if text, is := r.get("realtime"); is {
		s, err := span(text)
		if err != nil {
			return fmt.Errorf("realtime: %w", err)
		}
		a.WallSeconds = s
	}
	// By two clocks: a duration may be below nothing, and is read only where it is needed.
	if submitted, is := r.get("submit"); is && a.End.IsZero() {
		when, err := traceTime(submitted, zone)
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		s, err := span(r["duration"])
		if err != nil {
			return fmt.Errorf("duration: %w", err)
		}
		a.End = when.Add(seconds(s))
	}
	if a.End.IsZero() {
		return errors.New("neither complete nor submit tells when it ended")
	}
	if a.Start.IsZero() || a.Start.After(a.End) {
		a.Start = a.End.Add(-seconds(a.WallSeconds))
	}
	return nil
}

// traceTime reads a time: for people, or in milliseconds since 1970.
func traceTime(text string, zone *time.Location) (time.Time, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(ms).UTC(), nil
	}
	when, err := time.ParseInLocation("2006-01-02 15:04:05", text, zone)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is no time", text)
	}
	return when.UTC(), nil
}

// asked reads what was asked for.
func (r traceRow) asked(asked *archive.Asked) (err error) {
	for column, into := range map[string]*uint64{"memory": &asked.MemoryBytes, "disk": &asked.DiskBytes} {
		if text, is := r.get(column); is {
			if *into, err = bytesOf(text, 1); err != nil {
				return fmt.Errorf("%s: %w", column, err)
			}
		}
	}
	if text, is := r.get("cpus"); is {
		if asked.Cores, err = strconv.ParseFloat(text, 64); err != nil {
			return fmt.Errorf("cpus %q is no number", text)
		}
	}
	if text, is := r.get("time"); is {
		asked.WallSeconds, err = span(text)
	}
	return err
}
