// SPDX-License-Identifier: Apache-2.0

//go:build site

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/attune-hpc/attune/analyzer/report"
	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/testing/cluster"
	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/internal/testing/patience"
	"github.com/attune-hpc/attune/internal/testing/targets"
)

// accountSetup has Slurm account for jobs as well, by a look every second and what it waits
// for.
const accountSetup = `
mkdir -p /etc/slurm
cat >/etc/slurm/more.conf <<'CONF'
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=login
CONF
`

const (
	accountedTasks = 4

	// saidBySlurm has what Slurm says of the tasks, when it does: seconds of CPU time, and the
	// most that a task was seen to have of memory, read and written.
	saidBySlurm = `until sacct --noheader --parsable2 --format=State,TotalCPU,MaxRSS,MaxDiskRead,MaxDiskWrite -j $SLURM_JOB_ID.0 >beside &&
	grep -q ^COMPLETED beside; do sleep 0.1; done`

	// accountedJob has each task account for itself, in one archive. What Slurm knows of them
	// is asked when all is done that they do, and none has ended.
	accountedJob = `cd "$0"
attune=%[1]s/bin/attune
$attune account --quiet --json base -- ../counts /dev/null -2 ../counts # no processes
srun --overcommit -N2 -n%[2]d sh -c '"$1" account --quiet --archive-at "$PWD/archive.db" -- ../counts truth.$SLURM_PROCID $SLURM_PROCID go && times >times.$SLURM_PROCID' sh $attune &
until [ "$(ls | grep -c '^truth')" = %[2]d ]; do sleep 0.1; done
sleep 2 # Slurm looks every second
sstat --allsteps --parsable2 --format=JobID,NTasks,AveCPU,MaxDiskRead,MaxDiskWrite -j $SLURM_JOB_ID >running
touch go
wait $!
` + saidBySlurm + `
$attune archive query --archive-at "$PWD/archive.db" --job $SLURM_JOB_ID --json --field cpu_seconds,io.read_bytes,io.written_bytes,processes.total`

	// observedJob has the service account for them.
	observedJob = `cd "$0"
attune=%[1]s/bin/attune
echo '0-%[3]d ../counts truth.%%t %%t go' >tasks
srun --attune=observe --overcommit -N2 -n%[2]d --multi-prog tasks &
until [ "$(ls | grep -c '^truth')" = %[2]d ]; do sleep 0.1; done
touch go
wait $!
` + saidBySlurm + `
until $attune session show $SLURM_JOB_ID --json >report 2>said && grep -q '"finished": *true' report; do sleep 0.2; done
cat report`
)

// What a job on two nodes took is the sum of what its tasks know of themselves: to the byte and
// the process, and CPU time but for the ends of the tasks, after they have looked.
func TestAccountOfAJob(t *testing.T) {
	run(t, "make", "-s", "-C", "../../..", "build", "slurm")
	folder := mustShare(t)
	run(t, "cp", targets.Build(t, "testdata/counts.c", "-static", "-O2"), filepath.Join(folder, "counts"))
	c := mustSite(t, folder, accountSetup)
	within := func(name string) string {
		own := filepath.Join(folder, name)
		if err := errors.Join(os.Mkdir(own, 0o777), os.Chmod(own, 0o777)); err != nil { //nolint:gosec // of a user of the cluster
			t.Fatal(err)
		}
		return own
	}
	allocated := func(t *testing.T, user, script, own string) string {
		t.Helper()
		return mustRunOn(t, c, user, "salloc", "--quiet", "-N2", fmt.Sprintf("-n%d", accountedTasks), "--overcommit", "bash", "-e", "-c", script, own)
	}
	t.Run("service", func(t *testing.T) {
		tries := 0
		patience.Until(t, "all tasks to be handed over in the plugin's quarter of a second", func() bool {
			tries++
			own := within(fmt.Sprintf("service%d", tries))
			out := allocated(t, cluster.Alice, fmt.Sprintf(observedJob, mustAbs(t, "../../.."), accountedTasks, accountedTasks-1), own)
			checkSlurm(t, own, 1.02*truthOf(t, own)["cpu_seconds"])
			return checkSession(t, out, truthOf(t, own))
		})
	})
	for name, user := range map[string]string{"root": "", "user": cluster.Alice} {
		t.Run(name, func(t *testing.T) {
			own := within(name)
			script := fmt.Sprintf(accountedJob, mustAbs(t, "../../.."), accountedTasks)
			out := allocated(t, user, script, own)
			t.Logf("while they ran, Slurm said:\n%s", string(files.Read(t, filepath.Join(own, "running"))))
			checkSlurm(t, own, 0.1*accountedTasks+tookOf(t, own)) // nothing twice
			checkAccount(t, own, out, user == "")
		})
	}
	t.Run("import", func(t *testing.T) {
		const script = `sacct --allusers --parsable2 --format=ALL | "$0"/bin/attune archive import --archive-at "$1/archive.db" - &&
			"$0"/bin/attune archive list --archive-at "$1/archive.db"`
		out := mustRunOn(t, c, "", "sh", "-c", script, mustAbs(t, "../../.."), within("import"))
		t.Log(out)
		if !strings.Contains(out, "added: ") || strings.Contains(out, "added: 0") {
			t.Errorf("the archive takes from Slurm: %s", out)
		}
	})
}

