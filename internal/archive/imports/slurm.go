// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/archive"
)

const slurmRemedy = "write it with sacct --parsable2 --format=JobID,JobName,State,ExitCode,Start,End,ElapsedRaw,TotalCPU,AllocCPUS,ReqMem,TimelimitRaw," +
	"MaxRSS,MaxVMSize,NTasks,NodeList"

// slurmTime is how sacct writes times, in the cluster's zone.
const slurmTime = "2006-01-02T15:04:05"

// parentsOnly is why TotalCPU is a bound, by the words of sacct(1).
const parentsOnly = "that of the tasks' parent processes, without their children"

// job is a job with its steps.
type job struct {
	line  int
	row   map[string]string
	steps []step
}

// readSlurm reads the output of sacct --parsable2. A job is one task; what its steps took
// at most is the job's, since Slurm does not tell what they took together.
func readSlurm(f File) (result Result, err error) {
	jobs, err := f.slurmJobs()
	if err != nil {
		return Result{}, err
	}
	for _, j := range jobs {
		state, _, _ := strings.Cut(j.row["State"], " ") // CANCELLED by 1000
		switch state {
		case "RUNNING", "PENDING", "SUSPENDED", "REQUEUED", "RESIZING", "COMPLETING":
			result.skip("is " + strings.ToLower(state))
			continue
		}
		t, err := j.task(state, f.Local)
		if err != nil {
			return Result{}, f.fail(j.line, slurmRemedy, "%w", err)
		}
		if t.Account.End.IsZero() {
			result.skip("never began")
			continue
		}
		result.Tasks = append(result.Tasks, t)
	}
	return result, nil
}

// slurmJobs reads the jobs, each with its steps, which follow it.
func (f File) slurmJobs() (jobs []*job, err error) {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(string(f.Text), "\r\n", "\n"), "\n"), "\n")
	t := newSlurmTable(lines[0])
	byID := make(map[string]*job)
	for i, n := 1, 0; i < len(lines); i += n {
		line := i + 1
		var cells []string
		cells, n = t.record(lines[i:])
		row, err := t.row(cells)
		if err != nil {
			return nil, f.fail(line, t.remedy(cells), "%w", err)
		}
		id, _, isStep := strings.Cut(row["JobID"], ".")
		switch {
		case id == "":
			return nil, f.fail(line, slurmRemedy, "no JobID")
		case !isStep:
			byID[id] = &job{line: line, row: row}
			jobs = append(jobs, byID[id])
		case byID[id] == nil:
			return nil, f.fail(line, "give sacct no --steps, and the whole output", "a step of job %s comes without the job before it", id)
		default:
			s, err := readStep(row)
			if err != nil {
				return nil, f.fail(line, slurmRemedy, "%w", err)
			}
			byID[id].steps = append(byID[id].steps, s)
		}
	}
	return jobs, nil
}

func (j *job) task(state string, zone *time.Location) (*archive.Task, error) {
	t := newTask("slurm")
	t.Name, t.Job = j.row["JobName"], j.row["JobID"]
	a := &t.Account
	a.Command = strings.Fields(j.row["SubmitLine"])
	a.Host.Name = j.row["NodeList"]
	if t.Name == "" && len(a.Command) == 0 {
		return nil, fmt.Errorf("job %s has no JobName", t.Job)
	}
	if err := j.times(a, zone); err != nil || a.End.IsZero() {
		return t, err
	}
	if text := j.row["TotalCPU"]; text != "" {
		total, err := clock(text)
		if err != nil {
			return nil, err
		}
		setCPU(a, nil, nil, &total)
	}
	if err := j.asked(&t.Asked); err != nil {
		return nil, err
	}
	j.setMost(t, "memory.resident_peak_bytes", &a.Memory.Resident, func(s step) uint64 { return s.memory })
	j.setMost(t, "memory.virtual_peak_bytes", &a.Memory.Virtual, func(s step) uint64 { return s.virtual })
	measured(t, account.Exact, "", "wall_seconds")
	measured(t, account.Bound, parentsOnly, "cpu_seconds", "cores_average")
	var err error
	a.Exit, err = slurmExit(state, j.row["ExitCode"], t)
	return t, err
}

// unknownTimes are what sacct has in place of a time.
var unknownTimes = []string{"None", "Unknown"}

