// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/proto/attune/series"
)

// nodesEvery is the shortest time between two looks at where memory lies: pages move
// seldom, and the kernel goes through the page tables of every mapping.
const nodesEvery = 5 * time.Second

// readNodes reads on which nodes the memory of a process lies, if that is due.
func (r *Reader) readNodes(p *process, _ int, to *series.Details) (used int) {
	pid := p.held.Identity().PID
	p.nodes.read(r.now, nodesEvery, func() {
		rows, err := nodesOf(pid)
		switch {
		case errors.Is(err, procid.ErrGone):
		case err != nil:
			to.Refuse(series.TableMemoryNodes, mappingsError(err))
		default:
			to.MemoryNodes, used = rows, 1
		}
	})
	return used
}

func nodesOf(pid int) (*series.Rows[series.MemoryNode], error) {
	path := fmt.Sprintf("/proc/%d/numa_maps", pid)
	data, err := os.ReadFile(path)
	if err != nil {
		if _, err := os.Stat("/proc/self/numa_maps"); errors.Is(err, os.ErrNotExist) {
			return nil, errors.New("this kernel does not know nodes of memory: it was built without CONFIG_NUMA")
		}
		return nil, procid.GoneError(err)
	}
	rows, err := parseNodes(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rows, nil
}

// errNodes says that a numa_maps file does not look as the kernel writes it.
var errNodes = errors.New("malformed numa_maps file")

// placed is what is known of one node.
type placed struct {
	bytes, bound uint64
	policies     map[string]uint64 // bytes by the policy of their mappings
}

// parseNodes sums up a numa_maps file; see numa(7). A line is of one mapping:
// address, policy, and fields of which N0=3 says that three of its pages are on node
// 0, and kernelpagesize_kB=4 how large they are.
func parseNodes(data []byte) (*series.Rows[series.MemoryNode], error) {
	nodes := map[int]*placed{}
	var total uint64
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 {
			return nil, fmt.Errorf("%w: %q", errNodes, line)
		}
		pages, size, err := placedPages(fields[2:])
		if err != nil {
			return nil, fmt.Errorf("%w: %q", err, line)
		}
		for node, count := range pages {
			n := nodes[node]
			if n == nil {
				n = &placed{policies: map[string]uint64{}}
				nodes[node] = n
			}
			n.add(fields[1], count*size)
			total += count * size
		}
	}
	out := &series.Rows[series.MemoryNode]{Total: len(nodes)}
	for _, number := range slices.Sorted(maps.Keys(nodes)) {
		out.Items = append(out.Items, nodes[number].row(number, total))
	}
	return out, nil
}

// placedPages reads how many pages of a mapping are on which node, and the size of one.
func placedPages(fields []string) (pages map[int]uint64, size uint64, err error) {
	pages, size = map[int]uint64{}, uint64(os.Getpagesize())
	for _, f := range fields {
		name, value, _ := strings.Cut(f, "=")
		switch {
		case name == "kernelpagesize_kB":
			if size, err = strconv.ParseUint(value, 10, 32); err != nil {
				return nil, 0, errNodes
			}
			size *= 1024
		case len(name) > 1 && name[0] == 'N':
			node, err := strconv.ParseUint(name[1:], 10, 16)
			if err != nil {
				continue // no node: a field of a later kernel
			}
			if pages[int(node)], err = strconv.ParseUint(value, 10, 40); err != nil {
				return nil, 0, errNodes
			}
		}
	}
	return pages, size, nil
}

func (n *placed) add(policy string, bytes uint64) {
	n.bytes += bytes
	n.policies[policy] += bytes
	if policy != "default" {
		n.bound += bytes
	}
}

// row is the node with its part of the whole, and the policy that most of it has.
func (n *placed) row(number int, total uint64) series.MemoryNode {
	policies := slices.SortedFunc(maps.Keys(n.policies), func(a, b string) int {
		return cmp.Or(cmp.Compare(n.policies[b], n.policies[a]), cmp.Compare(a, b))
	})
	return series.MemoryNode{
		Node: number, ResidentBytes: n.bytes, Share: float64(n.bytes) / float64(max(total, 1)), BoundBytes: n.bound, Policy: policies[0],
	}
}
