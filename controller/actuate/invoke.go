// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/ring"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/procid"
	"github.com/attune-hpc/attune/internal/procmem"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxThunk is the longest code that makes a call, its texts included.
const maxThunk = inject.MaxCode

// invocation is one call of a function of the process.
type invocation struct {
	name      string // for people
	function  uint64
	arguments []*attunev1.Value
	result    attunev1.ResultType
	place     callPlace
	patience  time.Duration // with the search for a place; 0: until ctx ends
}

// errNoDMLib is why the mailbox does not serve.
var errNoDMLib = errors.New("DMLib is not in the process")

// invoke makes a call by the first of the ways that serves. called is false if
// it was certainly not made. The caller holds the process' lock.
func invoke(ctx context.Context, process Process, ways []Way, i invocation) (value *attunev1.Value, how done, called bool, err error) {
	var why []error
	for tried, way := range ways {
		if len(why) > 0 && ctx.Err() != nil {
			break
		}
		var word uint64
		word, how, err = i.by(ctx, way, len(ways)-tried, process)
		if err == nil {
			return i.value(word), how, true, nil
		}
		if !next(err) {
			return nil, how, true, fmt.Errorf("%s: %w", i.name, err)
		}
		why = append(why, fmt.Errorf("%s: %w", way, err))
	}
	return nil, done{}, false, fmt.Errorf("%w: %s was not called: %w", ErrRefused, i.name, errors.Join(why...))
}

// by makes the call by one way, the first of those that are left: each has its
// share of the time, or none would be left for the next one.
func (i invocation) by(ctx context.Context, way Way, left int, process Process) (word uint64, how done, err error) {
	if until, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(until)/time.Duration(left))
		defer cancel()
	}
	if way == WayMailbox {
		word, how.where, err = i.byMailbox(ctx, process)
	} else {
		word, how, err = i.byStop(ctx, process)
	}
	how.way = way
	return word, how, err
}

