// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// The messages of dmlib_gate.h.
const (
	abiMagic   = 0x0031424c4d445441
	abiVersion = 6

	helloMagic   = 0
	helloVersion = 8
	helloFlags   = 12
	helloPID     = 16
	helloTID     = 20
	helloAttempt = 24
	helloSize    = 32

	welcomeMagic     = 0
	welcomeVersion   = 8
	welcomeStatus    = 12
	welcomeTotalSize = 16
	welcomeSize      = 32

	welcomeOK      = 0
	welcomeRefused = 1

	readyMagic  = 0
	readyStatus = 8
	readyError  = 12
	readySize   = 16

	readyOK     = 0
	readyNoMap  = 1
	readyBadABI = 2

	goMagic  = 0
	goStatus = 8
	goSize   = 16
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
	Forked Flags = 1 << 0
	// Injected marks a process into which DMLib was injected.
	Injected Flags = 1 << 1

	// Early marks a process that has brought its own memory file, and waits for
	// nobody.
	Early Flags = 1 << 2
	// Unfiltered marks one that was under no seccomp filter when it did so.
	Unfiltered Flags = 1 << 3

	// running marks a process that waits for no go.
	running = Forked | Injected | Early
)

// Hello is what the application said about itself. All of it is untrusted.
type Hello struct {
	// Flags say how DMLib came in. Unknown ones are kept.
	Flags Flags
	// PID and TID are as the process sees itself.
	PID, TID int
	// Attempt counts the memory files that it could not map.
	Attempt uint32
}

var (
	// ErrProtocol means that a message was not what the protocol says.
	ErrProtocol = errors.New("broken message")
	// ErrVersion means that DMLib is of another version than the controller.
	ErrVersion = errors.New("other version of DMLib")
)

// DecodeHello reads the first message of a connection.
func DecodeHello(b []byte) (Hello, error) {
	if err := checkMessage("hello", b, helloSize); err != nil {
		return Hello{}, err
	}
	if v := binary.LittleEndian.Uint32(b[helloVersion:]); v != abiVersion {
		return Hello{}, fmt.Errorf("%w: it speaks %d, want %d", ErrVersion, v, abiVersion)
	}
	return Hello{
		Flags:   Flags(binary.LittleEndian.Uint32(b[helloFlags:])),
		PID:     int(int32(binary.LittleEndian.Uint32(b[helloPID:]))),
		TID:     int(int32(binary.LittleEndian.Uint32(b[helloTID:]))),
		Attempt: binary.LittleEndian.Uint32(b[helloAttempt:]),
	}, nil
}

// ready is DMLib's answer to the memory file.
type ready struct {
	status uint32
	errno  int32
}

func decodeReady(b []byte) (ready, error) {
	if err := checkMessage("ready", b, readySize); err != nil {
		return ready{}, err
	}
	return ready{
		status: binary.LittleEndian.Uint32(b[readyStatus:]),
		errno:  int32(binary.LittleEndian.Uint32(b[readyError:])),
	}, nil
}

// checkMessage checks what all messages have in common: a fixed size and the
// magic number at the start.
func checkMessage(name string, b []byte, size int) error {
	if len(b) != size {
		return fmt.Errorf("%w: %s of %d bytes, want %d", ErrProtocol, name, len(b), size)
	}
	if magic := binary.LittleEndian.Uint64(b); magic != abiMagic {
		return fmt.Errorf("%w: %s with magic %#x", ErrProtocol, name, magic)
	}
	return nil
}

func encodeWelcome(status uint32, totalSize int64) []byte {
	b := make([]byte, welcomeSize)
	binary.LittleEndian.PutUint64(b[welcomeMagic:], abiMagic)
	binary.LittleEndian.PutUint32(b[welcomeVersion:], abiVersion)
	binary.LittleEndian.PutUint32(b[welcomeStatus:], status)
	binary.LittleEndian.PutUint64(b[welcomeTotalSize:], uint64(totalSize))
	return b
}

func encodeGo() []byte {
	b := make([]byte, goSize)
	binary.LittleEndian.PutUint64(b[goMagic:], abiMagic)
	binary.LittleEndian.PutUint32(b[goStatus:], welcomeOK)
	return b
}
