// SPDX-License-Identifier: Apache-2.0

package hits

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// Key tells aggregates of one point apart. The zero value is that of hits
// without a key of their own.
type Key struct {
	// Value is the key in 64 bits, of a number.
	Value uint64
	// Has says that there is one.
	Has bool
	// Kind says what it is.
	Kind KeyKind
	// Text is a string's bytes, which may be any, and the frames of a stack, outermost
	// first, with a [FrameSeparator] between them.
	Text string
	// Cut says that the string, or the stack, was longer.
	Cut bool
}

// KeyKind is what a key is.
type KeyKind uint8

// The kinds of keys.
const (
	KeyNumber KeyKind = iota
	KeyString
	KeyStack
)

// FrameSeparator is between the frames of a stack; no name has it.
const FrameSeparator = "\n"

// KeyOf returns the key of an aggregate.
func KeyOf(a *attunev1.Aggregate) Key {
	text := a.GetKeyText()
	switch {
	case text == nil:
		return Key{Value: a.GetKey(), Has: a.Key != nil}
	case len(text.GetFrames()) > 0:
		return Key{Has: true, Kind: KeyStack, Text: strings.Join(text.GetFrames(), FrameSeparator), Cut: text.GetCut()}
	}
	return Key{Has: true, Kind: KeyString, Text: string(text.GetText()), Cut: text.GetCut()}
}

// into writes the key into an aggregate.
func (k Key) into(a *attunev1.Aggregate) {
	switch {
	case !k.Has:
	case k.Kind == KeyString:
		a.KeyText = &attunev1.KeyText{Text: []byte(k.Text), Cut: k.Cut}
	case k.Kind == KeyStack:
		a.KeyText = &attunev1.KeyText{Frames: k.Frames(), Cut: k.Cut}
	default:
		a.Key = &k.Value
	}
}

// Frames are those of a stack, outermost first; nil of other keys.
func (k Key) Frames() []string {
	if k.Kind != KeyStack {
		return nil
	}
	return strings.Split(k.Text, FrameSeparator)
}

// Compare orders keys of one point.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Value, o.Value), cmp.Compare(k.Text, o.Text))
}

// ellipsis ends what was cut.
const ellipsis = "…"

// Show is the key for people, in one line in which nothing is left that a terminal would
// obey: signed of a number in two's complement. Of a stack it is the innermost frames.
func (k Key) Show(signed bool) string {
	switch {
	case k.Kind == KeyStack:
		return ShowStack(k.Frames())
	case k.Kind == KeyString && k.Cut:
		return strconv.Quote(k.Text) + ellipsis
	case k.Kind == KeyString:
		return strconv.Quote(k.Text)
	case signed:
		return strconv.FormatInt(int64(k.Value), 10)
	case k.Value > math.MaxUint32: // an address
		return "0x" + strconv.FormatUint(k.Value, 16)
	}
	return strconv.FormatUint(k.Value, 10)
}

// shownFrames is how many frames of a stack a line has.
const shownFrames = 5

// ShowStack is the innermost frames of a stack in a line, the innermost one first. The
// object of a frame is left out where it is that of the one before.
func ShowStack(frames []string) string {
	var out strings.Builder
	before := ""
	for i := range min(len(frames), shownFrames) {
		if i > 0 {
			out.WriteString(" < ")
		}
		frame := frames[len(frames)-1-i]
		object, name, found := strings.Cut(frame, ":")
		if found && object == before {
			frame = name
		}
		before = object
		out.WriteString(frame)
	}
	if more := len(frames) - shownFrames; more > 0 {
		out.WriteString(" < " + strconv.Itoa(more) + " more")
	}
	return out.String()
}

// Plain is the key as documents have it: a number, a string (with an ellipsis if it was
// cut, and what is no UTF-8 replaced), or a stack in the folded form.
func (k Key) Plain(signed bool) any {
	switch {
	case k.Kind == KeyStack:
		return Folded(k.Calls())
	case k.Kind == KeyString:
		text := strings.ToValidUTF8(k.Text, "\uFFFD")
		if k.Cut {
			text += ellipsis
		}
		return text
	case signed:
		return int64(k.Value)
	}
	return k.Value
}

// Truncated is the outermost frame of a stack that was deeper.
const Truncated = "[deeper]"

// Calls are the frames of a stack, outermost first, that of one that was deeper being
// [Truncated]; nil of other keys.
func (k Key) Calls() []string {
	frames := k.Frames()
	if k.Cut && frames != nil {
		frames = slices.Insert(frames, 0, Truncated)
	}
	return frames
}

// ByStack says that a point has stacks for keys.
func ByStack(spec *attunev1.MeasurePoint) bool {
	return spec.GetKeyCapture() != "" && slices.ContainsFunc(spec.GetCaptures(), func(c *attunev1.Capture) bool {
		return c.GetName() == spec.GetKeyCapture() && c.GetContext() == attunev1.CaptureContext_CAPTURE_CONTEXT_STACK
	})
}

// Folded is a stack in one line, as flame graph tools read it.
func Folded(frames []string) string {
	words := make([]string, len(frames))
	for i, frame := range frames {
		words[i] = strings.ReplaceAll(frame, ";", ":")
	}
	return strings.Join(words, ";")
}
