// SPDX-License-Identifier: Apache-2.0

package system

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// option is a socket option that is an int; see socket(7) and tcp(7).
type option struct {
	name, what     string
	level, number  int
	low, high      int64
	examples       []string
	tcp            bool // for TCP sockets only
	drifts         bool
	privilege      string
	undo           string
	needsPrivilege func(old, value int64) bool // nil: never
}

// freePriority is the greatest SO_PRIORITY that needs no privilege.
const freePriority = 6

func options() []option {
	flag := []string{"0", "1"}
	const admin = "CAP_NET_ADMIN"
	return []option{
		{
			name: "tcp_nodelay", what: "Send small segments at once (1), or collect them (0, Nagle's algorithm).",
			level: unix.IPPROTO_TCP, number: unix.TCP_NODELAY, high: 1, examples: flag, tcp: true,
		},
		{
			name: "tcp_quickack", what: "Acknowledge at once. The kernel goes back to delayed acknowledgements by itself.",
			level: unix.IPPROTO_TCP, number: unix.TCP_QUICKACK, high: 1, examples: flag, tcp: true, drifts: true,
			undo: exactly + ", unless the kernel went back already",
		},
		{
			name: "tcp_notsent_lowat", what: "Bytes not yet sent above which the socket is not writable; 0: the system's default.",
			level: unix.IPPROTO_TCP, number: unix.TCP_NOTSENT_LOWAT, high: math.MaxInt32, examples: []string{"16K", "128K"}, tcp: true,
		},
		{
			name: "tcp_user_timeout", what: "Milliseconds that sent data may stay unacknowledged before the connection ends; 0: the system's default.",
			level: unix.IPPROTO_TCP, number: unix.TCP_USER_TIMEOUT, high: math.MaxInt32, tcp: true,
		},
		{
			name: "tcp_keepidle", what: "Seconds of silence before the first keep-alive probe.",
			level: unix.IPPROTO_TCP, number: unix.TCP_KEEPIDLE, low: 1, high: math.MaxInt16, tcp: true,
			undo: exactly + "; later changes of the system's default do not reach it",
		},
		{
			name: "tcp_keepintvl", what: "Seconds between keep-alive probes.",
			level: unix.IPPROTO_TCP, number: unix.TCP_KEEPINTVL, low: 1, high: math.MaxInt16, tcp: true,
			undo: exactly + "; later changes of the system's default do not reach it",
		},
		{
			name: "so_keepalive", what: "Send keep-alive probes.",
			level: unix.SOL_SOCKET, number: unix.SO_KEEPALIVE, high: 1, examples: flag,
		},
		{
			name: "so_priority", what: "Priority of the packets in the device's queue.",
			level: unix.SOL_SOCKET, number: unix.SO_PRIORITY, high: math.MaxInt32, examples: []string{"0", "6"},
			privilege:      admin + " above 6",
			needsPrivilege: func(_, value int64) bool { return value > freePriority },
		},
		{
			name: "so_busy_poll", what: "Microseconds that a receive polls the device before it sleeps.",
			level: unix.SOL_SOCKET, number: unix.SO_BUSY_POLL, high: math.MaxInt32, examples: []string{"0", "50"},
			privilege:      admin + " to raise it",
			needsPrivilege: func(old, value int64) bool { return value > old },
		},
		{
			name: "so_prefer_busy_poll", what: "Prefer polling to the device's interrupts.",
			level: unix.SOL_SOCKET, number: unix.SO_PREFER_BUSY_POLL, high: 1, examples: flag,
			privilege:      admin + " to turn it on",
			needsPrivilege: func(_, value int64) bool { return value != 0 },
		},
	}
}

func socketKnobs() []knob {
	var list []knob
	for _, o := range options() {
		list = append(list, o.knob())
	}
	list = append(list, congestionKnob())
	return append(list, bufferKnobs()...)
}