// next says whether a way did not even begin, so that another one may.
func next(err error) bool {
	for _, reason := range []error{
		errNoDMLib, ring.ErrNoSafePoint, ring.ErrMailboxFull, ErrRefused,
		inject.ErrUnsuited, inject.ErrDenied, inject.ErrNoSafePoint,
	} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// value is the result as the function's type has it; nil for none.
func (i invocation) value(word uint64) *attunev1.Value {
	switch i.result {
	case attunev1.ResultType_RESULT_TYPE_REAL:
		return &attunev1.Value{Kind: &attunev1.Value_Real{Real: math.Float64frombits(word)}}
	case attunev1.ResultType_RESULT_TYPE_NONE:
		return nil
	}
	return unsigned(word)
}

// texts are the strings behind one another, each with its zero byte, and where
// each argument's begins; -1: it is none.
func (i invocation) texts() (all []byte, places []int) {
	for _, argument := range i.arguments {
		text, ok := argument.GetKind().(*attunev1.Value_Text)
		if !ok {
			places = append(places, -1)
			continue
		}
		places = append(places, len(all))
		all = append(append(all, text.Text...), 0)
	}
	return all, places
}

// words are the arguments of a call that needs no thunk.
func (i invocation) words() (words []uint64, plain bool) {
	for _, argument := range i.arguments {
		switch argument.GetKind().(type) {
		case *attunev1.Value_Real, *attunev1.Value_Text:
			return nil, false
		}
		words = append(words, word(argument))
	}
	return words, i.result != attunev1.ResultType_RESULT_TYPE_REAL
}

// byStop has a stopped thread make the call.
func (i invocation) byStop(ctx context.Context, process Process) (uint64, done, error) {
	code, err := i.thunk()
	if err != nil {
		return 0, done{}, err
	}
	var o inject.ExecuteOptions
	if i.place.thread != 0 {
		if o.Thread, err = outerThread(process.PID(), i.place.thread); err != nil {
			return 0, done{}, err
		}
	}
	o.Patience = i.patience
	if deadline, ok := ctx.Deadline(); ok && i.patience == 0 {
		o.Patience = max(time.Until(deadline), time.Millisecond) // 0 is the default
	}
	if i.place.function != nil {
		o.At, o.AtExit = i.place.function.Address, i.place.exit
	}
	word, how, err := execute(ctx, process, code, o)
	if i.place.function != nil {
		how.where = fmt.Sprintf("%s, thread %d", i.place.words(), how.thread)
	}
	return word, how, err
}

// execute has a stopped thread of the process execute code.
func execute(ctx context.Context, process Process, code []byte, o inject.ExecuteOptions) (uint64, done, error) {
	held, err := procid.Hold(process.Identity())
	if err != nil {
		return 0, done{}, err
	}
	defer held.Close()
	value, result, err := inject.Execute(ctx, held, code, o)
	how := done{
		way: WayStopped, where: fmt.Sprintf("stopped thread %d", result.Thread),
		stopped: result.Stopped, thread: result.Thread,
	}
	return value, how, err
}

// byMailbox has DMLib make the call.
func (i invocation) byMailbox(ctx context.Context, process Process) (uint64, string, error) {
	mailbox := process.Mailbox()
	if mailbox == nil {
		return 0, "", errNoDMLib
	}
	if i.place.exit {
		return 0, "", fmt.Errorf("%w: DMLib's safe points are at entries", ErrRefused)
	}
	if words, plain := i.words(); plain {
		return mailbox.Call(ctx, i.call(i.function, words...))
	}
	code, err := i.thunk()
	if err != nil {
		return 0, "", err
	}
	page, free, err := i.codePage(ctx, process, mailbox, code)
	if err != nil {
		return 0, "", err
	}
	value, where, err := mailbox.Call(ctx, i.call(page))
	if err == nil || errors.Is(err, ring.ErrNoSafePoint) {
		// Else a thread may still be in it.
		err = errors.Join(err, free())
	}
	return value, where, err
}

// call is one at the invocation's place.
func (i invocation) call(function uint64, arguments ...uint64) Call {
	return Call{
		Function: function, Arguments: arguments, Families: i.place.families, Thread: i.place.thread, Entry: i.place.function,
	}
}

// pageBytes is the size of a page on x86-64.
const pageBytes = 4096

// codePage has DMLib map memory for code; free unmaps it.
func (i invocation) codePage(ctx context.Context, process Process, mailbox Mailbox, code []byte) (page uint64, free func() error, err error) {
	unmap, err := lookup(process, "libc.so*", "munmap", objfile.Function)
	if err != nil {
		return 0, nil, err
	}
	page, err = procmem.FreePage(process.PID())
	if err != nil {
		return 0, nil, err
	}
	if err := mailbox.Map(ctx, page, pageBytes); err != nil {
		return 0, nil, err
	}
	free = func() error {
		_, _, err := mailbox.Call(ctx, i.call(unmap.Address, page, pageBytes))
		return err
	}
	if err := procmem.WriteReadOnly(process.PID(), page, code); err != nil {
		return 0, nil, errors.Join(err, free())
	}
	return page, free, nil
}

// maxArguments is what fits into registers on x86-64.
const maxArguments = 6

// done tells how an action was executed.
type done struct {
	// where in words, e.g. "now", "malloc hook, thread 4711".
	where string
	// way that served it; empty: that of the plan.
	way Way
	// stopped is how long a thread of the process was.
	stopped time.Duration
	// thread that was stopped; 0: none.
	thread int
	// partial is what was not covered, beyond what the plan says.
	partial string
}

// now is the answer of what is done from outside at once.
func now(err error) (done, error) { return done{where: "now"}, err }

// outerThread is the controller's number for a thread that the process knows by
// its own, in its pid namespace.
func outerThread(pid, inner int) (int, error) {
	tids, err := procid.Threads(pid)
	if err != nil {
		return 0, err
	}
	for _, tid := range tids {
		if own, err := procid.InnerID(pid, tid); err == nil && own == inner {
			return tid, nil
		}
	}
	return 0, fmt.Errorf("%w: the process has no thread %d", ErrRefused, inner)
}
