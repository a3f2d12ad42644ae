// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/attune-hpc/attune/controller/inject"
	"github.com/attune-hpc/attune/controller/shm"
	"github.com/attune-hpc/attune/internal/objfile"
	"github.com/attune-hpc/attune/internal/proc"
	"github.com/attune-hpc/attune/internal/procid"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// maxThunk is the longest code that makes a call, its texts included.
const maxThunk = inject.MaxCode

// Invocation is one call of a function of the process.
type Invocation struct {
	Name      string // for people
	Function  uint64
	Arguments []*attunev1.Value
	Result    attunev1.ResultType
	Place     Place
	Patience  time.Duration // with the search for a place; 0: until ctx ends
}

// errNoDMLib is why the mailbox does not serve.
var errNoDMLib = errors.New("attune's library (DMLib) is not in the process")

// Invoke makes a call by the first of the ways that serves. called is false if
// it was certainly not made. The caller holds the process' lock.
func Invoke(ctx context.Context, process Process, ways []Way, i Invocation) (value *attunev1.Value, how Done, called bool, err error) {
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
			return nil, how, true, fmt.Errorf("%s: %w", i.Name, err)
		}
		why = append(why, fmt.Errorf("%s: %w", way, err))
	}
	return nil, Done{}, false, fmt.Errorf("%w: %s was not called: %w", ErrRefused, i.Name, errors.Join(why...))
}

// by makes the call by one way, the first of those that are left: each has its
// share of the time, or none would be left for the next one.
func (i Invocation) by(ctx context.Context, way Way, left int, process Process) (word uint64, how Done, err error) {
	if until, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(until)/time.Duration(left))
		defer cancel()
	}
	if way == WayMailbox {
		word, how.Where, err = i.byMailbox(ctx, process)
	} else {
		word, how, err = i.ByStop(ctx, process)
	}
	how.Way = way
	return word, how, err
}

// next says whether a way did not even begin, so that another one may.
func next(err error) bool {
	return slices.ContainsFunc([]error{
		errNoDMLib, shm.ErrNoSafePoint, shm.ErrMailboxFull, ErrRefused,
		inject.ErrUnsuited, inject.ErrDenied, inject.ErrNoSafePoint,
	}, func(known error) bool { return errors.Is(err, known) })
}

// value is the result as the function's type has it; nil for none.
func (i Invocation) value(word uint64) *attunev1.Value {
	switch i.Result {
	case attunev1.ResultType_RESULT_TYPE_REAL:
		return &attunev1.Value{Kind: &attunev1.Value_Real{Real: math.Float64frombits(word)}}
	case attunev1.ResultType_RESULT_TYPE_NONE:
		return nil
	}
	return Unsigned(word)
}

