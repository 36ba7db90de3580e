package roce

import "testing"

// TestCredits: the codes grow by half and by a third in turn (IBTA volume 1, section 9.7.7.2); 31 is no limit.
func TestCredits(t *testing.T) {
	last := uint32(0)
	for code := range uint8(31) {
		n, limited := Syndrome(code).Credits()
		if !limited || code > 0 && n <= last || code > 5 && n != 2*credits[code-2] {
			t.Errorf("code %d: %d %v", code, n, limited)
		}
		last = n
	}
	for _, s := range []Syndrome{ACKUnlimited, NAKPSNSequence, RNR(3)} {
		if n, limited := s.Credits(); limited || n != 0 {
			t.Errorf("%v: %d %v", s, n, limited)
		}
	}
	if n, _ := Syndrome(30).Credits(); n != 32768 {
		t.Error(n)
	}
}
