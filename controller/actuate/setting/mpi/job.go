// SPDX-License-Identifier: Apache-2.0

package mpi

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/internal/procid"
)

// rankVariables are by what launchers tell a process its rank.
var rankVariables = []string{"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}

// rankOf returns what the environment of a process says of its rank; false if it
// says nothing. The job is that of PMIx where it has a name.
func rankOf(pid int) (rank int, job string, ok bool) {
	environment, err := procid.Environ(pid)
	if err != nil {
		return 0, "", false
	}
	variables := make(map[string]string)
	for _, entry := range environment {
		name, value, _ := bytes.Cut(entry, []byte("="))
		variables[string(name)] = string(value)
	}
	for _, name := range rankVariables {
		if rank, err := strconv.Atoi(variables[name]); err == nil {
			return rank, variables["PMIX_NAMESPACE"], true
		}
	}
	return 0, "", false
}

// jobOf names the job of a rank: by its name, or by the process that has started it
// and is no rank itself, as a script would be in between. "" for no rank.
func jobOf(pid int) string {
	_, job, ok := rankOf(pid)
	if !ok || job != "" {
		return job
	}
	for ancestor := range procid.Ancestors(pid) {
		if _, _, ok := rankOf(ancestor); !ok {
			return "started by " + strconv.Itoa(ancestor)
		}
	}
	return ""
}

// jobRanks returns the processes of a job on this node that have an MPI library with
// control variables, in the order of their ranks.
func jobRanks(job string) []int {
	return ranksThat(func(pid int) bool { return jobOf(pid) == job })
}

// RanksBelow returns the ranks of MPI jobs on this node that descend from a process,
// their launcher, in the order of their ranks. None for a rank itself.
func RanksBelow(launcher int) []int {
	if _, _, ok := rankOf(launcher); ok {
		return nil
	}
	return ranksThat(func(pid int) bool {
		for ancestor := range procid.Ancestors(pid) {
			if ancestor == launcher {
				return true
			}
		}
		return false
	})
}

func ranksThat(belong func(pid int) bool) []int {
	all, err := procid.List()
	if err != nil {
		return nil
	}
	rank := make(map[int]int)
	pids := slices.DeleteFunc(all, func(pid int) bool {
		number, _, ok := rankOf(pid)
		rank[pid] = number
		identity, err := procid.Of(pid)
		if !ok || err != nil || !belong(pid) {
			return true
		}
		process := access.ProcessOf(identity)
		defer process.Close()
		_, err = access.LookupSingle(process, mpiHas)
		return err != nil
	})
	slices.SortStableFunc(pids, func(x, y int) int { return rank[x] - rank[y] })
	return pids
}

// mpiPrefix begins the names of MPI's control variables.
const mpiPrefix = "mpi_t."

// IsVariable says whether a setting is an MPI control variable.
func IsVariable(name string) bool { return strings.HasPrefix(name, mpiPrefix) }