// checkAccount compares the account of a job with the truth of its tasks.
func checkAccount(t *testing.T, folder, query string, root bool) {
	t.Helper()
	var took []struct {
		Field string
		Tasks int
		Sum   *float64
	}
	if err := json.Unmarshal([]byte(query), &took); err != nil {
		t.Fatalf("%v: %s", err, query)
	}
	var base account.Account
	if err := json.Unmarshal(files.Read(t, filepath.Join(folder, "base")), &base); err != nil || base.IO.Read == nil {
		t.Fatalf("what the kernel reads to execute the program: %+v, %v", base.Missing, err)
	}
	truth := truthOf(t, folder)
	truth["io.read_bytes"] += accountedTasks * float64(*base.IO.Read)
	if len(took) != len(truth) {
		t.Errorf("%d fields, want %d: %s", len(took), len(truth), query)
	}
	for _, d := range took {
		near := 0.0
		switch {
		case d.Field == "cpu_seconds":
			near = max(0.005*accountedTasks, 0.001*truth[d.Field])
		case d.Field == "processes.total" && !root && d.Tasks == 0:
			continue // the process connector is of the machine's first namespaces
		}
		if d.Tasks != accountedTasks || d.Sum == nil || math.Abs(*d.Sum-truth[d.Field]) > near {
			t.Errorf("%s: the account of the job has %s, its tasks %g", d.Field, query, truth[d.Field])
		}
	}
}

// checkSlurm compares the CPU time of which Slurm knows from waiting with the truth of the
// tasks in a folder, and with the most that it may be.
func checkSlurm(t *testing.T, folder string, most float64) {
	t.Helper()
	said := strings.Split(strings.TrimSpace(string(files.Read(t, filepath.Join(folder, "beside")))), "|")
	minutes, seconds, _ := strings.Cut(said[1], ":")
	cpu, err := time.ParseDuration(minutes + "m" + seconds + "s")
	truth := truthOf(t, folder)["cpu_seconds"]
	t.Logf("sacct says %q, the tasks took %g s of CPU time", said, truth)
	if is := cpu.Seconds(); err != nil || is < truth-0.001*accountedTasks || is > most {
		t.Errorf("sacct says %q, the tasks took %g s of CPU time, want %g at most: %v", said, truth, most, err)
	}
}

// tookOf is the CPU time of the tasks in a folder together with what accounted for them, by
// their shells' times.
func tookOf(t *testing.T, folder string) (seconds float64) {
	t.Helper()
	for task := range accountedTasks {
		for _, field := range strings.Fields(string(files.Read(t, fmt.Sprintf("%s/times.%d", folder, task)))) {
			took, err := time.ParseDuration(field)
			if err != nil {
				t.Fatal(err)
			}
			seconds += took.Seconds()
		}
	}
	return seconds
}

// truthOf is what the tasks in a folder know of themselves, together.
func truthOf(t *testing.T, folder string) map[string]float64 {
	t.Helper()
	truth := map[string]float64{}
	for task := range accountedTasks {
		var processes, read, written, micros float64
		line := string(files.Read(t, fmt.Sprintf("%s/truth.%d", folder, task)))
		if _, err := fmt.Sscan(strings.TrimSpace(line), &processes, &read, &written, &micros); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		truth["processes.total"] += processes
		truth["io.read_bytes"] += read
		truth["io.written_bytes"] += written
		truth["cpu_seconds"] += micros / 1e6
	}
	return truth
}

// checkSession compares the account of a job's session with the truth of its tasks. What
// slurmstepd does in a task's process before it executes the task is in the former. It
// says whether the account is exact; else it must be a bound.
func checkSession(t *testing.T, shown string, truth map[string]float64) (exact bool) {
	t.Helper()
	var r report.Report
	if err := json.Unmarshal([]byte(shown), &r); err != nil || r.Account == nil || r.Account.IO.Read == nil {
		t.Fatalf("%v: %s", err, shown)
	}
	a := r.Account
	const before = 65536 // bytes of a task
	exact = a.Accuracy["cpu_seconds"] == account.Exact
	for name, got := range map[string]struct{ is, more float64 }{
		"cpu_seconds":      {*a.CPUSeconds, max(0.02*accountedTasks, 0.001*truth["cpu_seconds"])},
		"io.read_bytes":    {float64(*a.IO.Read), accountedTasks * before},
		"io.written_bytes": {float64(*a.IO.Written), accountedTasks * before},
		"processes.total":  {float64(*a.Processes.Total), 0},
	} {
		off := got.is - truth[name]
		if exact && off < -0.001 || off > got.more || (a.Accuracy[name] == account.Exact) != exact {
			t.Errorf("%s: the session's account has %g (%s, %s), its tasks %g", name, got.is, a.Accuracy[name], a.Missing[name], truth[name])
		}
	}
	return exact
}
