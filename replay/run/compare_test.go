package run

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
)

// TestPostOpAttributes: a server may leave attributes out, but those that it
// sends have to be right.
func TestPostOpAttributes(t *testing.T) {
	res := func(mode uint32, fileid uint64) *nfs3.ACCESS3res {
		r := &nfs3.ACCESS3res{}
		r.Resok.Access = 1
		r.Resok.ObjAttributes.AttributesFollow = true
		r.Resok.ObjAttributes.Attributes = nfs3.Fattr3{Type: nfs3.NF3REG, Mode: mode, Fileid: fileid}
		return r
	}
	none := res(0, 0)
	none.Resok.ObjAttributes = nfs3.PostOpAttr{}
	for _, c := range []struct {
		name       string
		want, have *nfs3.ACCESS3res
		different  string
		equivalent bool
	}{
		{"the same", res(0o644, 1), res(0o644, 1), "", false},
		{"another number", res(0o644, 1), res(0o644, 2), "", false},
		{"another mode", res(0o644, 1), res(0o600, 1), "mode", false},
		{"left out", res(0o644, 1), none, "", true},
		{"added", none, res(0o644, 1), "", true},
	} {
		var v comparison
		v.reset()
		v.want.fill(c.want)
		v.have.fill(c.have)
		v.run()
		if got := strings.Join(v.different, " "); c.different == "" && got != "" || !strings.Contains(got, c.different) {
			t.Errorf("%s: %q differs", c.name, got)
		}
		if got := v.equivalent[reasonOptional]; got != c.equivalent {
			t.Errorf("%s: equivalent: %v", c.name, v.equivalent)
		}
	}
}
