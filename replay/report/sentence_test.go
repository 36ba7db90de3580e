package report

import (
	"testing"

	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// TestSentences: there is a sentence for each code, and no other.
func TestSentences(t *testing.T) {
	seen := map[string]verdict.Code{}
	known := map[verdict.Code]bool{}
	for c := range verdict.Codes() {
		known[c] = true
		r := &verdict.Reason{Code: c, At: verdict.Place{Path: "where"}, Now: "now", Was: "was", Detail: c.String() + " detail", N: 3, M: 4, Call: verdict.Call{ID: 5, What: "what"}}
		s := Sentence(r)
		if s == "" || s == c.String() {
			t.Errorf("%s: %q", c, s)
		}
		if other, ok := seen[s]; ok && !(c == verdict.StatusDiffers || c == verdict.FieldDiffers) {
			t.Errorf("%s and %s: %q", c, other, s)
		}
		seen[s] = c
	}
	for i, s := range sentences {
		if s != nil && !known[verdict.Code(i)] {
			t.Errorf("a sentence for %d, which is no code", i)
		}
	}
}

// TestSentence: the wording is that which scripts may read.
func TestSentence(t *testing.T) {
	for want, r := range map[string]verdict.Reason{
		"READ: NFS4ERR_IO, was OK":            {Code: verdict.Fails, At: verdict.Place{Path: "READ"}, Now: "NFS4ERR_IO"},
		"NFS3ERR_IO, was OK":                  {Code: verdict.Fails, Now: "NFS3ERR_IO"},
		"OK, was NFS3ERR_EXIST":               {Code: verdict.Succeeds, Was: "NFS3ERR_EXIST"},
		"READ[1].resok4.eof: true, was false": {Code: verdict.FieldDiffers, At: verdict.Place{Path: "READ[1].resok4.eof"}, Now: "true", Was: "false"},
		"2 names are missing: a, b":           {Code: verdict.NamesMissing, N: 2, Detail: "a, b"},
		"what op 7 (XID 0000000f, CLONE) changed in the capture has not happened here":                     {Code: verdict.Unhappened, Call: verdict.Call{ID: 7, XID: 15, What: "CLONE"}},
		"the server orders and splits directories its own way: the captured listing ended before this one": {Code: verdict.Listing, N: 1},
	} {
		if got := Sentence(&r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
