// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk/feed"
	"github.com/attune-hpc/attune/tunlets/sdk/recording"
	"github.com/attune-hpc/attune/tunlets/sdk/samplefilter"
)

const (
	// callTimeout bounds one call; a tunlet that takes longer hangs.
	callTimeout = time.Minute
	// maxCalls bounds the calls that one frame leads to: points that are placed
	// lead to calls that may ask for points.
	maxCalls = 100_000
)

// Options configure a replay.
type Options struct {
	// Tunlet takes the calls; it has been described and configured.
	Tunlet attunev1.TunletServiceClient
	// Info is what it said of itself.
	Info *attunev1.DescribeResponse
	// Partial replays also the beginning of a recording that is cut off or
	// damaged, and says so in the transcript.
	Partial bool
	// Transcript gets what the tunlet decides, a line each.
	Transcript io.Writer
	// Explain asks the tunlet why it decides as it does; the transcript has what it says.
	Explain bool
}

// Run replays a recording, which it reads twice. Errors are those of the
// recording (see [recording.Reader]), of the transcript's writer, of ctx, and of
// a tunlet that answers with an error, hangs, or has ended.
func Run(ctx context.Context, file io.ReadSeeker, opts Options) error {
	o, err := readOutline(file, opts)
	if err != nil {
		return err
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the recording: %w", err)
	}
	r, err := recording.NewReader(file)
	if err != nil {
		return err
	}
	defer r.Close()
	d := newDriver(ctx, opts, o, r)
	for range o.frames {
		f, err := r.Next()
		if err != nil {
			return err
		}
		if err := d.replay(f); err != nil {
			return fmt.Errorf("at %v of the recording: %w", time.Duration(f.GetAtNanos()), err)
		}
	}
	return d.finish()
}

func readOutline(file io.Reader, opts Options) (*outline, error) {
	r, err := recording.NewReader(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return outlineOf(r, opts.Info.GetName(), opts.Partial)
}

// driver is one replay.
type driver struct {
	ctx     context.Context
	tunlet  attunev1.TunletServiceClient
	outline *outline
	out     *transcript

	application *attunev1.Application
	start       time.Time
	now         time.Duration

	awake     bool
	wakes     samplefilter.Wakes
	feed      feed.Feed
	processes map[uint64]*attunev1.Process
	order     []uint64 // of those that live
	points    pointset
	made      int              // recorded proposals so far
	fates     map[string]*fate // the latest by their recorded ids

	calls []func() error // to be made
	total int            // calls of this frame
}

func newDriver(ctx context.Context, opts Options, o *outline, r *recording.Reader) *driver {
	d := &driver{
		ctx: ctx, tunlet: opts.Tunlet, outline: o, application: r.Header().GetApplication(), start: r.Start(),
		processes: map[uint64]*attunev1.Process{}, fates: map[string]*fate{},
	}
	if opts.Explain {
		d.application = proto.CloneOf(d.application)
		d.application.Explain = true
	}
	d.points = newPointset(&d.feed)
	d.out = newTranscript(opts.Transcript, opts.Info, d.processes)
	if wake := opts.Info.GetWake(); len(wake) > 0 {
		d.wakes.Add(opts.Info.GetName(), wake)
		return d
	}
	d.begin("no condition has to hold")
	return d
}

// begin starts the tunlet's session and tells what there is already.
func (d *driver) begin(why string) {
	d.awake = true
	d.out.line(d.now, "starts: %s", why)
	call(d, d.tunlet.ApplicationStarted, &attunev1.ApplicationStartedRequest{
		Application: d.application, UnixNano: d.start.UnixNano(),
	})
	for _, id := range d.order {
		call(d, d.tunlet.ProcessStarted, &attunev1.ProcessStartedRequest{Process: d.processes[id]})
	}
}

// replay does what a frame says, and whatever the tunlet's answers lead to.
func (d *driver) replay(f *attunev1.RecordingFrame) error {
	d.now, d.total = time.Duration(f.GetAtNanos()), 0
	d.frame(f)
	return d.drain()
}

// drain makes the calls that wait, and those that they lead to.
func (d *driver) drain() error {
	for len(d.calls) > 0 {
		next := d.calls[0]
		d.calls = d.calls[1:]
		if d.total++; d.total > maxCalls {
			return errors.New("the tunlet asks for more whenever it gets something")
		}
		if err := next(); err != nil {
			return err
		}
	}
	return d.out.err
}

// finish ends the tunlet's session.
func (d *driver) finish() error {
	if d.awake {
		call(d, d.tunlet.ApplicationEnded, &attunev1.ApplicationEndedRequest{UnixNano: d.start.Add(d.now).UnixNano()})
		if err := d.drain(); err != nil {
			return err
		}
	}
	d.out.end(d.now, d.awake, d.outline)
	return d.out.err
}

// call queues a call. A tunlet that is not interested is no error.
func call[Q, R any](d *driver, f func(context.Context, Q, ...grpc.CallOption) (R, error), request Q) {
	d.calls = append(d.calls, func() error {
		ctx, cancel := context.WithTimeout(d.ctx, callTimeout)
		defer cancel()
		response, err := f(ctx, request)
		if status.Code(err) == codes.Unimplemented {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the tunlet answers %T: %w", request, err)
		}
		if r, ok := any(response).(interface{ GetReaction() *attunev1.Reaction }); ok {
			d.react(r.GetReaction())
		}
		return nil
	})
}
