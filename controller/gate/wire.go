// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/dmlib/abi"
)

// Timeout is how long a process waits at the gate at most.
const Timeout = gateMilliseconds * time.Millisecond

// Patience is how long the gate waits for a peer's messages. It is more than
// Timeout, which is the process' own clock: on a crowded node a process may
// not get to run in between, and is as good when it does.
const Patience = 2 * time.Second

// Flags say how DMLib came into the process.
type Flags uint32

const (
	// Forked marks a forked child; nothing waits in main.
	Forked Flags = abi.HelloForked
	// Injected marks a process into which DMLib was injected.
	Injected Flags = abi.HelloInjected

	// Early marks a process that has brought its own memory file, and waits for
	// nobody.
	Early Flags = abi.HelloEarly
	// Unfiltered marks one that was under no seccomp filter when it did so.
	Unfiltered Flags = abi.HelloUnfiltered

	// running marks a process that waits for no go.
	running = Forked | Injected | Early
)

// Hello is what the application said about itself. All of it is untrusted.
type Hello struct {
	// Flags say how DMLib came in. Unknown ones are kept.
	Flags Flags
	// Attempt counts the memory files that it could not map.
	Attempt uint32
	// Deadline is when it waits no longer, in milliseconds of CLOCK_MONOTONIC, the lower
	// 32 bits; 0: it does not say.
	Deadline uint32
}

// left is for how long a process waits yet that was met so long ago and waits for as long as
// timeout altogether. It may have waited for long before it was met. In a time namespace
// of its own its clock may be another: it is not waited for longer than without its word.
func (h Hello) left(met, timeout time.Duration) time.Duration {
	left := timeout - met
	var now unix.Timespec
	if h.Deadline != 0 && unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) == nil {
		told := int32(h.Deadline - uint32(now.Nano()/int64(time.Millisecond)))
		left = min(left, time.Duration(told)*time.Millisecond)
	}
	return left - margin
}

// margin is for who is not scheduled between a look at the clock and a store into a
// process that waits.
const margin = 10 * time.Millisecond

var (
	// ErrProtocol means that a message was not what the protocol says.
	ErrProtocol = errors.New("broken message")
	// ErrVersion means that DMLib is of another version than the controller.
	ErrVersion = errors.New("other version of DMLib")
)

// DecodeHello reads the first message of a connection.
func DecodeHello(b []byte) (Hello, error) {
	if err := checkMessage("hello", b, abi.HelloBytes); err != nil {
		return Hello{}, err
	}
	if v := binary.LittleEndian.Uint32(b[abi.HelloVersionAt:]); v != abi.ABIVersion {
		return Hello{}, fmt.Errorf("%w: it speaks %d, want %d", ErrVersion, v, abi.ABIVersion)
	}
	return Hello{
		Flags:   Flags(binary.LittleEndian.Uint32(b[abi.HelloFlagsAt:])),
		Attempt: binary.LittleEndian.Uint32(b[abi.HelloAttemptAt:]), Deadline: binary.LittleEndian.Uint32(b[abi.HelloDeadlineAt:]),
	}, nil
}

// ready is DMLib's answer to the memory file.
type ready struct {
	status uint32
	errno  int32
}

func decodeReady(b []byte) (ready, error) {
	if err := checkMessage("ready", b, abi.ReadyBytes); err != nil {
		return ready{}, err
	}
	return ready{
		status: binary.LittleEndian.Uint32(b[abi.ReadyStatusAt:]),
		errno:  int32(binary.LittleEndian.Uint32(b[abi.ReadyErrorAt:])),
	}, nil
}

// checkMessage checks what all messages have in common: a fixed size and the
// magic number at the start.
func checkMessage(name string, b []byte, size int) error {
	if len(b) != size {
		return fmt.Errorf("%w: %s of %d bytes, want %d", ErrProtocol, name, len(b), size)
	}
	if magic := binary.LittleEndian.Uint64(b); magic != abi.ABIMagic {
		return fmt.Errorf("%w: %s with magic %#x", ErrProtocol, name, magic)
	}
	return nil
}

func encodeWelcome(status uint32, totalSize int64) []byte {
	b := make([]byte, abi.WelcomeBytes)
	binary.LittleEndian.PutUint64(b[abi.WelcomeMagicAt:], abi.ABIMagic)
	binary.LittleEndian.PutUint32(b[abi.WelcomeVersionAt:], abi.ABIVersion)
	binary.LittleEndian.PutUint32(b[abi.WelcomeStatusAt:], status)
	binary.LittleEndian.PutUint64(b[abi.WelcomeTotalSizeAt:], uint64(totalSize))
	return b
}

func encodeGo() []byte {
	b := make([]byte, abi.GoBytes)
	binary.LittleEndian.PutUint64(b[abi.GoMagicAt:], abi.ABIMagic)
	return b
}
