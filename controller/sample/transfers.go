// SPDX-License-Identifier: Apache-2.0

package sample

import (
	"bytes"
	"fmt"

	"github.com/attune-hpc/attune/proto/attune/series"
)

// ioPause is how many rounds pass before io is tried again where this user may
// not read it, or the kernel has none: an exec may change the former.
const ioPause = 256

// transfers reads what a process has read and written; see proc_pid_io(5).
type transfers struct {
	file procFile
	skip int // rounds in which the file is not tried, since it cannot be read
}

func newTransfers(root string) part { return &transfers{file: newProcFile(root + "/io")} }

func (t *transfers) close(s *Sampler) { t.file.close(&s.files) }

func (t *transfers) read(s *Sampler, p *process, to []series.Reading) ([]series.Reading, error) {
	if t.skip > 0 {
		t.skip--
		return to, nil
	}
	data, err := t.file.read(&s.files, p.buffer)
	if err != nil {
		t.close(s)
		t.skip = ioPause
		return to, nil // the process may have ended, which the next round tells
	}
	readings, err := parseTransfers(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.file.path, err)
	}
	return append(to, readings[:]...), nil
}

// parseTransfers parses an io file.
func parseTransfers(data []byte) (readings [4]series.Reading, err error) {
	found := 0
	for line := range bytes.Lines(data) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		var id series.ID
		switch string(name) {
		case "syscr":
			id = series.ReadCalls
		case "syscw":
			id = series.WriteCalls
		case "rchar":
			id = series.ReadBytes
		case "wchar":
			id = series.WrittenBytes
		default:
			continue
		}
		n, _, ok := number(value)
		if !ok || found == len(readings) {
			return readings, fmt.Errorf("%w: io line %q", errMalformed, line)
		}
		readings[found] = series.Reading{ID: id, Value: n}
		found++
	}
	if found != len(readings) {
		return readings, fmt.Errorf("%w: io without calls or bytes", errMalformed)
	}
	return readings, nil
}
