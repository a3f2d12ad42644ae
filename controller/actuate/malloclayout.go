// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/objfile"
)

// MallocLayout gives the offsets of glibc's malloc parameters from the load
// bias of libc.
type MallocLayout struct {
	TrimThreshold  uint64 `json:"trim_threshold"`
	TopPad         uint64 `json:"top_pad"`
	MmapThreshold  uint64 `json:"mmap_threshold"`
	NoDynThreshold uint64 `json:"no_dyn_threshold"`
	// Inode of the libc that this holds for.
	Inode uint64 `json:"inode"`
}

// ErrOtherLibc means that a process uses another libc than the node's own, so
// that what was found in the latter does not hold for it.
var ErrOtherLibc = errors.New("the process has another libc than this node")

// MallocProbe finds the layout by running a helper that changes its own malloc
// parameters and looks which words of libc follow (differential probing). It
// runs the helper once and remembers the answer. Safe for concurrent use.
type MallocProbe struct {
	// Helper is the helper's ELF file (dmlib.MallocProbe).
	Helper []byte

	mu     sync.Mutex // guards layout
	layout *MallocLayout
}

// probeTimeout bounds the helper, which needs about a millisecond.
const probeTimeout = 2 * time.Second

// Layout returns the layout for the given libc.
func (m *MallocProbe) Layout(ctx context.Context, libc objfile.Image) (MallocLayout, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.layout == nil {
		layout, err := m.run(ctx)
		if err != nil {
			return MallocLayout{}, fmt.Errorf("probe malloc parameters: %w", err)
		}
		m.layout = &layout
	}
	if m.layout.Inode != libc.Inode {
		return MallocLayout{}, ErrOtherLibc
	}
	return *m.layout, nil
}

func (m *MallocProbe) run(ctx context.Context) (layout MallocLayout, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	fd, err := unix.MemfdCreate("attune-probe", unix.MFD_CLOEXEC)
	if err != nil {
		return layout, fmt.Errorf("create memory file: %w", err)
	}
	file := os.NewFile(uintptr(fd), "attune-probe")
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(m.Helper); err != nil {
		return layout, fmt.Errorf("write memory file: %w", err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, fmt.Sprintf("/proc/self/fd/%d", fd))
	cmd.Env = []string{} // no preload, no tunables
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return layout, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	if err := json.Unmarshal(stdout.Bytes(), &layout); err != nil {
		return layout, fmt.Errorf("decode answer: %w", err)
	}
	return layout, nil
}
