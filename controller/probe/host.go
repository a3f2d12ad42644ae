// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/controller/probe/symbols"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Process is what placing needs of a process.
type Process interface {
	// Handle of the process.
	Handle() uint64
	// PID in the controller's pid namespace.
	PID() int
	// Identity tells the process from others that are given its pid later.
	Identity() procid.Identity
	// Started is when its image was seen first.
	Started() time.Time
	// Alive says whether it still runs the same image, as far as is known.
	Alive() bool
	proc.Holder
	// Memory is what DMLib shares with the controller; nil without DMLib.
	Memory() *shm.Memory
	// WithoutDMLib is why DMLib is not in the process; "" where that is not known.
	WithoutDMLib() string
	// Images returns the objects mapped at present.
	Images() ([]objfile.Image, error)
	// Sites owns the patches in the process.
	Sites() *sites.Sites
}

// latecomer is a Process into which DMLib may be brought. Until it is known
// whether it comes, points that only DMLib can serve are neither placed nor
// refused.
type latecomer interface {
	// Expected says whether DMLib may yet come. When it does not, the caller
	// calls Refresh; when it does, Admit.
	Expected() bool
}

// Errors of placing.
var (
	errNoDMLib = errors.New("attune's library (DMLib) is not in the process")
	// errExpected: it is placed when DMLib comes, or refused when it does not.
	errExpected = errors.New("DMLib is not in the process yet")
	errBusy     = errors.New("another measure point with other settings has it already")
)

// withoutDMLib is errNoDMLib, and why.
func withoutDMLib(process Process) error {
	if why := process.WithoutDMLib(); why != "" {
		return fmt.Errorf("%w: %s", errNoDMLib, why)
	}
	return errNoDMLib
}

// ended says whether what could not be done failed because the process, or its
// image, is no more.
func ended(process Process, err error) bool {
	return errors.Is(err, procid.ErrGone) || errors.Is(err, unix.ESRCH) || err != nil && !process.Alive()
}

const (
	// safePointTimeout bounds how long placing waits for a process to come to a hook.
	safePointTimeout = 2 * time.Second
	// vainTimeout is that of what follows in a batch when it did not come: a hundred points
	// do not wait for one that is stopped each by itself.
	vainTimeout = 100 * time.Millisecond
)

// common is what the processes of a Placer share. It may be used from any goroutine.
type common struct {
	options Options
	log     *slog.Logger
	slots   symbols.SlotTables
	exports symbols.Exports
	names   symbols.Names
}

// host is a process as every mechanism sees it. It is guarded by tenant.mu.
type host struct {
	*common
	process Process
	owner   [shm.PointCount]uint16 // local index -> point, 0: nobody's
	batch   *batch                 // under way; nil: none
}

// batch is what is known of a process while some points come and go together.
type batch struct {
	images  func() ([]objfile.Image, error)
	leftOut func() []string // of images
	patches *sites.Batch    // nil: none was needed yet
	vain    bool            // something has waited for a safe point, and none came
}

// begin begins a batch, and returns what ends it.
func (h *host) begin() (end func()) {
	images := sync.OnceValues(h.process.Images)
	h.batch = &batch{images: images, leftOut: sync.OnceValue(func() []string {
		all, _ := images() // none where that fails
		return objfile.LeftOut(all)
	})}
	return func() {
		if h.batch.patches != nil {
			h.batch.patches.Close()
		}
		h.batch = nil
	}
}

// atSafePoint bounds how long a point waits for a safe point.
func (h *host) atSafePoint(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.batch != nil && h.batch.vain {
		return context.WithTimeout(ctx, vainTimeout)
	}
	return context.WithTimeout(ctx, safePointTimeout)
}

// learn notes of an error whether a point has waited for a safe point in vain.
func (h *host) learn(err error) {
	if h.batch != nil && errors.Is(err, shm.ErrNoSafePoint) {
		h.batch.vain = true
	}
}

// images are those of the process, which others of the batch use as well: they
// are not to be modified.
func (h *host) images() ([]objfile.Image, error) {
	if h.batch != nil {
		return h.batch.images()
	}
	return h.process.Images()
}

// withUnseen adds to what is told of a point by slots whose calls are not seen at all.
func (h *host) withUnseen(reason string) string {
	if h.batch == nil {
		return reason
	}
	var unseen []string
	for _, path := range h.batch.leftOut() {
		unseen = append(unseen, fmt.Sprintf("calls of %s are not counted: %v", path, objfile.ErrReplaced))
	}
	return strings.Trim(reason+"; "+several(unseen), "; ")
}

// measure is [sites.Sites.Measure].
func (h *host) measure(ctx context.Context, f sites.Function, number int, at sites.Where) error {
	if h.batch == nil {
		return h.process.Sites().Measure(ctx, f, number, at)
	}
	return h.patchesOfBatch().Measure(ctx, f, number, at)
}

// patchesOfBatch are those of the batch under way.
func (h *host) patchesOfBatch() *sites.Batch {
	if h.batch.patches == nil {
		h.batch.patches = h.process.Sites().Batch()
	}
	return h.batch.patches
}

// named returns the point with what it stands for in the process in place of each
// name: of its object, if it names a function alone, and of each path; and with the types
// that a static probe gives its arguments. The point itself if it has nothing of that.
func (h *host) named(spec *attunev1.MeasurePoint) (*attunev1.MeasurePoint, error) {
	spec, err := symbols.InOneObject(spec, h.images)
	if err != nil {
		return nil, err
	}
	if spec, err = h.names.Named(spec, h.images); err != nil {
		return nil, err
	}
	return symbols.Typed(spec, h.images)
}

// returnProbes is [objfile.ReturnProbes] of the process.
func (h *host) returnProbes(images []objfile.Image) error {
	return objfile.ReturnProbes(images, h.slots.Matching)
}