func (o option) knob() knob {
	suits, what := suitable(o.tcp)
	parse := whole(o.low, o.high)
	values := fmt.Sprintf("%d to %d", o.low, o.high)
	if o.high == 1 {
		parse, values = truth, "0 or 1"
	}
	undo := cmp.Or(o.undo, exactly)
	return knob{
		Knob: Knob{
			Name: "socket." + o.name, On: OnSockets, Values: values, Examples: o.examples,
			Description: o.what, Privilege: o.privilege, Undo: undo,
		},
		parse: parse, drifts: o.drifts, check: o.undoable,
		places: descriptorPlaces(OnSockets, unix.S_IFSOCK, what, suits),
		open:   openDescriptor(o.get, o.set),
	}
}

// undoable says whether this user may set the old value again.
func (o option) undoable(_ *Target, old, value string) error {
	was, _ := strconv.ParseInt(old, 10, 64) // canonical
	will, _ := strconv.ParseInt(value, 10, 64)
	if o.needsPrivilege == nil || !o.needsPrivilege(will, was) || capable(unix.CAP_NET_ADMIN) {
		return nil
	}
	return fmt.Errorf("going back to %d needs CAP_NET_ADMIN", was)
}

func (o option) get(fd int) (string, error) {
	n, err := unix.GetsockoptInt(fd, o.level, o.number)
	if o.high == 1 && n != 0 {
		n = 1 // some flags read back as the kernel's own bits
	}
	return strconv.Itoa(n), err
}

func (o option) set(fd int, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil {
		return err
	}
	return unix.SetsockoptInt(fd, o.level, o.number, n)
}

// suitable returns what tells whether a socket has an option, and what such
// sockets are called.
func suitable(tcp bool) (func(fd int) error, string) {
	if tcp {
		return isTCP, "TCP socket"
	}
	return func(fd int) error {
		domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
		if err == nil && !slices.Contains([]int{unix.AF_INET, unix.AF_INET6, unix.AF_UNIX}, domain) {
			err = fmt.Errorf("address family %d", domain)
		}
		return err
	}, "internet or Unix socket"
}

func isTCP(fd int) error {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return err
	}
	protocol, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PROTOCOL)
	if err == nil && (protocol != unix.IPPROTO_TCP || domain != unix.AF_INET && domain != unix.AF_INET6) {
		err = fmt.Errorf("address family %d, protocol %d", domain, protocol)
	}
	return err
}

const sysctlTCP = "/proc/sys/net/ipv4/tcp_"

func congestionKnob() knob {
	suits, what := suitable(true)
	return knob{
		Knob: Knob{
			Name: "socket.tcp_congestion", On: OnSockets, Values: "name of an algorithm", Examples: words(sysctlTCP + "available_congestion_control"),
			Description: "Congestion control; those that there are: sysctl net.ipv4.tcp_available_congestion_control.",
			Privilege:   "CAP_NET_ADMIN for those not in net.ipv4.tcp_allowed_congestion_control",
			Undo:        exactly + "; what the algorithm has learnt about the path is not kept",
		},
		parse: func(text string) (string, error) {
			// TCP_CA_NAME_MAX is 16, with the final zero.
			if text == "" || len(text) > 15 || strings.ContainsAny(text, " \t\n\x00") {
				return "", badValue("%q is no name of an algorithm", text)
			}
			return text, nil
		},
		check: func(_ *Target, old, _ string) error {
			if capable(unix.CAP_NET_ADMIN) || slices.Contains(words(sysctlTCP+"allowed_congestion_control"), old) {
				return nil
			}
			return fmt.Errorf("going back to %s needs CAP_NET_ADMIN", old)
		},
		places: descriptorPlaces(OnSockets, unix.S_IFSOCK, what, suits),
		open:   openDescriptor(congestion, setCongestion),
	}
}

func congestion(fd int) (string, error) {
	name, err := unix.GetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	return strings.TrimRight(name, "\x00"), err
}

func setCongestion(fd int, name string) error {
	err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("this kernel has no congestion control %s; it has %s", name,
			strings.Join(words(sysctlTCP+"available_congestion_control"), ", "))
	}
	return err
}

// words reads a file of names; nil where there is none.
func words(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}
