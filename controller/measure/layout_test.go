// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/attune-hpc/attune/controller/internal/abitest"
	attunev1 "github.com/attune-hpc/attune/proto/attune/v1"
)

// names are those of program.h that this package mirrors. Kinds and what
// follows a record are for those who read records.
var names = regexp.MustCompile(`^ATTUNE_(CAPTURES|PREDICATES|STEPS|STRING|STRINGS|KEYS|STAYS_MAPPED)$|^ATTUNE_(FROM|TYPE|IS)_|^attune_(program|capture|predicate)(\.|$)`)

func TestLayoutEqualsHeader(t *testing.T) {
	want := abitest.Layout(t)
	for name := range want {
		if !names.MatchString(name) {
			delete(want, name)
		}
	}
	got := map[string]uint64{
		"ATTUNE_CAPTURES":     MaxCaptures,
		"ATTUNE_PREDICATES":   MaxPredicates,
		"ATTUNE_STEPS":        MaxSteps,
		"ATTUNE_STRING":       MaxString,
		"ATTUNE_STRINGS":      MaxStrings,
		"ATTUNE_KEYS":         MaxKeys,
		"ATTUNE_STAYS_MAPPED": staysMapped,

		"ATTUNE_FROM_PARAMETER":       uint64(SourceParameter),
		"ATTUNE_FROM_FLOAT_PARAMETER": uint64(SourceFloatParameter),
		"ATTUNE_FROM_RETURNED":        uint64(SourceReturned),
		"ATTUNE_FROM_FLOAT_RETURNED":  uint64(SourceFloatReturned),
		"ATTUNE_FROM_CONSTANT":        uint64(SourceConstant),
		"ATTUNE_FROM_THREAD":          uint64(SourceThread),
		"ATTUNE_FROM_CPU":             uint64(SourceCPU),
		"ATTUNE_FROM_CALL_SITE":       uint64(SourceCallSite),

		"attune_program":            ProgramSize,
		"attune_program.captures":   programCaptures,
		"attune_program.predicates": programPredicates,
		"attune_program.value":      programValue,
		"attune_program.key":        programKey,
		"attune_program.table":      programTable,
		"attune_program.max_keys":   programMaxKeys,
		"attune_program.capture":    programCapture,
		"attune_program.predicate":  programPredicate,

		"attune_capture":        captureSize,
		"attune_capture.source": captureSource,
		"attune_capture.type":   captureType,
		"attune_capture.index":  captureIndex,
		"attune_capture.steps":  captureSteps,
		"attune_capture.limit":  captureLimit,
		"attune_capture.value":  captureValue,
		"attune_capture.offset": captureOffset,

		"attune_predicate":            predicateSize,
		"attune_predicate.capture":    predicateCapture,
		"attune_predicate.comparison": predicateOperator,
		"attune_predicate.mask":       predicateMask,
		"attune_predicate.operand":    predicateOperand,
	}
	for number, name := range attunev1.CaptureType_name {
		if number != 0 {
			got[strings.Replace(name, "CAPTURE_TYPE", "ATTUNE_TYPE", 1)] = uint64(number)
		}
	}
	for number, name := range attunev1.Comparison_name {
		if number != 0 {
			got[strings.Replace(name, "COMPARISON", "ATTUNE_IS", 1)] = uint64(number)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("program.h (-) and this package or the protocol (+) differ:\n%s", diff)
	}
}
