// SPDX-License-Identifier: Apache-2.0

//go:build site

package slurm

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
)

// task is what the plugin says of a task.
type task struct {
	PID       int
	UID       int
	Mode      string
	Tunlets   []string
	Objective string
	Rank      int
	Job       struct{ Kind, ID, Step string }
}

// listener stands where attuned does. That it is a listener of the test's own
// makes it possible to answer wrongly, late and not at all.
type listener struct {
	folder string

	mu    sync.Mutex
	tasks []task
}

// mustListen answers each request by the function, which may look at the folder:
// it is shared with the tasks.
func mustListen(t *testing.T, answer func(http.ResponseWriter, task)) *listener {
	t.Helper()
	l := &listener{folder: mustShare(t)}
	socket, err := net.Listen("unix", l.folder+"/socket")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(l.folder+"/socket", 0o777); err != nil { // the prolog is the user's
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var got task
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/task" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
		}
		l.mu.Lock()
		l.tasks = append(l.tasks, got)
		l.mu.Unlock()
		answer(w, got)
	})}
	go func() { _ = server.Serve(socket) }() // closed below
	t.Cleanup(func() { _ = server.Close() })
	return l
}

// taken returns the tasks so far in order of step and rank, and forgets them.
func (l *listener) taken() []task {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.SortFunc(l.tasks, func(a, b task) int {
		return strings.Compare(fmt.Sprint(a.Job.Step, a.Rank), fmt.Sprint(b.Job.Step, b.Rank))
	})
	tasks := l.tasks
	l.tasks = nil
	return tasks
}

// count returns the number of tasks since taken.
func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.tasks)
}

// wantTasks compares but for process and job ids.
func wantTasks(t *testing.T, got []task, asked task, steps ...string) {
	t.Helper()
	var want []task
	ranks := map[string]int{}
	for _, step := range steps {
		expected := asked
		expected.UID, expected.Rank = 2001, ranks[step]
		expected.Job.Kind, expected.Job.Step = "slurm", step
		ranks[step]++
		want = append(want, expected)
	}
	ignored := cmpopts.IgnoreFields(task{}, "PID", "Job.ID")
	if diff := cmp.Diff(want, got, ignored, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("tasks handed over (-want +got):\n%s", diff)
	}
	for _, g := range got {
		if g.PID <= 1 || g.Job.ID != got[0].Job.ID || g.Job.ID == "" {
			t.Errorf("pid %d in job %q", g.PID, g.Job.ID)
		}
	}
}

// objective has what shells, Slurm and JSON may stumble over.
const objective = `speed of it=output:^perf: ([0-9.]+) "ns/day"\s\\n`

// All that a task is told to do comes before its first instruction.
func TestTasksAreHandedOverBeforeExec(t *testing.T) {
	var l *listener
	l = mustListen(t, func(w http.ResponseWriter, got task) {
		if _, err := os.Stat(fmt.Sprintf("%s/began.%s.%s.%d", l.folder, got.Job.ID, got.Job.Step, got.Rank)); err == nil {
			t.Errorf("task %d has begun before it was handed over", got.Rank)
		}
		fmt.Fprintf(w, "ATTUNE_SOCKET=/for/%d\nLD_PRELOAD=\nPATH=/nowhere\n", got.Rank)
	})
	mustPlug(t, "socket="+l.folder+"/socket "+patientBudget)
	const work = ` sh -c '>` + "%s" + `/began.$SLURM_JOB_ID.$SLURM_STEP_ID.$SLURM_PROCID; echo $SLURM_PROCID $ATTUNE_SOCKET'`
	program := fmt.Sprintf(work, l.folder)

	out := strings.Split(strings.TrimSpace(mustRun(t, "srun --attune=observe --overcommit -N2 -n4"+program)), "\n")
	slices.Sort(out)
	if want := []string{"0 /for/0", "1 /for/1", "2 /for/2", "3 /for/3"}; !slices.Equal(out, want) {
		t.Errorf("tasks got %q, want %q", out, want)
	}
	wantTasks(t, l.taken(), task{Mode: "observe"}, "0", "0", "0", "0")

	mustRun(t, "srun -N2"+program)
	mustRun(t, "srun --attune=off -N2"+program)
	wantTasks(t, l.taken(), task{})

	mustRun(t, `printf '#!/bin/sh\nsrun true\nsrun --attune=advise true\n' >job; sbatch --wait --attune --attune-tunlets=malloc,mpi-progress --attune-objective='`+objective+`' -N2 job`)
	tasks := l.taken()
	if len(tasks) != 5 {
		t.Fatalf("%d tasks handed over, want the script and two for each step: %+v", len(tasks), tasks)
	}
	asked := task{Mode: "tune", Tunlets: []string{"malloc", "mpi-progress"}, Objective: objective}
	wantTasks(t, tasks[:2], asked, "0", "0")
	wantTasks(t, tasks[4:], asked, "batch")
	asked.Mode = "advise"
	wantTasks(t, tasks[2:4], asked, "1", "1")
}

// mustWritePatientCurl writes a curl into a folder that waits longer than the
// prolog tells it to: that the prolog gives up in time is another promise.
func mustWritePatientCurl(t *testing.T, folder string) {
	t.Helper()
	const script = "#!/bin/sh\nexec /usr/bin/curl \"$@\" --max-time 60\n"
	files.Write(t, folder+"/curl", script, 0o755)
}

