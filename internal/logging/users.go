// SPDX-License-Identifier: Apache-2.0

package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/attune-hpc/attune/internal/quota"
)

// What one user can have a service's log say: lines at once, and one more after each
// linesEvery. Those beyond are counted, and their number is told after tellAfter.
const (
	linesAtOnce = 200
	linesEvery  = 2 * time.Second
	tellAfter   = time.Minute
)

// UserKey is the attribute of lines that are about a user's doing: the user's id, an
// integer. Root's lines are not bounded.
const UserKey = "uid"

// perUser bounds the lines about each user.
type perUser struct {
	slog.Handler

	uid   uint64 // by an attribute of With; 0: none
	lines *userLines
}

// userLines are the lines about all users.
type userLines struct {
	rate *quota.Rate[uint64]
	to   slog.Handler

	mu   sync.Mutex // guards left
	left map[uint64]int
}

// PerUser returns a handler that passes lines on, of those about one user so many as
// leave room for the others': each line that has [UserKey] counts as that user's.
func PerUser(to slog.Handler) slog.Handler {
	return perUser{Handler: to, lines: &userLines{
		rate: quota.NewRate[uint64](linesAtOnce, linesEvery), to: to, left: make(map[uint64]int),
	}}
}

// Handle implements slog.Handler.
func (p perUser) Handle(ctx context.Context, r slog.Record) error {
	uid := p.uid
	r.Attrs(func(a slog.Attr) bool {
		if named, is := userOf(a); is {
			uid = named
		}
		return true
	})
	if uid != 0 && !p.lines.rate.Take(uid) {
		p.lines.count(uid)
		return nil
	}
	return p.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (p perUser) WithAttrs(attrs []slog.Attr) slog.Handler {
	p.Handler = p.Handler.WithAttrs(attrs)
	for _, a := range attrs {
		if named, is := userOf(a); is {
			p.uid = named
		}
	}
	return p
}

// WithGroup implements slog.Handler.
func (p perUser) WithGroup(name string) slog.Handler {
	p.Handler = p.Handler.WithGroup(name)
	return p
}

// userOf is the user that an attribute names.
func userOf(a slog.Attr) (uid uint64, is bool) {
	if a.Key != UserKey {
		return 0, false
	}
	switch a.Value.Kind() {
	case slog.KindUint64:
		return a.Value.Uint64(), true
	case slog.KindInt64:
		return uint64(a.Value.Int64()), true
	}
	return 0, false
}

// count counts a line that is left out. The first one has their number told later.
func (l *userLines) count(uid uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left[uid]++; l.left[uid] == 1 {
		time.AfterFunc(tellAfter, func() { l.tell(uid) })
	}
}

// tell tells how many lines about a user are left out.
func (l *userLines) tell(uid uint64) {
	l.mu.Lock()
	left := l.left[uid]
	delete(l.left, uid)
	l.mu.Unlock()
	r := slog.NewRecord(time.Now(), slog.LevelWarn, "lines about a user are left out: there are too many", 0)
	r.AddAttrs(slog.Uint64(UserKey, uid), slog.Int("lines", left))
	_ = l.to.Handle(context.Background(), r) // a log that cannot be written has no other place
}
