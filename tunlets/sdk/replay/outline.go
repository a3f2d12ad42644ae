// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
	"github.com/attune-hpc/attune/tunlets/sdk/recording"
)

// outline is what has to be known of a recording before it is replayed. That
// also reads all of it, so that nothing is driven with a bad one.
type outline struct {
	frames int // to be replayed
	// points are the measure points, by what makes two the same, with the
	// processes in which something became of them.
	points map[string]map[uint64]bool
	// proposals are those of the tunlet, in order.
	proposals []*fate
	err       error  // why the recording ends early; nil: it does not
	dropped   uint64 // frames with measured data that the recording lacks
}

// fate is what became of a recorded proposal.
type fate struct {
	spec *attunev1.Proposal
	key  string // what it would change
	// as is the id under which it was made again; empty: it was not yet.
	as   string
	told []*attunev1.ProposalChangedRequest // what has been told of it so far
}

// outlineOf reads a recording. One that is cut off or damaged is an error,
// unless partial says to make do with its beginning.
func outlineOf(r *recording.Reader, tunlet string, partial bool) (*outline, error) {
	o := &outline{points: map[string]map[uint64]bool{}}
	keys := map[uint32]string{} // by index, at present
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			o.dropped = r.End().GetDropped()
			return o, nil
		}
		if err != nil {
			o.err = err
			if partial && (errors.Is(err, recording.ErrTruncated) || errors.Is(err, recording.ErrDamaged)) {
				return o, nil
			}
			return nil, err
		}
		o.frames++
		o.note(f, tunlet, keys)
	}
}

func (o *outline) note(f *attunev1.RecordingFrame, tunlet string, keys map[uint32]string) {
	switch k := f.GetWhat().(type) {
	case *attunev1.RecordingFrame_Point:
		key := pointKey(k.Point.GetSpec())
		keys[k.Point.GetPoint()] = key
		if o.points[key] == nil {
			o.points[key] = map[uint64]bool{}
		}
	case *attunev1.RecordingFrame_PointStatus:
		if in := o.points[keys[k.PointStatus.GetPoint()]]; in != nil {
			in[k.PointStatus.GetProcess()] = true
		}
	case *attunev1.RecordingFrame_Reaction:
		if k.Reaction.GetTunlet() != tunlet {
			return
		}
		for _, p := range k.Reaction.GetReaction().GetProposals() {
			o.proposals = append(o.proposals, &fate{spec: p, key: proposalKey(p)})
		}
	}
}

// pointKey returns what makes two measure points the same: all but the name and
// the processes.
func pointKey(spec *attunev1.MeasurePoint) string {
	anonymous := proto.CloneOf(spec)
	anonymous.Id, anonymous.Processes = "", nil
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(anonymous)
	if err != nil { // only for invalid UTF-8: then it is no other's
		return spec.String()
	}
	return string(data)
}

// proposalKey returns what makes two proposals the same: what they change in
// which processes.
func proposalKey(p *attunev1.Proposal) string {
	var lines []string
	for _, c := range p.GetChanges() {
		lines = append(lines, fmt.Sprintf("%d %q %s", c.GetProcess(), c.GetKnob(), attunev1.ActionText(c.GetAction())))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
