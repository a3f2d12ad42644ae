// SPDX-License-Identifier: Apache-2.0

package taskaccount

//go:generate go tool -modfile=../../../tools/go.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -type process_account taskAccount ../src/task_account.bpf.c -- -mcpu=v3 -Wall -Wextra -Werror -I../include
//go:generate go tool -modfile=../../../tools/go.mod bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64 -type file_account -type file_name taskFiles ../src/task_files.bpf.c -- -mcpu=v3 -Wall -Wextra -Werror -I../include
