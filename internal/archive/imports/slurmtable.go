// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
)

// typed is the column of what was typed at the prompt, which Slurm writes as it stands, with
// line ends and delimiters.
const typed = "SubmitLine"

// named is the column of the name that whoever submitted a job gave it: it may have
// delimiters as well.
const named = "JobName"

// mostInName bounds the delimiters that are looked for in a name beside what was typed.
const mostInName = 32

// slurmTable is how sacct writes a table.
type slurmTable struct {
	header    []string
	delimiter string
	parsable  bool // --parsable, which ends each line with a delimiter
}

func newSlurmTable(first string) slurmTable {
	t := slurmTable{delimiter: cmp.Or(slurmDelimiter(first), "|")}
	first, t.parsable = strings.CutSuffix(first, t.delimiter)
	t.header = strings.Split(first, t.delimiter)
	return t
}

// slurmDelimiter is what stands between the names of columns, which are of letters and
// digits; empty: nothing that a table for programs has there.
func slurmDelimiter(first string) string {
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	rest := strings.TrimLeftFunc(first, word)
	delimiter := strings.TrimSuffix(rest, strings.TrimLeftFunc(rest, func(r rune) bool { return !word(r) }))
	if strings.Contains(delimiter, " ") {
		return "" // the table is for people
	}
	return delimiter
}

// record returns the cells of the record that the lines begin with, and how many lines it
// has.
func (t slurmTable) record(lines []string) (cells []string, n int) {
	cells = strings.Split(lines[0], t.delimiter)
	for n = 1; slices.Contains(t.header, typed) && len(cells) < len(t.header) && n < len(lines); n++ {
		more := strings.Split(lines[n], t.delimiter)
		cells[len(cells)-1] += "\n" + more[0]
		cells = append(cells, more[1:]...)
	}
	if t.parsable && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	return cells, n
}

// row returns the cells of a record by their columns. Delimiters too many are of what was
// typed or of the name: of the former, unless the state of the job would not be one then.
func (t slurmTable) row(cells []string) (map[string]string, error) {
	more := len(cells) - len(t.header)
	least := 0 // that are in the name
	if !slices.Contains(t.header, typed) {
		least = more
	}
	for inName := least; inName <= min(more, least+mostInName); inName++ {
		row, ok := t.divide(cells, map[string]int{named: inName, typed: more - inName})
		if state, has := row["State"]; ok && (!has || stateText.MatchString(state)) {
			return row, nil
		}
	}
	return nil, fmt.Errorf("%d cells, and %d columns in the first line", len(cells), len(t.header))
}

// remedy says what helps where cells are not those of the columns.
func (t slurmTable) remedy(cells []string) string {
	if len(cells) > len(t.header) {
		return `write it with a delimiter that no cell has: sacct --parsable2 --delimiter=$'\x1f'`
	}
	return slurmRemedy
}

// stateText is what sacct writes of a state.
var stateText = regexp.MustCompile(`^[A-Z_]+( by [0-9]+)?\+?$`)

// divide gives each column a cell, and as many more as it has; false: that is not all.
func (t slurmTable) divide(cells []string, more map[string]int) (row map[string]string, ok bool) {
	row = make(map[string]string, len(t.header))
	for _, column := range t.header {
		n := 1 + more[column]
		if n > len(cells) {
			return row, false
		}
		row[column] = strings.Join(cells[:n], t.delimiter)
		cells = cells[n:]
	}
	return row, len(cells) == 0
}

// step is what a step of a job took.
type step struct {
	memory, virtual uint64
	tasks           uint64
}

func readStep(row map[string]string) (s step, err error) {
	s.tasks = 1
	if n := row["NTasks"]; n != "" {
		if s.tasks, err = strconv.ParseUint(n, 10, 32); err != nil {
			return s, fmt.Errorf("NTasks %q is no number", n)
		}
	}
	for column, into := range map[string]*uint64{"MaxRSS": &s.memory, "MaxVMSize": &s.virtual} {
		text := row[column]
		if text == "" {
			continue
		}
		if *into, err = bytesOf(text, 1); err != nil {
			return s, fmt.Errorf("%s: %w", column, err)
		}
	}
	return s, nil
}

// setMost sets a field to the most that a step took, by size, of which 0 is none that was measured.
func (j *job) setMost(t *archive.Task, field string, into **uint64, size func(step) uint64) {
	var most, tasks uint64
	for _, s := range j.steps {
		if together := size(s) * s.tasks; together > most {
			most, tasks = together, s.tasks
		}
	}
	if most == 0 {
		return
	}
	*into = &most
	if tasks > 1 {
		measured(t, account.Bound, "that of the largest task, times the number of tasks", field)
	} else {
		measured(t, account.Sampled, "", field)
	}
}
