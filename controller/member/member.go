// SPDX-License-Identifier: Apache-2.0

package member

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/controller/actuate/access"
	"github.com/attune-hpc/attune/controller/probe"
	"github.com/attune-hpc/attune/controller/sites"
	"github.com/attune-hpc/attune/internal/clock"
	"github.com/attune-hpc/attune/internal/loaderlist"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Options are what all members share. The zero value is usable.
type Options struct {
	// Cache of the objects that processes map. Nil: Images must not be called.
	Cache *objfile.Cache
	// Foreign is why the process with a pid must be left alone. It is asked when the
	// memory of a member has been opened, so that the answer is of that image. Nil:
	// the kernel judges.
	Foreign func(pid int) error
	// Functions is what the Sites of all members share. Nil: one of its own.
	Functions *sites.Functions
}

// Member is one process image under control. The embedded mutex is held while
// something is changed in it, see [access.Process].
type Member struct {
	sync.Mutex
	life
	standing

	handle   uint64
	identity procid.Identity
	image    proc.Keeper
	foreign  func(pid int) error
	cache    *objfile.Cache
	sites    *sites.Sites
	kept     kept

	infoMu sync.Mutex // guards info; a leaf lock
	info   *attunev1.Process
}

// kept has the values of all keepers.
type kept struct {
	mu     sync.Mutex // a leaf lock
	values map[any]any
}

var (
	_ probe.Process  = (*Member)(nil)
	_ access.Process = (*Member)(nil)
)

// New returns a member that was just seen. It belongs to no set yet.
func New(process *attunev1.Process, options Options) *Member {
	id := process.GetIdentity()
	m := &Member{
		handle: process.GetHandle(), cache: options.Cache, foreign: options.Foreign, info: proto.CloneOf(process),
		identity: procid.Identity{
			BootID: id.GetBootId(), PID: int(id.GetPid()), StartTicks: id.GetStartTicks(),
			ExeDevice: id.GetExeDevice(), ExeInode: id.GetExeInode(), Image: id.GetImage(),
		},
	}
	if options.Functions == nil {
		options.Functions = new(sites.Functions)
	}
	m.sites = sites.NewSites(m, options.Functions)
	return m
}

// close lets go of what the member has itself.
func (m *Member) close() error {
	m.sites.Forget()
	err := m.image.Close()
	if memory := m.Memory(); memory != nil {
		err = errors.Join(err, memory.Close())
	}
	return err
}

// Handle is the controller's number of the member.
func (m *Member) Handle() uint64 { return m.handle }

// PID in the controller's pid namespace.
func (m *Member) PID() int { return m.identity.PID }

// Identity tells the process from others that are given its pid later.
func (m *Member) Identity() procid.Identity { return m.identity }

// Hold returns the handle on the image, which is opened when it is first needed.
func (m *Member) Hold() (*proc.Handle, error) { return m.image.Hold(m.identity, m.foreign) }

// Started is when the image was seen first.
func (m *Member) Started() time.Time { return time.Unix(0, m.Snapshot().GetSeenUnixNano()) }

// Age is how long ago the process was started.
func (m *Member) Age() time.Duration {
	return clock.SinceBoot() - time.Duration(m.identity.StartTicks)*procid.Tick
}

// Sites owns the patched entries and returns of the process.
func (m *Member) Sites() *sites.Sites { return m.sites }

// Images lists what is mapped at present.
func (m *Member) Images() ([]objfile.Image, error) {
	images, err := m.cache.Images(m.PID())
	return loaderlist.ProgramFirst(m, images), err
}

// Map maps memory for patches where DMLib is not in the process.
func (m *Member) Map(ctx context.Context, start, size uint64) error {
	return access.MapStopped(ctx, m, start, size)
}

// Rewrite changes code while all threads are stopped.
func (m *Member) Rewrite(ctx context.Context, changes ...proc.Change) error {
	return access.RewriteStopped(ctx, m, changes...)
}

// Mailbox is DMLib's, nil without DMLib.
func (m *Member) Mailbox() access.Mailbox {
	if memory := m.Memory(); memory != nil {
		return mailbox{executor: memory.Executor, sites: m.sites}
	}
	return nil
}

// Snapshot returns what is known about the process, safe to keep.
func (m *Member) Snapshot() *attunev1.Process {
	m.infoMu.Lock()
	defer m.infoMu.Unlock()
	return proto.CloneOf(m.info)
}

// Executable is the path of the program, empty if that is not known.
func (m *Member) Executable() string {
	m.infoMu.Lock()
	defer m.infoMu.Unlock()
	return m.info.GetExecutable()
}

// Objects are the paths of what the process has mapped, as the tracker found it last. The
// caller does not change them.
func (m *Member) Objects() []string {
	m.infoMu.Lock()
	defer m.infoMu.Unlock()
	return m.info.GetObjects()
}

// Update replaces what the tracker knows and keeps what the controller does.
func (m *Member) Update(info *attunev1.Process) {
	m.infoMu.Lock()
	defer m.infoMu.Unlock()
	mechanisms := m.info.GetMechanisms()
	m.info = proto.CloneOf(info)
	m.info.Mechanisms = mechanisms
}

// Mechanisms, the ways into a process.
const (
	MechanismDMLib   = "dmlib"
	MechanismUprobe  = "uprobe"
	MechanismVMWrite = "vm_write"
)

// SetMechanism notes whether a way into the process is open.
func (m *Member) SetMechanism(name string, available bool, reason string) {
	m.infoMu.Lock()
	defer m.infoMu.Unlock()
	for _, one := range m.info.GetMechanisms() {
		if one.GetName() == name {
			one.Available, one.Reason = available, reason
			return
		}
	}
	m.info.Mechanisms = append(m.info.Mechanisms,
		&attunev1.Mechanism{Name: name, Available: available, Reason: reason})
}

// WithoutDMLib is why DMLib is not in the process; "" where that is not known.
func (m *Member) WithoutDMLib() string {
	m.infoMu.Lock()
	defer m.infoMu.Unlock()
	for _, one := range m.info.GetMechanisms() {
		if one.GetName() == MechanismDMLib && !one.GetAvailable() {
			return one.GetReason()
		}
	}
	return ""
}

// standing is what the Analyzer knows of a member. The zero value is unheard.
type standing struct{ is atomic.Int32 }

const (
	unheard int32 = iota
	told
	hushed
)

// Told says whether the Analyzer knows of the member, at the present connection.
func (s *standing) Told() bool { return s.is.Load() == told }

// Known says whether an Analyzer knew of it at some connection.
func (s *standing) Known() bool { return s.is.Load() != unheard }

// Tell notes that the Analyzer knows of it.
func (s *standing) Tell() { s.is.Store(told) }

// Hush notes that there is no Analyzer any more.
func (s *standing) Hush() { s.is.CompareAndSwap(told, hushed) }
