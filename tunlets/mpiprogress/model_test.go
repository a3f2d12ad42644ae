// SPDX-License-Identifier: Apache-2.0

package mpiprogress

import (
	"math"
	"path"
	"testing"
)

func TestCommunicationFunctions(t *testing.T) {
	for _, tt := range []struct {
		kind  string
		want  int
		names []string
	}{
		{"counted once", 1, []string{
			"MPI_Send", "MPI_Bsend", "MPI_Ssend", "MPI_Rsend", "MPI_Isend", "MPI_Issend", "MPI_Ibsend", "MPI_Irsend",
			"MPI_Sendrecv", "MPI_Sendrecv_replace", "MPI_Recv", "MPI_Irecv", "MPI_Mrecv", "MPI_Probe", "MPI_Mprobe",
			"MPI_Start", "MPI_Startall", "MPI_Wait", "MPI_Waitall", "MPI_Waitany", "MPI_Waitsome",
			"MPI_Barrier", "MPI_Ibarrier", "MPI_Bcast", "MPI_Ibcast", "MPI_Gather", "MPI_Gatherv", "MPI_Allgather",
			"MPI_Allgatherv", "MPI_Iallgather", "MPI_Scatter", "MPI_Scatterv", "MPI_Alltoall", "MPI_Alltoallv",
			"MPI_Alltoallw", "MPI_Ialltoall", "MPI_Reduce", "MPI_Allreduce", "MPI_Iallreduce", "MPI_Reduce_scatter",
			"MPI_Reduce_scatter_block", "MPI_Scan", "MPI_Exscan", "MPI_Neighbor_allgather", "MPI_Neighbor_alltoallv",
			"MPI_Win_fence", "MPI_Win_lock", "MPI_Win_unlock", "MPI_Win_flush", "PMPI_Allreduce", "PMPI_Send",
		}},
		{"not counted", 0, []string{
			"MPI_Init", "MPI_Init_thread", "MPI_Finalize", "MPI_Wtime", "MPI_Wtick", "MPI_Test", "MPI_Testall",
			"MPI_Testany", "MPI_Testsome", "MPI_Test_cancelled", "MPI_Iprobe", "MPI_Improbe", "MPI_Comm_rank",
			"MPI_Comm_size", "MPI_Comm_split", "MPI_Get_count", "MPI_Type_commit", "MPI_Initialized", "MPI_Abort",
			"MPI_Alloc_mem", "MPI_Request_free", "MPI_Cart_rank", "MPI_Error_string", "mpi_send_", "ompi_comm_size",
		}},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			for _, name := range tt.names {
				n := 0
				for _, pattern := range communication() {
					matched, err := path.Match(pattern, name)
					if err != nil {
						t.Fatalf("%s: %v", pattern, err)
					}
					if matched {
						n++
					}
				}
				if n != tt.want {
					t.Errorf("%s is counted %d times, want %d", name, n, tt.want)
				}
			}
		})
	}
}

// spinning is a rank that shares CPUs with others and never sleeps.
func spinning(run, cpus float64) rankLoad {
	return rankLoad{run: run, wait: 1 - run, voluntary: 2, involuntary: run * 250, cpus: cpus}
}

func crowdOf(loads ...rankLoad) (c crowd) {
	for _, l := range loads {
		c.add(l)
	}
	return c
}

func TestCrowd(t *testing.T) {
	many := func(n int, l rankLoad) (out []rankLoad) {
		for range n {
			out = append(out, l)
		}
		return out
	}
	sleeping := rankLoad{run: 0.3, wait: 0.1, voluntary: 5000, cpus: 2}
	yielding := rankLoad{run: 0.5, wait: 0.5, involuntary: 40_000, cpus: 2}
	for _, tt := range []struct {
		name    string
		loads   []rankLoad
		crowded bool
		spins   bool
		ratio   float64
	}{
		{"nobody", nil, false, false, 1},
		{"four on two", many(4, spinning(0.5, 2)), true, true, 2},
		{"five on four", many(5, spinning(0.8, 4)), true, true, 1.25},
		{"two on two", many(2, spinning(1, 2)), false, true, 1},
		{"two on two beside another program", many(2, spinning(0.5, 2)), false, true, 2},
		{"four on one CPU each", many(4, spinning(1, 1)), false, true, 1},
		{"four on the same CPU", many(4, spinning(0.25, 1)), true, true, 4},
		{"three on each of four pairs", many(12, spinning(2./3, 2)), true, true, 1.5},
		{"four that sleep", many(4, sleeping), false, false, 1},
		{"four that yield", many(4, yielding), true, false, 2},
		{"two busy, two asleep", append(many(2, spinning(1, 2)), many(2, sleeping)...), false, true, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := crowdOf(tt.loads...)
			if c.crowded() != tt.crowded || c.spins() != tt.spins || math.Abs(c.ratio()-tt.ratio) > 1e-9 {
				t.Errorf("crowded %v, spins %v, ratio %v, want %v, %v, %v",
					c.crowded(), c.spins(), c.ratio(), tt.crowded, tt.spins, tt.ratio)
			}
		})
	}
}

// TestModel compares with what was measured: Open MPI, 4 ranks on 2 CPUs.
func TestModel(t *testing.T) {
	c := crowdOf(spinning(0.5, 2), spinning(0.5, 2), spinning(0.5, 2), spinning(0.5, 2))
	if s := c.slice(); s < 0.0035 || s > 0.0045 {
		t.Errorf("slice %v s, want about 4 ms at HZ=250", s)
	}
	for _, tt := range []struct {
		name  string
		calls float64 // per second and rank
		least float64
		most  float64
	}{
		{"no calls", 0, 0, 0},
		{"one call per second costs a slice", 1, 0.0035, 0.0045},
		{"100 calls per second", 100, 0.35, 0.45},
		{"saturated", 1e6, maxBlocked, maxBlocked},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if b := c.blocked(tt.calls); b < tt.least || b > tt.most {
				t.Errorf("blocked %v, want %v to %v", b, tt.least, tt.most)
			}
		})
	}
	if g := gain(0.5); g != 2 {
		t.Errorf("gain %v for half of the time, want 2", g)
	}
	if b := (crowd{}).blocked(100); b != 0 {
		t.Errorf("blocked %v without ranks", b)
	}
}
