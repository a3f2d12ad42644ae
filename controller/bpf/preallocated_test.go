// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// TestPreallocate: before Linux 6.1 hash tables are allocated whole; a trie cannot be.
func TestPreallocate(t *testing.T) {
	for kernel, want := range map[uint32]uint32{5<<16 | 15<<8 | 255: 0, 6<<16 | 1<<8: unix.BPF_F_NO_PREALLOC} {
		spec := &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{
			"hash": {Type: ebpf.Hash, Flags: unix.BPF_F_NO_PREALLOC}, "trie": {Type: ebpf.LPMTrie, Flags: unix.BPF_F_NO_PREALLOC},
		}}
		Preallocate(spec, kernel)
		if got := spec.Maps["hash"].Flags; got != want {
			t.Errorf("Linux %#x: flags of a hash table %#x, want %#x", kernel, got, want)
		}
		if spec.Maps["trie"].Flags != unix.BPF_F_NO_PREALLOC {
			t.Errorf("Linux %#x: flags of a trie %#x", kernel, spec.Maps["trie"].Flags)
		}
	}
}
