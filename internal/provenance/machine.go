// SPDX-License-Identifier: Apache-2.0

package provenance

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
	"github.com/attune-hpc/attune/internal/cpulist"
)

// Machine describes this machine. What cannot be had is absent.
func Machine() account.Machine {
	m := account.Machine{PageBytes: os.Getpagesize(), CPU: value("/proc/cpuinfo", "model name", ":"), System: value("/etc/os-release", "PRETTY_NAME", "=")}
	var names unix.Utsname
	if unix.Uname(&names) == nil {
		m.Architecture = unix.ByteSliceToString(names.Machine[:])
	}
	if cpus, err := cpulist.Online(); err == nil {
		m.CPUs = len(cpus)
	}
	return m
}

// value is the first value of a name in a file of lines; empty if there is none.
func value(path, name, separator string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, separator); found && strings.TrimSpace(key) == name {
			return strings.Trim(strings.TrimSpace(value), `"`)
		}
	}
	return ""
}

// currentUser is whoever runs this process, and so the command.
func currentUser() account.User {
	u := account.User{ID: os.Getuid(), Group: os.Getgid(), Umask: value("/proc/self/status", "Umask", ":")}
	if found, err := user.LookupId(strconv.Itoa(u.ID)); err == nil {
		u.Name = found.Username
	}
	return u
}

// jobVariables hold the ids of jobs and their parts.
var jobVariables = []string{
	"SLURM_JOB_ID", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_CLUSTER_NAME",
	"PBS_JOBID", "PBS_ARRAY_INDEX", "JOB_ID", "SGE_TASK_ID", "LSB_JOBID", "LSB_JOBINDEX", "COBALT_JOBID",
	"GLOBUS_GRAM_JOB_HANDLE", "CONDOR_JOBID", "_CONDOR_SLOT", "FLUX_JOB_ID", "OAR_JOB_ID",
	"PEGASUS_DAG_JOB_ID", "NXF_TASK_HASH", "CCTOOLS_CATEGORY",
}

// jobs are those in an environment, and the id that HTCondor has in the job's own description.
func jobs(environment []string) map[string]string {
	found := make(map[string]string)
	for _, entry := range environment {
		name, id, _ := strings.Cut(entry, "=")
		for _, variable := range jobVariables {
			if name == variable && id != "" {
				found[name] = strings.ToValidUTF8(id, "\uFFFD")
			}
		}
		if name == "_CONDOR_JOB_AD" {
			cluster, process := value(filepath.Clean(id), "ClusterId", "="), value(filepath.Clean(id), "ProcId", "=")
			if cluster != "" {
				found["CONDOR_JOBID"] = cluster + "." + process
			}
		}
	}
	return found
}
