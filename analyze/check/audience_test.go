package check

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

func batchOf(packets []capture.Packet) *capture.Batch { return &capture.Batch{Packets: packets} }

// checked returns a Checker, and a Decoder that shows it all.
func checked(opt Options, emit func(*Finding)) (*Checker, *decode.Decoder) {
	c := New(opt, emit)
	v := new(rpc.View)
	return c, decode.New(decode.Options{Observers: []decode.Observer{c.Observer()}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		c.Transaction(v)
	})
}

// reader reads up to so many findings of a rule, of a severity or a higher one.
type reader struct {
	least Severity
	most  int
	seen  map[*Rule]int
}

func (r *reader) wanted(rule *Rule, s Severity) bool { return s >= r.least && r.seen[rule] < r.most }

// heard is what is said of the findings that a reader wants. If choosy, the Checker makes all of them, and the reader chooses.
func heard(r reader, opt Options, packets []capture.Packet, choosy bool) (said []string, c *Checker) {
	r.seen = make(map[*Rule]int)
	opt.Rules = All()
	if !choosy {
		opt.Wanted = r.wanted
	}
	c, d := checked(opt, func(f *Finding) {
		if choosy && !r.wanted(f.Rule, f.Severity) {
			return
		}
		r.seen[f.Rule]++
		said = append(said, fmt.Sprintf("%s %q %s %s %s %s", describeFinding(f), f.Known, f.Program, f.Operation, f.CallKey, f.ReplyKey))
	})
	d.Batch(batchOf(packets))
	d.Flush()
	c.Finish()
	return said, c
}

// TestWanted: what nobody reads is counted as if somebody had, and the rest is said in the same words.
func TestWanted(t *testing.T) {
	for i := range breaches {
		s := breaches[i].scene(true)
		breaches[i].play(s)
		breaches[i].play(s)
		packets := s.frames()
		for _, profile := range [...]Profile{RFC8166, Linux} {
			for _, r := range [...]reader{{Note, 1, nil}, {Warning, 1, nil}, {Error, 2, nil}, {Note, 0, nil}} {
				name := fmt.Sprintf("%s, %v, %+v", breaches[i].rule, profile, r)
				opt := Options{Profile: profile}
				said, c := heard(r, opt, packets, false)
				want, all := heard(r, opt, packets, true)
				if !slices.Equal(said, want) {
					t.Errorf("%s\n%q\nwant\n%q", name, said, want)
				}
				if c.Totals() != all.Totals() {
					t.Errorf("%s: %v, want %v", name, c.Totals(), all.Totals())
				}
				var unread uint64
				for _, rule := range Rules() {
					if *c.Count(rule) != *all.Count(rule) {
						t.Errorf("%s: %s\n%+v\nwant\n%+v", name, rule.ID, *c.Count(rule), *all.Count(rule))
					}
					for sev := Note; sev <= Error; sev++ {
						unread += c.Unread(rule, sev)
					}
				}
				totals := all.Totals()
				if n := unread + uint64(len(said)); n != totals[Note]+totals[Warning]+totals[Error] {
					t.Errorf("%s: %d unread, %d read, of %v", name, unread, len(said), totals)
				}
			}
		}
	}
}

// TestWantedSaved: what is kept for a saved state is put into words, whoever reads it.
func TestWantedSaved(t *testing.T) {
	for _, file := range []string{"rocev2-nfs3-meta.pcap.zst", "rocev2-nfs41-recall.pcap"} {
		packets := load(t, samples+"/"+file)
		_, c := heard(reader{most: 0}, Options{Apart: true}, packets, false)
		_, all := heard(reader{most: 0}, Options{Apart: true}, packets, true)
		if len(c.apart.found) == 0 || !slices.EqualFunc(c.apart.found, all.apart.found, func(x, y saved) bool { return *x.f == *y.f }) {
			t.Errorf("%s: other findings are kept", file)
		}
	}
}

// TestNamesNeeded: names are needed for the words of a recall only.
func TestNamesNeeded(t *testing.T) {
	none := func(*Rule, Severity) bool { return false }
	rest := All()
	rest[ruleRecalled] = false
	for i, c := range [...]struct {
		opt  Options
		want bool
	}{
		{Options{Rules: All()}, true},
		{Options{Rules: rest}, false},
		{Options{Rules: All(), Wanted: none}, false},
		{Options{Rules: All(), Wanted: none, Apart: true}, true},
		{Options{Rules: All(), Wanted: func(r *Rule, s Severity) bool { return r.ID == "delegation-recalled" && s == Note }}, true},
	} {
		if got := New(c.opt, nil).Names(); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// TestUnreadAllocations: a finding that nobody reads costs no allocation.
func TestUnreadAllocations(t *testing.T) {
	s := newScene()
	s.connectWith(private(4096, 4096, true), private(4096, 4096, false))
	const rounds = 200
	for range rounds {
		s.longReply(func(_, r *rpcrdma.Header, rpc *[]byte) {
			*rpc = replyOf(r.XID, words(70, 0))
			r.Reply[0].Length = uint32(len(*rpc))
		})
		s.invalidated(func(seg rpcrdma.Segment) uint32 { return seg.Handle })
		s.readData(3000, func(h, r *rpcrdma.Header) { // bytes are missing
			h.Writes = []rpcrdma.WriteChunk{{h.Writes[0][0]}}
			h.Writes[0][0].Length, r.Writes[0][0].Length = 3100, 3050
		})
		s.edit(len(s.recs) - 1).AETH.MSN += 9
	}
	packets := s.frames()
	least := ^uint64(0)
	for range 5 {
		c, d := checked(Options{Rules: All(), Wanted: func(*Rule, Severity) bool { return false }}, func(*Finding) { t.Error("emitted") })
		d.Batch(batchOf(packets[:len(packets)/2]))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d.Batch(batchOf(packets[len(packets)/2:]))
		runtime.ReadMemStats(&after)
		least = min(least, after.Mallocs-before.Mallocs)
		for _, rule := range [...]id{ruleReplyChunkNeedless, ruleInvalidateUndeclared, ruleBytesMissing, ruleMSN} {
			if n := c.Count(&rules[rule]).Found; n < rounds/2 {
				t.Errorf("%s: found %d", rules[rule].ID, n)
			}
		}
	}
	plain := ^uint64(0)
	for range 5 {
		d := decode.New(decode.Options{}, func(*transaction.Transaction) {})
		d.Batch(batchOf(packets[:len(packets)/2]))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		d.Batch(batchOf(packets[len(packets)/2:]))
		runtime.ReadMemStats(&after)
		plain = min(plain, after.Mallocs-before.Mallocs)
	}
	if least > plain+rounds/10 {
		t.Errorf("%d allocations, %d without a Checker", least, plain)
	}
}
