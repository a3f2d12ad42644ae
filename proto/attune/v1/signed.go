// SPDX-License-Identifier: Apache-2.0

package attunev1

// UntypedArgument says whether a capture is an argument of a static probe of which the
// point does not say what it is: the probe does.
func UntypedArgument(spec *MeasurePoint, c *Capture) bool {
	_, argument := c.GetSource().(*Capture_Parameter)
	return argument && spec.GetUsdt() != nil && len(c.GetDereference()) == 0 &&
		c.GetType() == CaptureType_CAPTURE_TYPE_UNSPECIFIED
}

// SignedCapture says whether values of a capture may be negative. Of what comes from the debug
// information, or from what a static probe says, it is assumed: no size or number reaches
// 2^63.
func SignedCapture(spec *MeasurePoint, capture string) bool {
	for _, c := range spec.GetCaptures() {
		if c.GetName() != capture {
			continue
		}
		switch c.GetType() {
		case CaptureType_CAPTURE_TYPE_I8, CaptureType_CAPTURE_TYPE_I16, CaptureType_CAPTURE_TYPE_I32,
			CaptureType_CAPTURE_TYPE_I64, CaptureType_CAPTURE_TYPE_F32, CaptureType_CAPTURE_TYPE_F64:
			return true
		}
		return c.GetPath() != "" || UntypedArgument(spec, c)
	}
	return false
}
