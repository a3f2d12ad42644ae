// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
)

const cctoolsRemedy = "import a .summary that resource_monitor has written"

// quantity is a number with its unit: [12, "MB"].
type quantity struct {
	value float64
	known bool
}

// cctoolsUnits are those of summaries. Memory and files are in units of 2^20 bytes there.
var cctoolsUnits = map[string]float64{
	"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "us": 1e-6, "ms": 1e-3, "s": 1,
	"procs": 1, "cores": 1, "files": 1, "gpus": 1, "switches": 1,
}

// UnmarshalJSON implements json.Unmarshaler.
func (q *quantity) UnmarshalJSON(text []byte) error {
	var pair []any
	if err := json.Unmarshal(text, &pair); err != nil {
		return fmt.Errorf("%s is not a number with its unit", text)
	}
	if len(pair) != 2 {
		return fmt.Errorf("%s is not a number with its unit", text)
	}
	value, number := pair[0].(float64)
	unit, named := pair[1].(string)
	factor, known := cctoolsUnits[unit]
	if !number || !named || !known {
		return fmt.Errorf("%s is not a number with a unit that is known", text)
	}
	q.value, q.known = value*factor, value >= 0 // -1: not measured
	return nil
}

func (q quantity) float() *float64 {
	if !q.known {
		return nil
	}
	return &q.value
}

func (q quantity) count() *uint64 {
	if !q.known {
		return nil
	}
	return new(uint64(q.value))
}

// summary is what is used of a summary.
type summary struct {
	Command    string                     `json:"command"`
	Category   string                     `json:"category"`
	Task       json.RawMessage            `json:"taskid"`
	Host       string                     `json:"host"`
	ExitType   string                     `json:"exit_type"`
	ExitStatus int                        `json:"exit_status"`
	Signal     json.RawMessage            `json:"signal"`
	Exceeded   map[string]json.RawMessage `json:"limits_exceeded"`

	Start      quantity `json:"start"`
	End        quantity `json:"end"`
	Wall       quantity `json:"wall_time"`
	CPU        quantity `json:"cpu_time"`
	Cores      quantity `json:"cores"`
	CoresAvg   quantity `json:"cores_avg"`
	Memory     quantity `json:"memory"`
	Virtual    quantity `json:"virtual_memory"`
	Swap       quantity `json:"swap_memory"`
	Read       quantity `json:"bytes_read"`
	Written    quantity `json:"bytes_written"`
	Received   quantity `json:"bytes_received"`
	Sent       quantity `json:"bytes_sent"`
	Disk       quantity `json:"disk"`
	Files      quantity `json:"total_files"`
	Processes  quantity `json:"total_processes"`
	Concurrent quantity `json:"max_concurrent_processes"`
	Switches   quantity `json:"context_switches"`
}

// readCCTools reads summaries of resource_monitor, one JSON document after the other.
func readCCTools(f File) (result Result, err error) {
	err = f.documents(cctoolsRemedy, func(line int, document []byte) error {
		var s summary
		if err := json.Unmarshal(document, &s); err != nil {
			return f.fail(line, cctoolsRemedy, "%w", err)
		}
		if s.ExitType == "running" {
			result.skip("is still running")
			return nil
		}
		if !s.End.known || !s.Wall.known || s.Command == "" && s.Category == "" {
			return f.fail(line, cctoolsRemedy, "a summary has command, end and wall_time, and this one has not")
		}
		result.Tasks = append(result.Tasks, s.task())
		return nil
	})
	return result, err
}

func (s *summary) task() *archive.Task {
	t := newTask("cctools")
	if s.Category != "default" {
		t.Name = s.Category
	}
	t.Job = strings.Trim(string(s.Task), `"`)
	a := &t.Account
	a.Command, a.Host.Name = strings.Fields(s.Command), s.Host
	a.End, a.WallSeconds = unixTime(s.End.value), s.Wall.value
	a.Start = a.End.Add(-seconds(s.Wall.value))
	setCPU(a, nil, nil, s.CPU.float())
	if s.CoresAvg.known {
		a.CoresAverage = s.CoresAvg.float()
	}
	a.CoresPeak = s.Cores.float()
	a.Memory = account.Memory{Proportional: s.Memory.count(), Virtual: s.Virtual.count(), Swap: s.Swap.count()}
	a.IO = account.IO{Read: s.Read.count(), Written: s.Written.count(), NetworkReceived: s.Received.count(), NetworkSent: s.Sent.count()}
	a.Disk = account.Disk{Files: s.Files.count(), Bytes: s.Disk.count()}
	a.Processes = account.Processes{Total: s.Processes.count(), Peak: s.Concurrent.count()}
	a.Exit = s.exit()
	measured(t, account.Exact, "", "wall_seconds")
	measured(t, account.Sampled, "", "cpu_seconds", "cores_average", "cores_peak", "memory.proportional_peak_bytes", "memory.virtual_peak_bytes",
		"memory.swap_peak_bytes", "disk.files_peak", "disk.bytes_peak", "processes.total", "processes.peak")
	measured(t, account.Bound, "the most between two looks, not the total", "io.read_bytes", "io.written_bytes")
	measured(t, account.Bound, "what its library has seen", "io.network_received_bytes", "io.network_sent_bytes")
	return t
}

func (s *summary) exit() account.Exit {
	switch s.ExitType {
	case "signal":
		return account.Exit{Type: account.ExitSignal, Signal: strings.Trim(string(s.Signal), `"`)}
	case "limits", "limit":
		e := account.Exit{Type: account.ExitLimits}
		for _, name := range slices.Sorted(maps.Keys(s.Exceeded)) {
			text := name + ": > " + string(s.Exceeded[name])
			var limit quantity
			if name == "memory" && limit.UnmarshalJSON(s.Exceeded[name]) == nil && limit.known { // estimates go by it
				text = fmt.Sprintf("memory.proportional_peak_bytes: > %.0f", limit.value)
			}
			e.Limits = append(e.Limits, text)
		}
		return e
	}
	return account.Exit{Type: account.ExitNormal, Code: &s.ExitStatus}
}
