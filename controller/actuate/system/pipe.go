// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

const (
	pipeMaxSize = "/proc/sys/fs/pipe-max-size"

	// A pipe cannot shrink below what it holds. In a pipeline that runs that is
	// so half of the time: a turn of 1 MiB takes 0.3 ms at 4 GB/s and 10 ms at
	// 100 MB/s, and its reader empties the pipe once in each, or less often where it
	// has to wait for a processor. shrinkPatience is fifty of the slow ones; a reader
	// that is slower than its writer never empties the pipe, and no waiting helps.
	shrinkPatience = 500 * time.Millisecond
	shrinkPause    = 50 * time.Microsecond
)

func pipeKnobs() []knob {
	return []knob{{
		Knob: Knob{
			Name: "pipe.size", On: OnPipes, Values: "bytes, rounded up to a power of two of pages",
			Examples:    []string{"64K", "1M"},
			Description: "Bytes that a pipe holds. The other end's process has the same pipe. One with a name (mkfifo) is changed by its descriptor only.",
			Privilege:   "CAP_SYS_RESOURCE beyond fs.pipe-max-size or the user's fs.pipe-user-pages-soft",
			Undo:        exactly + "; tried for 500 ms while the pipe holds more than the old size",
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
	most, err := procid.ReadNumber(pipeMaxSize)
	if err == nil && uint64(n) > most && !capable(unix.CAP_SYS_RESOURCE) {
		return "", badValue("%d is above fs.pipe-max-size = %d; beyond it needs CAP_SYS_RESOURCE", n, most)
	}
	return asked, nil
}

func pipeSize(fd int) (string, error) {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0)
	return strconv.Itoa(n), err
}

// setPipeSize waits, up to shrinkPatience, for a moment at which a pipe that is
// to shrink holds no more than it will.
func setPipeSize(fd int, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return err
	}
	for until := time.Now().Add(shrinkPatience); ; time.Sleep(shrinkPause) {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, n)
		switch {
		case !errors.Is(err, unix.EBUSY):
			return err
		case time.Now().After(until):
			return fmt.Errorf("the pipe held more than %d bytes for %v: %w", n, shrinkPatience, err)
		}
	}
}
