// SPDX-License-Identifier: Apache-2.0

// Package recording writes and reads recordings of sessions: the frames of
// recording.proto in one compressed file.
//
// A file is eight bytes that say what it is, a format version (little-endian
// uint32), and one zstd stream. In the stream, each frame is its length
// (varint), its CRC-32C (little-endian uint32) and its bytes. The first frame is
// a header, the last an end; a file without an end was cut off. The compressor
// is flushed from time to time, so that what a killed writer leaves can be read
// but for its last moments.
//
// A Writer and a Reader belong to one goroutine at a time.
package recording
