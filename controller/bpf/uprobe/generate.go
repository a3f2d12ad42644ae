// SPDX-License-Identifier: Apache-2.0

package uprobe

//go:generate go tool -modfile=../../../tools/go.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64 -type watch -type plan -type operand -type ring -type captured_record -type expectation -type key_text -type unwind_row -type unwind_object uprobes ../src/uprobes.bpf.c -- -mcpu=v3 -Wall -Wextra -Werror -I../include -I../../../dmlib/include
//go:generate clang-14 -target bpfel -D__TARGET_ARCH_x86 -O2 -g -fno-ident -fdebug-compilation-dir . -mcpu=v3 -Wall -Wextra -Werror -I../include -I../../../dmlib/include -c ../src/captures.bpf.c -o captures_x86_bpfel.o
//go:generate llvm-strip-14 -g captures_x86_bpfel.o
