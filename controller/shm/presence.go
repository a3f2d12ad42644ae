// SPDX-License-Identifier: Apache-2.0

package shm

import (
	"math"
	"math/bits"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// presence knows which pages of a memory file are there. The file is sparse, and whoever reads a
// page that is not there through a mapping makes it, and pays for it with memory of its own
// control group: an application could have the controller fill its file by a few forged words.
// So what the application is to have written is looked at only where there are pages.
//
// A page that was there once is not looked for again: an application that gives pages back
// meanwhile can still have single ones filled, while it lives. The methods may be called from
// any goroutine; the caller holds life.
type presence struct {
	file  *os.File
	seek  func(file *os.File, at int) (data int, err error) // seekData
	known []atomic.Uint32                                   // a bit for each page that was there
}

// nonePresent is behind the end of any file.
const nonePresent = math.MaxInt

var (
	pageSize  = os.Getpagesize()
	pageShift = bits.TrailingZeros(uint(pageSize)) // a division costs more than all the rest
)

func newPresence(file *os.File, size int) presence {
	return presence{file: file, seek: seekData, known: make([]atomic.Uint32, size>>pageShift/32+1)}
}

// seekData returns where the first byte from an offset on is whose page is there; ENXIO: nowhere.
func seekData(file *os.File, at int) (int, error) {
	data, err := unix.Seek(int(file.Fd()), int64(at), unix.SEEK_DATA)
	return int(data), err
}

// nextPresent returns where the first byte from an offset on is whose page is there; nonePresent:
// no such page follows.
func (p *presence) nextPresent(at int) int {
	page := at >> pageShift
	if p.known[page/32].Load()&(1<<(page%32)) != 0 {
		return at
	}
	data, err := p.seek(p.file, at)
	if err != nil {
		return nonePresent
	}
	page = data >> pageShift
	p.known[page/32].Or(1 << (page % 32))
	return data
}

// allPresent says whether every page of a part of the file is there.
func (p *presence) allPresent(at, size int) bool {
	for end := at + size; at < end; at = (at>>pageShift + 1) << pageShift {
		if p.nextPresent(at) != at {
			return false
		}
	}
	return true
}

// look is one way through the file, which asks for each hole once: what has many parts in it,
// such as the aggregates that a thread has never touched, would cost a system call for each.
// Of a page that comes meanwhile only the next look knows. It belongs to one goroutine.
type look struct {
	presence *presence
	from, to int // the last hole; from == to: none
}

// anyPresent says whether some page of a part of the file is there. Of what lies across pages the
// application may have written into one only; the others cost no more than it has spent itself.
func (l *look) anyPresent(at, size int) bool {
	if at < l.from || at >= l.to {
		l.from, l.to = at, l.presence.nextPresent(at)
	}
	return l.to < at+size
}
