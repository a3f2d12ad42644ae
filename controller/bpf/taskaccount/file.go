// SPDX-License-Identifier: Apache-2.0

package taskaccount

// File is one file with what the trees did with it, however they had come to it.
type File struct {
	// Path is where it was when it was first used, as the process saw it. It begins
	// with "..." if it is not whole, or could not be handed over at all.
	Path string
	// Inode is its number on its device.
	Inode uint64
	// Mode is its type and permissions, as stat(2) has them.
	Mode uint32
	// Read and Written are bytes that system calls moved, by ReadCalls and
	// WrittenCalls that did not fail; 0 at the end of a file is a call.
	Read, Written, ReadCalls, WrittenCalls uint64
	// Sent of Read, and Received of Written, never came to the process:
	// sendfile, splice and copy_file_range moved them.
	Sent, Received uint64
	// Opens by programs, Executions by execve(2), Maps into memory.
	Opens, Executions, Maps uint64
	// Mapped is the bytes that the maps were asked for.
	Mapped uint64
}

// Add adds what was done with another file.
func (f *File) Add(other File) {
	f.Read += other.Read
	f.Written += other.Written
	f.ReadCalls += other.ReadCalls
	f.WrittenCalls += other.WrittenCalls
	f.Sent += other.Sent
	f.Received += other.Received
	f.Opens += other.Opens
	f.Executions += other.Executions
	f.Maps += other.Maps
	f.Mapped += other.Mapped
}

// FileTotals is what is not told by file.
type FileTotals struct {
	// Received and Sent are bytes of sockets of IPv4 and IPv6, loopback's as well.
	Received, Sent uint64
	// Unseen are rings of io_uring and contexts of io_submit(2) that were made, and calls of
	// 32-bit programs: what they read and write is in none.
	Unseen uint64
	// LostCalls found no room.
	LostCalls uint64
}
