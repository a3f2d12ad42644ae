// SPDX-License-Identifier: Apache-2.0

package uprobe

import (
	"errors"
	"log/slog"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"

	"github.com/attune-hpc/attune/controller/bpf"
)

// Options tunes Uprobes; the zero value is good.
type Options struct {
	// RingBytes is the size of the record buffer, a power of two and a
	// multiple of the page size; 0: 2 MiB, which hold 52,428 records: 50 ms
	// of a million a second, and the reader comes every millisecond.
	RingBytes uint32
	// MaxWatches bounds the pairs of process and point that are watched at
	// one time; 0: 1,024. Each takes 650 bytes.
	MaxWatches uint32
	// MaxCalls is the size of the table of calls under way at points with entry
	// and exit. Where it is full the oldest are forgotten, and count as lost. Each
	// takes 144 bytes, and each CPU keeps up to 128 free places for itself; 0: 8,192,
	// and 128 for each CPU that is online, but no more than 40,960.
	MaxCalls uint32
	// CloseTimeout bounds how long Close waits for the kernel to detach; 0:
	// one second.
	CloseTimeout time.Duration

	// Log says what happens to probes by themselves; may be nil.
	Log *slog.Logger

	// singly attaches with one perf event per function, as kernels before
	// 6.6 need it, so that a test can try that way on newer ones.
	singly bool
}

// uprobes is what errors call the mechanism.
const uprobes = "uprobes"

// whyNotMulti says why each function needs a probe of its own; "" if not.
func (o Options) whyNotMulti() (string, error) {
	if o.singly {
		return "not wanted", nil
	}
	err := features.HaveBPFLinkUprobeMulti()
	switch {
	case err == nil:
		return "", nil
	case errors.Is(err, ebpf.ErrNotSupported):
		return "not in this kernel (6.6 or newer)", nil
	}
	return "", bpf.Explain(uprobes, err)
}
