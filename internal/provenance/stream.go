// SPDX-License-Identifier: Apache-2.0

package provenance

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/attune-hpc/attune/internal/account"
)

// stream is a standard stream of the command, which is one of this process as well.
type stream struct {
	file   *os.File // to be read; nil: it is not captured
	shared *os.File // has the position that the command moves
	begin  int64
	reason string // why it is not captured
}

// openStream says where a stream's file ends before the command writes to it. Whoever wants to read
// along with a pipe or a terminal must stand between, which the command could see.
func openStream(fd int, closed bool) *stream {
	s := &stream{}
	var stat unix.Stat_t
	switch err := unix.Fstat(fd, &stat); {
	case closed || err != nil:
		s.reason = "it is closed"
		return s
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		s.reason = "it is no file: only a file can be read without the command noticing it; write it to one: CMD >FILE"
		return s
	}
	// This process lets go of its own once the command has it.
	again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		s.reason = err.Error()
		return s
	}
	s.shared = os.NewFile(uintptr(again), "standard stream")
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err == nil && flags&unix.O_APPEND != 0 {
		s.begin = stat.Size
	} else if err == nil {
		s.begin, err = unix.Seek(fd, 0, io.SeekCurrent)
	}
	if err == nil {
		s.file, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	}
	if err != nil {
		s.reason = err.Error()
		_ = s.shared.Close() // nothing was written to it
	}
	return s
}

// end returns the end of what was written, at most that many bytes, and closes the file.
func (s *stream) end(most int64) *account.Captured {
	if s.file == nil {
		return &account.Captured{Missing: s.reason}
	}
	defer s.file.Close()
	defer s.shared.Close()
	end, err := s.shared.Seek(0, io.SeekCurrent)
	if err != nil {
		return &account.Captured{Missing: err.Error()}
	}
	size := max(0, end-s.begin)
	c := &account.Captured{Bytes: uint64(size), Truncated: size > most}
	data := make([]byte, min(size, most))
	n, err := s.file.ReadAt(data, end-int64(len(data)))
	if err != nil && !errors.Is(err, io.EOF) {
		c.Missing = err.Error()
	}
	data = data[:n]
	if whole := wholeRunes(data); c.Truncated && utf8.Valid(whole) {
		data = whole
	}
	if utf8.Valid(data) {
		c.Text = string(data)
	} else {
		c.Base64 = data
	}
	return c
}

// wholeRunes leaves out the rest of a character that was cut up at the beginning.
func wholeRunes(data []byte) []byte {
	for i := 0; i < len(data) && i < utf8.UTFMax; i++ {
		if utf8.RuneStart(data[i]) {
			return data[i:]
		}
	}
	return data
}
