// SPDX-License-Identifier: Apache-2.0

package sdk

import "testing"

func TestActionsOnFunctions(t *testing.T) {
	f, g := Function{"prog", "f"}, Function{"lib*.so", "g"}
	if r := ReplaceFunction(f, g).pb.GetReplace(); r.GetOld().GetSymbol() != "f" || r.GetNew().GetObject() != "lib*.so" {
		t.Error(r)
	}
	if r := RemoveCall(f, Int(3)).pb.GetRemove(); r.GetFunction().GetObject() != "prog" || r.GetReturns().GetInteger() != 3 || r.GetCalledFrom() != nil {
		t.Error(r)
	}
	if r := RemoveCallFrom(g, f, Value{}).pb.GetRemove(); r.GetCalledFrom().GetSymbol() != "g" || r.GetReturns() != nil {
		t.Error(r)
	}
	if p := ChangeParameter(f, 2, Int(5)).pb.GetParameter(); p.GetParameter() != 2 || p.GetValue().GetInteger() != 5 || p.GetRequiredOld() != nil {
		t.Error(p)
	}
	if p := ChangeParameterFrom(f, 2, Int(4), Int(5)).pb.GetParameter(); p.GetRequiredOld().GetInteger() != 4 {
		t.Error(p)
	}
	if i := InsertCall(f, g, Int(1), Int(2)).pb.GetInsert(); i.GetCall().GetSymbol() != "g" || len(i.GetArguments()) != 2 || i.GetArguments()[1].GetConstant().GetInteger() != 2 {
		t.Error(i)
	}
	if l := LoadLibrary("/x.so", "g").pb.GetLoad(); l.GetPath() != "/x.so" || l.GetSymbol() != "g" || l.GetCloseOnUndo() {
		t.Error(l)
	}
}
