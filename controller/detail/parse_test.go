// SPDX-License-Identifier: Apache-2.0

package detail

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"github.com/attune-hpc/attune/internal/testing/files"
	"github.com/attune-hpc/attune/proto/attune/series"
)

func TestParseLink(t *testing.T) {
	tests := []struct {
		link     string
		inode    uint64
		pipe, ok bool
	}{
		{"socket:[12]", 12, false, true},
		{"pipe:[18446744073709551615]", 1<<64 - 1, true, true},
		{"pipe:[]", 0, true, false},
		{"pipe:[1", 1, true, false},
		{"socket:[x]", 0, false, false},
		{"anon_inode:[eventpoll]", 0, false, false},
		{"/tmp/socket:[12]", 0, false, false},
		{"", 0, false, false},
	}
	for _, tt := range tests {
		if inode, pipe, ok := parseLink(tt.link); ok != tt.ok || ok && (inode != tt.inode || pipe != tt.pipe) {
			t.Errorf("%q is %d, %v, %v", tt.link, inode, pipe, ok)
		}
	}
}

const rollup = `55e0e8b1a000-7ffd62624000 ---p 00000000 00:00 0                          [rollup]
Rss:               14716 kB
Pss:               13053 kB
Anonymous:          7732 kB
AnonHugePages:      2048 kB
Shared_Hugetlb:     2048 kB
Private_Hugetlb:    4096 kB
Swap:                 12 kB
`

func TestParseRollup(t *testing.T) {
	got, err := parseRollup([]byte(rollup))
	want := &series.Memory{
		ResidentBytes: 14716 << 10, AnonymousBytes: 7732 << 10, HugeBytes: 2 << 20, HugetlbBytes: 6 << 20, SwapBytes: 12 << 10,
	}
	if err != nil || *got != *want {
		t.Errorf("%v, %v", got, err)
	}
	for name, data := range map[string]string{
		"empty": "", "no number": strings.Replace(rollup, "7732", "many", 1),
		"too much": strings.Replace(rollup, "7732", "99999999999999999999", 1), "no resident memory": "Pss: 5 kB\n",
	} {
		if _, err := parseRollup([]byte(data)); !errors.Is(err, errRollup) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// numaMaps is of a process on two nodes, with a mapping of hugetlbfs.
const numaMaps = `55d56e028000 default file=/usr/bin/head mapped=2 N0=2 kernelpagesize_kB=4
7f140d07d000 interleave:0-1 anon=12 dirty=12 active=0 N0=6 N1=6 kernelpagesize_kB=4
7f1400000000 bind:1 file=/dev/hugepages/x huge dirty=3 N1=3 kernelpagesize_kB=2048
7f140d272000 default
7ffdcdcf3000 default stack anon=5 dirty=5 active=1 N0=5 kernelpagesize_kB=4
`

func TestParseNodes(t *testing.T) {
	got, err := parseNodes([]byte(numaMaps))
	const page, whole = 4096, 13*4096 + 6*4096 + 3<<21
	want := &series.Rows[series.MemoryNode]{Total: 2, Items: []series.MemoryNode{
		{Node: 0, ResidentBytes: 13 * page, Share: 13.0 * page / whole, BoundBytes: 6 * page, Policy: "default"},
		{Node: 1, ResidentBytes: 6*page + 3<<21, Share: (6.0*page + 3<<21) / whole, BoundBytes: 6*page + 3<<21, Policy: "bind:1"},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if none, err := parseNodes(nil); err != nil || none.Total != 0 {
		t.Errorf("of a process without memory: %v, %v", none, err)
	}
	for name, data := range map[string]string{
		"no policy": "55d56e028000\n", "no number": "55d56e028000 default N0=x\n", "no size": "55d56e028000 default N0=1 kernelpagesize_kB=x\n",
	} {
		if _, err := parseNodes([]byte(data)); !errors.Is(err, errNodes) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzNodes(f *testing.F) {
	f.Add([]byte(numaMaps))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parseNodes(data); err != nil && !errors.Is(err, errNodes) {
			t.Error(err)
		}
	})
}

// message is one of netlink.
func message(kind uint16, sequence uint32, content ...byte) []byte {
	order := binary.NativeEndian
	out := order.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(content)))
	out = order.AppendUint16(out, kind)
	out = order.AppendUint16(out, 0)
	out = order.AppendUint32(out, sequence)
	return append(order.AppendUint32(out, 0), content...)
}

func errorCode(errno unix.Errno) []byte {
	return binary.NativeEndian.AppendUint32(nil, uint32(-int32(errno)))
}

func TestParseAnswer(t *testing.T) {
	tests := []struct {
		name string
		data []byte
		mine bool
		err  error
	}{
		{"answer", message(unix.SOCK_DIAG_BY_FAMILY, 7, 1, 2, 3, 4), true, nil},
		{"of an earlier request", message(unix.SOCK_DIAG_BY_FAMILY, 6, 1, 2, 3, 4), false, nil},
		{"no such socket", message(unix.NLMSG_ERROR, 7, errorCode(unix.ENOENT)...), true, errClosed},
		{"another socket by now", message(unix.NLMSG_ERROR, 7, errorCode(unix.ESTALE)...), true, errClosed},
		{"refused", message(unix.NLMSG_ERROR, 7, errorCode(unix.EPERM)...), true, unix.EPERM},
		{"too short", message(unix.SOCK_DIAG_BY_FAMILY, 7, 1, 2), true, errAnswer},
		{"cut", message(unix.SOCK_DIAG_BY_FAMILY, 7, 1, 2, 3, 4)[:18], true, errAnswer},
		{"another kind", message(unix.NLMSG_DONE, 7, 1, 2, 3, 4), true, errAnswer},
		{"empty", nil, true, errAnswer},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer, mine, err := parseAnswer(tt.data, 7, 4)
			if mine != tt.mine || !errors.Is(err, tt.err) || err == nil && mine && len(answer) != 4 {
				t.Errorf("%v, %v, %v", answer, mine, err)
			}
		})
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(message(unix.SOCK_DIAG_BY_FAMILY, 7, 1, 2, 3, 4, 8, 0, 2, 0, 9, 9, 9, 9))
	f.Add(message(unix.NLMSG_ERROR, 7, errorCode(unix.ENOENT)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		answer, _, err := parseAnswer(data, 7, 4)
		if err != nil || len(answer) < 4 {
			return
		}
		item := series.Socket{TCP: &series.TCP{}}
		_ = attributes(answer[4:], tcpAttribute(&item))
		_ = attributes(answer[4:], unixAttribute(&item))
		details := series.Details{Sockets: &series.Rows[series.Socket]{Items: []series.Socket{item}}}
		if _, err := proto.Marshal(details.Tables()[0]); err != nil {
			t.Error(err)
		}
	})
}

func FuzzRollup(f *testing.F) {
	f.Add([]byte(rollup))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := parseRollup(data); err != nil && !errors.Is(err, errRollup) {
			t.Error(err)
		}
	})
}

// A rollup of this kernel is one that can be parsed.
func TestRollupOfThisKernel(t *testing.T) {
	data := files.Read(t, "/proc/self/smaps_rollup")
	if got, err := parseRollup(data); err != nil || got.ResidentBytes == 0 || got.AnonymousBytes == 0 {
		t.Errorf("%v, %v", got, err)
	}
}
