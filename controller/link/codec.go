// SPDX-License-Identifier: Apache-2.0

package link

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// textCodec is gRPC's own, but that it encodes what has texts that are not UTF-8, too:
// gRPC ends a channel over one such message. What a program, a file or a symbol is called
// gets into messages in many places, so this is looked after in one.
type textCodec struct{ encoding.CodecV2 }

// Marshal implements [encoding.CodecV2].
func (c textCodec) Marshal(v any) (mem.BufferSlice, error) {
	message, is := v.(proto.Message)
	if !is {
		return c.CodecV2.Marshal(v)
	}
	return attunev1.Encode(message, func(m proto.Message) (mem.BufferSlice, error) { return c.CodecV2.Marshal(m) })
}
