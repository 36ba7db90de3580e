package oncrpc

import "testing"

// TestBodyCut: wherever the capture cuts wrapped arguments or results, what is left says that something is missing.
func TestBodyCut(t *testing.T) {
	head := "00000001" + "00000001" + "00000000" + "0000000000000000" + "00000000"
	for _, c := range []struct {
		name string
		kind BodyKind
		body string
		data int // bytes of the message up to their end
	}{
		{"plain", BodyPlain, "0000000100000002", 32},
		{"integrity", BodyIntegrity, "0000000c" + "00000007" + "0000000100000002" + "00000003" + "61626300", 40},
		{"privacy", BodyPrivacy, "00000005" + "0102030405000000", 33},
	} {
		b := unhex(t, head+c.body)
		for n := len(head) / 2; n <= len(b); n++ {
			var r Reply
			if err := r.Decode(b[:n:n], len(b)); err != nil {
				t.Fatal(err)
			}
			body := r.Body(Protection{c.kind})
			if body.Malformed || body.Unsealed {
				t.Errorf("%s, %d bytes: %+v", c.name, n, body)
			}
			if c.kind != BodyPrivacy && (len(body.Data) < body.Length) != (n < c.data) {
				t.Errorf("%s, %d bytes: %d of %d", c.name, n, len(body.Data), body.Length)
			}
		}
	}
}
