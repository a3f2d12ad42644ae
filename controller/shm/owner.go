// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"errors"
	"fmt"
	"os"

	"github.com/attune-hpc/attune/dmlib/abi"
	"github.com/attune-hpc/attune/internal/procid"
)

// HeaderSize is how much of a memory file tells its owner, bytes.
const HeaderSize = abi.HeaderBytes

// Owner is the controller that a memory file belongs to. The zero value is
// nobody.
type Owner struct {
	// PID as the controller numbers itself, in the pid namespace Namespace
	// (its inode); Start is when it started, as in /proc/PID/stat.
	PID       int
	Start     uint64
	Namespace uint64
}

// ThisProcess is this process as an owner.
func ThisProcess() (Owner, error) {
	identity, err := procid.Of(os.Getpid())
	if err != nil {
		return Owner{}, fmt.Errorf("identify this process: %w", err)
	}
	namespace, err := procid.Namespace()
	return Owner{PID: identity.PID, Start: identity.StartTicks, Namespace: namespace}, err
}

// Alive says whether the owner may live: one in another pid namespace cannot
// be asked after.
func (o Owner) Alive() bool {
	if o.PID == 0 {
		return false
	}
	if namespace, err := procid.Namespace(); err != nil || namespace != o.Namespace {
		return true
	}
	identity, err := procid.Of(o.PID)
	if err != nil {
		return !errors.Is(err, procid.ErrGone)
	}
	return identity.StartTicks == o.Start
}

// SetOwner writes down whom the memory belongs to, for other controllers to
// read.
func (m *Memory) SetOwner(o Owner) {
	m.life.RLock()
	defer m.life.RUnlock()
	if m.data == nil {
		return
	}
	store64(m.data, abi.HeaderControllerStartAt, o.Start)
	store64(m.data, abi.HeaderControllerNamespaceAt, o.Namespace)
	store32(m.data, abi.HeaderControllerPIDAt, uint32(o.PID))
}

// ProcessOf tells from the first HeaderSize bytes of a memory file which process DMLib
// serves by it, as that numbers itself; 0: none yet. A forked child has the file of its
// parent until it registers.
func ProcessOf(header []byte) int { return int(int32(load32(header, abi.HeaderPIDAt))) }

// ReadOwner tells from the first HeaderSize bytes of a memory file whom it
// belongs to, and whether that controller has let go of it.
func ReadOwner(header []byte) (owner Owner, detached bool, err error) {
	if len(header) < abi.HeaderBytes || load64(header, abi.HeaderMagicAt) != abi.ABIMagic {
		return Owner{}, false, errors.New("no memory file of DMLib")
	}
	owner = Owner{
		PID: int(int32(load32(header, abi.HeaderControllerPIDAt))), Start: load64(header, abi.HeaderControllerStartAt),
		Namespace: load64(header, abi.HeaderControllerNamespaceAt),
	}
	return owner, load32(header, abi.HeaderDetachedAt) != 0, nil
}
