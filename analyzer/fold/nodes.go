// SPDX-License-Identifier: Apache-2.0

package fold

import (
	"maps"
	"slices"

	"github.com/attune-hpc/attune/internal/account"
)

// takenNodes says what the session could have on all of its nodes together and, where these
// are several, what each was and gave. What is not known of one is not known of all.
func (s *signals) takenNodes(out *account.Account) {
	if len(s.nodes) == 0 { // nobody has told of the processes
		return
	}
	cores, memory := new(float64), new(uint64)
	for _, host := range slices.Sorted(maps.Keys(s.nodes)) {
		n := s.nodes[host]
		node := account.Node{Name: host}
		if n.peak > 0 { // there were samples
			node.CPU, node.Resident = new(n.run.Seconds()), new(n.peak)
		}
		cores, node.Cores = plus(cores, n.available.GetCores())
		memory, node.Memory = plus(memory, n.available.GetMemoryBytes())
		out.Nodes = append(out.Nodes, node)
		if v := n.available; v != nil {
			// A session may be one step of the job, and there may be others.
			out.Available.System, out.Available.Job, out.Available.Part = v.GetBatchSystem(), v.GetJob(), v.GetBatchSystem() != ""
			out.Sources["available.cores"], out.Sources["available.memory_bytes"] = v.GetCoresSource(), v.GetMemorySource()
			if v.GetWallSeconds() > 0 {
				out.Available.WallSeconds, out.Sources["available.wall_seconds"] = new(v.GetWallSeconds()), "asked of "+v.GetBatchSystem()
			}
		}
	}
	out.Available.Cores, out.Available.Memory = cores, memory
	for name, known := range map[string]bool{"cores": cores != nil, "memory_bytes": memory != nil, "wall_seconds": out.Available.WallSeconds != nil} {
		if known {
			out.Accuracy["available."+name] = account.Exact
		} else {
			delete(out.Sources, "available."+name)
		}
	}
	if len(out.Nodes) == 1 { // the account is that of the node
		out.Host.Name, out.Nodes = out.Nodes[0].Name, nil
	}
}

// plus adds the number of one more node, 0 if it is not known, to a sum; nil: it is not known.
func plus[N uint64 | float64](sum *N, one N) (more, known *N) {
	switch {
	case one == 0:
		return nil, nil
	case sum == nil:
		return nil, &one
	}
	return new(*sum + one), &one
}
