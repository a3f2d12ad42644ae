// SPDX-License-Identifier: Apache-2.0

package system

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/procid"
)

// buffer is a socket's send or receive buffer. Values are those that a program
// gives to setsockopt(2); the kernel keeps, and getsockopt(2) returns, twice as
// much. Setting a size turns the kernel's own tuning of it off. Since Linux
// 5.14 SO_BUF_LOCK tells whether that has happened and turns it on again; so a
// value carries "+auto" where the kernel tunes, and "+unknown" where an older
// kernel does not tell.
type buffer struct {
	name, what    string
	number, force int
	lock          int    // SOCK_SNDBUF_LOCK or SOCK_RCVBUF_LOCK
	sysctl        string // greatest size without privilege
	forced        bool
}

const (
	auto        = "auto"
	autoMark    = "+auto"
	unknownMark = "+unknown"
	// minBuffer is half of SOCK_MIN_SNDBUF on 64-bit machines: the kernel
	// raises what is less.
	minBuffer = 2304
	maxBuffer = math.MaxInt32 / 2
)

// force ends the name of a knob that sets what the one without does, whatever the limit.
const force = "force"

// plainName is the name of what a knob sets.
func plainName(knob string) string { return strings.TrimSuffix(knob, force) }

func bufferKnobs() []knob {
	send := buffer{
		name: "so_sndbuf", what: "send", number: unix.SO_SNDBUF, force: unix.SO_SNDBUFFORCE,
		lock: unix.SOCK_SNDBUF_LOCK, sysctl: "wmem_max",
	}
	receive := buffer{
		name: "so_rcvbuf", what: "receive", number: unix.SO_RCVBUF, force: unix.SO_RCVBUFFORCE,
		lock: unix.SOCK_RCVBUF_LOCK, sysctl: "rmem_max",
	}
	var list []knob
	for _, b := range []buffer{send, receive} {
		list = append(list, b.knob())
		b.name, b.forced = b.name+force, true
		list = append(list, b.knob())
	}
	return list
}

func (b buffer) knob() knob {
	suits, what := suitable(false)
	privilege, limit := "", ", at most net.core."+b.sysctl
	if b.forced {
		privilege, limit = "CAP_NET_ADMIN", ", beyond net.core."+b.sysctl+" too"
	}
	return knob{
		Knob: Knob{
			Name: "socket." + b.name, On: OnSockets,
			Values:   fmt.Sprintf("bytes, %d to %d, or %s", minBuffer, maxBuffer, auto),
			Examples: []string{auto, "256K", "4M"},
			Description: fmt.Sprintf("Size of the %s buffer as given to setsockopt%s. A size turns the kernel's own tuning off, %s turns it on.",
				b.what, limit, auto),
			Privilege: privilege,
			Undo:      exactly + ", the kernel's own tuning included; before Linux 5.14 that stays off",
		},
		parse: func(text string) (string, error) {
			if strings.EqualFold(text, auto) {
				return auto, nil
			}
			return whole(minBuffer, maxBuffer)(text)
		},
		complete: b.bound, check: b.undoable, same: sameBuffer,
		places: descriptorPlaces(OnSockets, unix.S_IFSOCK, what, suits),
		open:   openDescriptor(b.get, b.set),
	}
}

// most is the greatest size that this user may set; 0: not known.
func (b buffer) most() int64 {
	n, err := procid.ReadNumber("/proc/sys/net/core/" + b.sysctl)
	if err != nil {
		return 0
	}
	return int64(n)
}

// bound refuses what the kernel would cut down silently.
func (b buffer) bound(_ *Target, old, asked string) (string, error) {
	n, err := strconv.ParseInt(asked, 10, 64)
	switch most := b.most(); {
	case asked == auto && strings.HasSuffix(old, unknownMark):
		return "", badValue("%s needs Linux 5.14", auto)
	case err == nil && !b.forced && most > 0 && n > most:
		return "", badValue("%d is above net.core.%s = %d; raise that, or use socket.%s", n, b.sysctl, most, b.name+force)
	}
	return asked, nil
}

// undoable says why the old value could not be put back.
func (b buffer) undoable(_ *Target, old, _ string) error {
	if strings.HasSuffix(old, unknownMark) {
		return errors.New("before Linux 5.14 the kernel's own tuning of the buffer cannot be turned on again")
	}
	n, err := strconv.ParseInt(old, 10, 64)
	if most := b.most(); err == nil && most > 0 && n > most && !capable(unix.CAP_NET_ADMIN) {
		return fmt.Errorf("going back to %d, above net.core.%s = %d, needs CAP_NET_ADMIN", n, b.sysctl, most)
	}
	return nil
}

// sameBuffer: where the kernel tunes the size, every size is the same.
func sameBuffer(set, read string) bool {
	tuned := strings.HasSuffix(read, autoMark)
	switch {
	case set == auto || strings.HasSuffix(set, autoMark):
		return tuned
	case tuned:
		return false
	}
	return strings.TrimSuffix(set, unknownMark) == strings.TrimSuffix(read, unknownMark)
}

func (b buffer) get(fd int) (string, error) {
	n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, b.number)
	if err != nil {
		return "", err
	}
	size := strconv.Itoa(n / 2)
	locks, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK)
	switch {
	case errors.Is(err, unix.ENOPROTOOPT):
		return size + unknownMark, nil
	case err == nil && locks&b.lock == 0:
		return size + autoMark, nil
	}
	return size, err
}

func (b buffer) set(fd int, value string) error {
	size, tuned := strings.CutSuffix(strings.TrimSuffix(value, unknownMark), autoMark)
	if value != auto {
		n, err := strconv.Atoi(size)
		if err != nil {
			return err
		}
		if err := b.resize(fd, n); err != nil {
			return err
		}
		if !tuned {
			return nil
		}
	}
	locks, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK)
	if err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUF_LOCK, locks&^b.lock)
}

// resize sets a size. One beyond the limit, which bound lets through only
// where it was there before, is forced if possible.
func (b buffer) resize(fd, n int) error {
	if most := b.most(); b.forced || most > 0 && int64(n) > most && capable(unix.CAP_NET_ADMIN) {
		err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.force, n)
		if most == 0 || int64(n) > most || !errors.Is(err, unix.EPERM) {
			return err
		}
	}
	return unix.SetsockoptInt(fd, unix.SOL_SOCKET, b.number, n)
}
