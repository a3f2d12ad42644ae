// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const pipeMaxSize = "/proc/sys/fs/pipe-max-size"

func pipeKnobs() []knob {
	return []knob{{
		Knob: Knob{
			Name: "pipe.size", On: OnPipes, Values: "bytes, rounded up to a power of two of pages",
			Examples:    []string{"64K", "1M"},
			Description: "Bytes that a pipe holds. The other end's process has the same pipe.",
			Privilege:   "CAP_SYS_RESOURCE beyond fs.pipe-max-size or the user's fs.pipe-user-pages-soft",
			Undo:        exactly + "; not while the pipe holds more than the old size",
		},
		parse:    wholePipe,
		places:   descriptorPlaces(OnPipes, unix.S_IFIFO, "pipe", func(int) error { return nil }),
		complete: pipeBound,
		check: func(t *Target, old, _ string) error {
			_, err := pipeBound(t, "", old)
			return err
		},
		open: openDescriptor(pipeSize, setPipeSize),
	}}
}

// wholePipe rounds as the kernel does: up to a power of two, at least a page.
func wholePipe(text string) (string, error) {
	n, err := ParseSize(text)
	if err != nil || n < 1 || n > math.MaxInt32/2 {
		return "", badValue("%q is not a number of bytes from 1 to %d", text, math.MaxInt32/2)
	}
	n = max(n, int64(os.Getpagesize()))
	return strconv.FormatInt(1<<bits.Len64(uint64(n-1)), 10), nil
}

// pipeBound refuses a size that the kernel would refuse this user.
func pipeBound(_ *Target, _, asked string) (string, error) {
	n, err := strconv.ParseInt(asked, 10, 64)
	if err != nil {
		return "", err
	}
	most, err := readNumber(pipeMaxSize)
	if err == nil && n > most && !capable(capSysResource) {
		return "", badValue("%d is above fs.pipe-max-size = %d; beyond it needs CAP_SYS_RESOURCE", n, most)
	}
	return asked, nil
}

func pipeSize(fd int) (string, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	return strconv.Itoa(n), err
}

func setPipeSize(fd int, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return err
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, n)
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("the pipe holds more than %d bytes at present: %w", n, err)
	}
	return err
}
