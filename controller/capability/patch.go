// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// entryPatch writes a byte of code that cannot be written otherwise, as a patch
// of a function's entry is: of this very program. Where the kernel restricts
// that to a tracer (proc_mem.force_override), it is refused here as it would be
// elsewhere.
func entryPatch(*node) finding {
	code, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return refused(err, "", "")
	}
	err = errors.Join(writeCode(code), unix.Munmap(code))
	if err != nil {
		return refused(err, "start the kernel with proc_mem.force_override=always", "")
	}
	return available("by DMLib, in preloaded processes; and how functions are replaced")
}

func writeCode(code []byte) error {
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	const trap = 0xcc
	_, err = memory.WriteAt([]byte{trap}, int64(uintptr(unsafe.Pointer(unsafe.SliceData(code)))))
	if err == nil && code[0] != trap {
		err = errors.New("what is written into code does not arrive")
	}
	return errors.Join(err, memory.Close())
}
