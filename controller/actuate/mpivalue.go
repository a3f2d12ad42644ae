// SPDX-License-Identifier: Apache-2.0

package actuate

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/attune-hpc/attune/controller/actuate/system"
)

// mpiFacts is what a rank says of itself and of a variable.
type mpiFacts struct {
	rank, ranks int
	scope       int
	size        int // bytes
	words       map[string]int64
	old         int64
}

// mpiTypes are the types of variables that are changed, by their size.
var mpiTypes = map[string]int{
	"MPI_INT": 4, "MPI_UNSIGNED": 4, "MPI_UNSIGNED_LONG": 8, "MPI_UNSIGNED_LONG_LONG": 8, "MPI_COUNT": 8, "MPI_C_BOOL": 1,
}

// describedValue is what begins the description of a value in MPICH's texts: its
// name, and a dash between spaces.
var describedValue = regexp.MustCompile(`([a-zA-Z0-9_]+) +- `)

// describedWords are the names of the values of MPICH's choices of algorithms, which
// have them in their descriptions only, in the order of their numbers. Some versions
// leave out the ends of the lines, so that a name begins where the word before it
// ends, "algorithm" in each.
func describedWords(name, description string) map[string]int64 {
	if !strings.HasPrefix(name, "MPIR_CVAR_") || !strings.HasSuffix(name, "_ALGORITHM") {
		return nil
	}
	words := make(map[string]int64)
	apart := strings.NewReplacer("-based algorithms", "\n", "algorithm", "\n").Replace(description)
	for i, match := range describedValue.FindAllStringSubmatch(apart, -1) {
		words[match[1]] = int64(i)
	}
	return words
}

// parse reads a value as people write it.
func (f mpiFacts) parse(name, text string) (int64, error) {
	if value, ok := f.words[text]; ok {
		return value, nil
	}
	value, err := system.ParseSize(text)
	if err != nil {
		return 0, cmp.Or(f.check(name, text, false), fmt.Errorf("%s takes a whole number, not %q", name, text))
	}
	known := false
	for _, number := range f.words {
		known = known || number == value
	}
	if err := f.check(name, text, known); err != nil {
		return 0, err
	}
	if shift := 64 - 8*f.size; value != value<<shift>>shift {
		return 0, fmt.Errorf("%d does not fit into %s, which has %d bytes", value, name, f.size)
	}
	return value, nil
}

// check refuses a value of an enumeration that it does not have.
func (f mpiFacts) check(name, text string, known bool) error {
	if known || len(f.words) == 0 {
		return nil
	}
	words := slices.SortedFunc(maps.Keys(f.words), func(x, y string) int { return cmp.Compare(f.words[x], f.words[y]) })
	for i, word := range words {
		words[i] = fmt.Sprintf("%s (%d)", word, f.words[word])
	}
	return fmt.Errorf("%s takes %s, not %q", name, strings.Join(words, ", "), text)
}
