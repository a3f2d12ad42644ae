// SPDX-License-Identifier: Apache-2.0

package capability

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/features"

	"github.com/attune-hpc/attune/controller/bpf"
)

func uprobeMulti(_ context.Context, n *node) finding {
	if !bpf.MayLoad(n.held) {
		return unavailable(notPermitted, remedyBPF)
	}
	if err := features.HaveBPFLinkUprobeMulti(); err != nil {
		f := refused(err, remedyBPF, kernelFrom("6.6"))
		return degraded("one perf event per function instead", f.reason, f.remedy)
	}
	return available("")
}

func ringBuffer(context.Context, *node) finding {
	if err := features.HaveMapType(ebpf.RingBuf); err != nil {
		return refused(err, remedyBPF, kernelFrom("5.8"))
	}
	return available("")
}

const typesFile = "/sys/kernel/btf/vmlinux"

// kernelTypes reads the first bytes of the kernel's type information.
func kernelTypes(n *node) finding {
	const magic = 0xeB9F
	remedy := "needs a kernel with CONFIG_DEBUG_INFO_BTF"
	file, err := os.Open(n.path(typesFile))
	if err != nil {
		return unavailable("no "+typesFile, remedy)
	}
	defer file.Close()
	var start [2]byte
	info, statErr := file.Stat()
	if _, err := file.ReadAt(start[:], 0); err != nil || statErr != nil || binary.NativeEndian.Uint16(start[:]) != magic {
		return unavailable(typesFile+" is not type information", remedy)
	}
	return available(fmt.Sprintf("%d KiB", info.Size()>>10))
}
