package link

import "testing"

// TestUnknownKind: of one layer, what has one name is of one kind, and only that.
func TestUnknownKind(t *testing.T) {
	for l := LinkLayer; l <= ERSPANLayer; l++ {
		kinds := make(map[string]Unknown)
		for v := range uint32(0x700) {
			if l == IPLayer && v > 0xff {
				break
			}
			u := Unknown{l, v}
			k, name := u.Kind(), u.String()
			if k.String() != name || k.Kind() != k {
				t.Errorf("%v is of the kind %v", u, k)
			}
			if other, ok := kinds[name]; ok && other != k {
				t.Errorf("%s: two kinds, %#v and %#v", name, k, other)
			}
			kinds[name] = k
		}
	}
}