// times sets start, end and time; a job that never ran is left without an end. One that is cancelled
// while it waits has an end all the same; its start is None or, in older Slurm, its end.
func (j *job) times(a *account.Account, zone *time.Location) (err error) {
	for column, into := range map[string]*time.Time{"Start": &a.Start, "End": &a.End} {
		text := j.row[column]
		if text == "" || slices.Contains(unknownTimes, text) {
			continue
		}
		if *into, err = time.ParseInLocation(slurmTime, text, zone); err != nil {
			return fmt.Errorf("%s %q is no time", column, text)
		}
		*into = into.UTC()
	}
	if a.End.IsZero() || slices.Contains(unknownTimes, j.row["Start"]) {
		a.End = time.Time{}
		return nil
	}
	switch {
	case j.row["ElapsedRaw"] != "":
		a.WallSeconds, err = strconv.ParseFloat(j.row["ElapsedRaw"], 64)
	case j.row["Elapsed"] != "":
		a.WallSeconds, err = clock(j.row["Elapsed"])
	case a.Start.IsZero() || a.Start.After(a.End):
		err = errors.New("neither ElapsedRaw nor Start and End tell how long it ran")
	default:
		a.WallSeconds = a.End.Sub(a.Start).Seconds()
	}
	if a.WallSeconds == 0 && j.row["NodeList"] == "None assigned" {
		a.End = time.Time{}
	} else if a.Start.IsZero() || a.Start.After(a.End) { // after: the clock was turned back while it ran
		a.Start = a.End.Add(-seconds(a.WallSeconds))
	}
	return err
}

// asked reads what was asked for.
func (j *job) asked(asked *archive.Asked) (err error) {
	cpus := j.row["ReqCPUS"]
	if cpus == "" {
		cpus = j.row["AllocCPUS"]
	}
	if cpus != "" {
		if asked.Cores, err = strconv.ParseFloat(cpus, 64); err != nil {
			return fmt.Errorf("%q is no number of CPUs", cpus)
		}
	}
	if memory := j.row["ReqMem"]; memory != "" && memory != "0" {
		each := strings.TrimRight(memory, "cn") // up to Slurm 20.11: for each CPU or node
		if asked.MemoryBytes, err = bytesOf(each, 1<<20); err != nil {
			return err
		}
		if strings.HasSuffix(memory, "c") {
			asked.MemoryBytes *= uint64(max(asked.Cores, 1))
		} else if nodes, err := strconv.ParseUint(j.row["NNodes"], 10, 20); err == nil && strings.HasSuffix(memory, "n") {
			asked.MemoryBytes *= nodes
		}
	}
	if minutes := j.row["TimelimitRaw"]; minutes != "" && minutes[0] >= '0' && minutes[0] <= '9' {
		if asked.WallSeconds, err = strconv.ParseFloat(minutes, 64); err != nil {
			return fmt.Errorf("TimelimitRaw %q is no number", minutes)
		}
		asked.WallSeconds *= 60
	}
	return nil
}

func slurmExit(state, code string, t *archive.Task) (account.Exit, error) {
	switch state {
	case "OUT_OF_MEMORY":
		return account.Exit{Type: account.ExitLimits, Limits: []string{fmt.Sprintf("memory.cgroup_peak_bytes: > %d", t.Asked.MemoryBytes)}}, nil
	case "TIMEOUT", "DEADLINE":
		return account.Exit{Type: account.ExitLimits, Limits: []string{fmt.Sprintf("wall_seconds: > %.0f", t.Asked.WallSeconds)}}, nil
	case "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REVOKED":
		return account.Exit{Type: account.ExitLost}, nil
	}
	text, signal, _ := strings.Cut(code, ":")
	if signal != "" && signal != "0" {
		return account.Exit{Type: account.ExitSignal, Signal: "signal " + signal}, nil
	}
	if state == "CANCELLED" {
		return account.Exit{Type: account.ExitSignal, Signal: "SIGTERM"}, nil
	}
	if text == "" && state == "COMPLETED" {
		text = "0"
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return account.Exit{}, fmt.Errorf("ExitCode %q is no code", code)
	}
	return account.Exit{Type: account.ExitNormal, Code: &n}, nil
}