func TestPrologHandsTasksOver(t *testing.T) {
	l := mustListen(t, func(w http.ResponseWriter, got task) {
		fmt.Fprintf(w, "ATTUNE_SOCKET=/for/%d\nPATH=/nowhere\n", got.Rank)
	})
	mustSetProlog(t, mustAbs(t, "task-prolog.sh"))
	mustWritePatientCurl(t, l.folder)
	const command = "export ATTUNED_SOCKET=%s/socket PATH=%s:$PATH; %s srun -N2 sh -c 'echo $SLURM_PROCID $$ $ATTUNE_SOCKET'"

	out := strings.Split(mustRun(t, fmt.Sprintf(command, l.folder, l.folder, "ATTUNE_MODE=advise ATTUNE_TUNLETS=malloc,mpi-progress ATTUNE_OBJECTIVE='"+objective+"'")), "\n")
	tasks := l.taken()
	wantTasks(t, tasks, task{Mode: "advise", Tunlets: []string{"malloc", "mpi-progress"}, Objective: objective}, "0", "0")
	for _, task := range tasks {
		if want := fmt.Sprintf("%d %d /for/%d", task.Rank, task.PID, task.Rank); !slices.Contains(out, want) {
			t.Errorf("%q is not in %q", want, out)
		}
	}
	mustRun(t, fmt.Sprintf(command, l.folder, l.folder, ""))
	mustRun(t, fmt.Sprintf(command, "/nowhere", l.folder, "ATTUNE_MODE=tune"))
	wantTasks(t, l.taken(), task{})
}

func TestWrongOptionsAreRefused(t *testing.T) {
	mustPlug(t, "")
	for _, option := range []string{"--attune=tun", "--attune-tunlets='a\"b'", "--attune-objective=''"} {
		out, err := run(t, "srun "+option+" echo ran")
		if err == nil || strings.Contains(out, "ran") || !strings.Contains(out, "want ") {
			t.Errorf("srun %s: %v: %s", option, err, out)
		}
	}
}

// The examples ask for no more than two nodes of any size have.
func TestExamplesCanRun(t *testing.T) {
	mustPlug(t, "")
	examples, err := filepath.Glob("examples/*.sbatch")
	if err != nil || len(examples) == 0 {
		t.Fatalf("%v, %v", examples, err)
	}
	for _, example := range examples {
		if out, err := run(t, "sbatch --test-only "+mustAbs(t, example)); err != nil {
			t.Errorf("%s: %v\n%s", example, err, out)
		}
	}
}

// Whatever the service does, the job runs; each node says so once, and asks no
// more.
func TestJobsRunWithoutTheService(t *testing.T) {
	done := make(chan struct{})
	for name, tt := range map[string]struct {
		answer       func(http.ResponseWriter, task)
		budget, says string
	}{
		"refuses": {func(w http.ResponseWriter, _ task) {
			http.Error(w, "the policy of this node denies it", http.StatusForbidden)
		}, patientBudget, "attuned refuses: the policy of this node denies it"},
		// Long enough for the request to be sent, however crowded the machine is.
		"says nothing": {func(http.ResponseWriter, task) { <-done }, "budget=5000", "Connection timed out"},
		"says too much": {func(w http.ResponseWriter, _ task) {
			fmt.Fprint(w, strings.Repeat("ATTUNE=1\n", 10_000))
		}, patientBudget, "Message too long"},
		"breaks off": {func(http.ResponseWriter, task) {
			panic(http.ErrAbortHandler)
		}, patientBudget, "what it answers is not HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			l := mustListen(t, tt.answer)
			mustPlug(t, "socket="+l.folder+"/socket "+tt.budget)
			out := mustRun(t, "srun --attune --overcommit -N2 -n8 echo ran")
			if strings.Count(out, "ran\n") != 8 || strings.Count(out, tt.says) != 2 {
				t.Errorf("srun wrote, want %q of two nodes and 8 tasks:\n%s", tt.says, out)
			}
			// A request whose sender has given up may still be under way.
			patience.Until(t, "a request of each node", func() bool { return l.count() >= 2 })
			if n := l.count(); n != 2 {
				t.Errorf("%d requests, want one of each node", n)
			}
		})
	}
	close(done)
	t.Run("is not there", func(t *testing.T) {
		mustPlug(t, "default=observe")
		if out := mustRun(t, "srun --attune echo ran"); strings.Count(out, "ran\n") != 1 || !strings.Contains(out, "attuned.sock: No such file") {
			t.Errorf("srun wrote:\n%s", out)
		}
		names := strings.Repeat("a,", 127) + "a"
		if out := mustRun(t, "srun --attune --attune-tunlets="+names+" echo ran"); strings.Count(out, "ran\n") != 1 || !strings.Contains(out, "are too long") {
			t.Errorf("srun with too many tunlets wrote:\n%s", out)
		}
		if out := mustRun(t, "srun echo ran"); out != "ran\n" { // nobody has asked for it
			t.Errorf("srun wrote:\n%s", out)
		}
	})
}