// texts are the strings behind one another, each with its zero byte, and where
// each argument's begins; -1: it is none.
func (i Invocation) texts() (all []byte, places []int) {
	for _, argument := range i.Arguments {
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
func (i Invocation) words() (words []uint64, plain bool) {
	for _, argument := range i.Arguments {
		switch argument.GetKind().(type) {
		case *attunev1.Value_Real, *attunev1.Value_Text:
			return nil, false
		}
		words = append(words, RegisterOf(argument))
	}
	return words, i.Result != attunev1.ResultType_RESULT_TYPE_REAL
}

// ByStop has a stopped thread make the call.
func (i Invocation) ByStop(ctx context.Context, process Process) (uint64, Done, error) {
	code, err := i.Thunk()
	if err != nil {
		return 0, Done{}, err
	}
	var o inject.ExecuteOptions
	if i.Place.Thread != 0 {
		if o.Thread, err = OuterThread(process.PID(), i.Place.Thread); err != nil {
			return 0, Done{}, err
		}
	}
	o.Patience = i.Patience
	if deadline, ok := ctx.Deadline(); ok && i.Patience == 0 {
		o.Patience = max(time.Until(deadline), time.Millisecond) // 0 is the default
	}
	if i.Place.Function != nil {
		o.At, o.AtExit = i.Place.Function.Address, i.Place.exit
	}
	word, how, err := Execute(ctx, process, code, o)
	if i.Place.Function != nil {
		how.Where = fmt.Sprintf("%s, thread %d", i.Place.words(), how.Thread)
	}
	return word, how, err
}

// Execute has a stopped thread of the process execute code.
func Execute(ctx context.Context, process Process, code []byte, o inject.ExecuteOptions) (uint64, Done, error) {
	held, err := process.Hold()
	if err != nil {
		return 0, Done{}, err
	}
	value, result, err := inject.Execute(ctx, held, code, o)
	how := Done{
		Way: WayStopped, Where: fmt.Sprintf("stopped thread %d", result.Thread),
		Stopped: result.Stopped, Thread: result.Thread,
	}
	return value, how, err
}

// byMailbox has DMLib make the call.
func (i Invocation) byMailbox(ctx context.Context, process Process) (uint64, string, error) {
	mailbox := process.Mailbox()
	if mailbox == nil {
		return 0, "", errNoDMLib
	}
	if i.Place.exit {
		return 0, "", fmt.Errorf("%w: DMLib's safe points are at entries", ErrRefused)
	}
	if words, plain := i.words(); plain {
		return mailbox.Call(ctx, i.call(i.Function, words...))
	}
	code, err := i.Thunk()
	if err != nil {
		return 0, "", err
	}
	page, free, err := i.codePage(ctx, process, mailbox, code)
	if err != nil {
		return 0, "", err
	}
	value, where, err := mailbox.Call(ctx, i.call(page))
	switch {
	case err == nil:
		return value, where + freeAfter(ctx, free), nil
	case next(err):
		err = fmt.Errorf("%w%s", err, freeAfter(ctx, free))
	}
	return 0, "", err // else a thread may still be in the page
}

// freePatience is how long a page waits for the safe point at which it is freed.
const freePatience = time.Second

// freeAfter frees the page of a call that was made, or will not be, and says so if the page
// stays. The time for the call may be spent by now. That the page stays is no error of the
// call: it would be taken for one that was not made, and be made again.
func freeAfter(ctx context.Context, free func(context.Context) error) (remark string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), freePatience)
	defer cancel()
	if err := free(ctx); err != nil {
		return fmt.Sprintf("; the page with the code of the call stays: %v", err)
	}
	return ""
}

// call is one at the invocation's place.
func (i Invocation) call(function uint64, arguments ...uint64) Call {
	return Call{
		Function: function, Arguments: arguments, Families: i.Place.Families, Thread: i.Place.Thread, Entry: i.Place.Function,
	}
}

// pageBytes is the size of a page on x86-64.
const pageBytes = 4096

// codePage has DMLib map memory for code; free unmaps it, at any hook of the families.
func (i Invocation) codePage(ctx context.Context, process Process, mailbox Mailbox, code []byte) (page uint64, free func(context.Context) error, err error) {
	unmap, err := Lookup(process, "libc.so*", "munmap", objfile.Function)
	if err != nil {
		return 0, nil, err
	}
	page, err = objfile.FreePage(process.PID())
	if err != nil {
		return 0, nil, err
	}
	if err := mailbox.Map(ctx, page, pageBytes); err != nil {
		return 0, nil, err
	}
	free = func(ctx context.Context) error {
		_, _, err := mailbox.Call(ctx, Call{Function: unmap.Address, Arguments: []uint64{page, pageBytes}, Families: i.Place.Families})
		return err
	}
	if err := proc.Write(process, page, code); err != nil {
		return 0, nil, fmt.Errorf("%w%s", err, freeAfter(ctx, free))
	}
	return page, free, nil
}

// MaxArguments is what fits into registers on x86-64.
const MaxArguments = 6

// Done tells how an action was executed.
type Done struct {
	// Where in words, e.g. "now", "malloc hook, thread 4711".
	Where string
	// Way that served it; empty: that of the plan.
	Way Way
	// Stopped is how long a thread of the process was.
	Stopped time.Duration
	// Thread that was stopped; 0: none.
	Thread int
	// Partial is what was not covered, beyond what the plan says.
	Partial string
}

// DoneNow is the answer of what is done from outside at once.
func DoneNow(err error) (Done, error) { return Done{Where: attunev1.SafePointNow}, err }

// OuterThread is the controller's number for a thread that the process knows by
// its own, in its pid namespace.
func OuterThread(pid, inner int) (int, error) {
	tid, err := procid.OuterID(pid, inner)
	if err == nil && tid == 0 {
		err = fmt.Errorf("%w: the process has no thread %d", ErrRefused, inner)
	}
	return tid, err
}
