// SPDX-License-Identifier: Apache-2.0

//go:build e2e && full

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/testing/openmpi"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// mpiJob is a job of four ranks that compare a variable at each call.
type mpiJob struct {
	*targets.Target // the launcher
	pids            []string
	stderr          *bytes.Buffer
}

// mpiLibrary is an implementation of MPI, and a variable of it with two values.
type mpiLibrary struct {
	name, compiler string
	launcher       []string
	variable       string
	word, number   string
	refused        [][2]string // a setting, and why
}

func mpiLibraries() []mpiLibrary {
	return []mpiLibrary{
		{
			"MPICH", "mpicc.mpich", targets.MPICH(4),
			"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "recursive_doubling", "3",
			[][2]string{
				{"MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM=99", "takes auto (0)"},
				{"MPIR_CVAR_ALREDUCE_INTRA_ALGORITHM=0", "did you mean MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM"},
				{"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=1", "only whole numbers"},
			},
		},
		{
			"Open MPI", "mpicc.openmpi",
			[]string{"mpirun.openmpi", "-n", "4", "--allow-run-as-root", "--host", "localhost:4", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"},
			"coll_tuned_allreduce_algorithm", "recursive_doubling", "3",
			[][2]string{
				{"coll_tuned_allreduce_algorithm=quickest", "takes ignore (0)"},
				{"coll_tuned_alreduce_algorithm=0", "did you mean coll_tuned_allreduce_algorithm"},
				{"btl_vader_eager_limit=1", "set it at launch"},
				{"dl_dlopen_major_version=1", "is a constant"},
			},
		},
	}
}

// start starts the job; its ranks wait for a signal before they begin.
func (m mpiLibrary) start(t *testing.T) *mpiJob {
	t.Helper()
	program := targets.BuildWith(t, m.compiler, "ranks", "../../../controller/testdata/ranks.c")
	for {
		cmd := exec.Command(m.launcher[0], append(m.launcher[1:len(m.launcher):len(m.launcher)], program, m.variable, "held")...)
		job := &mpiJob{stderr: new(bytes.Buffer)}
		cmd.Stderr = job.stderr
		job.Target = targets.Launch(t, cmd)
		if job.readRanks(t) {
			return job
		}
		if err := job.Wait(); !openmpi.DiedInInit(job.stderr.String()) {
			t.Fatalf("the job did not begin: %v\n%s", err, job.stderr)
		}
	}
}

// readRanks reads who the ranks are; false if the job ends before.
func (j *mpiJob) readRanks(t *testing.T) bool {
	t.Helper()
	j.pids = make([]string, 4)
	for range j.pids {
		line, err := j.TryLine()
		if err != nil {
			return false
		}
		var rank int
		var pid string
		if _, err := fmt.Sscanf(line, "rank %d is %s", &rank, &pid); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		j.pids[rank] = pid
	}
	return true
}

// begin lets ranks begin.
func (j *mpiJob) begin(t *testing.T, ranks ...string) {
	t.Helper()
	for _, pid := range ranks {
		if err := unix.Kill(number(t, pid), unix.SIGUSR1); err != nil {
			t.Fatal(err)
		}
	}
}

func number(t *testing.T, pid string) int {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (j *mpiJob) mustEndWell(t *testing.T) {
	t.Helper()
	if err := j.End(t); err != nil {
		t.Errorf("%v\n%s", err, j.stderr)
	}
}

// byHand starts a command of attune.
func byHand(t *testing.T, arguments ...string) (cmd *exec.Cmd, output *bytes.Buffer) {
	t.Helper()
	cmd, output = exec.CommandContext(patience.Context(t), attune, arguments...), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, output
}

// tuned runs `attune tune`, which must succeed, and returns the ids of its changes.
func (j *mpiJob) tuned(t *testing.T, processes []string, setting string) (ids []string) {
	t.Helper()
	var changes []struct{ ID, Old, New, State string }
	out := run(t, append(append([]string{attune, "tune", "--json", "--wait", "1m"}, processes...), setting)...)
	if err := json.Unmarshal([]byte(out), &changes); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if c.State != "changed" {
			t.Errorf("%+v", c)
		}
		ids = append(ids, c.ID)
	}
	if len(ids) != len(j.pids) {
		t.Fatalf("%d changes: %s", len(ids), out)
	}
	return ids
}

// mustRefuse runs `attune tune`, which must change nothing.
func mustRefuse(t *testing.T, why string, arguments ...string) {
	t.Helper()
	cmd, output := byHand(t, append([]string{"tune"}, arguments...)...)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(output.String(), why) {
		t.Errorf("%v: %v, want %q in\n%s", arguments, err, why, output)
	}
}

// A variable is changed by hand in all ranks before the same call, whether these are
// named or their launcher is, and back; the ranks themselves compare it at each call.
// What cannot be done is refused.
func TestControlVariablesByHand(t *testing.T) {
	for _, m := range mpiLibraries() {
		t.Run(m.name, func(t *testing.T) {
			job := m.start(t)
			job.begin(t, job.pids...)
			before := job.Line(t)
			setting := "mpi_t." + m.variable + "="
			for _, refused := range m.refused {
				mustRefuse(t, refused[1], append(job.pids[:4:4], "mpi_t."+refused[0])...)
			}
			mustRefuse(t, "name all of them: "+strings.Join(job.pids, " "), job.pids[2], setting+m.word)
			mustRefuse(t, "no MPI library", strconv.Itoa(targets.StartProgram(t, "plain").PID), setting+m.word)
			for _, named := range [][]string{job.pids, {strconv.Itoa(job.PID)}} {
				ids := job.tuned(t, named, setting+m.word)
				job.Expect(t, "value "+m.number)
				run(t, attune, "undo", ids[1])
				job.Expect(t, before)
			}
			job.mustEndWell(t)
		})
	}
}

// A rank that never comes to a call is not waited for without end, and then nothing
// is changed in any.
func TestControlVariablesWithoutARank(t *testing.T) {
	for _, m := range mpiLibraries() {
		t.Run(m.name, func(t *testing.T) {
			job := m.start(t)
			job.begin(t, job.pids[:3]...)
			mustRefuse(t, job.pids[3]+" came to no call of", append(job.pids[:4:4], "--wait", "1s", "mpi_t."+m.variable+"="+m.word)...)
			job.begin(t, job.pids[3])
			if line := job.Line(t); line == "value "+m.number {
				t.Error("changed nonetheless")
			}
			job.mustEndWell(t)
		})
	}
}

// A rank that is killed while others stand before the call ends the attempt, and they
// go on: their launcher ends them.
func TestControlVariablesAndAKilledRank(t *testing.T) {
	for _, m := range mpiLibraries() {
		t.Run(m.name, func(t *testing.T) {
			job := m.start(t)
			cmd, output := byHand(t, append(append([]string{"tune", "--wait", "1m"}, job.pids...), "mpi_t."+m.variable+"="+m.word)...)
			for _, pid := range job.pids {
				patience.Until(t, "a tracer", func() bool { return status(t, pid).Tracer != 0 })
			}
			job.begin(t, job.pids[:3]...)
			patience.Until(t, "a rank to stand", func() bool {
				return status(t, job.pids[0]).State == 't' || status(t, job.pids[1]).State == 't'
			})
			if err := unix.Kill(number(t, job.pids[3]), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil || !strings.Contains(output.String(), "nothing was changed") {
				t.Errorf("%v: %s", err, output)
			}
			if err := job.Wait(); err == nil {
				t.Error("the job ended well")
			}
		})
	}
}

// status is what the kernel says of a process.
func status(t *testing.T, pid string) procid.Status {
	t.Helper()
	s, err := procid.ReadStatus(number(t, pid))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
