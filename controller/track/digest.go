// SPDX-License-Identifier: Apache-2.0

package track

import (
	"context"
	"log/slog"

	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/readers"
)

// digestQueue bounds executables that wait to be hashed.
const digestQueue = 1024

// digestRequest asks for the SHA-256 of the executable of an image.
type digestRequest struct {
	handle        uint64
	pid           int
	uid           uint32
	path          string
	device, inode uint64
}

// digestResult answers a digestRequest.
type digestResult struct {
	handle uint64
	sum    string
	err    error // why there is none
}

// hasher computes the SHA-256 of executables, beside everything else. request and
// known are called by the goroutine that has the members, which receives from results.
type hasher struct {
	readers  *readers.Pool
	digests  *objfile.Digests
	log      *slog.Logger
	requests chan digestRequest
	results  chan digestResult
}

func newHasher(by *readers.Pool, digests *objfile.Digests, log *slog.Logger) *hasher {
	return &hasher{readers: by, digests: digests, log: log, requests: make(chan digestRequest, digestQueue), results: make(chan digestResult)}
}

// known returns the digest of what a process executes if it is remembered.
func (h *hasher) known(pid int) (sum string, ok bool) {
	return h.digests.Known(procid.Path(pid, "exe"))
}

// request asks for the digest of an image unless it is known or asked for. If too
// many are waiting, the next refresh asks again.
func (h *hasher) request(m *member) {
	if m.message.ExecutableSha256 != "" || m.digesting {
		return
	}
	identity := m.message.GetIdentity()
	select {
	case h.requests <- digestRequest{
		m.message.GetHandle(), m.pid, m.message.Uid, m.message.Executable, identity.GetExeDevice(), identity.GetExeInode(),
	}:
		m.digesting = true
	default:
	}
}

// run hashes executables until ctx ends. It runs in a goroutine of its own
// and shares nothing with the members but the two channels.
func (h *hasher) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case request := <-h.requests:
			result := h.hash(ctx, request)
			if result.err != nil {
				h.log.Debug("executable without digest", "path", request.path, "error", result.err)
			}
			select {
			case h.results <- result:
			case <-ctx.Done():
			}
		}
	}
}

// hash reads the executable through the process or, if that has ended, by its
// path. Either must be the file that the image was described with: the process
// may have exec'd, the file may have been replaced.
func (h *hasher) hash(ctx context.Context, request digestRequest) digestResult {
	sum, err := Digest(ctx, h.readers, h.digests, request.uid, File{
		PID: request.pid, Path: []byte(request.path), Device: request.device, Inode: request.inode,
	})
	return digestResult{request.handle, sum, err}
}
