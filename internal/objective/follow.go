// SPDX-License-Identifier: Apache-2.0

package objective

import (
	"errors"
	"regexp"
	"time"

	"github.com/attune-hpc/attune/internal/follow"
	"github.com/attune-hpc/attune/proto/attune/number"
)

const (
	// maxRead bounds what is read of a file at a time, 5 MB in a second: to look through more
	// would take the application's CPU time.
	maxRead = 256 << 10
	// maxLine bounds a line; of a longer one the beginning is looked at.
	maxLine = 16 << 10
	// mostMatches bounds what is found in a line: some patterns look through the rest of it for
	// each match.
	mostMatches = 256
)

// errSkipped says that more was written than is read.
var errSkipped = errors.New("more is written than is read, 5 MB/s: what was written meanwhile is not known")

// follower looks for a pattern in what is appended to a file.
type follower struct {
	*follow.File
	pattern *regexp.Regexp
	lines   follow.Splitter
	buffer  []byte    // of maxRead bytes; all followers of a source have the same
	grew    time.Time // when it was seen to, or was found
}

// read returns the numbers in the lines that have been completed since the last call, 1 for each match
// without, and when the last one was. It does not look farther than maxRead.
func (f *follower) read(since, now time.Time) (found []float64, at time.Time, err error) {
	news, err := f.Look()
	if err != nil {
		return nil, now, err
	}
	if news.Left > 0 {
		f.grew = now
	}
	if news.Anew || news.Left > maxRead {
		f.lines.Reset()
	}
	if news.Left > maxRead {
		f.Skip(news.Left)
		return nil, now, errSkipped
	}
	if news.Left == 0 {
		return nil, now, nil
	}
	n, err := f.Read(f.buffer[:news.Left])
	if err != nil {
		return nil, now, err
	}
	if at = now.Add(news.Written.Sub(now)); at.Before(since) || at.After(now) { // by another clock, or one that was set
		at = now
	}
	f.lines.Split(f.buffer[:n], func(line []byte) { found = append(found, f.match(line)...) })
	return found, at, nil
}

// match returns the numbers in a line, and 1 for each match of a pattern without one. What is
// no number does not count.
func (f *follower) match(line []byte) (found []float64) {
	for _, groups := range f.pattern.FindAllSubmatch(line, mostMatches) {
		if len(groups) == 1 {
			found = append(found, 1)
			continue
		}
		if n, err := number.Parse(string(groups[1])); err == nil {
			found = append(found, n)
		}
	}
	return found
}
