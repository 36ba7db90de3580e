package nfs4

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// TestAttrValues: each attribute that supported_attrs promises has a value, unless
// it can only be set; no other has.
func TestAttrValues(t *testing.T) {
	s := newRig(t, Options{}).s
	supported := s.supported[2]
	supported.add(nfs4.FATTR4_CLONE_BLKSIZE) // depends on the store
	for n, value := range attrValues {
		want := supported.has(n) && !writeOnly.has(n)
		if (value != nil) != want {
			t.Errorf("attribute %d: has a value: %v, want %v", n, value != nil, want)
		}
	}
}
