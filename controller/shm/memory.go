// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// FileName is what a memory file is called in /proc/PID/maps, behind "/memfd:".
const FileName = "attune-dm"

// Memory is the memory file of one process, with all its parts. See the package comment
// for who may call what at the same time. Close must be called.
type Memory struct {
	*mapping
	*Points
	*Mailbox
	*Executor
	*Rings
	*Children

	inode uint64 // of the file
}

// New creates, seals and maps the memory file of one process. Nobody can
// resize the file afterwards. The caller hands File over to the application.
func New(g Geometry) (*Memory, error) {
	fd, err := memfd(FileName)
	if err != nil {
		return nil, fmt.Errorf("create memory file: %w", err)
	}
	return NewIn(os.NewFile(uintptr(fd), FileName), g)
}

// NewIn is New in an empty memory file that somebody else made, and may have open: it
// returns ErrForeign if that changes the file's size meanwhile. It owns the file from
// now on, also when it returns an error.
func NewIn(file *os.File, g Geometry) (*Memory, error) { return newIn(file, g, commits()) }

func newIn(file *os.File, g Geometry, committed bool) (*Memory, error) {
	return owning(file, func() (*Memory, error) {
		g = g.withDefaultsOf(committed)
		if err := seal(file, int64(g.place().total), committed); err != nil {
			return nil, err
		}
		m, err := assemble(file, g)
		if err == nil {
			writeHeader(m.data, g)
		}
		return m, err
	})
}

// owning closes the file if it comes to nothing.
func owning(file *os.File, make func() (*Memory, error)) (*Memory, error) {
	m, err := make()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return m, nil
}

// assemble maps a file of this geometry, which is complete, and puts the parts together.
func assemble(file *os.File, g Geometry) (*Memory, error) {
	var info unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &info); err != nil {
		return nil, fmt.Errorf("memory file: %w", err)
	}
	m, err := mapFile(file, g)
	if err != nil {
		return nil, err
	}
	owners, mailbox := &ownership{mapping: m}, &Mailbox{mapping: m}
	executor := &Executor{mailbox: mailbox, attendance: attendance{mailbox: mailbox}}
	return &Memory{
		mapping: m, Mailbox: mailbox, Executor: executor, inode: info.Ino,
		Points:   &Points{mapping: m, owners: owners, programs: newPrograms(m)},
		Rings:    &Rings{mapping: m, owners: owners, slots: make([]slotReader, g.Slots)},
		Children: &Children{mapping: m, guarded: executor.guarded},
	}, nil
}

// memfd asks for a file that can never be executed, which hardened systems
// insist on (vm.memfd_noexec=2), and does without where the kernel is older
// than 6.3.
func memfd(name string) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_NOEXEC_SEAL)
	if errors.Is(err, unix.EINVAL) {
		return unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	return fd, err
}

// writeHeader fills in the controller's part of a file of this geometry, which is
// complete; the magic comes last.
func writeHeader(b []byte, g Geometry) {
	at := g.place()
	store32(b, abi.HeaderVersionAt, abi.ABIVersion)
	store32(b, abi.HeaderHeaderSizeAt, abi.HeaderBytes)
	store64(b, abi.HeaderTotalSizeAt, uint64(at.total))
	store64(b, abi.HeaderControlOffsetAt, uint64(at.control))
	store64(b, abi.HeaderMailboxOffsetAt, uint64(at.mailbox))
	store64(b, abi.HeaderSlotOffsetAt, uint64(at.slots))
	store64(b, abi.HeaderRingOffsetAt, uint64(at.rings))
	store32(b, abi.HeaderPointCountAt, PointCount)
	store32(b, abi.HeaderSlotCountAt, uint32(g.Slots))
	store32(b, abi.HeaderRingCountAt, uint32(g.Rings))
	store32(b, abi.HeaderRingRecordsAt, uint32(g.RingRecords))
	store64(b, abi.HeaderProgramOffsetAt, uint64(at.programs))
	store64(b, abi.HeaderTableOffsetAt, uint64(at.tables))
	store32(b, abi.HeaderProgramCountAt, uint32(max(g.Programs, 0)))
	store32(b, abi.HeaderTableCountAt, uint32(max(g.Tables, 0)))
	store64(b, abi.HeaderMagicAt, abi.ABIMagic)
}

// Geometry returns the sizes in force, without zeros.
func (m *Memory) Geometry() Geometry { return m.geometry }

// Inode names the memory file, for whoever looks which processes have it mapped.
func (m *Memory) Inode() uint64 { return m.inode }

// File returns the memory file, which m owns until Close.
func (m *Memory) File() *os.File { return m.file }

// Close tells DMLib to go inert for good, unmaps the memory and closes the
// file. It waits for methods that are in progress; later ones return
// ErrClosed or nothing. Calling it again does nothing.
func (m *Memory) Close() error {
	m.life.Lock()
	defer m.life.Unlock()
	if m.data == nil {
		return nil
	}
	m.detach()
	data := m.data
	m.data = nil
	return errors.Join(m.file.Close(), unix.Munmap(data))
}

// App reads the application's part of the header; the zero value after Close.
// Safe to call at any time.
func (m *Memory) App() App { return m.app() }

// Detach turns every measure point off and tells DMLib to go inert for good;
// the memory stays readable, so that what is left can be drained. Safe to call
// at any time.
func (m *Memory) Detach() {
	m.life.RLock()
	defer m.life.RUnlock()
	if m.data != nil {
		m.detach()
	}
}
