package truth

import (
	"fmt"
	"strconv"
	"strings"
)

// rule explains differences that are no mistake of the decoder. A rule must
// name what it is about as narrowly as it can: everything else stays a
// mismatch.
type rule struct {
	kind    string // empty for all
	reason  string
	applies func(c *comparison, s subject, want, got string) bool
}

var rules = []rule{
	{
		kind:   KindMissing,
		reason: "marshalled, but the connection broke before it was sent: the server never decoded it",
		applies: func(c *comparison, s subject, _, _ string) bool {
			return s.send != nil && !s.send.Decoded()
		},
	},
	{
		kind:   KindMissing,
		reason: "outside of the capture, which begins and ends in mid-stream",
		applies: func(c *comparison, s subject, _, _ string) bool {
			return s.call != nil && s.call.Outside == OutsideBoth
		},
	},
	{
		kind:   KindMissing,
		reason: "RPC over TCP while the capture began in mid-stream",
		applies: func(c *comparison, s subject, _, _ string) bool {
			return s.send == nil && c.t.Scenario["CAPTURE_AT"] == "midstream"
		},
	},
	{
		kind:   KindExtra,
		reason: "the kernel's trace buffer has overwritten events",
		applies: func(c *comparison, s subject, _, _ string) bool {
			return c.t.Overwritten && s.call == nil
		},
	},
	{
		kind:   KindOperations,
		reason: "sec=krb5p encrypts the COMPOUND",
		applies: func(c *comparison, s subject, _, got string) bool {
			return c.t.Scenario["SEC"] == "krb5p" && got == "none"
		},
	},
	{
		kind:   KindProcedure,
		reason: "sec=krb5p encrypts the COMPOUND",
		applies: func(c *comparison, s subject, _, got string) bool {
			return c.t.Scenario["SEC"] == "krb5p" && s.what == "minor_version" && got == "absent"
		},
	},
	{
		kind:   KindNfsd,
		reason: "sec=krb5p encrypts the COMPOUND",
		applies: func(c *comparison, s subject, _, got string) bool {
			return c.t.Scenario["SEC"] == "krb5p" && strings.HasPrefix(s.what, "NFSv4 operation ")
		},
	},
	{
		kind:   KindMountstats,
		reason: "sec=krb5p encrypts the status",
		applies: func(c *comparison, s subject, _, _ string) bool {
			return c.t.Scenario["SEC"] == "krb5p" && strings.HasSuffix(s.what, " errors")
		},
	},
	{
		kind:   KindState,
		reason: "the snap length cut the message",
		applies: func(c *comparison, s subject, _, got string) bool {
			return c.snapLength() < maxFrame && got == "incomplete"
		},
	},
	{
		reason: "a sum that lacks an RPC which is listed on its own",
		applies: func(c *comparison, s subject, _, got string) bool {
			return (s.kind == KindMountstats || s.kind == KindNfsd) && got == notAll
		},
	},
}

// maxFrame is a frame size in bytes that no capture exceeds: smaller snap
// lengths may have cut packets.
const maxFrame = 65536

// snapLength is the snap length of the capture in bytes.
func (c *comparison) snapLength() int {
	n, err := strconv.Atoi(c.t.Scenario["SNAPLEN"])
	if err != nil || n <= 0 {
		return maxFrame
	}
	return n
}

func text1(v any) string { return fmt.Sprint(v) }
