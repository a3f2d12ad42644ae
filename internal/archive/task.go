// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/account"
)

// SchemaID names the layout of a Task as a JSON document: a line of an export.
const SchemaID = "attune.task/1"

// Task is a task that has ended.
type Task struct {
	Schema string `json:"schema"`
	// Name is that of its category, chosen by people; empty: the program's.
	Name string `json:"name,omitempty"`
	// Program is the SHA-256 of its executable, in hex; empty if it is not known.
	Program string `json:"program,omitempty"`
	// Source is who measured it: attune, cctools, kickstart, slurm, nextflow, time.
	Source string `json:"source"`
	// Origin tells tasks apart whose accounts may be the same to the letter; it stays what it is when the
	// file that they are read from grows.
	Origin string `json:"origin,omitempty"`
	// Job is its id in a batch system.
	Job string `json:"job,omitempty"`
	// Asked is what was asked for.
	Asked Asked `json:"asked,omitzero"`
	// InputBytes is the size of its input, if that was known before it ran.
	InputBytes *uint64 `json:"input_bytes,omitempty"`
	// Account is what it took.
	Account account.Account `json:"account"`
}

// Asked is what was asked for; 0: nothing, or it is not known.
type Asked struct {
	MemoryBytes uint64  `json:"memory_bytes,omitempty"`
	Cores       float64 `json:"cores,omitempty"`
	WallSeconds float64 `json:"wall_seconds,omitempty"`
	DiskBytes   uint64  `json:"disk_bytes,omitempty"`
}

// ErrInvalid says that a task cannot be kept as it is.
var ErrInvalid = errors.New("not the account of a task")

// Check returns an ErrInvalid for what would not be found again or is impossible.
func (t *Task) Check() error {
	a := &t.Account
	switch {
	case t.Schema != SchemaID:
		return fmt.Errorf("%w: schema %q, not %s", ErrInvalid, t.Schema, SchemaID)
	case a.Schema != account.SchemaID:
		return fmt.Errorf("%w: schema %q of the account, not %s", ErrInvalid, a.Schema, account.SchemaID)
	case len(a.Command) == 0 && t.Name == "":
		return fmt.Errorf("%w: neither a command nor a name", ErrInvalid)
	case a.End.IsZero():
		return fmt.Errorf("%w: no time of its end", ErrInvalid)
	case a.End.Before(a.Start):
		return fmt.Errorf("%w: its end is before its start", ErrInvalid)
	case a.Start.Year() < 0 || a.End.Year() > 9999: // no document has such a time
		return fmt.Errorf("%w: it ran from the year %d to %d", ErrInvalid, a.Start.Year(), a.End.Year())
	}
	for _, field := range measures {
		if v, known := t.Number(field); known && !(v >= 0 && v <= maxNumber) {
			return fmt.Errorf("%w: %s is %v", ErrInvalid, field, v)
		}
	}
	return nil
}

// maxNumber is larger than any machine.
const maxNumber = 1e21

// Number returns what a task has in a field: one of the account, input_bytes, or of what
// was asked for (asked.memory_bytes). It is not known if it was not measured.
func (t *Task) Number(field string) (value float64, known bool) {
	switch field {
	case "input_bytes":
		if t.InputBytes == nil {
			return 0, false
		}
		return float64(*t.InputBytes), true
	case "asked.memory_bytes":
		value = float64(t.Asked.MemoryBytes)
	case "asked.cores":
		value = t.Asked.Cores
	case "asked.wall_seconds":
		value = t.Asked.WallSeconds
	case "asked.disk_bytes":
		value = float64(t.Asked.DiskBytes)
	default:
		return t.Account.Number(field)
	}
	return value, value != 0
}

// exceededMemory says whether a task exceeded a limit of its memory, and returns the largest
// such limit, bytes; 0 if it is not known.
func (t *Task) exceededMemory() (limit float64, exceeded bool) {
	for _, text := range t.Account.Exit.Limits { // each as 'field: peak > limit'
		field, values, _ := strings.Cut(text, ":")
		if !slices.Contains(memoryFields, field) {
			continue
		}
		exceeded = true
		_, value, _ := strings.Cut(values, "> ")
		if v, err := strconv.ParseFloat(value, 64); err == nil && v <= maxNumber {
			limit = max(limit, v)
		}
	}
	return limit, exceeded
}

// encode returns the document of a task, and its id: 16 hex digits of its checksum. GNU time tells no
// times: those of its tasks are when their file was written, which is another time when it has grown.
func (t *Task) encode() (id string, document []byte, err error) {
	document, err = json.Marshal(t)
	if err != nil {
		return "", nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	known := document
	if t.Source == "time" {
		timeless := *t
		timeless.Account.Start, timeless.Account.End = time.Time{}, time.Time{}
		if known, err = json.Marshal(&timeless); err != nil {
			return "", nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	sum := sha256.Sum256(known)
	return hex.EncodeToString(sum[:8]), document, nil
}

// name is that of the category: the given one, or the program's.
func (t *Task) name() string {
	if t.Name != "" || len(t.Account.Command) == 0 {
		return t.Name
	}
	return filepath.Base(t.Account.Command[0])
}

// category returns the id of the category: 12 hex digits of the checksum of program and
// pattern, and the pattern.
func (t *Task) category() (id, pattern string) {
	pattern = Pattern(t.Account.Command)
	if pattern == "" {
		pattern = t.name()
	}
	sum := sha256.Sum256([]byte(t.Program + "\x00" + pattern))
	return hex.EncodeToString(sum[:6]), pattern
}

// Summary is what a list shows of a task.
type Summary struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Category string    `json:"category"`
	Pattern  string    `json:"pattern"`
	Source   string    `json:"source"`
	Job      string    `json:"job,omitempty"`
	Host     string    `json:"host,omitempty"`
	End      time.Time `json:"end"`
	Exit     string    `json:"exit"`
	ExitCode *int      `json:"exit_code,omitempty"`
	// Numbers are those that were measured, by field.
	Numbers map[string]float64 `json:"numbers"`
}

// Succeeded says whether a task ended by itself, with code 0.
func (s *Summary) Succeeded() bool {
	return s.Exit == account.ExitNormal && s.ExitCode != nil && *s.ExitCode == 0
}

// memoryFields are those of [Summary.Memory], the first that is known counts.
var memoryFields = []string{"memory.proportional_peak_bytes", "memory.resident_peak_bytes", "memory.anonymous_peak_bytes", "memory.cgroup_peak_bytes"}

// Memory is what a limit of the memory would have had to allow, bytes: the resident
// memory, shared pages once where that was measured, and no less than the anonymous one.
// Only without these is it what a control group was charged with, in which file cache is.
func (s *Summary) Memory() (bytes float64, known bool) {
	for _, field := range memoryFields {
		if bytes, known = s.Numbers[field]; known {
			break
		}
	}
	return max(bytes, s.Numbers["memory.anonymous_peak_bytes"]), known
}
